"""The runner reads answers in each form that they have, and judges an edit on arguments that no search has seen."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path

import pytest

from benchmarks.wrong_values import door
from benchmarks.wrong_values.cases import Case, cases
from benchmarks.wrong_values.door import Answer, answer_of, patched
from benchmarks.wrong_values.figures import Outcome, figures, outcome

ALL = {f"{each.family}/{each.name}": each for each in cases()}


def test_answers_are_read_in_both_forms() -> None:
    """A diff and edits give the same text and line."""
    text = "a = 1\nb = 1\nc = 1\n"
    diff = "".join(difflib.unified_diff(text.splitlines(True), "a = 1\nb = 2\nc = 1\n".splitlines(True), "x", "y"))
    edits = [{"line": 2, "column": 5, "end_line": 2, "end_column": 6, "text": "2"}]
    one = answer_of({"answer": "repaired", "diff": diff, "line": 2, "seconds": 3}, text, 9.0)
    assert one == Answer("repaired", 2, "a = 1\nb = 2\nc = 1\n", 3.0)
    assert answer_of({"answer": "repaired", "edits": edits}, text, 9.0) == Answer("repaired", 2, one.text, 9.0)
    assert answer_of({"answer": "not found"}, text, 9.0) == Answer("not found", 0, "", 9.0)
    with pytest.raises(ValueError, match="line 1 is not"):
        patched("z = 1\n", diff)


@pytest.mark.process
def test_an_edit_is_judged_on_unseen_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The right line is right, one that only pleases is wrong, and an edit of a right kernel counts as false."""
    said = {"modern/rotary_by_halves": "right", "modern/adam_step": "wrong", "innocent/transposed_reference": "right"}
    chosen = [ALL[name] for name in said]

    def answered(case: Case, seconds: float, folder: Path) -> Answer:
        text = case.right_text if said[f"{case.family}/{case.name}"] == "right" else case.text + "\n"
        return Answer("repaired", case.mistakes[0].line if case.mistakes else 1, text, 4.0)

    monkeypatch.setattr(door, "asked", answered)
    found = [outcome(each, 60, tmp_path) for each in chosen[:2]]
    assert [each.is_right for each in found] == [True, False]
    found.append(Outcome(chosen[2], answered(chosen[2], 60, tmp_path), True))
    assert figures(found) == [
        "NKI: repaired 2 of 2 (100%); right of these on unseen arguments 1 of 2 (50%)",
        "  at the planted line 2 of 2 (100%), or equivalent 2 of 2 (100%)",
        "  right within 5 s 1 of 2 (50%); edits that only fit 0",
        "Pallas: repaired 0 of 0; right of these on unseen arguments 0 of 0",
        "  at the planted line 0 of 0, or equivalent 0 of 0",
        "  right within 5 s 0 of 0; edits that only fit 0",
        "no single edit mends: 0 of 0 repaired by an edit that fails elsewhere",
        "right kernels: 1 of 1 (100%) with an edit; for 1 the reference suggests one",
        "  transposed_reference: an edit where none is due",
    ]
    assert found[1].row().split("\t")[:2] == ["modern/adam_step", "repaired"]


@pytest.mark.process
def test_the_command_is_asked_in_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command prints is the answer; one that fails gives its last line, and one without a budget is refused."""
    case = ALL["modern/rotary_by_halves"]
    tell = "import json, sys; print(json.dumps({'answer': 'not found', 'argv': sys.argv[1:]}))"
    monkeypatch.setattr(door, "_command", lambda: (sys.executable, "-c", tell))
    assert door.asked(case, 2, tmp_path).kind == "not found"
    assert (tmp_path / case.path.name).read_text(encoding="utf-8") == case.text
    with pytest.raises(door.Absent):
        door.check_door()
    monkeypatch.setattr(door, "_command", lambda: (sys.executable, "-c", "raise SystemExit('broken')"))
    assert door.asked(case, 2, tmp_path).kind == "no answer: broken"
