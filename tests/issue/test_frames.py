"""How many Python calls an instruction takes: what decides its cost beside NumPy's own work."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.careful import carefully

PACKAGE = nkitools.__path__[0]


def frames_of(act: Callable[[Any], None], times: int) -> list[str]:
    """Return the functions of nkitools that a warm kernel calls which acts so often on a tile."""

    def kernel(x: Any) -> None:
        tile = nl.load(x)
        for _ in repeat(None, 3):  # makes the plan, and the function that authors call
            act(tile)
        sys.setprofile(noting)
        for _ in repeat(None, times):  # a loop that the record does not count
            act(tile)
        sys.setprofile(before)

    called: list[str] = []

    def noting(frame: Any, event: str, _: Any) -> None:
        is_ours = frame.f_code.co_filename.startswith((PACKAGE, "<nkitools"))
        if event == "call" and is_ours:
            called.append(frame.f_code.co_name)

    before = sys.getprofile()
    try:
        nkitools.simulate(kernel, np.ones((4, 8), np.float32))
    finally:
        sys.setprofile(before)
    return called


def tensor_tensor(tile: Any) -> None:
    """Issue an instruction whose operands are all written."""
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.maximum)


@pytest.mark.usefixtures("fast")
def test_a_warm_instruction_takes_two_calls() -> None:
    """The function that the author calls, and the computation: all the rest is in the generated function."""
    frames = frames_of(tensor_tensor, 10)
    assert frames[-18:] == ["tensor_tensor", "compute"] * 9
    assert len(frames) < 30  # the first of this line looks up the line


@pytest.mark.usefixtures("fast")
def test_a_partly_written_operand_takes_four_calls_more() -> None:
    """The storage is asked whether the view lacks an element, and marks it as written; both look at the box."""

    def half(tile: Any) -> None:
        nisa.tensor_tensor(dst=parts[0], data1=parts[0], data2=tile, op=nl.maximum)

    parts: list[Any] = []

    def act(tile: Any) -> None:
        if not parts:
            whole = nl.ndarray((4, 16), nl.float32, buffer=nl.sbuf)
            parts.append(whole[:, 0:8])
            nisa.tensor_copy(dst=parts[0], src=tile)
        half(tile)

    frames = frames_of(act, 10)
    asked, marked = ("lacks", "_is_in_box"), ("mark_written", "_is_in_box")
    assert frames[-54:] == ["tensor_tensor", *asked, "compute", *marked] * 9


def test_the_careful_path_takes_more() -> None:
    """The count above can fail."""
    with carefully():
        assert len(frames_of(tensor_tensor, 10)) > 200


@pytest.mark.usefixtures("fast")
def test_an_instruction_out_of_the_language_finds_its_line() -> None:
    """A function of the language adds the row as the author's own call does: nothing looks for the author's site."""

    def copied(tile: Any) -> None:
        nisa.tensor_copy(dst=nl.copy(tile), src=tile)

    frames = frames_of(copied, 10)
    last = frames[-frames[::-1].index("copy") :]
    assert last[-5:] == ["__call__", "tensor_copy", "mark_written", "_fill", "tensor_copy"]
    assert not {"site", "commit", "issued_before"} & set(last)
