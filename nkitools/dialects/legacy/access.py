"""What an index tuple addresses: an affine access of a tensor is a strided view on its storage, without a copy."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.chip.tensor import DynamicSlice, NkiTensor
from nkitools.chip.views import describe
from nkitools.dialects.legacy.indices import Box, Index, NonAffine, whole
from nkitools.rules.finding import KernelError, refuse

_MASK = "Pass a mask that leaves out the positions beyond the end, or let the last tile be smaller."
_CODE = " (err_tensor_access_out_of_bound)"


def out_of_bounds(tensor: NkiTensor, dim: int, low: int, high: int, size: int) -> NoReturn:
    """Refuse an access beyond a tensor (NK402), in the words that AWS documents."""
    name = f"`{tensor.name}` " if tensor.name else f"\x00{tensor.storage.id}\x00"
    text = (
        f"Out-of-bound access for tensor {name}on dimension {dim}: "
        f"index range [{low}, {high}] exceed dimension size of {size}"
    )
    bare_index_error(tensor, text)


def bare_index_error(tensor: NkiTensor, text: str) -> NoReturn:
    """NK402 as an IndexError of exactly that text, since AWS's own tests compare both; the finding travels with it."""
    try:
        refuse("NK402", f"{text}{_CODE}", about=(tensor,), remedy=_MASK)
    except KernelError as error:
        finding = error.finding
    bare = IndexError(finding.message.removesuffix(_CODE))
    bare.finding = finding  # type: ignore[attr-defined]
    bare.add_note(f"{finding.rule} {finding.slug} at {finding.file}:{finding.line}. {finding.remedy}")
    raise bare


class Access:
    """A tensor under affine indices: for each of its dimensions a constant, and slopes along the axes of the tile."""

    __slots__ = ("constants", "shape", "slopes", "tensor")

    def __init__(
        self, tensor: NkiTensor, constants: tuple[int, ...], slopes: tuple[tuple[int, ...], ...], shape: tuple[int, ...]
    ) -> None:
        self.tensor = tensor
        self.constants = constants
        self.slopes = slopes
        self.shape = shape

    def whole(self) -> Box:
        """All lanes of the tile."""
        return tuple((0, size) for size in self.shape)

    def violation(self, box: Box) -> tuple[int, int, int, int] | None:
        """The first dimension that a box leaves, the range of its indices, and its size."""
        for dim, (constant, slopes) in enumerate(zip(self.constants, self.slopes, strict=True)):
            low, high = Index(constant, slopes, self.shape).bounds(box)
            if low < 0 or high >= self.tensor.shape[dim]:
                return dim, low, high, self.tensor.shape[dim]
        return None

    def view(self, box: Box | None = None) -> NkiTensor:
        """The tile (or a box of it) as a view of the tensor. Errors: NK402."""
        lanes = self.whole() if box is None else box
        found = self.violation(lanes)
        if found is not None:
            out_of_bounds(self.tensor, *found)
        return self.inside(lanes)

    def inside(self, lanes: Box) -> NkiTensor:
        """The view of a box that is known to lie within the tensor."""
        firsts = [
            constant + sum(slope * lane[0] for slope, lane in zip(slopes, lanes, strict=True))
            for constant, slopes in zip(self.constants, self.slopes, strict=True)
        ]
        array = self._sliced(firsts, lanes)
        if array is None:
            array = self._strided(firsts, lanes)
        steps = zip(firsts, self.tensor.array.strides, strict=True)
        return self.tensor._view(array, self.tensor.byte_offset + sum(first * stride for first, stride in steps))

    def _sliced(self, firsts: list[int], box: Box) -> Array | None:
        """By NumPy slices, where each dimension is one axis of the tile, in order: the common case, and fast."""
        if len(self.shape) != len(firsts):
            return None
        key = []
        for dim, (first, lane, slopes) in enumerate(zip(firsts, box, self.slopes, strict=True)):
            slope = slopes[dim]
            if any(slopes[:dim]) or any(slopes[dim + 1 :]) or slope < 0 or (slope == 0 and self.shape[dim] > 1):
                return None
            key.append(slice(first, first + (lane[1] - lane[0] - 1) * slope + 1, slope or 1))
        return self.tensor.array[tuple(key)]

    def _strided(self, firsts: list[int], box: Box) -> Array:
        array = self.tensor.array
        strides = tuple(
            sum(slopes[axis] * stride for slopes, stride in zip(self.slopes, array.strides, strict=True))
            for axis in range(len(box))
        )
        origin = array[tuple(slice(first, first + 1) for first in firsts)]
        return np.lib.stride_tricks.as_strided(origin, tuple(end - first for first, end in box), strides)


# --- from an index tuple to an access --------------------------------------------------------------------------------


def is_advanced(item: Any) -> bool:
    """Whether an index tuple that holds ``item`` is an advanced one."""
    return isinstance(item, (Index, NonAffine))


