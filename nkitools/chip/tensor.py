"""NkiTensor: a strided view on storage. Only a view reads or writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Self

import numpy as np

from nkitools.chip import views
from nkitools.chip.dtypes import DType, UnknownDType, as_dtype
from nkitools.chip.memory import ON_CHIP, Layout, MemoryRegion, Storage, layout_of
from nkitools.chip.numerics import Array
from nkitools.rules.finding import not_modelled, refuse


class DynamicSlice:
    """``nl.ds(start, size)``: the elements start .. start+size-1 of a dimension."""

    __slots__ = ("size", "start")

    def __init__(self, start: int, size: int) -> None:
        self.start = start
        self.size = size

    def __repr__(self) -> str:
        return f"nl.ds({self.start}, {self.size})"


class NkiTensor:
    """A multi-dimensional view on storage in SBUF, PSUM or HBM (``nki.language.NkiTensor``, NKI 0.6).

    On-chip tensors keep their partition dimension at dimension 0 and are at least 2-D; HBM tensors are at least 1-D. View
    methods copy nothing. Everything that would lie outside of the tensor is refused (NK402), never clamped.
    """

    __slots__ = ("_layout", "array", "byte_offset", "dtype", "shape", "storage")

    direct = True

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        storage: Storage | None,
        buffer: MemoryRegion | str = MemoryRegion.sbuf,
        name: str = "",
    ) -> None:
        """A tensor on an existing storage handle, or a signature placeholder (``storage=None``) without any data."""
        shape = tuple(shape)
        kind = as_dtype(dtype)
        if storage is None:
            storage = Storage(shape, kind, MemoryRegion(buffer), name=name)
        self._set(storage, storage.array.reshape(shape).view(kind.dtype), kind, 0)

    def _set(self, storage: Storage, array: Array, dtype: DType, byte_offset: int) -> None:
        self.storage = storage
        self.array = array
        self.dtype = dtype
        self.shape: tuple[int, ...] = array.shape
        self.byte_offset = byte_offset
        self._layout: Layout | None = None

    @classmethod
    def whole(cls, storage: Storage) -> Self:
        """The view of all of a storage."""
        self = cls.__new__(cls)
        self._set(storage, storage.array, storage.dtype, 0)
        return self

    def _view(self, array: Array, byte_offset: int, dtype: DType | None = None) -> Self:
        view = type(self).__new__(type(self))
        view._set(self.storage, array, dtype or self.dtype, byte_offset)
        return view

    # --- attributes ------------------------------------------------------------------------------------------------

    @property
    def buffer(self) -> MemoryRegion:
        """The memory that the tensor lives in."""
        return self.storage.memory

    @property
    def name(self) -> str:
        """The debug name given at creation."""
        return self.storage.name

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.array.size

    @property
    def on_chip(self) -> bool:
        """Whether the tensor lies in SBUF or PSUM."""
        return self.storage.memory in ON_CHIP

    @property
    def strides(self) -> tuple[int, ...]:
        """Stride of each dimension in elements; a partition step counts as the storage's free size."""
        return views.element_strides(self.array.strides, self.storage, self.dtype.itemsize)

    @property
    def offset(self) -> int:
        """Position of the first element, in elements from the beginning of the storage."""
        return views.element_offset(self.byte_offset, self.storage, self.dtype.itemsize)

    @property
    def address(self) -> tuple[int, int]:
        """(partition, byte offset) of the first element; an automatically placed storage begins at (0, 0)."""
        partition, byte = divmod(self.byte_offset, self.storage.partition_bytes) if self.on_chip else (0, self.byte_offset)
        return self.storage.start_partition + partition, self.storage.start_byte + byte

    @property
    def layout(self) -> Layout:
        """What guards may know of this view (interned)."""
        layout = self._layout
        if layout is None:
            storage = self.storage
            if storage.memory in ON_CHIP:
                partition, byte = divmod(self.byte_offset, storage.partition_bytes)
                partition += storage.start_partition
                byte = (byte + storage.start_byte) % 2048
            else:
                partition = byte = 0
            layout = layout_of(self.shape, self.array.strides, self.dtype, storage.memory, partition, byte)
            self._layout = layout
        return layout

    # --- reading and writing ---------------------------------------------------------------------------------------

    def read(self) -> Array:
        """The elements, as a NumPy view where that is possible."""
        return self.array

    def write(self, values: Array) -> None:
        """Put ``values`` (already of this dtype) into the elements."""
        np.copyto(self.array, values)

    # --- queries ---------------------------------------------------------------------------------------------------

    def is_contiguous(self) -> bool:
        """Whether the view is dense and row-major; on chip the partition dimension is left out of the question."""
        return views.is_contiguous(self.array, self.dtype.itemsize, skip_partition=self.on_chip)

    def get_pattern(self) -> list[list[int]]:
        """``[[stride, count], ...]`` in elements, in the order of ``shape``."""
        return [[stride, size] for stride, size in zip(self.strides, self.shape, strict=True)]

    def is_indirect(self) -> bool:
        """Whether a register or tensor decides at run time what this view addresses."""
        return False

    # --- indexing --------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Self:
        items = key if type(key) is tuple else (key,)
        index: list[Any] = []
        offset = self.byte_offset
        shape = self.shape
        strides = self.array.strides
        on_chip = self.storage.memory in ON_CHIP
        if any(item is Ellipsis for item in items):
            items = views.expand_ellipsis(self, items)
        if len(items) > len(shape):
            refuse(
                "NK603",
                f"{len(items)} indices are given for {views.describe(self)}, which has {len(shape)} dimensions",
                about=(self,),
            )
        kept = len(shape) - len(items)
        last_free = -1
        for dim, item in enumerate(items):
            kind = type(item)
            if kind is slice:
                first, window = views.resolve_slice(self, dim, item)
                index.append(window)
                offset += first * strides[dim]
                kept += 1
                continue
            if kind is DynamicSlice:
                first, window = views.resolve_slice(self, dim, views.slice_of(self, dim, item))
                index.append(window)
                offset += first * strides[dim]
                kept += 1
                continue
            first = views.resolve_index(self, dim, item)
            offset += first * strides[dim]
            if on_chip and dim == 0:
                index.append(slice(first, first + 1))
                kept += 1
            else:
                index.append(first)
                last_free = dim
        if kept < (2 if on_chip else 1) and last_free >= 0:
            first = index[last_free]
            index[last_free] = slice(first, first + 1)
        return self._view(self.array[tuple(index)], offset)

    def __setitem__(self, key: Any, value: Any) -> None:
        not_modelled(
            "assignment into a tensor (tensor[...] = value) has no documented meaning in the modern dialect",
            remedy="Write nisa.tensor_copy(dst=tensor[...], src=value), nisa.dma_copy or nisa.memset instead.",
        )

    def slice(self, dim: int, start: int, end: int, step: int = 1) -> Self:
        """The elements start .. end-1 of one dimension, each ``step``-th. Requires 0 <= start < end <= shape[dim]."""
        dim = views.dimension(self, dim)
        if start < 0 or end < 0:
            views.out_of_bounds(self, dim, f"slice({start}, {end})")
        return self[(*[slice(None)] * dim, slice(start, end, step))]

    def select(self, dim: int, index: int | NkiTensor) -> Self:
        """One element of a dimension, which is removed. Requires 0 <= index < shape[dim]; on chip not dimension 0."""
        dim = views.dimension(self, dim)
        if isinstance(index, NkiTensor):
            not_modelled("select with a tensor as index (dynamic selection) is not modelled yet")
        if self.on_chip and dim == 0:
            views.keep_partition(self, "select")
        first = views.resolve_index(self, dim, index)
        if index < 0:
            views.out_of_bounds(self, dim, str(index))
        array = self.array[(*[slice(None)] * dim, first)]
        offset = self.byte_offset + first * self.array.strides[dim]
        return self._view(array if array.ndim >= (2 if self.on_chip else 1) else array[..., None], offset)

    # --- shape -----------------------------------------------------------------------------------------------------

    def permute(self, dims: Sequence[int]) -> Self:
        """Dimensions in another order; on chip dimension 0 stays first."""
        order = tuple(dims)
        if sorted(order) != list(range(self.ndim)):
            views.wrong(self, f"permute({order}) is not a permutation of the dimensions 0..{self.ndim - 1}")
        if self.on_chip and order[0] != 0:
            views.keep_partition(self, f"permute({order})")
        return self._view(self.array.transpose(order), self.byte_offset)

    def broadcast(self, dim: int, size: int) -> Self:
        """A dimension of size 1 seen ``size`` times; on chip not dimension 0."""
        dim = views.dimension(self, dim)
        if self.shape[dim] != 1:
            views.wrong(self, f"broadcast(dim={dim}) needs size 1 in that dimension, it is {self.shape[dim]}")
        if size < 1:
            views.wrong(self, f"broadcast(size={size}) needs a positive size")
        if self.on_chip and dim == 0:
            views.keep_partition(self, "broadcast(dim=0)", rule="NK111")
        return self._view(views.with_dimension(self.array, dim, size, 0), self.byte_offset)

    def expand_dim(self, dim: int) -> Self:
        """A new dimension of size 1 at position ``dim``; on chip not 0."""
        dim = views.dimension(self, dim, extra=1)
        if self.on_chip and dim == 0:
            views.keep_partition(self, "expand_dim(0)")
        return self._view(np.expand_dims(self.array, dim), self.byte_offset)

    def squeeze_dim(self, dim: int) -> Self:
        """Without a dimension of size 1; on chip not 0."""
        dim = views.dimension(self, dim)
        if self.shape[dim] != 1:
            views.wrong(self, f"squeeze_dim({dim}) needs size 1 in that dimension, it is {self.shape[dim]}")
        if self.on_chip and dim == 0:
            views.keep_partition(self, "squeeze_dim(0)")
        if self.ndim <= (2 if self.on_chip else 1):
            views.wrong(self, f"squeeze_dim({dim}) would leave fewer dimensions than a tensor here must have")
        return self._view(self.array.squeeze(dim), self.byte_offset)

    def reshape_dim(self, dim: int, shape: Sequence[int]) -> Self:
        """One dimension split into several (one size may be -1); on chip dimension 0 only trivially."""
        dim = views.dimension(self, dim)
        sizes = views.infer_sizes(self, tuple(shape), self.shape[dim], f"reshape_dim({dim}, {tuple(shape)})")
        if self.on_chip and dim == 0 and sizes != (self.shape[0],):
            views.keep_partition(self, f"reshape_dim(0, {sizes})")
        return self._reshaped((*self.shape[:dim], *sizes, *self.shape[dim + 1 :]))

    def flatten_dims(self, start_dim: int, end_dim: int) -> Self:
        """Dimensions start_dim .. end_dim (inclusive) merged; they must be contiguous, on chip without dimension 0."""
        first, last = views.dimension(self, start_dim), views.dimension(self, end_dim)
        if first > last:
            views.wrong(self, f"flatten_dims({start_dim}, {end_dim}) has its dimensions in the wrong order")
        if self.on_chip and first == 0 and last > 0:
            views.keep_partition(self, f"flatten_dims({start_dim}, {end_dim})")
        merged = int(np.prod(self.shape[first : last + 1], dtype=np.int64))
        return self._reshaped((*self.shape[:first], merged, *self.shape[last + 1 :]))

    def reshape(self, *shape: Any) -> Self:
        """The same elements in another shape, without copying; on chip dimension 0 stays as it is."""
        sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else tuple(shape)
        sizes = views.infer_sizes(self, sizes, self.size, f"reshape({sizes})")
        if self.on_chip and sizes[0] != self.shape[0]:
            views.keep_partition(self, f"reshape({sizes})")
        if self.on_chip and len(sizes) < 2:
            views.wrong(self, f"reshape({sizes}) would leave fewer than 2 dimensions")
        return self._reshaped(sizes)

    def _reshaped(self, sizes: tuple[int, ...]) -> Self:
        try:
            array = np.reshape(self.array, sizes, copy=False)
        except ValueError:
            views.wrong(self, f"the layout {self.get_pattern()} cannot be seen in the shape {list(sizes)} without a copy")
        return self._view(array, self.byte_offset)

    def rearrange(
        self,
        src_pattern: Sequence[Any],
        dst_pattern: Sequence[Any],
        fixed_sizes: dict[str, int] | None = None,
    ) -> Self:
        """Split, reorder and merge dimensions by names, as einops does; groups are tuples of names."""
        plan = views.plan_rearrange(self, src_pattern, dst_pattern, fixed_sizes or {})
        return self._reshaped(plan.split).permute(plan.order)._reshaped(plan.merged)

    # --- reinterpretation ------------------------------------------------------------------------------------------

    def view(self, dtype: Any) -> Self:
        """The same bytes as another dtype; the last dimension's size scales with the ratio of the sizes."""
        target = self._known(dtype)
        if target.itemsize != self.dtype.itemsize:
            views.check_recast(self, target)
        return self._view(self.array.view(target.dtype), self.byte_offset, target)

    reinterpret_cast = view

    def _known(self, dtype: Any) -> DType:
        try:
            return as_dtype(dtype)
        except UnknownDType as error:
            refuse("NK301", str(error), about=(self,))

    def ap(
        self,
        pattern: Sequence[Sequence[int]],
        offset: int | None = None,
        scalar_offset: Any = None,
        vector_offset: Any = None,
        indirect_dim: int = 0,
        dtype: Any = None,
    ) -> Self:
        """An explicit access pattern ``[[stride, count], ...]`` on the storage, in elements of ``dtype``.

        ``offset=None`` keeps this view's storage offset and an explicit offset is added to it (docstring of NKI 0.6; the
        language guide says that the offset overrides, which is the same wherever the view begins at offset 0). Shape and
        strides of this view play no part. On chip the first stride must be the storage's free size.
        """
        if scalar_offset is not None or vector_offset is not None:
            given = "scalar_offset" if scalar_offset is not None else "vector_offset"
            not_modelled(f"ap({given}=...) (indirect addressing) is not modelled yet")
        if indirect_dim != 0:
            refuse("NK609", "ap(indirect_dim=...) needs scalar_offset or vector_offset", about=(self,))
        target = self.dtype if dtype is None else self._known(dtype)
        start = views.element_offset(self.byte_offset, self.storage, target.itemsize) + (offset or 0)
        array, byte_offset = views.strided(self, pattern, start, target)
        return self._view(array, byte_offset, target)

    def vector_select(self, dim: int, vector_offset: Any) -> NoReturn:
        """Per-partition indirect addressing: not modelled yet (NK607)."""
        not_modelled("vector_select (per-partition indirect addressing) is not modelled yet")

    def indirect(self, index: Any, num_elem: int | None = None) -> NoReturn:
        """Tensor indirection of NeuronCore-v4: not modelled yet (NK607)."""
        not_modelled("indirect (tensor indirection of NeuronCore-v4) is not modelled yet")

    # --- what a tensor is not --------------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        refuse(
            "NK602",
            f"the truth value of {views.describe(self)} is asked for; its elements exist only when the kernel runs",
            about=(self,),
        )

    def __iter__(self) -> NoReturn:
        refuse("NK601", f"{views.describe(self)} cannot be iterated over", about=(self,))

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(
            "NK601",
            f"NumPy cannot work on {views.describe(self)} inside a kernel; the chip would not run it",
            about=(self,),
        )

    def _no_operator(self, other: Any) -> NoReturn:
        refuse(
            "NK601",
            f"Python's arithmetic operators do not work on {views.describe(self)} in the modern dialect",
            about=(self,),
            remedy="Call nl.add, nl.subtract, nl.multiply, … or nisa.tensor_tensor / nisa.tensor_scalar.",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _no_operator
    __lt__ = __le__ = __gt__ = __ge__ = __matmul__ = __pow__ = __and__ = __or__ = __xor__ = _no_operator

    def __repr__(self) -> str:
        values = np.array2string(self.read().astype(np.float64) if self.dtype.is_float else self.read(), threshold=16)
        state = "written" if self.storage.unwritten(self.layout, self.byte_offset) is None else "partly unwritten"
        return f"<{views.describe(self)} at {self.address}, {state}>\n{values}"


class MaskedTensor(NkiTensor):
    """A view of which only the lanes where ``where`` is true are written; all lanes are read."""

    __slots__ = ("where",)

    direct = False

    @classmethod
    def of(cls, tensor: NkiTensor, where: Array) -> MaskedTensor:
        """``tensor`` under the mask ``where`` (bool, of its shape)."""
        self = cls.__new__(cls)
        self._set(tensor.storage, tensor.array, tensor.dtype, tensor.byte_offset)
        self.where = where
        return self

    def write(self, values: Array) -> None:
        """Put ``values`` into the lanes of the mask; the others keep what they had."""
        np.copyto(self.array, values, where=self.where)
