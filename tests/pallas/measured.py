"""Kernels whose verdicts were measured mode by mode: wrong ones with the line to report, and right ones.

The line that ends in ``# <rule>`` is the line that a check must name. ``compiled``: only the real compiler sees it.
``until``: the first JAX or libtpu that takes the kernel, where there is one; from it on a check has nothing to say.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from nkitools.pallas import libtpu

COMPILING = ("lower", "aot")
RUNNING = ("interpret", "tpu_interpret")
EVERYTHING = None

Made = tuple[Callable[..., Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """One kernel, and what a check must say of it: nothing where ``rule`` is empty."""

    name: str
    rule: str
    make: Callable[[], Made]
    modes: tuple[str, ...] | None
    compiled: bool
    chips: tuple[str, ...]
    until: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether the JAX and the libtpu of here refuse it."""
        return bool(self.rule) and not takes(self.until)

    @property
    def line(self) -> int:
        """The marked line."""
        lines, first = inspect.getsourcelines(self.make)
        return next(first + number for number, line in enumerate(lines) if line.rstrip().endswith(f"# {self.rule}"))


def takes(since: str) -> bool:
    """Whether this is a JAX or libtpu that takes what was refused before ``since``: ``jax 0.11``, ``libtpu 0.0.50``."""
    if not since:
        return False
    package, _, first = since.partition(" ")
    here = jax.__version_info__ if package == "jax" else libtpu.version()
    return tuple(here) >= tuple(int(each) for each in first.split("."))


WRONG: list[Case] = []
RIGHT: list[Case] = []


def wrong(
    rule: str,
    modes: tuple[str, ...] | None = EVERYTHING,
    *,
    compiled: bool = False,
    chips: tuple[str, ...] = ("v5e",),
    until: str = "",
) -> Callable[[Callable[[], Made]], Callable[[], Made]]:
    """A kernel that breaks ``rule``; what only the compiler sees is left to those who have it."""

    def keep(make: Callable[[], Made]) -> Callable[[], Made]:
        WRONG.append(Case(make.__name__, rule, make, modes, compiled, chips, until))
        return make

    return keep


def right(make: Callable[[], Made]) -> Callable[[], Made]:
    """A kernel that every mode accepts."""
    RIGHT.append(Case(make.__name__, "", make, EVERYTHING, False, ("v5e",)))
    return make


def ones(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


def like(x: Any) -> Any:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def copy(x: Any, o: Any) -> None:
    o[...] = x[...]


def by_rows(kernel: Any, block: tuple[int, int], **options: Any) -> Callable[[Any], Any]:
    """``kernel`` over the blocks of a matrix, row of blocks by row."""

    def call(x: Any) -> Any:
        grid = (pl.cdiv(x.shape[0], block[0]), pl.cdiv(x.shape[1], block[1]))
        spec = pl.BlockSpec(block, lambda i, j: (i, j))
        return pl.pallas_call(kernel, out_shape=like(x), grid=grid, in_specs=[spec], out_specs=spec, **options)(x)

    return call


def whole(kernel: Any, x_memory: Any = None, **options: Any) -> Callable[[Any], Any]:
    """``kernel`` over whole arrays, without a grid."""
    spec = pl.BlockSpec(memory_space=x_memory) if x_memory is not None else pl.BlockSpec()
    return lambda x: pl.pallas_call(kernel, out_shape=like(x), in_specs=[spec], **options)(x)


# --------------------------------------------------------------------------- blocks


@wrong("PL101", COMPILING)
def block_of_odd_sizes() -> Made:
    def call(x: Any) -> Any:
        spec = pl.BlockSpec((100, 60), lambda i, j: (i, j))  # PL101
        return pl.pallas_call(copy, out_shape=like(x), grid=(2, 2), in_specs=[spec], out_specs=spec)(x)

    return call, (ones((200, 120)),)


@wrong("PL101", COMPILING)
def block_of_half_the_lanes() -> Made:
    def call(x: Any) -> Any:
        spec = pl.BlockSpec((8, 64), lambda i, j: (i, j))  # PL101
        return pl.pallas_call(copy, out_shape=like(x), grid=(8, 4), in_specs=[spec], out_specs=spec)(x)

    return call, (ones((64, 256)),)


@wrong("PL101", COMPILING)
def block_of_half_a_register() -> Made:
    def call(x: Any) -> Any:
        spec = pl.BlockSpec((4, 128), lambda i: (i, 0))  # PL101
        return pl.pallas_call(copy, out_shape=like(x), grid=(16,), in_specs=[spec], out_specs=spec)(x)

    return call, (ones((64, 128)),)


@wrong("PL101", COMPILING)
def block_of_one_dimension() -> Made:
    def call(x: Any) -> Any:
        spec = pl.BlockSpec((100,), lambda i: (i,))  # PL101
        return pl.pallas_call(copy, out_shape=like(x), grid=(10,), in_specs=[spec], out_specs=spec)(x)

    return call, (ones((1000,)),)


@wrong("PL102", COMPILING, chips=("v4", "v5e", "v5p", "v6e", "tpu7x"), until="libtpu 0.0.50")
def int8_block_of_8_rows() -> Made:
    def call(x: Any) -> Any:
        spec = pl.BlockSpec((8, 128), lambda i, j: (i, j))  # PL102
        return pl.pallas_call(copy, out_shape=like(x), grid=(16, 2), in_specs=[spec], out_specs=spec)(x)

    return call, (ones((128, 256), np.int8),)


@wrong("PL102", COMPILING, until="libtpu 0.0.50")
def float8_block_of_16_rows() -> Made:
    def call(x: Any) -> Any:
        spec = pl.BlockSpec((16, 128), lambda i, j: (i, j))  # PL102
        return pl.pallas_call(copy, out_shape=like(x), grid=(8, 2), in_specs=[spec], out_specs=spec)(x)

    return call, (ones((128, 256), ml_dtypes.float8_e4m3fn),)


@wrong("PL102", COMPILING, until="libtpu 0.0.50")
def int4_block_of_32_rows() -> Made:
    def call(x: Any) -> Any:
        spec = pl.BlockSpec((32, 128), lambda i, j: (i, j))  # PL102
        return pl.pallas_call(copy, out_shape=like(x), grid=(4, 2), in_specs=[spec], out_specs=spec)(x)

    return call, (ones((128, 256), ml_dtypes.int4),)


# --------------------------------------------------------------------------- dtypes


@wrong("PL105", COMPILING)
def int8_product() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...] * x[...]  # PL105

    return by_rows(kernel, (32, 128)), (ones((64, 128), np.int8),)


