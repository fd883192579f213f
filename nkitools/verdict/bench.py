"""The two processes of a verdict: one runs the kernel, the other computes the right results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from nkitools.comparison.bounds import most_relative, root_mean_square
from nkitools.comparison.rule import Rule
from nkitools.precision.judgement import Judged, judged
from nkitools.precision.split import Result, results_of
from nkitools.precision.tied_choices import TiedChoices
from nkitools.record.explained_errors import ExplainedError
from nkitools.verdict.candidate import Candidate, Described, Ran
from nkitools.verdict.cases import Given
from nkitools.verdict.child import Answerer, Gone, Raised
from nkitools.verdict.judge import Judge, Known
from nkitools.verdict.subject import Subject

MEMORY = 8 << 30  # bytes that a process may take


@dataclass(frozen=True)
class JudgedRun:
    """A run of the kernel, with the verdicts on its outputs. ``why``: why nothing could be compared."""

    given: Given
    ran: Ran
    outputs: tuple[Judged, ...] = ()
    why: str = ""

    @property
    def outcome(self) -> str:
        """Return ``refused``, ``finding``, ``wrong``, ``undecided`` or ``pass``."""
        if self.ran.half is None:
            return "refused" if self.ran.refuses else "wrong"
        if self.why:
            return "finding" if self.ran.broken else "wrong"
        outcomes = {each.outcome for each in self.outputs}
        if "wrong" in outcomes:
            return "wrong"
        if self.ran.broken:
            return "finding"
        return "undecided" if "undecided" in outcomes else "pass"

    def sentence(self) -> str:
        """Return why the run does not pass."""
        if self.ran.half is None:
            return _line(self.ran.error)
        bad = [each for each in self.outputs if each.outcome != "pass"]
        if bad:
            return _line(bad[0].text())
        return _line(self.why) or "; ".join(
            f"{each.rule} at line {each.line}: {each.message}" for each in self.ran.broken
        )


class Bench:
    """The kernel and its reference, each in a process of its own.

    ``is_here``: both run in this process, if no other one can load them.
    """

    def __init__(
        self, subject: Subject, launch: dict[str, Any], rule: Rule, end: float, mutates: Sequence[str], *, is_here: bool
    ) -> None:
        settings = dict(getattr(subject, "settings", {}))
        self.rule, self.end, self.launch, self.seconds = rule, end, launch, end - time.monotonic()
        self._make = partial(Candidate, subject, launch, settings=settings)
        self._is_here = is_here
        self._kernel = self._candidate(tuple(mutates))
        self._judge = Answerer(partial(Judge, subject), MEMORY, is_here=is_here)
        self.mutates = tuple(mutates)
        self._errors: dict[str, ExplainedError] = {}

    def _candidate(self, mutates: tuple[str, ...]) -> Answerer:
        return Answerer(partial(self._make, mutates=mutates), MEMORY, is_here=self._is_here)

    def open(self) -> tuple[Described, Known]:
        """Start both processes; return the facts about the kernel, and about its reference."""
        self._kernel.start()  # first, so that it has nothing of the reference's process
        self._judge.start()
        known: Known = self._ask(self._judge, "known")
        if known.mutates and not self.mutates:
            self._kernel.close()
            self.mutates, self._kernel = known.mutates, self._candidate(known.mutates)
        self.described: Described = self.ask("describe")
        args, kwargs = self.ask("called_with", known.given.args, known.given.kwargs)
        self.known = replace(known, given=replace(known.given, args=tuple(args), kwargs=dict(kwargs)))
        return self.described, self.known

    def close(self) -> None:
        """End both processes."""
        self._kernel.close()
        self._judge.close()

    def ask(self, name: str, *args: Any) -> Any:
        """Call a method of `Candidate` in the kernel's process, and return its result. Raises `Gone`."""
        return self._ask(self._kernel, name, *args)

    def ask_judge(self, name: str, *args: Any) -> Any:
        """Call a method of `Judge` in the reference's process, and return its result. Raises `Gone`."""
        return self._ask(self._judge, name, *args)

    def _ask(self, answerer: Answerer, name: str, *args: Any, seconds: float = 0.0) -> Any:
        if self.left <= 0:
            raise Gone("no time is left: give it more seconds", is_time=True)
        return answerer.ask(name, *args, seconds=min(self.left, seconds or self.left))

    @property
    def left(self) -> float:
        """Return the seconds until the end of the verdict."""
        return self.end - time.monotonic()

    def run(self, given: Given, how: str = "", mutant: int = -1, seconds: float = 0.0, **launch: Any) -> Ran:
        """Run the kernel for ``seconds`` at most; 0: all that are left. Raises `Gone` if it takes longer.

        A process that ends is the end of a run, too.
        """
        try:
            ran: Ran = self._ask(self._kernel, "run", given, how, mutant, launch, seconds=seconds)
        except Gone as error:
            if error.is_time:
                raise
            ran = Ran(None, error=str(error))
        return ran

    def judge(self, given: Given, ran: Ran) -> JudgedRun:
        """Compare the outputs of the last run with the right ones.

        Without a stated rule the tolerance is the error that the first run explains, in proportion to the outputs; if
        that is too little, the error that this run explains.
        """
        if ran.half is None:
            return JudgedRun(given, ran)
        try:
            results = self.results(given, ran)
            if self._errors and not self.rule.is_stated:
                run = JudgedRun(given, ran, self._judged(results, partial(_in_proportion, self._errors, results), None))
                if run.outcome == "pass":
                    return run
            explain = cache(self._explained)
            return JudgedRun(given, ran, self._judged(results, explain, self._ties(given, ran)))
        except (TypeError, ValueError) as error:  # NothingCompared among them
            return JudgedRun(given, ran, why=str(error))

    def _ties(self, given: Given, ran: Ran) -> TiedChoices | None:
        return TiedChoices(self.right(ran), given.args, given.kwargs) if self.known.is_function else None

    def _judged(
        self, results: Sequence[Result], explain: Callable[[], dict[str, ExplainedError]], ties: TiedChoices | None
    ) -> tuple[Judged, ...]:
        found = []
        for place, each in enumerate(results):
            if each.right is not None:
                explained = partial(_named, explain, each.name)
                others = partial(ties.of, place) if ties is not None else _no_others
                found.append(judged(each.name, each.rounded, each.right, self.rule, explained, each.dtype, others))
        return tuple(found)

    def results(self, given: Given, ran: Ran) -> list[Result]:
        """Return the outputs of a run, each with the right values."""
        assert ran.half is not None
        right = self.right(ran)

        def in_any_dtype(*args: Any, **kwargs: Any) -> Any:
            try:
                return right(*args, **kwargs)
            except Raised:  # a reference that does not take float64
                return right(*given.args, **given.kwargs)

        return results_of(ran.half, ran.half, in_any_dtype, given.args, given.kwargs, matches_kinds=True)

    def tried(self, given: Given, **how: Any) -> JudgedRun:
        """Run the kernel, and compare its outputs."""
        return self.judge(given, self.run(given, **how))

    def right(self, ran: Ran | None = None) -> Callable[..., Any]:
        """Return a function that lets the reference's process compute the right results for arguments.

        ``ran``: a run whose changed arguments are results, too.
        """
        half = None if ran is None else ran.half
        changed = [
            each for each in self.mutates if half is None or (each in half.changed and each not in half.returned)
        ]

        def right(*args: Any, **kwargs: Any) -> Any:
            return self.ask_judge("right", args, kwargs, changed, self.mutates, self.described.parameters)

        return right

    def narrowed(self, run: JudgedRun) -> str:
        """Return a sentence if an undecided output has passed through a dtype coarser than its own and the arguments'.

        '' if none has.
        """
        widths = [most_relative(each.dtype.name) for each in run.given.arrays().values()]
        for each in run.outputs:
            error = self._errors.get(each.name)
            if each.outcome != "undecided" or error is None or not error.through:
                continue
            if max(widths, default=0.0) <= most_relative(error.dtype):
                return (
                    f"{each.name} passed through {error.through} and is off by up to {each.max_error:.2g}; the "
                    f"arguments and the output are {error.dtype}. State rtol and atol where that is enough."
                )
        return ""

    def _explained(self) -> dict[str, ExplainedError]:
        found = self.ask("explain")
        errors = {} if found is None else {each.name: each for each in found.outputs}
        self._errors = self._errors or errors
        return errors


def _in_proportion(errors: dict[str, ExplainedError], results: Sequence[Result]) -> dict[str, ExplainedError]:
    """Return the errors that another run explains, scaled to the size of these outputs."""
    found = {}
    for each in results:
        known = errors.get(each.name)
        before = 0.0 if known is None else root_mean_square(known.right)
        if known is not None and before and each.right is not None:
            scale = root_mean_square(each.right) / before
            found[each.name] = replace(known, atol=known.atol * scale, beyond=None)
    return found


def _no_others(_off: float) -> tuple[Any, ...]:
    return ()


def _named(known: Callable[[], dict[str, Any]], name: str) -> Any:
    return known().get(name)


def _line(text: str) -> str:
    """Return a text on one line, 600 characters at most."""
    return "; ".join(each.strip() for each in text.strip().splitlines() if each.strip())[:600]
