"""The verdict on one output beside its reference: ``pass``, ``wrong``, or ``undecided``.

By the author's tolerance where one is stated. Else by the table of dtypes, then by the error that the run explains, as
far as that lies within the bounds of `nkitools.comparison.bounds`. An output within the explained error but beyond the
bounds is undecided: a right kernel may be as far off, and so may a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.comparison.bounds import bound_of, most_relative, root_mean_square
from nkitools.comparison.compared_arrays import ComparedArrays, compared
from nkitools.comparison.dtype_table import tolerance_of
from nkitools.comparison.form import must_hold_numbers, passing_zeros, unlike_form, unlike_nan
from nkitools.comparison.rule import Rule
from nkitools.record.explained_errors import ExplainedError
from nkitools.record.run import Run

_MOST_TIED = 0.01  # of the elements: more are no rounding of some choices
_ROUNDING = 2.0**-21  # of tied values: some roundings to float32, as values that are computed have had several
_EQUAL = 2.0**-50  # values that are closer than that are equal, and no rounding has made them so
Others = Callable[[float], Iterable[Array]]  # what is expected where the arguments are off by so much
Explain = Callable[[], "ExplainedError | None"]  # of the output; None: nothing is known of this kind of run


@dataclass(frozen=True, eq=False)
class Judged:
    """An output, compared with its reference.

    ``why``: what stands before all numbers, why nothing is decided, what was left out, or why a stated tolerance shows
    nothing. ``tied``: a mask of the elements that were left out, as they hang on a choice between values that float32
    cannot tell apart.
    """

    name: str
    elements: ComparedArrays
    outcome: str
    why: str = ""
    tied: Array | None = None

    @property
    def left_out(self) -> int:
        """Return the number of elements that were left out."""
        return 0 if self.tied is None else int(np.count_nonzero(self.tied))

    @property
    def is_loose(self) -> bool:
        """Return True if it passes by a stated tolerance that zeros, or other whole numbers, pass; `why` says so."""
        return self.outcome == "pass" and bool(self.why) and self.tied is None

    def kept(self, array: Array) -> Array:
        """Return the elements of an array of the output's shape that were compared; all: the array as it is."""
        return array if self.tied is None else array[~self.tied]

    @property
    def max_error(self) -> float:
        """Return the largest distance of the elements that were compared; infinite where one has none."""
        distance = self.kept(self.elements.distance)
        return float(np.where(np.isnan(distance), np.inf, distance).max(initial=0.0))

    @property
    def rule(self) -> Rule:
        """Return the rule by which it was compared."""
        return Rule(self.elements.rtol, self.elements.atol)

    def text(self) -> str:
        """Return sentences about an output that does not pass; '' of one that does."""
        if self.outcome == "pass":
            return ""
        told = self.elements.text(self.name)
        return "\n".join(
            filter(None, [f"{self.name}: {self.why}" if self.why else "", told if told != self.why else ""])
        )


def judged(
    name: str,
    actual: Array,
    expected: Array,
    rule: Rule,
    explain: Explain = lambda: None,
    dtype: str = "",
    others: Others = lambda off: (),
) -> Judged:
    """Return the verdict on an output. NothingCompared where both sides are NaN everywhere.

    ``rule``: the author's, or one without numbers. ``explain`` returns the error that the run explains, which is dear.
    ``dtype``: the name of the output's dtype, where the arrays are its values in float64; their forms are then known.
    ``others`` returns what is expected under tied choices: at most a hundredth of the elements may be one of these.
    """
    unlike = "" if dtype else unlike_form(actual, expected)
    if unlike:
        return Judged(name, replace(compared([], []), message=unlike), "wrong")
    must_hold_numbers(name, actual, expected)
    if rule.is_stated:
        found = _verdict(name, compared(actual, expected, rule))
        if found.outcome == "wrong":
            return found
        loose = passing_zeros(expected, rule)
        return replace(found, why=loose or _whole_numbers_apart(found.elements, dtype or actual.dtype.name))
    found = _by_what_is_known(name, actual, expected, rule, explain, dtype)
    return found if found.outcome == "pass" else _without_ties(found, others, explain)


def _whole_numbers_apart(elements: ComparedArrays, dtype: str) -> str:
    """Return a sentence about integers that differ and agree by ``rtol``, which was meant for floats; else ''."""
    if most_relative(dtype) or not elements.rtol:
        return ""
    apart = elements.distance[elements.distance > elements.atol]
    if not apart.size:
        return ""
    return (
        f"{apart.size} of {elements.size} whole numbers are off, by up to {apart.max():g}, and pass by rtol="
        f"{elements.rtol:g} alone. Compare them apart from the floats, without rtol, or state their atol."
    )


