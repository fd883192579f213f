"""Filling, transposing and DMA, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, stored

row, col = np.mgrid[0:16, 0:8]
I_P, I_F = nl.arange(16)[:, None], nl.arange(8)[None, :]
MASKS = [
    (lambda p, f: (p < 9) & (f >= 3), lambda p, f: (p < 9) & (f >= 3)),
    (lambda p, f: p + f < 11, lambda p, f: p + f < 11),
]


@pytest.mark.parametrize(("mask", "chosen"), MASKS)
def test_masked_fills(mask: Any, chosen: Any) -> None:
    """iota gives an element the value that it has in the whole tile, memset its number; other lanes stay."""

    def kernel(a: Any) -> tuple[Any, Any]:
        counted = nl.ndarray((16, 8), dtype=nl.int32, buffer=nl.shared_hbm)
        filled = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        numbers, constants = nl.zeros((16, 8), dtype=nl.int32), nl.zeros((16, 8), dtype=nl.float32)
        numbers[...] = nisa.iota(10 * I_P - I_F + 3, dtype=nl.int32, mask=mask(I_P, I_F))
        constants[...] = nisa.memset((16, 8), 2.5, nl.float32, mask=mask(I_P, I_F), engine=nisa.vector_engine)
        nl.store(counted, numbers)
        nl.store(filled, constants)
        return counted, filled

    counted, filled = outputs(kernel, random(2, 2))
    np.testing.assert_array_equal(counted, np.where(chosen(row, col), 10 * row - col + 3, 0))
    np.testing.assert_array_equal(filled, np.where(chosen(row, col), 2.5, 0))


@pytest.mark.parametrize(("shape", "order"), [((16, 8), (1, 0)), ((4, 3, 8), (2, 1, 0)), ((4, 3, 2, 8), (3, 1, 2, 0))])
def test_dma_transpose(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    """Of HBM and of SBUF, by the one permutation that there is for so many dimensions; the axes may be said."""
    x = random(*shape)
    expected = x.transpose(order)
    kernel = stored(lambda t: nisa.dma_transpose(t, axes=order))
    np.testing.assert_array_equal(outputs(kernel, x), expected)

    def of_hbm(a: Any) -> Any:
        result = nl.ndarray(expected.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)
        nl.store(result, nisa.dma_transpose(a, dtype=nl.bfloat16, dge_mode=nisa.dge_mode.swdge))
        return result

    np.testing.assert_array_equal(outputs(of_hbm, x), expected.astype(ml_dtypes.bfloat16))


def test_load_transpose2d() -> None:
    """[col, row] becomes [row, col]; with a mask, which chooses among the elements of HBM, only its part."""
    x = random(40, 16)

    def whole(a: Any) -> Any:
        result = nl.ndarray((16, 40), dtype=nl.float16, buffer=nl.shared_hbm)
        nl.store(result, nl.load_transpose2d(a, dtype=nl.float16))
        return result

    np.testing.assert_array_equal(outputs(whole, x), x.T.astype(np.float16))

    def masked(a: Any) -> Any:
        result = nl.ndarray((20, 48), dtype=a.dtype, buffer=nl.shared_hbm)
        tile = nl.zeros((20, 48), dtype=a.dtype)
        i_f, i_p = nl.arange(48)[:, None], nl.arange(20)[None, :]
        tile[...] = nl.load_transpose2d(a[i_f, i_p], mask=(i_f < 40) & (i_p < 16))
        nl.store(result, tile)
        return result

    expected = np.zeros((20, 48), np.float32)
    expected[:16, :40] = x.T
    np.testing.assert_array_equal(outputs(masked, x), expected)


@pytest.mark.parametrize("engine", [nisa.engine.unknown, nisa.tensor_engine, nisa.vector_engine])
def test_nc_transpose_under_a_mask(engine: Any) -> None:
    """The part that the mask leaves is transposed; free dimensions count as one."""

    def kernel(a: Any, b: Any) -> tuple[Any, Any]:
        flat = nl.ndarray((8, 16), dtype=a.dtype, buffer=nl.shared_hbm)
        deep = nl.ndarray((8, 16), dtype=a.dtype, buffer=nl.shared_hbm)
        first, second = nl.zeros((8, 16), dtype=a.dtype), nl.zeros((8, 16), dtype=a.dtype)
        first[...] = nisa.nc_transpose(nl.load(a), mask=(I_P < 9) & (I_F < 5), engine=engine)
        i_p, i_x = nl.arange(16)[:, None, None], nl.arange(4)[None, :, None]
        second[...] = nisa.nc_transpose(nl.load(b), mask=(i_p < 9) & (i_x < 3), engine=engine)
        nl.store(flat, first)
        nl.store(deep, second)
        return flat, deep

    x = random(16, 8)
    flat, deep = outputs(kernel, x, x.reshape(16, 4, 2))
    np.testing.assert_array_equal(flat, np.where((row < 9) & (col < 5), x, 0).T)
    np.testing.assert_array_equal(deep, np.where((row < 9) & (col < 6), x, 0).T)


@pytest.mark.parametrize("mode", list(nisa.dge_mode))
def test_dma_copy_takes_the_modes_of_its_time(mode: Any) -> None:
    """Whose values are other ones than today's."""

    def kernel(a: Any) -> Any:
        result = nl.ndarray((16, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=result, src=a, dge_mode=mode, oob_mode=nisa.oob_mode.error)
        return result

    x = random(16, 8)
    np.testing.assert_array_equal(outputs(kernel, x), x)


@pytest.mark.parametrize(
    ("call", "rule", "said"),
    [
        (lambda t: nisa.dma_transpose(t, axes=(0, 1)), "NK609", "axes"),
        (lambda t: nisa.dma_transpose(t, axes=1), "NK609", "axes"),
        (lambda t: nisa.dma_transpose(t.reshape((16, 1, 2, 2, 2))), "NK110", "2, 3 or 4"),
        (lambda t: nisa.dma_transpose(t, dge_mode=7), "NK609", "dge_mode"),
        (lambda t: nisa.dma_transpose(t, buffer=nl.psum), "NK201", "buffer"),
        (lambda t: nl.load_transpose2d(t), "NK201", "HBM"),
        (lambda t: nisa.nc_transpose(t, mask=I_P >= I_F), "NK604", "box"),
        (
            lambda t: nisa.nc_transpose(t.reshape((16, 4, 2)), mask=nl.arange(2)[None, None, :] < 1),
            "NK604",
            "follow one another",
        ),
        (lambda t: nisa.memset((16, 8), t, nl.float32), "NK609", "value"),
        (lambda t: nisa.tensor_copy(t, engine=nisa.engine.sync), "NK206", "engine"),
        (lambda t: nisa.dma_copy(t, t), "NK609", "positional"),
    ],
)
def test_what_is_refused(call: Any, rule: str, said: str) -> None:
    """Permutations, modes, masks, memories and forms that are not possible are refused by rule."""
    finding = refusal(stored(call), random(16, 8))
    assert finding.rule == rule
    assert said in finding.message


def test_load_transpose2d_takes_two_dimensions() -> None:
    """NK110 for others."""
    assert refusal(lambda a: nl.load_transpose2d(a), random(4, 4, 4)).rule == "NK110"
