"""The author's line and its caret."""

from __future__ import annotations

from pathlib import Path

import pytest

from nkitools.report.excerpt import excerpt, source_line


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    """A source with an indented line, one of letters beyond ASCII, one with tabs, and an empty one."""
    path = tmp_path / "kernel.py"
    path.write_text("def kernel():\n    x = load(y)  \n  größe = f(größe)\n\tz\t= g()\n\n", encoding="utf-8")
    return str(path)


def test_the_caret_stands_below_the_column(kernel: str) -> None:
    """Columns count from 1, in the line with its indentation."""
    assert excerpt(kernel, 2, 9) == ["2 | x = load(y)", "  |     ^"]
    assert excerpt(kernel, 2, 5) == ["2 | x = load(y)", "  | ^"]


def test_columns_are_bytes(kernel: str) -> None:
    """Python's code objects count bytes of UTF-8: the second `größe` begins at byte 15, letter 12."""
    line = "  größe = f(größe)"
    column = len(line[: line.rindex("größe")].encode()) + 1
    assert excerpt(kernel, 3, column) == ["3 | größe = f(größe)", "  |           ^"]


def test_tabs_stay_tabs(kernel: str) -> None:
    """The caret follows them however wide they are."""
    assert excerpt(kernel, 4, 6) == ["4 | z\t= g()", "  |  \t  ^"]


def test_without_a_column_or_a_source_less_is_shown(kernel: str, tmp_path: Path) -> None:
    """No caret; or nothing at all, for code of exec, lines that are gone, empty lines."""
    assert excerpt(kernel, 2, None) == ["2 | x = load(y)"]
    assert excerpt(kernel, 2, 99) == ["2 | x = load(y)"]
    assert excerpt("<string>", 1, 1) == excerpt(str(tmp_path / "gone.py"), 1, 1) == excerpt(kernel, 5, 1) == []


def test_the_source_is_the_one_of_now(kernel: str) -> None:
    """An edited file is read again."""
    assert source_line(kernel, 2) == "    x = load(y)"
    Path(kernel).write_text("\n    x = something_else(y)\n")
    assert source_line(kernel, 2) == "    x = something_else(y)"
