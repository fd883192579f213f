"""Small Pallas kernels for the tests of the Pallas room; none of them mentions interpretation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu


def double_block(x: Any, out: Any) -> None:
    out[...] = x[...] * 2


def double(x: Any) -> Any:
    """Doubles float32 [8 n, 128], a block of 8 rows at a time."""
    return in_blocks(double_block, x)


def in_blocks(kernel: Any, x: Any, **options: Any) -> Any:
    """``kernel`` over blocks of 8 rows."""
    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    call = pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(x.shape[0] // 8,),
        in_specs=[block],
        out_specs=block,
        **options,
    )
    return call(x)


def mesh_of_cores(axis: str, cores: int) -> Any:
    """The TensorCores of a TPU, as one axis."""
    if hasattr(pltpu, "TensorCoreMesh"):
        return pltpu.TensorCoreMesh(axis_name=axis, num_cores=cores)
    return pltpu.create_tensorcore_mesh(axis, num_cores=cores)  # before 0.11, and deprecated since


def kernel_over(mesh: Any, out: Any, *scratch: Any) -> Any:
    """``pl.kernel``."""
    return pl.kernel(mesh=mesh, out_type=out, scratch_types=scratch)


def on_cores(mesh: Any) -> Any:
    """``pl.core_map(mesh)``, which newer JAX has in favour of ``pl.kernel``, and kernels all the same."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        return pl.core_map(mesh)


def ramp(rows: int = 16) -> Any:
    """float32 [rows, 128], every element its own index."""
    return np.arange(rows * 128, dtype=np.float32).reshape(rows, 128)


def forgetful(x: Any) -> Any:
    """Leaves out the second block of its output."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        @pl.when(pl.program_id(0) != 1)
        def _() -> None:
            out_ref[...] = x_ref[...]

    return in_blocks(kernel, x)


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
