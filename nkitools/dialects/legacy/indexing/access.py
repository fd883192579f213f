"""The elements that an index tuple addresses: an affine access of a tensor is a strided view on its storage, not a
copy.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from nkitools.authors_code.source_text import nodes_of, text_of
from nkitools.chip.core import CORE
from nkitools.chip.layout import Layout
from nkitools.chip.pictures import picture_of_range
from nkitools.chip.tensor import DynamicSlice, NkiTensor
from nkitools.chip.view_checks import describe, name_of
from nkitools.dialects.legacy.indexing.indices import Index, NonAffine, whole
from nkitools.dialects.legacy.indexing.masks import Box, Subscript
from nkitools.facts.kept import Kept
from nkitools.rules.finding import NO_FACTS, Drawing, KernelError, authors_frame, refuse

_new = object.__new__
_MASKED = "The mask lets these positions in: compare the whole index, with the loop's counter, to the tensor's size."
_MASK = "Pass a mask that leaves out the positions beyond the end, or let the last tile be smaller."
_ARANGES = "Write nl.arange(n)[:, None] for the partition dimension, nl.arange(n)[None, :] for the free one."
_CODE = "err_tensor_access_out_of_bound"


def out_of_bounds(tensor: NkiTensor, dim: int, low: int, high: int, size: int) -> NoReturn:
    """Refuse an access beyond a tensor (NK402), in the words that AWS documents."""
    text = (
        f"Out-of-bound access for tensor{name_of(tensor)} on dimension {dim}: "
        f"index range [{low}, {high}] exceed dimension size of {size}"
    )
    facts = {"axis": dim, "first_index": low, "last_index": high, "extent": size}
    bare_index_error(tensor, text, lambda: picture_of_range(size, low, high), facts)


def bare_index_error(
    tensor: NkiTensor, text: str, picture: Drawing | None = None, facts: Mapping[str, Any] = NO_FACTS
) -> NoReturn:
    """NK402 as an IndexError of exactly that text, since AWS's own tests compare both; the finding travels with it."""
    try:
        said, facts = f"{text} ({_CODE})", {**facts, "code": _CODE}
        refuse("NK402", said, about=(tensor,), remedy=_remedy(), picture=picture, facts=facts)
    except KernelError as error:
        finding = error.finding
    bare = IndexError(finding.message.removesuffix(f" ({_CODE})"))
    bare.finding = finding  # type: ignore[attr-defined]
    bare.add_note(f"{finding.rule} {finding.slug} at {finding.file}:{finding.line}. {finding.remedy}")
    raise bare


def _has_mask() -> bool:
    """Return whether the author's call has a mask already."""
    frame = authors_frame()
    calls = (each for each in nodes_of(text_of(frame.f_code)) if isinstance(each, ast.Call))
    here = (each for each in calls if each.lineno <= frame.f_lineno <= (each.end_lineno or 0))
    return any(keyword.arg == "mask" for each in here for keyword in each.keywords)


def _remedy() -> str:
    """Return the remedy; for a grid of different sizes it mentions exchanged axes."""
    core = CORE.get()
    advice = _MASKED if _has_mask() else _MASK
    if core is None or len(set(core.grid)) < 2:
        return advice
    return f"{advice} Are the axes of nl.program_id exchanged? The grid is {list(core.grid)}."


class Pattern:
    """The variation of a tensor's dimensions along the axes of a tile: ``slopes`` of each dimension, for each axis.

    Interned, since loops use one pattern at many places. ``lows``, ``highs``: the reach of each dimension's index below
    and above its constant. ``axes``: the (dimension, slope) pairs of each axis.
    """

    __slots__ = ("_steps", "axes", "box", "highs", "lows", "shape", "slopes")

    def __init__(self, slopes: tuple[tuple[int, ...], ...], shape: tuple[int, ...]) -> None:
        self.slopes = slopes
        self.shape = shape
        self.box: Box = tuple((0, size) for size in shape)
        bounds = [Index(0, each, shape).bounds() for each in slopes]
        self.lows = tuple(low for low, _ in bounds)
        self.highs = tuple(high for _, high in bounds)
        self.axes = tuple(
            tuple((dim, each[axis]) for dim, each in enumerate(slopes) if each[axis]) for axis in range(len(shape))
        )
        if len(shape) == len(slopes):  # an axis of one position has the stride that a slice would have
            self.axes = tuple(
                pairs or (((axis, 1),) if shape[axis] == 1 else ()) for axis, pairs in enumerate(self.axes)
            )
        self._steps: dict[tuple[int, ...], tuple[int, ...]] = {}

    def steps(self, strides: tuple[int, ...]) -> tuple[int, ...]:
        """Return the stride of each axis, in bytes, in a tensor with these strides."""
        found = self._steps.get(strides)
        if found is None:
            found = self._steps[strides] = tuple(
                sum(slope * strides[dim] for dim, slope in pairs) for pairs in self.axes
            )
        return found


pattern_of = lru_cache(maxsize=65536)(Pattern)


