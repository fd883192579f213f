"""``nisa.*``: the largest values of each partition, where values stand, and replacing them."""

from __future__ import annotations

from functools import partial
from typing import Any

from nkitools.chip.argument_types import Number
from nkitools.chip.dtypes import uint32
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.legacy.indexing.masks import Lanes, MaskLike, not_affine
from nkitools.dialects.legacy.kernels.keywords import Keyword
from nkitools.dialects.legacy.nisa.value_calls import (
    check_box,
    defined,
    first_in_row,
    new_result,
    per_partition,
    rows_of,
    taken,
    write_by,
)
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, element_type, result_type
from nkitools.dialects.legacy.tiles.elementwise import check_tile
from nkitools.dialects.legacy.tiles.result_tiles import copy_tile
from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.isa import search as _search
from nkitools.isa.search import FOUND, SEARCHED_DIMENSIONS


def max8(*, src: Tensor, mask: MaskLike = None, dtype: ResultDType = None, **kwargs: Keyword) -> Tensor:
    """Return the 8 largest values of each partition as a (partitions, 8) tile, in descending order.

    ``src``: 8 to 16384 elements per partition, in up to five dimensions. ``dtype``: of the result, by default
    ``src``'s. ``mask`` must leave a box of ``src`` (NK604), of at least 8 elements. Memory: as for nisa.activation.
    Errors: those of nkitools.isa.search.max8, NK402, NK603, NK604, NK609, NK612.
    """
    memory, lanes = taken("nisa.max8", mask, kwargs, src=src)

    def into(dst: NkiTensor, src: NkiTensor) -> None:
        _search.max8(dst=dst, src=_folded(src))

    return per_partition(into, FOUND, result_type(dtype, "nisa.max8", src), lanes, memory, src=src)


def nc_find_index8(
    *, data: Tensor, vals: Tensor, mask: MaskLike = None, dtype: ResultDType = None, **kwargs: Keyword
) -> Tensor:
    """Return the index of the first occurrence in ``data`` of each of the 8 ``vals`` of a partition.

    The result is a new (partitions, 8) tile of uint32; ``dtype`` may be uint16. Indices count the elements of a
    partition from 0; of equal ``vals`` the second gets the second occurrence, and so on. A value that is not there
    gives all ones ("undefined" in SDK 2.26). ``mask`` applies to ``data``; it must leave the first elements of
    partitions, in a box (NK604). Memory: as for nisa.activation.
    Errors: those of nkitools.isa.search.nc_find_index8, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.nc_find_index8"
    memory, lanes = taken(what, mask, kwargs, data=data, vals=vals)
    _begins_a_row(what, lanes, data)

    def into(dst: NkiTensor, data: NkiTensor, vals: NkiTensor) -> None:
        _search.nc_find_index8(dst=dst, data=_folded(data), vals=vals)

    kind = uint32 if dtype is None else element_type(dtype)
    return per_partition(into, FOUND, kind, lanes, memory, data=data, vals=vals)


def nc_match_replace8(
    *,
    data: Tensor,
    vals: Tensor,
    imm: Number,
    dst_idx: Tensor | None = None,
    mask: MaskLike = None,
    dtype: ResultDType = None,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``data`` with the first occurrence of each of its partition's 8 ``vals`` replaced by the number ``imm``.

    The result is a new tile. ``dst_idx``, a (partitions, 8) tile of uint32 or uint16, receives the indices of the
    replaced elements. Of equal ``vals`` the one in the highest column takes the first place, as NKI 0.6 describes the
    hardware (the NumPy code of SDK 2.26 has it the other way round). A value that is not there replaces nothing
    ("undefined" in SDK 2.26). Elements that ``mask`` leaves out are in the result as they were in ``data`` (the chip
    may leave them undefined); it must leave a box, with ``dst_idx`` of the first elements of partitions (NK604).
    ``dtype`` and memory of the result: as for nisa.activation.
    Errors: those of nkitools.isa.search.nc_match_replace8, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.nc_match_replace8"
    check_tile(what, "vals", vals)
    dst, lanes = new_result(what, data, dtype, mask, kwargs)
    check_box(what, lanes)
    if dst_idx is not None:
        check_tile(what, "dst_idx", dst_idx)
        _begins_a_row(what, lanes, data)
    issued = defined(lanes, data, vals)
    others = {"vals": _on_partitions(vals, issued), "dst_idx": _on_partitions(dst_idx, issued)}
    if lanes is not None and data.access is None:
        copy_tile(dst, data, None)
    write_by(partial(_search.nc_match_replace8, imm=imm, **others), dst, issued, data=data)
    return Tensor.made(dst, lanes)


def _begins_a_row(what: str, lanes: Lanes | None, data: Tensor) -> None:
    """NK604: what a mask leaves begins at the first element of a partition."""
    if first_in_row(what, lanes, data.shape):
        not_affine(f"{what}: places are counted from the first element of a partition, which the mask leaves out")


def _on_partitions(tile: Tensor | None, lanes: Lanes | None) -> Any:
    """Return the partitions of ``lanes`` of a tile that has free dimensions of its own."""
    if tile is None or lanes is None:
        return None if tile is None else tile.resolved()
    return None if lanes.empty else rows_of(tile, lanes.box[0])


def _folded(tile: NkiTensor) -> NkiTensor:
    """SDK 2.26 documents five dimensions, NKI 0.6 three: those that lie one behind the other become one."""
    dim = tile.ndim - 2
    while tile.ndim > SEARCHED_DIMENSIONS and dim > 0:
        if tile.layout.strides[dim] == tile.layout.strides[dim + 1] * tile.shape[dim + 1]:
            tile = tile.flatten_dims(dim, dim + 1)
        dim -= 1
    return tile