@wrong("PL105", COMPILING, chips=("v4", "v5e", "v5p", "v6e", "tpu7x"))
def float16_operand() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]  # PL105

    return by_rows(kernel, (16, 128)), (ones((32, 128), np.float16),)


@wrong("PL105", COMPILING)
def int8_matmul_accumulating_int8() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.dot(x[...], x[...], preferred_element_type=jnp.int8)  # PL105

    return whole(kernel), (ones((128, 128), np.int8),)


# --------------------------------------------------------------------------- memory


@wrong("PL103", COMPILING, chips=("v4", "v5e", "v5p"))
def blocks_of_32_mib() -> Made:
    def call(x: Any) -> Any:
        spec = pl.BlockSpec((2048, 1024), lambda i: (i, 0))
        blocked = pl.pallas_call(copy, out_shape=like(x), grid=(2,), in_specs=[spec], out_specs=spec)
        return blocked(x)  # PL103

    return call, (jax.ShapeDtypeStruct((4096, 1024), jnp.float32),)


@wrong("PL103", COMPILING, chips=("v6e",))
def blocks_of_256_mib() -> Made:
    def call(x: Any) -> Any:
        spec = pl.BlockSpec((4096, 4096), lambda i: (i, 0))
        blocked = pl.pallas_call(copy, out_shape=like(x), grid=(2,), in_specs=[spec], out_specs=spec)
        return blocked(x)  # PL103

    return call, (jax.ShapeDtypeStruct((8192, 4096), jnp.float32),)


# --------------------------------------------------------------------------- operations


@wrong("PL104", COMPILING)
def sorting() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.sort(x[...], axis=1)  # PL104

    return whole(kernel), (ones((8, 128)),)


@wrong("PL104", COMPILING)
def cumulative_sum() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.cumsum(x[...], axis=1)  # PL104

    return whole(kernel), (ones((8, 128)),)


@wrong("PL104", COMPILING)
def reversal() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...][::-1]  # PL104

    return whole(kernel), (ones((8, 128)),)


@wrong("PL104", COMPILING)
def fourier_transform() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.real(jnp.fft.fft(x[...]))  # PL104

    return whole(kernel), (ones((8, 128)),)


@wrong("PL301", COMPILING)
def scalar_store_to_vector_memory() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[0, 0] = x[0, 0]  # PL301

    return whole(kernel), (ones((8, 128)),)


@wrong("PL301", COMPILING)
def vector_load_from_scalar_memory() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]  # PL301

    return whole(kernel, pltpu.SMEM), (ones((8, 128)),)


