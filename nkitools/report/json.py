"""Findings as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from nkitools.report.findings import finding_as_plain
from nkitools.rules.finding import Finding


def as_json(findings: Iterable[Finding], **about: Any) -> str:
    """Return an object with what ``about`` says and the list ``findings``, as docs/reference/json.md has them."""
    return json.dumps({**about, "findings": [finding_as_plain(each) for each in findings]}, indent=2)
