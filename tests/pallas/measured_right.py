"""Right kernels that a check could take for wrong ones."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax.experimental import pallas as pl

from tests.pallas.kernels import by_rows, copy, like, ones, whole
from tests.pallas.measured import Made, right


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
