"""One case of a sweep: a kernel with the arguments of the case, run with every check and judged against a reference."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from nkitools.chip.argument_types import Kernel
from nkitools.comparison.form import RETURNS_NONE, NothingCompared, must_be_another, unlike_form
from nkitools.comparison.rule import Rule, stated_rule
from nkitools.kernel_settings import constants_of, constants_set, keywords_of, with_generator
from nkitools.launch.kept_arguments import Keeping, changes_fail
from nkitools.launch.kernel import as_launch
from nkitools.launch.signatures import named_arguments
from nkitools.precision.difference import Difference, exact
from nkitools.precision.independent_reference import independent_of
from nkitools.precision.judgement import Judged, judged, known_errors
from nkitools.precision.runs import arrays_in, copied, run_half
from nkitools.precision.split import Result, results_of, with_full
from nkitools.precision.tied_choices import TiedChoices
from nkitools.record.explained_errors import ExplainedError
from nkitools.record.offers import answer
from nkitools.record.run import Run
from nkitools.rules.finding import Finding, KernelError, NotModelled
from nkitools.sweeps.argument_recipe import ArgumentRecipe
from nkitools.sweeps.named_function import NamedFunction, named
from nkitools.targets import simulator_for
from nkitools.targets.builtin import is_jax_function
from nkitools.targets.changed_arguments import must_be_changeable, must_change_arguments
from nkitools.targets.gpsimd import is_custom_operator
from nkitools.targets.imports import stand_in

LAUNCH = ("grid", "ranks")  # names of a space that say how an NKI kernel is launched
ROW = (  # what a row has besides the names of a case
    "chip",
    "outcome",
    "findings",
    "max_error",
    "estimate_us",
    "seconds",
    "low_precision",
    "remaining",
    "error",
    "left_out",
)


@dataclass(frozen=True)
class Case:
    """One case: the values of a space's names, and the chip."""

    values: Mapping[str, Any]
    chip: str


