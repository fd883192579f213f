"""Runs the examples of the rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import Context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.stand_in import stand_in_installed
from nkitools.facts import options
from nkitools.launch.kept_arguments import changes_fail
from nkitools.lint.engine import lint as lint_files
from nkitools.record.run import Run
from nkitools.record.run_listeners import collect_runs
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import Finding
from nkitools.suggestions.lint_interface import Dialects


@dataclass(frozen=True)
class Outcome:
    """What running an example gave."""

    path: str
    findings: list[Finding] = field(default_factory=list)
    error: Exception | None = None
    outputs: Any = None

    @property
    def places(self) -> list[tuple[str, str, int]]:
        """Rule, file and line of each finding."""
        return [(finding.rule, finding.file, finding.line) for finding in self.findings]


PlayExample = Callable[..., Outcome]


@pytest.fixture(scope="session", autouse=True)
def _stand_in() -> Iterator[None]:
    """The builtin simulator's `nki` and `neuronxcc.nki`, whether or not the plugin has installed them."""
    was_installed = stand_in_installed()
    nkitools.install_stand_in(prefer="builtin")
    yield
    if not was_installed:
        nkitools.remove_stand_in()


@pytest.fixture(scope="session")
def play_example(tmp_path_factory: pytest.TempPathFactory) -> PlayExample:
    """Runs an example's source from a file of its own; a refusal ends up in the outcome, everything else is raised.

    With ``lint`` the outcome also has what only lint reports, with ``estimate`` what estimates say of that rule;
    ``version`` is the NKI version that holds. A source that
    runs again, on another chip say, runs from the same file.
    """
    paths: dict[str, Path] = {}

    def play(
        source: str, rules: str, chip: str | None = None, *, lint: bool = False, estimate: str = "", version: str = ""
    ) -> Outcome:
        if source not in paths:
            paths[source] = tmp_path_factory.mktemp("example") / "example.py"
            paths[source].write_text(source)
        path = paths[source]
        # In a context of its own: nobody who listens to runs, the summary of this test session say, hears of examples.
        with options.override(nki_version=version or options.value("nki_version")):
            outcome = Context().run(_play, source, path, rules, chip, estimate)
            outcome.findings.extend(_of_lint(path) if lint else ())
        return outcome

    return play


def _of_lint(path: Path) -> list[Finding]:
    return [finding for finding in lint_files([path], interface=Dialects()).findings if RULES[finding.rule].lint_only]


def _of_estimates(runs: list[Run], rule: str) -> list[Finding]:
    """What estimates say of a rule that only they give, as findings."""
    return [
        Finding(rule, RULES[rule].slug, RULES[rule].severity, each.message, each.file, each.line, each.remedy)
        for run in runs
        for each in run.estimate().advice
        if each.rule == rule
    ]


def _play(source: str, path: Path, rules: str, chip: str | None, estimate: str) -> Outcome:
    outputs, error = None, None
    with collect_runs() as runs, changes_fail():
        try:
            outputs = _run(source, path, rules, chip)
        except Exception as raised:
            if not hasattr(raised, "finding"):
                raise
            error = raised
    findings = [finding for run in runs for finding in run.findings]
    told = getattr(error, "finding", None)
    if told is not None and told not in findings:
        findings.append(told)
    if estimate:
        findings += _of_estimates(runs, estimate)
    return Outcome(str(path), findings, error, outputs)


def _run(source: str, path: Path, rules: str, chip: str | None) -> Any:
    import nki
    import nki.isa as nisa
    import nki.language as nl

    namespace: dict[str, Any] = {"__name__": "example", "nki": nki, "nisa": nisa, "nl": nl, "np": np}
    exec(compile(source, str(path), "exec"), namespace)
    chip = chip or namespace.get("CHIP")
    return nkitools.simulate(namespace["kernel"], *namespace["inputs"], chip=chip, rules=rules).outputs
