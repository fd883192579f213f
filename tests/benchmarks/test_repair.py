"""The repair loop mends what suggested edits mend, and says so of nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.repair.__main__ import mistakes
from benchmarks.repair.loop import repaired, with_edits

pytestmark = pytest.mark.process
MENDED = {
    "product.whole_k": ("NK101: Contract 128 rows in each turn of a loop",),
    "scaled_rows.rounded_down": ("NK403: Round the number of tiles up",),
    "added.wrong_operator": (),
}


def test_there_are_sixty_and_each_is_one_change() -> None:
    """The set stays as it was before its first run."""
    assert len(mistakes()) == 60
    assert len({text for text, _ in mistakes().values()}) == 60


@pytest.mark.parametrize("name", MENDED)
def test_the_loop_applies_what_is_suggested(name: str, tmp_path: Path) -> None:
    """A text that passes at the end is mended; wrong values alone suggest nothing, and stay as they were."""
    text, rule = mistakes()[name]
    found = repaired(name.replace(".", "_"), text, tmp_path)
    assert found.applied == MENDED[name]
    assert found.is_mended == bool(MENDED[name])
    assert (found.text == text) == (not MENDED[name])
    assert not found.is_worse
    assert {rule} - {""} <= {each["rule"] for each in found.before.findings}


def test_edits_hold_for_the_text_as_it_is() -> None:
    """Positions are those before all edits, whatever their order."""
    edits = [
        {"line": 2, "column": 1, "end_line": 2, "end_column": 3, "text": "zwei"},
        {"line": 1, "column": 2, "end_line": 1, "end_column": 2, "text": "+"},
    ]
    assert with_edits("one\ntwo\n", edits) == "o+ne\nzweio\n"
