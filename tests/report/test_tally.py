"""Counting runs and folding findings."""

from __future__ import annotations

import json

from nkitools.record.run import Run
from nkitools.report.tally import Tally, tally_of
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
    """The same rule at the same line is one thing to mend: the first is shown, with a count, its remedy and place."""
    found = [finding(f"tile has {256 + m} partitions", m=m) for m in range(3)]
    tally = tally_of([run_with(*found), run_with(finding(line=9))], "/author")
    assert (tally.kernels, tally.finding_count(), tally.rules()) == (2, 4, ["NK101"])
    assert [one.lines() for one in tally.ranked()] == [
        ["kernels/giou.py:7: NK101 tile has 256 partitions (x3)", "    Split it.", "    loop m=0"],
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


def test_what_ended_a_run_is_told_from_what_was_collected() -> None:
    """The finding of the run's own error is marked as raised, one like it that was collected is not."""
    raised, collected = finding(), finding()
    tally = tally_of([run_with(raised, error=KernelError(raised)), run_with(collected)], "")
    assert [(one.raised, one.count) for one in tally.ranked()] == [(True, 1), (False, 1)]


def test_a_tally_survives_the_way_to_another_process() -> None:
    """Plain data out, the same tally in; and merging adds without touching what was merged."""
    tally = tally_of([run_with(finding(), finding())], "")
    again = Tally.from_plain(json.loads(json.dumps(tally.as_plain())))
    assert again == tally
    again.merge(tally)
    assert again.sentence() == "2 kernels run, 4 findings, 0 device prints"
    assert tally.sentence() == "1 kernel run, 2 findings, 0 device prints"