class Access:
    """A tensor under affine indices: for each of its dimensions a constant, and slopes along the axes of the tile."""

    __slots__ = ("constants", "pattern", "shape", "tensor")

    def __init__(self, tensor: NkiTensor, constants: Sequence[int], pattern: Pattern) -> None:
        self.tensor = tensor
        self.constants = constants
        self.pattern = pattern
        self.shape = pattern.shape

    def violation(self, box: Box | None = None) -> tuple[int, int, int, int] | None:
        """Return the first dimension that the tile (or a box of it) leaves, the range of its indices, and its size."""
        if box is not None and box != self.pattern.box:
            return self._violation_in(box)
        pattern, sizes = self.pattern, self.tensor.shape
        lows, highs = pattern.lows, pattern.highs
        for dim, constant in enumerate(self.constants):
            if constant + lows[dim] < 0 or constant + highs[dim] >= sizes[dim]:
                return dim, constant + lows[dim], constant + highs[dim], sizes[dim]
        return None

    def _violation_in(self, box: Box) -> tuple[int, int, int, int] | None:
        for dim, (constant, slopes) in enumerate(zip(self.constants, self.pattern.slopes, strict=True)):
            low, high = Index(constant, slopes, self.shape).bounds(box)
            if low < 0 or high >= self.tensor.shape[dim]:
                return dim, low, high, self.tensor.shape[dim]
        return None

    def view(self, box: Box | None = None) -> NkiTensor:
        """Return the tile (or a box of it) as a view of the tensor. Errors: NK402."""
        found = self.violation(box)
        if found is not None:
            out_of_bounds(self.tensor, *found)
        return self.inside(box)

    def inside(self, box: Box | None = None) -> NkiTensor:
        """Return the view of the tile, or of a box of it, which must lie within the tensor."""
        tensor, shape = self.tensor, self.shape
        strides = tensor.array.strides
        offset, steps = tensor.byte_offset, self.pattern.steps(strides)
        for constant, stride in zip(self.constants, strides, strict=True):
            offset += constant * stride
        if box is not None:
            for (first, _), step in zip(box, steps, strict=True):
                offset += first * step
            shape = tuple(end - first for first, end in box)
        return tensor._view(tensor.storage.window(shape, tensor.dtype, offset, steps), offset)


# --- from an index tuple to an access --------------------------------------------------------------------------------


def is_advanced(item: Subscript) -> bool:
    """Return whether an index tuple that holds ``item`` is an advanced one."""
    return isinstance(item, (Index, NonAffine))


_SEVERAL = "kernels with long loops index ten thousand places; an entry takes about 1 KiB"
_patterns = Kept[tuple[Any, ...], Pattern]("patterns of index tuples that are good", 50_000, _SEVERAL)
_views = Kept[tuple[Any, ...], tuple[Layout, int]](
    "layouts and byte offsets of pairs of indices within a tensor", 50_000, _SEVERAL
)


def access_of(tensor: NkiTensor, items: tuple[Any, ...]) -> Access:
    """Return the access of an advanced index tuple: one index or integer a dimension. Errors: NK111, NK603."""
    constants: list[int] = []
    form: list[Any] = [tensor.storage.on_chip]
    for item in items:
        if type(item) is Index:
            constants.append(item.constant)
            form += (item.coefficients, item.shape)
        elif type(item) is int and item >= 0:
            constants.append(item)
            form.append(None)
        else:
            return _checked_access(tensor, items)
    if len(constants) != len(tensor.shape):
        return _checked_access(tensor, items)
    key = tuple(form)
    pattern = _patterns.get(key)
    if pattern is None:
        pattern = _patterns[key] = _checked_access(tensor, items).pattern
    return Access(tensor, constants, pattern)


def known_view(tensor: NkiTensor, items: tuple[Any, ...]) -> NkiTensor | None:
    """Return the view of an index tuple of a known form; None if the careful path must handle it.

    That is so if an item is no index or non-negative position, or leaves the tensor.
    """
    storage = tensor.storage
    if storage.physical is None and len(items) == 2 and items[0].__class__ is items[1].__class__ is Index:
        first, second = items
        key = (  # all that the view's layout follows from: the view has no address, and lies within the tensor
            tensor._layout or tensor.layout,
            tensor.byte_offset,
            storage.partition_bytes,
            storage.placed_to_fit,
            first.constant,
            first.coefficients,
            first.shape,
            second.constant,
            second.coefficients,
            second.shape,
        )
        known = _views.get(key)
        if known is not None:
            return _view_at(tensor, *known)
        found = _view_of_pattern(tensor, items)
        if found is not None:
            _views[key] = (found.layout, found.byte_offset)
        return found
    return _view_of_pattern(tensor, items)


def _view_at(tensor: NkiTensor, layout: Layout, offset: int) -> NkiTensor:
    """Return the view of a tensor's storage that has this layout and begins there."""
    view = _new(NkiTensor)
    view.storage = storage = tensor.storage
    view.dtype = dtype = tensor.dtype
    view.shape = shape = layout.shape
    view.array = storage.window(shape, dtype, offset, layout.strides)
    view.byte_offset, view._layout = offset, layout
    return view


