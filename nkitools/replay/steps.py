"""The steps of a run: its computations, and the parts of memory that they work on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nkitools.chip.core import Core
from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.record.prints.device_print import Print


def bytes_of(array: Array) -> Array:
    """Return the bytes of a contiguous array, as a view."""
    return array.reshape(-1).view(np.uint8)


@dataclass(eq=False, slots=True)
class Root:
    """Memory that steps work on: an argument's, a result's, that of a constant, or memory of the kernel's own."""

    nbytes: int
    argument: int = -1  # its number among the arguments
    result: int = -1  # its number among the storages of the results
    constant: Array | None = None  # its bytes, where they never change
    is_written: bool = False  # some step writes to it

    @property
    def is_own(self) -> bool:
        """Return whether the kernel alone sees the memory."""
        return self.argument < 0 and self.result < 0 and self.constant is None


@dataclass(frozen=True, slots=True)
class View:
    """A part of a root, as NumPy describes it: ``offset`` and ``strides`` in bytes."""

    root: Root
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]

    def on(self, memory: Array) -> Array:
        """Return the part of these bytes."""
        return np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)

    def of(self, array: Array) -> Array:
        """Return the part of the bytes of a contiguous array; the array itself where it is that part."""
        is_it = array.shape == self.shape and array.strides == self.strides and array.dtype == self.dtype
        return array if is_it and self.offset == 0 else self.on(bytes_of(array))

    @property
    def is_whole(self) -> bool:
        """Return whether it is all of the root, one row behind the other."""
        expected = self.dtype.itemsize
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return False
            expected *= size
        return self.offset == 0 and expected == self.root.nbytes

    @property
    def bounds(self) -> tuple[int, int]:
        """Return its first byte and the one behind its last."""
        reach = [(size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True)]
        low = self.offset + sum(each for each in reach if each < 0)
        return low, self.offset + sum(each for each in reach if each > 0) + self.dtype.itemsize

    def meets(self, other: View) -> bool:
        """Return whether two parts may have a byte in common."""
        if self.root is not other.root:
            return False
        (first, last), (begin, end) = self.bounds, other.bounds
        if last <= begin or end <= first:
            return False
        if self.strides == other.strides and len(self.shape) == 2 and self.strides[0] > self.strides[1] > 0:
            # Two rectangles of one matrix.
            (row, column), (other_row, other_column) = (divmod(each.offset, self.strides[0]) for each in (self, other))
            step, size = self.strides[1], self.dtype.itemsize
            width, other_width = ((each.shape[1] - 1) * step + size for each in (self, other))
            if column + width <= self.strides[0] and other_column + other_width <= self.strides[0]:
                beside = column + width <= other_column or other_column + other_width <= column
                return not (beside or row + self.shape[0] <= other_row or other_row + other.shape[0] <= row)
        return True


@dataclass(eq=False)
class Engines:
    """The part of a core that computations use beside their operands: the state of its engines, new in each replay."""

    generation: Generation
    grid: tuple[int, ...]
    program: tuple[int, ...]
    rank: int | None
    team: tuple[int, ...]
    record: None = None  # so that no use of a state is recorded
    reduce_registers: dict[str, Array] = field(default_factory=dict)
    random_states: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, core: Core) -> Engines:
        """Return those of a core."""
        return cls(core.generation, core.grid, core.program, core.rank, core.team)

    def reset(self) -> None:
        """Let no instruction have run."""
        self.reduce_registers.clear()
        self.random_states.clear()


@dataclass(eq=False, slots=True)
class Step:
    """One computation: ``compute(*arguments, **keywords)`` with the arrays of the views among the arguments."""

    name: str  # of its instruction
    compute: Callable[..., Any]
    arguments: list[Any]  # views, and other values as they are
    outputs: tuple[int, ...]  # which of the arguments are written
    engines: Engines | None = None  # of the program
    keywords: dict[str, Any] = field(default_factory=dict)
    masks: dict[int, Array] = field(default_factory=dict)  # which elements of an output are written, where not all are
    kind: str = ""  # for what passes look at: "copy", "transpose", "matmul", "narrow matmul", "conversion",
    # "fill", "gather" (a copy of rows that an index names), "chosen" (another computation on such rows)
    printed: Print | None = None  # of a device print: all of it but its value
    overwrites: bool = False  # of a matmul: what its output held plays no part

    def copied(self) -> Step:
        """Return the same step with arguments of its own; a third of the time of `replace`."""
        return Step(
            self.name, self.compute, list(self.arguments), self.outputs, self.engines, self.keywords, self.masks,
            self.kind, self.printed, self.overwrites,
        )  # fmt: skip

    def views(self) -> list[tuple[int, View]]:
        """Return its views with their numbers."""
        return [(number, each) for number, each in enumerate(self.arguments) if each.__class__ is View]

    def writes(self) -> list[View]:
        """Return the parts that it writes to."""
        return [self.arguments[number] for number in self.outputs]

    def sources(self) -> list[View]:
        """Return the parts that it reads, but for what its outputs hold."""
        return [view for number, view in self.views() if number not in self.outputs]
