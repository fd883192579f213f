"""The counter of code lines counts what it says."""

from __future__ import annotations

from pathlib import Path

from benchmarks.code_lines import rooms_of, size_of, table

TEXT = '''\
"""A module

of three lines."""

# a comment
import os  # beside code


def f(x: int) -> int:
    """One line."""
    text = """of
    three
    lines"""
    return (
        x

        + 1
    )


class Empty:
    """Nothing but words."""
'''


def test_docstrings_comments_and_blank_lines_do_not_count() -> None:
    """import, def, text over three lines, return over four of which one is blank, class; five statements."""
    found = size_of(TEXT)
    assert (found.lines, found.statements) == (1 + 1 + 3 + 4 + 1, 5)


def test_rooms_are_listed_beside_those_of_another_checkout(tmp_path: Path) -> None:
    """Examples of rules are left out; a room that is new or gone has a row."""
    for place, files in (
        ("now", {"a/x.py": "x = 1\ny = 2\n", "rules/examples/b.py": "x = 1\n", "one.py": "z = 1\n"}),
        ("then", {"a/x.py": "x = 1\n", "old/x.py": "x = 1\n"}),
    ):
        for name, text in files.items():
            path = tmp_path / place / "nkitools" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    now, then = rooms_of(tmp_path / "now"), rooms_of(tmp_path / "then")
    assert {name: size.lines for name, size in now.items()} == {"a": 2, "one.py": 1}
    rows = [line.split() for line in table(now, then)[1:]]
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("a", "2", "+1"), ("old", "0", "-1"), ("one.py", "1", "+1"), ("sum", "3", "+1"),
    ]  # fmt: skip
