"""Boxes (left, top, right, bottom) for kernels such as GIoU: crossing, nested, touching, apart, equal and empty."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from nkitools.chip.argument_types import Shape
from nkitools.chip.dtypes import DTypeLike, as_dtype
from nkitools.strategies.arrays import STREWN, Array, drawn_shape, strew

# Against the unit box: the same, a point, a line, inside of it, around it, sharing an edge, a corner, far away.
_SPECIAL = np.array(
    [
        [0, 0, 1, 1],
        [0.5, 0.5, 0.5, 0.5],
        [0, 0.25, 1, 0.25],
        [0.25, 0.25, 0.75, 0.75],
        [-1, -1, 2, 2],
        [1, 0, 2, 1],
        [1, 1, 2, 2],
        [3, 3, 4, 4],
    ]
)


def boxes(
    shape: Shape | st.SearchStrategy[Shape], dtype: DTypeLike = "float32", *, extent: float = 100.0, empty: bool = True
) -> st.SearchStrategy[Array]:
    """Draw arrays ``[*shape, 4]`` of boxes (left, top, right, bottom) with left <= right and top <= bottom, within
    -``extent`` .. 4 ``extent``.

    ``shape`` is a value or a strategy, (batch, boxes) for instance. The boxes are all equal, or random, with a few
    special ones strewn in: nested, touching, far away and, if ``empty``, without area. Coordinates are rounded to
    ``dtype``; a coarse one, or integers with a small ``extent``, can make further boxes empty. Shrinks to squares of
    that ``extent`` at the origin. ValueError for what is no dtype of NKI and for an ``extent`` that is not positive.
    """
    numpy_dtype = _checked(dtype, extent)

    @st.composite
    def drawn(draw: st.DrawFn) -> Array:
        return _drawn(draw, drawn_shape(draw, shape), extent, empty=empty).astype(numpy_dtype)

    return drawn()


def box_pairs(
    shape: Shape | st.SearchStrategy[Shape], dtype: DTypeLike = "float32", *, extent: float = 100.0, empty: bool = True
) -> st.SearchStrategy[tuple[Array, Array]]:
    """Draw pairs of arrays of boxes, both of the drawn shape; the arguments and errors are those of `boxes`.

    The arrays of a pair may have the same box at some places.
    """
    numpy_dtype = _checked(dtype, extent)

    @st.composite
    def drawn(draw: st.DrawFn) -> tuple[Array, Array]:
        sizes = drawn_shape(draw, shape)
        first, second = (_drawn(draw, sizes, extent, empty=empty) for _ in range(2))
        if first.size:
            places = draw(st.lists(st.integers(0, first.size // 4 - 1), max_size=STREWN))
            second.reshape(-1, 4)[places] = first.reshape(-1, 4)[places]
        return first.astype(numpy_dtype), second.astype(numpy_dtype)

    return drawn()


def _checked(dtype: DTypeLike, extent: float) -> np.dtype[Any]:
    """Return NumPy's dtype. ValueError for another one, and for an extent that is not positive."""
    if not extent > 0:
        raise ValueError(f"extent: must be more than 0, it is {extent}")
    return as_dtype(dtype).dtype


def _drawn(draw: st.DrawFn, shape: tuple[int, ...], extent: float, *, empty: bool) -> Array:
    has_area = (_SPECIAL[:, 2:] > _SPECIAL[:, :2]).all(axis=1)
    special = _SPECIAL if empty else _SPECIAL[has_area]
    found: Array = np.empty((*shape, 4))
    found[...] = special[0]
    if draw(st.booleans()):
        random = np.random.default_rng(draw(st.integers(0, 2**16)))
        low = random.random((*shape, 2))
        random_boxes = np.concatenate([low, low + 1 / 64 + random.random((*shape, 2))], axis=-1)
        found[...] = np.round(random_boxes * 64) / 64  # few digits, to be read
    if found.size:
        strew(draw, found, special)
    return found * extent
