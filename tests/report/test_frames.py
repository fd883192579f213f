"""Tracebacks of the author's own lines."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from nkitools.facts import options
from nkitools.report.frames import may_hide_ours, show_only_theirs, without_ours
from nkitools.rules.finding import KernelError, not_modelled


def names_of(error: BaseException) -> list[str]:
    """The files of the frames that would be shown."""
    return [Path(frame.filename).name for frame in traceback.extract_tb(without_ours(error))]


def test_a_finding_ends_at_the_line_that_caused_it() -> None:
    """The frames of nkitools below the author's line are gone."""
    with pytest.raises(KernelError) as caught:
        not_modelled("this is not modelled")
    assert "finding.py" in [Path(frame.filename).name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names_of(caught.value) == ["test_frames.py"]


def _mine() -> None:
    raise ValueError("mine")


def test_ours_between_the_authors_frames_is_left_out() -> None:
    """nkitools called the author's function: both of their frames are shown and none of ours."""
    with pytest.raises(ValueError, match="mine") as caught, options.override(rules="off"):
        _mine()
    assert names_of(caught.value) == ["test_frames.py", "test_frames.py"]


def test_an_exception_of_our_own_keeps_its_frames() -> None:
    """No finding, and it started in nkitools: it may be our fault, and then the frames are needed."""
    with pytest.raises(KeyError) as caught:
        options.value("no such option")
    assert not may_hide_ours(caught.value)
    assert names_of(caught.value) == ["test_frames.py", "options.py"]


def test_the_exceptions_that_led_to_it_are_treated_alike() -> None:
    """Causes and contexts too, also where they go round in a circle."""
    with pytest.raises(KernelError) as first:
        not_modelled("first")
    with pytest.raises(KernelError) as second:
        not_modelled("second")
    second.value.__cause__, first.value.__context__ = first.value, second.value
    show_only_theirs(second.value)
    for error in (first.value, second.value):
        assert [Path(frame.filename).name for frame in traceback.extract_tb(error.__traceback__)] == ["test_frames.py"]
