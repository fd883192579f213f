"""Findings as SARIF 2.1.0, the format of code scanning (OASIS, Static Analysis Results Interchange Format)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nkitools.report.findings import Tried
from nkitools.rules.catalogue import RULES, Rule
from nkitools.rules.finding import Finding
from nkitools.suggestions.plain import suggestions_as_plain

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "hint": "note"}
_ROOT = "SRCROOT"


def sarif_log(findings: Sequence[Finding], root: Path, version: str, tried: Tried | None = None) -> dict[str, Any]:
    """Return a log with one run. Files below the directory ``root`` are named relative to it.

    ``version``: of nkitools. ``tried``: what became of edits, by the places of a finding and of its suggestion. The log
    describes the rules that are broken.
    """
    ids = sorted({finding.rule for finding in findings})
    driver = {"name": "nkitools", "version": version, "rules": [_described(RULES[each]) for each in ids]}
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {_ROOT: {"uri": f"{root.resolve().as_uri()}/"}},
        "columnKind": "unicodeCodePoints",
        "results": list(_results(findings, ids, root, tried or {})),
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def as_sarif(findings: Sequence[Finding], root: Path, version: str, tried: Tried | None = None) -> str:
    """Return the log as text."""
    return json.dumps(sarif_log(findings, root, version, tried), indent=2)


def _described(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.slug.split("-")),
        "shortDescription": {"text": rule.slug},
        "fullDescription": {"text": rule.reason},
        "help": {"text": f"{rule.remedy}\n\nSource: {rule.source}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _results(findings: Iterable[Finding], ids: list[str], root: Path, tried: Tried) -> Iterable[dict[str, Any]]:
    seen: dict[str, int] = {}
    for at, finding in enumerate(findings):
        print_of = sha256(f"{finding.rule} {_uri(finding.file, root)[0]} {finding.message}".encode()).hexdigest()
        seen[print_of] = seen.get(print_of, 0) + 1
        made = enumerate(suggestions_as_plain(finding))
        fixes = [_fix(each, finding, root, tried.get((at, number), "")) for number, each in made]
        yield {
            "ruleId": finding.rule,
            "ruleIndex": ids.index(finding.rule),
            "level": _LEVELS[finding.severity],
            "message": {"text": f"{finding.message}{finding.more()}. {finding.remedy}"},
            "occurrenceCount": finding.count,
            "properties": {"facts": dict(finding.facts), "places": [asdict(each) for each in finding.places]},
            "locations": [{"physicalLocation": _place(finding, root)}],
            # Lines move; the same words in the same file are the same finding, the first, the second.
            "partialFingerprints": {"nkitoolsFinding/v1": f"{print_of[:32]}:{seen[print_of]}"},
            **({"fixes": fixes} if fixes else {}),
        }


def _fix(suggestion: dict[str, Any], finding: Finding, root: Path, tried: str) -> dict[str, Any]:
    replacements = [
        {
            "deletedRegion": {
                "startLine": each["line"],
                "startColumn": each["column"],
                "endLine": each["end_line"],
                "endColumn": each["end_column"],
            },
            "insertedContent": {"text": each["text"]},
        }
        for each in suggestion["edits"]
    ]
    change = {"artifactLocation": _file(finding, root), "replacements": replacements}
    text = f"{suggestion['title']} (tried: {tried})" if tried else suggestion["title"]
    return {"description": {"text": text}, "artifactChanges": [change]}


def _file(finding: Finding, root: Path) -> dict[str, str]:
    uri, is_relative = _uri(finding.file, root)
    return {"uri": uri, "uriBaseId": _ROOT} if is_relative else {"uri": uri}


def _place(finding: Finding, root: Path) -> dict[str, Any]:
    # A line counts from 1; a finding about a whole file stands at its beginning.
    region = {"startLine": max(finding.line, 1)}
    if finding.column is not None:
        region["startColumn"] = max(finding.column, 1)
    return {"artifactLocation": _file(finding, root), "region": region}


def _uri(file: str, root: Path) -> tuple[str, bool]:
    path, base = Path(file).resolve(), root.resolve()
    return (quote(path.relative_to(base).as_posix()), True) if path.is_relative_to(base) else (path.as_uri(), False)
