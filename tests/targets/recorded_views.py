"""Further kernels of `tests.targets.recorded_claims`: views, Python, and what the chip decides otherwise than AWS."""

from __future__ import annotations

from functools import partial
from typing import Any

import nki.isa as nisa
import nki.language as nl
import numpy as np

from tests.targets.recorded_claims import (
    POSITIVE,
    REFUSED,
    RIGHT,
    SMALL,
    X,
    claim,
    hbm,
    loaded,
    made,
    noise,
    psum,
    rounds,
    same,
    sbuf,
    stored,
    total,
)

WIDE = noise(2, 12)

# --- views ---


def copied(view: Any) -> Any:
    tile = sbuf(view.shape)
    nisa.tensor_copy(dst=tile, src=view)
    return tile


def viewed(view: Any, *shape: int) -> Any:
    """Return a kernel that copies a view of a loaded tile and stores that in another shape."""
    return made(lambda tile: copied(view(tile)), lambda x: shape)


claim("every other column by ap()", RIGHT, X, to=lambda x: x[:, ::2])(
    viewed(lambda tile: tile.ap([[64, 128], [2, 32]]), 128, 32)
)
claim("every other partition by ap()", REFUSED, WIDE, by="NK109")(
    viewed(lambda tile: tile.ap([[1, 2], [1, 12]]), 2, 12)
)
claim("a reshaped tile", RIGHT, SMALL, to=lambda x: x.reshape(4, 2, 4))(
    viewed(lambda tile: tile.reshape((4, 2, 4)), 4, 2, 4)
)
claim("a permuted tile", RIGHT, SMALL, to=lambda x: x.reshape(4, 2, 4).transpose(0, 2, 1))(
    viewed(lambda tile: tile.reshape((4, 2, 4)).permute((0, 2, 1)), 4, 4, 2)
)
claim("a sum of a permuted tile", RIGHT, SMALL, to=lambda x: x.reshape(4, 2, 4).sum(1))(
    made(lambda tile: nl.sum(tile.reshape((4, 2, 4)).permute((0, 2, 1)), axis=[2]), lambda x: (4, 4))
)
claim("windows by ap() and their sums", RIGHT, noise(4, 8, 8), to=lambda x: x.reshape(4, 4, 2, 4, 2).sum((2, 4)))(
    made(lambda tile: nl.sum(tile.ap([[64, 4], [16, 4], [2, 4], [8, 2], [1, 2]]), axis=[3, 4]), lambda x: (4, 4, 4))
)


@claim("a transposing transfer", RIGHT, SMALL, to=np.transpose)
def turned_by_dma(x: Any) -> Any:
    tile = sbuf((8, 4))
    nisa.dma_transpose(dst=tile, src=loaded(x), axes=(1, 0))
    return stored(tile, (8, 4))


@claim("a transposing transfer of other axes", REFUSED, SMALL, by="NK609")
def other_axes(x: Any) -> Any:
    tile = sbuf((4, 4, 2))
    nisa.dma_transpose(dst=tile, src=loaded(x).reshape((4, 2, 4)), axes=(0, 2, 1))
    return stored(tile, (4, 4, 2))


# --- Python ---


@claim("a range as context manager", REFUSED, X)
def within_a_range(x: Any) -> Any:
    with nl.affine_range(2) as _:
        tile = loaded(x)
    return stored(tile, x.shape)


@claim("a size that does not exist", REFUSED, X)
def unknown_size(x: Any) -> Any:
    assert nl.tile_size.psum_fmax_bytes
    return stored(loaded(x), x.shape)


@claim("a result of one dimension", REFUSED, WIDE, by="NK110")
def flat_result(x: Any) -> Any:
    return nl.ndarray((4,), nl.float32, buffer=nl.sbuf)


def checked_rows(rows: int) -> int:
    if rows > 128:
        raise ValueError("too many rows")
    return rows


@claim("a raise in a function that the kernel calls", "", X, to=same, chip=REFUSED, by="NK601")
def with_a_raise(x: Any) -> Any:
    tile = sbuf((checked_rows(x.shape[0]), x.shape[1]))
    nisa.dma_copy(dst=tile, src=x)
    return stored(tile, x.shape)


