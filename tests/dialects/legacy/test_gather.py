"""Gathers and shuffles on chip, against NumPy."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, stored


def lists(index: Any) -> Any:
    """The list of indices of each 16 partitions, partition first."""
    return [rows.flatten(order="F") for rows in index.reshape(-1, 16, index.shape[1])]


@pytest.mark.parametrize(("each", "valid"), [(1, None), (4, None), (2, 40)])
def test_local_gather(each: int, valid: int | None) -> None:
    """Elements from each index on, of the 16 partitions that its list is of."""
    x = random(32, 60)
    index = np.random.default_rng(1).integers(0, 60 // each, (32, 3), dtype=np.uint16) * np.uint16(each)
    count = 48 if valid is None else valid
    expected = np.empty((32, count, each), np.float32)
    for core, places in enumerate(lists(index)):
        rows = slice(16 * core, 16 * core + 16)
        for number, place in enumerate(places[:count]):
            expected[rows, number] = x[rows, place : place + each]
    found = outputs(stored(lambda t, i: nisa.local_gather(t, i, each, valid)), x, index)
    assert found.shape == ((32, 3, 16, each) if valid is None else (32, 40, each))
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def test_local_gather_of_some_partitions() -> None:
    """A mask chooses partitions, in whole GpSimd cores."""

    def kernel(a: Any, i: Any) -> Any:
        result = nl.ndarray((32, 1, 16, 1), dtype=a.dtype, buffer=nl.shared_hbm)
        found = nl.zeros((32, 1, 16, 1), dtype=a.dtype)
        found[...] = nisa.local_gather(nl.load(a), nl.load(i), mask=nl.arange(32)[:, None] < 16)
        nl.store(result, found)
        return result

    x, index = random(32, 60), np.arange(32, dtype=np.uint16).reshape(32, 1)
    expected = np.zeros((32, 16), np.float32)
    expected[:16] = x[:16, :16]
    np.testing.assert_array_equal(outputs(kernel, x, index).reshape(32, 16), expected)


@pytest.mark.parametrize("partitions", [32, 64, 128])
def test_nc_stream_shuffle(partitions: int) -> None:
    """The same mask in every quadrant; 255 leaves a partition as it was; in place."""
    mask = [(row - 1) % 32 if row != 5 else 255 for row in range(32)]

    def kernel(a: Any) -> Any:
        result = nl.ndarray((partitions, 4), dtype=a.dtype, buffer=nl.shared_hbm)
        tile = nl.load(a)
        nisa.nc_stream_shuffle(src=tile, dst=tile, shuffle_mask=mask)
        nl.store(result, tile)
        return result

    x = random(partitions, 4)
    rows = np.arange(partitions)
    sources = np.where(rows % 32 == 5, rows, rows // 32 * 32 + (rows % 32 - 1) % 32)
    np.testing.assert_array_equal(outputs(kernel, x), x[sources])


@pytest.mark.parametrize(
    ("mask", "chosen"),
    [
        (lambda p, f: (p < 20) & (f >= 1), lambda p, f: (p < 20) & (f >= 1)),
        (lambda p, f: (p >= 7) & (p < 20), lambda p, f: (p >= 7) & (p < 20)),
        (lambda p, f: p >= 40, lambda p, f: p >= 40),
        (lambda p, f: p + 8 * f < 40, lambda p, f: p + 8 * f < 40),
    ],
)
def test_the_lanes_that_a_mask_leaves_out_of_dst_are_unmodified(mask: Any, chosen: Any) -> None:
    """Whatever the mask: the shuffle is of whole quadrants, what is written is not."""

    def kernel(a: Any) -> Any:
        result = nl.ndarray((64, 4), dtype=a.dtype, buffer=nl.shared_hbm)
        tile = nl.zeros((64, 4), dtype=a.dtype)
        p, f = nl.arange(64)[:, None], nl.arange(4)[None, :]
        nisa.nc_stream_shuffle(nl.load(a), tile, [31 - row for row in range(32)], mask=mask(p, f))
        nl.store(result, tile)
        return result

    x = random(64, 4)
    shuffled = np.concatenate([x[31::-1], x[63:31:-1]])
    p, f = np.mgrid[0:64, 0:4]
    np.testing.assert_array_equal(outputs(kernel, x), np.where(chosen(p, f), shuffled, 0))


def test_one_partition_is_broadcast() -> None:
    """The reference's example: a mask of zeros, a source of one partition."""

    def kernel(a: Any) -> Any:
        result = nl.ndarray((32, 4), dtype=a.dtype, buffer=nl.shared_hbm)
        tile = nl.ndarray((32, 4), dtype=a.dtype)
        grid = nl.mgrid[0:1, 0:4]
        nisa.nc_stream_shuffle(src=nl.load(a)[0, grid.x], dst=tile, shuffle_mask=[0] * 32)
        nl.store(result, tile)
        return result

    x = random(1, 4)
    np.testing.assert_array_equal(outputs(kernel, x), np.repeat(x, 32, axis=0))


