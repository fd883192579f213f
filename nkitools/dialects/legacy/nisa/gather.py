"""Gathers and shuffles on chip."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nkitools.chip.masked_tensor import MaskedTensor
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.indexing.indices import whole
from nkitools.dialects.legacy.indexing.masks import Lanes, MaskLike, lanes_of, not_affine
from nkitools.dialects.legacy.kernels.keywords import Keyword
from nkitools.dialects.legacy.nisa.value_calls import box_lanes, check_tiles, checked, in_place_lanes, rows_of
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, result_type
from nkitools.dialects.legacy.tiles.reshaping import converted_value
from nkitools.dialects.legacy.tiles.result_tiles import new_tile, part, value_tile
from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.isa import gather as _gather
from nkitools.isa.gather import QUADRANT, UNMODIFIED
from nkitools.isa.move import fill, tensor_copy
from nkitools.issue.instruction_guards import PARTITIONS_PER_CORE
from nkitools.rules.finding import refuse


def local_gather(
    src_buffer: Tensor,
    index: Tensor,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    *,
    mask: MaskLike = None,
) -> Tensor:
    """Return ``num_elem_per_idx`` elements of ``src_buffer`` from each index on, by one list for each 16 partitions.

    ``index``: a uint16 tile; element f of partition p of the 16 is index 16 * f + p of their list, and counts elements.
    The result is a new SBUF tile of ``src_buffer``'s dtype and the shape (partitions, *free dimensions of ``index``,
    16, num_elem_per_idx), as in AWS's example; with fewer ``num_valid_indices`` (partitions, num_valid_indices,
    num_elem_per_idx), which no document says. ``mask`` chooses partitions only (NK604).
    Errors: those of nkitools.isa.gather.local_gather, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.local_gather"
    check_tiles(what, src_buffer=src_buffer, index=index)
    lanes = _partitions(what, mask, index.shape)
    each, valid = whole(num_elem_per_idx), whole(num_valid_indices)
    if each is None or (valid is None and num_valid_indices is not None):
        refuse("NK609", f"{what}: `num_elem_per_idx` and `num_valid_indices` must be integers")
    lists = (*index.shape[1:], PARTITIONS_PER_CORE)
    free = lists if valid in (None, int(np.prod(lists))) else (valid,)
    dst = value_tile((index.shape[0], *(int(size) for size in free if size), each), src_buffer.element)
    rows = (0, index.shape[0]) if lanes is None else lanes.box[0]
    if lanes is None or not lanes.empty:
        target = part(dst, dst.shape, (rows, *((0, size) for size in dst.shape[1:])))
        _gather.local_gather(
            dst=target,
            src_buffer=rows_of(src_buffer, rows),
            index=rows_of(index, rows),
            num_elem_per_idx=each,
            num_valid_indices=valid,
        )
    kept = None if lanes is None else Lanes((rows, *((0, size) for size in dst.shape[1:])))
    return Tensor.made(dst, kept)


def _partitions(what: str, mask: MaskLike, shape: tuple[int, ...]) -> Lanes | None:
    """Return the partitions that a mask chooses; NK604 if it chooses elements inside of a partition."""
    lanes = box_lanes(what, mask, shape)
    if lanes is not None and not lanes.empty and lanes.box[1:] != tuple((0, size) for size in shape[1:]):
        not_affine(f"{what}: a mask may choose partitions, not elements of one")
    return lanes


def nc_stream_shuffle(
    src: Tensor,
    dst: Tensor,
    shuffle_mask: Sequence[int],
    *,
    dtype: ResultDType = None,
    mask: MaskLike = None,
    **kwargs: Keyword,
) -> None:
    """Copy ``src`` partition ``shuffle_mask[i]`` to ``dst`` partition i, in each quadrant of 32 partitions.

    ``shuffle_mask``: 32 integers; 255 leaves a partition of ``dst`` as it was. Elements of ``dst`` that ``mask`` leaves
    out stay as they were. ``dtype``: None or that of ``dst`` (NK301).
    Errors: those of nkitools.isa.gather.nc_stream_shuffle, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.nc_stream_shuffle"
    lanes = in_place_lanes(what, dst, mask, dtype, kwargs, src=src)
    entries = shuffle_mask
    if isinstance(shuffle_mask, (list, tuple)):
        entries = [each if (number := whole(each)) is None else number for each in shuffle_mask]
    if lanes is None:
        _gather.nc_stream_shuffle(dst=dst.resolved(), src=src.resolved(), shuffle_mask=entries)
    elif not lanes.empty:
        _shuffle_lanes(src, dst, entries, lanes)


def _shuffle_lanes(src: Tensor, dst: Tensor, entries: Sequence[int], lanes: Lanes) -> None:
    """Shuffle whole quadrants, as the instruction does, but write only the lanes of a mask."""
    (first, end), *free = lanes.box
    target = dst.within(dst.shape, ((0, end), *free))
    source = src.resolved()
    if src.shape[1:] == dst.shape[1:]:
        source = src.within(src.shape, ((0, src.shape[0]), *free))
    if first and end <= QUADRANT and isinstance(entries, list):
        entries = [UNMODIFIED if row < first else entry for row, entry in enumerate(entries)]
        first = 0
    if first or lanes.where is not None:
        where = np.zeros(target.shape, np.bool_)
        where[lanes.box[0][0] :] = True if lanes.where is None else lanes.where
        target = MaskedTensor.of(target, where)
    _gather.nc_stream_shuffle(dst=target, src=source, shuffle_mask=entries)


def gather_flattened(
    data: Tensor, indices: Tensor, *, mask: MaskLike = None, dtype: ResultDType = None, **kwargs: Keyword
) -> Tensor:
    """Return ``data[p, indices[p, i]]``, free dimensions flattened, as a new SBUF tile of the shape of ``indices``.

    ``data``, ``indices``: tiles of 2 to 4 dimensions (NK110) in SBUF; ``indices`` of uint32. An index beyond a
    partition, which "will return garbage", is NK402. ``dtype``: of the result, by default ``data``'s. ``mask`` chooses
    elements of ``indices``; those of the result that it leaves out are undefined.
    Errors: those of nkitools.isa.gather.nc_n_gather, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nl.gather_flattened"
    checked(what, kwargs, data=data, indices=indices)
    for role, tile in (("data", data), ("indices", indices)):
        if not 2 <= len(tile.shape) <= 4:
            refuse("NK110", f"{what}: `{role}` must have 2 to 4 dimensions, it is {describe(tile.base)}")
    lanes = lanes_of(mask, indices.shape, what)
    dst = value_tile(indices.shape, data.element)
    if lanes is None:
        _gather.nc_n_gather(dst=dst, data=data.resolved(), indices=indices.resolved())
    elif not lanes.empty:
        target, chosen = part(dst, dst.shape, lanes.box), indices.within(indices.shape, lanes.box)
        if lanes.where is not None:
            chosen = _zero_elsewhere(chosen, lanes.where)
            target = MaskedTensor.of(target, lanes.where)
        _gather.nc_n_gather(dst=target, data=rows_of(data, lanes.box[0]), indices=chosen)
    kind = result_type(dtype, what, data)
    return Tensor.made(dst if kind is data.element else converted_value(dst, kind), lanes)


def _zero_elsewhere(indices: NkiTensor, where: Array) -> NkiTensor:
    """Return a copy of indices with 0 where the mask does not hold: the masked ones may be out of bounds."""
    copied = new_tile(indices.shape, indices.dtype)
    fill(copied, 0)
    tensor_copy(dst=MaskedTensor.of(copied, where), src=indices)
    return copied
