"""The facts of findings: each rule declares them, by names that mean the same everywhere."""

from __future__ import annotations

import ast
import json
import pickle
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import nkitools
from nkitools.report.findings import finding_as_plain, with_suggestions
from nkitools.report.page.page_data import Gathering
from nkitools.report.run_counts import tally_of
from nkitools.report.run_json import described
from nkitools.report.sarif import sarif_log
from nkitools.rules.catalogue import RULES
from nkitools.rules.facts import COMMON, KNOWN
from nkitools.rules.finding import Facts, Finding, report
from nkitools.serve.simulated_file import of_run
from tests.rules.test_examples import chips_of

PlayExample = Callable[..., Any]
PACKAGE = Path(nkitools.__file__).parent
_REPORTING = {"report", "refuse", "fail", "find", "find_at", "of", "bare_index_error", "Message"}
_OTHERS = {"about", "remedy", "fatal", "picture", "severity", "facts", "column", "program", "place"}


def _finding(**facts: Any) -> Finding:
    return Finding.of("NK402", "out of bounds", ("kernel.py", 3, "kernel"), facts=facts)


def _is_of(value: Any, kind: type) -> bool:
    if kind is tuple:
        return type(value) is tuple and all(type(each) in (int, str) for each in value)
    return type(value) is kind or (kind is float and type(value) is int)


def _keys(call: ast.Call, function: ast.AST) -> Iterator[str]:
    """The names of facts that a call passes: as keywords, in a dictionary, or in one that a variable holds."""
    named = isinstance(call.func, ast.Attribute) and call.func.attr in ("fail", "refuse", "find", "find_at")
    for each in call.keywords:
        if named and each.arg is not None and each.arg not in _OTHERS:
            yield each.arg
        held = [each.value] if each.arg in ("facts", None) else []
        if isinstance(each.value, ast.Name):
            assigned = (one for one in ast.walk(function) if isinstance(one, ast.Assign))
            held += [one.value for one in assigned if ast.dump(one.targets[0]).count(f"'{each.value.id}'")]
        for dictionary in (one for value in held for one in ast.walk(value) if isinstance(one, ast.Dict)):
            yield from (key.value for key in dictionary.keys if isinstance(key, ast.Constant))


def _written() -> dict[str, set[str]]:
    """The facts that the package's calls give the rules that they name."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        if "examples" in path.parts:
            continue
        functions = [one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.FunctionDef)]
        for function in functions:
            for call in (one for one in ast.walk(function) if isinstance(one, ast.Call)):
                name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
                rule = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
                if name in _REPORTING and isinstance(rule, str) and rule in RULES:
                    found[rule] |= set(_keys(call, function))
    return found


WRITTEN = _written()


def test_names_of_facts_are_known() -> None:
    """What a rule declares has a type and a meaning, and is none of the facts that all rules may have."""
    for rule in RULES.values():
        assert set(rule.facts) <= set(KNOWN) - set(COMMON), rule.id
        assert list(rule.facts) == sorted(set(rule.facts)), rule.id
    assert set(KNOWN) - set(COMMON) == {name for rule in RULES.values() for name in rule.facts}
    assert all(kind in (int, float, str, tuple) and meaning for kind, meaning in KNOWN.values())


@pytest.mark.parametrize("rule", sorted(WRITTEN))
def test_a_rule_declares_the_facts_that_its_checks_give(rule: str) -> None:
    """In the source of the package, whether or not an example shows it."""
    assert WRITTEN[rule] <= {*COMMON, *RULES[rule].facts}


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.startswith("NK")])
def test_the_facts_of_an_example_are_declared_and_of_their_types(rule: str, play_example: PlayExample) -> None:
    """Of each finding of each bad example, from a run and from lint: plain values, which JSON can hold."""
    known = RULES[rule]
    for example in known.examples:
        chip = chips_of(known, example.bad)[0]
        outcome = play_example(example.bad, rules="report", chip=chip, lint=True, version=known.nki_version)
        for finding in outcome.findings:
            for name, value in finding.facts.items():
                assert name in {*COMMON, *RULES[finding.rule].facts}, (finding, name)
                assert _is_of(value, KNOWN[name][0]), (finding, name, value)


def test_facts_do_not_change() -> None:
    """A finding is immutable, and so is what it says."""
    finding = _finding(axis=1, extent=64)
    assert isinstance(finding.facts, Facts)
    with pytest.raises(TypeError, match="do not change"):
        finding.facts["axis"] = 2  # type: ignore[index]
    with pytest.raises(TypeError, match="do not change"):
        finding.facts.update(axis=2)  # type: ignore[attr-defined]
    assert finding.facts == {"axis": 1, "extent": 64}
    assert hash(finding) == hash(replace(finding, facts={}))


def test_facts_cross_processes() -> None:
    """As the error does that carries them."""
    error = nkitools.KernelError(_finding(axis=1, memories=("SBUF", "PSUM")))
    assert pickle.loads(pickle.dumps(error)).finding.facts == {"axis": 1, "memories": ("SBUF", "PSUM")}


def test_facts_count_and_places_come_through_every_door(tmp_path: Path) -> None:
    """Those of one loop's finding: in JSON, SARIF, JUnit, an agent's answer, the page, and a saved run."""

    def kernel() -> None:
        for i in range(5):
            report("NK101", f"tile {i} is too tall", facts={"partitions": 256, "limit": 128})

    run = nkitools.simulate(kernel, rules="report")
    (sarif,) = sarif_log(run.findings, tmp_path, "1.0")["runs"][0]["results"]
    run.save(tmp_path / "run.json")
    plain = [
        described(run)["findings"][0],
        json.loads(json.dumps(with_suggestions(run.findings)))[0],
        of_run(run)["findings"][0],
        Gathering(run, None).tables["findings"][0],
        finding_as_plain(nkitools.load_run(tmp_path / "run.json").findings[0]),
        {**sarif["properties"], "count": sarif["occurrenceCount"]},
    ]
    for each in plain:
        assert (each["facts"], each["count"]) == ({"partitions": 256, "limit": 128}, 5)
        assert [place["loops"] for place in each["places"]] == [{"i": 0}, {"i": 1}, {"i": 2}]
        assert [place["message"] for place in each["places"]] == [f"tile {i} is too tall" for i in range(3)]
    (folded,) = tally_of([run], "").ranked()
    assert json.loads(folded.facts_line()) == {"rule": "NK101", "count": 5, "facts": {"partitions": 256, "limit": 128}}
