"""The format of the record's rows has one owner."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house.sources import nodes_in

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "nkitools"
OWNER = PACKAGE / "record" / "rows.py"
READER = PACKAGE / "record" / "columns.py"  # may take all words at once, as an array

LOW = 0xFFFFFFFF


def decodes(node: ast.AST) -> bool:
    """Return whether a node packs or unpacks half a word: ``x >> 32``, ``x << 32``, ``x & LOW``."""
    if not isinstance(node, ast.BinOp):
        return False
    if isinstance(node.op, (ast.LShift, ast.RShift)):
        is_number = isinstance(node.left, ast.Constant)  # 1 << 32 is a limit of integers
        return not is_number and isinstance(node.right, ast.Constant) and node.right.value == 32
    if isinstance(node.op, ast.BitAnd):
        sides = (node.left, node.right)
        return any(
            (isinstance(side, ast.Constant) and side.value == LOW)
            or (isinstance(side, ast.Name) and side.id.strip("_").upper() in ("LOW", "MASK32"))
            for side in sides
        )
    return False


def takes_words(node: ast.AST) -> bool:
    """Return whether a node reads the words of all rows."""
    return isinstance(node, ast.Attribute) and node.attr in ("row_words", "_starts")


def is_hand_made(node: ast.AST, path: Path) -> bool:
    """Return whether a node of a file does what only the format's owner may do."""
    text = (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and (">> 32" in node.value or "<< 32" in node.value)
    )
    return decodes(node) or text or (takes_words(node) and path != READER)


def found_in(source: str, path: Path) -> list[int]:
    """Return the lines of a file that handle the words of rows by hand."""
    return sorted({node.lineno for node in nodes_in(source) if is_hand_made(node, path)})


def test_only_its_owner_handles_the_words_of_rows() -> None:
    """One more field of an instruction is a change of one file."""
    found = [
        f"{path.relative_to(REPOSITORY)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path != OWNER
        for line in found_in(path.read_text(), path)
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "plan = head >> 32",
        "word = storage.id << 32 | layout.id",
        "site = head & _LOW",
        "site = 0xFFFFFFFF & head",
        "first = record.row_words[0]",
        "lines = f'{name}.id << 32'",
    ],
)
def test_it_finds_what_is_done_by_hand(source: str) -> None:
    """The test above can fail: each way in which rows were once decoded is found."""
    assert found_in(source, PACKAGE / "history" / "races.py") == [1]


@pytest.mark.parametrize("source", ["most = 1 << 32", "low = mask & 7", "half = size >> 1", "rows = tensor.rows[0]"])
def test_it_lets_other_arithmetic_be(source: str) -> None:
    """Shifts and masks that are none of the record's are as they were."""
    assert found_in(source, PACKAGE / "history" / "races.py") == []
