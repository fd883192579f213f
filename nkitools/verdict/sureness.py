"""The sureness of a verdict: the share of usual mistakes, made in the kernel, that its rows would have caught."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from nkitools.comparison.compared_arrays import compared
from nkitools.comparison.rule import Rule
from nkitools.verdict.bench import Bench, JudgedRun
from nkitools.verdict.cases import has_negative
from nkitools.verdict.child import Gone, Raised
from nkitools.verdict.mutants import LIMITS

_MOST = 24  # mutants
_LEAST_SECONDS = 2.0  # the limit of a mutant's run, or _TIMES the kernel's own
_TIMES = 10


def how_sure(bench: Bench, right: Sequence[JudgedRun], seed: int, seconds: float, end: float) -> dict[str, Any]:
    """Return how many mistakes the runs ``right`` would have caught, and the situations that no run has met.

    ``seconds``: the time of one run. ``end``: the time after which no mistake is tried.
    """
    try:
        never = [each for each in [bench.ask("met")] if each]
        chosen = bench.ask("some_mutants", _MOST, seed) if bench.described.kind == "nki" and right else []
    except (Gone, Raised) as error:
        return {"says": f"not known: {error}"}
    never += [] if any(has_negative(each.given) for each in right) else ["no negative values"]
    caught, missed = 0, []
    for number, said in chosen:
        if time.monotonic() >= end:
            break
        is_caught = _is_caught(bench, right, number, seconds)
        if is_caught is None:
            break
        if is_caught:
            caught += 1
        else:
            missed.append(said)
            line, _, made = said.partition(": ")
            never += [f"no value beyond the limit of {line}"] if made.partition(":")[0] in LIMITS else []
    tried = caught + len(missed)
    says = f"these rows catch {caught} of {tried} of its own mutants" if tried else "no mutant was tried"
    says += f"; never met: {', '.join(never)}" if never else ""
    return {"caught": caught, "mutants": tried, "missed": missed[:6], "never_met": never, "says": says}


def _is_caught(bench: Bench, right: Sequence[JudgedRun], number: int, seconds: float) -> bool | None:
    """Return whether a mistake breaks a rule, raises, does not end, or gives another result; None if it was not run."""
    for run in right:
        try:
            ran = bench.run(run.given, "mutant", number, seconds=max(_LEAST_SECONDS, _TIMES * seconds))
        except (Gone, Raised) as error:
            return True if isinstance(error, Gone) and bench.left > 0 else None
        if ran.half is None or ran.broken:
            return True
        results = {**ran.half.arguments, **ran.half.outputs}
        for each in run.outputs:
            found, elements = results.get(each.name), each.elements
            if found is None or not compared(found.array, elements.expected, Rule(elements.rtol, elements.atol)).agree:
                return True
    return False
