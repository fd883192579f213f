"""Casts of narrow floats by tables give what the casts of NumPy and ml_dtypes give."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkitools.chip.dtypes import DType, float8_e4m3, float8_e4m3fn, float8_e5m2, float8_e8m0fnu, float16
from nkitools.chip.narrow_floats import narrow, upper_halves, widened
from nkitools.chip.numerics import put_floats, to_float32

BYTES = (float8_e4m3, float8_e4m3fn, float8_e5m2, float8_e8m0fnu)


def as_bits(values: Any) -> Any:
    """The bits of each element, those of any NaN the same."""
    floats = values.astype(np.float32)
    return np.where(np.isnan(floats), 0x7FC00000, floats.view(np.uint32))


@pytest.mark.parametrize("dtype", [float16, *BYTES], ids=str)
def test_each_pattern_becomes_its_own_number(dtype: DType) -> None:
    """In whole arrays, strided ones, without dimensions, and in arrays so large that memory is reused."""
    width = dtype.itemsize
    every = np.arange(1 << 8 * width, dtype=f"u{width}").view(dtype.dtype)
    large = np.tile(every, (1 << 19) // every.size)
    for values in (every, every[::-3], every.reshape(16, -1).T, every[5:6].reshape(()), large, large.reshape(64, -1).T):
        before = values.copy()
        for found in (to_float32(values), widened(values)):
            assert found.dtype == np.float32
            np.testing.assert_array_equal(as_bits(found), as_bits(values))
        np.testing.assert_array_equal(as_bits(values), as_bits(before))


@pytest.mark.parametrize("dtype", BYTES, ids=str)
@pytest.mark.parametrize("low", [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
def test_every_float32_becomes_the_nearest(dtype: DType, low: int) -> None:
    """Each upper half of a float32 with lower halves around its end and its middle; NaN stays NaN."""
    words = (np.arange(1 << 16, dtype=np.uint32) << 16) + np.uint32(low)
    values = words.view(np.float32).reshape(256, -1)
    with np.errstate(all="ignore"):
        expected = values.astype(dtype.dtype)
    for found in (np.empty(values.shape, dtype.dtype), np.empty((256, 512), dtype.dtype)[:, ::2]):
        narrow(found, values)
        np.testing.assert_array_equal(as_bits(found), as_bits(expected))
    put_floats(turned := np.empty(values.T.shape, dtype.dtype), values.T, dtype)
    np.testing.assert_array_equal(as_bits(turned), as_bits(expected.T))


@pytest.mark.parametrize("dtype", BYTES, ids=str)
def test_other_dtypes_become_the_nearest_too(dtype: DType) -> None:
    """float64, float16 and bfloat16, which have no table, and a destination that lies in the values' own bytes."""
    values = np.random.default_rng(0).standard_normal((64, 33)) * 20
    for given in (values, values.astype(np.float16), values.astype(ml_dtypes.bfloat16)):
        with np.errstate(all="ignore"):
            expected = given.astype(dtype.dtype)
        found = np.empty(given.shape, dtype.dtype)
        narrow(found, given)
        np.testing.assert_array_equal(as_bits(found), as_bits(expected))
    own = values.astype(np.float32)
    with np.errstate(all="ignore"):
        expected = own.astype(dtype.dtype)
    inside = own.view(dtype.dtype)[:, :33]
    narrow(inside, own)
    np.testing.assert_array_equal(as_bits(inside), as_bits(expected))


def test_halves_that_lost_something_are_odd() -> None:
    """Round to odd: the upper half is kept, but its last bit is set where the lower half is not zero."""
    words = np.random.default_rng(0).integers(0, 1 << 32, 4096, np.uint32)
    words[::2] &= np.uint32(0xFFFF0000)
    halves = [int(word) >> 16 | (int(word) & 0xFFFF != 0) for word in words]
    assert upper_halves(words.view(np.float32)).tolist() == halves
