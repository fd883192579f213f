"""Reductions over the iterations of a loop and over programs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, stored


@pytest.mark.parametrize(("token", "reduce"), [(np.add, np.sum), (np.maximum, np.max), (nl.minimum, np.min)])
def test_the_destination_is_an_operand(token: Any, reduce: Any) -> None:
    """``b[...] = nl.loop_reduce(x, op, [k])`` is ``b = op(b, x)``, of tiles and of parts of them."""

    def kernel(a: Any) -> tuple[Any, Any]:
        first = nl.ndarray((8, 6), dtype=a.dtype, buffer=nl.shared_hbm)
        second = nl.ndarray((8, 6), dtype=a.dtype, buffer=nl.shared_hbm)
        whole, part = nl.load(a[0]), nl.load(a[0])
        for k in nl.affine_range(3):
            tile = nl.load(a[k + 1])
            whole[...] = nl.loop_reduce(tile, op=token, loop_indices=[k], name="sum")
            part[:, 2:5] = nl.loop_reduce(tile[:, 2:5], token, k)
        nl.store(first, whole)
        nl.store(second, part)
        return first, second

    x = random(4, 8, 6)
    first, second = outputs(kernel, x)
    np.testing.assert_allclose(first, reduce(x, axis=0), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(second[:, 2:5], reduce(x, axis=0)[:, 2:5], rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(second[:, :2], x[0, :, :2])


def test_a_variable_that_is_bound_again_is_the_destination() -> None:
    """The reference's own example: ``b = nl.loop_reduce(a, ...)`` with ``b`` a tile already."""

    def kernel(a: Any) -> Any:
        result = nl.ndarray((8, 6), dtype=a.dtype, buffer=nl.shared_hbm)
        b = nl.zeros((8, 6), dtype=nl.float32, buffer=nl.sbuf)
        for k_i in nl.affine_range(4):
            b = nl.loop_reduce(nl.load(a[k_i]), op=np.add, loop_indices=[k_i], dtype=nl.float32)
        nl.store(result, b)
        return result

    x = random(4, 8, 6)
    np.testing.assert_allclose(outputs(kernel, x), x.sum(axis=0), rtol=1e-6, atol=1e-6)


def test_products_out_of_psum_are_summed_in_the_dtype_that_is_asked_for() -> None:
    """A block of a matrix product at a time, as AWS's blocked matmul does it; and under a mask."""

    def kernel(a: Any, b: Any) -> tuple[Any, Any]:
        result = nl.ndarray((16, 8), dtype=nl.bfloat16, buffer=nl.shared_hbm)
        masked = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        total = nl.zeros((16, 8), dtype=nl.bfloat16, buffer=nl.sbuf)
        some = nl.zeros((16, 8), dtype=nl.float32, buffer=nl.psum)
        for k in nl.affine_range(2):
            product = nl.zeros((16, 8), dtype=nl.float32, buffer=nl.psum)
            for j in nl.affine_range(2):
                at = 32 * (2 * k + j)
                product += nisa.nc_matmul(nl.load(a[at : at + 32, :]), nl.load(b[at : at + 32, :]))
            total[...] = nl.loop_reduce(product, op=np.add, loop_indices=[k], dtype=nl.bfloat16)
            some[...] = nl.loop_reduce(product, np.add, [k], mask=nl.arange(16)[:, None] < 5)
        nl.store(result, total)
        nl.store(masked, some)
        return result, masked

    x, y = random(128, 16), random(128, 8, seed=1)
    halves = [x[i : i + 64].T @ y[i : i + 64] for i in (0, 64)]
    narrow = halves[0].astype(ml_dtypes.bfloat16).astype(np.float32)
    result, masked = outputs(kernel, x, y)
    np.testing.assert_allclose(
        result.astype(np.float32), (narrow + halves[1]).astype(ml_dtypes.bfloat16).astype(np.float32), rtol=0.01
    )
    np.testing.assert_allclose(masked[:5], sum(halves)[:5], rtol=1e-5, atol=1e-5)
    assert not masked[5:].any()


def test_a_destination_that_was_never_written_takes_the_first_value() -> None:
    """As kernels that AWS's compiler has written rely on."""

    def kernel(a: Any) -> Any:
        result = nl.ndarray((8, 6), dtype=a.dtype, buffer=nl.shared_hbm)
        largest = nl.ndarray((8, 6), dtype=a.dtype)
        for k in nl.affine_range(4):
            largest[...] = nl.loop_reduce(nl.load(a[k]), op=np.max, loop_indices=[k])
        nl.store(result, largest)
        return result

    x = random(4, 8, 6) - 10
    np.testing.assert_array_equal(outputs(kernel, x), x.max(axis=0))


