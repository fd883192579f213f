"""Lints sources: files of a project that are made for a test, or the body of one kernel."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path

from nkitools.lint.engine import lint
from nkitools.rules.finding import Finding
from nkitools.suggestions.lint_interface import Dialects

Places = list[tuple[str, int, int]]

MODERN = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x):
"""
LEGACY = MODERN.replace("import nki", "import neuronxcc.nki as nki", 1).replace("import nki.", "import neuronxcc.nki.")
FIRST = 8  # the line of the body's first line


def written(directory: Path, files: dict[str, str]) -> dict[str, Path]:
    """The files of a project, which is marked as one."""
    (directory / "pyproject.toml").touch()
    paths = {}
    for name, text in files.items():
        paths[name] = directory / name
        paths[name].parent.mkdir(parents=True, exist_ok=True)
        paths[name].write_text(textwrap.dedent(text))
    return paths


def findings(path: Path, *others: Path, dialect: str = "auto") -> list[Finding]:
    """What lint finds in files."""
    return lint([path, *others], dialect, Dialects()).findings


def places(found: Iterable[Finding]) -> Places:
    """Rule, line and column of each."""
    return [(each.rule, each.line, each.column or 0) for each in found]


def of_body(directory: Path, body: str, head: str = MODERN) -> list[Finding]:
    """What lint finds in a kernel with that body, which begins at line `FIRST` and column 5."""
    path = directory / "kernel.py"
    path.write_text(head + textwrap.indent(textwrap.dedent(body), "    "))
    return findings(path)


def marked(directory: Path, body: str, head: str = MODERN) -> None:
    """Check that of a body exactly the marked lines are found: ``something  # NK601 9`` (rule and column).

    Columns are those of the body's text, from 1.
    """
    expected = []
    for number, line in enumerate(textwrap.dedent(body).splitlines()):
        code, sign, marks = line.partition("  # NK")
        for mark in f"NK{marks}".split(", ") if sign else ():
            rule, column = mark.split()
            expected.append((rule, FIRST + number, int(column) + 4))
        assert code or not sign
    found = places(of_body(directory, body, head))
    assert found == expected, f"found {found}, expected {expected}"
