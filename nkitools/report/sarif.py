"""Findings as SARIF 2.1.0, the format of code scanning (OASIS, Static Analysis Results Interchange Format)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
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
    results = list(_results(findings, ids, root, tried or {}))
    return _log([_described(RULES[each]) for each in ids], results, root, version)


def _log(rules: list[dict[str, Any]], results: list[dict[str, Any]], root: Path, version: str) -> dict[str, Any]:
    run = {
        "tool": {"driver": {"name": "nkitools", "version": version, "rules": rules}},
        "originalUriBaseIds": {_ROOT: {"uri": f"{root.resolve().as_uri()}/"}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


_WRONG_VALUES = {
    "id": "wrong-values",
    "name": "WrongValues",
    "shortDescription": {"text": "wrong-values"},
    "fullDescription": {"text": "The results of a kernel differ from those of its reference."},
    "help": {"text": "Apply the fix, where there is one: it was verified on other values."},
    "defaultConfiguration": {"level": "error"},
}


def repair_log(
    answer: Mapping[str, Any], text: str, place: tuple[str, int], root: Path, version: str
) -> dict[str, Any]:
    """Return the answer about a wrong kernel (`Answer.as_plain`) as a log; a verified edit is the fix of its result.

    ``text``: the answer in words; ``place``: the kernel's file and line, for an answer without an edit.
    """
    edit, results = answer["edit"], []
    if answer["kind"] != "right":
        file, line = (edit["file"], edit["line"]) if edit else place
        is_verified = edit and answer["kind"] == "repaired"
        fix = [_fix({"title": edit["change"], "edits": edit["edits"]}, file, root)] if is_verified else []
        print_of = sha256(f"{_uri(file, root)[0]} {answer['kernel']}".encode()).hexdigest()
        facts = {name: answer[name] for name in ("kernel", "kind", "tried", "of", "seconds")}
        results.append(
            {
                "ruleId": _WRONG_VALUES["id"],
                "ruleIndex": 0,
                "level": "error",
                "message": {"text": text},
                "occurrenceCount": 1,
                "properties": {"facts": facts, "places": []},
                "locations": [{"physicalLocation": _place(file, line, None, root)}],
                "partialFingerprints": {"nkitoolsFinding/v1": f"{print_of[:32]}:1"},
                **({"fixes": fix} if fix else {}),
            }
        )
    return _log([_WRONG_VALUES] if results else [], results, root, version)


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
        fixes = [_fix(each, finding.file, root, tried.get((at, number), "")) for number, each in made]
        yield {
            "ruleId": finding.rule,
            "ruleIndex": ids.index(finding.rule),
            "level": _LEVELS[finding.severity],
            "message": {"text": f"{finding.message}{finding.more()}. {finding.remedy}"},
            "occurrenceCount": finding.count,
            "properties": {"facts": dict(finding.facts), "places": [asdict(each) for each in finding.places]},
            "locations": [{"physicalLocation": _place(finding.file, finding.line, finding.column, root)}],
            # Lines move; the same words in the same file are the same finding, the first, the second.
            "partialFingerprints": {"nkitoolsFinding/v1": f"{print_of[:32]}:{seen[print_of]}"},
            **({"fixes": fixes} if fixes else {}),
        }


def _fix(suggestion: dict[str, Any], file: str, root: Path, tried: str = "") -> dict[str, Any]:
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
    change = {"artifactLocation": _file(file, root), "replacements": replacements}
    text = f"{suggestion['title']} (tried: {tried})" if tried else suggestion["title"]
    return {"description": {"text": text}, "artifactChanges": [change]}


def _file(file: str, root: Path) -> dict[str, str]:
    uri, is_relative = _uri(file, root)
    return {"uri": uri, "uriBaseId": _ROOT} if is_relative else {"uri": uri}


def _place(file: str, line: int, column: int | None, root: Path) -> dict[str, Any]:
    # A line counts from 1; a finding about a whole file stands at its beginning.
    region = {"startLine": max(line, 1)}
    if column is not None:
        region["startColumn"] = max(column, 1)
    return {"artifactLocation": _file(file, root), "region": region}


def _uri(file: str, root: Path) -> tuple[str, bool]:
    path, base = Path(file).resolve(), root.resolve()
    return (quote(path.relative_to(base).as_posix()), True) if path.is_relative_to(base) else (path.as_uri(), False)
