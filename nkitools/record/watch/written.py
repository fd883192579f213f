"""The value that an instruction has written."""

from __future__ import annotations

from functools import cached_property

from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import dataclass
from nkitools.record.prints.summaries import Summary, summary_of


@dataclass(frozen=True, eq=False)
class Written:
    """The value that an instruction has written into one of its destinations, as it is right after the instruction.

    ``position``: which instruction of its record that is, -1 for values from before the first one (`Record.inputs`).
    ``value``: the elements of the destination, in the dtype that they have there (in full precision float32), or None
    where the budget was used up: then only the ``summary`` is left, which every other write has, too (of its blocks the
    means are kept then, not the extremes, and none after many). ``unwritten``:
    which elements were never written (under a mask, say), None where there are none.
    ``storage``, ``byte_offset`` and ``strides`` (in bytes) are its place in its tensor, of ``tensor_shape``. Where
    an index on the device chooses the elements (scatter), it is all of the tensor, and ``scattered``. ``callers`` are
    the author's lines (file, line) that called the function of ``line``, the innermost first.
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
        """Minimum, maximum, mean, how many elements are NaN, infinite and unwritten, the corners, a coarse picture."""
        if self.reduced is not None:
            return self.reduced
        assert self.value is not None
        return summary_of(self.value, self.unwritten)
