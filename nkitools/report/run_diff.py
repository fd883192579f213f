"""Two runs side by side: their first difference, and the prints and findings that only one of them has.

Two runs differ if their ends, prints, kept writes, outputs or findings do. Differences in the launch and in counts of
instructions are shown but do not count. Findings are compared only if nkitools simulated both runs, since devices and
AWS's simulators report none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nkitools.comparison.compared_arrays import compared
from nkitools.comparison.rule import Rule, stated_rule
from nkitools.record.columns import Columns
from nkitools.record.instruction_reader import instruction_at
from nkitools.record.last_writer import last_writer
from nkitools.record.run import must_be_run
from nkitools.record.saved.encoding import leaves
from nkitools.report.first_difference import Diverging, Place, place_of, prints_of, values_of, writes_of

if TYPE_CHECKING:
    from nkitools.record.instruction_record import InstructionRecord
    from nkitools.record.run import Run
    from nkitools.rules.finding import Finding


def _neither() -> tuple[list[str], list[str]]:
    return [], []


@dataclass
class Comparison:
    """The differences of two runs, as `compare_runs` returns them.

    ``about``: kernel, target, chip, precision and settings that differ. ``ended``: how the runs ended, if that differs.
    ``prints``, ``writes``: the first that differs. ``prints_only``, ``findings_only``: the texts that only the first
    and only the second run has. ``outputs``: every output that differs. ``instructions``: counts that differ, by name
    and engine. ``notes``: sentences on what was not compared. A field without a difference is empty or None.
    """

    about: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    ended: tuple[str, str] | None = None
    prints: Diverging | None = None
    prints_only: tuple[list[str], list[str]] = field(default_factory=_neither)
    writes: Diverging | None = None
    outputs: list[Diverging] = field(default_factory=list)
    findings_only: tuple[list[str], list[str]] = field(default_factory=_neither)
    instructions: dict[str, tuple[int, int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def is_same(self) -> bool:
        """Return True if ends, prints, kept writes, outputs and findings are equal; other fields do not count."""
        return not (
            self.ended or self.prints or any(self.prints_only) or self.writes or self.outputs or any(self.findings_only)
        )

    def as_plain(self) -> dict[str, Any]:
        """Return the fields as a dictionary for JSON, and `is_same` as ``same``; the first run's value precedes."""
        return {"same": self.is_same, **asdict(self)}


def compare_runs(first: Run, second: Run, *, rtol: float | None = None, atol: float | None = None) -> Comparison:
    """Compare two runs of a kernel, which may come from files.

    Two numbers are equal if ``|first - second| <= atol + rtol * |second|``, as in `numpy.testing`; if only one of the
    two is given, the other is 0, and without both the coarser of the numbers' dtypes decides, see
    `nkitools.comparison.dtype_table`. Prints are matched by prefix, rank, program and loop counters, not by line, so
    that two versions of a kernel can be compared; findings by rule, severity, function, message and rank. TypeError for
    other objects than runs, ValueError for a tolerance that is no finite number from 0 on.
    """
    for run in (first, second):
        must_be_run(run, "compare_runs")
    rule = stated_rule(rtol, atol)
    found = Comparison(about=_about(first, second), ended=_ended(first, second))
    found.prints, found.prints_only = prints_of(first, second, rule)
    found.writes = writes_of(first, second, rule)
    found.outputs = _outputs(first, second, rule)
    simulated = [bool(run.all_records) for run in (first, second)]
    if all(simulated):
        found.instructions = _instructions(first, second)
    elif any(simulated):
        one = "second" if simulated[0] else "first"
        found.notes.append(f"the {one} run was not simulated by nkitools: findings and instructions are not compared")
    if len(set(simulated)) == 1:
        found.findings_only = _findings(first, second)
    return found


def _about(first: Run, second: Run) -> dict[str, tuple[Any, Any]]:
    names = ("kernel", "target", "chip", "precision")
    pairs = {name: (getattr(first, name), getattr(second, name)) for name in names}
    for name in sorted({*first.settings, *second.settings}):
        pairs[name] = (first.settings.get(name), second.settings.get(name))
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _ended(first: Run, second: Run) -> tuple[str, str] | None:
    ends = [_end(run) for run in (first, second)]
    return (ends[0], ends[1]) if ends[0] != ends[1] else None


def _end(run: Run) -> str:
    if run.error is None:
        return "ended well" if run.has_outputs or not run.findings else "ended without outputs"
    return f"ended by {type(run.error).__name__}: {str(run.error).partition(chr(10))[0]}"


