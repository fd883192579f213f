"""Every instruction on the careful path: the option ``--careful`` for a whole session, `carefully` for a few runs.

The fast path takes what is plain, the careful path anything. Where both take an instruction they must agree: the tests
of instructions pass with and without ``--careful``, and tests/issue/test_both_ways.py compares the two directly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

_SESSION = pytest.StashKey[ExitStack]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--careful", action="store_true", help="issue every instruction on the careful path")


def pytest_configure(config: pytest.Config) -> None:
    """Begin a careful session."""
    config.stash[_SESSION] = ExitStack()
    if config.getoption("--careful"):
        config.stash[_SESSION].enter_context(carefully())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a careful session cannot show."""
    if config.getoption("--careful"):
        for item in items:
            if item.get_closest_marker("fast_path"):
                item.add_marker(pytest.mark.skip(reason="the fast path is off"))


def pytest_unconfigure(config: pytest.Config) -> None:
    """End it."""
    config.stash[_SESSION].close()


@pytest.fixture
def fast(request: pytest.FixtureRequest) -> None:
    """Skip a test of the fast path where every instruction is issued carefully."""
    if request.config.getoption("--careful"):
        pytest.skip("the session issues every instruction carefully")


@contextmanager
def carefully() -> Iterator[None]:
    """Issue every instruction of the runs within on the careful path."""
    from nkitools.chip.core import Core

    made: Any = Core.__init__

    def careful(core: Core, *args: Any, **kwargs: Any) -> None:
        made(core, *args, **kwargs)
        take_the_careful_path(core)

    Core.__init__ = careful  # type: ignore[method-assign]
    try:
        yield
    finally:
        Core.__init__ = made  # type: ignore[method-assign]


# What a call on the careful path runs and one on the fast path does not, by which a test counts them.
CAREFUL_FUNCTION = "issue_carefully"


def take_the_careful_path(core: Any) -> None:
    """Let a core issue every instruction from here on carefully."""
    core.careful = True
