"""A kernel that returns its argument, and what that should be: for doors that read a file."""

from __future__ import annotations

from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl

from tests.comparison.asked_pair import PAIR


@nki.jit
def copying(x: Any) -> Any:
    """Return a copy of an array."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out


def inputs() -> tuple[Any, ...]:
    """Return the arguments of the kernel."""
    return (PAIR[0].copy(),)


def expected(_x: Any) -> Any:
    """Return what should come out."""
    return PAIR[1]
