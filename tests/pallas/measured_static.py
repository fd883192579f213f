"""Wrong kernels that no run is needed for: blocks, dtypes, memory and operations that a compiler refuses."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from tests.pallas.kernels import by_rows, copy, like, ones, whole
from tests.pallas.measured import COMPILING, Made, wrong

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
