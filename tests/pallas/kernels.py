"""Small Pallas kernels for the tests of the Pallas room; none of them mentions interpretation."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.experimental import pallas as pl


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


def ramp(rows: int = 16) -> Any:
    """float32 [rows, 128], every element its own index."""
    return np.arange(rows * 128, dtype=np.float32).reshape(rows, 128)
