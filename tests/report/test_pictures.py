"""Pictures as text."""

from __future__ import annotations

import io

import numpy as np
import pytest

from nkitools.chip.pictures import UNWRITTEN, picture_of, picture_of_range
from nkitools.report.pictures import picture_lines, shows_blocks

MASK = np.zeros((300, 64), np.bool_)
MASK[128:, 48:] = True
MASK[299] = True


def test_a_picture_in_plain_ascii() -> None:
    """Rows before each line, and what the signs mean below."""
    assert picture_lines(picture_of(MASK, UNWRITTEN)) == [
        "rows 0..127    " + "." * 32,
        "rows 128..298  " + "." * 24 + "#" * 8,
        "row 299        " + "#" * 32,
        "columns 0..63 in 32 signs: . written, # never written",
    ]


def test_a_picture_in_blocks() -> None:
    """Where the terminal can show them."""
    mask = np.array([[True, False, True, False] * 20])
    assert picture_lines(picture_of(mask, UNWRITTEN), blocks=True) == [
        "█·█▒·█·▒" * 8,
        "elements 0..79 in 64 signs: · written, █ never written, ▒ mixed",
    ]


def test_one_sign_an_index_needs_no_number() -> None:
    """The strip of an index that leaves its dimension begins where the index does."""
    assert picture_lines(picture_of_range(4, -2, 0)) == ["##o...", "indices -2..3: # outside, o asked for, . inside"]


@pytest.mark.parametrize(
    ("encoding", "can"), [("utf-8", True), ("ascii", False), ("latin-1", False), ("no such thing", False)]
)
def test_blocks_are_for_terminals_that_have_them(encoding: str, can: bool) -> None:
    """By the encoding of the stream; without a stream there is nothing to see them."""

    class Stream(io.StringIO):
        pass

    stream = Stream()
    stream.__class__.encoding = encoding  # type: ignore[assignment, misc]
    assert shows_blocks(stream) is can
    assert not shows_blocks(None)
