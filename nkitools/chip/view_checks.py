"""The arithmetic of views: bounds, strides and patterns, with the refusals that name the author's tensor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from nkitools.chip.argument_types import Pattern
from nkitools.chip.core import CORE, check_width
from nkitools.chip.dtypes import DType, DTypeLike, UnknownDType, as_dtype
from nkitools.chip.element_boxes import box_text
from nkitools.chip.memory_region import MEMORY_NAMES as MEMORY_NAMES
from nkitools.chip.own_indices import own_box, slot_of
from nkitools.facts.versions import language_of
from nkitools.rules.finding import refuse

if TYPE_CHECKING:
    from nkitools.chip.memory import Claim
    from nkitools.chip.strided_view import StridedView


def describe(tensor: StridedView) -> str:
    """``tensor `x_tile` (SBUF, float32 [128, 512])``; of a grid's selection its tile, as `StridedView.grid` has it."""
    grid = getattr(tensor, "grid", None)
    words = f"tensor{name_of(tensor, part=slot_of(tensor))}" if grid is None else grid.words()
    return f"{words} {_kind(tensor)}"


def described(claim: Claim) -> str:
    """Return the text of `describe` for the tensor of a claim."""
    name = f" `{claim.name}`" if claim.name else f" \x00{claim.id}\x00"
    return f"{claim.words or f'tensor{name}'} ({MEMORY_NAMES[claim.memory]}, {claim.dtype} {list(claim.shape)})"


def plain(tensor: StridedView) -> str:
    """Return the text of `describe` for use without a reporter: without the author's name of an unnamed tensor."""
    return f"tensor{plain_name_of(tensor, part=slot_of(tensor))} {_kind(tensor)}"


def name_of(tensor: StridedView, before: str = "", part: str = "") -> str:
    """Return `` `x_tile` `` behind ``before``, which is "" or " of"; the reporter fills in a name that it can find.

    ``part``: the indices of a part of the tensor, which belong to the name.
    """
    return plain_name_of(tensor, before, part) or f"{before} \x00{tensor.storage.id}\x00{part}"


def plain_name_of(tensor: StridedView, before: str = "", part: str = "") -> str:
    """Return the name that the author gave in the call, after ``before``; '' if there is none."""
    return f"{before} `{tensor.name}{part}`" if tensor.name else ""


def _kind(tensor: StridedView) -> str:
    return f"({MEMORY_NAMES[tensor.buffer]}, {tensor.dtype} {list(tensor.shape)})"


def made_at(tensor: StridedView) -> str:
    """Return a mark that the reporter replaces by `` (line 12)``, the line of the tensor's creation, or ''."""
    return f"\x01{tensor.storage.id}\x01"


def wrong(tensor: StridedView, sentence: str, remedy: str = "") -> NoReturn:
    """Refuse a view that this tensor's shape or layout does not have (NK109)."""
    refuse("NK109", f"{sentence}; it is asked of {describe(tensor)}", about=(tensor,), remedy=remedy)


def one_to_broadcast(shape: Sequence[int], dim: int) -> str:
    """Return how a dimension of a shape becomes one of size 1."""
    if len(shape) == 1:
        return f"Reshape it to a row first, .reshape((1, {shape[0]})), and broadcast dimension 0 of that."
    return f"Take one element of dimension {dim} first, [{':, ' * dim}0:1], or broadcast a dimension of size 1."


def wrong_call(tensor: StridedView, sentence: str) -> NoReturn:
    """Refuse an argument that is not of the documented form (NK609)."""
    refuse("NK609", f"{sentence}; it is asked of {describe(tensor)}", about=(tensor,))


def out_of_bounds(tensor: StridedView, dim: int, what: str, first: int, last: int) -> NoReturn:
    """Refuse indices outside of the tensor (NK402): ``first`` to ``last``, named ``what`` in the message."""
    from nkitools.chip.pictures import picture_of_range

    part = _of_a_part(tensor)
    refuse(
        "NK402",
        f"index {what} is out of bounds for dimension {dim} of {describe(tensor)}, which has size {tensor.shape[dim]}"
        f"{part}",
        about=(tensor,),
        remedy=_IN_A_PART if part else "",
        picture=lambda: picture_of_range(tensor.shape[dim], first, max(first, last)),
        facts={"axis": dim, "first_index": first, "last_index": last, "extent": tensor.shape[dim]},
    )


def _of_a_part(tensor: StridedView) -> str:
    """Return the end of a sentence that says which part of its tensor a view is; '' if it has all of a dimension."""
    box, shape = own_box(tensor), tensor.storage.shape
    if box is None or all(len(each) == size for each, size in zip(box, shape, strict=True)):
        return ""
    return f": it is the part{name_of(tensor, part=box_text(box))} of a tensor of {list(shape)}"


_IN_A_PART = (
    "Indices count from the beginning of the part: take it from the whole tensor, or leave out what the part has done. "
    "For a last tile that is smaller, min(end, size) is the bound."
)


