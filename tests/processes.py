"""A test that starts a process carries the mark ``process``: it takes seconds where others take milliseconds.

``make quick`` leaves these tests out. A test without the mark that starts a process fails and says so. The idle workers
of operators, which nkitools keeps for the next call, end with the file of the tests that called them.
"""

from __future__ import annotations

import functools
import multiprocessing.process
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

# Rooms in which nearly every test starts one, some of them only where a browser, torch or libtpu is installed.
ROOMS = ("cpp_ops", "customop", "kernels/pallas", "pallas", "pytest_plugin", "report/page")

LEAN = ("-p", "no:hypothesispytest")
"""For a session of a process of its own: as it ends, that plugin imports all of Hypothesis, which takes a second."""

_unmarked: list[pytest.Item] = []


def pytest_configure() -> None:
    """Watch the two ways in which Python code starts a process."""
    _watch(subprocess.Popen, "__init__")
    _watch(multiprocessing.process.BaseProcess, "start")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the rooms that start processes throughout."""
    rooms = tuple(f"tests/{room}/" for room in ROOMS)
    for item in items:
        if item.nodeid.startswith(rooms):
            item.add_marker("process")


def _watch(owner: type, name: str) -> None:
    start: Callable[..., Any] = getattr(owner, name)
    if hasattr(start, "__wrapped__"):
        return  # pytest that runs within a test configures this plugin again

    @functools.wraps(start)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if _unmarked:
            raise AssertionError(f"{_unmarked[-1].nodeid} starts a process: it takes @pytest.mark.process")
        return start(*args, **kwargs)

    setattr(owner, name, watched)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Hold the test's fixtures and itself to its marks; the benchmarks on hardware are no tests of a room."""
    is_marked = item.get_closest_marker("process") is not None or item.nodeid.startswith("benchmarks/")
    if not is_marked:
        _unmarked.append(item)
    try:
        return (yield)
    finally:
        if not is_marked:
            _unmarked.pop()
        if nextitem is None or nextitem.path != item.path:
            end_idle_workers()


def end_idle_workers() -> None:
    """End the processes in which this process has run operators."""
    workers = sys.modules.get("nkitools.customop.process")
    for worker in [] if workers is None else list(workers._workers.values()):
        workers.forget(worker)
