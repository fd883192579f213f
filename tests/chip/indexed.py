"""A table in HBM, and the indices that address it while the kernel runs."""

from __future__ import annotations

from typing import Any

import numpy as np

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import empty, placed, tile
from tests.isa.oracles import words

I32 = nl.int32
X = words((6, 8, 10), I32)


def put(values: Any, memory: str = "shared_hbm") -> Any:
    """A tensor that holds these values, inside a running kernel."""
    return placed(tile(np.asarray(values), memory))


def scalar(value: int, dtype: Any = I32) -> Any:
    """A (1, 1) tensor in SBUF."""
    return put(np.full((1, 1), value, dtype.dtype), "sbuf")


def column(values: Any, dtype: Any = I32) -> Any:
    """An index for each partition."""
    return put(np.array(values).astype(dtype.dtype).reshape(-1, 1), "sbuf")


def copied(view: Any, **kwargs: Any) -> np.ndarray:
    """The elements that a DMA reads through a view."""
    out = placed(empty(view.shape, view.dtype, "private_hbm"))
    nisa.dma_copy(dst=out, src=view, **kwargs)
    return np.array(out.array)
