"""``nisa.*`` that search a partition, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, stored

I_P, I_F = nl.arange(16)[:, None], nl.arange(20)[None, :]


def largest(x: Any) -> Any:
    """The 8 largest of each row, descending."""
    rows = x.reshape(len(x), -1)
    return np.sort(rows, axis=1)[:, ::-1][:, :8]


def test_max8() -> None:
    """Descending, of tiles of up to five dimensions, of the input's dtype or another."""
    x = random(16, 20)
    np.testing.assert_array_equal(outputs(stored(lambda t: nisa.max8(src=t)), x), largest(x))
    narrow = outputs(stored(lambda t: nisa.max8(src=t, dtype=nl.bfloat16)), x)
    np.testing.assert_array_equal(narrow, largest(x).astype(ml_dtypes.bfloat16))
    y = random(8, 2, 3, 2, 2, seed=1)
    np.testing.assert_array_equal(outputs(stored(lambda t: nisa.max8(src=t)), y), largest(y))
    grid = nl.mgrid[0:8, 0:2, 0:3, 0:2, 0:1]
    strided = stored(lambda t: nisa.max8(src=t[grid.p, grid.x, grid.y, grid.z, grid.w]))
    np.testing.assert_array_equal(outputs(strided, y), largest(y[..., :1]))


