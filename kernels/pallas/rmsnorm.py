"""Root-mean-square normalisation of rows, as a Pallas TPU kernel that moves its data by hand.

With a grid and block specs Pallas copies blocks between HBM and VMEM itself. Here the arrays stay in HBM (`pl.ANY`),
and the kernel starts and awaits every copy: two buffers for what comes in, two for what goes out, and a DMA semaphore
beside each. While block i is normalised in one buffer, block i + 1 arrives in the other, and block i - 1 leaves.

The rules of the game, each of which some mode of `nkitools.pallas.check` watches over: a buffer is read only after its
copy has been awaited; it is written only after the copy out of it has been awaited; every copy that was started is
awaited before the kernel ends.
"""

from __future__ import annotations

import functools
from typing import Protocol

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

BLOCK_ROWS = 64

# The rows of a register of 4-byte elements, and its lanes.
SUBLANES = 8
LANES = 128


class Copy(Protocol):
    """A copy by the DMA engine; JAX's own class of it has no public name."""

    def start(self) -> None: ...
    def wait(self) -> None: ...


@functools.partial(jax.jit, static_argnames=("epsilon",))
def rmsnorm(x: jax.Array, gain: jax.Array, *, epsilon: float = 1e-6) -> jax.Array:
    """``x / sqrt(mean(x ** 2) + epsilon) * gain``, the mean taken over each row (Zhang and Sennrich, 2019).

    Args:
        x: float32 [rows, features].
        gain: float32 [features].
        epsilon: keeps rows of zeros finite.

    Returns:
        float32 [rows, features].
    """
    if x.ndim != 2 or x.dtype != jnp.float32:
        raise TypeError(f"x is {x.dtype} {x.shape}; the kernel takes float32 [rows, features]")
    if gain.shape != x.shape[1:] or gain.dtype != jnp.float32:
        raise TypeError(f"gain is {gain.dtype} {gain.shape}; x {x.shape} needs float32 {x.shape[1:]}")
    rows, features = x.shape
    if rows == 0 or features == 0:
        return x
    block_rows = min(BLOCK_ROWS, _round_up(rows, SUBLANES))
    padded = (_round_up(rows, block_rows), _round_up(features, LANES))
    buffers = pltpu.VMEM((2, block_rows, padded[1]), jnp.float32)
    normalised = pl.pallas_call(
        functools.partial(_rmsnorm_kernel, features=features, epsilon=epsilon),
        out_shape=jax.ShapeDtypeStruct(padded, jnp.float32),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY), pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        scratch_shapes=[buffers, buffers, pltpu.SemaphoreType.DMA((2,)), pltpu.SemaphoreType.DMA((2,))],
    )
    filled = jnp.pad(x, ((0, padded[0] - rows), (0, padded[1] - features)))
    return normalised(filled, jnp.pad(gain, (0, padded[1] - features))[None, :])[:rows, :features]


def _rmsnorm_kernel(
    x: jax.Ref,
    gain: jax.Ref,
    out: jax.Ref,
    arriving: jax.Ref,
    leaving: jax.Ref,
    arrived: jax.Ref,
    left: jax.Ref,
    *,
    features: int,
    epsilon: float,
) -> None:
    """All rows, block by block; block i uses buffer and semaphore i % 2 of each pair."""
    block_rows = arriving.shape[1]
    blocks = x.shape[0] // block_rows

    def load(block: jax.Array | int) -> Copy:
        source = x.at[pl.ds(block * block_rows, block_rows)]
        return pltpu.make_async_copy(source, arriving.at[block % 2], arrived.at[block % 2])

    def store(block: jax.Array | int) -> Copy:
        target = out.at[pl.ds(block * block_rows, block_rows)]
        return pltpu.make_async_copy(leaving.at[block % 2], target, left.at[block % 2])

    load(0).start()

    @pl.loop(0, blocks)
    def _each_block(block: jax.Array) -> None:
        @pl.when(block + 1 < blocks)
        def _fetch_next() -> None:
            load(block + 1).start()

        load(block).wait()

        @pl.when(block >= 2)
        def _free_the_buffer() -> None:
            store(block - 2).wait()

        rows = arriving[block % 2]
        # The zeros that fill up the last lanes add nothing to the sum, so the mean divides by the true number.
        mean_square = jnp.sum(rows * rows, axis=-1, keepdims=True) / features
        leaving[block % 2] = rows * lax.rsqrt(mean_square + epsilon) * gain[...]
        store(block).start()

    for block in range(max(blocks - 2, 0), blocks):
        store(block).wait()


def _round_up(size: int, multiple: int) -> int:
    """The smallest multiple of ``multiple`` that is not below ``size``."""
    return -(-size // multiple) * multiple
