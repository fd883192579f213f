"""The single edits of a kernel and of the functions and constants that it reaches, each ready to be run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from difflib import unified_diff
from types import FunctionType
from typing import Any

from nkitools.authors_code.called_functions import named_functions, plain_function
from nkitools.authors_code.source_text import lines_of, text_of
from nkitools.edits.candidates import MODULES, edits_at
from nkitools.edits.in_place import forget_traces, in_place
from nkitools.edits.remedies import UNKNOWN
from nkitools.edits.source import Edit, Source
from nkitools.facts.kept import Kept

assert MODULES  # their import fills the tables of kinds

_OF_NKI = re.compile(r"\bn(?:l|isa)\.")
_sources = Kept[str, Source]("the texts of kernels that are repaired", 64, "a test session's kernels that fail")


@dataclass(frozen=True, eq=False)
class Part:
    """A function of the author's that a kernel runs, with its source and its lines."""

    function: FunctionType
    source: Source
    first: int
    last: int

    @property
    def file(self) -> str:
        """Return the name of the function's file."""
        return self.function.__code__.co_filename


@dataclass(frozen=True, eq=False)
class Trial:
    """One edit of a function of a kernel, or of ``constant``, a constant of the function's module."""

    part: Part
    kind: str
    edit: Edit
    constant: str = ""

    def of(self, text: str) -> Trial:
        """Return the edit with another text in the same place."""
        return replace(self, edit=self.edit._replace(text=text))

    @property
    def line(self) -> int:
        """Return the line that the edit is about."""
        return self.edit.about or self.edit.line

    @property
    def text(self) -> str:
        """Return the text of the file after the edit."""
        return self.part.source.edited([self.edit])

    @property
    def change(self) -> str:
        """Return the old and the new text, on one line."""
        old = self.part.source.said(self.edit)
        return " ".join(f"{old or '(nothing)'} -> {self.edit.text or '(nothing)'}".split())

    def patch(self, path: str) -> str:
        """Return the edit as a patch of a file."""
        old, new = (each.splitlines(keepends=True) for each in (self.part.source.text, self.text))
        return "".join(unified_diff(old, new, path, path, n=0))

    def lines(self) -> list[str]:
        """Return the removed and the added lines, with their signs."""
        return [each for each in self.patch("").splitlines()[2:] if not each.startswith("@@")]

    def running(self) -> AbstractContextManager[None]:
        """Let the edited function run in place of the author's. ValueError or SyntaxError if it cannot."""
        if self.constant:
            return _constant_set(self.part.function, self.constant, self.edit.text)
        return in_place(self.part.function, self.text)


@contextmanager
def _constant_set(function: FunctionType, name: str, text: str) -> Iterator[None]:
    space = function.__globals__
    before = space[name]
    space[name] = ast.literal_eval(text)
    forget_traces(function)
    try:
        yield
    finally:
        space[name] = before
        forget_traces(function)


def parts_of(kernel: Any) -> list[Part]:
    """Return the author's functions that a kernel may run and whose text is at hand, the kernel first."""
    function = plain_function(kernel)
    found = []
    for each in () if function is None else named_functions(function):
        text = text_of(each.__code__)
        if text:
            found.append(Part(each, _source_of(each.__code__.co_filename, text), *lines_of(each.__code__)))
    return found


def _source_of(file: str, text: str) -> Source:
    key = f"{file}\n{text}"
    if key not in _sources:
        _sources[key] = Source(text, file.rpartition("/")[2].removesuffix(".py"))
    return _sources[key]


def trials_of(parts: list[Part]) -> Iterator[Trial]:
    """Yield the single edits of some parts, each once."""
    by_file: dict[int, list[Part]] = {}
    for part in parts:
        by_file.setdefault(id(part.source), []).append(part)
    for mine in by_file.values():
        source = mine[0].source
        lines = {line for part in mine for line in range(part.first, part.last + 1)}
        constants = _constants(source, mine)
        is_nki = "nki" in source.text
        for kind, edit in edits_at(source, lines | constants.keys()):
            line = edit.line
            if not is_nki and _OF_NKI.search(edit.text):
                continue
            around = [each for each in mine if each.first <= line <= each.last]
            if around:
                yield Trial(max(around, key=lambda each: each.first), kind, edit)
            elif line in constants and (edit.text == UNKNOWN or _is_literal(edit.text)):
                yield Trial(mine[0], kind, edit, constants[line])


def _constants(source: Source, parts: list[Part]) -> dict[int, str]:
    """Return the constants of a module that some of its functions name, by their lines."""
    named = {name for part in parts for name in part.function.__code__.co_names}
    return {
        node.lineno: target.id
        for node in source.constants
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in named and isinstance(node.value, ast.Constant)
    }


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return False
    return True
