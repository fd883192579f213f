"""Reductions along free dimensions: axes, shapes and masks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from nkitools.chip.argument_types import Axes
from nkitools.chip.dtypes import DType
from nkitools.chip.masked_out import inherit
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.legacy.indexing.divided import DividedAccess
from nkitools.dialects.legacy.indexing.masks import Lanes, MaskLike, lanes_of, not_affine
from nkitools.dialects.legacy.tiles.result_tiles import copy_tile, new_tile, part, value_tile
from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.engines.operators import OPERATORS
from nkitools.isa.reduce import last_axis, tensor_reduce
from nkitools.issue.guards import MAX_DIMENSIONS
from nkitools.rules.finding import refuse


def reduction_axes(what: str, x: Tensor, axis: Axes) -> tuple[int, ...]:
    """Return the axes as positions; free dimensions in any order are taken here, the partition dimension is not
    (NK112).
    """
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    ndim = len(x.shape)
    if not given or not all(isinstance(each, (int, np.integer)) and not isinstance(each, bool) for each in given):
        refuse("NK609", f"{what}: `axis` must be an integer or integers, it is {axis!r}")
    if not all(-ndim <= each < ndim for each in given):
        message = f"{what}: `axis`={axis} names a dimension that a tile of {ndim} dimensions does not have"
        refuse("NK112", message, remedy=last_axis(ndim))
    axes = tuple(sorted({int(each) % ndim for each in given}))
    if 0 in axes:
        refuse(
            "NK112",
            f"{what}: `axis`={axis} includes the partition dimension, which the Vector Engine cannot reduce",
            remedy=f"To reduce along the free dimension write axis={ndim - 1}; to reduce over partitions swap the "
            "dimensions first with nl.transpose, or multiply by a column of ones with nl.matmul.",
        )
    return axes


def reduced_shape(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """Return the shape of a reduction's result: a tile, so at least two dimensions."""
    kept = tuple(1 if dim in axes else size for dim, size in enumerate(shape) if keepdims or dim not in axes)
    return kept if len(kept) > 1 else (*kept, 1)


def reduced_lanes(
    what: str, mask: MaskLike, shape: tuple[int, ...], axes: tuple[int, ...]
) -> tuple[Lanes | None, Lanes | None]:
    """Return the lanes of the input, and those of a result in which the reduced axes have size 1."""
    lanes = lanes_of(mask, shape, what)
    if lanes is None:
        return None, None
    if lanes.where is not None:
        not_affine(f"{what}: the mask of a reduction must leave a box of the tile")
    box = tuple((0, 0 if lanes.empty else 1) if dim in axes else lane for dim, lane in enumerate(lanes.box))
    return lanes, Lanes(box)


def trailing(x: NkiTensor, axes: tuple[int, ...]) -> NkiTensor:
    """``x`` with the axes to reduce at the end, where the Vector Engine wants them."""
    order = [dim for dim in range(x.ndim) if dim not in axes] + list(axes)
    return x if order == list(range(x.ndim)) else x.permute(order)


def are_last(x: NkiTensor, axes: tuple[int, ...]) -> bool:
    """Return whether the axes are the last dimensions; a dimension of size 1 stands anywhere."""
    kept = [dim for dim, size in enumerate(x.shape) if size > 1 and dim not in axes]
    return not kept or all(axis > kept[-1] for axis in axes if x.shape[axis] > 1)


