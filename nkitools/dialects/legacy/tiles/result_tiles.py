"""The result of a value-returning call: a new tile, written by instructions on the lanes that the mask leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

from nkitools.chip.core import Core, current_core
from nkitools.chip.dtypes import DType
from nkitools.chip.masked_out import inherit
from nkitools.chip.masked_tensor import MaskedTensor
from nkitools.chip.memory import MemoryRegion, Storage
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.indexing.masks import Box, Lanes, not_affine
from nkitools.isa.move import tensor_copy
from nkitools.issue.guards import MAX_DIMENSIONS
from nkitools.language.repeated_tiles import keep_tile, tile_again
from nkitools.record.source_sites import author_frame

# dst and the operands as the instruction gets them: views and numbers
Into: TypeAlias = Callable[..., Any]


class Tile(Protocol):
    """The interface of the dialect's tensors for these modules."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Size of each dimension."""

    @property
    def element(self) -> DType:
        """The dtype of the elements."""

    @property
    def storage(self) -> Storage:
        """The storage behind it."""

    def resolved(self) -> NkiTensor:
        """Return the view that instructions work on. Errors: NK402."""

    def within(self, shape: tuple[int, ...], box: Box) -> NkiTensor:
        """Return the part of a tile of ``shape``'s box; dimensions of size 1 broadcast."""


TileOrNumber: TypeAlias = Tile | float | np.generic
Part: TypeAlias = NkiTensor | TileOrNumber | None  # an operand of a call


def view_of(operand: Part) -> Any:
    """Return a tile's view; numbers as they are."""
    resolved = getattr(operand, "resolved", None)
    return operand if resolved is None else resolved()


def part(tensor: NkiTensor, shape: tuple[int, ...], box: Box) -> NkiTensor:
    """Return the part of ``tensor`` in a box of a tile of ``shape``; dimensions of size 1 broadcast and stay whole."""
    if len(tensor.shape) != len(shape):
        if tensor.layout.free_elements != 1 or tensor.shape[0] != shape[0]:
            not_affine(f"{describe(tensor)} has other dimensions than the tile {list(shape)} that the mask describes")
        return tensor[slice(*box[0]), ...]
    slices = [
        slice(None) if size == 1 and whole > 1 else slice(*lane)
        for size, whole, lane in zip(tensor.shape, shape, box, strict=True)
    ]
    return tensor[tuple(slices)]


def part_of(operand: Part, shape: tuple[int, ...], box: Box) -> Any:
    """Return the part of an operand; numbers as they are."""
    within = getattr(operand, "within", None)
    return operand if within is None else within(shape, box)


def write_lanes(into: Into, dst: NkiTensor | Tile, operands: tuple[Any, ...], lanes: Lanes | None) -> None:
    """Issue ``into(dst, *operands)`` on the lanes of the mask: on a box of every operand, or under a predicate.

    ``dst`` is a new tile, or one of the author's; only the lanes of the mask need to lie within it.
    """
    if lanes is None:
        views = map(view_of, operands)
        if len(dst.shape) <= MAX_DIMENSIONS:
            into(view_of(dst), *views)
        else:
            _issue(into, view_of(dst), [*views])
        return
    inherit(dst.storage, operands)
    record = current_core("nki").record
    record.masked.add(record.site())
    if lanes.empty:
        return
    parts = [part_of(operand, dst.shape, lanes.box) for operand in operands]
    target = part(dst, dst.shape, lanes.box) if isinstance(dst, NkiTensor) else dst.within(dst.shape, lanes.box)
    if lanes.where is None:
        _issue(into, target, parts)
    else:
        into(MaskedTensor.of(target, lanes.where), *parts)


def copy_tile(dst: NkiTensor | Tile, src: NkiTensor | Tile, lanes: Lanes | None) -> None:
    """Copy a tile to ``dst`` on the lanes of the mask."""
    write_lanes(_copy, dst, (src,), lanes)


def _copy(dst: NkiTensor, src: NkiTensor) -> None:
    tensor_copy(dst=dst, src=src)


def _issue(into: Into, dst: NkiTensor, operands: list[Any]) -> None:
    """Issue it once, or, as the compiler does, once for each position of dimensions that are too many for an engine."""
    extra = len(dst.shape) - MAX_DIMENSIONS
    if extra <= 0:
        into(dst, *operands)
        return
    for position in np.ndindex(dst.shape[1 : 1 + extra]):
        into(_at(dst, position), *[_at(each, position) if isinstance(each, NkiTensor) else each for each in operands])


def _at(tensor: NkiTensor, position: tuple[int, ...]) -> NkiTensor:
    """Return the tile at a position of the first free dimensions; a dimension of size 1 is the same everywhere."""
    if tensor.ndim <= MAX_DIMENSIONS:
        return tensor
    sizes = tensor.shape[1 : 1 + len(position)]
    return tensor[(slice(None), *(0 if size == 1 else at for size, at in zip(sizes, position, strict=True)), ...)]


def new_tile(shape: tuple[int, ...], dtype: DType, buffer: MemoryRegion = MemoryRegion.sbuf) -> NkiTensor:
    """Return a new tile on chip, of at least two dimensions."""
    return _tile(current_core("nki"), shape, dtype, buffer)


def _tile(core: Core, shape: tuple[int, ...], dtype: DType, buffer: MemoryRegion) -> NkiTensor:
    frame = author_frame(3)
    tile = None if frame is None else tile_again(core, frame, shape, dtype, buffer)
    if tile is None:
        tile = NkiTensor.whole(core.allocate(shape, dtype, buffer))
        if frame is not None:
            keep_tile(core, frame, tile, shape, dtype, buffer)
    return tile


def value_tile(shape: tuple[int, ...], dtype: DType, buffer: MemoryRegion = MemoryRegion.sbuf) -> NkiTensor:
    """Return a new tile on chip that the running call returns; the instruction that writes to it is left open."""
    core = current_core("nki")
    tile = _tile(core, shape, dtype, buffer)
    core.record.begin_value(tile.storage)
    return tile
