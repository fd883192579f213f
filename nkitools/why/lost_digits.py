"""The line where low precision loses digits: every write of a run against that of the run in float64."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import log10

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.chip.twin_storage import LOW_PRECISION
from nkitools.record.record import Record
from nkitools.rules.shown_text import shown_file
from nkitools.why.traced_calls import Trace

_LEAST = 2.0**-24  # stands for the error of exact values, so that its logarithm is finite


@dataclass(frozen=True)
class LostDigits:
    """A line that loses ``digits`` decimal digits: by so much the error grows from its operands to its worst write."""

    file: str
    line: int
    instruction: str
    dtype: str
    turn: dict[str, int]  # of the worst write
    digits: float
    error: float  # of the worst write, in parts of its tensor's largest value

    @property
    def reason(self) -> str:
        """Return a sentence about the error of the worst write."""
        return f"its error is {self.error:.1e} of the largest value; the values are right in float64"

    def text(self) -> str:
        """Return text such as ``bfloat16 tensor_tensor at kernel.py:120 loses 3 digits``."""
        count = max(1, round(self.digits))
        what = f"{self.dtype} {self.instruction} at {shown_file(self.file, whole=False)}:{self.line}"
        return f"{what} loses {count} digit{'s' if count > 1 else ''}"


@dataclass
class _Line:
    """The errors of the writes of one line."""

    read: float = _LEAST  # the largest error among its operands of other lines
    written: float = 0.0
    node: tuple[int, int] = (0, 0)
    dtypes: set[str] = field(default_factory=set)


def lost_digits(records: Sequence[Record], wide: Trace, narrow: Trace) -> LostDigits | None:
    """Return the line that loses the most digits; None if no line with a low-precision dtype adds to the error.

    ``wide``: the writes in float64. ``narrow``: those in the dtypes of the kernel.
    """
    lines: dict[tuple[str, int], _Line] = {}
    errors: dict[tuple[int, int], tuple[float, tuple[str, int]]] = {}
    for node in sorted(wide.writes.keys() & narrow.writes.keys(), key=lambda each: each[1]):
        record = records[node[0]]
        row, site = record.row(node[1]), record.site_at(node[1])
        key = site.file, site.line
        line = lines.setdefault(key, _Line())
        for access in row.accesses():
            known = errors.get((node[0], access.storage))
            if known is not None and known[1] != key and not access.written:
                line.read = max(line.read, known[0])
        line.dtypes.update(each.layout.dtype.name for each in row.writes() if each.layout.dtype in LOW_PRECISION)
        for access, error in zip(row.writes(), _errors(node, wide, narrow), strict=False):
            errors[node[0], access.storage] = error, key
            if error > line.written:
                line.written, line.node = error, node
    losing = [(key, line) for key, line in lines.items() if line.written > line.read and line.dtypes]
    if not losing:
        return None
    (file, number), line = max(losing, key=lambda each: each[1].written / each[1].read)
    name = records[line.node[0]].row(line.node[1]).plan.name
    turn = narrow.turns.get(line.node, {})
    dtype, digits = "/".join(sorted(line.dtypes)), log10(line.written / line.read)
    return LostDigits(file, number, name, dtype, turn, digits, line.written)


def _errors(node: tuple[int, int], wide: Trace, narrow: Trace) -> Iterator[float]:
    """Yield the largest error of each write of an instruction, relative to the largest right value of that write."""
    for first, second in zip(wide.writes[node], narrow.writes[node], strict=False):
        yield _error(first.value, second.value)


def _error(truth: Array, value: Array) -> float:
    if truth.shape != value.shape or truth.dtype.names is not None:
        return 0.0
    one, other = truth.astype(np.float64), value.astype(np.float64)
    finite = np.isfinite(one) & np.isfinite(other)
    if not finite.any():
        return 0.0
    largest = float(np.abs(one[finite]).max())
    return float(np.abs(one - other)[finite].max()) / largest if largest else 0.0
