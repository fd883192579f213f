"""The mark ``nki_allow``: rules whose findings a test accepts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

_MARK = "nki_allow"


@contextmanager
def allowed_by_marks(item: pytest.Item) -> Iterator[None]:
    """Accept the findings of the rules that the marks of ``item`` name, from its setup to its teardown."""
    marks = [mark for mark in item.iter_markers(_MARK) if not _wrong(mark)]
    with ExitStack() as stack:
        for mark in reversed(marks):  # the innermost reason counts
            stack.enter_context(_allowing(mark.args, str(mark.kwargs.get("reason", ""))))
        yield


def _allowing(rules: tuple[Any, ...], reason: str) -> Any:
    from nkitools.record.allowed_rules import allow_findings

    return allow_findings(*rules, reason=reason)


def wrong_marks(item: pytest.Item) -> str:
    """Return a sentence on the first wrong mark of ``item``; '' if all are right."""
    return next((wrong for mark in item.iter_markers(_MARK) if (wrong := _wrong(mark))), "")


def _wrong(mark: pytest.Mark) -> str:
    """Return a sentence on what is wrong with a mark; '' if nothing is. It takes rules by position, and ``reason``."""
    unknown = sorted(set(mark.kwargs) - {"reason"})
    if not mark.args or unknown:
        said = f"it knows reason, not {', '.join(unknown)}" if unknown else "it names no rule"
        return f'@pytest.mark.{_MARK}: {said}. Write @pytest.mark.{_MARK}("NK304", reason="...")'
    try:
        with _allowing(mark.args, ""):
            return ""
    except ValueError as error:
        return f"@pytest.mark.{_MARK}: {error}"
