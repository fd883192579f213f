"""Layouts: the shape, strides and dtype of views, interned; guards see nothing else of a view."""

from __future__ import annotations

import math
import sys
from itertools import count
from typing import Any

from nkitools.chip.dtypes import DType, float32
from nkitools.chip.memory_region import ON_CHIP, MemoryRegion
from nkitools.facts.light_classes import dataclass, field


@dataclass(eq=False, slots=True)
class Layout:
    """The part of a view that guards may see: interned, so that equal layouts are one object and hash by identity.

    ``strides``, ``free_offset``, ``span``, ``reach``, ``dense``, ``run`` and ``grain`` are in bytes.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    memory: MemoryRegion
    start_partition: int  # on chip; 0 in HBM
    free_offset: int  # within its PSUM bank; 0 elsewhere
    partition_step: int  # 1: the partitions are neighbours, as in HBM
    placed_to_fit: bool  # the compiler puts the storage where this view may begin, see `Storage`
    reinterprets: bool  # the storage's elements have another dtype
    id: int = field(init=False)  # the number in `LAYOUTS`
    on_chip: bool = field(init=False)
    elements: int = field(init=False)
    nbytes: int = field(init=False)
    partitions: int = field(init=False)
    free_elements: int = field(init=False)
    free_bytes: int = field(init=False)  # of one partition's elements
    injective: bool = field(init=False)  # no two indices name the same byte
    contiguous: bool = field(init=False)
    span: int = field(init=False)  # from the first byte to behind the last
    reach: int = field(init=False)  # on chip the same of a partition's elements; 0 where some lie before the first one
    dense: int = field(init=False)  # the bytes that reach over, where they are all the view's; else 0
    run: int = field(init=False)  # the longest contiguous stretch at the end
    runs: tuple[tuple[int, int], ...] = field(init=False)  # (size, stride) outside of it, on chip always the partitions
    # Of views of this one, by first row and shape; None where these do not decide them.
    parts: dict[tuple[int, tuple[int, ...]], Layout] | None = field(init=False, repr=False)
    grain: int = field(init=False)  # divides the run and all strides outside of it but that of the partitions

    def __post_init__(self) -> None:
        shape, strides, itemsize = self.shape, self.strides, self.dtype.itemsize
        self.id = next(_numbers)
        self.on_chip = self.memory in ON_CHIP
        self.parts = None if self.memory is MemoryRegion.psum else {}
        self.elements = math.prod(shape)
        self.nbytes = self.elements * itemsize
        self.partitions = shape[0]
        self.free_elements = math.prod(shape[1:])
        self.free_bytes = self.free_elements * itemsize
        self.injective = _injective(shape, strides, itemsize)
        self.contiguous = is_dense(shape, strides, itemsize)
        # Towards the end of the storage only: a view that runs backwards begins at its last byte.
        forward = (max(0, (size - 1) * stride) for size, stride in zip(shape, strides, strict=True))
        self.span = sum(forward) + itemsize
        kept = 1 if self.on_chip else 0
        free = list(zip(shape, strides, strict=True))[kept:]
        self.reach = 0 if min(strides) < 0 else sum((size - 1) * stride for size, stride in free) + itemsize
        inner, self.run = run_of(free, itemsize)
        self.runs = (*zip(shape[:kept], strides[:kept], strict=True), *inner)
        self.dense = self.run if not inner and self.partition_step == 1 and self.injective else 0
        self.grain = math.gcd(self.run, *(stride for _, stride in inner))


_layouts: dict[tuple[Any, ...], Layout] = {}
known_layout = _layouts.get
LAYOUTS: dict[int, Layout] = {}  # by id; records name layouts so
_numbers = count()  # no number is given twice: what is known of a form of runs may hold it


def _injective(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Return whether no two indices share a byte (a sufficient test: each stride exceeds all inner dimensions)."""
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
    place = (start_partition, free_offset, partition_step, placed_to_fit, reinterprets)
    key = (shape, strides, dtype.index, memory, place)
    layout = _layouts.get(key)
    if layout is None:
        layout = _layouts[key] = Layout(shape, strides, dtype, memory, *place)
        LAYOUTS[layout.id] = layout
    return layout


def forget_unused(named: set[int]) -> None:
    """Forget the layouts that nothing refers to, but for those with these numbers; while no run goes on."""
    probe = ("a layout that nothing else refers to",)
    _layouts[probe] = Layout((1,), (1,), float32, MemoryRegion.sbuf, 0, 0, 1, placed_to_fit=False, reinterprets=False)
    LAYOUTS[_layouts[probe].id] = _layouts[probe]
    alone = _references(probe)
    _forget_parts()
    for key in list(_layouts):
        number = _layouts[key].id
        if number not in named and _references(key) <= alone:
            del _layouts[key], LAYOUTS[number]


def _forget_parts() -> None:
    for layout in _layouts.values():
        if layout.parts:
            layout.parts.clear()


def _references(key: tuple[Any, ...]) -> int:
    """Return the number of references to a layout, those of the tables included."""
    return sys.getrefcount(_layouts[key])
