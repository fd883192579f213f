"""Loading, storing, copying and printing tiles."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, run


def test_the_last_tile_is_smaller_under_a_mask() -> None:
    """Tiles of 128 rows over 300 rows: every row is copied, and the DMAs move no more than there is."""

    def kernel(x: Any) -> Any:
        rows, columns = x.shape
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        i_f = nl.arange(columns)[None, :]
        for m in nl.affine_range((rows + 127) // 128):
            i_p = m * 128 + nl.arange(128)[:, None]
            tile = nl.load(x[i_p, i_f], mask=i_p < rows)
            nl.store(result[i_p, i_f], tile, mask=i_p < rows)
        return result

    x = random(300, 16)
    done = run(kernel, x)
    assert done.findings == []
    np.testing.assert_array_equal(done.outputs, x)
    assert [each.operands[0].shape[0] for each in done.instructions] == [128, 128, 128, 128, 44, 44]


def test_a_mask_that_leaves_nothing_issues_nothing() -> None:
    """Loops may run past the end: a call whose mask holds nowhere is left out."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for m in range(4):
            i_p = m * 128 + nl.arange(128)[:, None]
            i_f = nl.arange(8)[None, :]
            nl.store(result[i_p, i_f], nl.load(x[i_p, i_f], mask=i_p < 100), mask=i_p < 100)
        return result

    x = random(100, 8)
    done = run(kernel, x)
    np.testing.assert_array_equal(done.outputs, x)
    assert len(done.instructions) == 2


