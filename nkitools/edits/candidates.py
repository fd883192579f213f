"""The single edits of a source: every kind at every place where it applies."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from nkitools.edits import control, forms, grid_remedies, instructions, places, remedies, statement_remedies, statements
from nkitools.edits.kinds import KINDS, Kind
from nkitools.edits.source import Edit, Source

__all__ = ["KINDS", "MODULES", "Candidate", "candidates_in", "candidates_of", "edits_at"]

# They fill the tables when they are imported.
MODULES = (statements, places, instructions, control, remedies, forms, statement_remedies, grid_remedies)


@dataclass(frozen=True)
class Candidate:
    """One edit of the source of ``kernel``, and what comes of it."""

    kernel: str
    kind: str
    function: str  # empty for a constant of the module
    line: int
    code: str  # the line as it was
    old: str  # the piece that the edit replaces
    edit: Edit
    text: str  # the whole module after the edit

    @property
    def change(self) -> str:
        """Old and new text, on one line."""
        return " ".join(f"{self.old or '(nothing)'} -> {self.edit.text or '(nothing)'}".split())

    def patch(self, path: str, before: str) -> str:
        """Return the edit as a patch of a file, without the lines around; ``before``: the text without the edit."""
        old, new = (each.splitlines(keepends=True) for each in (before, self.text))
        return "".join(unified_diff(old, new, path, path, n=0))


def candidates_in(source: Source, kernel: str, kinds: Sequence[str]) -> list[Candidate]:
    """Return the edits of a kernel and of the functions and constants of its file that it reaches.

    ValueError for a kernel that the file has not, and for a kind that there is not.
    """
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise ValueError(f"there is no kind {', '.join(unknown)}; choose of {', '.join(KINDS)}")
    reached = _reached(source, kernel)
    lines = {line for node in reached for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    return [each for each in candidates_of(source, kinds) if each.line in lines]


def candidates_of(source: Source, kinds: Sequence[str] = (), table: Mapping[str, Kind] = KINDS) -> Iterator[Candidate]:
    """Yield the edits, in the order of the kinds and of the text; what two kinds do alike counts for the first."""
    seen = {source.text}
    for name, kind in table.items():
        for edit in kind.all(source):
            text = source.edited([edit])
            if text in seen or not _parses(source, edit, text):
                continue
            seen.add(text)
            if not kinds or name in kinds:
                yield _candidate(source, name, edit, text)


def edits_at(source: Source, lines: Collection[int]) -> Iterator[tuple[str, Edit]]:
    """Yield the edits of some lines that may mend a kernel, with their kinds; what is written alike counts once."""
    seen: set[tuple[int, int, str]] = set()
    for name, kind in (remedies.REMEDIES | KINDS).items():
        for edit in kind.all(source):
            if edit.line not in lines:
                continue
            key = *source.bounds(edit), edit.text.replace(" ", "").strip("()")
            if key not in seen and edit.text != source.said(edit):
                seen.add(key)
                yield name, edit


def _candidate(source: Source, kind: str, edit: Edit, text: str) -> Candidate:
    line = edit.about or edit.line
    code = source.lines[line - 1].strip()
    return Candidate(source.kernel, kind, source.function_at(line), line, code, source.said(edit), edit, text)


def _parses(source: Source, edit: Edit, text: str) -> bool:
    """Return whether the function that an edit is in, or the constant, is still Python after the edit."""
    at, end = source.bounds(edit)
    start, stop = max(each for each in map(source.span, source.tree.body) if each[0] <= at)
    rest = len(source.text.encode()) - max(stop, end)
    after = text.encode()
    try:
        ast.parse(after[start : len(after) - rest])
    except SyntaxError:
        return False
    return True


def _reached(source: Source, kernel: str) -> list[ast.stmt]:
    """Return the functions and constants of a file that a kernel names, itself among them."""
    known: dict[str, ast.stmt] = {each.name: each for each in reversed(source.functions)}  # methods do not hide others
    for constant in source.constants:
        known |= {target.id: constant for target in constant.targets if isinstance(target, ast.Name)}
    if kernel not in known:
        raise ValueError(f"{source.kernel}.py has no kernel {kernel} at its top")
    found, waiting = {kernel}, [kernel]
    while waiting:
        for node in ast.walk(known[waiting.pop()]):
            if isinstance(node, ast.Name) and node.id in known and node.id not in found:
                found.add(node.id)
                waiting.append(node.id)
    return [known[name] for name in found]
