"""The answer about a kernel whose outputs are wrong: an edit that makes them right, or how far the search has come."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nkitools.chip.argument_types import Argument, Grid, Kernel
from nkitools.chip.numerics import Array
from nkitools.comparison.bounds import root_mean_square
from nkitools.comparison.compared_arrays import distances
from nkitools.comparison.form import NothingCompared
from nkitools.comparison.rule import Rule
from nkitools.launch.tracebacks import AuthorsTraceback
from nkitools.pallas.detect_pallas import is_pallas_function
from nkitools.precision.runs import arrays_in, copied
from nkitools.repair.case import Arguments, Case, FunctionRuns, NkiKernel, reference_arrays
from nkitools.repair.fresh import smaller_shapes
from nkitools.repair.ranking import DTYPES, Lines, Shape, changed_lines, ranked, shape_of, unlikely
from nkitools.repair.search import Found, Hunt, Result, search
from nkitools.repair.slices import slice_lines
from nkitools.repair.trials import Trial, trials_of
from nkitools.repair.verify import PROBES, Verification, Verified, are_alike
from nkitools.rules.finding import KernelError
from nkitools.rules.shown_text import shown_file
from nkitools.why.bisection import Bisection, bisection_of
from nkitools.why.targets import Expected, Function
from nkitools.why.traced_calls import Call

SECONDS = 60.0
_LITTLE = 5e-3  # parts of the root mean square of the right values by which every element may be off
_LITTLE_OF_PRECISION = 2e-2  # the same where float64 is right: what bfloat16 loses
_MIRROR_SECONDS = 2.0  # for edits of the reference
_SHOWN_LINES = 12
_SLOW = 0.1  # seconds: a run that takes longer is tried on smaller arrays first

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer about a kernel.

    ``kind``: ``right``, ``stopped`` (the kernel has ended with an error), ``repaired``, ``fits`` (an edit verified on
    this case alone), ``narrowed``, ``doubt`` (the reference or the tolerance may be wrong) or ``not found``.
    """

    kernel: str
    kind: str
    said: str = ""
    bisection: Bisection | None = None
    result: Result | None = None
    found: Found | None = None
    others: tuple[tuple[Trial, str], ...] = field(default=())  # edits that hold as well, and where they differ

    @property
    def trial(self) -> Trial | None:
        """Return the edit that makes the outputs right; None if none was found."""
        return None if self.found is None or self.result is None else self.result.trials[self.found.number]

    def lines(self) -> list[str]:
        """Return the answer as lines of text."""
        if self.kind == "right":
            return [f"{self.kernel}: nothing differs", *([self.said] if self.said else [])]
        if self.kind == "stopped":
            return [f"{self.kernel} has ended with an error: {self.said}"]
        narrow = [] if self.bisection is None else self.bisection.lines()
        lost = None if self.bisection is None else self.bisection.lost
        if lost is not None:
            narrow.append(f"{lost.text()}: {lost.reason}")
        return [*narrow, *self._lines_of_edit(), *([self.said] if self.said else [])]

    def _lines_of_edit(self) -> list[str]:
        trial, found, result = self.trial, self.found, self.result
        if trial is None or found is None or result is None:
            return []
        place = _place(trial)
        verified, tried = found.verified, f"{result.tried} edits tried in {result.seconds:.1f} s"
        if self.kind == "repaired":
            lines = [f"{place}: with this edit the outputs are right", *trial.lines()[:_SHOWN_LINES]]
            lines.append(f"verified on this case, {', '.join(verified.on)}; {tried}")
        else:
            lines = [f"{place}: this edit fits this case", *trial.lines()[:_SHOWN_LINES]]
            lines.append(f"not verified on other values: {verified.open}; {tried}")
        if verified.doubts:
            lines.append(f"with it the outputs differ on {', '.join(verified.doubts[:2])}")
        for each, where in self.others:
            add = f": that differs on {where}; add this case" if where else ""
            lines.append(f"or {_place(each)}: {each.change}{add}")
        return lines

    def as_plain(self) -> dict[str, object]:
        """Return the answer for JSON."""
        first = None if self.bisection is None else self.bisection.first
        lost = None if self.bisection is None else self.bisection.lost
        trial, found, result = self.trial, self.found, self.result
        plain: dict[str, object] = {
            "kernel": self.kernel,
            "kind": self.kind,
            "first": None if first is None else {"tensor": first.name, "turn": first.turn},
            "lost": None if lost is None else lost.text(),
            "said": self.said,
            "edit": None,
            "tried": 0 if result is None else result.tried,
            "of": 0 if result is None else len(result.trials),
            "seconds": 0.0 if result is None else round(result.seconds, 2),
        }
        if trial is not None and found is not None:
            plain["edit"] = {
                "file": trial.part.file,
                "line": trial.line,
                "kind": trial.kind,
                "change": trial.change,
                "diff": trial.lines(),
                "edits": [trial.part.source.plain(trial.edit)],
                "verified_on": ["this case", *found.verified.on],
                "not_verified": found.verified.open,
                "differs_on": list(found.verified.doubts),
                "others": [{"line": each.line, "change": each.change, "add": where} for each, where in self.others],
            }
        return plain

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _place(trial: Trial) -> str:
    return f"{shown_file(trial.part.file, whole=False)}:{trial.line}"


