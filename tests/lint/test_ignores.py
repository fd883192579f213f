"""``# nki: ignore[NK601] why``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.linted import FIRST, of_body, places

pytestmark = pytest.mark.usefixtures("parsed")

IGNORED = {
    "on the line": "chosen = {1}  # nki: ignore[NK601] read by the host only",
    "on the line above": "# nki: ignore[NK601] read by the host only\nchosen = {1}",
    "several rules": "chosen = {1, x is None}  # nki: ignore[NK601, NK616] read by the host only",
    "with a dash": "chosen = {1}  # nki: ignore[NK601] - read by the host only",
}
WRONG = {
    "without a reason": ("chosen = {1}  # nki: ignore[NK601]", ["NK601", "NK619"], "gives no reason"),
    "without a rule": ("chosen = {1}  # nki: ignore because", ["NK601", "NK619"], "names no rule"),
    "of no rule": ("chosen = {1}  # nki: ignore[NK999] because", ["NK601", "NK619"], "NK999 is no rule"),
    "of another rule": ("chosen = {1}  # nki: ignore[NK602] because", ["NK601", "NK619"], "nothing here is NK602"),
    "of nothing": ("n = 1  # nki: ignore[NK601] because", ["NK619"], "nothing here is NK601"),
}


@pytest.mark.parametrize("body", IGNORED.values(), ids=IGNORED)
def test_a_comment_with_a_reason_silences_its_rules(tmp_path: Path, body: str) -> None:
    """Alone on a line it speaks of the next one."""
    assert of_body(tmp_path, body) == []


@pytest.mark.parametrize(("body", "rules", "text"), WRONG.values(), ids=WRONG)
def test_a_comment_that_says_too_little_silences_nothing(
    tmp_path: Path, body: str, rules: list[str], text: str
) -> None:
    """And is a finding itself, at its own place."""
    found = of_body(tmp_path, body)
    assert [each.rule for each in found] == rules
    assert text in found[-1].message
    assert places(found)[-1] == ("NK619", FIRST, body.index("#") + 5)


def test_a_comment_about_a_run_is_left_alone(tmp_path: Path) -> None:
    """Lint cannot tell whether NK401 is found when the kernel runs."""
    assert of_body(tmp_path, "n = 1  # nki: ignore[NK401] the rest is never read") == []


def test_only_comments_count(tmp_path: Path) -> None:
    """A text that looks like one is none."""
    assert [each.rule for each in of_body(tmp_path, "n = {'# nki: ignore[NK601] why'}")] == ["NK601"]
