"""Trials in forked processes: each mutant has a state, a time and a memory of its own."""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from benchmarks.mutants.trial import Verdict, put_on_trial
from nkitools.sweeps.mutants.source import Mutant

GIGABYTE = 2**30
MEMORY = 3 * GIGABYTE  # on top of what the process has when it begins
IDLE = 60.0  # seconds of a process that waits and computes nothing

_FORK = multiprocessing.get_context("fork")  # what the baseline has imported and checked is there already


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


@dataclass
class _Running:
    number: int
    process: BaseProcess
    directory: Path
    until: float


def trials(
    mutants: Sequence[Mutant], baselines: Mapping[str, Baseline], directory: Path, jobs: int
) -> Iterator[tuple[int, Verdict]]:
    """The verdict on each mutant, by its number, as they come; ``baselines`` are those of the right kernels."""
    waiting = iter(enumerate(mutants))
    running: dict[Connection, _Running] = {}
    while True:
        while len(running) < jobs and (following := next(waiting, None)) is not None:
            number, mutant = following
            receiver, started = _start(number, mutant, baselines[mutant.kernel], directory)
            running[receiver] = started
        if not running:
            return
        for ready in wait(list(running), timeout=1.0):
            assert isinstance(ready, Connection)
            yield _finish(ready, running.pop(ready))
        for receiver in [each for each, one in running.items() if time.monotonic() > one.until]:
            running[receiver].process.kill()


def _start(number: int, mutant: Mutant, baseline: Baseline, directory: Path) -> tuple[Connection, _Running]:
    receiver, sender = _FORK.Pipe(duplex=False)
    place = directory / str(number) / "kernels"
    place.mkdir(parents=True)
    path = place / f"{mutant.kernel.rpartition('.')[2]}.py"
    path.write_text(mutant.text, encoding="utf-8")
    arguments = (mutant.kernel, path, baseline.tests_of(mutant.function), baseline.seconds, sender)
    process = _FORK.Process(target=_work, args=arguments, daemon=True)
    process.start()
    sender.close()
    return receiver, _Running(number, process, place.parent, time.monotonic() + 10 * baseline.seconds + IDLE)


def _work(kernel: str, path: Path, numbers: Container[int], seconds: float, sender: Connection) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        now = pages * os.sysconf("SC_PAGESIZE")
        resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    sender.send(put_on_trial(kernel, path, numbers))
    sender.close()


def _finish(receiver: Connection, done: _Running) -> tuple[int, Verdict]:
    try:
        verdict = receiver.recv()
        assert isinstance(verdict, Verdict)
    except (EOFError, OSError):
        verdict = Verdict(ended="no end within its time")
    done.process.join()
    receiver.close()
    for path in sorted(done.directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    done.directory.rmdir()
    return done.number, verdict
