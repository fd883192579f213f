"""Layouts: what guards may know of a view, interned."""

from __future__ import annotations

import math
from typing import Any

from nkitools.chip.dtypes import DType
from nkitools.chip.memory_region import ON_CHIP, MemoryRegion


class Layout:
    """The part of a view that guards may see: interned, so that equal layouts are one object and hash by identity.

    ``strides`` and ``free_offset`` are in bytes. ``start_partition``, ``free_offset`` (within its PSUM bank) and
    ``partition_step`` (1: the partitions are neighbours) are its place on chip; they are 0, 0 and 1 in HBM.
    ``runs`` are the (size, stride) pairs of the dimensions outside of the longest contiguous ``run`` of bytes at the
    end (on chip the partitions are always among them); ``grain`` divides that run and the strides of all of them but
    the partitions. ``placed_to_fit``: the compiler puts the storage where this view may begin (`Storage`), so that
    ``start_partition`` is only its place in there. ``reinterprets``: the storage's elements have another dtype.
    """

    __slots__ = (
        "contiguous",
        "dtype",
        "elements",
        "free_elements",
        "free_offset",
        "grain",
        "id",
        "injective",
        "memory",
        "nbytes",
        "on_chip",
        "partition_step",
        "partitions",
        "placed_to_fit",
        "reinterprets",
        "run",
        "runs",
        "shape",
        "span",
        "start_partition",
        "strides",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: DType,
        memory: MemoryRegion,
        start_partition: int,
        free_offset: int,
        partition_step: int,
        placed_to_fit: bool,
        reinterprets: bool,
    ) -> None:
        self.id = len(LAYOUTS)
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.memory = memory
        self.on_chip = memory in ON_CHIP
        self.start_partition = start_partition
        self.free_offset = free_offset
        self.partition_step = partition_step
        self.placed_to_fit = placed_to_fit
        self.reinterprets = reinterprets
        self.elements = math.prod(shape)
        self.nbytes = self.elements * dtype.itemsize
        self.partitions = shape[0]
        self.free_elements = math.prod(shape[1:])
        self.injective = _injective(shape, strides, dtype.itemsize)
        self.contiguous = is_dense(shape, strides, dtype.itemsize)
        # Towards the end of the storage only: a view that runs backwards begins at its last byte.
        forward = (max(0, (size - 1) * stride) for size, stride in zip(shape, strides, strict=True))
        self.span = sum(forward) + dtype.itemsize
        kept = 1 if self.on_chip else 0
        inner, self.run = run_of(list(zip(shape, strides, strict=True))[kept:], dtype.itemsize)
        self.runs = (*zip(shape[:kept], strides[:kept], strict=True), *inner)
        self.grain = math.gcd(self.run, *(stride for _, stride in inner))


_layouts: dict[tuple[Any, ...], Layout] = {}
LAYOUTS: list[Layout] = []  # by id; a memo as long as the process, since records name layouts by id


def _injective(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Return whether no two indices name the same byte (sufficient: each stride clears everything inside it)."""
    reach = itemsize
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size > 1:
            if stride < reach:
                return False
            reach = stride * (size - 1) + reach
    return True


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Return whether each stride is the product of the sizes inside it (in bytes); dimensions of size 1 have no say."""
    expected = itemsize
    for stride, size in zip(reversed(strides), reversed(shape), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def run_of(dimensions: list[tuple[int, int]], itemsize: int) -> tuple[list[tuple[int, int]], int]:
    """Return the dimensions outside of the contiguous bytes at the end, and how many bytes those are."""
    dimensions = [(size, stride) for size, stride in dimensions if size != 1]
    run = itemsize
    while dimensions and dimensions[-1][1] == run:
        run *= dimensions.pop()[0]
    return dimensions, run


def layout_of(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: DType,
    memory: MemoryRegion,
    start_partition: int,
    free_offset: int,
    partition_step: int,
    placed_to_fit: bool = False,
    reinterprets: bool = False,
) -> Layout:
    """Return the one Layout of these properties."""
    key = (
        shape,
        strides,
        dtype.index,
        memory,
        start_partition,
        free_offset,
        partition_step,
        placed_to_fit,
        reinterprets,
    )
    layout = _layouts.get(key)
    if layout is None:
        layout = Layout(
            shape,
            strides,
            dtype,
            memory,
            start_partition,
            free_offset,
            partition_step,
            placed_to_fit,
            reinterprets,
        )
        _layouts[key] = layout
        LAYOUTS.append(layout)
    return layout
