"""Random bits of every dtype, for what moves data without looking at it."""

from __future__ import annotations

from typing import Any

import numpy as np

import nkitools.dialects.modern.language as nl
from tests.isa.oracles import words

DTYPES = (
    *(nl.float32, nl.bfloat16, nl.float16, nl.float8_e4m3, nl.float8_e5m2, nl.int8, nl.uint8, nl.int16, nl.uint16),
    *(nl.int32, nl.uint32, nl.float8_e4m3fn_x4, nl.float4_e2m1fn_x4),
)


def bits(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """Random bits as elements of ``dtype``: what moves data must not look at it."""
    unsigned = {1: nl.uint8, 2: nl.uint16, 4: nl.uint32}[dtype.itemsize]
    return words(shape, unsigned, seed).view(dtype.dtype)


def same_bits(got: np.ndarray, expected: Any) -> None:
    """Equality of bits, NaN included."""
    unsigned = f"u{got.dtype.itemsize}"
    np.testing.assert_array_equal(got.view(unsigned), np.asarray(expected, got.dtype).view(unsigned))
