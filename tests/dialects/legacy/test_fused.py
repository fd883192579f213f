"""``nisa.*`` of several operators, and with reductions, against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, stored


def pair(compute: Any) -> Any:
    """A kernel that stores the tile which ``compute`` makes, and the (16, 1) tile that it fills."""

    def kernel(*arrays: Any) -> tuple[Any, Any]:
        reduced = nl.ndarray((16, 1), dtype=nl.float32)
        tile = compute(reduced, *[nl.load(array) for array in arrays])
        first = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        second = nl.ndarray((16, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(first, tile)
        nl.store(second, reduced)
        return first, second

    return kernel


def test_scalar_tensor_tensor() -> None:
    """A vector, then a tile; either side reversed; the result has the first tile's dtype unless another is given."""
    x, column, y = random(16, 8), random(16, 1, seed=1), random(16, 8, seed=2)

    def compute(a: Any, b: Any, c: Any) -> Any:
        return nisa.scalar_tensor_tensor(data=a, op0=nl.subtract, operand0=b, op1=np.multiply, operand1=c)

    np.testing.assert_allclose(outputs(stored(compute), x, column, y), (x - column) * y, rtol=1e-6, atol=1e-6)

    def reversed_sides(a: Any, c: Any) -> Any:
        return nisa.scalar_tensor_tensor(
            data=a, op0=np.subtract, operand0=1.0, op1=np.subtract, operand1=c, reverse0=True, reverse1=True
        )

    np.testing.assert_allclose(outputs(stored(reversed_sides), x, y), y - (1 - x), rtol=1e-6, atol=1e-6)
    narrow = x.astype(ml_dtypes.bfloat16)
    kernel = stored(
        lambda a, c: nisa.scalar_tensor_tensor(
            data=a, op0=nl.add, operand0=1.0, op1=nl.add, operand1=c, dtype=np.float32
        )
    )
    np.testing.assert_allclose(outputs(kernel, narrow, y), narrow.astype(np.float32) + 1 + y, rtol=1e-6, atol=1e-6)
    assert outputs(stored(lambda a, c: compute(a, 2.0, c)), narrow, y).dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(("reverse0", "reverse1"), [(False, False), (True, False), (False, True)])
def test_tensor_tensor_scan(reverse0: bool, reverse1: bool) -> None:
    """result[i] = (data0[i] - result[i - 1]) - data1[i] in every partition, sides swapped as asked."""
    x, y, start = random(16, 9), random(16, 9, seed=1), random(16, 1, seed=2)
    expected = np.empty((16, 9), np.float64)
    state = start[:, 0].astype(np.float64)
    for i in range(9):
        first = state - x[:, i] if reverse0 else x[:, i] - state
        state = y[:, i] - first if reverse1 else first - y[:, i]
        expected[:, i] = state
    kernel = stored(lambda a, b, c: nisa.tensor_tensor_scan(a, b, c, np.subtract, np.subtract, reverse0, reverse1))
    np.testing.assert_allclose(outputs(kernel, x, y, start), expected, rtol=1e-5, atol=1e-5)


