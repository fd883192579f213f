"""The comparison of a kernel's outputs and tensors with what a test has expected of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from nkitools.comparison.form import NothingCompared
from nkitools.precision.judgement import Judged, judged
from nkitools.precision.runs import arrays_in
from nkitools.record.saved.encoding import as_array, leaves

if TYPE_CHECKING:
    from nkitools.chip.numerics import Array
    from nkitools.comparison.rule import Rule
    from nkitools.record.expected_outputs import Reference
    from nkitools.record.explained_errors import ExplainedError
    from nkitools.record.run import Run


class Undecided(AssertionError):
    """An output is off by more than a derived tolerance may allow, and by less than the run explains."""


def assert_as_expected(run: Run, *, is_simulated: bool = True) -> None:
    """Compare the outputs of a run with its reference, and tensors with what they should hold.

    AssertionError where they differ, `Undecided` where neither can be shown, ValueError where nothing is compared.
    """
    __tracebackhide__ = True
    assert run.reference is not None
    if run.reference.values is not None or not run.reference.expect:
        _assert_outputs(run, run.reference)
    if run.reference.expect and is_simulated:
        _assert_tensors(run)


def _assert_outputs(run: Run, reference: Reference) -> None:
    __tracebackhide__ = True
    found = list(_judged(run, reference))
    run.reference = replace(reference, rules=tuple(each.rule for each in found))
    bad = next((each for each in found if each.outcome != "pass"), None)
    if bad is not None:
        rule = replace(bad.rule, equal_nan=reference.equal_nan)
        text = "\n".join(each.text() for each in found if each.outcome != "pass")
        _fail(bad.elements.actual, bad.elements.expected, rule, text, is_wrong=bad.outcome == "wrong")


def _fail(actual: Array, expected: Array, rule: Rule, text: str, *, is_wrong: bool) -> NoReturn:
    """Fail the test; the report on the failure finds the first three arguments in this frame, by their names."""
    __tracebackhide__ = True
    raise AssertionError(text) if is_wrong else Undecided(text)


def _judged(run: Run, reference: Reference) -> Iterator[Judged]:
    """Yield the verdict on each output."""
    outputs, wanted = dict(leaves(run.outputs)), dict(leaves(reference.values))
    arrays = {name: array for name, value in outputs.items() if (array := _numbers(value)) is not None}
    if not arrays and not any(_numbers(value) is not None for value in wanted.values()):
        raise NothingCompared(
            f"{run.kernel} has returned no array, and the reference neither: nothing is compared. Return what the "
            "kernel computes, or name the arguments that it changes (mutates=)."
        )
    if outputs.keys() != wanted.keys():
        raise AssertionError(
            f"the kernel returns {', '.join(outputs)}; the reference has {', '.join(wanted) or 'nothing'}"
        )
    explained = _explained_outputs(run)
    for place, (name, actual) in enumerate(arrays.items()):
        expected = _numbers(wanted[name])
        if expected is None:
            raise AssertionError(f"{name}: the kernel returns an array, the reference {wanted[name]!r}")
        yield judged(name, actual, expected, reference.rule, partial(explained, place))


def _numbers(value: Any) -> Array | None:
    return np.asarray(value) if isinstance(value, (bool, int, float, complex)) else as_array(value)


def _explained_outputs(run: Run) -> Any:
    """Return a function that returns the explained error of an output, None where it is not known."""

    @cache
    def known() -> dict[str, ExplainedError]:
        try:
            return {each.name: each for each in run.tolerance().outputs}
        except ValueError:  # of ranks, of a device, of another kind of kernel
            return {}

    def explained(place: int) -> ExplainedError | None:
        names = [name for name, _ in arrays_in("output", run.outputs)]
        return known().get(names[place]) if place < len(names) else None

    return explained


def _assert_tensors(run: Run) -> None:
    """Compare tensors of the kernel with what the test's functions say that they hold, in float64."""
    __tracebackhide__ = True
    from nkitools.why.bisection import wrong_tensors_of_run

    text = wrong_tensors_of_run(run)
    if text:
        raise AssertionError(text)
