"""The yardstick: baselines, mutants, verdicts."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import nkitools
from benchmarks.mutants.cases import CASES
from benchmarks.mutants.kernels import sources
from benchmarks.mutants.pool import Baseline, trials
from benchmarks.mutants.trial import Verdict, functions_of_tests, put_on_trial
from nkitools.edits.candidates import Candidate, candidates_of
from nkitools.edits.source import Source

ROOT = Path(__file__).parents[2]
LEAST = 3.0  # seconds of computing time that any mutant has
TIMES = 10  # that many times what the right kernel takes


class Unfit(Exception):
    """The yardstick cannot measure: a right kernel is told to be wrong, or a kernel has no case."""


@dataclass(frozen=True)
class Result:
    """A mutant, what told of it, and whether its results are those of the right kernel bit by bit."""

    mutant: Candidate
    verdict: Verdict
    identical: bool


def measure(
    kernels: Sequence[str] = (),
    operators: Sequence[str] = (),
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Result]:
    """All mutants, or those of some kernels and operators, in their order."""
    nkitools.install_stand_in(prefer="builtin")
    chosen = [each for each in sources(ROOT) if not kernels or each.kernel in kernels]
    baselines = {source.kernel: baseline(source) for source in chosen}
    mutants = [each for source in chosen for each in candidates_of(source, operators)]
    verdicts: dict[int, Verdict] = {}
    for number, verdict in trials(mutants, baselines, jobs):
        verdicts[number] = verdict
        progress(len(verdicts), len(mutants))
    results = []
    for number, mutant in enumerate(mutants):
        verdict = verdicts[number]
        same = not verdict.killed and baselines[mutant.kernel].is_identical(verdict)
        results.append(Result(mutant, verdict, same))
    return results


def baseline(source: Source) -> Baseline:
    """What a right kernel does; Unfit where something tells of it, since that would tell of all its mutants."""
    if source.kernel not in CASES:
        raise Unfit(f"kernels/nki has {source.kernel}, which no case tests: add one to benchmarks/mutants/cases.py")
    path = Path(str(importlib.import_module(f"kernels.nki.{source.kernel}").__file__))
    verdict, called = functions_of_tests(source.kernel, path)
    begin = time.process_time()
    again = put_on_trial(source.kernel, path)
    if verdict.killed or again.killed:
        raise Unfit(f"{source.kernel} itself is told to be wrong: {verdict if verdict.killed else again}")
    return Baseline(verdict, called, max(LEAST, TIMES * (time.process_time() - begin)))
