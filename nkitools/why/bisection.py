"""The first line and turn where a kernel goes wrong, and whether that is low precision or the algorithm."""

from __future__ import annotations

import ast
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nkitools.authors_code.source_text import nodes_of, shown_text
from nkitools.chip.argument_types import Argument, Grid, Kernel
from nkitools.chip.numerics import Array
from nkitools.comparison.form import NothingCompared, must_be_another
from nkitools.launch.tracebacks import AuthorsTraceback
from nkitools.precision.runs import Half
from nkitools.record.run import Run
from nkitools.why.changed_arguments import ChangedArguments
from nkitools.why.lost_digits import LostDigits, lost_digits
from nkitools.why.suspects import Suspects
from nkitools.why.targets import Expected, Function, Suspect, Target, differing, intermediates_of, results_of
from nkitools.why.traced_calls import Call, Trace

_ELEMENTS = 3  # wrong elements whose suspects are looked for
_MOST_LINES = 5


@dataclass(frozen=True)
class Place:
    """A line of the author's, and the turn in which it was met."""

    file: str
    line: int
    instruction: str  # of the line; "for" where it is a loop's
    turn: dict[str, int]
    reason: str

    def text(self) -> str:
        """Return ``line 99, turn n=2: nc_matmul``."""
        turn = ", ".join(f"{name}={value}" for name, value in self.turn.items())
        return f"{os.path.basename(self.file)}:{self.line}{f', turn {turn}' if turn else ''}: {self.instruction}"


@dataclass(frozen=True, eq=False)
class Bisection:
    """The answer of `bisect`.

    ``kind``: ``"right"`` where nothing differs, ``"algorithm"``, ``"precision"`` or ``"stopped"``, where the kernel has
    ended with an error.
    """

    kernel: str
    kind: str
    first: Target | None  # the first tensor that is wrong
    right: tuple[Target, ...]  # the intermediates before it
    places: tuple[Place, ...]  # the likeliest one first
    lost: LostDigits | None  # where low precision is to blame
    note: str = ""

    @property
    def line(self) -> int:
        """Return the line that is named first; 0 where none is."""
        return self.places[0].line if self.places else 0

    def lines(self) -> list[str]:
        """Return the answer as lines of text."""
        if self.kind == "right":
            return [f"{self.kernel}: nothing differs", *([self.note] if self.note else [])]
        if self.kind == "stopped":
            return [f"{self.kernel} has ended with an error: {self.note}"]
        lines = []
        if self.first is not None:
            lines.append(f"first wrong: {_described(self.first)}")
            if self.right:
                lines.append(f"right before that: {_joined(self.right)}")
        if self.lost is not None:
            lines.append(self.lost.text())
        for number, place in enumerate(self.places):
            if number == 0:
                lines.append(f"{place.text()}")
                if self.kind == "algorithm":
                    lines.append("  the values are wrong in float64 too, so the fault is in the algorithm")
            else:
                lines.append(f"or {place.text()}")
            lines.append(f"  {place.reason}")
        return [*lines, *([self.note] if self.note else [])]

    def as_plain(self) -> dict[str, object]:
        """Return the answer for JSON: ``kernel``, ``kind``, ``first``, ``places``, ``lost``, ``note``."""
        first = None
        if self.first is not None:
            first = {"tensor": self.first.name, "turn": self.first.turn, "text": _described(self.first)}
        return {
            "kernel": self.kernel,
            "kind": self.kind,
            "first": first,
            "places": [{**vars(each), "turn": dict(each.turn)} for each in self.places],
            "lost": None if self.lost is None else self.lost.text(),
            "note": self.note,
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())


def bisect(
    kernel: Kernel,
    /,
    *arrays: Argument,
    reference: Argument = None,
    expect: Mapping[str, Function] | None = None,
    grid: Grid | None = None,
    chip: str | None = None,
    nki_version: str | None = None,
    **kwargs: Argument,
) -> Bisection:
    """Find the first line and turn where ``kernel`` goes wrong.

    The arrays are copied. ``reference``: the results, or a function of the kernel's arguments that returns them.
    ``expect``: functions that return what tensors of the kernel hold at the end of a turn, by the tensors' names; each
    takes the kernel's arguments and, by keyword, the loop counters that it names. TypeError and ValueError for what
    does not fit.
    """
    __tracebackhide__ = True
    with AuthorsTraceback():
        call = Call(kernel, arrays, kwargs, grid=grid, chip=chip, nki_version=nki_version)
        return bisection_of(call, Expected(reference, expect or {}, kwargs))


