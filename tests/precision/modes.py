"""Runs one kernel in both precisions, and moves NumPy arrays in and out of tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from nkitools.record.run import Run

BF16 = ml_dtypes.bfloat16


def run_in(precision: str, kernel: Callable[..., Any], *arrays: Any, **kwargs: Any) -> Run:
    """A run in one precision."""
    with options.override(precision=precision):
        return nkitools.simulate(kernel, *arrays, **kwargs)


def full(kernel: Callable[..., Any], *arrays: Any, **kwargs: Any) -> Any:
    """The outputs in full precision."""
    done = run_in("full", kernel, *arrays, **kwargs)
    assert [finding for finding in done.findings if finding.severity == "error"] == []
    return done.outputs


def both(kernel: Callable[..., Any], *arrays: Any, **kwargs: Any) -> tuple[Any, Any]:
    """The outputs of the precise run and of the full one."""
    return run_in("precise", kernel, *arrays, **kwargs).outputs, full(kernel, *arrays, **kwargs)


def uniform(*shape: int, seed: int = 0) -> Any:
    """float32 numbers between -2 and 2 with digits beyond those of bfloat16."""
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


def loaded(x: Any, dtype: Any, **kwargs: Any) -> Any:
    """A tile in SBUF with the values of an HBM tensor, as ``dtype``."""
    tile = nl.ndarray(x.shape, dtype, buffer=nl.sbuf, **kwargs)
    nisa.dma_copy(dst=tile, src=x)
    return tile


def stored(tile: Any, dtype: Any = None) -> Any:
    """A result in HBM with the values of a tile in SBUF."""
    out = nl.ndarray(tile.shape, dtype or tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
