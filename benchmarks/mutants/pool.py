"""Trials in worker processes: each mutant has a time of its own, and all of them an end."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.mutants.trial import Verdict, put_on_trial
from nkitools.edits.candidates import Candidate
from nkitools.sweeps.local_engine import LocalEngine

MEMORY = 3 * 2**30  # on top of what the process has when it begins
IDLE = 60.0  # seconds of a process that waits and computes nothing
_LATE = Verdict(ended="no end within its time")


@dataclass(frozen=True)
class Baseline:
    """A right kernel: its verdict, the functions that each of its tests calls, and the computing time of a mutant."""

    verdict: Verdict
    called: list[set[str]]
    seconds: float

    def tests_of(self, function: str) -> range | set[int]:
        """The numbers of the tests that a mistake in a function concerns; of a constant, all of them."""
        if not function:
            return range(len(self.called))
        return {number for number, called in enumerate(self.called) if function in called}

    def is_identical(self, verdict: Verdict) -> bool:
        """Whether the results of another trial are the same to the bit."""
        return all(digest == self.verdict.digests[number] for number, digest in verdict.digests.items())


class _Late(BaseException):
    """The end of a trial at its time. Of no class that a test or NumPy catches."""


def trials(mutants: Sequence[Candidate], baselines: Mapping[str, Baseline], jobs: int) -> Iterator[tuple[int, Verdict]]:
    """The verdict on each mutant, by its number, as they come; ``baselines`` are those of the right kernels."""
    longest = max((each.seconds for each in baselines.values()), default=0.0)
    engine = LocalEngine(workers=jobs, timeout=10 * longest + IDLE, memory=MEMORY)
    for ended in engine.run(partial(_trial, baselines), enumerate(mutants)):
        yield ended.task[0], _LATE if ended.reason else ended.result


def _trial(baselines: Mapping[str, Baseline], task: tuple[int, Candidate]) -> Verdict:
    mutant = task[1]
    baseline = baselines[mutant.kernel]
    with tempfile.TemporaryDirectory(prefix="mutant-") as directory, _silent():
        path = Path(directory, "kernels", f"{mutant.kernel.rpartition('.')[2]}.py")
        path.parent.mkdir()
        path.write_text(mutant.text, encoding="utf-8")
        try:
            with _computing_at_most(baseline.seconds):
                return put_on_trial(mutant.kernel, path, baseline.tests_of(mutant.function))
        except _Late:
            return _LATE


@contextmanager
def _computing_at_most(seconds: float) -> Iterator[None]:
    """Raise `_Late` after so many seconds of processor time."""

    def late(_signal: int, _frame: object) -> None:
        raise _Late

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def _silent() -> Iterator[None]:
    """Let nothing reach the terminal, whatever writes there."""
    saved = [os.dup(number) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
    try:
        yield
    finally:
        for number, before in zip((1, 2), saved, strict=True):
            os.dup2(before, number)
            os.close(before)
        os.close(nowhere)