def summed(axes: Any, *, by_id: bool = False, **options: Any) -> Any:
    """A kernel whose programs load a block each, reduce over axes of the grid, and store the result."""

    def kernel(a: Any) -> Any:
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        p, q = nl.program_id(0), nl.program_id(1)
        chosen = [(p, q)[axis] for axis in axes] if by_id else axes
        total = nl.zeros((8, 6), dtype=a.dtype)
        total[...] = nl.all_reduce(nl.load(a[p, q]), program_axes=chosen, **options)
        nl.store(result[p, q], total)
        return result

    return kernel


@pytest.mark.parametrize(("axes", "over"), [((0,), 0), ([1], 1), ((0, 1), (0, 1)), ((), ())])
def test_all_reduce(axes: Any, over: Any) -> None:
    """Every program has the sum over those that differ along the axes."""
    x = random(3, 2, 8, 6)
    expected = np.broadcast_to(x.sum(axis=over, keepdims=True), x.shape)
    np.testing.assert_allclose(outputs(summed(axes, op=np.add), x, grid=(3, 2)), expected, rtol=1e-6, atol=1e-6)


def test_all_reduce_of_integers_by_program_ids_under_a_mask() -> None:
    """Exactly; what nl.program_id gives stands for its axis; the lanes left out stay as they were."""
    x = np.random.default_rng(1).integers(-(2**20), 2**20, (2, 1, 8, 6)).astype(np.int32) * 1000 + 1
    found = outputs(summed([0], op=nl.maximum, by_id=True, mask=nl.arange(8)[:, None] < 5), x, grid=(2, 1))
    expected = np.zeros_like(x)
    expected[:, :, :5] = x.max(axis=0, keepdims=True)[:, :, :5]
    np.testing.assert_array_equal(found, expected)


def test_all_reduce_of_one_program_is_a_copy() -> None:
    """Along an axis of one program, or without a grid; in another dtype where that is asked for."""

    def kernel(a: Any) -> Any:
        result = nl.ndarray((8, 6), dtype=nl.bfloat16, buffer=nl.shared_hbm)
        nl.store(result, nl.all_reduce(nl.load(a), op=np.add, program_axes=0, dtype=nl.bfloat16))
        return result

    x = random(8, 6)
    np.testing.assert_array_equal(outputs(kernel, x), x.astype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(outputs(kernel, x, grid=(1,)), x.astype(ml_dtypes.bfloat16))


def test_programs_that_reduce_something_else_wait_in_vain() -> None:
    """One program never comes: NK504 says who waits where."""

    def kernel(a: Any) -> Any:
        result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        p, tile = nl.program_id(0), nl.load(a[nl.program_id(0)])
        if p == 0:
            tile = nl.all_reduce(tile, op=np.add, program_axes=0)
        nl.store(result[p], tile)
        return result

    finding = refusal(kernel, random(2, 8, 6), grid=(2,))
    assert finding.rule == "NK504"
    assert "waits in nl.all_reduce" in finding.message


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda t: nl.loop_reduce(t, np.exp, [0]), "NK306"),
        (lambda t: nl.loop_reduce(t, np.add, []), "NK609"),
        (lambda t: nl.loop_reduce(t, np.add, ["k"]), "NK609"),
        (lambda t: nl.loop_reduce(3.0, np.add, [0]), "NK609"),
        (lambda t: t.__setitem__(..., nl.loop_reduce(t[:, 0:3], np.add, [0])), "NK109"),
        (lambda t: nl.all_reduce(t, np.exp, 0), "NK306"),
        (lambda t: nl.all_reduce(t, np.add, -1), "NK609"),
        (lambda t: nl.all_reduce(t, np.add, 0, asynchronous="yes"), "NK609"),
        (lambda t: nl.all_reduce(t, np.add, 0, asynchronous=True), "NK607"),
    ],
)
def test_what_is_refused(call: Any, rule: str) -> None:
    """Operators, counters, axes and shapes that are not possible are refused by rule."""
    assert refusal(stored(call), random(8, 6)).rule == rule


def test_programs_reduce_tiles_on_chip_only() -> None:
    """A tensor in HBM is refused, of several programs as of one."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((2, 8, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(result[nl.program_id(0)], nl.all_reduce(x, np.add, 0))
        return result

    assert refusal(kernel, random(8, 6), grid=(2,)).rule == "NK201"
