"""The running sum down the rows of a matrix, as a Pallas TPU kernel whose grid steps depend on each other.

A TPU core runs its grid in order, one step after the other. That makes a scan simple: each step sums within its block
of rows, adds the total of all rows above, which the step before left in VMEM, and leaves its own total there. On a
GPU, whose blocks run in any order, the same needs two passes or a chain of flags.

The promise has a name: a dimension with "arbitrary" semantics is run in order by one core. A "parallel" one may be
split among cores, so it is right for the lanes, whose sums do not meet, and would be wrong for the rows.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

BLOCK_ROWS = 256
BLOCK_LANES = 128

# The rows of a register of 4-byte elements.
SUBLANES = 8


@jax.jit
def running_sum(x: jax.Array) -> jax.Array:
    """``cumsum`` along the rows: out[i, j] is the sum of x[0..i, j].

    Args:
        x: int32 or float32 [rows, lanes]. int32 wraps around like NumPy's.

    Returns:
        The same shape and dtype.
    """
    if x.ndim != 2 or x.dtype not in (jnp.int32, jnp.float32):
        raise TypeError(f"x is {x.dtype} {x.shape}; the kernel sums int32 or float32 [rows, lanes]")
    rows, lanes = x.shape
    if rows == 0 or lanes == 0:
        return x
    block_rows = min(BLOCK_ROWS, _round_up(rows, SUBLANES))
    padded = (_round_up(rows, block_rows), _round_up(lanes, BLOCK_LANES))
    # The lanes come first: parallel dimensions must precede the others, and the rows of one column of blocks must
    # follow each other, for there is one carry.
    block = pl.BlockSpec((block_rows, BLOCK_LANES), lambda lane, row: (row, lane))
    sums = pl.pallas_call(
        _running_sum_kernel,
        out_shape=jax.ShapeDtypeStruct(padded, x.dtype),
        grid=(padded[1] // BLOCK_LANES, padded[0] // block_rows),
        in_specs=[block],
        out_specs=block,
        scratch_shapes=[pltpu.VMEM((1, BLOCK_LANES), x.dtype)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")),
    )
    return sums(jnp.pad(x, ((0, padded[0] - rows), (0, padded[1] - lanes))))[:rows, :lanes]


def _running_sum_kernel(x: jax.Ref, out: jax.Ref, carry: jax.Ref) -> None:
    """One block: its own running sum on top of the carry, whose place the last row takes."""

    @pl.when(pl.program_id(1) == 0)
    def _start() -> None:
        carry[...] = jnp.zeros(carry.shape, carry.dtype)

    out[...] = _sum_within(x[...]) + carry[...]
    carry[...] = out[-1:, :]


def _sum_within(block: jax.Array) -> jax.Array:
    """The running sum of one block, by doubling: after n additions each row holds the sum of the last 2**n rows."""
    row = jax.lax.broadcasted_iota(jnp.int32, block.shape, 0)
    shift = 1
    while shift < block.shape[0]:
        above = pltpu.roll(block, shift, axis=0)  # comes in again at the top, where there is nothing above
        block += jnp.where(row >= shift, above, jnp.zeros_like(block))
        shift *= 2
    return block


def _round_up(size: int, multiple: int) -> int:
    """The smallest multiple of ``multiple`` that is not below ``size``."""
    return -(-size // multiple) * multiple
