"""Basic indexing: integers, slices, ``nl.ds`` and one ``...``.

A slice is short for an index of nl.arange: one that leaves the tensor is an error (NK402) only if it is used without a
mask that excludes those positions. AWS's adaptive average pooling loads and stores its last tile so.
"""

from __future__ import annotations

from typing import Any

from nkitools.chip import indexing
from nkitools.chip.tensor import DynamicSlice, NkiTensor
from nkitools.dialects.legacy.indexing.access import Access, out_of_bounds, pattern_of
from nkitools.dialects.legacy.indexing.indices import whole
from nkitools.dialects.legacy.indexing.masks import Subscript


def element_view(tensor: NkiTensor, items: tuple[Any, ...]) -> NkiTensor | None:
    """Return the view of one element of a tile, ``t[i, j]``; None for another index tuple, or one beyond the tile."""
    if len(items) != 2 or len(tensor.shape) != 2:
        return None
    (row, column), (rows, columns) = items, tensor.shape
    is_element = row.__class__ is int and column.__class__ is int and 0 <= row < rows and 0 <= column < columns
    return tensor[items] if is_element else None


def basic_view(tensor: NkiTensor, items: tuple[Any, ...]) -> NkiTensor | Access:
    """Return the view of an index tuple, or an access if it lies partly outside. Errors: NK402, NK603."""
    dims = iter(range(len(tensor.shape)))
    is_beyond = False
    for number, item in enumerate(items):
        if item is Ellipsis:
            dims = iter(range(max(len(tensor.shape) - (len(items) - number - 1), 0), len(tensor.shape)))
            continue
        dim = next(dims, None)
        if dim is not None:
            is_beyond = _leaves(tensor, dim, item) or is_beyond
    return basic_access(tensor, indexing.expanded(tensor, items)) if is_beyond else tensor[items]


def _leaves(tensor: NkiTensor, dim: int, item: Subscript) -> bool:
    """Return whether a slice reaches beyond the end of a dimension. NK402 if it begins before it, or is no slice."""
    size = tensor.shape[dim]
    if type(item) is slice and (item.stop is None or (type(item.stop) is int and 0 <= item.stop <= size)):
        return False
    span = _span(item, size)
    if span is None or span[0] >= span[1] or 0 <= span[0] < span[1] <= size:
        return False
    first, end = span
    if first < 0 or type(tensor) is not NkiTensor or not isinstance(item, (slice, DynamicSlice)):
        out_of_bounds(tensor, dim, first, end - 1, size)
    return True


def _span(item: Any, size: int) -> tuple[int, int] | None:
    """Return the first and the end position of an item; None if they are unknown, or it is no index."""
    if isinstance(item, DynamicSlice):
        first, count = whole(item.start), whole(item.size)
        return None if first is None or count is None else (first, first + count)
    if isinstance(item, slice):
        first, end = whole(item.start or 0), whole(size if item.stop is None else item.stop)
        return None if first is None or end is None else (_from_end(first, size), _from_end(end, size))
    number = whole(item)
    return None if number is None else (_from_end(number, size), _from_end(number, size) + 1)


def _from_end(position: int, size: int) -> int:
    return position + size if -size <= position < 0 else position


def basic_access(tensor: NkiTensor, items: tuple[Any, ...]) -> Access:
    """Return the access of integers and slices, which may reach beyond the end: an axis for each that is no integer."""
    spans = [_span(item, size) or (0, size) for item, size in zip(items, tensor.shape, strict=True)]
    steps = [whole(item.step or 1) or 1 if isinstance(item, slice) else 1 for item in items]
    kept = [isinstance(item, (slice, DynamicSlice)) for item in items]
    if tensor.on_chip:
        kept[0] = True
        if sum(kept) < 2 and len(kept) > 1:
            kept[-1] = True
    axes = [dim for dim, is_kept in enumerate(kept) if is_kept]
    slopes = tuple(tuple(steps[dim] if axis == dim else 0 for axis in axes) for dim in range(len(items)))
    shape = tuple(-((spans[dim][0] - spans[dim][1]) // steps[dim]) for dim in axes)
    return Access(tensor, [first for first, _ in spans], pattern_of(slopes, shape))
