"""Findings as plain data for JSON and HTML: the same keys for every finding, documented in docs/reference/json.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from nkitools.report.excerpt import source_line
from nkitools.suggestions.plain import suggestions_as_plain

if TYPE_CHECKING:
    from nkitools.rules.finding import Finding

# Grows when a key is renamed or leaves; new keys may come at any time.
SCHEMA = 1
Plain = dict[str, Any]
Tried = dict[tuple[int, int], str]  # what became of a suggested edit, by the places of a finding and its suggestion


def finding_as_plain(finding: Finding) -> dict[str, Any]:
    """Return a finding for JSON. Every key is always there: an unknown value is null, or an empty list or object."""
    plain = {**asdict(finding), "source": source_line(finding.file, finding.line)}
    if finding.picture is not None:
        plain["picture"]["meanings"] = dict(finding.picture.meanings)
    return plain


def finding_from_plain(plain: Mapping[str, Any]) -> Finding:
    """Return the finding that `finding_as_plain` has described, without its picture."""
    from nkitools.rules.finding import Finding, Place

    tuples = {name: tuple(each) if isinstance(each, list) else each for name, each in plain["facts"].items()}
    every = [*plain["places"], *([plain["last"]] if plain["last"] else [])]
    places = [Place(**{**each, "program": tuple(each["program"])}) for each in every]
    last = places.pop() if plain["last"] else None
    known = {each.name: plain[each.name] for each in fields(Finding)}
    known |= {"program": tuple(plain["program"]), "picture": None, "facts": tuples}
    return Finding(**{**known, "places": tuple(places), "last": last})


def with_suggestions(findings: Iterable[Finding], tried: Tried | None = None) -> list[Plain]:
    """Return findings as plain data with their suggestions, and what became of those that were ``tried``."""
    plain = [{**finding_as_plain(each), "suggestions": suggestions_as_plain(each)} for each in findings]
    for (at, number), said in (tried or {}).items():
        plain[at]["suggestions"][number]["tried"] = said
    return plain