def arranged(dst: NkiTensor, x: NkiTensor, axes: tuple[int, ...]) -> tuple[NkiTensor, NkiTensor, tuple[int, ...]]:
    """Return ``dst``, which has size 1 along ``axes``, and ``x`` with the axes to reduce at the end, and these axes.

    Of more dimensions than an access pattern has, those of size 1 are left out: they need no entry in it.
    """
    last = tuple(range(x.ndim - len(axes), x.ndim))
    if axes == last and x.ndim <= MAX_DIMENSIONS:
        return dst, x, axes
    inner = [dim for dim in range(1, x.ndim) if dim not in axes]
    if x.ndim > MAX_DIMENSIONS:
        sizes = x.shape
        inner = [dim for dim in inner if sizes[dim] > 1]
        axes = tuple(dim for dim in axes if sizes[dim] > 1) or axes[-1:]
        ones = tuple(0 if dim and dim not in inner and dim not in axes else slice(None) for dim in range(x.ndim))
        places = {dim: place for place, dim in enumerate(sorted([0, *inner, *axes]))}
        dst, x = dst[ones], x[ones]
        inner, axes = [places[dim] for dim in inner], tuple(places[dim] for dim in axes)
    order = (0, *inner, *axes)
    return dst.permute(order), x.permute(order), tuple(range(x.ndim - len(axes), x.ndim))


def reduce_into(dst: NkiTensor, x: NkiTensor, axes: tuple[int, ...], operator: str) -> None:
    """``dst`` = ``x`` reduced along any free axes."""
    dst, x, axes = arranged(dst, x, axes)
    tensor_reduce(dst=dst, op=OPERATORS[operator], data=x, axis=axes)


Reduce = Callable[[NkiTensor, NkiTensor, tuple[int, ...]], None]


def reduce(
    what: str,
    into: Reduce,
    x: Tensor,
    axis: Axes,
    dtype: DType,
    mask: MaskLike,
    keepdims: bool,
    memory: MemoryRegion = MemoryRegion.sbuf,
) -> Tensor:
    """Return a new tile of ``x``, which is a tile, reduced along ``axis``, on the lanes of the mask."""
    axes = reduction_axes(what, x, axis)
    if isinstance(x.access, DividedAccess):  # its view may have an axis in several parts
        copied = new_tile(x.shape, x.element)
        copy_tile(copied, x, None)
        x = Tensor(copied)
    lanes, kept = reduced_lanes(what, mask, x.shape, axes)
    full = tuple(1 if dim in axes else size for dim, size in enumerate(x.shape))
    dst = value_tile(full, dtype, memory)
    if lanes is None:
        reduce_defined(into, dst, x.resolved(), axes)
    elif kept is not None and not lanes.empty:
        reduce_defined(into, part(dst, full, kept.box), x.within(x.shape, lanes.box), axes)
    shape = reduced_shape(x.shape, axes, keepdims)
    if shape == full:
        return Tensor.made(dst, kept)
    box = None if kept is None else tuple(lane for dim, lane in enumerate(kept.box) if dim not in axes)
    if box is not None and len(box) < len(shape):
        box = (*box, (0, 1))
    return Tensor.made(dst.reshape(shape), None if box is None else Lanes(box))


def reduce_defined(into: Reduce, dst: NkiTensor, x: NkiTensor, axes: tuple[int, ...]) -> None:
    """``into(dst, x, axes)`` without the lines along ``axes`` that hold nothing: those of ``dst`` stay undefined too.

    A tile loaded under a mask has rows without any data, and kernels reduce it without a mask as long as those rows are
    not stored (AWS's rmsnorm and layernorm examples). A line that is undefined in part is a use of unwritten elements.
    """
    missing = x.storage.unwritten(x.layout, x.byte_offset)
    if missing is None:
        into(dst, x, axes)
        return
    inherit(dst.storage, (x,))
    lines = missing.all(axis=axes, keepdims=True)
    filled = np.nonzero(~lines)
    box = tuple((int(at.min()), int(at.max()) + 1) if at.size else (0, 0) for at in filled)
    is_box = math.prod(end - first for first, end in box) == len(filled[0])
    if not lines.any() or not is_box or (missing & ~lines).any():
        into(dst, x, axes)
    elif len(filled[0]):
        lines_of = tuple((0, size) if dim in axes else box[dim] for dim, size in enumerate(x.shape))
        into(part(dst, x.shape, lines_of), part(x, x.shape, lines_of), axes)
