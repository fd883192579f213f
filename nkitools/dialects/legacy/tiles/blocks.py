"""Block dimensions: those in front of the partition dimension, "a pure software concept" (NKI migration guide).

Each block is a tile with a storage of its own, since "physical tiles may not be alive simultaneously": the tensor
itself is only the collection of them. Its tiles are views by integer index, ``t[i, j]``, or with further indices into
the tile, ``t[i, i_p, i_f]``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NoReturn

import numpy as np

from nkitools.chip.argument_types import Shape
from nkitools.chip.dtypes import DType, DTypeLike
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.tensor_repr import named, state
from nkitools.dialects.legacy.indexing.access import out_of_bounds
from nkitools.dialects.legacy.indexing.indices import whole
from nkitools.dialects.legacy.indexing.masks import Box
from nkitools.dialects.legacy.tiles.assignment import assign
from nkitools.dialects.legacy.tiles.dtypes import element_type
from nkitools.dialects.legacy.tiles.tensor import Key, Operand, Tensor
from nkitools.rules.finding import refuse, report


class ParDim(int):
    """``nl.par_dim(size)``: this dimension is the partition dimension."""

    def __repr__(self) -> str:
        return f"nl.par_dim({int(self)})"


def par_dim(size: int) -> ParDim:
    """Return ``size`` marked as the partition dimension of a shape, as in ``(4, nl.par_dim(128), 512)``.

    It computes like an int. Dimensions in front of it are block dimensions (NK612). Errors: NK609.
    """
    number = whole(size)
    if number is None:
        refuse("NK609", f"nl.par_dim takes an integer, it is given {size!r}")
    return ParDim(number)


def block_dimensions(shape: Shape) -> int:
    """Return the number of a shape's dimensions in front of the one marked by par_dim."""
    marked = (
        [dim for dim, size in enumerate(shape) if isinstance(size, ParDim)] if isinstance(shape, (tuple, list)) else []
    )
    if len(marked) > 1:
        refuse("NK609", f"a shape has one partition dimension, {shape!r} marks {len(marked)}")
    return marked[0] if marked else 0


class BlockTensor(Tensor):
    """A tensor on chip with block dimensions: a tile for each position of those."""

    __slots__ = ("blocks", "leading")
    is_plain = False

    def __init__(self, leading: tuple[int, ...], blocks: list[NkiTensor]) -> None:
        super().__init__(blocks[0])
        self.leading = leading
        self.blocks = blocks
        self.shape = (*leading, *blocks[0].shape)

    def resolved(self) -> NkiTensor:
        """Refused: no instruction works on several tiles at once."""
        self._no_tile()

    def within(self, shape: tuple[int, ...], box: Box) -> NkiTensor:
        """Refused, as above."""
        self._no_tile()

    def _no_tile(self) -> NoReturn:
        refuse(
            "NK612",
            f"a tensor of shape {list(self.shape)} with {len(self.leading)} block dimensions is used as a tile, whose "
            "first dimension is the partition dimension (err_failed_to_infer_tile_from_local_tensor)",
            about=(self.blocks[0],),
            remedy=f"Index the block dimensions first: tensor[{', '.join('ijkl'[: len(self.leading)])}].",
            facts={"code": "err_failed_to_infer_tile_from_local_tensor"},
        )

    def __getitem__(self, key: Key) -> Tensor:
        items = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in items[: len(self.leading)] and items.index(Ellipsis) == len(items) - 1:
            items.pop()
        if not items:
            return self
        first = whole(items[0])
        if first is None:
            self._no_tile()
        size = self.leading[0]
        if not -size <= first < size:
            out_of_bounds(self.base, 0, first, first, size)
        inner = math.prod(self.leading[1:])
        start = first % size * inner
        if len(self.leading) > 1:
            rest = BlockTensor(self.leading[1:], self.blocks[start : start + inner])
            return rest[tuple(items[1:])] if items[1:] else rest
        tile = Tensor(self.blocks[start])
        return tile[tuple(items[1:])] if items[1:] else tile

    def __setitem__(self, key: Key, value: Operand) -> None:
        assign(self[key], value)

    def __repr__(self) -> str:
        blocks = " x ".join(map(str, self.leading))
        return f"<{blocks} blocks {list(self.shape)}, the first is {named(self.blocks[0])}, {state(self.blocks[0])}>"

    def view(self, dtype: DTypeLike) -> Tensor:
        """Return the same bytes of every tile as another dtype. Errors: NK109, NK301."""
        kind = element_type(dtype)
        return BlockTensor(self.leading, [each.view(kind) for each in self.blocks])


def new_blocks(
    shape: tuple[int, ...],
    count: int,
    dtype: DType,
    make: Callable[[tuple[int, ...], DType, tuple[int, ...]], NkiTensor],
) -> BlockTensor:
    """Return a tensor whose first ``count`` dimensions are block dimensions; NK612 says that they are deprecated."""
    report(
        "NK612",
        f"a tensor of shape {list(shape)} has {count} block dimensions in front of the partition dimension; they are "
        "deprecated (err_leading_dimension_of_tensor_must_be_partition)",
        facts={"code": "err_leading_dimension_of_tensor_must_be_partition"},
    )
    leading = shape[:count]
    return BlockTensor(leading, [make(shape[count:], dtype, block) for block in np.ndindex(leading)])
