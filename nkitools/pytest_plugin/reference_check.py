"""Compares a kernel's outputs and tensors with a test's expectations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from nkitools.comparison.form import RETURNS_NONE, NothingCompared
from nkitools.precision.judgement import Judged, judged, known_errors
from nkitools.precision.runs import arrays_in
from nkitools.precision.tied_choices import TiedChoices
from nkitools.pytest_plugin.wrong_blocks import add_wrong_blocks
from nkitools.record.saved.encoding import as_array, leaves

if TYPE_CHECKING:
    from nkitools.chip.numerics import Array
    from nkitools.comparison.rule import Rule
    from nkitools.record.expected_outputs import Reference
    from nkitools.record.explained_errors import ExplainedError
    from nkitools.record.run import Run


class Undecided(AssertionError):
    """An output is off by more than a derived tolerance may allow, and by less than the run explains."""


class TiedChoicesWarning(UserWarning):
    """Elements of an output were left out of a comparison, as they hang on a choice that rounding may flip."""


class LooseToleranceWarning(UserWarning):
    """A stated tolerance is as large as all expected values, or integers differ and pass by it."""


def assert_as_expected(
    run: Run,
    changed: Mapping[str, tuple[Any, Any]] | None = None,
    ties: TiedChoices | None = None,
    *,
    is_simulated: bool = True,
) -> None:
    """Compare the outputs of a run with its reference, and tensors with their expected contents.

    ``changed``: arguments that the kernel was to change, by name, each with its expected value. ``ties``: the outputs
    under tied choices.

    AssertionError if they differ, `Undecided` if neither agreement nor difference can be shown, ValueError if nothing
    is compared.
    """
    __tracebackhide__ = True
    assert run.reference is not None
    if run.reference.values is not None or not run.reference.expect:
        _assert_outputs(run, run.reference, changed or {}, ties or TiedChoices(None, (), {}))
    if run.reference.expect and is_simulated:
        _assert_tensors(run)


def _assert_outputs(run: Run, reference: Reference, changed: Mapping[str, tuple[Any, Any]], ties: TiedChoices) -> None:
    __tracebackhide__ = True
    found = list(_judged(run, reference, changed, ties))
    for each in found:
        if each.left_out or each.is_loose:
            category = TiedChoicesWarning if each.left_out else LooseToleranceWarning
            warnings.warn(f"{each.name}: {each.why}", category, stacklevel=6)
    run.reference = replace(reference, rules=tuple(each.rule for each in found))
    bad = next((each for each in found if each.outcome != "pass"), None)
    if bad is not None:
        rule = replace(bad.rule, equal_nan=reference.equal_nan)
        text = "\n".join(each.text() for each in found if each.outcome != "pass")
        add_wrong_blocks(run, reference.values, rule)
        _fail(bad.elements.actual, bad.elements.expected, rule, text, is_wrong=bad.outcome == "wrong")


def _fail(actual: Array, expected: Array, rule: Rule, text: str, *, is_wrong: bool) -> NoReturn:
    """Fail the test; the report on the failure finds the first three arguments in this frame, by their names."""
    __tracebackhide__ = True
    raise AssertionError(text) if is_wrong else Undecided(text)


def _judged(
    run: Run, reference: Reference, changed: Mapping[str, tuple[Any, Any]], ties: TiedChoices
) -> Iterator[Judged]:
    """Yield the verdict on each output, then on each argument that was to be changed."""
    outputs, wanted = dict(leaves(run.outputs)), dict(leaves(reference.values))
    if outputs.keys() != wanted.keys():
        raise AssertionError(
            f"the kernel returns {', '.join(outputs)}; the reference has {', '.join(wanted) or 'nothing'}"
        )
    for name, (now, left) in changed.items():
        outputs, wanted = outputs | dict(leaves(now, name)), wanted | dict(leaves(left, name))
    pairs = {name: (_numbers(value), _numbers(wanted[name])) for name, value in outputs.items()}
    if not any(array is not None for pair in pairs.values() for array in pair):
        raise NothingCompared(
            f"{run.kernel} has returned no array, and the reference neither: nothing is compared. Return what the "
            "kernel computes, or name the arguments that it changes (mutates=)."
        )
    explained = _explained(run)
    places = {name: place for place, name in enumerate(name for name, pair in pairs.items() if pair[1] is not None)}
    for name, (actual, expected) in pairs.items():
        if actual is not None and expected is not None:
            yield judged(
                name, actual, expected, reference.rule, partial(explained, name), others=partial(ties.of, places[name])
            )
        elif actual is not None or expected is not None:
            returned, right = ("an array" if each is not None else "none" for each in (actual, expected))
            why = f" ({RETURNS_NONE})" if reference.values is None else ""
            raise AssertionError(f"{name}: the kernel returns {returned}, the reference {right}{why}")


def _numbers(value: Any) -> Array | None:
    return np.asarray(value) if isinstance(value, (bool, int, float, complex)) else as_array(value)


def _explained(run: Run) -> Callable[[str], ExplainedError | None]:
    """Return a function that returns the explained error of an output or argument; None if unknown."""

    known = cache(partial(known_errors, run))

    def explained(name: str) -> ExplainedError | None:
        places = [place for place, value in leaves(run.outputs) if as_array(value) is not None]
        names = [own for own, _ in arrays_in("output", run.outputs)]
        return known().get(dict(zip(places, names, strict=False)).get(name, name))

    return explained


def _assert_tensors(run: Run) -> None:
    """Compare tensors of the kernel with the results of the test's functions, in float64."""
    __tracebackhide__ = True
    from nkitools.why.bisection import wrong_tensors_of_run

    text = wrong_tensors_of_run(run)
    if text:
        raise AssertionError(text)
