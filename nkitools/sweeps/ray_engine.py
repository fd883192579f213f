"""The engine on Ray: the same tasks, on this machine or on a cluster; lost workers and nodes are Ray's to replace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, TypeVar

from nkitools.facts.options import with_options
from nkitools.platforms import alarm, limit_address_space
from nkitools.sweeps.local_engine import ATTEMPTS, MEMORY, Ended

Task = TypeVar("Task")

_AHEAD = 2  # tasks for each worker that Ray has at a time, so that none waits for this process
_GRACE = 30.0  # seconds after which a task is ended that did not stop by itself at its time limit


class RayEngine:
    """Runs a function on tasks in workers of Ray; the arguments are those of `LocalEngine`.

    ``address``: a cluster, by default one of this machine that ends with the run. ImportError without Ray.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        timeout: float | None = None,
        memory: int = MEMORY,
        address: str | None = None,
    ) -> None:
        try:
            import ray
        except ImportError:
            raise ImportError("engine='ray' takes Ray: pip install 'nkitools[ray]'") from None
        self._ray: Any = ray
        self.workers, self.timeout, self.memory, self.address = workers, timeout, memory, address

    def run(self, function: Callable[[Task], Any], tasks: Iterable[Task]) -> Iterator[Ended[Task]]:
        """Yield the tasks as they end, in any order. A cluster that was there before stays."""
        ray = self._ray
        waiting = iter(tasks)
        first = next(waiting, None)
        if first is None:
            return  # without a cluster that nothing needs
        is_own = not ray.is_initialized()
        if is_own:
            cores = self.workers if self.address is None else None
            ray.init(
                address=self.address,
                num_cpus=cores,
                log_to_driver=False,
                include_dashboard=False,
                logging_level="ERROR",
            )
        try:
            yield from self._run(function, chain([first], waiting))
        finally:
            if is_own:
                ray.shutdown()

    def _run(self, function: Callable[[Task], Any], waiting: Iterator[Task]) -> Iterator[Ended[Task]]:
        ray = self._ray
        limit = self.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        remote = ray.remote(num_cpus=1, max_retries=ATTEMPTS)(_limited)
        shared = ray.put(with_options(function))
        running: dict[Any, tuple[Task, float]] = {}

        # No more at a time than workers were asked for; else so many that none waits for the next one.
        most = limit if self.workers else limit * _AHEAD
        while True:
            for task in islice(waiting, most - len(running)):
                reference = remote.remote(shared, task, self.timeout, self.memory)
                running[reference] = (task, time.monotonic())
            if not running:
                return
            ready, _ = ray.wait(list(running), num_returns=1, timeout=1.0)
            for reference in ready:
                task, began = running.pop(reference)
                yield self._ended(reference, task, time.monotonic() - began)
            for reference in self._overdue(running):
                ray.cancel(reference, force=True)

    def _overdue(self, running: dict[Any, tuple[Task, float]]) -> list[Any]:
        if self.timeout is None:
            return []
        until = time.monotonic() - _AHEAD * (self.timeout + _GRACE)
        return [reference for reference, (_, began) in running.items() if began < until]

    def _ended(self, reference: Any, task: Task, seconds: float) -> Ended[Task]:
        errors = self._ray.exceptions
        try:
            answer = self._ray.get(reference)
        except (
            errors.TaskCancelledError,
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.OutOfMemoryError,
        ) as lost:
            is_late = isinstance(lost, errors.TaskCancelledError)
            return Ended(
                task, reason="timeout" if is_late else "lost", error=str(lost).splitlines()[0], seconds=seconds
            )
        if answer is None:
            return Ended(task, reason="timeout", error=f"no end within {self.timeout:g} s", seconds=seconds)
        return Ended(task, answer, seconds=seconds)


class _Late(BaseException):
    """The end of a task at its time limit. Of no class that a kernel or a check catches."""


_is_limited = False


def _limited(function: Callable[[Any], Any], task: Any, timeout: float | None, memory: int) -> Any:
    """Return a task's result; None if it does not end in time."""
    global _is_limited
    if not _is_limited:
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)
        limit_address_space(memory)
        _is_limited = True
    if timeout is None:
        return function(task)

    def late() -> None:
        raise _Late

    try:
        with alarm(timeout, late):
            return function(task)
    except _Late:
        return None
