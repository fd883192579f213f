"""The dependence of outputs on arguments: by changes of one region at a time, and by the instructions of the run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from nkitools.chip.element_boxes import boxes_text
from nkitools.chip.numerics import Array
from nkitools.precision.split import Result
from nkitools.verdict.cases import Given, halves, holds_numbers, varied, with_region
from nkitools.verdict.child import Raised
from nkitools.verdict.reach import Reach
from nkitools.verdict.rows import FAIL, PASS, UNKNOWN, Row
from nkitools.verdict.trial import Trial

_MOST_REGIONS = 8
_MUCH = 4  # times the tolerance: a reference that changes by less need not show in the kernel


def dependence(trial: Trial) -> Row:
    """Return the row on whether the outputs depend on all regions of arguments that the reference's depend on."""
    bench = trial.bench
    if not bench.known.is_function:
        return Row("depends", UNKNOWN, "", "the reference is no function: nothing says what its outputs depend on")
    reach = bench.ask("reach") if trial.is_nki else {}
    before = bench.results(trial.given, trial.first.ran)
    tried = []
    for name, said, mask in islice(_regions(trial), _MOST_REGIONS):
        changed = with_region(trial.given, bench.described.parameters, name, mask)
        moved = _moved(trial, changed, before)
        if not any(each.any() for each in moved):
            continue
        tried.append(said)
        is_followed = holds_numbers(trial.given.arrays(bench.described.parameters)[name])  # unlike the length of a loop
        why = _unreached(trial, reach, name, moved, before) if is_followed else ""
        why = why or _unmoved(trial, changed, said, moved)
        if why:
            return Row("depends", FAIL, said, why)
    why = _ignored_part(trial, reach)
    if why:
        return Row("depends", FAIL, "other values everywhere, then in the parts that no instruction reads", why)
    if not tried:
        return Row("depends", UNKNOWN, "", "no region of an argument changes what the reference returns")
    return Row("depends", PASS, f"changed one at a time: {', '.join(tried)}", "", {"regions": tried})


def _regions(trial: Trial) -> list[tuple[str, str, Array]]:
    """Return the regions of the arguments: first one of each argument, then the others."""
    found = list(halves(trial.given, trial.bench.described.parameters))
    firsts = {name: at for at, (name, *_) in reversed(list(enumerate(found)))}
    return sorted(found, key=lambda each: each is not found[firsts[each[0]]])


def _moved(trial: Trial, changed: Given, before: Sequence[Result]) -> list[Array]:
    """Return for each output a mask of the elements that the reference changes by much more than the tolerance.

    [] if the reference does not take the changed arguments.
    """
    try:
        after = trial.bench.results(changed, trial.first.ran)
    except (Raised, TypeError, ValueError):  # arguments that the reference does not take
        return []
    rules = {each.name: each.elements for each in trial.first.outputs}
    found = []
    for one, other in zip(before, after, strict=True):
        if one.right is None or other.right is None or one.name not in rules:
            found.append(np.zeros(one.rounded.shape, np.bool_))
            continue
        rule = rules[one.name]
        with np.errstate(all="ignore"):
            least = _MUCH * (rule.atol + rule.rtol * np.abs(one.right))
            found.append(np.abs(other.right - one.right) > least)
    return found


def _unreached(
    trial: Trial, reach: dict[str, dict[str, Reach]], name: str, moved: list[Array], before: Sequence[Result]
) -> str:
    """Return a sentence about an output that needs an argument, which no instruction brings to it; '' for none."""
    for result, mask in zip(before, moved, strict=True):
        known = reach.get(result.name, {}).get(name)
        if known is None or not mask.any():
            continue
        if not known.reaches:
            return f"{result.name} depends on {name} in the reference, and no instruction of the kernel leads there"
        if known.left is not None and known.left.any():
            changed = with_region(trial.given, trial.bench.described.parameters, name, known.left)
            if any(each.any() for each in _moved(trial, changed, before)):
                return f"{result.name} ignores `{boxes_text(name, known.left)}`, and the reference's depends on it"
    return ""


def _ignored_part(trial: Trial, reach: dict[str, dict[str, Reach]]) -> str:
    """Return a sentence about a part of an argument that the reference reads, and no instruction does; '' for none.

    All arguments get other values before: if two factors are zero in one place, a change of one alone does nothing.
    """
    bench = trial.bench
    parts = {
        name: each.left
        for of_output in reach.values()
        for name, each in of_output.items()
        if each.left is not None and each.left.any()
    }
    if not parts:
        return ""
    other = next(varied(trial.given, trial.asked.seed + 1))
    known = other.arrays(bench.described.parameters)
    try:
        before = bench.results(other, trial.first.ran)
    except (Raised, TypeError, ValueError):  # values that the reference does not take
        return ""
    for name, left in parts.items():
        if holds_numbers(known[name]):
            changed = with_region(other, bench.described.parameters, name, left)
            if any(each.any() for each in _moved(trial, changed, before)):
                return f"nothing reads `{boxes_text(name, left)}`, and what the reference returns depends on it"
    return ""


def _unmoved(trial: Trial, changed: Given, said: str, moved: list[Array]) -> str:
    """Return a sentence about an output that stays the same where the reference's changes; '' for none."""
    ran = trial.bench.run(changed, how="changed")
    if ran.half is None:
        return ""
    pairs = zip(trial.first.outputs, moved, strict=False)
    for judged, mask in pairs:
        other = ran.half.outputs.get(judged.name) or ran.half.arguments.get(judged.name)
        if other is None or other.array.shape != mask.shape or not mask.any():
            continue
        mine = np.asarray(judged.elements.actual, np.float64)[mask]
        if np.array_equal(mine, other.array[mask], equal_nan=True):
            moves = f"the reference's moves in {int(mask.sum())} elements"
            return f"{judged.name} stays the same where {said} changes; {moves}"
    return ""


def belonging(trial: Trial) -> str:
    """Return a sentence about arguments that the reference ignores, which may have to fit the others; '' for none."""
    ignored = _ignored_by_reference(trial)
    if not ignored:
        return ""
    return (
        f"the reference does not read {', '.join(ignored)}, which may belong to the other arguments: draw them by a "
        "function inputs(rng)"
    )


def _ignored_by_reference(trial: Trial) -> list[str]:
    """Return the names of float arguments that the kernel reads, and that change nothing in the reference."""
    bench = trial.bench
    reach = bench.ask("reach") if trial.is_nki else {}
    before = bench.results(trial.given, trial.first.ran)
    found = []
    for name, array in trial.given.arrays(bench.described.parameters).items():
        is_read = not reach or any(each[name].reaches for each in reach.values() if name in each)
        if not is_read or not holds_numbers(array):
            continue
        changed = with_region(trial.given, bench.described.parameters, name, np.ones(array.shape, np.bool_))
        moved = _moved(trial, changed, before)
        if moved and not any(each.any() for each in moved):
            found.append(name)
    return found
