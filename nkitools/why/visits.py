"""The instructions on a walk back, with the elements that each made and read."""

from __future__ import annotations

from dataclasses import dataclass, field

from nkitools.chip.numerics import Array
from nkitools.record.rows import Access

INDEX = "index"
"""The name of an operand that is no argument: an index that chooses elements, or an address."""


@dataclass(eq=False, slots=True)
class Read:
    """The elements that an instruction read of an operand.

    ``number``, ``position``: of the record and the instruction that the operand belongs to. ``access``: its view.
    ``wanted``: a mask of the elements. ``writers``: their units by the position of the last writer, `GIVEN` or
    `UNWRITTEN`.
    """

    operand: str
    number: int
    position: int
    access: Access
    wanted: Array
    writers: dict[int, Array] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Visit:
    """An instruction on a walk back.

    ``made``: masks of the wanted elements, by result. ``results``: the views of the results. ``reads``: its operands on
    the walk, by record, position and operand number.
    """

    made: dict[str, Array] = field(default_factory=dict)
    results: dict[str, Access] = field(default_factory=dict)
    reads: dict[tuple[int, int, int], Read] = field(default_factory=dict)
    registers: set[int] = field(default_factory=set)  # positions of the instructions that made its registers
