"""The arithmetic of views: bounds, strides and patterns, with the refusals that name the author's tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from nkitools.chip.dtypes import DType
from nkitools.chip.memory import ON_CHIP, MemoryRegion, Storage
from nkitools.chip.numerics import Array
from nkitools.rules.finding import refuse

if TYPE_CHECKING:
    from nkitools.chip.tensor import DynamicSlice, NkiTensor

MEMORY_NAMES = {
    MemoryRegion.sbuf: "SBUF",
    MemoryRegion.psum: "PSUM",
    MemoryRegion.private_hbm: "HBM",
    MemoryRegion.shared_hbm: "shared HBM",
}


def describe(tensor: NkiTensor) -> str:
    """``tensor `x_tile` (SBUF, float32 [128, 512])``; the name is filled in by the reporter where it can be found."""
    name = f"`{tensor.name}` " if tensor.name else f"\x00{tensor.storage.id}\x00"
    return f"tensor {name}({MEMORY_NAMES[tensor.buffer]}, {tensor.dtype} {list(tensor.shape)})"


# --- refusals --------------------------------------------------------------------------------------------------------


def wrong(tensor: NkiTensor, sentence: str) -> NoReturn:
    """Refuse a view that this tensor's shape or layout does not have (NK109)."""
    refuse("NK109", f"{sentence}; it is asked of {describe(tensor)}", about=(tensor,))


def out_of_bounds(tensor: NkiTensor, dim: int, what: str) -> NoReturn:
    """Refuse what lies outside of the tensor (NK402)."""
    refuse(
        "NK402",
        f"index {what} is out of bounds for dimension {dim} of {describe(tensor)}, which has size {tensor.shape[dim]}",
        about=(tensor,),
    )


def keep_partition(tensor: NkiTensor, what: str, rule: str = "NK109") -> NoReturn:
    """Refuse a view that would move data between partitions."""
    refuse(
        rule,
        f"{what} would change the partition dimension of {describe(tensor)}; data moves between partitions only by an "
        "instruction (nisa.nc_transpose, nisa.dma_copy, nisa.nc_matmul)",
        about=(tensor,),
    )


# --- indices ---------------------------------------------------------------------------------------------------------


def dimension(tensor: NkiTensor, dim: int, extra: int = 0) -> int:
    """``dim`` as a non-negative dimension of the tensor (of ``extra`` more dimensions)."""
    ndim = len(tensor.shape) + extra
    if not isinstance(dim, (int, np.integer)) or not -ndim <= dim < ndim:
        wrong(tensor, f"dimension {dim!r} does not exist")
    return int(dim) % ndim


