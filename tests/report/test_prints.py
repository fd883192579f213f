"""Device prints in a terminal: a table where there is room for one, NumPy's text where not, plain text in a pipe."""

from __future__ import annotations

import io
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkitools.record.prints.device_print import Print
from nkitools.record.prints.print_sequence import Prints
from nkitools.report.prints import show_print, terminal_text

TILE = np.arange(128 * 40, dtype=np.float32).reshape(128, 40)
RAMP = Print("x", TILE, loops={"m": 3}, file="/author/giou.py", line=57, memory="SBUF")


def shown(one: Print, width: int | None) -> list[str]:
    return terminal_text(one, width, color=False).splitlines()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_wide_terminal_gets_a_table() -> None:
    """Rows and columns are numbered, and as many columns are shown as there is room for."""
    lines = shown(RAMP, 60)
    assert lines[0] == "x [program 0, m=3, giou.py:57] SBUF float32 [128, 40]"
    assert lines[1] == "(min 0 max 5119 mean 2559.5)"
    assert lines[2].split() == ["0", "1", "2", "3", "…", "36", "37", "38", "39"]
    assert lines[3].split() == ["0", "0", "1", "2", "3", "…", "36", "37", "38", "39"]
    assert lines[6].split() == ["…"] * 10
    assert lines[-1].split() == ["127", *(str(5080 + at) for at in (0, 1, 2, 3)), "…", "5116", "5117", "5118", "5119"]
    assert len(lines) == 10
    assert max(map(len, lines)) <= 60
    every = shown(RAMP, 400)[2].split()
    assert every == [str(column) for column in range(40)]


@pytest.mark.parametrize("width", range(20, 200, 7))
def test_no_line_of_the_table_is_longer_than_the_terminal(width: int) -> None:
    """Whatever its width."""
    values = np.random.default_rng(0).normal(size=(5, 30)).astype(np.float32) * 1e6
    lines = shown(Print("x", values), width)[2:]
    assert all(len(line) <= width for line in lines) or lines == Print("x", values).values_text().splitlines()


def test_a_narrow_terminal_gets_numpys_text() -> None:
    """Where three columns from each end have no room."""
    assert shown(RAMP, 30)[2:] == RAMP.values_text().splitlines()


@pytest.mark.parametrize(
    "one",
    [
        Print("x", np.zeros((2, 3, 4), np.float32)),
        Print("x", np.zeros((2, 2), [("float8_e4m3fn_x4", "<u4")])),
        Print("x", np.array(4)),
    ],
)
def test_what_is_no_matrix_gets_numpys_text(one: Print) -> None:
    """More dimensions, packed elements, one number."""
    assert shown(one, 200)[-len(one.values_text().splitlines()) :] == one.values_text().splitlines()


def test_what_is_no_number_is_told_apart() -> None:
    """NaN, infinities, masked lanes; in colour where there is colour."""
    value = np.array([[1.5, np.nan], [-np.inf, 7]]).astype(ml_dtypes.bfloat16)
    one = Print("x", value, mask=np.array([[False, False], [False, True]]))
    lines = shown(one, 80)
    assert lines[1:3] == ["(1 of 4 elements masked)", "(min 1.5 max 1.5 mean 1.5 1 NaN 1 Inf)"]
    assert [line.split() for line in lines[4:]] == [["0", "1.5", "nan"], ["1", "-inf", "--"]]
    coloured = terminal_text(one, 80, color=True)
    assert re.search(r"\x1b\[1;31mnan\x1b\[0m", coloured)
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured).split() == "\n".join(lines).split()


def test_a_value_beyond_the_limit_shows_its_corners() -> None:
    """With the numbers of the rows and columns that they stand in."""
    found = Prints()
    found._limit = 0
    found.append(RAMP)
    lines = shown(found[0], 80)
    assert lines[3].split() == ["0", "1", "2", "…", "37", "38", "39"]
    assert lines[-1].split() == ["127", "5080", "5081", "5082", "…", "5117", "5118", "5119"]


def test_text_alone_is_one_line() -> None:
    """A print without a tensor."""
    assert shown(Print("here", (), program=(2,)), 80) == ["here [program 2]"]


def test_a_pipe_gets_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """No colours, no table; a terminal gets its own form."""
    pipe, terminal = io.StringIO(), Terminal()
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    show_print(RAMP, pipe)
    show_print(RAMP, terminal)
    assert pipe.getvalue() == RAMP.text() + "\n"
    assert terminal.getvalue() == "\n".join(shown(RAMP, 60)) + "\n"


def test_prefixes_are_text_not_markup() -> None:
    """Brackets of an author stay as they are."""
    prefix: Any = "[bold]x[/bold] :smile:"
    assert shown(Print(prefix, np.ones((1, 2))), 80)[0].startswith(prefix)
