"""The common part of value-returning instructions: the memory and dtype of the result, a mask's lanes, undefined
rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.core import current_core
from nkitools.chip.dtypes import DType
from nkitools.chip.masked_out import inherit, leave_out
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.indexing.masks import Lanes, MaskLike, lanes_of, not_affine
from nkitools.dialects.legacy.kernels.keywords import check_keywords
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, element_type, result_type
from nkitools.dialects.legacy.tiles.elementwise import check_tile
from nkitools.dialects.legacy.tiles.result_tiles import Tile, part, value_tile, view_of, write_lanes
from nkitools.dialects.legacy.tiles.tensor import Operand, Tensor
from nkitools.issue.guards import MAX_DIMENSIONS
from nkitools.language.creation import region
from nkitools.rules.finding import refuse

sbuf = MemoryRegion.sbuf


def memory_of(what: str, kwargs: dict[str, Any]) -> MemoryRegion:
    """Return the memory of ``buffer=``, which only nisa.activation documents, but public kernels also pass
    elsewhere.
    """
    memory = region(kwargs.pop("buffer", None) or sbuf)
    check_keywords(what, kwargs)
    return memory


def new_result(
    what: str, data: Tensor, dtype: ResultDType, mask: MaskLike, kwargs: dict[str, Any], *operands: Operand | None
) -> tuple[NkiTensor, Lanes | None]:
    """Return a new tile of ``data``'s shape in the memory that ``buffer=`` names, and the lanes that the mask leaves.

    Its dtype is ``dtype``, else that of ``data``, promoted with ``operands``.
    """
    memory = memory_of(what, kwargs)
    check_tile(what, "data", data)
    lanes = lanes_of(mask, data.shape, what)
    return value_tile(data.shape, result_type(dtype, what, data, *operands), memory), lanes


def write_by(call: Callable[..., Any], dst: NkiTensor | Tile, lanes: Lanes | None, **operands: Any) -> None:
    """Issue ``call(dst=dst, **operands)``, an instruction with its other arguments, on the lanes of a mask."""
    if lanes is None and len(dst.shape) <= MAX_DIMENSIONS:
        call(dst=view_of(dst), **{role: view_of(each) for role, each in operands.items()})
        return

    def into(target: NkiTensor, *parts: Any) -> None:
        call(dst=target, **dict(zip(operands, parts, strict=True)))

    write_lanes(into, dst, tuple(operands.values()), lanes)


def moved_by(
    call: Callable[..., Any], dst: NkiTensor, kept: Lanes | None, lanes: Lanes | None, **operand: Tensor
) -> None:
    """Issue ``call(dst=dst, **operand)`` on the ``lanes`` of one operand, which come to the lanes ``kept`` of ``dst``.

    Both are boxes of their tiles; None is all of them.
    """
    ((role, tile),) = operand.items()
    if lanes is None or kept is None:
        call(dst=dst, **{role: tile.resolved()})
    elif not lanes.empty:
        call(dst=part(dst, dst.shape, kept.box), **{role: tile.within(tile.shape, lanes.box)})


def spread(tile: NkiTensor, shape: tuple[int, ...]) -> NkiTensor:
    """Return a tile with its free dimensions of size 1 broadcast, if it has fewer elements than the result."""
    if tile.shape == shape or tile.size == math.prod(shape):
        return tile
    if tile.ndim != len(shape):
        if tile.layout.free_elements != 1:
            return tile
        tile = tile.reshape((tile.shape[0], *(1,) * (len(shape) - 1)))
    for dim, size in enumerate(shape):
        if dim and tile.shape[dim] == 1 < size:
            tile = tile.broadcast(dim, size)
    return tile


def check_tiles(what: str, **tiles: Any) -> None:
    """NK609: operands are tensors of this dialect."""
    for role, tile in tiles.items():
        check_tile(what, role, tile)


def checked(what: str, kwargs: dict[str, Any], **tiles: Any) -> None:
    """NK609: the keywords of a call are known, and its operands are tensors of this dialect."""
    check_keywords(what, kwargs)
    check_tiles(what, **tiles)


def taken(what: str, mask: MaskLike, kwargs: dict[str, Any], **tiles: Tensor) -> tuple[MemoryRegion, Lanes | None]:
    """Return the memory of ``buffer=``, and the lanes that a mask leaves of the first of the tiles: a box (NK604)."""
    memory = memory_of(what, kwargs)
    check_tiles(what, **tiles)
    return memory, box_lanes(what, mask, next(iter(tiles.values())).shape)


def in_place_lanes(
    what: str, dst: Tensor, mask: MaskLike, dtype: ResultDType, kwargs: dict[str, Any], **tiles: Tensor
) -> Lanes | None:
    """Check the arguments of an instruction that returns nothing, and return the elements of ``dst`` that a mask
    leaves.
    """
    checked(what, kwargs, dst=dst, **tiles)
    if dtype is not None and element_type(dtype) is not dst.element:
        message = f"{what}: `dtype` is {element_type(dtype)}, but the result goes into {describe(dst.base)}"
        refuse("NK301", message, about=(dst.base,))
    lanes = lanes_of(mask, dst.shape, what)
    if lanes is not None and not dst.storage.full:
        leave_out(dst.storage, current_core(what).record.site(), dst.tensor)
    return lanes


def box_lanes(what: str, mask: MaskLike, shape: tuple[int, ...]) -> Lanes | None:
    """Return the lanes of a mask that leaves a smaller tile: a box (NK604 for any other)."""
    lanes = lanes_of(mask, shape, what)
    check_box(what, lanes)
    return lanes


def check_box(what: str, lanes: Lanes | None) -> None:
    """NK604: the mask must leave a box, since the instruction combines elements of a partition."""
    if lanes is not None and lanes.where is not None:
        not_affine(f"{what}: the mask must leave a box of the tile")


def first_in_row(what: str, lanes: Lanes | None, shape: tuple[int, ...]) -> int:
    """Return the index in a partition of a box's first element; NK604 if the box has gaps there."""
    if lanes is None or lanes.empty:
        return 0
    first, inner = 0, 1
    cut = False  # whether an outer dimension may have more than one position left
    for size, (start, end) in reversed(list(zip(shape[1:], lanes.box[1:], strict=True))):
        if cut and end - start > 1:
            not_affine(f"{what}: the elements that the mask leaves of a partition must follow one another")
        cut = cut or (start, end) != (0, size)
        first += start * inner
        inner *= size
    return first


