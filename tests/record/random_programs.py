"""Random programs whose elements are known without the simulator, and who wrote and read each of them last.

A program is a list of instructions. Each of them can be issued on tensors, and says which bytes it touches on arrays
of byte numbers that are sliced as the tensors are. What depends on what follows by looking back step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

GIVEN, UNWRITTEN = -1, -2
P, C = 32, 16  # partitions and columns of every tensor of the modern dialect
TILES = ("a", "b", "low", "middle", "high", "shifted")
HBM = ("x", "scratch")

Bytes = Any
"""An array of byte numbers: the shape of a tensor, and behind it the bytes of an element."""


@dataclass
class Touched:
    """What an instruction touches.

    ``adds``: what it reads where it was written through the same tensor, the destination of accumulating matmuls.
    ``others``: what it depends on by other ways, registers and transfers. ``tensor``: the tensor that it writes to.
    """

    reads: list[Bytes] = field(default_factory=list)
    writes: list[Bytes] = field(default_factory=list)
    may_write: list[Bytes] = field(default_factory=list)
    adds: list[Bytes] = field(default_factory=list)
    others: list[Touched] = field(default_factory=list)
    tensor: str = ""


@dataclass
class Memory:
    """The numbers of all bytes, and which of them an argument has."""

    size: int = 0
    given: list[tuple[int, int]] = field(default_factory=list)

    def take(self, *shape: int, given: bool = False) -> Bytes:
        """Return the numbers of new bytes."""
        count = int(np.prod(shape))
        if given:
            self.given.append((self.size, self.size + count))
        self.size += count
        return np.arange(self.size - count, self.size).reshape(shape)


class Expected:
    """The dependences of steps in their order, element by element."""

    def __init__(self, memory: Memory, steps: list[Touched]) -> None:
        self.steps = steps
        self.given = np.zeros(memory.size, np.bool_)
        for first, last in memory.given:
            self.given[first:last] = True
        self.masks = [
            [self._mask(parts) for parts in (each.reads, each.writes, each.may_write, each.adds)] for each in steps
        ]
        numbers = range(len(steps))
        self.places = {id(each): at for at, each in enumerate(steps)}
        self.flow = [self._flow(at) for at in numbers]
        self.output = [{each for each in self._writers(at, self._written(at)) if each >= 0} for at in numbers]
        self.anti = [self._readers(at, self._written(at)) for at in numbers]

    def _mask(self, parts: list[Bytes]) -> Any:
        found = np.zeros(self.given.size, np.bool_)
        for part in parts:
            found[np.asarray(part).reshape(-1)] = True
        return found

    def _written(self, at: int) -> Any:
        return self.masks[at][1] | self.masks[at][2]

    def _flow(self, at: int) -> set[int]:
        reads, _, _, adds = self.masks[at]
        step = self.steps[at]
        added = {each for each in self._writers(at, adds) if each >= 0 and self.steps[each].tensor == step.tensor}
        return self._writers(at, reads) | added | {self.places[id(each)] for each in step.others}

    def _writers(self, at: int, wanted: Any) -> set[int]:
        left, found = wanted.copy(), set[int]()
        for before in reversed(range(at)):
            if not left.any():
                return found
            if (left & self._written(before)).any():
                found.add(before)
            left &= ~self.masks[before][1]
        if (left & self.given).any():
            found.add(GIVEN)
        if (left & ~self.given).any():
            found.add(UNWRITTEN)
        return found

    def _readers(self, at: int, written: Any) -> set[int]:
        left, found = written.copy(), set[int]()
        for before in reversed(range(at)):
            reads, writes, _, adds = self.masks[before]
            left &= ~writes  # an instruction reads before it writes
            if (left & (reads | adds)).any():
                found.add(before)
        return found


@dataclass
class Instruction:
    """An instruction of a program: how it is issued on the tensors (by name), and what it touches."""

    issue: Callable[[dict[str, Any]], object]
    touched: Touched
    kind: str = ""  # the name of the function that drew it


Key = tuple[Any, ...]


def a_slice(random: Random, size: int, *, length: int | None = None) -> slice:
    """Return a slice of a dimension, sometimes with a step, never empty; of ``length`` elements where one is given."""
    step = random.choice((1, 1, 1, 2, 3))
    if length is None:
        if random.random() < 0.3:
            return slice(0, size)
        length = random.randrange(1, (size - 1) // step + 2)
    if (length - 1) * step >= size:
        step = 1
    first = random.randrange(size - (length - 1) * step)
    return slice(first, first + (length - 1) * step + 1, step)


def length_of(part: slice) -> int:
    """Return how many elements a slice has."""
    return len(range(part.start, part.stop, part.step or 1))


def like(random: Random, key: Key, shape: tuple[int, int]) -> Key:
    """Return slices of a tensor of this shape that have as many elements as others."""
    return tuple(a_slice(random, size, length=length_of(part)) for size, part in zip(shape, key, strict=True))
