"""Findings as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from nkitools.rules.finding import Finding

_SHOWN = ("rule", "slug", "severity", "message", "remedy", "file", "line", "column", "function")


def plain(finding: Finding) -> dict[str, Any]:
    """What a machine reads of a finding; lines and columns count from 1."""
    return {name: getattr(finding, name) for name in _SHOWN}


def as_json(findings: Iterable[Finding], **about: Any) -> str:
    """An object with what ``about`` says and the list ``findings``."""
    return json.dumps({**about, "findings": [plain(each) for each in findings]}, indent=2)
