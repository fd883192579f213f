"""The mutation yardstick: it makes the mistakes that it says, and counts what tells of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutants.cases import CASES
from benchmarks.mutants.figures import figures, passes
from benchmarks.mutants.kernels import sources
from benchmarks.mutants.runner import Result
from benchmarks.mutants.survivors import Explanation, explanations, judge
from benchmarks.mutants.trial import Verdict
from nkitools.edits.candidates import Candidate, candidates_of
from nkitools.edits.source import Edit

REPOSITORY = Path(__file__).parents[2]


def test_every_kernel_has_a_case() -> None:
    """No example kernel is left out."""
    assert {each.kernel for each in sources(REPOSITORY)} == CASES.keys()


def test_every_explanation_speaks_of_a_mutant() -> None:
    """A line that was changed since, or an operator that is gone, leaves no explanation behind."""
    mutants = [mutant for each in sources(REPOSITORY) for mutant in candidates_of(each)]
    assert [each.name() for each in explanations() if not any(map(each.fits, mutants))] == []


def result(line: str, *, killed: bool = False, identical: bool = True) -> Result:
    """A mutant of the operator "shift-slice" and its fate."""
    mutant = Candidate("one", "shift-slice", "kernel", 1, line, "old", Edit(1, 0, 1, 3, "new"), "")
    return Result(mutant, Verdict(reference="wrong" if killed else ""), identical and not killed)


def explanation(line: str | None, *, equivalent: bool = True) -> Explanation:
    """Of the same operator."""
    return Explanation(equivalent, "because", "shift-slice", "one", None, line, None)


def test_what_is_explained_and_what_is_not() -> None:
    """A kind of mistake is equivalent only where results are the same to the bit; a named line may differ."""
    results = [result("a"), result("b", identical=False), result("c", identical=False), result("d", killed=True)]
    judged = judge(results, [explanation("b", equivalent=False), explanation(None)])
    assert [each.mutant.code for each, _ in judged.equivalent] == ["a"]
    assert [each.mutant.code for each, _ in judged.unseen] == ["b"]
    assert [each.mutant.code for each in judged.unexplained] == ["c"]
    assert judged.stale == []
    counted = figures(results, judged)
    assert (counted.mutants, counted.mistakes, counted.noticed, counted.unseen) == (4, 3, 1, 2)
    assert not passes(results, judged)


def test_explanations_that_are_no_longer_true_are_stale() -> None:
    """One of no survivor, and one of a mutant that is noticed by now."""
    judged = judge([result("a", killed=True), result("b")], [explanation("a"), explanation("b"), explanation("gone")])
    assert [each.partition(":")[0] for each in judged.stale] == [
        "explains no survivor",
        "speaks of a mutant that is noticed",
        "explains no survivor",
    ]


@pytest.mark.parametrize(
    "entry",
    [
        "[[equivalent]]\noperator = 'shift-slice'",
        "[[unseen]]\nreason = 'because'",
        "[[unseen]]\noperator = 'shift-slice'\nreason = 'because'\nlines = 'a'",
        "[[other]]\noperator = 'shift-slice'\nreason = 'because'",
    ],
    ids=["no reason", "no operator", "a field that is none", "a kind that is none"],
)
def test_an_entry_of_another_form_is_refused(tmp_path: Path, entry: str) -> None:
    """Nothing in the file is passed over."""
    file = tmp_path / "survivors.toml"
    file.write_text(entry)
    with pytest.raises(ValueError, match=r"survivors\.toml"):
        explanations(file)


def test_enough_is_enough() -> None:
    """At 95 % of the mistakes, all others explained, the yardstick passes; with one less it does not."""
    unseen = [result("a", identical=False)]
    known = [explanation("a", equivalent=False)]
    for killed, good in ((19, True), (18, False)):
        results = [*unseen, *[result(str(number), killed=True) for number in range(killed)]]
        assert passes(results, judge(results, known)) is good


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    """The yardstick on one small kernel of each dialect, in a process as its users start it."""
    command = [sys.executable, "-m", "benchmarks.mutants", "--format", "json", "--jobs", "2"]
    command += ["--kernel", "softmax", "--kernel", "legacy.vector_add"]
    theirs = ("PYTEST_", "NKITOOLS_", "NKI_", "NEURON_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.process
def test_two_kernels_pass(measured: dict[str, Any]) -> None:
    """At least 95 % of the mistakes are noticed, every survivor is explained, no explanation is stale."""
    counted = measured["figures"]["all"]
    assert counted["noticed"] >= 0.95 * counted["mistakes"] > 0
    assert measured["stale"] == []
    assert all(each["reason"] for each in measured["mutants"] if each["fate"] != "noticed")


PLANTED = [
    ("softmax", "drop-copy", "nisa.dma_copy", "NK403"),
    ("softmax", "drop-instruction", "nisa.tensor_reduce", "NK401"),
    ("softmax", "wrong-tile-size", "pmax = nl.tile_size.pmax", "NK101"),
    ("softmax", "widen-slice", "tile = nl.load", "NK402"),
    ("legacy.vector_add", "floor-division", "for n in", "NK403"),
    ("legacy.vector_add", "drop-mask", "x_tile = nl.load", "NK402"),
]


@pytest.mark.process
@pytest.mark.parametrize(("kernel", "operator", "line", "rule"), PLANTED)
def test_a_mistake_is_reported_by_its_rule(
    measured: dict[str, Any], kernel: str, operator: str, line: str, rule: str
) -> None:
    """The verdict on a mutant says which rule spoke."""
    found = [
        each["findings"]["error"]
        for each in measured["mutants"]
        if each["kernel"] == kernel and each["kind"] == operator and each["code"].startswith(line)
    ]
    assert found
    assert any(rule in rules for rules in found)


@pytest.mark.process
def test_a_wrong_result_is_reported_by_the_comparison(measured: dict[str, Any]) -> None:
    """A sum in place of a maximum breaks no rule, and the result is not the reference's."""
    found = [each for each in measured["mutants"] if each["change"] == "nl.multiply -> nl.add"]
    assert [each["kernel"] for each in found] == ["softmax"]
    assert found[0]["findings"]["error"] == []
    assert found[0]["reference"]