@pytest.mark.parametrize("shape", [(8, 6), (8, 2, 3)])
def test_gather_flattened(shape: tuple[int, ...]) -> None:
    """Each partition by its own indices, free dimensions flattened; the shape is that of the indices."""
    x = random(8, 4, 5)
    index = np.random.default_rng(2).integers(0, 20, shape, dtype=np.uint32)
    expected = np.take_along_axis(x.reshape(8, -1), index.reshape(8, -1).astype(np.int64), axis=1).reshape(shape)
    np.testing.assert_array_equal(outputs(stored(nl.gather_flattened), x, index), expected)
    narrow = outputs(stored(lambda t, i: nl.gather_flattened(t, i, dtype=nl.float16)), x, index)
    np.testing.assert_array_equal(narrow, expected.astype(np.float16))


@pytest.mark.parametrize("oblique", [False, True])
def test_gather_flattened_under_a_mask(oblique: bool) -> None:
    """Indices that a mask leaves out are not looked at, even where they are out of bounds."""

    def kernel(a: Any, i: Any) -> Any:
        result = nl.ndarray((8, 6), dtype=a.dtype, buffer=nl.shared_hbm)
        found = nl.zeros((8, 6), dtype=a.dtype)
        p, f = nl.arange(8)[:, None], nl.arange(6)[None, :]
        mask = p + f < 6 if oblique else (p < 5) & (f < 4)
        found[...] = nl.gather_flattened(nl.load(a), nl.load(i), mask=mask)
        nl.store(result, found)
        return result

    p, f = np.mgrid[0:8, 0:6]
    chosen = p + f < 6 if oblique else (p < 5) & (f < 4)
    index = np.where(chosen, (p * f) % 20, 1000).astype(np.uint32)
    x = random(8, 20)
    expected = np.where(chosen, np.take_along_axis(x, np.where(chosen, index, 0).astype(np.int64), axis=1), 0)
    np.testing.assert_array_equal(outputs(kernel, x, index), expected)


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda t: nisa.local_gather(t, t), "NK301"),
        (lambda t: nisa.local_gather(t[0:8, :], nisa.memset((8, 1), 0, nl.uint16)), "NK113"),
        (lambda t: nisa.local_gather(t, nisa.memset((32, 1), 8, nl.uint16)), "NK402"),
        (lambda t: nisa.local_gather(t, nisa.memset((32, 1), 0, nl.uint16), 3), "NK609"),
        (lambda t: nisa.local_gather(t, nisa.memset((32, 1), 0, nl.uint16), 1, 2.5), "NK609"),
        (lambda t: nisa.local_gather(t, nisa.memset((32, 2), 0, nl.uint16), mask=nl.arange(2)[None, :] < 1), "NK604"),
        (lambda t: nisa.nc_stream_shuffle(t, t, [0] * 31), "NK609"),
        (lambda t: nisa.nc_stream_shuffle(t, t, [0] * 32, dtype=nl.bfloat16), "NK301"),
        (lambda t: nl.gather_flattened(t, t), "NK301"),
        (lambda t: nl.gather_flattened(t, nisa.memset((32, 1), 8, nl.uint32)), "NK402"),
        (lambda t: nl.gather_flattened(t.reshape((32, 2, 2, 2, 1)), nisa.memset((32, 1), 0, nl.uint32)), "NK110"),
    ],
)
def test_what_is_refused(call: Any, rule: str) -> None:
    """Dtypes, sizes, indices and masks that are not possible are refused by rule."""
    assert refusal(stored(call), random(32, 8)).rule == rule
