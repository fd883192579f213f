"""NkiTensor: a strided view on storage. Only a view reads or writes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeAlias, cast

from nkitools.chip import indexing, view_checks
from nkitools.chip.argument_types import Number, Pattern, Shape
from nkitools.chip.device_numbers import DeviceNumber
from nkitools.chip.dtypes import DType, DTypeLike
from nkitools.chip.indexing import DynamicSlice as DynamicSlice
from nkitools.chip.indexing import Key
from nkitools.chip.memory import Storage
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.registers import VirtualRegister
from nkitools.chip.scalars import NkiScalar
from nkitools.chip.strided_view import StridedView
from nkitools.chip.tensor_refusals import NotAValue, no_address
from nkitools.rules.finding import not_modelled, refuse

Place: TypeAlias = "NkiTensor | DeviceNumber"  # an address that is known when the kernel runs
TileOrNumber: TypeAlias = "NkiTensor | Number"

_new = object.__new__
_ON_DEVICE = (VirtualRegister, NkiScalar)


class RuntimeViews:
    """Makes views whose address is decided while the kernel runs.

    `nkitools.chip.runtime_views` and `nkitools.chip.column_gather`, which stand on this file, offer the functions.
    """

    at_index: Callable[[NkiTensor, Any, int, int, str], NkiTensor]
    at_registers: Callable[[NkiTensor, list[tuple[DeviceNumber, int, int]]], NkiTensor]
    moved: Callable[[NkiTensor, NkiTensor, Any, Any], NkiTensor]
    stray: Callable[[NkiTensor, tuple[int, ...], DType, str], NkiTensor]
    gathered: Callable[[NkiTensor, list[tuple[int, int]], int, DType, Any, Any], NkiTensor]
    chosen_rows: Callable[[NkiTensor, Any], NkiTensor]
    columns: Callable[[NkiTensor, Any, Any], NkiTensor]


class Assignments:
    """Issues the instruction of ``tensor[...] = tile``; `nkitools.dialects.modern.kernel` sets the function."""

    issue: Callable[[NkiTensor, Key, NkiTensor], None]


RUNTIME_VIEWS = RuntimeViews()
ASSIGNMENTS = Assignments()


class NkiTensor(NotAValue, StridedView):
    """A multi-dimensional view on storage in SBUF, PSUM or HBM (``nki.language.NkiTensor``, NKI 0.6).

    On-chip tensors keep their partition dimension at dimension 0 and are at least 2-D; HBM tensors are at least 1-D.
    ``t[key]`` takes integers and slices as NumPy does (a step is positive), ``...``, ``nl.ds``, registers and scalars.
    An integer drops its dimension, unless it is dimension 0 on chip or too few dimensions would be left: then the
    dimension stays with size 1. ``t[key] = tile`` issues an instruction that copies; a number is NK607.
    View methods copy nothing; a negative ``dim`` counts from the last dimension. Indices outside of the tensor are
    refused (NK402), never clamped. Other errors: NK109 (a shape, dimension or layout that the tensor does not have, a
    slice without elements), NK603 (a key of another form), NK609 (an argument of another form).
    """

    __slots__ = ()

    def __init__(
        self,
        shape: Sequence[int],
        dtype: DTypeLike,
        storage: Storage | None,
        buffer: MemoryRegion | str = MemoryRegion.sbuf,
        name: str = "",
        address: tuple[int, ...] | None = None,
    ) -> None:
        """Make a tensor on all of an existing storage, or a signature placeholder (``storage=None``) without data.

        ``shape`` and ``dtype`` must have as many bytes as the storage, on chip also as many partitions (NK109).
        ``buffer`` and ``name`` are a placeholder's; a storage has its own. ``address`` (NKI 0.7) is refused
        (NK607), before 0.7 as an argument that is not there (NK609).
        """
        if address is not None:
            no_address()
        kind = view_checks.known_dtype(dtype)
        sizes = tuple(int(size) for size in shape)
        if storage is None:
            storage = Storage(sizes, kind, MemoryRegion("private_hbm" if buffer == "hbm" else buffer), name=name)
        self._set(storage, storage.array, storage.dtype, 0)
        if sizes == self.shape and kind is storage.dtype:
            return
        if math.prod(sizes) * kind.itemsize != storage.nbytes:
            message = f"a tensor of {kind} {list(sizes)} does not have the storage's {storage.nbytes} bytes"
            view_checks.wrong(self, message)
        if self.on_chip and sizes[0] != self.shape[0]:
            view_checks.keep_partition(self, f"a tensor of shape {list(sizes)}")
        strides = view_checks.dense_strides(sizes, kind.itemsize)
        if self.on_chip:
            strides[0] = storage.partition_bytes
        self._set(storage, storage.window(sizes, kind, 0, tuple(strides)), kind, 0)

    def __getitem__(self, key: Key) -> Self:
        # A tile's key, t[a:b, c:d], is NumPy's as it stands once its bounds are known to be good: kernels' hot path.
        if key is Ellipsis:
            return self._view(self.array, self.byte_offset)
        items: tuple[Any, ...] = key if type(key) is tuple else (key,)
        array = self.array
        shape = self.shape
        offset = self.byte_offset
        if len(items) > len(shape):
            return self._indexed(items)
        for item, size, stride in zip(items, shape, array.strides, strict=False):
            if type(item) is not slice or item.step is not None:
                return self._element(items) if type(item) is int else self._indexed(items)
            start, stop = item.start, item.stop
            if type(start) is int and type(stop) is int:
                if not 0 <= start < stop <= size:
                    return self._indexed(items)
                offset += start * stride
            elif start is not None or stop is not None:
                return self._indexed(items)
        return self._part(array[items], offset, items[0].start or 0)

    def _element(self, items: tuple[Any, ...]) -> Self:
        """Return the view of a key with an integer: straight away for one element of two dimensions, ``t[i, j]``."""
        array = self.array
        if len(items) != 2 or array.ndim != 2:
            return self._indexed(items)
        (row, column), (rows, columns) = items, self.shape
        if column.__class__ is not int or row.__class__ is not int or not (0 <= row < rows and 0 <= column < columns):
            return self._indexed(items)
        row_stride, column_stride = array.strides
        offset = self.byte_offset + row * row_stride + column * column_stride
        at = slice(row, row + 1) if self.storage.on_chip else row
        return self._part(array[at, column : column + 1], offset, row)

    def _part(self, window: Array, offset: int, row: int) -> Self:
        """Return the view of a window without steps, whose first row is ``row``."""
        view = _new(type(self))
        view.storage = storage = self.storage
        view.array = window
        view.dtype = self.dtype
        view.shape = shape = window.shape
        view.byte_offset = offset
        view._layout = None
        whole = self._layout
        if whole is not None and whole.parts is not None and not storage.placed_to_fit:
            row = row if storage.on_chip else 0
            layout = whole.parts.get((row, shape))
            if layout is None:
                layout = whole.parts[row, shape] = view.layout
            view._layout = layout
        return view

    def _indexed(self, items: tuple[Any, ...]) -> Self:
        """Return the view of any key: integers, negative bounds, steps, nl.ds, `...`; NK402 if it is out of bounds."""
        shape, strides = self.shape, self.array.strides
        on_chip = self.storage.on_chip
        index: list[Any] = []
        offset = self.byte_offset
        kept = len(shape)
        last = -1
        if len(items) > kept:
            items = indexing.expanded(self, items)
        for dim, item in enumerate(items):
            kind = type(item)
            if kind is slice:
                if item.start is None and item.stop is None and item.step is None:
                    index.append(item)
                    continue
                first, window = indexing.resolve_slice(self, dim, item)
            elif kind is DynamicSlice:
                if type(item.start) in _ON_DEVICE:
                    return self._with_registers(items)
                first, window = indexing.resolve_ds(self, dim, item)
            elif item is Ellipsis:
                return self._indexed(indexing.expanded(self, items))
            elif kind in _ON_DEVICE:
                return self._with_registers(items)
            else:
                if kind is not int and (plain := indexing.without_ranges(self, items)) is not None:
                    return self._indexed(plain)
                first = indexing.resolve_index(self, dim, item)
                if on_chip and dim == 0:
                    window = slice(first, first + 1)
                else:
                    last = dim
                    kept -= 1
                    index.append(first)
                    offset += first * strides[dim]
                    continue
            index.append(window)
            offset += first * strides[dim]
        if last >= 0 and kept < (2 if on_chip else 1):
            index[last] = slice(index[last], index[last] + 1)
        return self._view(self.array[tuple(index)], offset)

    def _with_registers(self, items: tuple[Any, ...]) -> Self:
        """Return the view of a key with registers: a view for register values of 0, which moves when it is used."""
        items = indexing.expanded(self, items)
        terms: list[tuple[DeviceNumber, int, int]] = []
        static: list[Any] = []
        for dim, item in enumerate(items):
            register, length = item, 1
            if type(item) is DynamicSlice and type(item.start) in _ON_DEVICE:
                register, length = item.start, view_checks.integer(self, item.size, "the size of nl.ds")
                static.append(DynamicSlice(0, length))
            elif type(item) in _ON_DEVICE:
                if self.on_chip and dim == 0:
                    view_checks.keep_partition(self, "a register or scalar as the index of dimension 0")
                static.append(0)
            else:
                static.append(item)
                continue
            terms.append((register, self.array.strides[dim], self.shape[dim] - length))
        return cast("Self", RUNTIME_VIEWS.at_registers(self._indexed(tuple(static)), terms))

    def __setitem__(self, key: Key, value: TileOrNumber) -> None:
        if isinstance(value, NkiTensor):
            ASSIGNMENTS.issue(self, key, value)
            return
        message = f"assignment of a {type(value).__name__} into a tensor has no documented meaning in NKI"
        not_modelled(message, remedy="Write nisa.memset(tensor[...], value) instead.")

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> Self:
        """Return a view of each ``step``-th of the elements start .. end-1 of a dimension.

        Requires 0 <= start < end <= shape[dim] and step >= 1. Errors: NK109 (end <= start), NK402, NK603 (the step),
        NK609.
        """
        dim = view_checks.dimension(self, dim)
        first, stop, stride = view_checks.integers(self, (start, end, step), "slice's start, end and step")
        if first < 0 or stop < 0:
            view_checks.out_of_bounds(self, dim, f"{first}:{stop}", first, stop - 1)
        window = slice(first, stop, stride)
        return self._indexed((*[slice(None)] * dim, window))

    def select(self, dim: int, index: int | Place) -> Self:
        """Return the view at one index of a dimension, mostly without that dimension. Requires 0 <= index < shape[dim].

        The value of a register, a scalar or an integer tensor of one element in SBUF is read, and checked, when an
        instruction uses the view; on chip not along dimension 0. Errors: NK109, NK201, NK301, NK402, NK609.

        As with ``t[:, index]``, the dimension stays with size 1 if it is the partition dimension on chip, or the only
        free dimension (in HBM the only dimension).
        """
        dim = view_checks.dimension(self, dim)
        if isinstance(index, (NkiTensor, DeviceNumber)):
            if self.on_chip and dim == 0:
                view_checks.keep_partition(self, "a dynamic select along dimension 0")
            window, limit = NkiTensor._indexed(self, (*[slice(None)] * dim, 0)), self.shape[dim] - 1
            step = self.array.strides[dim]
            return cast("Self", RUNTIME_VIEWS.at_index(window, index, step, limit, "select's index"))
        position = view_checks.integer(self, index, "select's index")
        if position < 0:
            view_checks.out_of_bounds(self, dim, str(position), position, position)
        return self._indexed((*[slice(None)] * dim, position))

    def permute(self, dims: Sequence[int]) -> Self:
        """Return a view with the dimensions in another order: its dimension i is dimension ``dims[i]`` of this tensor.

        ``dims``: each of 0 .. ndim-1 once; on chip dimension 0 stays first. Errors: NK109, NK609.
        """
        order = view_checks.integers(self, dims, "permute's dims")
        if sorted(order) != list(range(self.ndim)):
            view_checks.wrong(self, f"permute({order}) is not a permutation of the dimensions 0..{self.ndim - 1}")
        if self.on_chip and order[0] != 0:
            view_checks.keep_partition(self, f"permute({order})")
        return self._view(self.array.transpose(order), self.byte_offset)

    def broadcast(self, dim: int, size: int) -> Self:
        """Return a view that repeats the one element of a dimension of size 1 ``size`` times, without a copy.

        Errors: NK109 (a dimension of another size, a size below 1), NK111 (dimension 0 on chip), NK609.
        """
        dim, size = view_checks.dimension(self, dim), view_checks.integer(self, size, "broadcast's size")
        if self.shape[dim] != 1:
            said = f"broadcast(dim={dim}) needs size 1 in that dimension, it is {self.shape[dim]}"
            view_checks.wrong(self, said, view_checks.one_to_broadcast(self.shape, dim))
        if size < 1:
            view_checks.wrong(self, f"broadcast(size={size}) needs a positive size")
        if self.on_chip and dim == 0:
            view_checks.keep_partition(self, "broadcast(dim=0)", rule="NK111")
        strides = self.array.strides
        return self._strided(
            (*self.shape[:dim], size, *self.shape[dim + 1 :]), (*strides[:dim], 0, *strides[dim + 1 :])
        )

    def expand_dim(self, dim: int) -> Self:
        """Return a view with a new dimension of size 1, which is dimension ``dim`` of the view; -1 is the last one.

        Errors: NK109 (a position that does not exist, and on chip 0), NK609.
        """
        dim = view_checks.dimension(self, dim, extra=1)
        if self.on_chip and dim == 0:
            view_checks.keep_partition(self, "expand_dim(0)")
        shape, strides = self.shape, self.array.strides
        step = shape[dim] * strides[dim] if dim < len(shape) else self.dtype.itemsize
        return self._strided((*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:]))

    def squeeze_dim(self, dim: int) -> Self:
        """Return a view without a dimension of size 1. The view has at least 1 dimension, on chip 2.

        Errors: NK109 (another size, dimension 0 on chip, too few dimensions left), NK609.
        """
        dim = view_checks.dimension(self, dim)
        if self.shape[dim] != 1:
            view_checks.wrong(self, f"squeeze_dim({dim}) needs size 1 in that dimension, it is {self.shape[dim]}")
        if self.on_chip and dim == 0:
            view_checks.keep_partition(self, "squeeze_dim(0)")
        if self.ndim <= (2 if self.on_chip else 1):
            view_checks.wrong(self, f"squeeze_dim({dim}) would leave fewer dimensions than a tensor here must have")
        return self._view(self.array.squeeze(dim), self.byte_offset)

    def reshape_dim(self, dim: int, shape: Sequence[int]) -> Self:
        """Return a view with dimension ``dim`` split into dimensions of the sizes ``shape``, the last one fastest.

        One size may be -1: the rest. Errors: NK109 (sizes with another product, dimension 0 on chip), NK609.
        """
        dim = view_checks.dimension(self, dim)
        sizes = view_checks.integers(self, shape, "reshape_dim's shape")
        call = ("reshape_dim", dim, sizes)
        sizes = view_checks.infer_sizes(self, sizes, self.shape[dim], call)
        if self.on_chip and dim == 0 and sizes != (self.shape[0],):
            view_checks.keep_partition(self, view_checks.shown(call))
        return self._reshaped((*self.shape[:dim], *sizes, *self.shape[dim + 1 :]), call)

    def flatten_dims(self, start_dim: int, end_dim: int) -> Self:
        """Return a view with the dimensions start_dim to end_dim (inclusive) merged into one, the last one fastest.

        They must lie in memory without gaps and in order. Errors: NK109 (other layouts, start_dim after end_dim,
        dimension 0 on chip), NK609.
        """
        first, last = view_checks.dimension(self, start_dim), view_checks.dimension(self, end_dim)
        call = ("flatten_dims", start_dim, end_dim)
        if first > last:
            view_checks.wrong(self, f"{view_checks.shown(call)} has its dimensions in the wrong order")
        if self.on_chip and first == 0:
            view_checks.keep_partition(self, view_checks.shown(call))
        merged = math.prod(self.shape[first : last + 1])
        return self._reshaped((*self.shape[:first], merged, *self.shape[last + 1 :]), call)

    def reshape(self, shape: Shape, *more: int) -> Self:
        """Return a view of the same elements, in row-major order, in another shape; on chip dimension 0 keeps its size.

        One size may be -1: the rest. The sizes may also be separate arguments: undocumented, but in public use. Errors:
        NK109 (another number of elements, a layout that would need a copy), NK609.
        """
        given = (shape, *more) if more or isinstance(shape, int) else shape
        sizes = view_checks.integers(self, given, "reshape's shape")
        call = ("reshape", sizes)
        return self._reshaped(view_checks.infer_sizes(self, sizes, self.size, call), call)

    def _reshaped(self, sizes: tuple[int, ...], call: view_checks.Call) -> Self:
        array = self.array
        kept = 1 if self.on_chip else 0
        if len(sizes) <= kept:
            message = f"{view_checks.shown(call)} would leave fewer dimensions than a tensor here must have"
            view_checks.wrong(self, message)
        if kept and sizes[0] != self.shape[0]:
            view_checks.keep_partition(self, view_checks.shown(call))
        # NumPy sees no partitions, so that its strides are right where these lie one behind the other without a gap.
        if array.flags.c_contiguous and (not kept or array.nbytes == sizes[0] * self.storage.partition_bytes):
            return self._view(array.reshape(sizes), self.byte_offset)
        strides = array.strides
        found = view_checks.regrouped(self.shape[kept:], strides[kept:], sizes[kept:], self.dtype.itemsize)
        if found is None:
            view_checks.wrong(self, f"{view_checks.shown(call)} needs a copy: the layout is {self.get_pattern()}")
        return self._strided(sizes, (*strides[:kept], *found))

    def rearrange(
        self, src_pattern: Sequence[Any], dst_pattern: Sequence[Any], fixed_sizes: Mapping[str, int] | None = None
    ) -> Self:
        """Return a view with dimensions split, reordered and merged by names, as einops does.

        ``src_pattern``: for each dimension a name, or a tuple of names into which it is split, the last one fastest.
        ``dst_pattern``: the same names in another order; a tuple merges. ``fixed_sizes``: the sizes of split names; one
        of each tuple may be left out. ``t.rearrange(("p", ("a", "b")), ("p", "b", "a"), {"a": 4})`` makes (128, 2, 4)
        of (128, 8). On chip dimension 0 is neither split, merged nor moved. Errors: NK109 (names, sizes, a layout that
        would need a copy), NK609.
        """
        call = ("rearrange", src_pattern, dst_pattern)
        from nkitools.chip.rearrange import plan_rearrange

        plan = plan_rearrange(self, src_pattern, dst_pattern, fixed_sizes, call)
        if self.on_chip and plan.order[:1] != (0,):
            view_checks.keep_partition(self, view_checks.shown(call))
        return self._reshaped(plan.split, call).permute(plan.order)._reshaped(plan.merged, call)

    def view(self, dtype: DTypeLike) -> Self:
        """Return a view of the same bytes as elements of another dtype, without a conversion of values.

        Where the sizes of elements differ, the size of the last dimension changes by their ratio; it must be
        contiguous, and its bytes, the first byte and the other strides must divide by the new size (NK109). Errors:
        NK109, NK301, NK609 (a view with a run-time index).
        """
        target = view_checks.known_dtype(dtype, self)
        if target.is_wide:
            view_checks.width(self, target, self.size * self.dtype.itemsize // target.itemsize)
        if target.itemsize == self.dtype.itemsize:
            return self._view(self.array.view(target.dtype), self.byte_offset, target)
        shape, strides = view_checks.recast(self, target)
        return self._view(self.storage.window(shape, target, self.byte_offset, strides), self.byte_offset, target)

    reinterpret_cast = view

    def ap(
        self,
        pattern: Pattern,
        offset: int | None = None,
        scalar_offset: Place | None = None,
        vector_offset: NkiTensor | None = None,
        indirect_dim: int = 0,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Return a view by an explicit access pattern ``[[stride, count], ...]``, a pair for each of its dimensions.

        Strides and ``offset`` count elements of ``dtype``, None: this view's. The pattern begins ``offset`` elements
        (None: 0) after this view's first element (docstring of NKI 0.6; the language guide says that the offset
        overrides, which is the same wherever the view begins at offset 0). It may reach all of the storage; on chip the
        first stride must be the elements of a partition of the storage, if its count is not 1.
        ``scalar_offset``: a register, a scalar or an integer tensor of one element in SBUF. It moves the pattern, when
        the view is used, by as many steps of this view's dimension ``indirect_dim`` (on chip not 0), at most to its
        last one (NK402). ``vector_offset``, of an HBM tensor: an integer tensor in SBUF. Row i of the result is the row
        of this view that index i, counted column after column, names; the pattern's first stride is ignored, and
        ``indirect_dim`` is 0. Shape and strides of this view count for these two alone, and only one of them can be
        given. A pattern that leaves the storage is NK402 when it is used: production kernels make some that they do not
        use. Other errors: NK109, NK111, NK201, NK301, NK609.
        """
        if scalar_offset is None and vector_offset is None and indirect_dim != 0:
            refuse("NK609", "ap(indirect_dim=...) needs scalar_offset or vector_offset", about=(self,))
        target = self.dtype if dtype is None else view_checks.known_dtype(dtype, self)
        pairs = view_checks.pairs_of(self, pattern)
        if target.is_wide:
            view_checks.width(self, target, math.prod(count for _, count in pairs))
        more = 0 if offset is None else view_checks.integer(self, offset, "ap's offset")
        start = view_checks.pattern_start(self, more, target)
        if vector_offset is not None:
            if scalar_offset is not None:
                refuse("NK609", "ap takes scalar_offset or vector_offset, not both", about=(self,))
            return cast("Self", RUNTIME_VIEWS.gathered(self, pairs, start, target, vector_offset, indirect_dim))
        shape = tuple(count for _, count in pairs)
        beyond = view_checks.pattern_beyond(self, pairs, start, target)
        if beyond:
            return cast("Self", RUNTIME_VIEWS.stray(self, shape, target, beyond))
        strides, byte_offset = view_checks.pattern_strides(self, pairs, start, target)
        view = self._view(self.storage.window(shape, target, byte_offset, strides), byte_offset, target)
        if scalar_offset is None:
            return view
        return cast("Self", RUNTIME_VIEWS.moved(self, view, scalar_offset, indirect_dim))

    def vector_select(self, dim: int, vector_offset: NkiTensor) -> Any:
        """Return a view of rows of an HBM tensor: row i is row ``vector_offset[i, 0]`` of this tensor.

        ``vector_offset``: an integer tensor (rows, 1) in SBUF, which is read, and checked, when an instruction uses the
        view. ``dim`` must be 0. Errors: NK109 (a dimension that does not exist), NK201, NK301, NK402, NK609.
        """
        if view_checks.dimension(self, dim) != 0:
            refuse("NK609", "vector_select needs dim=0", about=(self,))
        return RUNTIME_VIEWS.chosen_rows(self, vector_offset)

    def indirect(self, index: NkiTensor, num_elem: int | None = None) -> Any:
        """Return a (partitions, num_elem) view of the columns of an on-chip tensor at offsets in ``index`` (tensor
        indirection, NeuronCore-v4).

        ``index``: an integer tensor (partitions, K) in SBUF. Offset i, an element of a partition, is
        ``index[i % group, i // group]``, equal for all partitions; ``group`` is 32 on the Tensor Engine, else 16, and
        further rows repeat the first ones (NK607).
        ``num_elem``: how many offsets count, at most ``group * K`` (NK402), with fewer partitions than a group at most
        one for each partition; more than ``index`` has is NK109. None: all of ``index``, which fits a tensor of at most
        one group of partitions. Offsets are
        read, and checked, when an instruction uses the view (NK401, NK402); no other view is made of it (NK609).
        Errors: NK109, NK201, NK301, NK607 (a tensor that is not contiguous), NK609.
        """
        return RUNTIME_VIEWS.columns(self, index, num_elem)

    def __repr__(self) -> str:
        from nkitools.chip.tensor_repr import shown

        return shown(self)
