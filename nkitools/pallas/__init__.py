"""Pallas TPU kernels on a machine without a TPU.

Importing this package imports neither JAX nor NumPy; its functions do so when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from nkitools.pallas.detect_pallas import is_pallas_function

if TYPE_CHECKING:
    from nkitools.pallas.block_sweep import Attempt, Sweep, sweep
    from nkitools.pallas.checking import check, check_as_asked
    from nkitools.pallas.compiled import Compiled, CompiledKernel
    from nkitools.pallas.launch import run
    from nkitools.pallas.one_check import CheckedRun
    from nkitools.pallas.performance import Measurement, measure, peak, utilisation
    from nkitools.pallas.precision import precision_split
    from nkitools.pallas.time_estimate import Estimate, KernelEstimate, estimate

__all__ = [
    "Attempt", "CheckedRun", "Compiled", "CompiledKernel", "Estimate", "KernelEstimate", "Measurement", "Sweep",
    "check", "check_as_asked", "estimate", "is_pallas_function", "measure", "peak", "precision_split", "run",
    "sweep", "utilisation",
]  # fmt: skip

# Where the functions are that import JAX or NumPy. No module has the name of one: importing it would hide the function.
_LATER = {
    "Attempt": "nkitools.pallas.block_sweep",
    "CheckedRun": "nkitools.pallas.one_check",
    "Compiled": "nkitools.pallas.compiled",
    "CompiledKernel": "nkitools.pallas.compiled",
    "Estimate": "nkitools.pallas.time_estimate",
    "KernelEstimate": "nkitools.pallas.time_estimate",
    "Measurement": "nkitools.pallas.performance",
    "Sweep": "nkitools.pallas.block_sweep",
    "check": "nkitools.pallas.checking",
    "check_as_asked": "nkitools.pallas.checking",
    "estimate": "nkitools.pallas.time_estimate",
    "measure": "nkitools.pallas.performance",
    "peak": "nkitools.pallas.performance",
    "precision_split": "nkitools.pallas.precision",
    "run": "nkitools.pallas.launch",
    "sweep": "nkitools.pallas.block_sweep",
    "utilisation": "nkitools.pallas.performance",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATER[name]), name)
