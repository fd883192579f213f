"""Tracebacks of kernels: nkitools' own frames are left out, the author's are kept."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from types import CodeType, TracebackType
from typing import Any, TypeVar

from nkitools.record.source_sites import entries_of, is_internal, traceback_of

_F = TypeVar("_F", bound=Callable[..., Any])
_hands_over: set[CodeType] = set()


def hands_over(function: _F) -> _F:
    """Mark a function of nkitools that calls the author's code."""
    _hands_over.add(function.__code__)
    return function


def authors_part(error: BaseException) -> TracebackType | None:
    """Return the traceback of ``error`` without nkitools' frames.

    For an exception that is no finding only the frames around the kernel are left out. Where such an exception comes
    out of nkitools inside of the kernel, or where the kernel never began, it may be a defect of nkitools, and its
    report needs the frames.
    """
    entries = entries_of(error)
    begun = [number for number, each in enumerate(entries) if each.tb_frame.f_code in _hands_over]
    last = len(entries) if getattr(error, "finding", None) is not None else begun[-1] if begun else -1
    theirs = [not is_internal(each.tb_frame.f_code.co_filename) for each in entries]
    return traceback_of(each for number, each in enumerate(entries) if number > last or theirs[number])


class AuthorsTraceback:
    """``with AuthorsTraceback():`` exceptions leave the block with the author's part of their traceback.

    The frames that are left out are emptied: the run keeps the exception, and they name the run. Every way in wraps
    what it does in one, so that its own frame is left out too.
    """

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            return
        entries = entries_of(error)
        error.__traceback__ = authors_part(error)
        kept = {each.tb_frame for each in entries_of(error)}
        for each in entries:
            if each.tb_frame not in kept:
                with suppress(RuntimeError):  # the caller of the block, which is still running
                    each.tb_frame.clear()