def width(tensor: StridedView, dtype: DType, size: int) -> None:
    """Refuse a view of ``size`` 64-bit integers if the NKI version has none (NK301)."""
    core = CORE.get()
    check_width(dtype, tensor.buffer, size, language_of() if core is None else core.language)


def keep_partition(tensor: StridedView, what: str, rule: str = "NK109") -> NoReturn:
    """Refuse a view that would move data between partitions."""
    message = (
        f"{what} would change the partition dimension of {describe(tensor)}; data moves between partitions only by an "
        "instruction (nisa.nc_transpose, nisa.dma_copy, nisa.nc_matmul)"
    )
    rows = tensor.shape[0]
    remedy = (
        f"Begin the shape with {rows}, the partitions that{name_of(tensor)} has{made_at(tensor)}. To move elements to "
        "other partitions copy it to HBM, reshape it there, and load it."
    )
    refuse(rule, message, about=(tensor,), remedy=remedy)


def known_dtype(dtype: DTypeLike, *about: StridedView) -> DType:
    """Return ``dtype`` as a DType; NK301 if NKI has no such dtype."""
    try:
        return as_dtype(dtype)
    except UnknownDType as error:
        refuse("NK301", str(error), about=about)


def integer(tensor: StridedView, value: int, what: str) -> int:
    """Return an integer argument; NK609 for anything else."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        wrong_call(tensor, f"{what} must be an integer, it is {value!r}")
    return int(value)


def integers(tensor: StridedView, values: Iterable[Any], what: str) -> tuple[int, ...]:
    """Return a sequence of integers; NK609 for anything else."""
    if type(values) is tuple and all(type(value) is int for value in values):
        return values
    if isinstance(values, str) or not isinstance(values, Iterable):
        wrong_call(tensor, f"{what} must be a tuple of integers, it is {values!r}")
    return tuple(integer(tensor, value, f"each of {what}") for value in values)


def dimension(tensor: StridedView, dim: int, extra: int = 0) -> int:
    """``dim`` as a non-negative dimension of the tensor (of ``extra`` more dimensions)."""
    ndim = len(tensor.shape) + extra
    number = integer(tensor, dim, "a dimension")
    if not -ndim <= number < ndim:
        wrong(tensor, f"dimension {number} does not exist")
    return number % ndim


Call = tuple[Any, ...]  # a method's name and its arguments, for a message that is rarely written


def shown(call: Call) -> str:
    """Return a call as its author wrote it, more or less."""
    return f"{call[0]}({', '.join(map(str, call[1:]))})"


def infer_sizes(tensor: StridedView, sizes: tuple[int, ...], total: int, call: Call) -> tuple[int, ...]:
    """``sizes`` with its one -1 filled in; their product must be ``total``."""
    if sizes and min(sizes) > 0 and math.prod(sizes) == total:
        return sizes
    if any(size < -1 or size == 0 for size in sizes):
        wrong(tensor, f"{shown(call)} has sizes that are not positive")
    if sizes.count(-1) > 1:
        wrong(tensor, f"{shown(call)} leaves more than one size open")
    known = math.prod(size for size in sizes if size != -1)
    if total % known == 0:
        sizes = tuple(total // known if size == -1 else size for size in sizes)
    if math.prod(sizes) != total:
        wrong(tensor, f"{shown(call)} does not hold the {total} elements")
    return sizes


def dense_strides(shape: Sequence[int], itemsize: int) -> list[int]:
    """Byte strides of a row-major array."""
    strides = [itemsize] * len(shape)
    for dim in range(len(shape) - 2, -1, -1):
        strides[dim] = strides[dim + 1] * shape[dim + 1]
    return strides


def regrouped(shape: Sequence[int], strides: Sequence[int], sizes: Sequence[int], itemsize: int) -> list[int] | None:
    """Return byte strides for the same elements in the same order with other ``sizes``; None if that needs a copy."""
    chunks: list[list[int]] = []  # [elements, stride]: neighbouring dimensions that lie in memory as one
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if chunks and chunks[-1][1] == size * stride:
            chunks[-1] = [chunks[-1][0] * size, stride]
        else:
            chunks.append([size, stride])
    found: list[int] = []
    left, stride = 1, itemsize  # of the chunk being split, from its end
    for size in reversed(sizes):
        if left == 1 and size > 1:
            left, stride = chunks.pop()
        found.append(stride)
        if left % size:
            return None
        left //= size
        stride *= size
    return found[::-1]


def first_byte(tensor: StridedView) -> int:
    """Return the first byte of a view in its storage, counted in the storage's own elements."""
    partition, rest = divmod(tensor.byte_offset, tensor.storage.partition_bytes)
    return partition * tensor.storage.free_bytes + rest


