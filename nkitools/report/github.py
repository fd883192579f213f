"""Findings as workflow commands of GitHub Actions, which shows them at their lines of a pull request."""

from __future__ import annotations

import os
from pathlib import Path

from nkitools.rules.finding import Finding

_COMMANDS = {"error": "error", "warning": "warning", "hint": "notice"}
_IN_TEXT = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = _IN_TEXT | str.maketrans({":": "%3A", ",": "%2C"})


def annotation(finding: Finding) -> str:
    """``::error file=kernels/giou.py,line=41,col=9,title=NK103 matmul-contraction-limit::message remedy``."""
    column = {} if finding.column is None else {"col": str(finding.column)}
    properties = {
        "file": _in_repository(finding.file),
        "line": str(finding.line),
        **column,
        "title": f"{finding.rule} {finding.slug}",
    }
    named = ",".join(f"{name}={value.translate(_IN_PROPERTY)}" for name, value in properties.items())
    said = f"{finding.message}{finding.more()}. {finding.remedy}".translate(_IN_TEXT)
    return f"::{_COMMANDS[finding.severity]} {named}::{said}"


def _in_repository(file: str) -> str:
    """Return the path of a file from the folder that GitHub has checked out, whichever folder the command runs in."""
    path, root = Path(file), os.environ.get("GITHUB_WORKSPACE")
    if root and path.resolve().is_relative_to(Path(root).resolve()):
        path = path.resolve().relative_to(Path(root).resolve())
    return path.as_posix()
