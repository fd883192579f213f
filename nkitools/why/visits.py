"""The instructions on a way back: what each has made, and what it has read."""

from __future__ import annotations

from dataclasses import dataclass, field

from nkitools.chip.numerics import Array
from nkitools.record.rows import Access

INDEX = "index"
"""The name of operands that are no arguments: what chooses elements, or says where they lie."""


@dataclass(eq=False, slots=True)
class Read:
    """The elements that an instruction has read of an operand.

    ``number``: the record that the operand lies in. ``access``: the view. ``wanted``: the elements of it, as a mask.
    ``writers``: the units by the position of the instruction that has written them, `GIVEN` or `UNWRITTEN`.
    """

    operand: str
    number: int
    position: int
    access: Access
    wanted: Array
    writers: dict[int, Array] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Visit:
    """An instruction on the way: the elements that it has made, by result, and those that it has read."""

    made: dict[str, Array] = field(default_factory=dict)
    results: dict[str, Access] = field(default_factory=dict)
    reads: dict[tuple[int, int, int], Read] = field(default_factory=dict)
    registers: set[int] = field(default_factory=set)  # positions of the instructions that made its registers
