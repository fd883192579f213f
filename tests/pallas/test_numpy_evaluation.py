"""Pallas kernels evaluated by NumPy: the results are those that the kernels are written for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from nkitools.pallas.numpy_evaluation import evaluated  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.standard_normal((16, 128)).astype(np.float32)
Y = RNG.standard_normal((128, 256)).astype(np.float32)
WHOLE = RNG.integers(-50, 50, (16, 128)).astype(np.int32)
TABLE = np.array([1, 0, 1, 0], np.int32)
CASES: dict[str, tuple[Any, tuple[Any, ...], Any]] = {}


def case(right: Any, *given: Any) -> Any:
    """Add a function to the cases, with its arguments and what is right for them."""

    def added(function: Any) -> Any:
        CASES[function.__name__] = function, given, right
        return function

    return added


def like(array: Any) -> Any:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


@case(X @ Y, X, Y)
@jax.jit
def sums_of_products(x: Any, y: Any) -> Any:
    """Three dimensions, scratch memory that is cleared and read at turns."""

    def body(x: Any, y: Any, out: Any, total: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += jnp.dot(x[...], y[...], precision="highest")

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _() -> None:
            out[...] = total[...]

    blocks = [pl.BlockSpec((8, 64), lambda i, j, k: (i, k)), pl.BlockSpec((64, 128), lambda i, j, k: (k, j))]
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct((16, 256), jnp.float32),
        grid=(2, 2, 2),
        in_specs=blocks,
        out_specs=pl.BlockSpec((8, 128), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
    )(x, y)


@case(X.reshape(4, 4, 128)[TABLE].reshape(16, 128) * np.repeat(TABLE, 4)[:, None].astype(np.float32), TABLE, X)
def blocks_by_a_table(table: Any, x: Any) -> Any:
    """A prefetched table in the index map and in the body."""

    def body(table: Any, x: Any, out: Any) -> None:
        out[...] = x[...] * table[pl.program_id(0)]

    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((4, 128), lambda i, table: (table[i], 0))],
        out_specs=pl.BlockSpec((4, 128), lambda i, table: (i, 0)),
    )
    return pl.pallas_call(body, out_shape=like(x), grid_spec=grid)(table, x)


@case(2 * X[:10], X[:10])
def rows_that_end_within_a_block(x: Any) -> Any:
    def body(x: Any, out: Any) -> None:
        out[...] = x[...] + x[...]

    rows = pl.BlockSpec((4, 128), lambda i: (i, 0))
    return pl.pallas_call(body, out_shape=like(x), grid=(3,), in_specs=[rows], out_specs=rows)(x)


@case(np.cumsum(X, axis=0), X)
def loops(x: Any) -> Any:
    """A loop with a bound, one without, and dynamic slices."""

    def body(x: Any, out: Any) -> None:
        def step(row: Any, total: Any) -> Any:
            total = total + x[pl.ds(row, 1), :]
            out[pl.ds(row, 1), :] = total
            return total

        half = lax.fori_loop(0, 8, step, jnp.zeros((1, 128), jnp.float32))
        lax.while_loop(lambda state: state[0] < 16, lambda state: (state[0] + 1, step(*state)), (8, half))

    return pl.pallas_call(body, out_shape=like(x))(x)


@case((np.where(WHOLE > 3, WHOLE >> 1, np.trunc(WHOLE / 7)).astype(np.int32), WHOLE.view(np.uint32) >> 3), WHOLE)
def integers(x: Any) -> Any:
    """Quotients towards zero, and shifts of both kinds."""

    def body(x: Any, out: Any, shifted: Any) -> None:
        out[...] = jnp.where(x[...] > 3, x[...] >> 1, lax.div(x[...], jnp.int32(7)))
        shifted[...] = lax.shift_right_logical(x[...], jnp.int32(3)).astype(jnp.uint32)

    return pl.pallas_call(body, out_shape=[like(x), jax.ShapeDtypeStruct(x.shape, jnp.uint32)])(x)


@case(X.T[::-1], X)
def copies_and_parts(x: Any) -> Any:
    """A copy by DMA into scoped memory, single elements of a reference, an array turned round."""

    def body(x: Any, out: Any) -> None:
        def scoped(own: Any, arrived: Any) -> None:
            copy = pltpu.make_async_copy(x.at[pl.ds(0, 16)], own.at[1], arrived)
            copy.start()
            copy.wait()
            for row in range(16):
                out[:, row] = jnp.flip(own[1, row])

        pl.run_scoped(scoped, pltpu.VMEM((2, 16, 128), jnp.float32), pltpu.SemaphoreType.DMA)

    memory = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((128, 16), jnp.float32), in_specs=[memory])(x)


@case(X[[3, 1, 15]] / np.sqrt((X[:3] ** 2).mean(axis=1, keepdims=True) + 1), X, np.array([3, 1, 15], np.int32))
def picked_rows(x: Any, rows: Any) -> Any:
    """Rows by a list of indices, and functions of numbers."""

    def body(x: Any, rows: Any, out: Any) -> None:
        out[...] = x[...][rows[...]] * lax.rsqrt((x[:3] ** 2).mean(axis=1, keepdims=True) + 1)

    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct((3, 128), jnp.float32))(x, rows)


@case(np.roll(np.pad(X, ((0, 0), (2, 0)))[:, :128], 1, axis=1) + np.tanh(X), X)
def moved_columns(x: Any) -> Any:
    def body(x: Any, out: Any) -> None:
        padded = jnp.pad(x[...], ((0, 0), (2, 0)))[:, :128]
        out[...] = pltpu.roll(padded, 1, 1) + jnp.tanh(x[...])

    return pl.pallas_call(body, out_shape=like(x))(x)


@pytest.mark.parametrize("name", CASES)
def test_a_kernel(name: str) -> None:
    """The results are NumPy's, in the dtypes of the kernel; arguments of JAX's give the same."""
    function, given, right = CASES[name]
    for kind in (np.asarray, jnp.asarray):
        found = evaluated(function, tuple(map(kind, given)), {})
        for one, other in zip(
            *(each if isinstance(each, list | tuple) else [each] for each in (found, right)), strict=True
        ):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


def test_wide() -> None:
    """In float64 nothing is rounded, also where the kernel rounds."""

    def body(x: Any, out: Any) -> None:
        out[...] = (x[...].astype(jnp.bfloat16) * jnp.bfloat16(3)).astype(jnp.float32) / 7

    double = pl.pallas_call(body, out_shape=like(X))
    rounded, exact = (evaluated(double, (X,), {}, wide=wide) for wide in (False, True))
    assert exact.dtype == np.float64
    np.testing.assert_allclose(exact, X.astype(np.float64) * 3 / 7, rtol=1e-15)
    assert 1e-3 < np.abs(rounded / exact - 1).max() < 2**-7


def test_memory_that_was_never_written() -> None:
    """It holds no number, as in interpretation."""
    found = evaluated(pl.pallas_call(lambda x, out: None, out_shape=like(X)), (X,), {})
    assert np.isnan(found).all()


def test_what_is_not_evaluated() -> None:
    """An operation without a form in NumPy raises NotImplementedError that names it."""
    with pytest.raises(NotImplementedError, match="scatter"):
        evaluated(lambda x: x.at[x[0]].add(1), (jnp.zeros(8, jnp.int32),), {})
