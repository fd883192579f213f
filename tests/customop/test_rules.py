"""Every rule of custom operators keeps its word: its bad example is reported at the marked line, its good one never."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.customop import Operator
from nkitools.rules.catalogue import RULES, Rule

from .conftest import arguments_of

CUSTOM_OPERATOR_RULES = [rule for rule in RULES.values() if rule.id.startswith("CO")]
each_rule = pytest.mark.parametrize("rule", CUSTOM_OPERATOR_RULES, ids=lambda rule: rule.id)


COMPILERS = ["default", *(["clang++"] if shutil.which("clang++") else [])]


@pytest.fixture(scope="module", params=COMPILERS)
def operators(
    request: pytest.FixtureRequest, build_operators: Callable[..., dict[str, Operator]]
) -> Iterator[dict[str, Operator]]:
    """All examples, in as few libraries as there can be: by the compiler of this machine, and by clang where it is."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "default":
            patch.setenv("CXX", request.param)
        yield _built(build_operators)


def _built(build_operators: Callable[..., dict[str, Operator]]) -> dict[str, Operator]:
    sources = {f"{rule.id}_{kind}": getattr(rule, kind) for rule in CUSTOM_OPERATOR_RULES for kind in ("bad", "good")}
    several = {name: text for name, text in sources.items() if "multicore=True" in text.splitlines()[0]}
    single = {name: text for name, text in sources.items() if name not in several}
    return build_operators(single) | build_operators(several, multicore=True)


def marked_line(rule: Rule) -> int:
    """The line of the bad example that the rule speaks of."""
    lines = rule.bad.splitlines()
    return next(number for number, line in enumerate(lines, start=1) if line.endswith(f"  // {rule.id}"))


@each_rule
def test_the_bad_example_reports_its_rule_at_its_line_and_nothing_else(
    rule: Rule, operators: dict[str, Operator]
) -> None:
    """One cause gives one finding, at the line that the author has to change."""
    run = operators[f"{rule.id}_bad"].run(*arguments_of(rule.bad))
    assert [(each.rule, each.line) for each in run.findings] == [(rule.id, marked_line(rule))], run.findings
    (finding,) = run.findings
    assert finding.file.endswith(f"{rule.id}_bad.cpp")
    assert finding.severity == rule.severity
    assert finding.message
    assert finding.remedy


@each_rule
def test_an_error_is_raised_at_the_first_finding(rule: Rule, operators: dict[str, Operator]) -> None:
    """A call raises for errors, and warnings let its result through."""
    operator = operators[f"{rule.id}_bad"]
    if rule.severity != "error":
        assert operator(*arguments_of(rule.bad)) is not None
        return
    with pytest.raises(nkitools.KernelError) as caught:
        operator(*arguments_of(rule.bad))
    assert (caught.value.finding.rule, caught.value.finding.line) == (rule.id, marked_line(rule))


@each_rule
def test_the_good_example_reports_nothing(rule: Rule, operators: dict[str, Operator]) -> None:
    """The mended kernel runs on every core, and gives numbers."""
    run: Any = operators[f"{rule.id}_good"].run(*arguments_of(rule.good))
    assert run.findings == []
    assert not np.isnan(run.outputs).any()
    assert {core.status for core in run.cores} == {"finished"}