def test_loads_and_stores_convert() -> None:
    """nl.load takes a dtype, nl.store converts to that of the tensor."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(result, nl.load(x, dtype=nl.bfloat16))
        return result

    x = random(8, 8)
    np.testing.assert_array_equal(outputs(kernel, x), x.astype(ml_dtypes.bfloat16).astype(np.float32))


def test_numbers_rows_and_columns_are_stored() -> None:
    """A number fills, a tile broadcasts to the destination, and a column goes into a vector."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        first = nl.ndarray((8, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(first, 2.5)
        second = nl.ndarray((8, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(second, tile[:, 0:1])
        third = nl.ndarray((8,), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(third, tile[:, 1:2])
        fourth = nl.ndarray((8, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:8, 0:6]
        nl.store(fourth, 1.0)
        nl.store(fourth[i_p, i_f], tile[:, 0:1], mask=i_p < 3)
        return first, second, third, fourth

    x = random(8, 6)
    first, second, third, fourth = outputs(kernel, x)
    np.testing.assert_array_equal(first, np.full((8, 6), 2.5, np.float32))
    np.testing.assert_array_equal(second, np.broadcast_to(x[:, :1], (8, 6)))
    np.testing.assert_array_equal(third, x[:, 1])
    expected = np.ones((8, 6), np.float32)
    expected[:3] = x[:3, :1]
    np.testing.assert_array_equal(fourth, expected)


def test_dma_copy_in_place() -> None:
    """nisa.dma_copy writes its destination, also under a mask and between tensors in HBM."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:8, 0:6]
        nisa.dma_copy(dst=result, src=x)
        zeros = nl.zeros((8, 6), dtype=x.dtype)
        nisa.dma_copy(dst=result[i_p, i_f], src=zeros[i_p, i_f], mask=(i_p < 2) & (i_f > 3))
        return result

    x = random(8, 6)
    expected = x.copy()
    expected[:2, 4:] = 0
    np.testing.assert_array_equal(outputs(kernel, x), expected)


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda x, t: nl.load(t), "NK201"),
        (lambda x, t: nl.store(t, t), "NK201"),
        (lambda x, t: nl.store(nl.ndarray((8, 8), dtype=x.dtype, buffer=nl.private_hbm), x), "NK201"),
        (lambda x, t: nl.store(nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.private_hbm), t), "NK109"),
        (lambda x, t: nl.store(nl.ndarray((4, 16), dtype=x.dtype, buffer=nl.private_hbm), t), "NK109"),
        (lambda x, t: nl.load(np.ones((8, 8), np.float32)), "NK609"),
        (lambda x, t: nl.load(x, where=3), "NK609"),
        (lambda x, t: nl.load(x, mode="skip"), "NK609"),
        (lambda x, t: nisa.dma_copy(dst=t, src=x, dst_rmw_op=np.maximum), "NK306"),
        (lambda x, t: nl.store(x, t), "NK406"),
        (lambda x, t: nisa.dma_copy(dst=x, src=t), "NK406"),
    ],
)
def test_what_is_refused(call: Any, rule: str) -> None:
    """Wrong memories, shapes and keywords, and writing to an immutable input, are refused by rule."""
    assert refusal(lambda x: call(x, nl.load(x)), random(8, 8)).rule == rule


def test_the_mode_of_indirect_loads_is_taken() -> None:
    """mode=, undocumented but used, says what an indirect index out of bounds does; a direct one never is."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(result, nl.load(x, mode=nisa.oob_mode.skip), mode=nisa.oob_mode.error)
        return result

    x = random(8, 8)
    np.testing.assert_array_equal(outputs(kernel, x), x)


def test_device_prints_are_records() -> None:
    """A print keeps prefix, values, dtype, counters and line; what a mask leaves out is masked."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        for m in nl.affine_range(2):
            nl.device_print("tile", tile[nl.ds(m * 4, 4), :])
        nl.device_print("corner", tile, mask=(nl.arange(8)[:, None] < 2) & (nl.arange(6)[None, :] < 3))
        nl.device_print("input", x)
        return x

    x = random(8, 6)
    prints = run(kernel, x).prints
    assert [(each.prefix, each.loops, each.shape) for each in prints] == [
        ("tile", {"m": 0}, (4, 6)),
        ("tile", {"m": 1}, (4, 6)),
        ("corner", {}, (8, 6)),
        ("input", {}, (8, 6)),
    ]
    np.testing.assert_array_equal(prints[1].value, x[4:])
    corner = np.zeros((8, 6), bool)
    corner[:2, :3] = True
    np.testing.assert_array_equal(prints[2].mask, ~corner)
    np.testing.assert_array_equal(prints[2].value[corner], x[corner])
    assert (prints[2].min, prints[2].max) == (x[corner].min(), x[corner].max())
    assert "42 of 48 elements masked" in prints[2].text()
    assert prints[0].mask is None


def test_a_print_under_any_mask_has_its_lanes() -> None:
    """Also under one that leaves no box, and where masked lanes lie outside of the tensor; no lane, no print."""

    def kernel(x: Any) -> Any:
        i_p, i_f = nl.arange(8)[:, None], nl.arange(6)[None, :]
        tile = nl.load(x)
        nl.device_print("triangle", tile[i_p, i_f], mask=i_p >= i_f)
        nl.device_print("beyond", tile[4 + i_p, i_f], mask=4 + i_p < 8)
        nl.device_print("none", tile[i_p, i_f], mask=i_p > 8)
        return x

    x = random(8, 6)
    triangle, beyond = run(kernel, x).prints
    lower = np.tril(np.ones((8, 6), bool))
    np.testing.assert_array_equal(triangle.masked.filled(0), np.where(lower, x, 0))
    np.testing.assert_array_equal(triangle.mask, ~lower)
    np.testing.assert_array_equal(beyond.mask, np.repeat([[False], [True]], 4, axis=0) | np.zeros((8, 6), bool))
    np.testing.assert_array_equal(beyond.value[:4], x[4:])
    assert " --" in triangle.text()


def test_what_was_never_loaded_is_printed_as_nan() -> None:
    """Lanes that a mask left out show as NaN."""

    def kernel(x: Any) -> Any:
        nl.device_print("tile", nl.load(x, mask=nl.arange(8)[:, None] < 5))
        return x

    (printed,) = run(kernel, random(8, 6)).prints
    assert np.isnan(printed.value[5:]).all()
    assert not np.isnan(printed.value[:5]).any()
