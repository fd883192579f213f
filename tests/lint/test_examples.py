"""Lint and the catalogue: of the examples of all rules it finds the right thing or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from nkitools.facts import options
from nkitools.lint.checks import RULES as CHECKED
from nkitools.rules.catalogue import RULES, Rule
from tests.lint.linted import findings
from tests.nki_versions import marks_of

# What their examples show without running. Of the other rules that lint reports, the examples need a run, since what
# they do wrong depends on the arguments or on values.
SHOWN = {
    "NK103",
    "NK201",
    "NK406",
    "NK408",
    *(f"NK6{number:02}" for number in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 18, 19, 20, 21, 22)),
}

# Likewise of the examples near the edge.
SHOWN_NEAR_THE_EDGE = {
    "NK112",
    "NK201",
    "NK306",
    "NK406",
    *(f"NK6{number:02}" for number in (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 18, 19, 20, 21, 22)),
}

# Of further pairs most need a run.
FURTHER = {"NK615": {3: {"NK615"}}, "NK621": {3: {"NK621"}, 7: {"NK621"}}}

OF_NKI = [rule for rule in RULES.values() if rule.id.startswith("NK")]
each_example = pytest.mark.parametrize(
    ("rule", "number"),
    [
        pytest.param(rule, number, id=f"{rule.id}-{number}", marks=marks_of(rule.id))
        for rule in OF_NKI
        for number in range(len(rule.examples))
    ],
)


def _marked_line(rule: Rule, source: str) -> int:
    lines = source.splitlines()
    return next(number for number, line in enumerate(lines, start=1) if line.endswith(f"  # {rule.id}"))


def _found(directory: Path, source: str, own: str) -> list[tuple[str, int]]:
    path = directory / "example.py"
    path.write_text(source)
    with options.override(nki_version=RULES[own].nki_version or options.value("nki_version")):
        spoken = findings(path)
    found = [each for each in spoken if each.severity != "hint" or each.rule == own]
    return [(each.rule, each.line) for each in found]


@each_example
def test_the_bad_example(rule: Rule, number: int, tmp_path: Path) -> None:
    """Reported at its line and as nothing else, where the source shows it; otherwise nothing is said."""
    source = rule.examples[number].bad
    found = _found(tmp_path, source, rule.id)
    shown = (SHOWN, SHOWN_NEAR_THE_EDGE)[number] if number < 2 else FURTHER.get(rule.id, {}).get(number, set())
    assert {name for name, _ in found} == {rule.id} & shown
    assert not found or found[0][1] == _marked_line(rule, source)


@each_example
def test_the_good_example(rule: Rule, number: int, tmp_path: Path) -> None:
    """There is nothing to say of it."""
    assert _found(tmp_path, rule.examples[number].good, rule.id) == []


def test_the_list_of_what_lint_can_report() -> None:
    """Comments that ignore others are told to be idle by it."""
    assert SHOWN <= CHECKED
    assert set(RULES) >= CHECKED
    assert {rule.id for rule in RULES.values() if rule.lint_only} <= CHECKED