def bisection_of_run(run: Run) -> Bisection | None:
    """Return the first line and turn where a run goes wrong; None where its reference or arguments are unknown."""
    known, call = run.reference, Call.of_run(run)
    if known is None or call is None:
        return None
    reference = known.values if known.function is None else known.function
    return bisection_of(call, Expected(reference, known.expect or {}, call.kwargs, known.rule))


def wrong_tensors_of_run(run: Run) -> str:
    """Return which tensors of a run do not hold what ``expect`` of its reference says, as text; '' where all do.

    The run is repeated in float64. ValueError for names that the kernel has not, and for a run that cannot be repeated.
    """
    known, call = run.reference, Call.of_run(run)
    if known is None or call is None:
        raise ValueError(f"expect: {run.kernel} cannot be run again; tensors are known of NKI kernels without ranks")
    expected = Expected(None, known.expect or {}, call.kwargs)
    trace = Trace(expected.counters(len(call.args)))
    call.run(trace, rules="report")
    missing = _missing(expected, trace)
    if missing:
        raise NothingCompared(missing)
    wrong = [each for each in intermediates_of(trace, expected, call.args, call.kwargs) if each.wrong.any()]
    return "\n".join(f"{_described(each)}, in float64" for each in wrong[:_MOST_LINES])


def bisection_of(call: Call, expected: Expected) -> Bisection:
    """Return the first line and turn where a call goes wrong."""
    must_be_another(call.launch.function, expected.reference)
    trace = Trace(expected.counters(len(call.args)))
    full = call.run(trace, rules="report")
    if not full.run.has_outputs and not full.changed:
        said = [each.text() for each in full.run.findings if each.severity == "error"]
        return Bisection(call.name, "stopped", None, (), (), None, said[0] if said else "it has returned nothing")
    results = results_of(full, expected, call.args, call.kwargs)
    targets = [*intermediates_of(trace, expected, call.args, call.kwargs), *results]
    note = _missing(expected, trace)
    if note or not targets:
        raise NothingCompared(note or _nothing_compared(call.name, expected))
    first = next((number for number, each in enumerate(targets) if each.wrong.any()), None)
    if first is None:
        return _of_precision(call, expected, full, note)
    target, right = targets[first], tuple(each for each in targets[:first] if not each.wrong.any())
    numbers = [number for number, each in enumerate(results) if each is target]
    changes = ChangedArguments(call, expected, target, numbers[0] if numbers else 0)
    suspects = Suspects(full.run, target, right, changes, targets)
    places = _places(full, trace, [list(suspects.of(each)) for each in _elements(target)])
    return Bisection(call.name, "algorithm", target, right, places, None, note)


def _nothing_compared(kernel: str, expected: Expected) -> str:
    """Return why a bisection of a kernel would compare nothing, and what to write."""
    if expected.reference is None and not expected.expect:
        return (
            f"nothing says what is right: nothing of {kernel} is compared. Pass reference=, the results or a function "
            "of the arguments that returns them, or expect=, functions by the names of tensors in the kernel."
        )
    return f"{kernel} has returned and written no array that the reference holds: nothing is compared"


