"""The engine of one machine: accidents of workers are their tasks' own."""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkitools.sweeps.local_engine import LocalEngine
from nkitools.sweeps.ray_engine import RayEngine
from tests import cases

pytestmark = pytest.mark.process


def with_accidents(folder: Path, task: int) -> Any:
    """Return ten times the task; one has no end, one kills its worker each time, one the first time, one takes all
    memory.
    """
    mark = folder / "was here"
    if task == 2:
        time.sleep(3600)
    if task == 3 or (task == 4 and not mark.exists()):
        mark.touch(exist_ok=True)
        os.kill(os.getpid(), signal.SIGKILL)
    if task == 5 and sys.platform == "linux":
        try:
            np.ones(1 << 33, np.uint8)
        except MemoryError:
            return "no memory"
    return 10 * task


def test_each_task_ends_once_whatever_becomes_of_its_worker(tmp_path: Path) -> None:
    """One that kills its workers is ended after three, one whose memory is used up goes on, and all others run."""
    tasks = [task for task in range(12) if task != 2]
    ended = list(LocalEngine(workers=2, memory=2**30).run(partial(with_accidents, tmp_path), tasks))
    assert sorted(each.task for each in ended) == tasks
    said = {each.task: each.result if not each.reason else (each.reason, each.error) for each in ended}
    assert said.pop(3) == ("lost", "its worker has ended with code -9")
    assert said.pop(5) == ("no memory" if sys.platform == "linux" else 50)
    assert said == {task: 10 * task for task in tasks if task not in (3, 5)}


def test_a_task_without_an_end_is_ended_at_its_limit(tmp_path: Path) -> None:
    """Its worker, too."""
    (ended,) = LocalEngine(workers=1, timeout=0.3).run(partial(with_accidents, tmp_path), [2])
    assert (ended.task, ended.reason, ended.error) == (2, "timeout", "no end within 0.3 s")
    assert ended.seconds >= 0.3


def failing(task: int) -> None:
    raise KeyError("the engine's own")


def greedy(task: int) -> int:
    if task == 1:
        raise MemoryError
    return task


def test_a_task_that_uses_up_the_memory_ends_alone() -> None:
    """In a fresh worker too; what the engine runs afterwards has all of it."""
    ended = {each.task: each for each in LocalEngine(workers=1).run(greedy, [1, 2])}
    assert (ended[1].reason, ended[1].error) == ("lost", "more memory than a worker may have")
    assert ended[2].result == 2


def staying(task: int) -> Any:
    """Return what no pickle holds."""
    return lambda: task


def test_a_result_that_goes_to_no_other_process_says_so() -> None:
    """With the reason, instead of a worker that is lost three times."""
    with pytest.raises(RuntimeError, match=r"its result cannot be pickled(.|\n)*staying.<locals>.<lambda>"):
        list(LocalEngine(workers=1).run(staying, [1]))


def pids(_task: int) -> int:
    time.sleep(0.01)
    return os.getpid()


def test_workers_take_many_tasks_and_end_with_the_iterator() -> None:
    """No process of its own for each task; none is left after the first result alone was taken."""
    ended = [each.result for each in LocalEngine(workers=2).run(pids, range(20))]
    assert len(ended) == 20
    assert len(set(ended)) == 2
    running = LocalEngine(workers=2).run(pids, range(1000))
    pid = next(running).result
    running.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_error_of_the_function_itself_is_no_result() -> None:
    """The engine's functions catch what a task raises; what they do not is a fault, with its traceback."""
    with pytest.raises(RuntimeError, match='KeyError: "the engine\'s own"'):
        list(LocalEngine(workers=1).run(failing, [1]))


@pytest.mark.soak
@pytest.mark.skipif(not cases.FULL, reason="a full count: make soak")
def test_ray_runs_the_same_tasks(tmp_path: Path) -> None:
    """Two workers of a cluster of this machine; a lost one is replaced, an endless task ended."""
    pytest.importorskip("ray")
    ended = list(RayEngine(workers=2, timeout=5).run(partial(with_accidents, tmp_path), [0, 1, 2, 4, 6]))
    assert {each.task: each.result for each in ended} == {0: 0, 1: 10, 2: None, 4: 40, 6: 60}
    assert {each.task: each.reason for each in ended if each.reason} == {2: "timeout"}