def _by_what_is_known(name: str, actual: Array, expected: Array, rule: Rule, explain: Explain, dtype: str) -> Judged:
    """Return the verdict by the table of dtypes, then by what the run explains within the bounds."""
    bound = bound_of(actual, expected, dtype)
    table = _least(Rule(*tolerance_of([dtype or actual.dtype.name])), bound, rule)
    first = compared(actual, expected, table)
    if first.agree or not bound.rtol:
        return _verdict(name, first)
    explained = explain()
    if explained is None:
        return _verdict(name, compared(actual, expected, replace(bound, equal_nan=rule.equal_nan)))
    rtol, atol = explained.explained
    found = Rule(max(rtol, table.rtol or 0.0), max(atol, table.atol or 0.0), rule.equal_nan)
    within = compared(actual, expected, _least(found, bound, rule))
    if not within.agree and compared(actual, expected, found).agree:
        return Judged(name, within, "undecided", _undecided(explained, found, bound, expected))
    return _verdict(name, within)


def _without_ties(found: Judged, others: Others, explain: Explain) -> Judged:
    """Leave the wrong elements out of a judgement if they are few and each is right under another tied choice.

    Rounding is the cause only where the kernel itself is right in float64: ``>`` in the place of ``>=`` is wrong there.
    Of a kernel that has no run in float64 (ranks, operators, devices) the tied values must not be equal.
    """
    elements = found.elements
    if elements.message or elements.count > _MOST_TIED * elements.size:
        return found
    explained = explain()
    rule, left = Rule(elements.rtol, elements.atol), elements.wrong
    if _hangs_on_equals(others, elements, rule) if explained is None else _is_wrong_anyway(explained, elements, rule):
        return found
    for other in others(_ROUNDING):
        if other.shape == left.shape and left.any():
            left = left & compared(elements.actual, other, rule).wrong
    if left.any():
        return found
    why = (
        f"{elements.count} of {elements.size} elements are left out, the first at {list(elements.first)}: they hang on "
        "a choice between values that are closer than float32 rounds"
    )
    return Judged(found.name, replace(elements, wrong=left), "pass", why, elements.wrong)


def _is_wrong_anyway(explained: ExplainedError, elements: ComparedArrays, rule: Rule) -> bool:
    """Return True if one of the wrong elements is wrong in the kernel's float64 run too."""
    expected = np.asarray(elements.expected, np.float64)
    precise = compared(np.asarray(explained.right, np.float64), expected, rule)
    return bool(precise.message) or bool((precise.wrong & elements.wrong).any())


def _hangs_on_equals(others: Others, elements: ComparedArrays, rule: Rule) -> bool:
    """Return whether an element that is wrong hangs on a choice between values that are equal in float64."""
    first, *rest = [*others(_EQUAL)] or [elements.expected]
    if first.shape != elements.wrong.shape:
        return False
    return any(bool((compared(each, first, rule).wrong & elements.wrong).any()) for each in rest)


def _least(rule: Rule, bound: Rule, stated: Rule) -> Rule:
    pairs = ((rule.rtol, bound.rtol), (rule.atol, bound.atol))
    rtol, atol = (min(mine or 0.0, most or 0.0) for mine, most in pairs)
    return Rule(rtol, atol, stated.equal_nan)


def _verdict(name: str, elements: ComparedArrays) -> Judged:
    if elements.agree:
        return Judged(name, elements, "pass")
    return Judged(name, elements, "wrong", "" if elements.message else unlike_nan(elements.actual, elements.expected))


def _undecided(explained: ExplainedError, found: Rule, bound: Rule, expected: Array) -> str:
    """Return why nothing is decided, in a line without numbers of this case, then in a line with them."""
    numbers = (
        f"The dtypes and sums of this run explain errors of rtol={found.rtol:.1g}, atol={found.atol:.1g}; for "
        f"{explained.dtype} at most rtol={bound.rtol:.1g}, atol={bound.atol:.1g} may be derived."
    )
    dtype = explained.through
    rtol = most_relative(dtype) if dtype else 0.0
    if not dtype:
        return (
            "undecided: rounding explains larger errors than may be derived for the dtype, as where large addends "
            f"cancel. State rtol and atol.\n{numbers}"
        )
    return (
        f"undecided: the output is {explained.dtype}, but its values passed through {dtype}, which rounds more than "
        f"may be derived for {explained.dtype}. State a tolerance that fits {dtype}: rtol={rtol:g}, and an atol of as "
        f"much of the output's root mean square.\n{numbers} Here that atol is {rtol * root_mean_square(expected):.1g}."
    )


def known_errors(run: Run) -> dict[str, ExplainedError]:
    """Return the explained errors of a run by the names of its outputs; {} if the run cannot be repeated for them.

    Runs of ranks, of a device and of another kind of kernel cannot.
    """
    try:
        return {each.name: each for each in run.tolerance().outputs}
    except ValueError:
        return {}
