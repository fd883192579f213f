"""Indices of a tensor: integers, slices and ``nl.ds``, each resolved within its dimension and never clamped."""

from __future__ import annotations

from types import EllipsisType
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from nkitools.chip.device_numbers import DeviceNumber
from nkitools.chip.view_checks import describe, out_of_bounds, wrong
from nkitools.rules.finding import refuse, report

if TYPE_CHECKING:
    from nkitools.chip.strided_view import StridedView


class DynamicSlice:
    """``nl.ds(start, size)``: the elements start .. start+size-1; ``start`` may be a register or scalar."""

    __slots__ = ("size", "start")

    def __init__(self, start: int | DeviceNumber, size: int) -> None:
        self.start = start
        self.size = size

    def __repr__(self) -> str:
        return f"nl.ds({self.start}, {self.size})"


Index: TypeAlias = int | slice | EllipsisType | DynamicSlice | DeviceNumber  # what may stand in brackets
Key: TypeAlias = Index | tuple[Index, ...]

_BY_SLICES = (
    "Index by integers and slices, or in the legacy dialect by nl.arange(n)[:, None]; where data choose rows, by "
    "tensor.ap(..., vector_offset=index)."
)


def expanded(tensor: StridedView, items: tuple[Index, ...]) -> tuple[Any, ...]:
    """Return the indices of a key, with ``...`` replaced by as many full slices as it stands for."""
    ndim = len(tensor.shape)
    dots = [position for position, item in enumerate(items) if item is Ellipsis]
    given = len(items) - len(dots)
    if len(dots) > 1:
        refuse("NK603", f"an index of {describe(tensor)} has more than one `...`", about=(tensor,))
    if given > ndim:
        what = f"{given} indices are given for {describe(tensor)}"
        remedy = f"Give {ndim} indices, one for each dimension of {list(tensor.shape)}."
        refuse("NK603", f"{what}, which has {ndim} dimensions", about=(tensor,), remedy=remedy)
    at = dots[0] if dots else given
    return (*items[:at], *[slice(None)] * (ndim - given), *items[at + 1 :])


def without_ranges(tensor: StridedView, items: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return a key with slices in place of its ranges (NK621); None if it has no ranges.

    AWS's own example of its third front end indexes by ``nl.affine_range``. A range that begins below 0 is NK402.
    """
    ranges = [item if isinstance(item, range) else getattr(item, "range", None) for item in items]
    if not any(isinstance(each, range) for each in ranges):
        return None
    for dim, each in enumerate(ranges):
        if isinstance(each, range) and each.start < 0:
            out_of_bounds(tensor, dim, repr(each), each.start, each.stop - 1)
    message = f"{describe(tensor)} is indexed by a range; the documents have slices, and compilers have taken it"
    report("NK621", message, about=(tensor,), remedy="Write t[start:stop:step], or t[:, :] for whole dimensions.")
    pairs = zip(items, ranges, strict=True)
    return tuple(slice(each.start, each.stop, each.step) if isinstance(each, range) else item for item, each in pairs)


def _no_index(tensor: StridedView, value: Any) -> NoReturn:
    from nkitools.chip.strided_view import StridedView

    if isinstance(value, StridedView):
        message = f"{describe(value)} is no index of {describe(tensor)}"
        remedy = "An element that is known only when the kernel runs is chosen by tensor.select(dim, index)."
        refuse("NK603", message, about=(value, tensor), remedy=remedy)
    if isinstance(value, DeviceNumber):
        message = f"a register or scalar of the device is no index of {describe(tensor)}: its value is not there yet"
        remedy = (
            "If it counts a loop, write range(n), whose counter is a number. Else choose by tensor.select(dim, index), "
            "or by .ap(..., scalar_offset=index) with a size that is known."
        )
        refuse("NK603", message, about=(tensor,), remedy=remedy)
    if isinstance(value, np.ndarray):
        message = f"a NumPy array of {list(value.shape)} is no index of {describe(tensor)}"
        refuse("NK603", message, about=(tensor,), remedy=_BY_SLICES)
    refuse("NK603", f"{value!r} ({type(value).__name__}) is no index of {describe(tensor)}", about=(tensor,))


def _integer(tensor: StridedView, value: Index) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        _no_index(tensor, value)
    return int(value)


def resolve_index(tensor: StridedView, dim: int, item: Index) -> int:
    """Return an integer index as a non-negative position."""
    size = tensor.shape[dim]
    index = item if type(item) is int else _integer(tensor, item)
    if not -size <= index < size:
        position = index + size if index < 0 else index
        out_of_bounds(tensor, dim, str(index), position, position)
    return index + size if index < 0 else index


def resolve_ds(tensor: StridedView, dim: int, item: DynamicSlice) -> tuple[int, slice]:
    """Return the first position of ``nl.ds(start, size)``, and the slice that it stands for."""
    start = item.start if type(item.start) is int else _integer(tensor, item.start)
    size = item.size if type(item.size) is int else _integer(tensor, item.size)
    if size < 0:
        wrong(tensor, f"{item!r} of dimension {dim} holds no element")
    if start < 0 or start + size > tensor.shape[dim]:
        out_of_bounds(tensor, dim, repr(item), start, start + size - 1)
    return start, slice(start, start + size)


def resolve_slice(tensor: StridedView, dim: int, item: slice) -> tuple[int, slice]:
    """Return the first position of a slice, and the slice with its bounds made non-negative."""
    start, stop, step = item.start, item.stop, item.step
    size = tensor.shape[dim]
    first = 0 if start is None else start if type(start) is int else _integer(tensor, start)
    end = size if stop is None else stop if type(stop) is int else _integer(tensor, stop)
    stride = 1 if step is None else step if type(step) is int else _integer(tensor, step)
    if first < 0:
        first += size
    if end < 0:
        end += size
    if stride < 1:
        refuse("NK603", f"step {stride} of a slice of {describe(tensor)} is not positive", about=(tensor,))
    if not 0 <= first < end <= size:
        shown = f"{'' if start is None else start}:{'' if stop is None else stop}"
        if 0 <= first <= size and 0 <= end <= size:
            wrong(tensor, f"slice {shown} of dimension {dim} holds no element")
        out_of_bounds(tensor, dim, shown, first, end - 1)
    return first, slice(first, end, stride)
