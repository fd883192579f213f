"""The first tensor of a kernel that is wrong, and whether low precision is the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.comparison.form import NothingCompared, must_be_another
from nkitools.precision.runs import Half
from nkitools.record.run import Run
from nkitools.why.lost_digits import LostDigits, lost_digits
from nkitools.why.targets import Expected, Target, differing, intermediates_of, results_of
from nkitools.why.traced_calls import Call, Trace

_MOST_LINES = 5


@dataclass(frozen=True, eq=False)
class Bisection:
    """The first wrong tensor of a kernel.

    ``kind``: ``"right"`` if no tensor differs, ``"wrong"`` if one differs even in float64, ``"precision"`` if one
    differs only in the dtypes of the kernel, ``"stopped"`` if the kernel made no results, as after an error.
    """

    kernel: str
    kind: str
    first: Target | None  # the first tensor that is wrong
    right: tuple[Target, ...]  # the intermediates before it
    lost: LostDigits | None  # the line that loses digits, if low precision is the reason
    note: str = ""
    changed: tuple[str, ...] = ()  # arguments that the kernel changes and does not return: results, too

    def lines(self) -> list[str]:
        """Return the first wrong tensor and the right ones before it as lines of text; [] if no tensor is wrong."""
        if self.first is None:
            return []
        right = [f"right before that: {_joined(self.right)}"] if self.right else []
        return [f"first wrong: {_described(self.first)}", *right]


def wrong_tensors_of_run(run: Run) -> str:
    """Return a line for each tensor that differs from ``expect`` of the run's reference, five at most; '' if none does.

    The run is repeated in float64. ValueError for a name that no written tensor has, and for a run that cannot be
    repeated.
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
    """Find the first wrong tensor of a call. Exceptions of the reference pass through."""
    must_be_another(call.launch.function, expected.reference)
    trace = Trace(expected.counters(len(call.args)))
    full = call.run(trace, rules="report")
    if not full.run.has_outputs and not full.changed:
        said = [each.text() for each in full.run.findings if each.severity == "error"]
        return Bisection(call.name, "stopped", None, (), None, said[0] if said else "it has returned nothing")
    results = results_of(full, expected, call.args, call.kwargs)
    targets = [*intermediates_of(trace, expected, call.args, call.kwargs), *results]
    note = _missing(expected, trace)
    if note or not targets:
        raise NothingCompared(note or _nothing_compared(call.name, expected))
    changed = tuple(sorted(full.changed - full.returned))
    first = next((number for number, each in enumerate(targets) if each.wrong.any()), None)
    if first is None:
        return _of_precision(call, expected, full, changed)
    right = tuple(each for each in targets[:first] if not each.wrong.any())
    return Bisection(call.name, "wrong", targets[first], right, None, changed=changed)


def _nothing_compared(kernel: str, expected: Expected) -> str:
    """Return a message for a bisection that has nothing to compare: the cause, and what to write."""
    if expected.reference is None and not expected.expect:
        return (
            f"nothing says what is right: nothing of {kernel} is compared. Pass reference=, the results or a function "
            "of the arguments that returns them, or expect=, functions by the names of tensors in the kernel."
        )
    return f"{kernel} has returned and written no array that the reference holds: nothing is compared"


def _missing(expected: Expected, trace: Trace) -> str:
    """Return a sentence about tensors of ``expect`` that the run did not write; '' if it wrote all."""
    missing = [name for name in expected.expect if not any(each.name == name for each in trace.held.values())]
    if not missing:
        return ""
    there = ", ".join(sorted(trace.names)[:12]) or "none"
    return f"expect: no tensor {' or '.join(missing)} was written in a turn of its counters; written were {there}"


def _of_precision(call: Call, expected: Expected, full: Half, changed: tuple[str, ...]) -> Bisection:
    """Bisect a call that is right in float64: in the dtypes of the kernel, with the line that loses digits."""
    results = results_of(call.run(precision="precise"), expected, call.args, call.kwargs)
    wrong = [_beyond(each, expected) for each in results]
    first = next((each for each in wrong if each.wrong.any()), None)
    if first is None:
        return Bisection(call.name, "right", None, (), None, changed=changed)
    wide, narrow = Trace(keeps_writes=True), Trace(keeps_writes=True)
    call.run(wide)
    call.run(narrow, precision="precise")
    lost = lost_digits(full.run.all_records, wide, narrow)
    return Bisection(call.name, "precision", first, (), lost, changed=changed)


def _beyond(target: Target, expected: Expected) -> Target:
    """Return a target whose wrong elements are beyond the author's rule, or else beyond a rounding of its dtype."""
    step = _STEPS.get(target.access.layout.dtype.name, 2.0**-20)
    wrong: Array = differing(target.got, target.want, step, expected.rule)
    values = {**vars(target), "wrong": wrong}
    return Target(**values)


_STEPS = {"bfloat16": 2.0**-7, "float16": 2.0**-10, "tfloat32": 2.0**-10}
"""The error that a dtype explains, relative to the largest value: twice its rounding."""


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
    """Return the names of targets as text, each once, with the last of its loop turns."""
    latest = {each.name: each for each in targets}
    named = []
    for name, each in latest.items():
        turn = ", ".join(f"{counter}={value}" for counter, value in each.turn.items())
        named.append(f"{name} ({turn})" if turn else name)
    return ", ".join(named)
