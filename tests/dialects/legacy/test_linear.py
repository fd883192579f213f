"""Matrix products and transposes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, run, stored


def test_matmul_with_and_without_the_first_operand_transposed() -> None:
    """x @ y and x.T @ y, as float32 in PSUM, which nl.store takes by way of SBUF."""
    x, y = random(96, 64), random(64, 200, seed=1)
    np.testing.assert_allclose(outputs(stored(nl.matmul), x, y), x @ y, rtol=1e-4, atol=1e-5)
    measured = outputs(stored(lambda a, b: nl.matmul(a, b, transpose_x=True)), np.ascontiguousarray(x.T), y)
    np.testing.assert_allclose(measured, x @ y, rtol=1e-4, atol=1e-5)


def test_products_of_narrow_floats_are_float32() -> None:
    """bfloat16 operands are multiplied exactly and summed in float32."""
    x = random(64, 32, dtype=ml_dtypes.bfloat16)
    measured = outputs(stored(lambda a: nisa.nc_matmul(a, a)), x)
    wide = x.astype(np.float64)
    assert measured.dtype == np.float32
    np.testing.assert_allclose(measured, wide.T @ wide, rtol=1e-5)


def test_the_result_of_a_product_is_in_psum() -> None:
    """nl.matmul and nisa.nc_matmul return tiles in PSUM, nl.copy brings them to SBUF."""

    def kernel(x: Any) -> Any:
        tile = nl.load(x)
        product = nl.matmul(tile, tile, transpose_x=True)
        assert product.buffer is nl.psum
        assert nl.copy(product).buffer is nl.sbuf
        assert nl.transpose(tile).buffer is nl.sbuf
        assert nisa.nc_transpose(tile).buffer is nl.psum
        assert nisa.nc_transpose(tile[0:32, 0:32], engine=nisa.vector_engine).buffer is nl.sbuf
        return x

    outputs(kernel, random(64, 48))


@pytest.mark.parametrize("shape", [(64, 48), (32, 2), (128, 128), (1, 100)])
def test_transposes(shape: tuple[int, int]) -> None:
    """nl.transpose and nisa.nc_transpose swap the dimensions and may convert."""
    x = random(*shape)
    np.testing.assert_array_equal(outputs(stored(nl.transpose), x), x.T)
    np.testing.assert_array_equal(outputs(stored(nisa.nc_transpose), x), x.T)
    converted = outputs(stored(lambda a: nisa.nc_transpose(a, dtype=nl.bfloat16)), x)
    np.testing.assert_array_equal(converted, x.T.astype(ml_dtypes.bfloat16))


def test_operand_masks_choose_lanes_of_each_operand() -> None:
    """``tile[mask]`` multiplies a part of each operand; the rest of the product stays undefined."""

    def kernel(x: Any, y: Any) -> Any:
        i_p, i_m, i_n = nl.arange(64)[:, None], nl.arange(48)[None, :], nl.arange(100)[None, :]
        left, right = nl.load(x), nl.load(y)
        product = nl.matmul(left[(i_p < 40) & (i_m < 16)], right[(i_p < 40) & (i_n < 30)], transpose_x=True)
        assert product.shape == (48, 100)
        result = nl.ndarray((16, 30), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(result, product[0:16, 0:30])
        return result

    x, y = random(64, 48), random(64, 100, seed=1)
    np.testing.assert_allclose(outputs(kernel, x, y), x[:40, :16].T @ y[:40, :30], rtol=1e-4, atol=1e-5)


def test_operand_masks_one_behind_another_all_count() -> None:
    """``tile[a][b]`` is ``tile[a & b]``; a condition on a loop's counter is one of them, and may leave nothing."""

    def kernel(x: Any, y: Any) -> Any:
        i_p, i_m, i_n = nl.arange(64)[:, None], nl.arange(48)[None, :], nl.arange(100)[None, :]
        left, right = nl.load(x), nl.load(y)
        product = nl.zeros((48, 100), dtype=nl.float32, buffer=nl.psum)
        for turn in nl.affine_range(3):
            product += nisa.nc_matmul(left[i_p < 40][i_m < 16], right[turn < 2][i_p < 40][i_n < 30])
        result = nl.ndarray((16, 30), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(result, product[0:16, 0:30])
        return result

    x, y = random(64, 48), random(64, 100, seed=1)
    np.testing.assert_allclose(outputs(kernel, x, y), 2 * x[:40, :16].T @ y[:40, :30], rtol=1e-4, atol=1e-4)


def test_operand_masks_choose_along_each_free_dimension_of_moving() -> None:
    """As in a convolution: rows and columns of a picture that lie beyond its edge take no part."""

    def kernel(x: Any, y: Any) -> Any:
        i_p, i_h, i_w = nl.arange(32)[:, None, None], nl.arange(6)[None, :, None], nl.arange(10)[None, None, :]
        left, right = nl.load(x), nl.load(y)
        product = nisa.nc_matmul(left[nl.arange(16)[None, :] < 12], right[i_p, i_h, i_w][i_h < 5][i_w < 7])
        assert product.shape == (16, 6, 10)
        result = nl.ndarray((12, 5, 7), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(result, product[0:12, 0:5, 0:7])
        return result

    x, y = random(32, 16), random(32, 6, 10, seed=1)
    expected = np.einsum("km,khw->mhw", x[:, :12], y[:, :5, :7])
    np.testing.assert_allclose(outputs(kernel, x, y), expected, rtol=1e-4, atol=1e-5)


def test_a_mask_of_a_product_may_choose_contracted_partitions() -> None:
    """mask= is clear where it speaks of the partitions that both operands share."""
    x = random(64, 32)
    measured = outputs(stored(lambda a: nisa.nc_matmul(a, a, mask=nl.arange(64)[:, None] < 20)), x)
    np.testing.assert_allclose(measured, x[:20].T @ x[:20], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda t: nisa.nc_matmul(t, t, mask=nl.arange(64)[None, :] < 20), "NK604"),
        (lambda t: nl.exp(t[nl.arange(64)[None, :] < 20]), "NK604"),
        (lambda t: nl.matmul(t[nl.arange(64)[None, :] < 20], t), "NK604"),
        (lambda t: nl.matmul(t, t[0:32, :], transpose_x=True), "NK102"),
        (lambda t: nl.matmul(t.reshape((64, 8, 8)), t), "NK110"),
        (lambda t: nl.matmul(t, t, transpose_y=True), "NK609"),
        (lambda t: nl.matmul(t, 2.0), "NK609"),
        (lambda t: nisa.nc_matmul(t, t, perf_mode="quadruple"), "NK607"),
    ],
)
def test_what_is_refused(call: Any, rule: str) -> None:
    """Ambiguous masks, wrong shapes, memories and keywords are refused by rule."""
    assert refusal(stored(call), random(64, 64)).rule == rule


def test_double_row_mode() -> None:
    """perf_mode="double_row_gen3", which AWS's own test passes, contracts pairs of rows of float8."""
    a = np.ones((128, 2, 4), ml_dtypes.float8_e5m2)
    b = np.ones((128, 2, 16), ml_dtypes.float8_e5m2)
    kernel = stored(lambda x, y: nisa.nc_matmul(x, y, perf_mode="double_row_gen3"))
    np.testing.assert_array_equal(run(kernel, a, b, chip="trn2").outputs, np.full((4, 16), 256, np.float32))