@claim("a call of a nested function", "", X, to=same, chip=REFUSED, by="NK601")
def with_a_nested_function(x: Any) -> Any:
    out = hbm(x.shape)

    def half(first: int) -> None:
        tile = sbuf((64, 64))
        nisa.dma_copy(dst=tile, src=x[first : first + 64, :])
        nisa.dma_copy(dst=out[first : first + 64, :], src=tile)

    half(0)
    half(64)
    return out


# --- keepdims=False: every reduction of a tile of two dimensions leaves one ---

# name: (function, the same of NumPy, our verdict where it is not the deciding one)
DROPPING = {
    "sum": (nl.sum, np.sum, ""),
    "max": (nl.max, np.max, ""),
    "min": (nl.min, np.min, ""),
    "mean": (nl.mean, np.mean, ""),
    "prod": (nl.prod, np.prod, ""),
    "var": (nl.var, np.var, RIGHT),
}
for _name, (_function, _numpy, _ours) in DROPPING.items():
    claim(f"nl.{_name} that drops its dimension", REFUSED, WIDE, to=partial(_numpy, axis=1, keepdims=True), ours=_ours)(
        made(partial(_function, axis=1, keepdims=False), lambda x: (2, 1))
    )


# --- what AWS's simulator and the chip say otherwise ---


@claim("a reduction that starts at partition 1", RIGHT, noise(4, 64), to=total, chip=REFUSED, by="NK108")
def row_by_row(x: Any) -> Any:
    out, tile = hbm((4, 1)), loaded(x)
    for row in range(4):
        nisa.dma_copy(dst=out[row : row + 1, :], src=nl.sum(tile[row : row + 1, 0:64], axis=[1], keepdims=True))
    return out


@claim(
    "a column as operand of tensor_tensor",
    RIGHT,
    X,
    to=lambda x: x - x.mean(1, keepdims=True),
    chip=REFUSED,
    by="NK109",
)
def column_beside_a_tile(x: Any) -> Any:
    tile, result = loaded(x), sbuf(x.shape)
    nisa.tensor_tensor(dst=result, data1=tile, data2=nl.mean(tile, axis=[1], keepdims=True), op=nl.subtract)
    return stored(result, x.shape)


@claim("a tile of 256 rows used by halves", RIGHT, noise(256, 32), to=same, chip=REFUSED, by="NK101")
def tall(x: Any) -> Any:
    out, tile = hbm(x.shape), sbuf(x.shape)
    for first in (0, 128):
        nisa.dma_copy(dst=tile[first : first + 128, :], src=x[first : first + 128, :])
    for first in (0, 128):
        nisa.dma_copy(dst=out[first : first + 128, :], src=tile[first : first + 128, :])
    return out


@claim("a result in PSUM", RIGHT, X, to=same, chip=REFUSED, by="NK201")
def result_in_psum(x: Any) -> Any:
    tile = psum(x.shape)
    nisa.tensor_copy(dst=tile, src=loaded(x))
    return tile


@claim("a dst larger than the data", RIGHT, X, chip=REFUSED, by="NK109")
def larger(x: Any) -> Any:
    result = sbuf((128, 128))
    nisa.activation(dst=result, op=nl.exp, data=loaded(x))
    return stored(result, (128, 128))


claim("nl.divide as operator", RIGHT, POSITIVE, to=lambda x: x / total(x), chip=REFUSED)(
    rounds(lambda r, t: nisa.tensor_scalar(dst=r, data=t, op0=nl.divide, operand0=nl.sum(t, axis=[1], keepdims=True)))
)
claim("nl.reciprocal as operator", REFUSED, POSITIVE, to=lambda x: 1 / x)(
    rounds(lambda r, t: nisa.tensor_scalar(dst=r, data=t, op0=nl.reciprocal, operand0=0.0))
)


@claim("a sum of squares without reduce_cmd", REFUSED, X, to=lambda x: total(x * x), chip=RIGHT)
def squares(x: Any) -> Any:
    result, sums = sbuf(x.shape), sbuf((128, 1))
    nisa.activation(dst=result, op=nl.square, data=loaded(x), reduce_op=nl.add, reduce_res=sums)
    return stored(sums, (128, 1))


@claim("nl.rms_norm", "", X, X, to=lambda x, w: w * x / np.sqrt((x * x).mean(1, keepdims=True)), chip=REFUSED)
def by_rms_norm(x: Any, w: Any) -> Any:
    return stored(nl.rms_norm(loaded(x), loaded(w), axis=1, n=64), x.shape)
