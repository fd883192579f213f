"""The search for an edit: edits are run one after another, in a process for each core, until one holds."""

from __future__ import annotations

import ast
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from io import StringIO
from multiprocessing.connection import Connection, wait
from typing import Any

from nkitools.chip.numerics import Array
from nkitools.edits.remedies import SOLVED, UNKNOWN
from nkitools.platforms import alarm, available_cores, workers_context
from nkitools.processes import Limits, PipedChild
from nkitools.repair.case import Case
from nkitools.repair.ranking import unlikely
from nkitools.repair.solved import solved
from nkitools.repair.trials import Trial
from nkitools.repair.verify import PROBES, SHARP, Verification, Verified

_MEMORY = 2 << 30  # bytes that a process of the search may take beyond those at its start
_LEAST_SECONDS = 1.0  # the lowest limit of an edited kernel's run
_TIMES = 10  # the limit, in times of a run of the kernel as it is
_VERIFICATION = 20  # the limit of a verification, some thirty runs, in times of that
_GRACE = 0.3  # the time for a better edit, in times of that until one held
_LONGER = 2.0  # the same, if the reference differs on values of no test
_WRITES = (
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.system",
    "os.posix_spawn",
    "subprocess.Popen",
    "shutil.rmtree",
)


@dataclass(frozen=True)
class Found:
    """An edit with which the outputs are right on the test's case: its number, and its verification."""

    number: int
    verified: Verified
    text: str = ""  # of an edit whose number the search has found
    unlikely: int = 0

    @property
    def rank(self) -> tuple[bool, bool, int, int, int, int, int]:
        """Return the key that sorts edits, the best first.

        Verified, right in float64, right on values of no test, right on more shapes, fewer doubts, likelier, earlier.
        """
        one = self.verified
        is_worse = not one.is_repaired, one.error > SHARP
        return *is_worse, -one.agrees, -one.shapes, len(one.doubts), self.unlikely, self.number


@dataclass
class Result:
    """The result of a search."""

    trials: list[Trial]
    numbers: set[int] = field(default_factory=set)  # of the edits that were tried
    seconds: float = 0.0
    found: list[Found] = field(default_factory=list)
    failed: list[Found] = field(default_factory=list)  # right on the test's case alone

    @property
    def tried(self) -> int:
        """Return how many edits were tried."""
        return len(self.numbers)

    @property
    def best(self) -> Found | None:
        """Return the best edit that was found; None if none was."""
        return min(self.found, key=lambda each: each.rank, default=None)

    @property
    def is_done(self) -> bool:
        """Return whether an edit is verified, right in float64 and without doubts, and no similar number is untried."""
        known = [each for each in self.found if each.verified.is_repaired]
        return any(one.verified.error <= SHARP and not one.verified.doubts and self._is_alone(one) for one in known)

    def _is_alone(self, one: Found) -> bool:
        """Return whether no untried edit solves for another number of the same line; True unless ``one`` does so."""
        trial = self.trials[one.number]
        return trial.kind != SOLVED or not any(
            each.kind == SOLVED and (each.part, each.line) == (trial.part, trial.line)
            for number, each in enumerate(self.trials)
            if number not in self.numbers
        )


class _Late(BaseException):
    """A run has reached its time limit. An author's code catches no such class."""


class _Write(PermissionError):
    """An edited kernel would write a file or start a process."""


class Hunt:
    """The edits of a case in the order in which they are tried. ``is_limited``: whether each has a time limit.

    ``small``: a smaller case on which the kernel is wrong, too; an edit must hold there first.
    """

    def __init__(self, case: Case, trials: Sequence[Trial], seconds: float, small: Case | None = None) -> None:
        self.case, self.trials = case, trials
        self._cases = [case] if small is None else [small, case]
        self.verification = Verification(case)
        self.is_limited = False
        self._limit = max(_LEAST_SECONDS, _TIMES * seconds)

    def tried(self, number: int) -> Found | None:
        """Run the kernel with an edit, and return the verified edit if the outputs are right; None if they are not."""
        try:
            return min(self._found(number), key=lambda each: each.rank, default=None)
        except (Exception, _Late):  # an edited kernel may raise anything
            return None

    def _found(self, number: int) -> Iterator[Found]:
        """Yield an edit that is right on the test's case.

        An edit whose number is solved for comes once for each right number, up to the first that is right in float64.
        """
        for trial in self._numbers(number):
            with self._at_most(1), trial.running():
                if not all(each.is_right(each.kernel.outputs(each.given)) for each in self._cases):
                    continue
            self.verification.prepare()  # without the edit: the reference may call the function that it changes
            with self._at_most(_VERIFICATION), trial.running():
                verified = self.verification.of_edit()
            found = Found(number, verified, trial.edit.text, unlikely(trial, self.case.given, {}))
            yield found
            if found.verified.error <= SHARP:
                return

    def _numbers(self, number: int) -> Iterator[Trial]:
        """Yield an edit; if its number is not known, the edit with each number that runs suggest."""
        trial, case = self.trials[number], self.case
        if trial.edit.text != UNKNOWN:
            yield trial
            return

        def outputs(value: float) -> list[Array]:
            with trial.of(repr(value)).running():
                return case.kernel.outputs(case.given)[: len(case.want)]

        before = ast.literal_eval(trial.part.source.said(trial.edit))
        with self._at_most(8):
            found = list(solved(float(before), outputs, case.want))
        for each in found:
            is_whole = isinstance(before, int) and each == int(each)
            yield trial.of(repr(int(each) if is_whole else each))

    def _at_most(self, times: int) -> AbstractContextManager[None]:
        """Raise `_Late` if the block takes longer than ``times`` the limit of a run, if there are limits."""
        return alarm(times * self._limit, _late) if self.is_limited else nullcontext()


