"""Blocked matrix products as Pallas TPU kernels: bfloat16, int8, and with bias and activation fused in.

The grid is (rows, columns, depth), and depth, the last dimension, runs fastest: all steps of one output block follow
each other, so its sum can live in a VMEM accumulator between them. The first step clears the accumulator, every step
adds one block product on the matrix unit, and the last one finishes the sum (adds the bias, applies the activation)
and writes it out, once, in the output's dtype. Without the fusion the sum would travel to HBM and back for the bias
and once more for the activation.

The sum is wider than what is multiplied: float32 for bfloat16, whose 8 bits of precision a long sum would use up, and
int32 for int8, where nothing is rounded at all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


class Blocks(NamedTuple):
    """The part of a product [rows, depth] x [depth, columns] that one grid step multiplies."""

    rows: int = 512
    depth: int = 1024
    columns: int = 1024


# Inputs and output twice (the next block is copied while this one is multiplied) and the accumulator: with the blocks
# above 10 MiB for bfloat16 and 9 MiB for int8, of the 16 MiB that a v5e kernel gets unless it asks for more.
BLOCKS = Blocks()

# A block's rows and columns are multiples of what a vector register holds: 32 rows of 1-byte and 16 of 2-byte elements
# by 128 lanes. 32 suits both.
ROW_TILE = 32
LANES = 128

ACTIVATIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "none": lambda x: x,
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "gelu": functools.partial(jax.nn.gelu, approximate=True),
}


@functools.partial(jax.jit, static_argnames=("blocks",))
def matmul(x: jax.Array, y: jax.Array, *, blocks: Blocks = BLOCKS) -> jax.Array:
    """``x @ y`` in bfloat16, summed in float32 and rounded once.

    Args:
        x: bfloat16 [M, K].
        y: bfloat16 [K, N].
        blocks: what one grid step multiplies; see `Blocks`.

    Returns:
        bfloat16 [M, N].
    """
    _check(x, y, jnp.bfloat16, blocks)
    return _product(_matmul_kernel, (x, y), blocks, accumulate=jnp.float32, out=jnp.bfloat16)


@functools.partial(jax.jit, static_argnames=("blocks",))
def matmul_int8(x: jax.Array, y: jax.Array, *, blocks: Blocks = BLOCKS) -> jax.Array:
    """``x @ y`` of int8, exact in int32 while K is below 131072: a product is at most 2^14, and 2^17 of them overflow.

    Args:
        x: int8 [M, K].
        y: int8 [K, N].
        blocks: what one grid step multiplies; see `Blocks`.

    Returns:
        int32 [M, N].
    """
    _check(x, y, jnp.int8, blocks)
    return _product(_matmul_kernel, (x, y), blocks, accumulate=jnp.int32, out=jnp.int32)


@functools.partial(jax.jit, static_argnames=("activation", "blocks"))
def linear(
    x: jax.Array, weights: jax.Array, bias: jax.Array, *, activation: str = "gelu", blocks: Blocks = BLOCKS
) -> jax.Array:
    """``activation(x @ weights + bias)`` in one kernel; all but the operands of the product is float32.

    Args:
        x: bfloat16 [M, K].
        weights: bfloat16 [K, N].
        bias: float32 [N].
        activation: "none", "relu", "silu" or "gelu" (by tanh).
        blocks: what one grid step multiplies; see `Blocks`.

    Returns:
        bfloat16 [M, N], rounded once.
    """
    _check(x, weights, jnp.bfloat16, blocks)
    if bias.shape != weights.shape[1:] or bias.dtype != jnp.float32:
        raise ValueError(f"bias is {bias.dtype} {bias.shape}; weights {weights.shape} need float32 {weights.shape[1:]}")
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation is {activation!r}; it is one of {', '.join(ACTIVATIONS)}")
    kernel = functools.partial(_linear_kernel, activation=ACTIVATIONS[activation])
    return _product(kernel, (x, weights, bias[None, :]), blocks, accumulate=jnp.float32, out=jnp.bfloat16)


def _matmul_kernel(x: jax.Ref, y: jax.Ref, out: jax.Ref, accumulator: jax.Ref, *, steps: int) -> None:
    """One step of ``steps``: add a block product; at the end write the sum."""
    _accumulate(x, y, accumulator)

    @pl.when(pl.program_id(2) == steps - 1)
    def _write() -> None:
        out[...] = accumulator[...].astype(out.dtype)


def _linear_kernel(
    x: jax.Ref,
    weights: jax.Ref,
    bias: jax.Ref,
    out: jax.Ref,
    accumulator: jax.Ref,
    *,
    steps: int,
    activation: Callable[[jax.Array], jax.Array],
) -> None:
    """One step of ``steps``: add a block product; at the end write the activated sum."""
    _accumulate(x, weights, accumulator)

    @pl.when(pl.program_id(2) == steps - 1)
    def _write() -> None:
        out[...] = activation(accumulator[...] + bias[...]).astype(out.dtype)


def _accumulate(x: jax.Ref, y: jax.Ref, accumulator: jax.Ref) -> None:
    """Add ``x @ y`` to the accumulator, which the first step of an output block finds uninitialised."""

    @pl.when(pl.program_id(2) == 0)
    def _clear() -> None:
        accumulator[...] = jnp.zeros(accumulator.shape, accumulator.dtype)

    accumulator[...] += jnp.dot(x[...], y[...], preferred_element_type=accumulator.dtype)


def _product(
    kernel: Callable[..., None], operands: tuple[jax.Array, ...], blocks: Blocks, *, accumulate: type, out: type
) -> jax.Array:
    """Run ``kernel`` over the blocks of [M, K] x [K, N]; a third operand [1, N] goes along with the columns."""
    (m, k), n = operands[0].shape, operands[1].shape[1]
    if 0 in (m, n):
        return jnp.zeros((m, n), out)
    rows = min(blocks.rows, _round_up(m, ROW_TILE))
    depth = min(blocks.depth, _round_up(max(k, 1), LANES))  # with nothing to sum up, one step of zeros does it
    columns = min(blocks.columns, _round_up(n, LANES))
    padded_m, padded_k, padded_n = _round_up(m, rows), _round_up(max(k, 1), depth), _round_up(n, columns)

    x, y, *with_columns = operands
    steps = padded_k // depth
    padded = [_pad(x, padded_m, padded_k), _pad(y, padded_k, padded_n), *(_pad(v, 1, padded_n) for v in with_columns)]
    product = pl.pallas_call(
        # Not pl.num_programs: jax 0.11 gives every later grid of a kernel, with blocks of one size, the first one's.
        functools.partial(kernel, steps=steps),
        out_shape=jax.ShapeDtypeStruct((padded_m, padded_n), out),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=0,
            grid=(padded_m // rows, padded_n // columns, steps),
            in_specs=[
                pl.BlockSpec((rows, depth), lambda row, column, step: (row, step)),
                pl.BlockSpec((depth, columns), lambda row, column, step: (step, column)),
                *[pl.BlockSpec((1, columns), lambda row, column, step: (0, column)) for _ in with_columns],
            ],
            out_specs=pl.BlockSpec((rows, columns), lambda row, column, step: (row, column)),
            scratch_shapes=[pltpu.VMEM((rows, columns), jnp.dtype(accumulate))],
        ),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )
    return product(*padded)[:m, :n]


def _check(x: jax.Array, y: jax.Array, dtype: type, blocks: Blocks) -> None:
    """Refuse what is not a product of two matrices of ``dtype``, and blocks that registers do not divide."""
    if blocks.rows % ROW_TILE or blocks.depth % LANES or blocks.columns % LANES or min(blocks) <= 0:
        raise ValueError(f"{blocks}: rows is a multiple of {ROW_TILE}, depth and columns are multiples of {LANES}")
    for name, array in (("the left operand", x), ("the right operand", y)):
        if array.ndim != 2:
            raise ValueError(f"{name} has shape {array.shape}; a matrix has two dimensions")
        if array.dtype != dtype:
            raise TypeError(f"{name} is {array.dtype}; this kernel multiplies {jnp.dtype(dtype)}")
    if x.shape[1] != y.shape[0]:
        raise ValueError(
            f"{x.shape} x {y.shape}: the left operand has {x.shape[1]} columns, the right {y.shape[0]} rows"
        )


def _pad(matrix: jax.Array, rows: int, columns: int) -> jax.Array:
    """``matrix`` with zeros below and to the right; zeros add nothing to a sum of products."""
    return jnp.pad(matrix, ((0, rows - matrix.shape[0]), (0, columns - matrix.shape[1])))


def _round_up(size: int, multiple: int) -> int:
    """The smallest multiple of ``multiple`` that is not below ``size``."""
    return -(-size // multiple) * multiple
