"""The repair loop mends what suggested edits mend, and says so of nothing else."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from benchmarks.repair import followed
from benchmarks.repair.__main__ import mistakes
from benchmarks.repair.loop import repaired, with_edits
from tests import cases
from tests.rules.test_sentences import sentences

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


ALL = {each.name: each for each in followed.mistakes()}
FOLLOWED = ["scaled_rows.rounded_down", "ragged_product.operands_exchanged", "legacy_softmax.flat_index"]


def test_there_are_a_hundred_and_twenty() -> None:
    """Each is another text, with rules and lines that were written down before the first run."""
    assert len(ALL) == len({each.text for each in ALL.values()}) == 120
    assert all(each.text != each.right for each in ALL.values())
    assert ALL["scaled_rows.rounded_down"].lines == {10, 11, 14}


def test_what_was_read_fits_the_wrong_texts() -> None:
    """Remedies have two sentences at most, and edits name what stands there."""
    read = tomllib.loads((followed.HERE / "followed.toml").read_text())
    for name, each in read.items():
        assert sentences(each["remedy"]) <= 2, name
        assert followed.after_edits(ALL[name].text, each["edits"]) != ALL[name].text


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_remedy_that_is_followed_mends(name: str, tmp_path: Path) -> None:
    """The rule and its line are those that were expected, and the text after the remedy is the reference's."""
    (found,) = followed.outcomes([ALL[name]], tmp_path)
    assert (found.found, found.at_line, found.after) == (True, True, "mends")


def test_a_remedy_that_is_another_one_is_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written down for a message holds for that message; what does not mend is false."""
    wrong = ALL["scaled_rows.python_operator"]
    said = followed.judged(wrong.stem, wrong.text, tmp_path).said[0]
    assert followed.after(wrong, said, {"remedy": "Another one.", "edits": []}, tmp_path) == "unread"
    assert followed.after(wrong, said, {"remedy": said.remedy, "edits": []}, tmp_path) == "nothing"
    edits = [["tile * 2.0", "nl.multiply(tile, 3.0)"]]
    assert followed.after(wrong, said, {"remedy": said.remedy, "edits": edits}, tmp_path) == "false"


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_shares_of_all(tmp_path: Path) -> None:
    """Found, at the line, mended and false, as the project asks for."""
    done = list(followed.outcomes([*ALL.values()] if cases.FULL else [ALL[FOLLOWED[0]]], tmp_path))
    assert sum(each.found for each in done) >= 0.95 * len(done)
    assert sum(each.at_line for each in done) >= 0.92 * len(done)
    assert sum(each.after == "mends" for each in done) >= 0.85 * len(done)
    assert sum(each.after == "false" for each in done) <= 0.02 * len(done)
