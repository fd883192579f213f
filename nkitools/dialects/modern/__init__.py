"""``nki`` 0.6: kernels compiled by ``nki.jit`` and simulated by ``nki.simulate``."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.absent import missing
from nkitools.dialects.modern.kernel import Kernel, jit, simulate

__all__ = ["Kernel", "jit", "simulate"]

_LEGACY = (
    "Import it from neuronxcc.nki for a kernel of the legacy dialect; the modern one has nki.jit and nki.simulate."
)
_MEASURED = "Call the kernel itself; run_kernel and kernel_benchmark of the pytest plugin measure it on a device."
REMOVED = {
    "baremetal": _MEASURED,
    "benchmark": _MEASURED,
    "compiler": _LEGACY,
    "profile": _MEASURED,
    "simulate_kernel": "Call nki.simulate(kernel)(...).",
    "trace": "Decorate the kernel with nki.jit; what it calls needs no decorator.",
}


def __getattr__(name: str) -> Any:
    return missing("nki", name, frozenset(), REMOVED)
