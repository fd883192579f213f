"""Counting runs and folding findings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from nkitools.chip.pictures import UNWRITTEN, picture_of
from nkitools.record.run import Run
from nkitools.report.run_counts import Tally, tally_of
from nkitools.rules.finding import Finding, KernelError


def finding(
    message: str = "tile has 256 partitions", *, line: int = 7, severity: str = "error", **loops: int
) -> Finding:
    """A finding in the author's giou.py."""
    return Finding(
        "NK101", "partition-limit", severity, message, "/author/kernels/giou.py", line, "Split it.", loops=loops
    )


def run_with(*findings: Finding, error: BaseException | None = None) -> Run:
    """A run that found ``findings``."""
    return Run("giou", "builtin", "trn2", findings=list(findings), error=error)


def test_repeats_are_folded_whatever_their_numbers() -> None:
    """The same rule at the same line is one thing to mend: the first is shown, its remedy, and where the others are."""
    found = [finding(f"tile has {256 + m} partitions", m=m) for m in range(3)]
    tally = tally_of([run_with(*found), run_with(finding(line=9))], "/author")
    assert (tally.kernels, tally.finding_count(), tally.rules()) == (2, 4, ["NK101"])
    assert [one.lines() for one in tally.ranked()] == [
        [
            "kernels/giou.py:7: NK101 tile has 256 partitions",
            "    Split it.",
            "    and 2 more, first at m=0, last at m=2",
        ],
        ["kernels/giou.py:9: NK101 tile has 256 partitions", "    Split it."],
    ]


def test_other_words_at_the_same_line_stay_apart() -> None:
    """Two tensors of one line are two findings."""
    tally = tally_of([run_with(finding("a is tall"), finding("b is tall"))], "/elsewhere")
    assert [one.text for one in tally.ranked()] == [
        "/author/kernels/giou.py:7: NK101 a is tall",
        "/author/kernels/giou.py:7: NK101 b is tall",
    ]


def test_errors_come_first() -> None:
    """Then warnings, then hints; else the order in which they came."""
    found = [finding(severity=one, line=line) for line, one in enumerate(("hint", "warning", "error", "warning"))]
    ranked = tally_of([run_with(*found)], "").ranked()
    assert [one.text.split(":")[1] for one in ranked] == ["2", "1", "3", "0"]


def test_what_ended_a_run_differs_from_what_was_collected() -> None:
    """The finding of the run's own error is marked as raised, one like it that was collected is not."""
    raised, collected = finding(), finding()
    tally = tally_of([run_with(raised, error=KernelError(raised)), run_with(collected)], "")
    assert [(one.raised, one.count) for one in tally.ranked()] == [(True, 1), (False, 1)]


def test_one_finding_says_where_it_was() -> None:
    """Rank, program and counters, where they say anything."""
    one = replace(finding(m=3), program=(1, 0), rank=2)
    assert tally_of([run_with(one)], "").ranked()[0].lines()[-1] == "    at rank 2, program 1, 0, m=3"
    assert tally_of([run_with(replace(one, loops={}, rank=None, program=(0,)))], "").ranked()[0].lines()[1:] == [
        "    Split it."
    ]


def test_repeats_at_one_place_are_reported_as_that() -> None:
    """A kernel that is run twice has its findings at the same counters."""
    for places, said in (
        (({"m": 3}, {"m": 3}), "    at m=3, and 1 more"),
        (({}, {}), "    and 1 more"),
        (({}, {"m": 3}), "    and 1 more, first at no loop, last at m=3"),
    ):
        runs = [run_with(finding(**loops)) for loops in places]
        assert tally_of(runs, "").ranked()[0].lines()[-1] == said


def test_the_authors_line_is_shown_with_a_caret(tmp_path: Path) -> None:
    """Below the finding, and files that a message names are seen from where the reader stands, too."""
    kernel = tmp_path / "giou.py"
    kernel.write_text("def giou():\n    tile = load(x)\n")
    one = replace(finding(f"races with {kernel}:1", line=2), file=str(kernel), column=12)
    assert tally_of([run_with(one)], str(tmp_path)).ranked()[0].lines()[:3] == [
        "giou.py:2:12: NK101 races with giou.py:1",
        "    2 | tile = load(x)",
        "      |        ^",
    ]


def test_what_was_expected_or_allowed_is_counted_apart() -> None:
    """Neither is among the findings; the sentence says how many there were."""
    run = run_with(finding(line=1), finding(line=2))
    run.expected = run.findings[1:]
    run.set_aside = [(finding(line=3), "the tails are small"), (finding(line=3), "the tails are small")]
    tally = tally_of([run], "/author")
    assert (tally.finding_count(), tally.rules()) == (1, ["NK101"])
    assert [one.text.split(":")[1] for one in tally.ranked()] == ["1"]
    assert tally.sentence() == "1 kernel run, 1 finding (1 expected, 2 allowed), 0 device prints"
    (allowed,) = tally.ranked("allowed")
    assert allowed.allowed_line() == (
        "kernels/giou.py:3: NK101 tile has 256 partitions (x2); allowed: the tails are small"
    )


def test_a_finding_that_stands_for_several_counts_as_so_many() -> None:
    """The block says the first and the last place, the sentence how many there were in all runs."""
    first, last = finding(m=0), finding(m=4095)
    run = run_with(replace(first, count=4096, places=(first.place, finding(m=1).place), last=last.place))
    (folded,) = tally_of([run], "").ranked()
    assert (folded.count, folded.lines()[-1]) == (4096, "    and 4,095 more, first at m=0, last at m=4095")
    assert "more" not in folded.text
    assert tally_of([run, run], "").sentence() == "2 kernels run, 8192 findings, 0 device prints"


def test_an_allowed_finding_that_a_test_expects_is_expected() -> None:
    """A module may allow a rule of which one test wants to see that it speaks."""
    run = run_with()
    run.set_aside = [(finding(), "")]
    run.expected = run.allowed
    assert tally_of([run], "").sentence() == "1 kernel run, 0 findings (1 expected), 0 device prints"


def test_a_tally_survives_the_way_to_another_process() -> None:
    """Plain data out, the same tally in; and merging adds without touching what was merged."""
    drawn = replace(finding(line=9), picture=picture_of(np.eye(3, dtype=bool), UNWRITTEN))
    tally = tally_of([run_with(finding(), drawn)], "")
    again = Tally.from_plain(json.loads(json.dumps(tally.as_plain())))
    assert again == tally
    again.merge(tally)
    assert again.sentence() == "2 kernels run, 4 findings, 0 device prints"
    assert tally.sentence() == "1 kernel run, 2 findings, 0 device prints"


def test_runs_in_full_precision_are_told_apart() -> None:
    """The legacy way in keeps narrow floats in float32: who compares its numbers sees it, also beyond a process."""
    exact, rounded = Run("k", "builtin", "trn2", "full"), Run("k", "builtin", "trn2", "precise")
    tally = tally_of([exact, rounded], "")
    assert tally.sentence().endswith("0 device prints, 1 in full precision (NKI_PRECISE_FP=1 rounds as the chip)")
    assert Tally.from_plain(tally.as_plain()).sentence() == tally.sentence()
    assert "precision" not in tally_of([rounded], "").sentence()
