"""Arrays that share memory, wholly or in part, changed so that the results share theirs in the same way.

The memory that overlapping arrays span is changed as one piece; each array becomes the same view of the new piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided

from nkitools.chip.numerics import Array
from nkitools.launch.frameworks import NUMPY, framework_of

_ALIGNMENT = 64  # bytes; a piece lies as its original does, as an unaligned array is another case to a kernel


@dataclass(frozen=True, eq=False)
class Sharer:
    """An array in the host's memory: the author's object, its elements as NumPy sees them, and its range of bytes."""

    own: Any
    array: Array
    low: int
    high: int


def sharing(values: Iterable[Any]) -> list[list[Sharer]]:
    """Return the groups of arrays whose ranges of bytes overlap; an array that overlaps no other is left out."""
    known = {id(each): _sharer(each) for each in values}
    groups: list[list[Sharer]] = []
    end = 0
    for each in sorted((each for each in known.values() if each is not None), key=lambda each: each.low):
        if groups and each.low < end:
            groups[-1].append(each)
            end = max(end, each.high)
        else:
            groups.append([each])
            end = each.high
    return [group for group in groups if len(group) > 1]


def changed_together(group: list[Sharer], change: Callable[[Array], Array]) -> dict[int, Any] | None:
    """Return the changed arrays of a group by the ids of the author's objects.

    ``change`` gets the elements that the group spans, as an array of one dimension. None if the arrays differ in
    dtype, or do not lie on one grid of elements, so that no single array of changed elements can have them all.
    """
    low, high = group[0].low, max(each.high for each in group)
    dtypes = {each.array.dtype for each in group}
    size = group[0].array.itemsize
    steps = [each.low - low for each in group] + [stride for each in group for stride in each.array.strides]
    if len(dtypes) > 1 or any(step % size for step in [*steps, high - low]):
        return None
    piece = change(_span(group, low, high).view(group[0].array.dtype))
    scaled = piece.itemsize / size
    return {id(each.own): _view(each, piece, int((_first(each) - low) * scaled), piece.dtype, scaled) for each in group}


def copied_together(group: list[Sharer]) -> dict[int, Any]:
    """Return copies of the arrays of a group by the ids of the author's objects."""
    low, high = group[0].low, max(each.high for each in group)
    room = np.empty(high - low + _ALIGNMENT, np.uint8)
    start = (low - room.ctypes.data) % _ALIGNMENT
    room[start : start + high - low] = _span(group, low, high)
    return {id(each.own): _view(each, room, start + _first(each) - low, each.array.dtype) for each in group}


def _sharer(value: Any) -> Sharer | None:
    """Return an array whose memory another one may share; None for others, which are copied by themselves."""
    framework = framework_of(value)
    if framework is NUMPY:
        array = value if type(value) in (np.ndarray, np.memmap) and not value.dtype.hasobject else None
    else:
        array = framework.to_numpy("x", value) if framework and framework.name == "torch" and _is_plain(value) else None
    if array is None or not array.size:
        return None
    low, high = byte_bounds(array)
    return Sharer(value, np.asarray(array), low, high)


def _is_plain(tensor: Any) -> bool:
    """Return whether a torch tensor's elements lie in the host's memory as they are, in a dtype that NumPy has."""
    import torch

    if tensor.device.type != "cpu" or tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
        return False
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and not tensor.is_quantized and tensor.dtype in _dtypes()


def _dtypes() -> frozenset[Any]:
    """Return torch's dtypes whose elements `Framework.to_numpy` shows."""
    import torch

    plain = "bool uint8 int8 int16 int32 int64 float16 float32 float64 bfloat16 float8_e4m3fn float8_e5m2"
    return frozenset(getattr(torch, name) for name in plain.split() if hasattr(torch, name))


def _span(group: list[Sharer], low: int, high: int) -> Array:
    """Return the bytes from ``low`` to ``high``, which lie in the memory of the group."""
    room = np.empty(high - low, np.uint8)
    for each in group:  # one overlaps the next, so that together they cover the range
        mine = as_strided(_lowest(each.array), (each.high - each.low,), (1,), writeable=False)
        room[each.low - low : each.high - low] = mine
    return room


def _lowest(array: Array) -> Array:
    """Return the byte of an array that lies first in memory, as an array of one."""
    corner = array[(..., *(slice(-1, None) if stride < 0 else slice(0, 1) for stride in array.strides))]
    return np.asarray(corner).reshape(1).view(np.uint8)[:1]


def _first(each: Sharer) -> int:
    return int(each.array.__array_interface__["data"][0])


def _view(each: Sharer, room: Array, offset: int, dtype: np.dtype[Any], scaled: float = 1) -> Any:
    """Return the view of ``room`` that lies there as the array lies in its own memory."""
    strides = tuple(int(stride * scaled) for stride in each.array.strides)
    if isinstance(each.own, np.ndarray):
        view: Array = np.ndarray(each.array.shape, dtype, room.view(np.uint8).data, offset, strides)
        view.flags.writeable = each.own.flags.writeable
        return view
    import torch

    kind = each.own.dtype if dtype == each.array.dtype else torch.float64
    storage = torch.from_numpy(room.view(np.uint8)).untyped_storage()
    places = offset // dtype.itemsize, each.own.shape, tuple(stride // dtype.itemsize for stride in strides)
    return torch.empty(0, dtype=kind).set_(storage, *places)