def _elements(target: Target) -> list[tuple[int, ...]]:
    """Return some wrong elements: the first one, the worst one, and one from the middle."""
    with np.errstate(all="ignore"):
        far = np.where(target.wrong, np.abs(target.got - target.want), -1)
    far = np.where(np.isnan(far), np.inf, far)
    every = np.argwhere(target.wrong)
    chosen = [every[0], np.array(np.unravel_index(int(far.argmax()), far.shape)), every[len(every) // 2]]
    return list(dict.fromkeys(tuple(int(at) for at in each) for each in chosen))[:_ELEMENTS]


def _places(full: Half, trace: Trace, found: Sequence[Sequence[Suspect]]) -> tuple[Place, ...]:
    """Return the places of suspects, those first that stand first for most of the elements."""
    firsts = [_place(full, trace, each[0]) for each in found if each]
    votes = Counter((each.file, each.line) for each in firsts)
    firsts.sort(key=lambda each: -votes[each.file, each.line])
    rest = [_place(full, trace, each) for suspects in found for each in suspects[1:3]]
    places: dict[tuple[str, int], Place] = {}
    for place in (*firsts, *rest):
        places.setdefault((place.file, place.line), place)
    return tuple(places.values())[:_MOST_LINES]


def _place(full: Half, trace: Trace, suspect: Suspect) -> Place:
    number, position = suspect.node
    record = full.run.all_records[number]
    site, turn = record.site_at(position), trace.turns.get(suspect.node, {})
    name = record.row(position).plan.name
    if suspect.loop:
        line = loop_line(site.file, site.line, suspect.loop.rpartition(".")[2])
        if line:
            return Place(site.file, line, "for", {}, suspect.reason)
    return Place(site.file, site.line, name, turn, suspect.reason)


def loop_line(file: str, line: int, counter: str) -> int:
    """Return the line of the innermost ``for`` around a line whose counter has a name; 0 where there is none."""
    found = 0
    for first, last, names in _loops(shown_text(file)):
        if first < line <= last and counter in names:
            found = max(found, first)
    return found


@lru_cache(maxsize=64)
def _loops(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """Return the first and last lines of the loops of a source, and the names of their counters."""
    return tuple(
        (
            node.lineno,
            node.end_lineno or node.lineno,
            frozenset(each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)),
        )
        for node in nodes_of(text)
        if isinstance(node, ast.For)
    )


def _missing(expected: Expected, trace: Trace) -> str:
    """Return a sentence about intermediates that the kernel does not have."""
    missing = [name for name in expected.expect if not any(each.name == name for each in trace.held.values())]
    if not missing:
        return ""
    there = ", ".join(sorted(trace.names)[:12]) or "none"
    return f"expect: no tensor {' or '.join(missing)} was written in a turn of its counters; written were {there}"


def _of_precision(call: Call, expected: Expected, full: Half, note: str) -> Bisection:
    """Return where digits are lost, of a call that is right in float64."""
    wide, narrow = Trace(keeps_writes=True), Trace(keeps_writes=True)
    call.run(wide)
    precise = call.run(narrow, precision="precise")
    results = results_of(precise, expected, call.args, call.kwargs)
    wrong = [_beyond(each, expected) for each in results]
    first = next((each for each in wrong if each.wrong.any()), None)
    if first is None:
        return Bisection(call.name, "right", None, (), (), None, note)
    lost = lost_digits(full.run.all_records, wide, narrow)
    if lost is None:
        return Bisection(call.name, "precision", first, (), (), None, note)
    place = Place(lost.file, lost.line, lost.instruction, lost.turn, lost.reason)
    return Bisection(call.name, "precision", first, (), (place,), lost, note)


def _beyond(target: Target, expected: Expected) -> Target:
    """Return a target whose wrong elements are those beyond the author's rule, else beyond a rounding of its dtype."""
    step = _STEPS.get(target.access.layout.dtype.name, 2.0**-20)
    wrong: Array = differing(target.got, target.want, step, expected.rule)
    values = {**vars(target), "wrong": wrong}
    return Target(**values)


_STEPS = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "tfloat32": 2.0**-10}
"""Twice the rounding of a dtype, in parts of the largest value; of others that of sums in float32."""


def _described(target: Target) -> str:
    element = np.argwhere(target.wrong)[0]
    at = tuple(int(each) for each in element)
    turn = ", ".join(f"{name}={value}" for name, value in target.turn.items())
    where = f" (turn {turn})" if turn else ""
    count = int(np.count_nonzero(target.wrong))
    return (
        f"{target.name}[{', '.join(map(str, at))}]{where} is {target.got[at]:.6g}, expected {target.want[at]:.6g}; "
        f"{count} of {target.wrong.size} differ"
    )


def _joined(targets: Sequence[Target]) -> str:
    """Return the names of targets, each with the last of its turns."""
    latest = {each.name: each for each in targets}
    named = []
    for name, each in latest.items():
        turn = ", ".join(f"{counter}={value}" for counter, value in each.turn.items())
        named.append(f"{name} ({turn})" if turn else name)
    return ", ".join(named)
