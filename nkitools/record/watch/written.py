"""The value that an instruction has written."""

from __future__ import annotations

from functools import cached_property

from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import dataclass
from nkitools.record.prints.summaries import Summary, summary_of


@dataclass(frozen=True, eq=False)
class Written:
    """The value of one destination of an instruction, right after the instruction.

    ``position``: of the instruction in its record, -1 for values from before the first one (`Record.inputs`).
    ``value``: the elements, in the destination's dtype (in full precision float32); None if it did not fit in the
    budget. ``summary``: of the elements; without blocks if 16,384 values before it did not fit. ``unwritten``: the
    elements that were never written (under a mask, say), None if there are none.
    ``storage``, ``byte_offset`` and ``strides`` (in bytes): the place in its tensor, of ``tensor_shape``. If an index
    on the device chose the elements (scatter), the value is the whole tensor, and ``scattered`` is True. ``callers``:
    the author's lines (file, line) that called the function of ``line``, innermost first.
    """

    position: int
    instruction: str
    tensor: str
    memory: str
    dtype: str
    shape: tuple[int, ...]
    value: Array | None
    unwritten: Array | None
    program: tuple[int, ...]
    loops: dict[str, int]
    file: str
    line: int
    rank: int | None
    storage: int
    tensor_shape: tuple[int, ...]
    strides: tuple[int, ...]
    byte_offset: int
    scattered: bool = False
    callers: tuple[tuple[str, int], ...] = ()
    reduced: Summary | None = None  # what is left where the value is not kept

    @cached_property
    def summary(self) -> Summary:
        """Return minimum, maximum, mean, counts of NaN, infinite and unwritten elements, corners and coarse picture."""
        if self.reduced is not None:
            return self.reduced
        assert self.value is not None
        return summary_of(self.value, self.unwritten)
