"""``nki.simulator``: undocumented, but AWS's tests and public scripts call its ``simulate_kernel``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nkitools.dialects.modern.kernel import simulate

__all__ = ["simulate_kernel"]


def simulate_kernel(
    kernel: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    lnc: int | None = None,
) -> Any:
    """Return ``nki.simulate(kernel)[lnc](*args, **kwargs)``; without ``lnc`` (1 or 2) the kernel's own brackets hold.

    Errors: NK609, NK613. Source: vLLM Neuron, CPU simulation of kernels.
    """
    __tracebackhide__ = True
    simulated = simulate(kernel)
    return (simulated if lnc is None else simulated[lnc])(*args, **(kwargs or {}))