@dataclass(frozen=True)
class CheckedCall:
    """The kernel, its arguments and its reference; called with a `Case` it returns the case's results.

    ``kind``: ``nki``, ``pallas`` or ``operator``. ``rtol`` and ``atol``: the allowed error as in NumPy; without both
    the error that the run's dtypes and sums explain. ``mutates``: the parameters whose arrays an NKI kernel may change;
    they are compared with the reference's changes to its own copies.
    """

    kernel: Any
    kind: str
    arguments: Callable[..., Any]
    reference: Callable[..., Any] | None = None
    rtol: float | None = None
    atol: float | None = None
    mutates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a call that would compare nothing, and a tolerance that is no finite number."""
        stated_rule(self.rtol, self.atol)
        _must_compare(self.reference, rtol=self.rtol, atol=self.atol)
        must_be_another(self.kernel, self.reference)
        if self.mutates:
            must_change_arguments(self.kernel, self.mutates)

    def __call__(self, case: Case) -> dict[str, Any]:
        """Return the results of a case; an error of the kernel is one of them."""
        began = time.perf_counter()
        with stand_in("always") if self.kind == "nki" else nullcontext():
            try:
                found = self._judged(case)
            except MemoryError:
                found = _result("error", error="MemoryError: more memory than a worker may have")
            except KernelError as error:
                found = _result("finding", findings=[error.finding])
            except Exception as error:  # whatever a case raises is the case's own: others may run
                found = _result("error", error=f"{type(error).__name__}: {error}")
        return {**found, "seconds": round(time.perf_counter() - began, 6)}

    def arguments_of(self, case: Case) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional and the named arguments of the kernel."""
        made = self.arguments(**taken(self.arguments, with_generator(self.arguments, case.values)))
        if not isinstance(made, Mapping):
            args = tuple(made) if isinstance(made, (tuple, list)) else (made,)
            return args, self._keywords(case, args, {})
        if self.kind == "operator":  # which has no keywords
            return tuple(made.values()), {}
        return (), {**made, **self._keywords(case, (), made)}

    def _keywords(self, case: Case, args: tuple[Any, ...], made: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values whose parameters of the kernel have no argument yet."""
        if self.kind == "operator":
            return {}
        bound = {*list(inspect.signature(self.kernel).parameters)[: len(args)], *made, *LAUNCH}
        return {name: value for name, value in keywords_of(self.kernel, case.values).items() if name not in bound}

    def truth(self, case: Case, *args: Any, **kwargs: Any) -> Any:
        """Call the reference with the arguments by position and the case's names as keywords; return its results."""
        assert self.reference is not None
        own = [value for name, value in kwargs.items() if name not in case.values]
        left = list(inspect.signature(self.reference).parameters)[len(args) + len(own) :]
        named = {name: value for name, value in taken(self.reference, case.values).items() if name in left}
        right = self.reference(*args, *own, **named)
        if not self.mutates:
            return right
        if "ranks" in case.values:
            raise NothingCompared("mutates: the arguments of ranks are not compared. Leave mutates or ranks out.")
        signature = inspect.signature(self.kernel)
        bound = named_arguments(signature, signature.bind_partial(*args, **kwargs).arguments)
        for name in self.mutates:
            must_be_changeable(name, bound.get(name))
        returned = [array for _, (array, _) in arrays_in("output", right)]
        return [*returned, *(bound[name] for name in bound if name in self.mutates)]

    def _judged(self, case: Case) -> dict[str, Any]:
        constants = {name: value for name, value in case.values.items() if name in constants_of(self.kernel)}
        with constants_set(self.kernel, constants) if constants else nullcontext():
            args, kwargs = self.arguments_of(case)
            if self.kind == "nki" and "ranks" not in case.values:
                return self._split(case, args, kwargs)
            return self._run(case, args, kwargs)

    def _split(self, case: Case, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Run an NKI kernel; if the stated rule or the dtype's table does not pass it, also in full precision.

        Cases without a reference run in full precision too. If the kernel changes arguments, these are results as well.
        """
        launch = as_launch(self.kernel, grid=case.values.get("grid"), chip=case.chip, rules="report")
        if launch.dialect.writes_arguments:
            launch = replace(launch, keeping=Keeping(frozenset(self.mutates), "error", restores=False))
        precise = run_half(launch, "precise", args, kwargs)
        findings = precise.run.findings
        if any(each.severity == "error" for each in findings):
            return _result("finding", findings, estimate_us=_estimate(precise.run))
        full = run_half(launch, "full", args, kwargs) if self.mutates else None
        truth = None if self.reference is None else partial(self.truth, case)
        results = results_of(precise, full or precise, truth, args, kwargs, matches_kinds=True)
        explain = cache(partial(known_errors, precise.run))  # dear: the kernel runs five times more
        judgements = self._judgements(results, TiedChoices(truth, args, kwargs), explain)
        is_plain = all(each is not None and each.outcome == "pass" for each in judgements)
        if full is None and not (is_plain and not explain.cache_info().misses):
            full = run_half(launch, "full", args, kwargs)
            results = with_full(results, precise, full)
        results = [_kept(each, of) for each, of in zip(results, judgements, strict=True)]
        return _result(
            _worst(judgements),
            findings,
            error=_why(judgements),
            max_error=_most(each.error for each in results),
            low_precision=None if full is None else _most(each.low_precision for each in results),
            remaining=None if full is None else _most(each.remaining for each in results),
            estimate_us=_estimate(precise.run),
            left_out=sum(each.left_out for each in judgements if each is not None),
        )

    def _judgements(
        self, results: Sequence[Result], ties: TiedChoices, explain: Callable[[], dict[str, ExplainedError]] = dict
    ) -> list[Judged | None]:
        """Return the verdict on each result; None without a reference."""
        rule = Rule(self.rtol, self.atol)
        return [
            None
            if each.right is None
            else judged(
                each.name,
                each.rounded,
                each.right,
                rule,
                partial(_named, explain, each.name),
                each.dtype,
                others=partial(ties.of, place),
            )
            for place, each in enumerate(results)
        ]

    def _run(self, case: Case, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Run a kernel of another kind, or ranks of an NKI kernel."""
        right = None
        if self.reference is not None:
            own, given = copied((args, kwargs))
            grid = case.values.get("grid")
            with independent_of(self.kernel, own, given, chip=case.chip or "", grid=grid):
                right = self.truth(case, *own, **given)
            if right is None:
                raise TypeError(RETURNS_NONE)
        own, named = copied((args, kwargs))
        launch: dict[str, Any] = {name: case.values[name] for name in LAUNCH if name in case.values}
        by_kind: dict[str, dict[str, Any]] = {"nki": {"chip": case.chip}, "pallas": {"chips": (case.chip,)}}
        launch |= by_kind.get(self.kind, {})
        launch |= {"mutates": self.mutates} if self.mutates else {}
        with changes_fail():
            run = simulator_for(self.kernel).run(self.kernel, *own, **{**named, **launch}, rules="report")
        if any(each.severity == "error" for each in run.findings):
            return _result("finding", run.findings)
        results = _results(run.outputs, right)
        truth = None if self.reference is None else partial(self.truth, case)
        judgements = self._judgements(results, TiedChoices(truth, args, kwargs))
        results = [_kept(each, of) for each, of in zip(results, judgements, strict=True)]
        return _result(
            _worst(judgements),
            run.findings,
            error=_why(judgements),
            max_error=_most(each.error for each in results),
            estimate_us={"nki": _estimate, "pallas": _estimate_of_calls}.get(self.kind, _unknown)(run),
            left_out=sum(each.left_out for each in judgements if each is not None),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the call by the names of its functions. ValueError for a function without a name."""
        return _found, (self.kind, *self._places(), self.rtol, self.atol, self.mutates)

    def _places(self) -> list[ArgumentRecipe | NamedFunction | None]:
        functions = (self.kernel, self.arguments, self.reference)
        return [each if isinstance(each, (ArgumentRecipe, type(None))) else named(each) for each in functions]

    def as_text(self) -> str:
        """Return the names of the functions as JSON; '' if one of them has no name."""
        try:
            places = self._places()
        except ValueError:
            return ""
        parts = [None if each is None else vars(each) for each in places]
        return json.dumps(
            {"kind": self.kind, "functions": parts, "rtol": self.rtol, "atol": self.atol, "mutates": self.mutates},
            default=str,
        )

    @classmethod
    def from_text(cls, text: str) -> CheckedCall:
        """Return the call of a text from `as_text`. ValueError if the text is empty; other errors if its functions are
        gone.
        """
        if not text:
            raise ValueError("the functions of this sweep had no names of their own")
        found = json.loads(text)
        places = [
            None if each is None else ArgumentRecipe(**each) if "table" in each else NamedFunction(**each)
            for each in found["functions"]
        ]
        return _found(found["kind"], *places, found["rtol"], found["atol"], found.get("mutates", ()))


def _must_compare(reference: Any, **tolerances: float | None) -> None:
    """Refuse a reference that is no function, and tolerances without one: ValueError."""
    if reference is not None and not callable(reference):
        kind = type(reference).__name__
        raise ValueError(
            f"reference: must be a function of the kernel's arguments, it is {kind}: each case has arguments of its own"
        )
    for name, value in tolerances.items():
        if value is not None and reference is None:
            raise ValueError(f"{name}: nothing is compared without a reference. Pass reference=, or leave {name} out.")


def kind_of(kernel: Kernel) -> str:
    """Return ``nki``, ``pallas`` or ``operator``."""
    if is_custom_operator(kernel):
        return "operator"
    return "pallas" if is_jax_function(kernel) else "nki"


def taken(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a function takes as keywords: all of them if it has ``**case``."""
    parameters = inspect.signature(function).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return dict(values)
    names = {each.name for each in parameters}
    return {name: value for name, value in values.items() if name in names}


def _found(kind: str, *rest: Any) -> CheckedCall:
    """Return a call whose functions another process has named."""
    *places, rtol, atol, mutates = rest
    with stand_in("always"):  # the file of another kind of kernel may import NKI's, too
        kernel, arguments, reference = (each.found() if isinstance(each, NamedFunction) else each for each in places)
    return CheckedCall(kernel, kind, arguments, reference, rtol, atol, tuple(mutates))


def _results(outputs: Any, right: Any) -> list[Result]:
    """Return the outputs of a run, each with the right result, if there is a reference."""
    found = [array for _, (_, array) in arrays_in("output", outputs)]
    wanted = [None] * len(found) if right is None else [array for _, (_, array) in arrays_in("output", right)]
    if right is not None and not found:
        raise NothingCompared("the kernel returns no array: nothing is compared with what the reference returns")
    if len(wanted) != len(found):
        raise ValueError(f"reference: it holds {len(wanted)} arrays, the kernel returns {len(found)}")
    results = []
    for array, truth in zip(found, wanted, strict=True):
        unlike = "" if truth is None else unlike_form(array, truth)
        if unlike:
            raise ValueError(f"reference: output: {unlike}")
        value = exact(array)
        results.append(Result("output", str(array.dtype), value, value, None if truth is None else exact(truth)))
    return results


def _why(judgements: Sequence[Judged | None]) -> str:
    """Return why the verdict is undecided, or why a stated tolerance is loose; else ''."""
    known = [each for each in judgements if each is not None]
    if _worst(judgements) == "undecided":
        return next(each.why for each in known if each.outcome == "undecided")
    return next((each.why for each in known if each.is_loose), "") if _worst(judgements) == "pass" else ""


def _worst(judgements: Iterable[Judged | None]) -> str:
    """Return the worst outcome: ``wrong``, ``undecided``, or ``pass``."""
    outcomes = {each.outcome for each in judgements if each is not None}
    return next((outcome for outcome in ("wrong", "undecided") if outcome in outcomes), "pass")


def _kept(result: Result, judgement: Judged | None) -> Result:
    """Return a result without the elements that its comparison has left out."""
    if judgement is None or result.right is None or not judgement.left_out:
        return result
    arrays = (judgement.kept(each) for each in (result.rounded, result.wide, result.right))
    return Result(result.name, result.dtype, *arrays)


def _named(known: Callable[[], dict[str, ExplainedError]], name: str) -> ExplainedError | None:
    return known().get(name)


def _most(differences: Iterable[Difference | None]) -> float | None:
    """Return the largest absolute difference; None if none is known."""
    return max((each.max_abs for each in differences if each is not None), default=None)


def _estimate(run: Run) -> float | None:
    """Return the estimated latency; None for a run without instructions."""
    return answer("latency", run) if any(record.count for record in run.all_records) else None


def _estimate_of_calls(run: Any) -> float | None:
    """Return the estimated time of all Pallas calls of a function; None without a compiler."""
    try:
        times = [each.latency_us for each in run.estimate().kernels]
    except (NotModelled, ValueError):
        return None
    return None if None in times else sum(times)


def _unknown(_run: Any) -> None:
    """Return no estimate: custom operators have none."""


def _result(
    outcome: str, findings: Sequence[Finding] = (), *, error: str = "", **numbers: float | None
) -> dict[str, Any]:
    if any(each.severity == "error" for each in findings):
        outcome = "finding"
    shown = [
        {
            "rule": each.rule,
            "severity": each.severity,
            "file": each.file,
            "line": each.line,
            "message": each.message,
            "count": each.count,
            "facts": dict(each.facts),
        }
        for each in findings
    ]
    fields = dict.fromkeys(("max_error", "low_precision", "remaining", "estimate_us"))
    return {"outcome": outcome, "findings": shown, "error": error, **fields, "left_out": 0, **numbers}
