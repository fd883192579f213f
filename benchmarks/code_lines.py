"""Count the package's code, room by room: lines and statements without docstrings, comments and blank lines.

``python -m benchmarks.code_lines [FOLDER] [--against FOLDER]``. FOLDER is a checkout, this one if it is not given. The
examples of rules are left out. A line counts if a token of code stands on it; a statement of Python counts once, a
docstring never.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parents[1]
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


class Size(NamedTuple):
    """How much code there is."""

    lines: int = 0
    statements: int = 0
    characters: int = 0  # of those lines, without the space around them

    def __add__(self, other: object) -> Size:
        """Return the sum with another size."""
        assert isinstance(other, Size)
        return Size(*(one + more for one, more in zip(self, other, strict=True)))


def docstrings(tree: ast.AST) -> set[int]:
    """Return the ids of the statements that are docstrings."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                found.add(id(first))
    return found


def size_of(text: str) -> Size:
    """Return the size of a file's text."""
    tree = ast.parse(text)
    left_out = docstrings(tree)
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    silent = {
        line
        for node in statements
        if id(node) in left_out
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    rows = text.splitlines()
    code = lines - silent
    characters = sum(len(rows[line - 1].strip()) for line in code)
    return Size(len(code), len(statements) - len(left_out), characters)


def rooms_of(checkout: Path) -> dict[str, Size]:
    """Return the size of each room of a checkout's package."""
    package = checkout / "nkitools"
    found: dict[str, Size] = defaultdict(Size)
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        if parts[:2] != ("rules", "examples"):
            found[parts[0]] = found[parts[0]] + size_of(path.read_text(encoding="utf-8"))
    return found


def table(rooms: dict[str, Size], before: dict[str, Size] | None) -> list[str]:
    """Return the lines of the table, with the sum last."""
    rows = []
    for name in sorted(set(rooms) | set(before or {})):
        rows.append((name, rooms.get(name, Size()), (before or {}).get(name, Size())))
    total = sum((each[1] for each in rows), Size()), sum((each[2] for each in rows), Size())
    rows.append(("sum", *total))
    head = f"{'room':18}{'lines':>8}{'statements':>12}{'mean line':>11}" + (
        "" if before is None else f"{'before':>9}{'change':>8}"
    )
    found = [head]
    for name, now, then in rows:
        mean = now.characters / now.lines if now.lines else 0.0
        earlier = "" if before is None else f"{then.lines:9,}{now.lines - then.lines:+8,}"
        found.append(f"{name:18}{now.lines:8,}{now.statements:12,}{mean:11.1f}{earlier}")
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=HERE)
    parser.add_argument("--against", type=Path)
    given = parser.parse_args()
    print("\n".join(table(rooms_of(given.folder), rooms_of(given.against) if given.against else None)))


if __name__ == "__main__":
    main()