def _view_of_pattern(tensor: NkiTensor, items: tuple[Any, ...]) -> NkiTensor | None:
    """Return the view of an index tuple of a known pattern; None if the careful path must handle it."""
    storage = tensor.storage
    constants: list[int] = []
    form: list[Any] = [storage.on_chip]
    for item in items:
        if item.__class__ is Index:
            constants.append(item.constant)
            form += (item.coefficients, item.shape)
        elif item.__class__ is int:
            constants.append(item)
            form.append(None)
        else:
            return None
    pattern = _patterns.get(tuple(form))
    sizes, strides, offset = tensor.shape, tensor.array.strides, tensor.byte_offset
    if pattern is None or len(constants) != len(sizes):
        return None
    for constant, low, high, size, stride in zip(constants, pattern.lows, pattern.highs, sizes, strides, strict=True):
        if constant + low < 0 or constant + high >= size:
            return None
        offset += constant * stride
    view = _new(NkiTensor)
    view.storage, view.dtype, view.shape = storage, tensor.dtype, pattern.shape
    view.array = storage.window(pattern.shape, tensor.dtype, offset, pattern.steps(strides))
    view.byte_offset, view._layout = offset, None
    return view


def _checked_access(tensor: NkiTensor, items: tuple[Any, ...]) -> Access:
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
        message = f"the indices of {describe(tensor)} have shapes {sizes}, which do not broadcast"
        refuse("NK603", message, about=(tensor,), remedy=_ARANGES)
    if tensor.on_chip:
        _check_partition(tensor, slopes, shape)
    return Access(tensor, constants, pattern_of(tuple(slopes), shape))


def _position(tensor: NkiTensor, item: Subscript) -> int:
    """Return an integer of an advanced index tuple; refuse items that do not mix with indices."""
    number = whole(item)
    if number is None:
        _no_position(tensor, item)
    return number


def _no_position(tensor: NkiTensor, item: Subscript) -> NoReturn:
    if isinstance(item, (slice, DynamicSlice)) or item is Ellipsis or item is None:
        message = (
            f"an index tuple of {describe(tensor)} mixes slices with indices made of nl.arange or nl.mgrid "
            "(err_unsupported_mixing_basic_advanced_tensor_indexing)"
        )
        remedy = "Write every dimension as a slice, or every dimension as an index: nl.arange(n)[None, :] for `:`."
        facts = {"code": "err_unsupported_mixing_basic_advanced_tensor_indexing"}
        refuse("NK603", message, about=(tensor,), remedy=remedy, facts=facts)
    if isinstance(item, np.ndarray):
        message = f"a NumPy array of {list(item.shape)} is no index of {describe(tensor)}"
        refuse("NK603", message, about=(tensor,), remedy="Make the index with nl.arange(n)[:, None], or with nl.mgrid.")
    refuse("NK603", f"{item!r} ({type(item).__name__}) is no index of {describe(tensor)}", about=(tensor,))


def _check_form(tensor: NkiTensor, items: tuple[Any, ...], ndim: int) -> None:
    for item in items:
        if not is_advanced(item):
            _position(tensor, item)
    if ndim == 1:
        message = (
            f"{describe(tensor)} is indexed with an nl.arange of one dimension; indices of a tile have at least two "
            "(err_1d_arange_not_supported)"
        )
        refuse("NK603", message, about=(tensor,), remedy=_ARANGES, facts={"code": "err_1d_arange_not_supported"})
    if len(items) != len(tensor.shape):
        message = (
            f"{len(items)} indices are given for {describe(tensor)}; advanced indexing names every one of the "
            f"{len(tensor.shape)} dimensions"
        )
        refuse("NK603", message, about=(tensor,))


def _check_partition(tensor: NkiTensor, slopes: list[tuple[int, ...]], shape: tuple[int, ...]) -> None:
    """On chip axis 0 of the tile is the partition dimension and nothing else.

    "Such flexible indexing is not supported along the partition dimension" (NKI Programming Model).
    """
    partition, *free = slopes
    if any(partition[1:]) or any(each[0] for each in free):
        message = (
            f"axis 0 of a tile must index the partition dimension of {describe(tensor)} and no other; data moves "
            "between partitions only by an instruction (err_failed_to_infer_tile_from_local_tensor)"
        )
        remedy = "Index dimension 0 with nl.arange(n)[:, None]; nisa.nc_transpose swaps two dimensions."
        facts = {"code": "err_failed_to_infer_tile_from_local_tensor"}
        refuse("NK603", message, about=(tensor,), remedy=remedy, facts=facts)
    if shape[0] > 1 and partition[0] == 0:
        message = f"a tile of {shape[0]} partitions is asked of one partition of {describe(tensor)}"
        remedy = "Broadcast it first: tile.broadcast_to(shape) or nl.broadcast_to(tile, shape=shape)."
        refuse("NK111", message, about=(tensor,), remedy=remedy)
    if shape[0] > 1 and partition[0] != 1:
        message = f"the partitions of {describe(tensor)} are indexed with a step of {partition[0]}, not 1"
        refuse("NK603", message, about=(tensor,))
