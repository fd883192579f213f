"""Tracebacks that show the author's own lines."""

from __future__ import annotations

from types import TracebackType

from nkitools.record.source_sites import entries_of, is_internal, traceback_of


def is_shown(file: str) -> bool:
    """Return whether a frame of ``file`` lies outside of nkitools."""
    return not is_internal(file)


def may_hide_ours(error: BaseException) -> bool:
    """Return whether nkitools' frames may be left out of the traceback of ``error``.

    They may if the error is a finding or Ctrl-C, or if nkitools only stood between the author's lines. Any other
    exception from nkitools may be a defect of nkitools, and a report of a defect needs the frames.
    """
    if getattr(error, "finding", None) is not None or isinstance(error, KeyboardInterrupt):
        return True
    entries = entries_of(error)
    return bool(entries) and is_shown(entries[-1].tb_frame.f_code.co_filename)


def show_only_theirs(error: BaseException) -> None:
    """Take nkitools' frames out of the traceback of ``error`` and of the exceptions that led to it."""
    pending, seen = [error], set()
    while pending:
        one = pending.pop()
        if id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = without_ours(one)
            pending += [earlier for earlier in (one.__cause__, one.__context__) if earlier is not None]


def without_ours(error: BaseException) -> TracebackType | None:
    """Return the traceback of ``error`` without nkitools' frames, or the whole one if they must be shown."""
    if not may_hide_ours(error):
        return error.__traceback__
    kept = [each for each in entries_of(error) if is_shown(each.tb_frame.f_code.co_filename)]
    return traceback_of(kept) or error.__traceback__
