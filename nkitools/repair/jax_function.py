"""A JAX function with Pallas calls, as a kernel that can be repaired: interpreted on the CPU, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from nkitools.chip.numerics import Array
from nkitools.comparison.rule import Rule
from nkitools.pallas.interpret import compiled_quickly, interpret_mode, interpreted
from nkitools.precision.runs import copied
from nkitools.repair.answers import Answer, Progress, answer_of_case, function_of, right_outputs
from nkitools.repair.case import Arguments, Case, reference_arrays
from nkitools.repair.trials import Part, parts_of
from nkitools.why.bisection import Bisection


@dataclass(frozen=True, eq=False)
class JaxFunction:
    """A JAX function with Pallas calls."""

    function: Callable[..., Any]
    forks = False  # JAX has threads, which a fork would leave behind

    def parts(self) -> list[Part]:
        """Return the functions of the author's that it runs, bodies and index maps among them."""
        return parts_of(self.function)

    def outputs(self, given: Arguments, *, wide: bool = False) -> list[Array]:
        """Return the outputs, in the dtypes that the function has."""
        args, kwargs = copied(given)
        with compiled_quickly(), interpreted(interpret_mode(self.function, args, kwargs)):
            return reference_arrays(self.function(*args, **kwargs))

    def findings(self, given: Arguments) -> frozenset[str]:
        """Return no rules: the search judges values alone."""
        return frozenset()

    def run(self) -> None:
        """Return no run: there is no record of instructions."""


def answer_of_jax(
    function: Callable[..., Any],
    given: Arguments,
    reference: Any,
    end: float,
    *,
    rules: Sequence[Rule] = (),
    want: list[Array] | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Return what is wrong in a JAX function with Pallas calls; ``end``: of the search, by the monotonic clock.

    ``want``: the right outputs, where they are at hand.
    """
    name = getattr(function, "__name__", "kernel")
    right = right_outputs(reference, given) if want is None else want
    case = Case(JaxFunction(function), given, right, rules, function_of(reference))
    if case.is_right(case.kernel.outputs(given)):
        return Answer(name, "right")
    return answer_of_case(case, Bisection(name, "wrong", None, (), None), end, progress=progress)
