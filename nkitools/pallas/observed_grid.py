"""The grid of a watched kernel: the points so far, which core is at which, and which of them may run at once."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from nkitools.pallas.calls import Call, Operand, show_shape
from nkitools.pallas.jax_types import Array
from nkitools.pallas.write_shadow import GIVEN


class WatchedGrid:
    """The points of the grid in the order in which cores came to them; a step is a place in that order."""

    def __init__(self) -> None:
        self.call: Call | None = None
        self.points: list[tuple[int, ...]] = []
        self._groups: list[tuple[int, ...]] = []
        self._current: dict[int, int] = {}
        self._since: dict[tuple[str, int], int] = {}

    def at(self, call: Call, point: tuple[int, ...], core: int) -> bool:
        """``core`` begins with a point of the grid; whether it differs from its last one in a parallel dimension."""
        before = self._groups[self._current[core]] if core in self._current else None
        self.call = call
        self.points.append(point)
        self._groups.append(tuple(each for each, free in zip(point, call.parallel, strict=False) if free))
        self._current[core] = len(self.points) - 1
        for operand in call.outputs:
            self._since.setdefault((operand.name, core), self._current[core])
        return before is not None and before != self._groups[-1]

    def text(self) -> str:
        """Return the sizes of the grid, ``(4, 2)``."""
        assert self.call is not None
        return show_shape(self.call.grid)

    def step(self, core: int) -> int:
        """Return the step that ``core`` is at; GIVEN before the first."""
        return self._current.get(core, GIVEN)

    def point(self, core: int) -> tuple[int, ...]:
        """Return the point of the grid that ``core`` is at."""
        step = self._current.get(core)
        return () if step is None else self.points[step]

    def visited_since(self, output: str, core: int) -> tuple[int, ...]:
        """Return the point at which ``core`` came to the block of an output that it has now."""
        return self.points[self._since.get((output, core), self.step(core))]

    def leave_block(self, output: str, core: int) -> None:
        """Store the block of an output; the next point begins with another block."""
        self._since.pop((output, core), None)

    def others(self, steps: Array, core: int) -> Any:
        """Return the steps among ``steps`` whose point differs from this one in a parallel dimension."""
        assert self.call is not None
        if not any(self.call.parallel):
            return np.empty(0, np.int32)
        written = np.unique(steps[steps >= 0])
        own = self._groups[self.step(core)]
        return written[[self._groups[each] != own for each in written]]

    def summed(self) -> list[int]:
        """Return the dimensions of the grid, of more than one point, on which no output's block depends."""
        assert self.call is not None
        unused = [each.unused_axes(self.call.grid) for each in self.call.outputs if each.memory not in ("any", "hbm")]
        common = set.intersection(*unused) if unused else set()
        return [axis for axis in sorted(common) if self.call.grid[axis] != 1]

    def first_write(self) -> str:
        """Return where a sum begins, as a remedy; '' where the outputs' index maps use each dimension of the grid."""
        axes = self.summed()
        if not axes:
            return ""
        first = " & ".join(f"(pl.program_id({axis}) == 0)" for axis in axes)
        first = first[1:-1] if len(axes) == 1 else first
        return f"Write it first where a block of the output begins: pl.when({first})."

    def restart(self) -> str:
        """Return what to do about a value carried over between points of parallel dimensions; '' where it is open."""
        assert self.call is not None
        axes = [axis for axis in self.summed() if self.call.parallel[axis]]
        if axes:
            return f'Make dimension {", ".join(map(str, axes))} "arbitrary": the sum goes over it.'
        return self.first_write().replace("Write it first", "Start the sum anew")

    def other_order(self, operand: Operand) -> str:
        """Return which dimensions of the grid to put last, so that a block is visited once; '' if they are last."""
        assert self.call is not None
        unused, sizes = operand.unused_axes(self.call.grid), len(self.call.grid)
        if not unused or min(unused) == sizes - len(unused):
            return ""
        many = f"dimension{'s' if len(unused) > 1 else ''} {', '.join(map(str, sorted(unused)))}"
        return f"Put {many} of the grid last, in the grid and in all index maps: {operand.index_map()} does not use it."

    def exchange(self, operand: Operand) -> str:
        """Return which two grid indices to exchange in an index map so that it stays within its blocks; else ''."""
        assert self.call is not None
        own, grid = operand.own_axes(), self.call.grid
        if None in own:
            return ""
        for first, second in combinations(sorted({axis for axis in own if axis is not None}), 2):
            other = {first: second, second: first}
            sizes = [grid[other.get(axis, axis)] for axis in own if axis is not None and axis < len(grid)]
            fits = (size is not None and size <= many for size, many in zip(sizes, operand.blocks, strict=False))
            if len(sizes) == len(own) and all(fits):
                return (
                    f"Exchange grid indices {first} and {second} in {operand.index_map()}, which then stays within its "
                    f"{show_shape(operand.blocks)} blocks, or make the grid less."
                )
        return ""

    def in_parallel(self) -> str:
        """Return a clause for messages about the parallel dimensions."""
        assert self.call is not None
        dimensions = ", ".join(str(index) for index, each in enumerate(self.call.parallel) if each)
        words = f"s {dimensions} of the grid are" if "," in dimensions else f" {dimensions} of the grid is"
        return f", and dimension{words} parallel: two cores may do so at once, in any order"
