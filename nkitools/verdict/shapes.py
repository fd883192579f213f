"""Other shapes than the given ones: from the author's space, else with one size at a time replaced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from nkitools.chip.numerics import Array
from nkitools.verdict.bench import JudgedRun
from nkitools.verdict.candidate import Ran
from nkitools.verdict.cases import Given, holds_numbers, shaped
from nkitools.verdict.child import Gone, Raised
from nkitools.verdict.dependence import belonging
from nkitools.verdict.rows import FAIL, PASS, UNKNOWN, Row
from nkitools.verdict.trial import Trial

_MOST_TRIED = 12  # shapes beyond the author's space: the kernel may refuse many
_LEAST_SECONDS, _TIMES = 5.0, 30  # the limit of a shape's run: at least, and in times of the first run
_LEAST_LEFT = 0.3  # of the time of all rows: with less left, no other shape is tried
_UNWRITTEN = frozenset({"NK403", "PL205", "CO106"})


@dataclass
class _Tried:
    """The shapes that were tried, by outcome; each in words."""

    right: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    doubted: list[str] = field(default_factory=list)  # wrong ones, for which the kernel may not be made
    wrong: list[tuple[str, str]] = field(default_factory=list)


def other_shapes_row(trial: Trial, most: int) -> Row:
    """Return the row on whether the outputs are right in other shapes."""
    bench = trial.bench
    if not bench.known.is_function:
        return Row("shapes", UNKNOWN, "", "the reference is no function: nothing says what is right in other shapes")
    is_named, tried = bench.known.has_space, _Tried()
    for given in _calls(trial, most):
        if (not is_named and len(tried.right) + len(tried.open) >= most) or bench.left < _LEAST_LEFT * bench.seconds:
            break
        run = _run_of(trial, given)
        if run is not None:
            _note(trial, tried, run)
        if tried.wrong:
            break
    return _row(trial, tried)


def _calls(trial: Trial, most: int) -> Iterator[Given]:
    bench, asked = trial.bench, trial.asked
    if bench.known.has_space:
        return iter(bench.ask_judge("cases", most + 2, asked.seed, bench.described.parameters))
    return islice(shaped(trial.given), _MOST_TRIED)


def _run_of(trial: Trial, given: Given) -> JudgedRun | None:
    """Run the kernel on arguments of another shape, and compare; None if the reference does not take them."""
    try:
        if not trial.bench.known.has_space:
            trial.bench.right()(*given.args, **given.kwargs)
        limit = _LEAST_SECONDS + _TIMES * trial.seconds
        try:
            return trial.bench.tried(given, seconds=limit)
        except Gone as error:
            if trial.bench.left <= 0 or not error.is_time:
                raise
            return JudgedRun(given, Ran(None, error=f"{error}; the given arguments take {trial.seconds:.2g} s"))
    except Raised:
        return None


def _note(trial: Trial, tried: _Tried, run: JudgedRun) -> None:
    """Add a run to those of its outcome. One that breaks a rule is refused, but for rules about unwritten elements."""
    said, broken = run.given.said, {each.rule for each in run.ran.broken}
    if run.outcome == "pass":
        tried.right.append(said)
        trial.right.append(run)
    elif run.outcome == "undecided":
        tried.open.append(said)
    elif run.ran.refuses or broken - _UNWRITTEN:
        tried.refused.append(said)
    else:
        is_lost = run.ran.half is None  # it does not end, or ends its process
        doubt = "" if trial.bench.known.has_space or is_lost else _doubt(trial, run.given)
        if doubt:
            tried.doubted.append(f"{said}: {run.sentence()}; {doubt}")
        else:
            tried.wrong.append((said, run.sentence()))


def _row(trial: Trial, tried: _Tried) -> Row:
    data = {
        "right": tried.right,
        "refused": tried.refused,
        "undecided": tried.open,
        "doubted": tried.doubted,
        "wrong": [s for s, _ in tried.wrong],
    }
    outside = trial.bench.described.outside
    if tried.wrong:
        said, why = tried.wrong[0]
        return Row("shapes", FAIL, said, why, data)
    shown = "; ".join(tried.right)
    if tried.doubted:
        return Row("shapes", UNKNOWN, shown, tried.doubted[0], data)
    if tried.right:
        refused = f"it refuses {len(tried.refused)} more" if tried.refused else ""
        return Row("shapes", PASS, shown, refused, data)
    if tried.open:
        return Row("shapes", UNKNOWN, "; ".join(tried.open), "undecided there: state rtol and atol", data)
    if not tried.refused:
        said = "there is no time for other shapes" if trial.bench.left < _LEAST_LEFT * trial.bench.seconds else ""
        return Row("shapes", UNKNOWN, "", said or "the reference takes no other shape that was tried", data)
    limit = f": {outside.limits}" if outside.limits else ""
    return Row(
        "shapes",
        UNKNOWN,
        "; ".join(tried.refused[:2]),
        f"one shape only: it takes no other that was tried{limit}",
        data,
    )


def _doubt(trial: Trial, wrong: Given) -> str:
    """Return why the kernel may not be made for a shape beyond the author's space; '' if nothing says so."""
    outside, parameters = trial.bench.described.outside, trial.bench.described.parameters
    given = trial.given.arrays(parameters)
    pairs = [(array.shape, other.shape) for array, other in zip(given.values(), wrong.arrays().values(), strict=True)]
    changed = {(old, new) for one, other in pairs for old, new in zip(one, other, strict=True) if old != new}
    if outside.limits:
        return f"the kernel says its own limit: {outside.limits}"
    if not outside.reads_shapes:
        return "one shape only: the kernel reads no shape"
    whole = [each for each in (*trial.given.args, *trial.given.kwargs.values()) if type(each) is int and each > 1]
    if whole:
        return f"the whole number {whole[0]} among the arguments may belong to the shapes: name shapes in `space`"
    numbers = trial.bench.known.numbers | (frozenset() if outside.has_rests else outside.numbers)
    written = sorted(old for old, _ in changed if old in numbers)
    if written:
        return f"one shape only: {written[0]} is written into the kernel or the reference. Name shapes in `space`"
    if not outside.has_rests and any(new % old for old, new in changed):
        return "the kernel may be for whole tiles alone: let it say so, or name shapes in `space`"
    coded = [name for name, array in given.items() if _holds_codes(array)]
    if coded:
        return f"{', '.join(coded)}, masks or labels, may mean nothing in other shapes: name shapes in `space`"
    return belonging(trial)


def _holds_codes(array: Array) -> bool:
    """Return whether an array holds masks, labels or places: integers or few different values, not all the same."""
    return array.size > 1 and not holds_numbers(array) and bool((array != array.flat[0]).any())
