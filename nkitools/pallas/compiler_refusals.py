"""Says by name what cannot be done with the JAX that is installed (NK607)."""

from __future__ import annotations

from typing import NoReturn

from nkitools.record.source_sites import author_frame
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding, NotModelled


def refuse(message: str, remedy: str) -> NoReturn:
    """Raise ``NotModelled`` at the author's line that asked."""
    raise NotModelled(finding(message, remedy))


def finding(message: str, remedy: str, severity: str = "error") -> Finding:
    """Return what is not possible, at the author's line that asked."""
    rule = RULES["NK607"]
    frame = author_frame()
    return Finding(
        rule=rule.id,
        slug=rule.slug,
        severity=severity,
        message=message,
        file=frame.f_code.co_filename if frame else "<unknown>",
        line=frame.f_lineno if frame else 0,
        remedy=remedy,
        function=frame.f_code.co_name if frame else "",
    )
