"""The elements that made others, by their indices, as an element map has them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.issue.element_maps import Elements, From
from nkitools.issue.element_rules import Shape
from nkitools.record.record import Record


def sources_at(elements: Elements, result: str, indices: Array, shapes: Mapping[str, Shape]) -> dict[From, Array]:
    """Return the sources of the elements at indices; both are int arrays (elements, dimensions)."""
    wanted = np.zeros(shapes[result], np.bool_)
    wanted[tuple(indices.T)] = True
    return {source: np.argwhere(mask) for source, mask in elements.sources(result, wanted, shapes).items()}


def sources_in(record: Record, position: int, indices: Array) -> dict[From, Array]:
    """Return the same of the ``dst`` of the instruction at a position of a record."""
    plan = record.plan_at(position)
    accesses = zip(plan.operands, record.accesses(position), strict=True)
    shapes: dict[str, Shape] = {name: access.layout.shape for name, access in accesses}
    return sources_at(plan.elements, "dst", indices, {**shapes, **dict.fromkeys(plan.registers, ())})
