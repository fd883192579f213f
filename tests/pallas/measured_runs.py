"""Wrong kernels that show it when they run: elements out of bounds, races, transfers, blocks that nothing wrote."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from tests.pallas.kernels import by_rows, copy, like, ones, whole
from tests.pallas.measured import Made, wrong


@wrong("PL201")
def read_beyond_the_block() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[pl.ds((pl.program_id(0) + 1) * 8, 8), :]  # PL201

    def call(x: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=like(x),
            grid=(4,),
            in_specs=[pl.BlockSpec(x.shape, lambda i: (0, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        )(x)

    return call, (ones((32, 128)),)


@wrong("PL201")
def write_beyond_the_block() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[pl.ds((pl.program_id(0) + 1) * 8, 8), :] = x[...]  # PL201

    def call(x: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=like(x),
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
            out_specs=pl.BlockSpec(x.shape, lambda i: (0, 0)),
        )(x)[8:]

    return call, (ones((32, 128)),)


@wrong("PL201")
def index_map_past_the_end() -> Made:
    def call(x: Any) -> Any:
        return pl.pallas_call(
            copy,
            out_shape=like(x),
            grid=(2,),
            in_specs=[pl.BlockSpec((8, 128), lambda i: (i + 1, 0))],  # PL201
            out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        )(x)

    return call, (ones((16, 128)),)


@wrong("PL202")
def output_block_visited_again() -> Made:
    def call(x: Any) -> Any:
        return pl.pallas_call(
            copy,
            out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype),
            grid=(2, 2),
            in_specs=[pl.BlockSpec((8, 128), lambda i, j: (2 * i + j, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, j: (j, 0)),  # PL202
        )(x)

    return call, (ones((32, 128)),)


@wrong("PL203")
def dma_read_before_the_wait() -> Made:
    def kernel(x: Any, o: Any, buffer: Any, semaphore: Any) -> None:
        transfer = pltpu.make_async_copy(x, buffer, semaphore)
        transfer.start()
        o[...] = buffer[...]  # PL203
        transfer.wait()

    scratch = [pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA]
    return whole(kernel, pl.ANY, scratch_shapes=scratch), (ones((8, 128)),)


@wrong("PL203")
def two_cores_write_one_block() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]  # PL203

    def call(x: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
            grid=(4,),
            in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        )(x)

    return call, (ones((32, 128)),)


@wrong("PL204")
def dma_never_waited_for() -> Made:
    def kernel(x: Any, o: Any, buffer: Any, semaphore: Any) -> None:
        pltpu.make_async_copy(x, buffer, semaphore).start()  # PL204
        o[...] = jnp.zeros_like(o)

    scratch = [pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA]
    return whole(kernel, pl.ANY, scratch_shapes=scratch), (ones((8, 128)),)


@wrong("PL205")
def output_block_never_written() -> Made:
    def kernel(x: Any, o: Any) -> None:  # PL205
        @pl.when(pl.program_id(0) != 1)
        def _() -> None:
            o[...] = x[...]

    return by_rows(kernel, (8, 128)), (ones((32, 128)),)


@wrong("PL205")
def integer_output_block_never_written() -> Made:
    def kernel(x: Any, o: Any) -> None:  # PL205
        @pl.when(pl.program_id(0) != 1)
        def _() -> None:
            o[...] = x[...]

    return by_rows(kernel, (8, 128)), (ones((32, 128), np.int32),)


@wrong("PL205")
def grid_covers_half_the_output() -> Made:
    def call(x: Any) -> Any:
        spec = pl.BlockSpec((8, 128), lambda i: (i, 0))  # PL205
        half = pl.pallas_call(copy, out_shape=like(x), grid=(2,), in_specs=[spec], out_specs=spec)
        return half(x)

    return call, (ones((32, 128)),)


@wrong("PL206")
def reduction_over_a_parallel_dimension() -> Made:
    def kernel(x: Any, o: Any) -> None:
        @pl.when(pl.program_id(1) == 0)
        def _() -> None:
            o[...] = jnp.zeros_like(o)

        o[...] += x[...]  # PL206

    def call(x: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype),
            grid=(2, 2),
            in_specs=[pl.BlockSpec((8, 128), lambda i, j: (2 * i + j, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, j: (i, 0)),
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
        )(x)

    return call, (ones((32, 128)),)


@wrong("PL207")
def accumulator_never_initialised() -> Made:
    def kernel(x: Any, o: Any, total: Any) -> None:
        total[...] += x[...]  # PL207
        o[...] = total[...]

    def call(x: Any) -> Any:
        block = pl.BlockSpec((8, 128), lambda i: (i, 0))
        scratch = [pltpu.VMEM((8, 128), x.dtype)]
        shape = jax.ShapeDtypeStruct((8, 128), x.dtype)
        last = pl.BlockSpec((8, 128), lambda i: (0, 0))
        return pl.pallas_call(
            kernel, out_shape=shape, grid=(4,), in_specs=[block], out_specs=last, scratch_shapes=scratch
        )(x)

    return call, (ones((32, 128)),)


@wrong("PL207")
def integer_accumulator_never_initialised() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] += x[...]  # PL207

    def call(x: Any) -> Any:
        block = pl.BlockSpec((8, 128), lambda i: (i, 0))
        shape = jax.ShapeDtypeStruct((8, 128), x.dtype)
        last = pl.BlockSpec((8, 128), lambda i: (0, 0))
        return pl.pallas_call(kernel, out_shape=shape, grid=(4,), in_specs=[block], out_specs=last)(x)

    return call, (ones((32, 128), np.int32),)
