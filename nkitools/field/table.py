"""The outcomes of a suite as a table, and as plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from nkitools.field.outcomes import GOOD, KINDS, Outcome, Said

_SHOWN = 3  # ids of tests beside each group


def as_plain(found: Sequence[Outcome], uncollected: Sequence[str]) -> dict[str, Any]:
    """Return counts and every outcome."""
    return {
        "counts": dict(_counts(found)),
        "uncollected": list(uncollected),
        "tests": [outcome.as_plain() for outcome in found],
    }


def as_outcomes(plain: dict[str, Any]) -> list[Outcome]:
    """Return the outcomes that `as_plain` has made plain data of."""
    return [Outcome.from_plain(each) for each in plain["tests"]]


def as_text(found: Sequence[Outcome], uncollected: Sequence[str]) -> str:
    """Return the table: how many of each kind, then what the others have in common, then the warnings."""
    return "\n".join([*_head(found), *_groups(found), *_warnings(found), *_listed("not collected", uncollected)])


def passes(found: Sequence[Outcome], uncollected: Sequence[str]) -> bool:
    """Return True if every file was imported and every test went as its suite expects."""
    return not uncollected and all(outcome.kind in GOOD or outcome.kind == "uncalled" for outcome in found)


def _counts(found: Sequence[Outcome]) -> Counter[str]:
    return Counter(outcome.kind for outcome in found)


def _head(found: Sequence[Outcome]) -> Iterator[str]:
    counts = _counts(found)
    for kind in KINDS:
        if counts[kind]:
            yield f"{kind:<12}{counts[kind]:>6}{counts[kind] / len(found):>8.1%}"
    yield f"{'of':<12}{len(found):>6}"


def _groups(found: Sequence[Outcome]) -> Iterator[str]:
    """Yield the tests that did not go as expected: by rule and line of the kernel, else by message."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in found:
        if outcome.kind not in GOOD:
            groups.setdefault((outcome.kind, _cause(outcome)), []).append(outcome)
    for (kind, cause), each in sorted(groups.items(), key=lambda group: (KINDS.index(group[0][0]), -len(group[1]))):
        said = each[0].refusal
        yield ""
        yield f"{kind} {len(each)}: {cause}"
        if said is not None:
            yield f"    {said.message}"
        yield from (f"    {outcome.test}" for outcome in each[:_SHOWN])
        if len(each) > _SHOWN:
            yield f"    and {len(each) - _SHOWN} more"


def _cause(outcome: Outcome) -> str:
    said = outcome.refusal
    return outcome.message if said is None else f"{said.rule} at {said.place}"


def _warnings(found: Sequence[Outcome]) -> Iterator[str]:
    """Yield the findings below errors, by rule and line, with the number of tests that have them."""
    tests: Counter[tuple[str, str, str]] = Counter()
    first: dict[tuple[str, str, str], Said] = {}
    for outcome in found:
        for said in outcome.findings:
            if said.severity != "error":
                key = (said.severity, said.rule, said.place)
                tests[key] += 1
                first.setdefault(key, said)
    for severity in ("warning", "hint"):
        lines = [
            f"{rule} at {place} ({count} tests): {first[each, rule, place].message}"
            for (each, rule, place), count in tests.most_common()
            if each == severity
        ]
        yield from _listed(f"{severity}s", lines)


def _listed(heading: str, lines: Sequence[str]) -> list[str]:
    return ["", f"{heading}:", *(f"    {line}" for line in lines)] if lines else []
