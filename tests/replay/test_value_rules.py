"""The examples of rules report the same where runs are replayed: evidence sends a run to the kernel's Python."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.replay.kept_lists import KEPT
from nkitools.rules.catalogue import RULES

nkitools.install_stand_in(prefer="builtin")

VALUE_RULES = ("NK304", "NK305", "NK307", "NK404", "NK505", "NK509", "NK502", "NK508")
EXAMPLES = {
    name: [(f"{name}-{number}", example.bad) for number, example in enumerate(rule.examples, start=1)]
    for name, rule in RULES.items()
    if name.startswith("NK") and not rule.reporter
}
HARMLESS = {"NK304": 0.01, "NK305": 0.1}


def played(source: str, folder: Path) -> dict[str, Any]:
    """Return the variables of an example, which has a file of its own."""
    import nki
    import nki.isa as nisa
    import nki.language as nl

    namespace: dict[str, Any] = {"__name__": "example", "nki": nki, "nisa": nisa, "nl": nl, "np": np}
    path = folder / "example.py"
    path.write_text(source)
    exec(compile(source, str(path), "exec"), namespace)
    return namespace


def told(namespace: dict[str, Any], replay: str) -> list[tuple[Any, ...]]:
    """Run an example; return the findings of the run, or of its refusal."""
    try:
        run = nkitools.simulate(
            namespace["kernel"],
            *copy.deepcopy(namespace["inputs"]),
            rules="report",
            replay=replay,
            chip=namespace.get("CHIP"),
        )
    except nkitools.KernelError as error:
        return [(error.finding.rule, error.finding.message, error.finding.line)]
    return [(each.rule, each.message, each.line, each.loops, each.program) for each in run.findings]


def parameters(names: Iterable[str]) -> list[Any]:
    return [pytest.param(name, source, id=number) for name in names for number, source in EXAMPLES[name]]


@pytest.mark.parametrize(("rule", "source"), parameters(VALUE_RULES))
def test_an_example_of_a_value_rule_reports_the_same(rule: str, source: str, tmp_path: Path) -> None:
    """In each of several runs that are recorded where they can be."""
    KEPT.clear()
    namespace = played(source, tmp_path)
    expected = told(namespace, "off")
    assert rule in [each[0] for each in expected]
    for _ in range(3):
        assert told(namespace, "on") == expected


@pytest.mark.parametrize(("rule", "source"), parameters(EXAMPLES))
def test_an_example_reports_the_same_each_time(rule: str, source: str, tmp_path: Path) -> None:
    """Of any rule: the first, the recorded and the replayed run, with findings that follow from the form alone."""
    KEPT.clear()
    try:
        namespace = played(source, tmp_path)
    except nkitools.KernelError as error:
        pytest.skip(f"{error.finding.rule}, before any run")
    expected = told(namespace, "off")
    for _ in range(3):
        assert told(namespace, "auto") == expected


@pytest.mark.parametrize(("rule", "source"), parameters(["NK304", "NK305", "NK404"]))
def test_an_example_reports_the_same_after_a_recorded_run(rule: str, source: str, tmp_path: Path) -> None:
    """Harmless arguments are recorded and replayed, those of the example are found at their line."""
    KEPT.clear()
    namespace = played(source, tmp_path)
    kernel, inputs = namespace["kernel"], namespace["inputs"]
    harmless = [(each * np.float32(HARMLESS.get(rule, 1)) + (rule == "NK404")).astype(each.dtype) for each in inputs]
    for _ in range(2):
        run = nkitools.simulate(kernel, *harmless, rules="report", replay="on")
    assert run.replayed.done
    expected = told(namespace, "off")
    assert told(namespace, "on") == expected
    assert rule in [each[0] for each in expected]
