"""Machines with fake hardware: device nodes, the driver's files, packages on the path."""

from __future__ import annotations

import os
from pathlib import Path

DEVICES = {"NCv2": "NDv3", "NCv3": "NDv3", "NCv4": "NDv4"}  # what the driver calls the device of such cores
FAKES = Path(__file__).parent


def neuron_root(root: Path, *, instance: str = "Inf2", architecture: str = "NCv2", devices: int = 1) -> Path:
    """Nodes and files of the Neuron driver: the Neuron Sysfs user guide, and the names that the driver's source writes.

    ``architecture`` is that of the cores; that of the device is one higher for all but the first NeuronCore.
    """
    (root / "dev").mkdir(parents=True)
    for number in range(devices):
        (root / f"dev/neuron{number}").touch()
        directory = root / f"sys/devices/virtual/neuron_device/neuron{number}"
        (directory / "info/architecture").mkdir(parents=True)
        (directory / "core_count").write_text("2\n")
        (directory / "info/architecture/instance_type").write_text(f"{instance}\n")
        (directory / "info/architecture/arch_type").write_text(f"{DEVICES.get(architecture, '')}\n")
        core = directory / "neuron_core0/info/architecture"
        core.mkdir(parents=True)
        (core / "arch_type").write_text(f"{architecture}\n")
    operators = root / "opt/aws/neuron/gpsimd"  # what the loader of custom operators calls
    (operators / "tools").mkdir(parents=True)
    (operators / "script").mkdir()
    (operators / "script/build_custom_op.py").touch()
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
