"""The last writers of the elements that instructions read, and the element maps of plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nkitools.issue.element_map_text import elements_from
from nkitools.issue.element_maps import Elements
from nkitools.record.instruction_record import RecordedPlan
from nkitools.why.memory_units import Memories

if TYPE_CHECKING:
    from nkitools.record.dependences import Dependences


class LastWriters:
    """The last writers of the elements that each operand reads, by the dependences of a run."""

    def __init__(self, dependences: Dependences, memories: list[Memories]) -> None:
        rows = dependences.by_operand
        self._ends, self._sources = rows.starts.tolist(), rows.sources.tolist()
        self._bases = dependences.bases
        before = np.cumsum([0, *(each.columns.positions.size for each in memories)]).tolist()
        self._firsts = [
            (each.columns.first_operands + first).tolist() for each, first in zip(memories, before, strict=False)
        ]

    def of(self, number: int, position: int, operand: int) -> list[int]:
        """Return the positions in a record of the last writers of an operand's elements, ascending."""
        at, base = self._firsts[number][position] + operand, self._bases[number]
        return [each - base for each in self._sources[self._ends[at] : self._ends[at + 1]] if each >= base]


def elements_of(plan: RecordedPlan) -> Elements:
    """Return the element map of a plan, which may come from a file. ValueError for an older file, which has no maps."""
    found = getattr(plan, "elements", None)
    if found is None and not plan.element_map:
        raise ValueError("the saved run is of an older version, which kept no element maps: run the kernel again")
    return elements_from(plan.element_map) if found is None else found
