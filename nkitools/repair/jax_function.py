"""A JAX function with Pallas calls that can be repaired: evaluated by NumPy, or interpreted by JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

from nkitools.chip.numerics import Array
from nkitools.comparison.rule import Rule
from nkitools.pallas.interpret import compiled_quickly, interpret_mode, interpreted
from nkitools.pallas.numpy_evaluation import evaluated
from nkitools.precision.runs import copied
from nkitools.repair.answers import Answer, Progress, answer_of_case, function_of, right_outputs
from nkitools.repair.case import Arguments, Case, error_of, reference_arrays
from nkitools.repair.trials import Part, Trial, parts_of
from nkitools.why.bisection import Bisection

_ALIKE = 1e-2  # parts of the largest value by which a narrow dtype may be rounded otherwise


@dataclass(frozen=True, eq=False)
class JaxFunction:
    """A JAX function with Pallas calls. ``in_numpy``: evaluated by NumPy, which compiles nothing."""

    function: Callable[..., Any]
    in_numpy: bool = False

    @property
    def forks(self) -> bool:
        """Return whether a fork may run it: not in JAX, whose threads a fork would leave behind."""
        return self.in_numpy

    def parts(self) -> list[Part]:
        """Return the author's functions that it runs, kernel bodies and index maps among them."""
        return parts_of(self.function)

    def outputs(self, given: Arguments, *, wide: bool = False) -> list[Array]:
        """Return the outputs for arguments. JAX interprets in the function's own dtypes; ``wide`` is for NumPy."""
        if self.in_numpy:
            with _one_thread():
                return reference_arrays(evaluated(self.function, *given, wide=wide))
        args, kwargs = copied(given)
        with compiled_quickly(), interpreted(interpret_mode(self.function, args, kwargs)):
            return reference_arrays(self.function(*args, **kwargs))

    def findings(self, given: Arguments) -> frozenset[str]:
        """Return the memory rules that an evaluation by NumPy breaks; none for JAX, which is used for values alone."""
        if not self.in_numpy:
            return frozenset()
        try:
            with _one_thread():
                first, second = (
                    reference_arrays(evaluated(self.function, *given, unwritten=each, strict=True))
                    for each in (None, 1.0)
                )
        except IndexError:
            return frozenset({"PL201"})
        return frozenset() if error_of(first, second) == 0 else frozenset({"PL207"})

    def run(self) -> None:
        """Return no run: there is no record of instructions."""


def _one_thread() -> AbstractContextManager[Any]:
    """Let NumPy multiply matrices in one thread: they are small, and other processes evaluate beside this one."""
    return cast(AbstractContextManager[Any], _threads().limit(limits=1))


@cache
def _threads() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def answer_of_jax(
    function: Callable[..., Any],
    given: Arguments,
    reference: Any,
    end: float,
    *,
    rules: Sequence[Rule] = (),
    want: list[Array] | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Search for an edit that makes the outputs of a JAX function with Pallas calls right.

    ``end``: of the search, by the monotonic clock. ``want``: the right outputs, if they are at hand.
    """
    name = getattr(function, "__name__", "kernel")
    right = right_outputs(reference, given) if want is None else want
    case = Case(JaxFunction(function), given, right, rules, function_of(reference))
    got = case.kernel.outputs(given)
    if case.is_right(got):
        return Answer(name, "right")
    narrow = Bisection(name, "wrong", None, (), None)
    quick = _in_numpy(case, got)
    answer = None if quick is None else answer_of_case(quick, narrow, end, workers=workers, progress=progress)
    if answer is not None and (answer.trial is None or _is_right_after(answer.trial, case)):
        return answer
    return answer_of_case(case, narrow, end, progress=progress)


def _in_numpy(case: Case, got: list[Array]) -> Case | None:
    """Return the case with NumPy as its evaluator; None if that does not give JAX's outputs, ``got``."""
    assert isinstance(case.kernel, JaxFunction)
    kernel = replace(case.kernel, in_numpy=True)
    with suppress(Exception):  # whatever NumPy cannot evaluate
        if error_of(kernel.outputs(case.given), got) <= _ALIKE:
            return replace(case, kernel=kernel)
    return None


def _is_right_after(trial: Trial, case: Case) -> bool:
    """Return whether an edit that is right by NumPy is right in JAX's own interpretation, too."""
    with suppress(Exception), trial.running():  # whatever an edited function raises
        return case.is_right(case.kernel.outputs(case.given))
    return False
