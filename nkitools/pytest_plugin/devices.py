"""Tests whose device is missing: skipped with the reason, or failed if hardware is required."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

import pytest

from nkitools.facts import options
from nkitools.pytest_plugin.marks import IN_WORKER, asked_devices, needs_hardware

if TYPE_CHECKING:
    from nkitools.targets.target import OtherDegree

ASKED_DEGREE = pytest.StashKey[int]()
"""In the process for hardware tests: the degree that the running test needs, where it is another one."""

IS_POISONED = pytest.StashKey[bool]()
"""There too: the runtime has met a status after which nothing that the process runs says anything."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a hardware test on a machine without any device before its fixtures are set up."""
    if needs_hardware(item) and not options.value("require_hw"):
        missing = missing_for(item)
        if missing:
            # A mark, not pytest.skip(): it is reported at the test, not at this line.
            item.add_marker(pytest.mark.skip(reason=missing))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Under --nki-require-hw fail it instead; here, because pytest calls a failure during setup an error."""
    __tracebackhide__ = True
    if needs_hardware(item) and options.value("require_hw"):
        missing = missing_for(item)
        if missing:
            refuse(missing)


def missing_for(item: pytest.Item) -> str:
    """Return why there is no device for a hardware test; '' if there is one."""
    from nkitools.targets import missing_devices

    return missing_devices(asked_devices(item))


def ask_for_degree(config: pytest.Config, error: OtherDegree) -> NoReturn:
    """End the running test: the process for hardware tests hands it back, and another one of the degree runs it."""
    __tracebackhide__ = True
    if os.environ.get(IN_WORKER):
        config.stash[ASKED_DEGREE] = error.degree
        raise pytest.skip.Exception(str(error)) from None
    refuse(str(error))


def note_status(config: pytest.Config, error: Exception) -> None:
    """Note an error of a device after which its process cannot go on, even if the test expects the error."""
    from nkitools.facts.known_faults import is_terminal

    if os.environ.get(IN_WORKER) and is_terminal(str(error)):
        config.stash[IS_POISONED] = True


def refuse(reason: str) -> NoReturn:
    """Skip the running test for ``reason``, or fail it if hardware is required."""
    __tracebackhide__ = True
    if options.value("require_hw"):
        raise pytest.fail.Exception(f"hardware is required (--nki-require-hw): {reason}", pytrace=False) from None
    raise pytest.skip.Exception(reason) from None
