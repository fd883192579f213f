"""Machines with fake hardware: device nodes, the driver's files, packages on the path."""

from __future__ import annotations

import os
from pathlib import Path

FAKES = Path(__file__).parent


def neuron_root(root: Path, *, instance: str = "Inf2", architecture: str = "NCv2", devices: int = 1) -> Path:
    """Nodes and files of the Neuron driver as the Neuron Sysfs user guide lists them."""
    (root / "dev").mkdir(parents=True)
    for number in range(devices):
        (root / f"dev/neuron{number}").touch()
        directory = root / f"sys/devices/virtual/neuron_device/neuron{number}"
        (directory / "info/architecture").mkdir(parents=True)
        (directory / "core_count").write_text("2\n")
        (directory / "info/architecture/instance_type").write_text(f"{instance}\n")
        (directory / "info/architecture/arch_type").write_text(f"{architecture}\n")
    return root


def node_root(root: Path, *nodes: str) -> Path:
    """Device nodes alone."""
    for node in nodes:
        path = root / node.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def packages(*names: str) -> str:
    """A PYTHONPATH with these fakes in front."""
    known = [str(FAKES / name) for name in names]
    return os.pathsep.join([*known, *filter(None, [os.environ.get("PYTHONPATH")])])