def _late() -> None:
    raise _Late


def search(
    hunt: Hunt, seconds: float, *, workers: int | None = None, progress: Callable[[int, int], None] | None = None
) -> Result:
    """Try the edits for ``seconds`` at most; ``progress``: called with the number of tried edits, and of all."""
    began = time.monotonic()
    result = Result(list(hunt.trials))
    end = began + seconds
    for found in _tried(hunt, end, workers or available_cores(), result):
        if found is not None:
            result.trials[found.number] = result.trials[found.number].of(found.text)
            (result.failed if found.verified.fails else result.found).append(found)
            best = result.best
            if best is not None and result.is_done:
                grace = _GRACE if best.verified.agrees == len(PROBES) else _LONGER
                end = min(end, time.monotonic() + grace * (time.monotonic() - began))
        if progress is not None:
            progress(result.tried, len(hunt.trials))
        if time.monotonic() > end:
            break
    result.seconds = time.monotonic() - began
    return result


def _tried(hunt: Hunt, end: float, workers: int, result: Result) -> Iterator[Found | None]:
    if not hunt.trials:
        return iter(())
    is_fork = hunt.case.kernel.forks and workers_context(has_threads=False).get_start_method() == "fork"
    return _in_children(hunt, end, workers, result) if is_fork else _here(hunt, result)


def _here(hunt: Hunt, result: Result) -> Iterator[Found | None]:
    """Try the edits in this process, without time limits, and drop what they print."""
    for number in range(len(hunt.trials)):
        result.numbers.add(number)
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            found = hunt.tried(number)
        yield found


def _in_children(hunt: Hunt, end: float, workers: int, result: Result) -> Iterator[Found | None]:
    """Try the edits in forks of this process, which hold the kernel and its arguments already."""
    if "jax" in sys.modules:  # a reference that calls it would hang in a fork, which has none of its threads
        hunt.verification.prepare()
    children: list[PipedChild] = []
    try:
        for first in range(workers):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about forks of a process with threads: the forks use none
                limits = Limits(memory=_MEMORY, file_size=1)
                children.append(PipedChild(_work, hunt, first, workers, limits=limits))
        open_pipes = [each.pipe for each in children]
        while open_pipes:
            ready: list[Any] = wait(open_pipes, timeout=max(0.0, min(0.2, end - time.monotonic())))
            for pipe in ready:
                try:
                    said = pipe.recv()
                except (EOFError, OSError):
                    open_pipes.remove(pipe)
                    continue
                result.numbers.add(said if isinstance(said, int) else said.number)
                if not isinstance(said, int):
                    yield said
            yield None
    finally:
        for child in children:
            child.close()


def _work(hunt: Hunt, first: int, step: int, pipe: Connection) -> None:
    """Try every ``step``-th edit from the one at ``first`` on, in a process of its own; send each result."""
    from threadpoolctl import threadpool_limits

    with suppress(BrokenPipeError, ConnectionResetError), _silent(), threadpool_limits(1):
        _write_nothing()
        hunt.is_limited = True
        for number in range(first, len(hunt.trials), step):
            found = hunt.tried(number)
            pipe.send(number if found is None else found)


@contextmanager
def _silent() -> Iterator[None]:
    """Drop all that this process prints."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  the process ends with it
    warnings.simplefilter("ignore")
    yield


def _write_nothing() -> None:
    """Refuse to write files and to start processes, for the rest of this process."""

    def refused(event: str, given: tuple[Any, ...]) -> None:
        if event in _WRITES:
            raise _Write(event)
        flags = given[2] if event == "open" and len(given) > 2 and isinstance(given[2], int) else 0
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND):
            raise _Write(str(given[0]))

    sys.addaudithook(refused)
