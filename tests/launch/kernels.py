"""Small kernels of the modern dialect that the tests of launching share."""

from __future__ import annotations

from typing import Any

from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl


@nki.jit
def doubled(x: Any) -> Any:
    """Twice x."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(tile := nl.load(x), tile))
    return out


@nki.jit
def scaled(x: Any, factor: float = 2.0, *, offset: float = 0.0) -> Any:
    """x times factor plus offset."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.tensor_scalar(tile, tile, nl.multiply, factor, op1=nl.add, operand1=offset)
    nl.store(out, tile)
    return out


@nki.jit
def doubled_in_place(x: Any) -> Any:
    """Twice x, written into x itself."""
    tile = nl.load(x)
    nisa.tensor_tensor(tile, tile, tile, nl.add)
    nl.store(x, tile)
    return x


@nki.jit
def halves(x: Any) -> Any:
    """Each program writes its half of the rows: 10 times its id plus x."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = nl.ds(nl.program_id(0) * 64, 64)
    tile = nl.load(x[rows, :])
    nisa.tensor_scalar(tile, tile, nl.add, 10.0 * nl.program_id(0))
    nl.store(out[rows, :], tile)
    return out


@nki.jit
def failing(x: Any) -> Any:
    """Asks for 256 partitions: NK101."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((256, 4), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(tile, 1.0)
    nl.store(out, nl.load(x))
    return out


@nki.jit
def impossible(x: Any) -> Any:
    """Adds tiles of different sizes, of which there is no result: NK109."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nisa.tensor_tensor(tile[:, 0:2], tile, tile, nl.add)
    nl.store(out, tile)
    return out