def test_a_scan_has_the_promoted_dtype_and_begins_where_its_mask_does() -> None:
    """(float16, bfloat16) gives float32, and masked elements are no part of the scan."""
    x, y = random(16, 8).astype(np.float16), random(16, 8, seed=1).astype(ml_dtypes.bfloat16)
    assert outputs(stored(lambda a, b: nisa.tensor_tensor_scan(a, b, 0, np.multiply, np.add)), x, y).dtype == np.float32

    def kernel(a: Any) -> Any:
        result = nl.ndarray((10, 5), dtype=a.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(16)[:, None], nl.arange(8)[None, :]
        tile, ones = nl.load(a), nl.ones((16, 8), dtype=a.dtype)
        sums = nisa.tensor_tensor_scan(
            ones, tile, initial=0.0, op0=nl.multiply, op1=nl.add, mask=(i_p < 10) & (i_f >= 3)
        )
        nl.store(result, sums[0:10, 3:8])
        return result

    z = random(16, 8, seed=3)
    np.testing.assert_allclose(outputs(kernel, z), np.cumsum(z[:10, 3:], axis=1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("token", "reduce"),
    [
        (nl.add, lambda t: t.sum(axis=1)),
        (nl.multiply, lambda t: t.prod(axis=1)),
        (nl.max, lambda t: t.max(axis=1)),
        (np.amin, lambda t: t.min(axis=1)),
        (np.subtract, lambda t: t[:, 0] - t[:, 1:].sum(axis=1)),
    ],
)
def test_tensor_scalar_reduce(token: Any, reduce: Any) -> None:
    """The results of one operator, and their reduction in float32, before they are cast."""
    x = random(16, 8)
    kernel = pair(
        lambda total, a: nisa.tensor_scalar_reduce(
            data=a, op0=np.multiply, operand0=0.75, reduce_op=token, reduce_res=total, dtype=nl.bfloat16
        )
    )
    tile, total = outputs(kernel, x)
    np.testing.assert_array_equal(tile, (x * np.float32(0.75)).astype(ml_dtypes.bfloat16))
    np.testing.assert_allclose(total[:, 0], reduce(x * np.float32(0.75)), rtol=2e-5, atol=1e-6)


def test_activation_reduce_is_activation_and_its_sum() -> None:
    """With scale and bias; a mask leaves elements out of the sum, and the other rows of reduce_res as they were."""
    x, bias = random(16, 8), random(16, 1, seed=1)

    def compute(total: Any, a: Any, b: Any) -> Any:
        return nisa.activation_reduce(np.exp, a, reduce_op=np.add, reduce_res=total, bias=b, scale=0.5)

    tile, total = outputs(pair(compute), x, bias)
    np.testing.assert_allclose(tile, np.exp(0.5 * x + bias), rtol=1e-5)
    np.testing.assert_allclose(total, np.exp(0.5 * x + bias).sum(axis=1, keepdims=True), rtol=1e-5)

    def masked(total: Any, a: Any, b: Any) -> Any:
        total[...] = -1.0
        i_p, i_f = nl.arange(16)[:, None], nl.arange(8)[None, :]
        result = nl.zeros((16, 8), dtype=nl.float32)
        result[...] = nisa.activation_reduce(
            nl.exp, a, reduce_op=nl.add, reduce_res=total, bias=b, mask=(i_p < 12) & (i_f < 5)
        )
        return result

    tile, total = outputs(pair(masked), x, bias)
    expected, sums = np.zeros((16, 8)), np.full((16, 1), -1.0)
    expected[:12, :5] = np.exp(x + bias)[:12, :5]
    sums[:12, 0] = expected[:12, :5].sum(axis=1)
    np.testing.assert_allclose(tile, expected, rtol=1e-5)
    np.testing.assert_allclose(total, sums, rtol=1e-5)


def test_rows_without_data_are_left_out() -> None:
    """A tile loaded in part is reduced without a mask, as long as the rows that hold nothing are not stored."""

    def kernel(a: Any) -> Any:
        result = nl.ndarray((12, 1), dtype=a.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(16)[:, None], nl.arange(8)[None, :]
        tile = nl.load(a[i_p, i_f], mask=i_p < 12)
        total = nl.ndarray((16, 1), dtype=a.dtype)
        nisa.activation_reduce(nl.square, tile, reduce_op=nl.add, reduce_res=total)
        nl.store(result, total[0:12, :])
        return result

    x = random(12, 8)
    np.testing.assert_allclose(outputs(kernel, x), np.square(x).sum(axis=1, keepdims=True), rtol=1e-5)

    def all_of_it(a: Any) -> Any:
        result = nl.ndarray((16, 1), dtype=a.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(16)[:, None], nl.arange(8)[None, :]
        tile = nl.load(a[i_p, i_f], mask=i_p < 12)
        total = nl.ndarray((16, 1), dtype=a.dtype)
        nisa.activation_reduce(nl.square, tile, reduce_op=nl.add, reduce_res=total)
        nl.store(result, total)
        return result

    assert refusal(all_of_it, x).rule == "NK401"


I_P, I_F = nl.arange(16)[:, None], nl.arange(8)[None, :]


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda t, r: nisa.tensor_tensor_scan(t, t, 0, np.add, np.add, mask=I_P >= I_F), "NK604"),
        (lambda t, r: nisa.tensor_tensor_scan(t, t[:, 0:4], 0, np.add, np.add), "NK109"),
        (lambda t, r: nisa.tensor_tensor_scan(t, 2.0, 0, np.add, np.add), "NK609"),
        (lambda t, r: nisa.tensor_tensor_scan(t, t, t, np.add, np.add), "NK109"),
        (lambda t, r: nisa.tensor_tensor_scan(t, t, 0, np.exp, np.add), "NK306"),
        (lambda t, r: nisa.scalar_tensor_tensor(data=t, op0=nl.add, operand0=1, op1=nl.invert, operand1=t), "NK306"),
        (lambda t, r: nisa.scalar_tensor_tensor(t, nl.add, 1, nl.add, t), "NK609"),
        (
            lambda t, r: nisa.tensor_scalar_reduce(
                data=t, op0=nl.add, operand0=1, reduce_op=nl.add, reduce_res=r, reverse0=True
            ),
            "NK609",
        ),
        (
            lambda t, r: nisa.tensor_scalar_reduce(
                data=t, op0=nl.add, operand0=1, reduce_op=nl.subtract, reduce_res=r, reverse0=True
            ),
            "NK609",
        ),
        (
            lambda t, r: nisa.tensor_scalar_reduce(data=t, op0=nl.add, operand0=1, reduce_op=nl.power, reduce_res=r),
            "NK306",
        ),
        (
            lambda t, r: nisa.tensor_scalar_reduce(data=t, op0=nl.add, operand0=1, reduce_op=nl.add, reduce_res=t),
            "NK109",
        ),
        (lambda t, r: nisa.activation_reduce(nl.exp, t, reduce_op=nl.max, reduce_res=r), "NK306"),
        (lambda t, r: nisa.activation_reduce(nl.exp, t, reduce_op=nl.add, reduce_res=r, mask=I_P >= I_F), "NK604"),
        (lambda t, r: nisa.activation_reduce(nl.exp, t, reduce_op=nl.add, reduce_res=None), "NK609"),
    ],
)
def test_what_is_refused(call: Any, rule: str) -> None:
    """Shapes, operators, masks and forms that are not possible are refused by rule."""
    assert refusal(stored(lambda t: call(t, nl.ndarray((16, 1), dtype=nl.float32))), random(16, 8)).rule == rule
