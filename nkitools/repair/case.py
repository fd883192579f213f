"""A wrong kernel with the arguments of its test, its right outputs, and the rules that compare them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.comparison.bounds import bound_of, most_relative
from nkitools.comparison.compared_arrays import compared, distances, numbers_of
from nkitools.comparison.rule import Rule
from nkitools.facts import options
from nkitools.launch.programs import run_launch
from nkitools.precision.runs import arrays_in, copied, in_float64, in_numpy
from nkitools.record.prints.print_display import showing_prints
from nkitools.record.run import Run
from nkitools.repair.trials import Part, parts_of
from nkitools.why.traced_calls import Call

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Runs(Protocol):
    """A kernel that gives outputs for arguments, and whose functions can be edited."""

    @property
    def forks(self) -> bool:
        """Return whether a fork of this process may run it."""

    def parts(self) -> list[Part]:
        """Return the author's functions that the kernel runs."""

    def outputs(self, given: Arguments, *, wide: bool = False) -> list[Array]:
        """Return the outputs for arguments, in float64 throughout if ``wide``. Raises whatever the kernel raises."""

    def findings(self, given: Arguments) -> frozenset[str]:
        """Return the ids of the error-level rules that a run on arguments breaks."""

    def run(self) -> Run | None:
        """Run the kernel on its test's arguments, and return the run with its record; None if it has none."""


@dataclass(frozen=True, eq=False)
class NkiKernel:
    """An NKI kernel of either dialect, as a test called it. ``changed``: arguments that are outputs, too."""

    call: Call
    changed: tuple[str, ...] = ()
    forks = True

    def parts(self) -> list[Part]:
        """Return the author's functions that the kernel runs."""
        return parts_of(self.call.launch.function)

    def outputs(self, given: Arguments, *, wide: bool = False) -> list[Array]:
        """Return the outputs for arguments, then the arguments ``changed``; in float64 throughout if ``wide``."""
        if wide:
            half = replace_arguments(self.call, in_numpy(given)).run(precision="float64", rules="off")
            return [each.array for each in (*half.outputs.values(), *(half.arguments[name] for name in self.changed))]
        return self._run(given, "off")[0]

    def run(self) -> Run:
        """Run the kernel on its test's arguments, and return the run with its record."""
        return self.call.run(precision="precise", rules="report").run

    def findings(self, given: Arguments) -> frozenset[str]:
        """Return the ids of the error-level rules that a run on arguments breaks."""
        return self._run(given, "report")[1]

    def _run(self, given: Arguments, rules: str) -> tuple[list[Array], frozenset[str]]:
        args, kwargs = copied(in_numpy(given))  # results that are made as JAX's arrays would hang in a fork
        launch = replace(self.call.launch, rules=rules, precision="precise", echo=None)

        def apart() -> Any:
            with options.override(watch=None, schedule_seed=None), showing_prints(None):
                return run_launch(launch, args, kwargs)

        run = Context().run(apart)
        found = [array for _, (_, array) in arrays_in("output", run.outputs)]
        now = replace_arguments(self.call, (args, kwargs))
        found += [np.asarray(now.at(now.places()[name])) for name in self.changed]
        return found, frozenset(each.rule for each in run.findings if each.severity == "error")


def replace_arguments(call: Call, given: Arguments) -> Call:
    """Return a call with other arguments."""
    found = Call.__new__(Call)
    found.launch, (found.args, found.kwargs) = call.launch, given
    return found


@dataclass(frozen=True, eq=False)
class FunctionRuns:
    """A plain function of arrays, such as a reference, as a kernel without a record."""

    function: Callable[..., Any]
    forks: bool = True

    def parts(self) -> list[Part]:
        """Return the author's functions that the function runs."""
        return parts_of(self.function)

    def outputs(self, given: Arguments, *, wide: bool = False) -> list[Array]:
        """Return the arrays that the function returns."""
        args, kwargs = in_float64(given) if wide else copied(given)
        with np.errstate(all="ignore"):
            return reference_arrays(self.function(*args, **kwargs))

    def findings(self, given: Arguments) -> frozenset[str]:
        """Return no rules: a function breaks none."""
        return frozenset()

    def run(self) -> None:
        """Return None: a function has no record."""


@dataclass(frozen=True, eq=False)
class Case:
    """A kernel, the arguments of its test, the right outputs, and the rules by which outputs are compared.

    ``reference``: a function that returns the right outputs for other arguments; None if only arrays are known.
    ``dtypes``: those of the outputs of the kernel as it is. An edit may not make outputs less precise.
    """

    kernel: Runs
    given: Arguments
    want: list[Array]
    rules: Sequence[Rule] = ()
    reference: Callable[..., Any] | None = None
    dtypes: tuple[str, ...] = ()

    def rule_of(self, place: int, got: Array, want: Array) -> Rule:
        """Return the rule of an output: the author's, else the widest one that its dtype allows."""
        rule = self.rules[place] if place < len(self.rules) else Rule()
        return rule if rule.is_stated else bound_of(got, want)

    def is_right(self, got: Sequence[Array], want: Sequence[Array] | None = None) -> bool:
        """Return whether outputs have the right shapes, dtypes that are no coarser, and right values."""
        want = self.want if want is None else want
        if len(got) < len(want):
            return False
        for place, (one, other) in enumerate(zip(got, want, strict=False)):
            if one.shape != other.shape or self._is_coarser(place, one.dtype.name):
                return False
            if not compared(one, other, self.rule_of(place, one, other)).agree:
                return False
        return True

    def _is_coarser(self, place: int, dtype: str) -> bool:
        return place < len(self.dtypes) and 0 < most_relative(self.dtypes[place]) < most_relative(dtype)

    def wrong(self, got: Sequence[Array]) -> list[Array | None]:
        """Return for each output a mask of the elements that differ; None if the shapes do."""
        return [
            compared(one, other, self.rule_of(place, one, other)).wrong if one.shape == other.shape else None
            for place, (one, other) in enumerate(zip(got, self.want, strict=False))
        ]

    def right_for(self, given: Arguments) -> list[Array]:
        """Return the right outputs for other arguments, which are copied. Raises whatever the reference raises."""
        assert self.reference is not None
        args, kwargs = copied(given)
        with np.errstate(all="ignore"):
            return reference_arrays(self.reference(*args, **kwargs))


def reference_arrays(value: Any) -> list[Array]:
    """Return the arrays within a value that a reference is or returns."""
    if isinstance(value, np.generic | int | float):
        value = np.asarray(value)
    return [array for _, (_, array) in arrays_in("output", value)]


def error_of(got: Sequence[Array], want: Sequence[Array]) -> float:
    """Return the largest error of some arrays, relative to the largest right value of each; inf if shapes differ."""
    worst = 0.0
    for one, other in zip(got, want, strict=False):
        if one.shape != other.shape:
            return float("inf")
        try:
            far, second = distances(one, other), numbers_of(other)
        except (TypeError, ValueError):
            continue
        far = far / (float(np.abs(second[np.isfinite(second)]).max(initial=0.0)) or 1.0)
        worst = max(worst, float(np.nan_to_num(far, nan=np.inf, posinf=np.inf).max(initial=0.0)))
    return worst


def wide_want(reference: Callable[..., Any], given: Arguments) -> list[Array]:
    """Return the results of a reference for arguments in float64."""
    args, kwargs = in_float64(given)
    with np.errstate(all="ignore"):
        return reference_arrays(reference(*args, **kwargs))