def defined(lanes: Lanes | None, *inputs: Any) -> Lanes | None:
    """Return the lanes without first and last partitions that are wholly undefined in some tile.

    A tile loaded under a mask has partitions without data, and kernels compute on it without a mask as long as these
    are not stored (AWS's rmsnorm and layernorm examples). The results for them stay undefined.
    """
    if lanes is not None and (lanes.empty or lanes.where is not None):
        return lanes
    bounds: tuple[int, int] | None = None
    for tile in inputs:
        if not isinstance(tile, Tensor) or tile.access is not None or tile.base.storage.full:
            continue
        missing = tile.base.unwritten()
        if missing is None:
            continue
        filled = np.flatnonzero(~missing.reshape(missing.shape[0], -1).all(axis=1))
        first, end = (int(filled[0]), int(filled[-1]) + 1) if filled.size else (0, 0)
        bounds = (first, end) if bounds is None else (max(bounds[0], first), min(bounds[1], end))
    if bounds is None:
        return lanes
    shape = inputs[0].shape
    box = tuple((0, size) for size in shape) if lanes is None else lanes.box
    return Lanes(((max(box[0][0], bounds[0]), min(box[0][1], bounds[1])), *box[1:]))


def per_partition(
    into: Callable[..., Any], columns: int, dtype: DType, lanes: Lanes | None, memory: MemoryRegion, **tiles: Tensor
) -> Tensor:
    """Return a new tile of ``columns`` elements per partition, which ``into(dst=, **tiles)`` writes.

    ``lanes``: a box of the first tile. For the result and the other tiles, whose dimensions differ, only its partitions
    count.
    """
    (role, data), *others = tiles.items()
    dst = value_tile((data.shape[0], columns), dtype, memory)
    kept = None if lanes is None else Lanes(((0, 0) if lanes.empty else lanes.box[0], (0, columns)))
    issued = defined(lanes, *tiles.values())
    if issued is None:
        into(dst=dst, **{name: tile.resolved() for name, tile in tiles.items()})
        return Tensor.made(dst, kept)
    inherit(dst.storage, tuple(tiles.values()))
    if not issued.empty:
        rows = issued.box[0]
        views = {role: data.within(data.shape, issued.box), **{name: rows_of(tile, rows) for name, tile in others}}
        into(dst=part(dst, dst.shape, (rows, (0, columns))), **views)
    return Tensor.made(dst, kept)


def rows_of(tile: Tensor, rows: tuple[int, int]) -> NkiTensor:
    """Return some partitions of a tile, whole."""
    found: NkiTensor = tile.within(tile.shape, (rows, *((0, size) for size in tile.shape[1:])))
    return found
