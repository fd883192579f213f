"""A kernel to sweep, with mistakes for some of its cases."""

from __future__ import annotations

from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

BLOCK = 128


@nki.jit
def scaled(x: Any, factor: float = 2.0, spoil: int = 0) -> Any:
    """Return x * factor, by blocks of columns; the first element of block ``spoil`` - 1 is off by one."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for number, start in enumerate(range(0, x.shape[1], BLOCK)):
        columns = nl.ds(start, min(BLOCK, x.shape[1] - start))
        tile = nl.ndarray((x.shape[0], columns.size), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, columns])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factor)
        if number == spoil - 1:
            nisa.tensor_scalar(dst=tile[0:1, 0:1], data=tile[0:1, 0:1], op0=nl.add, operand0=1.0)
        nisa.dma_copy(dst=out[:, columns], src=tile)
    return out


def reference(x: Any, factor: float = 2.0) -> Any:
    """What is right."""
    return x * factor


def arguments(rows: int, columns: int = 8, seed: int = 0) -> tuple[Any, ...]:
    """Small whole numbers, which no dtype rounds."""
    return (np.random.default_rng(seed).integers(-8, 8, (rows, columns)).astype(np.float32),)