def test_max8_under_a_mask() -> None:
    """Only what the mask leaves is looked at, and only its partitions have a result."""

    def kernel(a: Any) -> Any:
        result = nl.ndarray((16, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        found = nl.zeros((16, 8), dtype=a.dtype)
        found[...] = nisa.max8(src=nl.load(a), mask=(I_P < 10) & (I_F >= 4))
        nl.store(result, found)
        return result

    x = random(16, 20)
    expected = np.zeros((16, 8), np.float32)
    expected[:10] = largest(x[:10, 4:])
    np.testing.assert_array_equal(outputs(kernel, x), expected)


@pytest.mark.parametrize("dtype", [None, np.uint16])
def test_nc_find_index8(dtype: Any) -> None:
    """The place of the first occurrence of each value: uint32 unless asked otherwise."""
    x = random(16, 20)
    kernel = stored(lambda t: nisa.nc_find_index8(data=t, vals=nisa.max8(src=t), dtype=dtype))
    found = outputs(kernel, x)
    assert found.dtype == (np.uint32 if dtype is None else dtype)
    np.testing.assert_array_equal(found, np.argsort(-x, axis=1)[:, :8])


def test_nc_find_index8_under_a_mask() -> None:
    """A mask is for the data: what it leaves out is not found."""

    def kernel(a: Any) -> Any:
        result = nl.ndarray((16, 8), dtype=nl.uint32, buffer=nl.shared_hbm)
        tile, mask = nl.load(a), (I_P < 12) & (I_F < 15)
        found = nl.zeros((16, 8), dtype=nl.uint32)
        found[...] = nisa.nc_find_index8(data=tile, vals=nisa.max8(src=tile, mask=mask), mask=mask)
        nl.store(result, found)
        return result

    x = random(16, 20)
    expected = np.zeros((16, 8))
    expected[:12] = np.argsort(-x[:12, :15], axis=1)[:, :8]
    np.testing.assert_array_equal(outputs(kernel, x), expected)


def replaced(x: Any, number: float) -> tuple[Any, Any]:
    """``x`` with the 8 largest of each row replaced, and where they were."""
    rows = x.reshape(len(x), -1).copy()
    places = np.argsort(-rows, axis=1)[:, :8]
    np.put_along_axis(rows, places, number, axis=1)
    return rows.reshape(x.shape), places


@pytest.mark.parametrize("shape", [(16, 20), (16, 4, 5)])
def test_nc_match_replace8(shape: tuple[int, ...]) -> None:
    """The values are replaced, also where they were; their places, counted flat, go into dst_idx."""

    def kernel(a: Any) -> tuple[Any, Any]:
        result = nl.ndarray(shape, dtype=a.dtype, buffer=nl.shared_hbm)
        indices = nl.ndarray((16, 8), dtype=nl.uint32, buffer=nl.shared_hbm)
        tile, places = nl.load(a), nl.ndarray((16, 8), dtype=nl.uint32)
        tile[...] = nisa.nc_match_replace8(data=tile, vals=nisa.max8(src=tile), imm=-7.0, dst_idx=places)
        nl.store(result, tile)
        nl.store(indices, places)
        return result, indices

    x = random(*shape)
    expected, places = replaced(x, -7.0)
    tile, indices = outputs(kernel, x)
    np.testing.assert_array_equal(tile, expected)
    np.testing.assert_array_equal(indices, places)


def test_nc_match_replace8_under_a_mask() -> None:
    """What the mask leaves out is neither replaced nor written, and dst_idx keeps the rows of its partitions."""

    def kernel(a: Any) -> tuple[Any, Any]:
        result = nl.ndarray((16, 20), dtype=a.dtype, buffer=nl.shared_hbm)
        indices = nl.ndarray((16, 8), dtype=nl.uint32, buffer=nl.shared_hbm)
        tile, places, mask = nl.load(a), nisa.memset((16, 8), 99, nl.uint32), (I_P < 8) & (I_F < 10)
        values = nisa.max8(src=tile, mask=mask)
        tile[...] = nisa.nc_match_replace8(data=tile, vals=values, imm=0.0, dst_idx=places[:, :], mask=mask)
        nl.store(result, tile)
        nl.store(indices, places)
        return result, indices

    x = random(16, 20)
    tile, indices = outputs(kernel, x)
    expected, where = x.copy(), np.full((16, 8), 99)
    expected[:8, :10], where[:8] = replaced(x[:8, :10], 0.0)
    np.testing.assert_array_equal(tile, expected)
    np.testing.assert_array_equal(indices, where)


def test_of_equal_values_the_highest_column_has_the_first_place() -> None:
    """The hardware's order, which NKI 0.6 describes with this example."""
    x = np.array([[1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8]], np.float32)
    values = np.array([[3, 8, 8, 8, 8, 8, 8, 8]], np.float32)

    def kernel(a: Any, b: Any) -> Any:
        indices = nl.ndarray((1, 8), dtype=nl.uint32, buffer=nl.shared_hbm)
        places = nl.ndarray((1, 8), dtype=nl.uint32)
        nisa.nc_match_replace8(data=nl.load(a), vals=nl.load(b), imm=0.0, dst_idx=places)
        nl.store(indices, places)
        return indices

    np.testing.assert_array_equal(outputs(kernel, x, values), [[2, 10, 9, 8, 7, 6, 5, 4]])


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda t: nisa.max8(t), "NK609"),
        (lambda t: nisa.max8(src=t[:, 0:7]), "NK107"),
        (lambda t: nisa.max8(src=t, mask=I_P >= I_F), "NK604"),
        (lambda t: nisa.nc_find_index8(data=t, vals=t[:, 0:7]), "NK109"),
        (lambda t: nisa.nc_find_index8(data=t, vals=t[:, 0:8], dtype=np.int32), "NK301"),
        (lambda t: nisa.nc_find_index8(data=t, vals=t[:, 0:8], mask=I_F >= 2), "NK604"),
        (lambda t: nisa.nc_match_replace8(data=t, vals=t[:, 0:8], imm=t), "NK609"),
        (lambda t: nisa.nc_match_replace8(data=t, vals=t[:, 0:8], imm=0.0, dst_idx=t[:, 0:8]), "NK301"),
        (
            lambda t: nisa.nc_match_replace8(
                data=t, vals=t[:, 0:8], imm=0.0, dst_idx=nisa.memset((16, 8), 0, nl.uint32), mask=I_F >= 2
            ),
            "NK604",
        ),
    ],
)
def test_what_is_refused(call: Any, rule: str) -> None:
    """Sizes, dtypes, masks and forms that are not possible are refused by rule."""
    assert refusal(stored(call), random(16, 20)).rule == rule
