"""Scalars of a value, and the values that scalars store."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Tile, empty, placed, tile

WIDTHS = pytest.mark.parametrize("dtype", [nl.int32, nl.int64], ids=str)


def one(value: int, dtype: Any = nl.int32, memory: str = "sbuf") -> Tile:
    """A tensor of one element."""
    return tile(np.array([[value]], dtype.dtype), memory, dtype)


def loaded(value: int, dtype: Any = nl.int32) -> Any:
    """A scalar, loaded from a tensor."""
    return nisa.scalar_load(placed(one(value, dtype)))


def stored(scalar: Any) -> int:
    """Return what a tensor of the scalar's dtype gets."""
    out = placed(empty((1, 1), scalar.dtype))
    nisa.scalar_store(dst=out, value=scalar)
    return int(out.array.item())


def numbers(dtype: Any) -> Any:
    """Integers of a dtype, its limits among them."""
    limits = np.iinfo(dtype.dtype)
    return st.integers(limits.min, limits.max) | st.sampled_from([limits.min, -1, 0, 1, limits.max])
