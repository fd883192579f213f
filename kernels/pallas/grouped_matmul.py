"""An int8 matrix product whose right operand depends on the row block, as a Pallas TPU kernel with scalar prefetch.

Rows are sorted by group (the expert of a token, the adapter of a request), and each block of rows is multiplied with
its group's weights. Which group that is stands in an array, and the index map of the weights must know it before the
block is copied: a prefetched scalar lies in SMEM when the grid starts, and index maps may read it. So only the weights
that are needed travel from HBM to VMEM, and rows that follow each other with the same group do not copy theirs again.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

# The rows of one block belong to one group.
BLOCK_ROWS = 128
BLOCK_DEPTH = 512
BLOCK_COLUMNS = 512
LANES = 128


@functools.partial(jax.jit, static_argnames=("block_rows",))
def grouped_matmul_int8(
    x: jax.Array, weights: jax.Array, groups: jax.Array, *, block_rows: int = BLOCK_ROWS
) -> jax.Array:
    """Row block i of ``x`` times ``weights[groups[i]]``, exact in int32.

    Args:
        x: int8 [M, K], M a multiple of ``block_rows``, K a multiple of 128.
        weights: int8 [groups, K, N], N a multiple of 128.
        groups: int32 [M / block_rows], the group of each block of rows. A group that ``weights`` does not have is
            not detected: what it copies is undefined.
        block_rows: a multiple of 32, the rows of a register of 1-byte elements.

    Returns:
        int32 [M, N].
    """
    _check(x, weights, groups, block_rows)
    (m, k), n = x.shape, weights.shape[2]
    depth, columns = _divisor(k, BLOCK_DEPTH), _divisor(n, BLOCK_COLUMNS)
    steps = k // depth
    product = pl.pallas_call(
        # Not pl.num_programs: jax 0.11 gives every later grid of a kernel, with blocks of one size, the first one's.
        functools.partial(_grouped_kernel, steps=steps),
        out_shape=jax.ShapeDtypeStruct((m, n), jnp.int32),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(m // block_rows, n // columns, steps),
            in_specs=[
                pl.BlockSpec((block_rows, depth), lambda row, column, step, groups: (row, step)),
                pl.BlockSpec((None, depth, columns), lambda row, column, step, groups: (groups[row], step, column)),
            ],
            out_specs=pl.BlockSpec((block_rows, columns), lambda row, column, step, groups: (row, column)),
            scratch_shapes=[pltpu.VMEM((block_rows, columns), jnp.int32)],
        ),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )
    return product(groups, x, weights)


def _grouped_kernel(
    groups: jax.Ref, x: jax.Ref, weights: jax.Ref, out: jax.Ref, accumulator: jax.Ref, *, steps: int
) -> None:
    """One step of ``steps``: add a block product; the prefetched groups have done their work in the index map."""
    del groups
    step = pl.program_id(2)

    @pl.when(step == 0)
    def _clear() -> None:
        accumulator[...] = jnp.zeros(accumulator.shape, accumulator.dtype)

    accumulator[...] += jnp.dot(x[...], weights[...], preferred_element_type=jnp.int32)

    @pl.when(step == steps - 1)
    def _write() -> None:
        out[...] = accumulator[...]


def _check(x: jax.Array, weights: jax.Array, groups: jax.Array, block_rows: int) -> None:
    """Refuse operands that do not fit each other or the blocks."""
    if x.ndim != 2 or weights.ndim != 3 or x.shape[1] != weights.shape[1]:
        raise ValueError(f"x {x.shape} and weights {weights.shape}; the kernel takes [M, K] and [groups, K, N]")
    if (x.dtype, weights.dtype, groups.dtype) != (jnp.int8, jnp.int8, jnp.int32):
        raise TypeError(f"x {x.dtype}, weights {weights.dtype}, groups {groups.dtype}; wanted int8, int8, int32")
    if block_rows % 32 or block_rows <= 0:
        raise ValueError(f"block_rows is {block_rows}; blocks of int8 have a multiple of 32 rows")
    for name, size, multiple in (
        ("M", x.shape[0], block_rows),
        ("K", x.shape[1], LANES),
        ("N", weights.shape[2], LANES),
    ):
        if size == 0 or size % multiple:
            raise ValueError(f"{name} is {size}; the kernel takes multiples of {multiple}, so pad with zeros")
    if groups.shape != (x.shape[0] // block_rows,):
        blocks = x.shape[0] // block_rows
        raise ValueError(f"groups has shape {groups.shape}; {blocks} blocks of {block_rows} rows need ({blocks},)")


def _divisor(size: int, limit: int) -> int:
    """The largest multiple of 128 that divides ``size`` and is at most ``limit``."""
    return next(block for block in range(limit, 0, -LANES) if size % block == 0)