def bisect(
    kernel: Kernel,
    /,
    *arrays: Argument,
    reference: Argument = None,
    expect: Mapping[str, Function] | None = None,
    seconds: float = SECONDS,
    grid: Grid | None = None,
    chip: str | None = None,
    nki_version: str | None = None,
    **kwargs: Argument,
) -> Answer:
    """Find what is wrong in ``kernel``: one edit of it after which its outputs are the reference's.

    The arrays are copied. ``reference``: the results, or a function of the kernel's arguments that returns them.
    ``expect``: functions that return the right values of a kernel's tensor at the end of a loop turn, by the tensor's
    name; each takes the kernel's arguments and, by keyword, the loop counters that it names. ``seconds``: at most for
    the search. TypeError and ValueError for arguments that do not fit.
    """
    __tracebackhide__ = True
    with AuthorsTraceback():
        call = Call(kernel, arrays, kwargs, grid=grid, chip=chip, nki_version=nki_version)
        return answer_of(call, Expected(reference, expect or {}, kwargs), seconds)


def answer_of(
    call: Call,
    expected: Expected,
    seconds: float,
    *,
    rules: Sequence[Rule] = (),
    want: list[Array] | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Search for an edit that makes the outputs of a call right.

    ``rules``: the author's tolerances of the outputs. ``want``: the right outputs, if they are at hand.
    """
    end = time.monotonic() + seconds
    given, function = (call.args, call.kwargs), function_of(expected.reference)
    if want is None and expected.reference is not None:
        want = right_outputs(expected.reference, given)
    narrow = _bisection(call, expected, want)
    if narrow.kind == "stopped" or (narrow.kind == "right" and not (want and rules)):
        return Answer(call.name, narrow.kind, narrow.note, narrow)
    if not want:
        return _without_edit(narrow, "", None)
    case = Case(NkiKernel(call, narrow.changed), given, want, rules, function)
    if narrow.kind == "right" and case.is_right(case.kernel.outputs(given)):  # by the test's own rules too
        return Answer(call.name, narrow.kind, narrow.note, narrow)
    return answer_of_case(case, narrow, end, workers=workers, progress=progress)


def function_of(reference: Any) -> Callable[..., Any] | None:
    """Return a reference if it is a function; None for arrays."""
    return reference if callable(reference) and not hasattr(reference, "shape") else None


def right_outputs(reference: Any, given: Arguments) -> list[Array]:
    """Return the arrays that a reference holds or returns. ValueError, naming the exception, if it raises."""
    function = function_of(reference)
    if function is None:
        return reference_arrays(reference)
    args, kwargs = copied(given)
    try:
        return reference_arrays(function(*args, **kwargs))
    except Exception as error:  # the author's function may raise anything
        raise ValueError(f"the reference raises {type(error).__name__}: {error}") from error


def _bisection(call: Call, expected: Expected, want: list[Array] | None) -> Bisection:
    """Return the first wrong tensor; by the right outputs alone if the reference fails in float64."""
    try:
        return bisection_of(call, expected)
    except (NothingCompared, KernelError):
        raise
    except Exception:
        if want is None:
            raise
        return bisection_of(call, Expected(tuple(want), expected.expect, call.kwargs, expected.rule))


def answer_of_case(
    case: Case, narrow: Bisection, end: float, *, workers: int | None = None, progress: Progress | None = None
) -> Answer:
    """Search for an edit that makes the outputs of a case right. ``narrow``: the first wrong tensor."""
    got = case.kernel.outputs(case.given)
    case = replace(case, dtypes=tuple(each.dtype.name for each in got))
    why, doubt = Verification(case).of_reference(), _doubt(case, got, narrow)
    of_precision = narrow.kind == "precision" or bool(doubt)
    if why or (doubt and not _is_wide(case)):
        return Answer(narrow.kernel, "doubt", why or doubt, narrow)
    result = _searched(case, got, end, of_precision=of_precision, workers=workers, progress=progress)
    best = result.best
    if doubt and (best is None or not best.verified.is_repaired):
        return Answer(narrow.kernel, "doubt", doubt, narrow, result)
    if best is None:
        return _without_edit(narrow, _not_found(result), result)
    mirror = _doubt_of_reference(case, got, end, result.trials[best.number])
    if mirror:
        return Answer(narrow.kernel, "doubt", mirror, narrow, result)
    kind = "repaired" if best.verified.is_repaired else "fits"
    return Answer(narrow.kernel, kind, "", narrow, result, best, tuple(_others(result, best)))


def _without_edit(narrow: Bisection, said: str, result: Result | None) -> Answer:
    """Return the answer if no edit holds: ``narrowed`` if a tensor of `expect` is wrong, or a line loses digits."""
    is_narrowed = narrow.lost is not None or (narrow.first is not None and bool(narrow.first.key))
    return Answer(narrow.kernel, "narrowed" if is_narrowed else "not found", said, narrow, result)


def _not_found(result: Result) -> str:
    many = len(result.trials)
    if not many:
        return "no edit was tried: the text of the kernel's functions is not at hand, or has nothing to edit"
    if result.tried < many:
        left = f"{many - result.tried} more were not tried in {result.seconds:.0f} s"
        return f"none of {result.tried} single edits makes the outputs right; {left}"
    return f"none of {many} single edits makes the outputs right ({result.seconds:.1f} s)"


def _others(result: Result, best: Found) -> list[tuple[Trial, str]]:
    """Return two other edits at most that hold and compute something else, each with the values that show it."""
    seen, found = [best], []
    for each in sorted(result.found, key=lambda one: one.rank):
        if each.verified.is_repaired == best.verified.is_repaired:
            places = [_difference(each.verified, one.verified) for one in seen]
            if all(place is not None for place in places):
                seen.append(each)
                found.append((result.trials[each.number], places[0] or ""))
    return found[:2]


def _difference(one: Verified, other: Verified) -> str | None:
    """Return in words the values on which two edits differ; '' for those of the test, None if they do nowhere."""
    if not one.is_repaired:
        return None if one.outputs == other.outputs else ""
    for said, first, second in zip(PROBES, one.elsewhere, other.elsewhere, strict=False):
        if first.shape == second.shape and first.size and not are_alike(first, second):
            return said
    return None


def _doubt(case: Case, got: Sequence[Array], narrow: Bisection) -> str:
    """Return a sentence about the reference or the tolerance if the error is small; '' if it is not."""
    worst = 0.0
    for one, other in zip(got, case.want, strict=False):
        if one.shape != other.shape:
            return ""
        try:
            far = distances(one, other)
        except (TypeError, ValueError):
            return ""
        if one.dtype.kind in "biu":
            if far.any():
                return ""
            continue
        worst = max(worst, float(np.nan_to_num(far, nan=np.inf).max(initial=0.0)) / (root_mean_square(other) or 1.0))
    if worst > (_LITTLE_OF_PRECISION if narrow.kind == "precision" else _LITTLE):
        return ""
    where = "in float64 the kernel is right: " if narrow.kind == "precision" else ""
    return (
        f"{where}every element is off by little, at most {worst:.1e} of the root mean square: the tolerance may be too "
        "narrow, or the reference may compute something slightly different; no edit is proposed"
    )


def _is_wide(case: Case) -> bool:
    """Return whether all arguments and outputs are float32 or whole numbers, less precise in a coarser tile."""
    arrays = [array for _, (_, array) in arrays_in("", case.given)]
    return all(
        each.dtype.kind in "biu" or each.dtype == np.float32 for each in (*arrays, *case.kernel.outputs(case.given))
    )


def _searched(
    case: Case, got: Sequence[Array], end: float, *, of_precision: bool, workers: int | None, progress: Progress | None
) -> Result:
    began = time.monotonic()
    case.kernel.outputs(case.given)
    once = time.monotonic() - began
    wrong, parts = case.wrong(got), case.kernel.parts()
    changed, run = changed_lines(part.file for part in parts), case.kernel.run()
    lines = Lines(Counter(), (), changed)
    if run is not None:
        good = [None if each is None else ~each for each in wrong]
        lines = Lines(slice_lines(run, wrong), slice_lines(run, good), changed)
    order = ranked(trials_of(parts), lines, shape_of(got, case.want, wrong))
    if of_precision:
        order = [each for each in order if each.kind in DTYPES and "bfloat16" not in each.edit.text]
    hunt = Hunt(case, order, once, _smaller(case) if once > _SLOW else None)
    return search(hunt, max(0.1, end - time.monotonic()), workers=workers, progress=progress)


def _smaller(case: Case) -> Case | None:
    """Return a case of smaller arrays on which the kernel is wrong, too, and breaks no rule; None if there is none."""
    is_free = case.reference is not None and not Verification(case).is_linked
    for given in smaller_shapes(case.given) if is_free else ():
        try:
            small = replace(case, given=given, want=case.right_for(given))
            if not small.is_right(case.kernel.outputs(given)) and not case.kernel.findings(given):
                return small
        except Exception:  # no shape for the reference or the kernel
            continue
    return None


def _doubt_of_reference(case: Case, got: list[Array], end: float, edit: Trial) -> str:
    """Return a sentence if the reference may be wrong; '' if nothing says so.

    It may be if the error is a simple one and the kernel's edit is an addition, or if an edit of the reference makes
    both agree, too.
    """
    shape = shape_of(got, case.want, case.wrong(got))
    if not shape.said:
        return ""
    if edit.kind.startswith("one-more"):
        return f"{shape.said}: the reference may be wrong; no edit of the kernel is proposed"
    return "" if case.reference is None else _edit_of_reference(case, got, end, shape, edit)


def _edit_of_reference(case: Case, got: list[Array], end: float, shape: Shape, edit: Trial) -> str:
    """Return a sentence with one edit of the kernel and one of its reference; either edit makes both agree.

    '' if no edit of the reference does, or if the edit of the kernel is likelier.
    """
    assert case.reference is not None
    kernel, forks = case.kernel, case.kernel.forks and not is_pallas_function(case.reference)

    def as_kernel(*args: Any, **kwargs: Any) -> tuple[Array, ...]:
        return tuple(kernel.outputs((args, kwargs)))

    mirror = Case(FunctionRuns(case.reference, forks), case.given, got[: len(case.want)], case.rules, as_kernel)
    order = ranked(trials_of(mirror.kernel.parts()), Lines(Counter(), (), {}), shape)
    result = search(Hunt(mirror, order, 0.01), min(_MIRROR_SECONDS, max(0.5, end - time.monotonic())), workers=1)
    edits = [result.trials[each.number] for each in sorted(result.found, key=lambda each: each.rank)]
    changed = changed_lines(each.part.file for each in (edit, *edits))
    other = min(edits, key=lambda each: unlikely(each, case.given, changed), default=None)
    if other is None or unlikely(edit, case.given, changed) < unlikely(other, case.given, changed):
        return ""
    return (
        f"{shape.said}: the kernel or the reference is wrong, and nothing tells which; one edit of either makes them "
        f"agree, in the kernel {_place(edit)}: {edit.change}, in the reference {_place(other)}: {other.change}"
    )