def _outputs(first: Run, second: Run, rule: Rule) -> list[Diverging]:
    parts = [dict(leaves(run.outputs)) for run in (first, second)]
    found = []
    for path in dict.fromkeys([*parts[0], *parts[1]]):
        if path not in parts[0] or path not in parts[1]:
            which = "first" if path in parts[0] else "second"
            found.append(Diverging(path, None, None, f"only the {which} run has it"))
            continue
        one, other = (part[path] for part in parts)
        difference = _output_difference(path, one, other, rule)
        if difference is not None:
            found.append(_with_writers(difference, first, second))
    return found


def _output_difference(path: str, one: Any, other: Any, rule: Rule) -> Diverging | None:
    are_numbers = all(isinstance(each, (int, float)) for each in (one, other))
    if not isinstance(one, np.ndarray) and not isinstance(other, np.ndarray) and not are_numbers:
        return None if one == other else Diverging(path, None, None, f"{one!r} and {other!r}")
    if not all(isinstance(each, (np.ndarray, int, float)) for each in (one, other)):
        return Diverging(path, None, None, f"{type(one).__name__} and {type(other).__name__}")
    arrays = [np.asarray(each) for each in (one, other)]
    if arrays[0].shape != arrays[1].shape:
        return Diverging(path, None, None, f"shapes {list(arrays[0].shape)} and {list(arrays[1].shape)}")
    found = compared(arrays[0], arrays[1], rule)
    values = values_of(found)
    return None if values is None and not found.message else Diverging(path, None, values, found.message)


def _with_writers(difference: Diverging, first: Run, second: Run) -> Diverging:
    """Return a difference with the lines that wrote its first differing element."""
    if difference.values is None:
        return difference
    told = [_writer(run, difference.what, difference.values.index) for run in (first, second)]
    if not any(told):
        return difference
    writers = Place(*(each or "unknown" for each in told))
    return Diverging(difference.what, None, difference.values, writers=writers)


def _writer(run: Run, path: str, index: tuple[int, ...]) -> str:
    """Return in words the last instruction that wrote an element of an output; '' if unknown."""
    for rank, record in enumerate(run.all_records):
        prefix, outputs = (f"outputs[{rank}]", run.outputs[rank]) if run.records else ("outputs", run.outputs)
        paths = [name for name, value in leaves(outputs, prefix) if isinstance(value, np.ndarray)]
        # A tensor that is returned twice is there once.
        if path not in paths or len(paths) != len(record.outputs):
            continue
        access = record.outputs[paths.index(path)]
        if len(index) != len(access.layout.shape):
            continue
        found = last_writer(record, access, index)
        if found is None:
            return "no instruction"
        return _told(instruction_at(record, found.position), found.shape, found.index, found.is_certain)
    return ""


def _told(one: InstructionRecord, shape: Sequence[int], index: Sequence[int] | None, is_certain: bool) -> str:
    tile = f"{'' if index is None else f'element {list(index)} of '}a tile {list(shape)}"
    maybe = "" if is_certain else ", or one before it: which elements it wrote is not kept"
    return f"{place_of(one.name, one.rank, one.program, one.loops, one.file, one.line)}, {tile}{maybe}"


def _findings(first: Run, second: Run) -> tuple[list[str], list[str]]:
    known = [_times(run) for run in (first, second)]
    only = []
    for run, mine, theirs in ((first, known[0], known[1]), (second, known[1], known[0])):
        left = mine - theirs
        texts = []
        for finding in run.findings:
            number = left.pop(_finding_key(finding), 0)
            if number:
                texts.append(replace(finding, count=1).text() + (f" (x{number:,})" if number > 1 else ""))
        only.append(texts)
    return only[0], only[1]


def _times(run: Run) -> Counter[Hashable]:
    """Return the number of times that each finding came."""
    times: Counter[Hashable] = Counter()
    for finding in run.findings:
        times[_finding_key(finding)] += finding.count
    return times


def _finding_key(finding: Finding) -> Hashable:
    return finding.rule, finding.severity, finding.function, finding.message, finding.rank


def _instructions(first: Run, second: Run) -> dict[str, tuple[int, int]]:
    counts = [instruction_counts(run) for run in (first, second)]
    names = sorted({*counts[0], *counts[1]})
    return {name: (counts[0][name], counts[1][name]) for name in names if counts[0][name] != counts[1][name]}


def instruction_counts(run: Run) -> Counter[str]:
    """Return the number of instructions in a run by name and engine: ``nc_matmul (tensor)``."""
    counts: Counter[str] = Counter()
    for record in run.all_records:
        numbers, several = np.unique(Columns(record).plans, return_counts=True)
        for number, count in zip(numbers.tolist(), several.tolist(), strict=True):
            plan = record.plans[number].plan
            counts[f"{plan.name} ({plan.engine})"] += count
    return counts
