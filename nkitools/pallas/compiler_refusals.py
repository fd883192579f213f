"""Says by name what cannot be done with the JAX that is installed (NK607)."""

from __future__ import annotations

from typing import NoReturn

from nkitools.authors_code.positions import line_of
from nkitools.record.source_sites import author_frame
from nkitools.rules.finding import Finding, NotModelled


def refuse(message: str, remedy: str) -> NoReturn:
    """Raise ``NotModelled`` at the author's line that asked."""
    raise NotModelled(finding(message, remedy))


def finding(message: str, remedy: str, severity: str = "error") -> Finding:
    """Return what is not possible, at the author's line that asked."""
    frame = author_frame()
    place = (frame.f_code.co_filename, line_of(frame), frame.f_code.co_name) if frame else ("<unknown>", 0, "")
    return Finding.of("NK607", message, place, remedy=remedy, severity=severity)