def expand_ellipsis(tensor: NkiTensor, items: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key with ``...`` replaced by as many full slices as it stands for."""
    if sum(item is Ellipsis for item in items) > 1:
        refuse("NK603", f"an index of {describe(tensor)} has more than one `...`", about=(tensor,))
    at = next(position for position, item in enumerate(items) if item is Ellipsis)
    missing = len(tensor.shape) - (len(items) - 1)
    return (*items[:at], *[slice(None)] * max(missing, 0), *items[at + 1 :])


def _integer(tensor: NkiTensor, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        refuse(
            "NK603",
            f"{value!r} ({type(value).__name__}) is no index of {describe(tensor)}",
            about=(tensor,),
        )
    return int(value)


def resolve_index(tensor: NkiTensor, dim: int, item: Any) -> int:
    """An integer index as a non-negative position."""
    size = tensor.shape[dim]
    index = item if type(item) is int else _integer(tensor, item)
    if not -size <= index < size:
        out_of_bounds(tensor, dim, str(index))
    return index + size if index < 0 else index


def slice_of(tensor: NkiTensor, dim: int, item: DynamicSlice) -> slice:
    """``nl.ds(start, size)`` as a slice."""
    start, size = _integer(tensor, item.start), _integer(tensor, item.size)
    if start < 0 or size < 1:
        out_of_bounds(tensor, dim, repr(item))
    return slice(start, start + size)


def resolve_slice(tensor: NkiTensor, dim: int, item: slice) -> tuple[int, slice]:
    """The first position of a slice, and the slice with its bounds made non-negative."""
    start, stop, step = item.start, item.stop, item.step
    size = tensor.shape[dim]
    if start is None and stop is None and step is None:
        return 0, item
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
        out_of_bounds(tensor, dim, shown)
    return first, slice(first, end, stride)


# --- strides ---------------------------------------------------------------------------------------------------------


def element_strides(strides: tuple[int, ...], storage: Storage, itemsize: int) -> tuple[int, ...]:
    """Byte strides of a NumPy view as element strides of the storage."""
    if storage.memory not in ON_CHIP:
        return tuple(stride // itemsize for stride in strides)
    partition_step = strides[0] // storage.partition_bytes * (storage.free_bytes // itemsize)
    return (partition_step, *(stride // itemsize for stride in strides[1:]))


def element_offset(byte_offset: int, storage: Storage, itemsize: int) -> int:
    """A byte offset in the storage's memory as an element offset."""
    if storage.memory not in ON_CHIP:
        return byte_offset // itemsize
    partition, rest = divmod(byte_offset, storage.partition_bytes)
    return partition * (storage.free_bytes // itemsize) + rest // itemsize


def is_contiguous(array: Array, itemsize: int, *, skip_partition: bool) -> bool:
    """Whether each dimension's stride is the product of the sizes inside it."""
    expected = itemsize
    for stride, size in list(zip(array.strides, array.shape, strict=True))[: 0 if skip_partition else None : -1]:
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def with_dimension(array: Array, dim: int, size: int, stride: int) -> Array:
    """The array with another size and byte stride in one dimension."""
    shape, strides = list(array.shape), list(array.strides)
    shape[dim], strides[dim] = size, stride
    return np.lib.stride_tricks.as_strided(array, shape, strides)


def infer_sizes(tensor: NkiTensor, sizes: tuple[int, ...], total: int, what: str) -> tuple[int, ...]:
    """``sizes`` with its one -1 filled in; their product must be ``total``."""
    known = math.prod(size for size in sizes if size != -1)
    if sizes.count(-1) > 1 or any(size < -1 or size == 0 for size in sizes):
        wrong(tensor, f"{what} has sizes that are not positive")
    if -1 in sizes and known and total % known == 0:
        sizes = tuple(total // known if size == -1 else size for size in sizes)
    if math.prod(sizes) != total:
        wrong(tensor, f"{what} does not hold the {total} elements")
    return sizes


def check_recast(tensor: NkiTensor, target: DType) -> None:
    """A reinterpretation to another size needs a contiguous last dimension that divides."""
    itemsize = tensor.dtype.itemsize
    last = tensor.array.strides[-1]
    if last != itemsize and tensor.shape[-1] != 1:
        wrong(tensor, f"view({target}) needs a contiguous last dimension, its stride is {last // itemsize} elements")
    if tensor.shape[-1] * itemsize % target.itemsize:
        wrong(tensor, f"view({target}) needs a last dimension whose {tensor.shape[-1] * itemsize} bytes divide by its size")


def _pairs(tensor: NkiTensor, pattern: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    pairs = [tuple(int(number) for number in pair) for pair in pattern]
    if not pairs or any(len(pair) != 2 for pair in pairs) or any(count < 1 or step < 0 for step, count in pairs):
        wrong(tensor, f"ap({pattern!r}) is not a list of [stride, count] with counts of at least 1")
    return [(step, count) for step, count in pairs]


def strided(tensor: NkiTensor, pattern: Sequence[Sequence[int]], start: int, dtype: DType) -> tuple[Array, int]:
    """The NumPy view of an access pattern on the storage, and its byte offset. Offsets and strides in elements."""
    pairs = _pairs(tensor, pattern)
    storage = tensor.storage
    if storage.memory in ON_CHIP:
        return _strided_on_chip(tensor, pairs, start, dtype)
    reach = start + sum(step * (count - 1) for step, count in pairs)
    total = storage.nbytes // dtype.itemsize
    if start < 0 or reach >= total:
        refuse("NK402", f"ap reaches element {reach} of {describe(tensor)}, whose storage has {total}", about=(tensor,))
    strides = tuple(step * dtype.itemsize for step, _ in pairs)
    return _window(storage, dtype, start * dtype.itemsize, pairs, strides), start * dtype.itemsize


def _strided_on_chip(
    tensor: NkiTensor, pairs: list[tuple[int, int]], start: int, dtype: DType
) -> tuple[Array, int]:
    storage = tensor.storage
    free = storage.free_bytes // dtype.itemsize
    (step, partitions), inner = pairs[0], pairs[1:]
    if not inner:
        wrong(tensor, f"ap({pairs}) has no free dimension")
    if step != free and partitions > 1:
        wrong(tensor, f"ap's first stride is {step}, it must be the free size {free} of the storage: partitions are consecutive")
    first_partition, first = divmod(start, free)
    reach = first + sum(stride * (count - 1) for stride, count in inner)
    if start < 0 or first_partition + partitions > storage.shape[0]:
        refuse(
            "NK402",
            f"ap reaches partition {first_partition + partitions - 1} of {describe(tensor)}, whose storage has "
            f"{storage.shape[0]}",
            about=(tensor,),
        )
    if reach >= free:
        refuse(
            "NK402",
            f"ap reaches element {reach} of a partition of {describe(tensor)}, whose storage has {free} per partition",
            about=(tensor,),
        )
    byte_offset = first_partition * storage.partition_bytes + first * dtype.itemsize
    strides = (storage.partition_bytes, *(stride * dtype.itemsize for stride, _ in inner))
    return _window(storage, dtype, byte_offset, pairs, strides), byte_offset


def _window(
    storage: Storage, dtype: DType, byte_offset: int, pairs: list[tuple[int, int]], strides: tuple[int, ...]
) -> Array:
    shape = [count for _, count in pairs]
    base = storage.array
    if base.flags.c_contiguous:
        raw = base.reshape(-1).view(np.uint8)
        return np.ndarray(shape, dtype.dtype, raw.data, offset=byte_offset, strides=strides)
    # A storage at an address is a window of the physical memory: offsets count from the memory's first byte.
    origin = storage.start_partition * storage.partition_bytes + storage.start_byte
    return np.ndarray(shape, dtype.dtype, base.base, offset=origin + byte_offset, strides=strides)


# --- rearrange -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rearrangement:
    """A rearrange as three steps: split into named dimensions, reorder them, merge the groups."""

    split: tuple[int, ...]
    order: tuple[int, ...]
    merged: tuple[int, ...]


def _names(pattern: Sequence[Any]) -> list[tuple[str, ...]]:
    return [(group,) if isinstance(group, str) else tuple(group) for group in pattern]


def plan_rearrange(
    tensor: NkiTensor, source: Sequence[Any], target: Sequence[Any], fixed: dict[str, int]
) -> Rearrangement:
    """The three steps of ``rearrange(source, target, fixed)``."""
    source_groups, target_groups = _names(source), _names(target)
    what = f"rearrange({tuple(source)}, {tuple(target)})"
    before = [name for group in source_groups for name in group]
    after = [name for group in target_groups for name in group]
    if len(set(before)) != len(before) or sorted(before) != sorted(after):
        wrong(tensor, f"{what} does not name the same dimensions once on both sides")
    if len(source_groups) != len(tensor.shape):
        wrong(tensor, f"{what} has {len(source_groups)} groups for {len(tensor.shape)} dimensions")
    unknown = set(fixed) - set(before)
    if unknown:
        wrong(tensor, f"{what} is given sizes of {sorted(unknown)}, which it does not name")
    sizes: dict[str, int] = {}
    for group, total in zip(source_groups, tensor.shape, strict=True):
        wanted = tuple(fixed.get(name, -1 if len(group) > 1 else total) for name in group)
        sizes.update(zip(group, infer_sizes(tensor, wanted, total, what), strict=True))
    return Rearrangement(
        split=tuple(sizes[name] for name in before),
        order=tuple(before.index(name) for name in after),
        merged=tuple(math.prod(sizes[name] for name in group) for group in target_groups),
    )