@wrong("PL301")
def load_from_hbm() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...]  # PL301

    return whole(kernel, pl.ANY), (ones((8, 128)),)


@wrong("PL301", COMPILING, compiled=True)
def lane_index_of_the_grid() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[:, pl.ds(pl.program_id(0) * 3, 128)]  # PL301

    def call(x: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((16, 128), x.dtype),
            grid=(2,),
            in_specs=[pl.BlockSpec((8, 1024), lambda i: (i, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        )(x)

    return call, (ones((16, 1024)),)


@wrong("PL301")
def captured_array() -> Made:
    table = jnp.arange(1024.0).reshape(8, 128)

    def kernel(x: Any, o: Any) -> None:  # PL301
        o[...] = x[...] + table

    return whole(kernel), (ones((8, 128)),)


@wrong("PL301")
def index_map_before_the_block_shape() -> Made:
    def call(x: Any) -> Any:
        spec = pl.BlockSpec(lambda i: (i, 0), (8, 128))  # PL301
        return pl.pallas_call(copy, out_shape=like(x), grid=(2,), in_specs=[spec], out_specs=spec)(x)

    return call, (ones((16, 128)),)


@wrong("PL302", COMPILING, until="libtpu 0.0.43")
def integer_print_without_placeholder() -> Made:
    def kernel(x: Any, o: Any) -> None:
        pl.debug_print("pid", pl.program_id(0))  # PL302
        o[...] = x[...]

    return by_rows(kernel, (8, 128)), (ones((16, 128)),)


@wrong("PL302", COMPILING, until="jax 0.11")
def float_print_with_placeholder() -> Made:
    def kernel(x: Any, o: Any) -> None:
        jax.debug.print("first {}", x[0, 0])  # PL302
        o[...] = x[...]

    return by_rows(kernel, (8, 128)), (ones((16, 128)),)


@wrong("PL302", COMPILING)
def print_with_a_format() -> Made:
    def kernel(x: Any, o: Any) -> None:
        pl.debug_print("pid {:d}", pl.program_id(0))  # PL302
        o[...] = x[...]

    return by_rows(kernel, (8, 128)), (ones((16, 128)),)


@wrong("PL302", COMPILING)
def print_of_a_short_integer() -> Made:
    def kernel(x: Any, o: Any) -> None:
        pl.debug_print("pid {}", pl.program_id(0).astype(jnp.int16))  # PL302
        o[...] = x[...]

    return by_rows(kernel, (8, 128)), (ones((16, 128)),)


# --------------------------------------------------------------------------- runs


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


# --------------------------------------------------------------------------- accepted


@right
def ragged_blocks() -> Made:
    return by_rows(copy, (128, 128)), (ones((200, 200)),)


@right
def whole_array_of_odd_sizes() -> Made:
    return whole(copy), (ones((100, 60)),)


@right
def bfloat16_block_of_8_rows() -> Made:
    return by_rows(copy, (8, 128)), (ones((32, 256), ml_dtypes.bfloat16),)


@right
def unaligned_static_slices() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.zeros_like(o)
        o[0:5, 0:100] = x[3:8, 20:120]

    return whole(kernel), (ones((8, 128)),)


@right
def integer_reduction_over_lanes() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.broadcast_to(jnp.sum(x[...], axis=1, keepdims=True), o.shape)

    return whole(kernel), (ones((8, 128), np.int32),)


@right
def transcendental_functions() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.sin(x[...]) + jax.lax.erf(x[...])

    return whole(kernel), (ones((8, 128)),)


@right
def while_loop() -> Made:
    def kernel(x: Any, o: Any) -> None:
        def more(state: Any) -> Any:
            return state[0] < 3

        def step(state: Any) -> Any:
            return state[0] + 1, state[1] * 2.0

        o[...] = jax.lax.while_loop(more, step, (0, x[...]))[1]

    return whole(kernel), (ones((8, 128)),)


@right
def reshape_through_one_dimension() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...].reshape(1024).reshape(8, 128)

    return whole(kernel), (ones((8, 128)),)


@right
def transposition_of_three_dimensions() -> Made:
    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.transpose(x[...], (2, 0, 1))

    def call(x: Any) -> Any:
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((128, 8, 128), x.dtype))(x)

    return call, (ones((8, 128, 128)),)


@right
def block_of_one_dimension_that_fits() -> Made:
    def call(x: Any) -> Any:
        spec = pl.BlockSpec((128,), lambda i: (i,))
        return pl.pallas_call(copy, out_shape=like(x), grid=(8,), in_specs=[spec], out_specs=spec)(x)

    return call, (ones((1024,)),)
