"""Every rule of NKI keeps its word: bad examples are reported at the marked line and nowhere else, good ones never."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.facts import options
from nkitools.facts.generations import TABLES
from nkitools.rules.catalogue import RULES, Rule
from tests import cases
from tests.nki_versions import marks_of

PlayExample = Callable[..., Any]
GENERATIONS = tuple(generation.products[0] for generation in TABLES)
LARGE = ("NK105", "NK202", "NK709")  # thousands of instructions: on one chip, on all under `make soak`


def _marked_line(rule: Rule, source: str) -> int:
    lines = source.splitlines()
    return next(number for number, line in enumerate(lines, start=1) if line.endswith(f"  # {rule.id}"))


def chips_of(rule: Rule, source: str) -> tuple[str, ...]:
    """The chips on which an example means what it says: the one it names, or one of each generation."""
    named = [line.split('"')[1] for line in source.splitlines() if line.startswith("CHIP = ")]
    return tuple(named) or (GENERATIONS[:1] if rule.id in LARGE and not cases.FULL else GENERATIONS)


def _marks(rule: Rule) -> tuple[pytest.MarkDecorator, ...]:
    """The marks of a test of a rule's example."""
    return (*marks_of(rule.id), pytest.mark.soak) if rule.id in LARGE else marks_of(rule.id)


def _each(kind: str, *, elsewhere: bool = False, first: bool = False) -> list[Any]:
    """Parameters (rule, source, chip): the chips of an example where its rule holds, or those where it does not.

    Of them the first alone, where the chip makes no difference.
    """
    return [
        pytest.param(rule, source, chip, id=f"{rule.id}-{number}-{chip}", marks=_marks(rule))
        for rule in RULES.values()
        if rule.id.startswith("NK")
        for number, source in enumerate((getattr(example, kind) for example in rule.examples), start=1)
        for chip in [
            chip for chip in (GENERATIONS if elsewhere else chips_of(rule, source)) if (chip in rule.chips) != elsewhere
        ][: 1 if first else None]
    ]


def _played(rule: Rule, source: str, chip: str, play_example: PlayExample) -> Any:
    """The outcome of an example with all that reports its rule: the run, lint or an estimate."""
    estimate = rule.id if rule.estimate_only else ""
    return play_example(
        source, rules="report", chip=chip, lint=rule.lint_only, estimate=estimate, version=rule.nki_version
    )


def _severity(rule: Rule, source: str) -> str:
    """Return the rule's severity, or that of the form which an example names; a division in simulation is an error."""
    named = [line.split('"')[1] for line in source.splitlines() if line.startswith("SEVERITY = ")]
    if named:
        return named[0]
    return "error" if rule.id == "NK615" and "nl.divide" in source else rule.severity


@pytest.mark.parametrize(("rule", "source", "chip"), _each("bad"))
def test_the_bad_example_reports_its_rule_at_its_line_and_nothing_else(
    rule: Rule, source: str, chip: str, play_example: PlayExample
) -> None:
    """Under rules="report" one cause gives one finding, at the line that the author has to change.

    Before NKI 0.7 the name of NK618's example was only announced to go.
    """
    outcome = _played(rule, source, chip, play_example)
    spoken = [finding for finding in outcome.findings if finding.severity != "hint" or finding.rule == rule.id]
    assert [(each.rule, each.line) for each in spoken] == [(rule.id, _marked_line(rule, source))]
    assert spoken[0].file == outcome.path
    announced = rule.id == "NK618" and not options.language().traced
    assert spoken[0].severity == ("hint" if announced else _severity(rule, source))
    assert spoken[0].message
    assert spoken[0].remedy


@pytest.mark.parametrize(("rule", "source", "chip"), _each("bad", first=True))
def test_an_error_is_raised_at_the_first_finding(rule: Rule, source: str, chip: str, play_example: PlayExample) -> None:
    """Under rules="error" the finding travels in the exception, which is also the built-in that AWS documents."""
    outcome = play_example(source, rules="error", chip=chip, version=rule.nki_version)
    if _severity(rule, source) != "error":
        assert outcome.error is None
        return
    error = outcome.error
    # The legacy dialect's out-of-bounds error is the bare type: AWS's own tests compare it.
    bare = type(error) is IndexError and "neuronxcc" in source
    assert isinstance(error, nkitools.KernelError) or bare
    assert (error.finding.rule, error.finding.file, error.finding.line) == (
        rule.id,
        outcome.path,
        _marked_line(rule, source),
    )
    for name in filter(None, rule.builtin.split(", ")):
        assert isinstance(error, getattr(builtins, name))


@pytest.mark.parametrize(("rule", "source", "chip"), _each("good"))
def test_the_good_example_reports_nothing(rule: Rule, source: str, chip: str, play_example: PlayExample) -> None:
    """The mended kernel runs, and every element of what it returns was computed."""
    outcome = _played(rule, source, chip, play_example)
    assert outcome.places == []
    assert not np.isnan(np.asarray(outcome.outputs, dtype=np.float32)).any()


@pytest.mark.parametrize(("rule", "source", "chip"), _each("bad", elsewhere=True))
def test_a_rule_of_some_chips_keeps_silent_on_the_others(
    rule: Rule, source: str, chip: str, play_example: PlayExample
) -> None:
    """A kernel that is wrong on one generation and right on the next is reported for the first only."""
    assert play_example(source, rules="report", chip=chip, version=rule.nki_version).places == []