def access_of(tensor: NkiTensor, items: tuple[Any, ...]) -> Access:
    """The access of an advanced index tuple: indices and integers, one for each dimension. Errors: NK111, NK603."""
    ndim = max((item.ndim for item in items if isinstance(item, Index)), default=0)
    _check_form(tensor, items, ndim)
    constants, slopes, shapes = [], [], []
    for item, size in zip(items, tensor.shape, strict=True):
        if isinstance(item, NonAffine):
            item.refuse()
        if isinstance(item, Index):
            constants.append(item.constant)
            slopes.append((0,) * (ndim - item.ndim) + item.coefficients)
            shapes.append(item.shape)
        else:
            position = _position(tensor, item)
            constants.append(position + size if position < 0 else position)
            slopes.append((0,) * ndim)
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        sizes = ", ".join(str(list(each)) for each in shapes)
        refuse(
            "NK603", f"the indices of {describe(tensor)} have shapes {sizes}, which do not broadcast", about=(tensor,)
        )
    if tensor.on_chip:
        _check_partition(tensor, slopes, shape)
    return Access(tensor, tuple(constants), tuple(slopes), shape)


def _position(tensor: NkiTensor, item: Any) -> int:
    """An integer of an advanced index tuple; what does not mix with indices is refused."""
    number = whole(item)
    if number is None:
        _no_position(tensor, item)
    return number


def _no_position(tensor: NkiTensor, item: Any) -> NoReturn:
    if isinstance(item, (slice, DynamicSlice)) or item is Ellipsis or item is None:
        refuse(
            "NK603",
            f"an index tuple of {describe(tensor)} mixes slices with indices made of nl.arange or nl.mgrid "
            "(err_unsupported_mixing_basic_advanced_tensor_indexing)",
            about=(tensor,),
            remedy="Write every dimension as a slice, or every dimension as an index: nl.arange(n)[None, :] for `:`.",
        )
    refuse("NK603", f"{item!r} ({type(item).__name__}) is no index of {describe(tensor)}", about=(tensor,))


def _check_form(tensor: NkiTensor, items: tuple[Any, ...], ndim: int) -> None:
    for item in items:
        if not is_advanced(item):
            _position(tensor, item)
    if ndim == 1:
        refuse(
            "NK603",
            f"{describe(tensor)} is indexed with an nl.arange of one dimension; indices of a tile have at least two "
            "(err_1d_arange_not_supported)",
            about=(tensor,),
            remedy="Write nl.arange(n)[:, None] for the partition dimension, nl.arange(n)[None, :] for the free one.",
        )
    if len(items) != len(tensor.shape):
        refuse(
            "NK603",
            f"{len(items)} indices are given for {describe(tensor)}; advanced indexing names every one of the "
            f"{len(tensor.shape)} dimensions",
            about=(tensor,),
        )


def _check_partition(tensor: NkiTensor, slopes: list[tuple[int, ...]], shape: tuple[int, ...]) -> None:
    """On chip axis 0 of the tile is the partition dimension and nothing else.

    "Such flexible indexing is not supported along the partition dimension" (NKI Programming Model).
    """
    partition, *free = slopes
    if any(partition[1:]) or any(each[0] for each in free):
        refuse(
            "NK603",
            f"axis 0 of a tile must index the partition dimension of {describe(tensor)} and no other; data moves "
            "between partitions only by an instruction (err_failed_to_infer_tile_from_local_tensor)",
            about=(tensor,),
            remedy="Index dimension 0 with nl.arange(n)[:, None]; nisa.nc_transpose swaps two dimensions.",
        )
    if shape[0] > 1 and partition[0] == 0:
        refuse(
            "NK111",
            f"a tile of {shape[0]} partitions is asked of one partition of {describe(tensor)}",
            about=(tensor,),
            remedy="Broadcast it first: tile.broadcast_to(shape) or nl.broadcast_to(tile, shape=shape).",
        )
    if shape[0] > 1 and partition[0] != 1:
        refuse(
            "NK603",
            f"the partitions of {describe(tensor)} are indexed with a step of {partition[0]}, not 1",
            about=(tensor,),
        )


# --- basic indexing --------------------------------------------------------------------------------------------------


def basic_view(tensor: NkiTensor, items: tuple[Any, ...]) -> NkiTensor:
    """The view of an index tuple of integers, slices, ``nl.ds`` and one ``...``. Errors: NK402, NK603."""
    dims = iter(range(len(tensor.shape)))
    for number, item in enumerate(items):
        if item is Ellipsis:
            dims = iter(range(max(len(tensor.shape) - (len(items) - number - 1), 0), len(tensor.shape)))
            continue
        dim = next(dims, None)
        if dim is not None:
            _check_bounds(tensor, dim, item)
    return tensor[items]


def _check_bounds(tensor: NkiTensor, dim: int, item: Any) -> None:
    size = tensor.shape[dim]
    if type(item) is slice and (item.stop is None or (type(item.stop) is int and 0 <= item.stop <= size)):
        return
    if isinstance(item, slice):
        first, end = whole(item.start or 0), whole(size if item.stop is None else item.stop)
    elif isinstance(item, DynamicSlice):
        first, count = whole(item.start), whole(item.size)
        end = None if first is None or count is None else first + count
    else:
        first = whole(item)
        end = None if first is None else first + 1 if first >= 0 else first + size + 1
        first = first if first is None or first >= 0 else first + size
    if first is not None and end is not None and first < end and (end > size or first < -size):
        out_of_bounds(tensor, dim, first, end - 1, size)
