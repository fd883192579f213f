"""The engine of one machine: worker processes that take one task at a time, each with limits of time and memory.

Not `concurrent.futures`: there a worker that is killed, or has to be, ends the whole pool.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from nkitools.facts.options import with_options
from nkitools.platforms import available_cores
from nkitools.processes import Limits, PipedChild

Task = TypeVar("Task")

MEMORY = 4 << 30  # bytes that a worker may take beside what it has when it starts
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

ATTEMPTS = 3  # of a task whose worker was lost
_LOOK = 0.5  # seconds between two looks at the clock
_END_SECONDS = 5.0  # that a worker may take to end after its pipe


@dataclass(frozen=True)
class Ended(Generic[Task]):
    """A task that has ended: with a result, or else with the reason, ``timeout`` or ``lost``."""

    task: Task
    result: Any = None
    reason: str = ""
    error: str = ""
    seconds: float = 0.0


class InProcess:
    """Runs a function on tasks in this process: one after the other, without limits."""

    def run(self, function: Callable[[Task], Any], tasks: Iterable[Task]) -> Iterator[Ended[Task]]:
        """Yield the tasks as they end, in their order."""
        for task in tasks:
            began = time.monotonic()
            yield Ended(task, function(task), seconds=time.monotonic() - began)


@dataclass
class _Worker:
    process: PipedChild
    task: Any = None
    attempt: int = 0
    began: float = 0.0


class LocalEngine:
    """Runs a function on tasks in worker processes of this machine.

    ``timeout``: seconds for a task, after which its worker is replaced. ``memory``: bytes that a worker may take. If a
    worker dies or is killed, another one gets its task, up to three times.
    """

    def __init__(self, *, workers: int | None = None, timeout: float | None = None, memory: int = MEMORY) -> None:
        self.workers = workers or available_cores()
        self.timeout, self.memory = timeout, memory

    def run(self, function: Callable[[Task], Any], tasks: Iterable[Task]) -> Iterator[Ended[Task]]:
        """Yield the tasks as they end, in any order. The workers end with the iterator."""
        function = with_options(function)
        waiting, again = iter(tasks), list[tuple[Task, int]]()
        workers: list[_Worker] = []
        is_done = False
        try:
            while True:
                while not is_done and len(workers) < self.workers:
                    workers.append(self._start(function))
                for worker in (each for each in workers if each.task is None):
                    given = again.pop() if again else (next(waiting, None), 0)
                    if given[0] is None:
                        is_done = True
                        break
                    worker.task, worker.attempt, worker.began = *given, time.monotonic()
                    _send(worker, given[0])
                busy = [each for each in workers if each.task is not None]
                if not busy:
                    return
                ready = wait([each.process.pipe for each in busy], timeout=_LOOK)
                for worker in busy:
                    ended = _received(worker) if worker.process.pipe in ready else self._overdue(worker)
                    if ended is None:
                        continue
                    if ended.reason:
                        worker.process.close()
                        workers.remove(worker)
                        is_done = False
                    if ended.reason == "lost" and worker.attempt + 1 < ATTEMPTS:
                        again.append((ended.task, worker.attempt + 1))
                        continue
                    worker.task = None
                    yield ended
        finally:
            for worker in workers:
                worker.process.close()

    def _start(self, function: Callable[[Task], Any]) -> _Worker:
        # A fork has what this process has imported. JAX has threads, which a fork would leave behind.
        limits, has_threads = Limits(memory=self.memory), "jax" in sys.modules
        return _Worker(PipedChild(_serve, function, limits=limits, has_threads=has_threads))

    def _overdue(self, worker: _Worker) -> Ended[Any] | None:
        seconds = time.monotonic() - worker.began
        if self.timeout is None or seconds < self.timeout:
            return None
        return Ended(worker.task, reason="timeout", error=f"no end within {self.timeout:g} s", seconds=seconds)


def _send(worker: _Worker, task: Any) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # a worker that is gone: its pipe ends at the next look
        worker.process.pipe.send(task)


def _received(worker: _Worker) -> Ended[Any]:
    seconds = time.monotonic() - worker.began
    try:
        is_result, value = worker.process.pipe.recv()
    except (EOFError, OSError):
        end = worker.process.wait(_END_SECONDS)
        code = None if end is None else end.status
        error = f"its worker has ended with code {code}"
        if end is not None and end.is_out_of_memory:
            error = "more memory than a worker may have"
        return Ended(worker.task, reason="lost", error=error, seconds=seconds)
    if is_result:
        return Ended(worker.task, value, seconds=seconds)
    raise RuntimeError(f"a worker has failed:\n{value}")


def _serve(function: Callable[[Any], Any], pipe: Connection) -> None:
    """Do task after task until the driver ends this process. A MemoryError ends it, since a new process has free
    memory.
    """
    for variable in _THREADS:
        os.environ[variable] = "1"
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):  # the driver is gone
            return
        try:
            answer = (True, function(task))
        except MemoryError:
            raise
        except BaseException:
            answer = (False, traceback.format_exc())
        try:
            pipe.send(answer)
        except (BrokenPipeError, ConnectionResetError):
            return
        except Exception:  # nothing of the result was sent
            pipe.send((False, f"its result cannot be pickled for another process\n{traceback.format_exc()}"))
