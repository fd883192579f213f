"""The grid of a watched kernel: the points so far, which core is at which, and which of them may run at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.pallas.calls import Call, show_shape
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

    def in_parallel(self) -> str:
        """Return a clause for messages about the parallel dimensions."""
        assert self.call is not None
        dimensions = ", ".join(str(index) for index, each in enumerate(self.call.parallel) if each)
        words = f"s {dimensions} of the grid are" if "," in dimensions else f" {dimensions} of the grid is"
        return f", and dimension{words} parallel: two cores may do so at once, in any order"
