"""Kernels that need no simulator: they are told their run, and write into it what a simulator would have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.record.prints.device_print import Print
from nkitools.record.run import Run
from nkitools.record.run_listeners import announce
from nkitools.rules.finding import Finding, KernelError
from nkitools.targets import Availability, jax_devices, machine, neuron
from nkitools.targets.builtin import BuiltinSimulator

__all__ = ["double", "found", "printed", "too_wide", "wide"]


def printed(run: Run, prefix: str, value: object, **loops: int) -> None:
    """As a device_print in line 41 of the author's giou.py."""
    array = np.asarray(value)
    run.prints.append(Print(prefix, array, array.shape, array.dtype.name, (0,), loops, "/author/giou.py", 41))


def found(run: Run, severity: str = "error", partitions: int = 256, line: int = 7, **loops: int) -> Finding:
    """As a tensor with too many partitions in the author's giou.py."""
    finding = Finding(
        rule="NK101",
        slug="partition-limit",
        severity=severity,
        message=f"tensor `x_tile` has {partitions} partitions",
        file="/author/giou.py",
        line=line,
        remedy="Split dimension 0.",
        column=5,
        loops=loops,
    )
    run.findings.append(finding)
    return finding


def double(run: Run, x: Any) -> Any:
    """Prints its argument and doubles it."""
    printed(run, "x", x, m=0, n=1)
    return 2 * x


def too_wide(run: Run, x: Any) -> Any:
    """Breaks NK101, as under rules=error."""
    printed(run, "x", x)
    raise KernelError(found(run, m=3))


def wide(run: Run, x: Any, partitions: int = 256) -> Any:
    """Breaks NK101, as under rules=report."""
    found(run, partitions=partitions)
    return x


def on_a_laptop(replace: Callable[[object, str, object], None] = setattr) -> None:
    """Let the builtin simulator run such kernels, and let there be no device."""
    replace(BuiltinSimulator, "run", _run)
    replace(machine, "nodes", lambda *patterns: ())
    replace(neuron, "neuron_packages", tuple)
    for kind in (jax_devices.TpuDevice, jax_devices.GpuDevice):
        replace(kind, "available", lambda device: Availability(False, f"no {device.name}: module jax is not installed"))


def _run(_: BuiltinSimulator, kernel: Any, /, *args: Any, **kwargs: Any) -> Run:
    run = Run(kernel=kernel.__name__, target="builtin", chip="trn2")
    announce(run)
    try:
        run.outputs = kernel(run, *args, **kwargs)
    except Exception as error:
        run.error = error
        raise
    return run