def recast(tensor: StridedView, target: DType) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and byte strides of the same bytes as elements of another size."""
    itemsize, wanted = tensor.dtype.itemsize, target.itemsize
    shape, strides = tensor.shape, tensor.array.strides
    what = f"view({target})"
    if strides[-1] != itemsize and shape[-1] != 1:
        wrong(tensor, f"{what} needs a contiguous last dimension, its stride is {strides[-1] // itemsize} elements")
    if shape[-1] * itemsize % wanted:
        wrong(tensor, f"{what} needs a last dimension whose {shape[-1] * itemsize} bytes divide by its {wanted}")
    for dim in range(len(shape) - 1):
        # Partitions are apart: their distance in elements is the storage's free size, whatever it is in memory.
        step = tensor.storage.free_bytes if dim == 0 and tensor.on_chip else strides[dim]
        if shape[dim] != 1 and step % wanted:
            wrong(tensor, f"{what} needs steps of dimension {dim} that divide by its {wanted} bytes, they are {step}")
    start = first_byte(tensor)
    if start % wanted:
        wrong(tensor, f"{what} needs a first byte that divides by its {wanted}, it is byte {start} of the storage")
    return (*shape[:-1], shape[-1] * itemsize // wanted), (*strides[:-1], wanted)


def pairs_of(tensor: StridedView, pattern: Pattern) -> list[tuple[int, int]]:
    """Return an access pattern as (stride, count) pairs; NK609 for what is none."""
    if not isinstance(pattern, (list, tuple)) or not pattern:
        wrong_call(tensor, f"ap's pattern must be a list of [stride, count], it is {pattern!r}")
    pairs: list[tuple[int, int]] = []
    for pair in pattern:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            wrong_call(tensor, f"ap's pattern must be a list of [stride, count], it is {pattern!r}")
        step, count = pair
        if type(step) is not int or type(count) is not int:
            step, count = integers(tensor, pair, "ap's strides and counts")
        if count < 1 or step < 0:
            wrong(tensor, f"ap's counts must be at least 1 and its strides not negative, the pattern is {pattern!r}")
        pairs.append((step, count))
    return pairs


def pattern_start(tensor: StridedView, offset: int, target: DType) -> int:
    """Return the first element of an access pattern, in elements of ``target``: the view's begin plus ``offset``."""
    begin = first_byte(tensor)
    if tensor.on_chip and tensor.storage.free_bytes % target.itemsize:
        wrong(tensor, f"a partition of {tensor.storage.free_bytes} bytes does not divide into elements of {target}")
    if begin % target.itemsize:
        wrong(tensor, f"ap(dtype={target}) cannot begin at byte {begin}, within an element of {target}")
    return begin // target.itemsize + offset


def pattern_beyond(tensor: StridedView, pairs: list[tuple[int, int]], start: int, dtype: DType) -> str:
    """Return a clause on how an access pattern from element ``start`` leaves the storage; '' if it does not.

    Errors: NK109 and NK111 if its partitions on chip are not consecutive.
    """
    if tensor.on_chip:
        _check_partitions(tensor, pairs, dtype)
    storage = tensor.storage
    if start < 0:
        return f"ap begins at element {start}, before the storage of {describe(tensor)}"
    if not storage.on_chip:
        reach, total = start + sum(step * (count - 1) for step, count in pairs), storage.nbytes // dtype.itemsize
        return f"ap reaches element {reach} of {describe(tensor)}, whose storage has {total}" if reach >= total else ""
    free = storage.free_bytes // dtype.itemsize
    first_partition, first_free = divmod(start, free)
    last = first_partition + pairs[0][1] - 1
    if last >= storage.shape[0]:
        return f"ap reaches partition {last} of {describe(tensor)}, whose storage has {storage.shape[0]}"
    reach = first_free + sum(stride * (count - 1) for stride, count in pairs[1:])
    if reach >= free:
        has = f"whose storage has {free} per partition"
        return f"ap reaches element {reach} of a partition of {describe(tensor)}, {has}"
    return ""


def _check_partitions(tensor: StridedView, pairs: list[tuple[int, int]], dtype: DType) -> None:
    free = tensor.storage.free_bytes // dtype.itemsize
    (step, partitions), inner = pairs[0], pairs[1:]
    if not inner:
        wrong(tensor, f"ap({pairs}) has no free dimension")
    if step != free and partitions > 1:
        rule = "NK111" if step == 0 else "NK109"
        first = (
            f"ap's first stride is {step}, it must be {free}, the free size of the storage (partitions are consecutive)"
        )
        pattern = [[free, partitions], *(list(each) for each in inner)]
        remedy = f"Write ap({pattern}): the first pair is a stride of {free} and the number of partitions."
        about = f"{first}; it is asked of {describe(tensor)}"
        refuse(rule, about, about=(tensor,), remedy=remedy if rule == "NK109" else "")


def pattern_strides(
    tensor: StridedView, pairs: list[tuple[int, int]], start: int, dtype: DType
) -> tuple[tuple[int, ...], int]:
    """Byte strides and byte offset of an access pattern that begins at element ``start`` of the storage."""
    storage = tensor.storage
    if not storage.on_chip:
        return tuple(step * dtype.itemsize for step, _ in pairs), start * dtype.itemsize
    first_partition, first_free = divmod(start, storage.free_bytes // dtype.itemsize)
    inner = pairs[1:]
    strides = (storage.partition_bytes, *(stride * dtype.itemsize for stride, _ in inner))
    return strides, first_partition * storage.partition_bytes + first_free * dtype.itemsize
