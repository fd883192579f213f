"""A backward slice of a run, as `Run.why` returns it: all that an element was made from."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nkitools.chip.element_boxes import boxes_text
from nkitools.chip.numerics import Array
from nkitools.record.instruction_record import InstructionRecord
from nkitools.rules.shown_text import preformatted


@dataclass(frozen=True, eq=False)
class SlicePart:
    """Elements of a tensor that an instruction on the way read or wrote.

    ``operand``: the parameter's name, or ``index`` for a tensor that chooses or addresses elements.
    ``tensor``, ``memory``, ``dtype``, ``shape``: of the tensor. ``rank``: the rank that owns it, None without ranks.
    ``indices``: of the elements, in the tensor's own dimensions, a row each.
    ``values``: of these elements, in the dtype in which they were read; None if unknown.
    ``sources``: positions in ``run.instructions`` of the last writers; -1 an argument or a constant, -2 never written.
    """

    operand: str
    tensor: str
    memory: str
    dtype: str
    shape: tuple[int, ...]
    rank: int | None
    indices: Array
    values: Array | None
    sources: tuple[int, ...] = ()

    def text(self) -> str:
        """Return ``x[3, 0:64]``: the elements as boxes."""
        mask = np.zeros(self.shape, np.bool_)
        mask[tuple(self.indices.T)] = True
        return boxes_text(self.tensor or "a tensor", mask)


@dataclass(frozen=True, eq=False)
class SliceStep:
    """An instruction on the way: its position in ``run.instructions``, the elements that it wrote and read.

    ``marks``: NaN, infinity, saturation or cancellation that entered here.
    ``terms``: the terms of a sum that makes one element; None if it is no sum, or not known as one.
    """

    position: int
    instruction: InstructionRecord
    results: tuple[SlicePart, ...]
    operands: tuple[SlicePart, ...]
    marks: tuple[str, ...] = ()
    terms: Array | None = None


@dataclass(frozen=True, eq=False)
class SliceDetails:
    """The contents of a slice, with the values of its elements.

    ``asked``: the elements. ``steps``: the instructions, the last one first. ``arguments``, ``constants``,
    ``unwritten``: the ends of the way. ``without_values``: why values are unknown; '' if they are known.
    ``is_exact``: whether every element contributes; False if an index on the device chooses elements and its values
    are unknown.
    """

    asked: SlicePart
    steps: tuple[SliceStep, ...]
    arguments: tuple[SlicePart, ...]
    constants: tuple[SlicePart, ...]
    unwritten: tuple[SlicePart, ...]
    without_values: str
    is_exact: bool


class Slice:
    """The instructions and data that some elements of a run were computed from.

    ``positions``: those of the instructions in ``run.instructions``, ascending. The rest is computed when it is first
    used, since values may take a second run; see `SliceDetails`. ``text_lines``: makes the text.
    """

    def __init__(
        self, positions: Array, details: Callable[[], SliceDetails], text_lines: Callable[[Slice], list[str]]
    ) -> None:
        self.positions = positions
        self._make = details
        self._text_lines = text_lines

    @cached_property
    def details(self) -> SliceDetails:
        """Return the contents of the slice, with values."""
        return self._make()

    @property
    def asked(self) -> SlicePart:
        """Return the elements that were asked for."""
        return self.details.asked

    @property
    def steps(self) -> tuple[SliceStep, ...]:
        """Return the instructions of the slice, the last one first."""
        return self.details.steps

    @property
    def arguments(self) -> tuple[SlicePart, ...]:
        """Return the elements of arguments that the result was computed from."""
        return self.details.arguments

    @property
    def constants(self) -> tuple[SlicePart, ...]:
        """Return the elements of constants that the result was computed from."""
        return self.details.constants

    @property
    def unwritten(self) -> tuple[SlicePart, ...]:
        """Return the elements that the result was computed from although nothing had written them."""
        return self.details.unwritten

    @property
    def without_values(self) -> str:
        """Return why values are unknown; '' if they are known."""
        return self.details.without_values

    @property
    def is_exact(self) -> bool:
        """Return False if the slice may have too many elements, as the value of an index on the device is unknown."""
        return self.details.is_exact

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """Return the slice as lines of text, the path folded over its loops."""
        return tuple(self._text_lines(self))

    def text(self) -> str:
        """Return the slice as text."""
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        return f"<Slice of {self.asked.text()}: {len(self.positions)} instructions>"

    def _repr_html_(self) -> str:
        """Return the text for a notebook that shows the last value of a cell."""
        return preformatted(self.text())

    def as_plain(self) -> dict[str, Any]:
        """Return the slice for JSON: its properties; elements as text, and a value where a part is one element."""
        return {
            "asked": _plain_part(self.asked),
            "steps": [
                {
                    "position": each.position,
                    "name": each.instruction.name,
                    "file": each.instruction.file,
                    "line": each.instruction.line,
                    "loops": each.instruction.loops,
                    "results": [_plain_part(one) for one in each.results],
                    "operands": [_plain_part(one) for one in each.operands],
                    "marks": list(each.marks),
                }
                for each in self.steps
            ],
            **{
                name: [_plain_part(one) for one in getattr(self, name)]
                for name in ("arguments", "constants", "unwritten")
            },
            "without_values": self.without_values,
            "is_exact": self.is_exact,
        }

    def __str__(self) -> str:
        return self.text()


def _plain_part(part: SlicePart) -> dict[str, Any]:
    """Return the elements as boxes, and the value of a single one."""
    values = part.values
    single = None if values is None or values.size != 1 or values.dtype.names else float(values.reshape(-1)[0])
    is_finite = single is not None and math.isfinite(single)
    return {
        "operand": part.operand,
        "elements": part.text(),
        "count": len(part.indices),
        "value": single if is_finite else None if single is None else str(single),
    }
