"""Errors that a test expects, by `pytest.raises` or `assertRaises`; other errors are caught by its own code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from nkitools.rules.finding import Finding

Note = Callable[[BaseException], None]


@contextmanager
def noting_expected(note: Note) -> Iterator[None]:
    """Call ``note`` with each error that a block of `pytest.raises` or `assertRaises` expects, while the body runs."""
    with ExitStack() as stack:
        for kind in _blocks():
            stack.enter_context(_noting(kind, note))
        yield


def _blocks() -> list[type]:
    """Return the classes of the blocks that expect an error."""
    from unittest import TestCase

    error = ZeroDivisionError  # any class
    blocks: list[Any] = [pytest.raises(error), TestCase().assertRaises(error)]  # noqa: PT027 - its class is asked for
    if hasattr(pytest, "RaisesGroup"):  # since pytest 8.4
        blocks.append(pytest.RaisesGroup(error))
    return list(dict.fromkeys(map(type, blocks)))


@contextmanager
def _noting(kind: Any, note: Note) -> Iterator[None]:
    """Replace the end of one kind of block."""
    original = kind.__exit__

    @functools.wraps(original)
    def end(self: Any, error_type: Any, error: BaseException | None, traceback: Any) -> Any:
        __tracebackhide__ = True
        is_expected = original(self, error_type, error, traceback)
        if is_expected and error is not None:
            note(error)
        return is_expected

    kind.__exit__ = end
    try:
        yield
    finally:
        kind.__exit__ = original


def findings_in(error: BaseException | None) -> Iterator[Finding]:
    """Yield the findings of an error, of the errors that it was raised from, and of those in a group."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        if (finding := getattr(each, "finding", None)) is not None:
            yield finding
        waiting += [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
