"""No test hangs the suite: pytest-timeout fails a test at its limit, and what Python cannot end ends its process.

The limit stands in ``pyproject.toml``; a test that takes longer carries ``@pytest.mark.timeout(seconds)``. The alarm of
pytest-timeout is handled in Python, which a test that computes in C for ever does not come back to: a while later all
stacks are written and the process exits. Under ``make test`` that is one of several, and another takes its place.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Iterator

import pytest

GRACE_SECONDS = 60.0

_stderr = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Keep stderr as it is before pytest captures it."""
    stream = sys.__stderr__
    config.stash[_stderr] = os.dup(2 if stream is None else stream.fileno())


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close it."""
    os.close(config.stash[_stderr])


def limit_of(item: pytest.Item) -> float:
    """Return the seconds that pytest-timeout gives a test; 0 for no limit."""
    mark = item.get_closest_marker("timeout")
    if mark is not None:
        return float(mark.args[0] if mark.args else mark.kwargs["timeout"])
    asked = item.config.getoption("timeout")
    return float(item.config.getini("timeout") if asked is None else asked)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End the process where the test's own end at its limit does not come."""
    limit = limit_of(item)
    if limit:
        faulthandler.dump_traceback_later(limit + GRACE_SECONDS, exit=True, file=item.config.stash[_stderr])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
