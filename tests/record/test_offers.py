"""What rooms above the record answer of a run is imported when it is asked for."""

from __future__ import annotations

import subprocess
import sys
from operator import mul

import numpy as np
import pytest

import nkitools
from nkitools.record.offers import _functions, answer, offer
from tests.launch.kernels import doubled


@pytest.mark.parametrize("name", ["estimate", "notebook_frame", "slice", "tolerance"])
def test_every_answer_has_its_function(name: str) -> None:
    """The function that is named for it is there, whichever is asked for first."""
    assert callable(_functions[name]())


def test_a_run_gives_the_answers_of_other_rooms() -> None:
    """By its own methods, with what they are given."""
    run = nkitools.simulate(doubled, np.ones((8, 4), np.float32))
    assert run.estimate().kernel == "doubled"
    assert [each.position for each in run.why(0, (1, 2)).steps] == [2, 1, 0]
    assert run._repr_html_().startswith("<iframe")


def test_an_answer_takes_the_run_and_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this order; another function may be offered for it."""
    monkeypatch.setattr("nkitools.record.offers._functions", {})
    offer("pair", lambda: mul)
    assert answer("pair", "ab", 2) == "abab"


@pytest.mark.process
def test_no_room_above_is_imported_before() -> None:
    """Importing nkitools and its runs names these rooms and does not load them."""
    rooms = ("nkitools.why", "nkitools.timing", "nkitools.report.page", "nkitools.precision")
    code = f"import sys, nkitools; nkitools.Run; print([each for each in sys.modules if each.startswith({rooms})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
