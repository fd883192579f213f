"""Findings of lint in functions of open files that an edit does not concern: they are kept from text to text.

What lint finds in a function follows from its own text and from those statements of its file that bind a name which it
mentions, directly or by way of others; from statements that mention a kernel, or a changing variable of the file that
the function mentions; and from the other files that are asked for then. All of these are compared, with their lines.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Hashable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from weakref import ref

from nkitools.facts import options
from nkitools.facts.kept import Kept
from nkitools.lint.module import Module, Unreadable
from nkitools.lint.project import Found, Project
from nkitools.rules.finding import Finding

_WORD = re.compile(r"\w+")
_DECLARED = re.compile(r"\b(?:global|nonlocal)\b([\w\s,\\]*)")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_UNCHANGING = (ast.Attribute, ast.BinOp, ast.Compare, ast.Constant, ast.Tuple, ast.UnaryOp)  # expressions
_NOTHING: frozenset[str] = frozenset()

Asked = dict[tuple[str, str], "ref[Module] | None"]  # by name and by the file that imports it: the file found
_kept = Kept[Hashable, tuple[Asked, tuple[Finding, ...]]](
    "findings in functions of open files", 512, "the functions of a few files; a key has the text that decides"
)


class _Statement(NamedTuple):
    """A statement of a file: its lines, its text, and the names that it binds if it is a definition."""

    line: int
    end: int
    text: str
    binds: frozenset[str]


class OpenProject(Project):
    """A project of files, some as an editor has them, the others from disk; it keeps the findings in functions."""

    def __init__(self, dialect: str, parsed: dict[Path, Module | Unreadable]) -> None:
        super().__init__(dialect)
        self._modules.update(parsed)
        self._asked: Asked = {}
        self._statements: dict[Module, list[_Statement]] = {}

    def find(self, dotted: str, seen_from: Module) -> Module | None:
        """Return the file of a dotted module as the file ``seen_from`` imports it; None outside of the project."""
        found = super().find(dotted, seen_from)
        self._asked[dotted, seen_from.path] = None if found is None else ref(found)
        return found

    def findings_in(self, found: Found, dialect: str, look: Callable[[], list[Finding]]) -> list[Finding]:
        """Return the findings in a function: the kept ones if nothing that decides has changed, else ``look()``."""
        module, node = found.module, found.node
        place = module.path, node.name, node.lineno, node.col_offset
        key = (*place, dialect, module.dialects, options.language(), self._deciding(found))
        asked, findings = _kept.get(key, (None, ()))
        if asked is not None and all(self._finds(*name, each) for name, each in asked.items()):
            return list(findings)
        self._asked = {}
        findings = tuple(look())
        if not any(each is not None and each() is module for each in self._asked.values()):
            _kept[key] = self._asked, findings
        return list(findings)

    def _finds(self, dotted: str, path: str, known: ref[Module] | None) -> bool:
        """Return whether a dotted name still stands for the same file, or still for none."""
        found = self.find_from(dotted, path)
        return found is None if known is None else found is not None and known() is found

    def _deciding(self, found: Found) -> tuple[tuple[int, str], ...]:
        """Return the statements of a function's file, with their lines, that decide what is found in the function."""
        module, node = found.module, found.node
        if module not in self._statements:
            self._statements[module] = _statements_of(module)
        statements = self._statements[module]
        own = {each for each in statements if each.line <= node.lineno <= each.end}
        chosen = added = own | {each for each in statements if not each.binds}
        mentioned = _NOTHING
        while added:
            mentioned = mentioned.union(*(_words(each.text) for each in added))
            added = {each for each in statements if each not in chosen and each.binds & mentioned}
            chosen = chosen | added
        # Statements that may change a variable, and other kernels that may call this one.
        concerned = mentioned & _mutable(module) | ({node.name} if node.decorator_list else _NOTHING)
        return tuple((each.line, each.text) for each in statements if each in chosen or _words(each.text) & concerned)


def _mutable(module: Module) -> frozenset[str]:
    """Return the variables of a file that may hold a value which can change."""
    variables = module.scope.variables.items()
    return frozenset(name for name, values in variables if not all(isinstance(each, _UNCHANGING) for each in values))


def _statements_of(module: Module) -> list[_Statement]:
    lines = module.text.splitlines(keepends=True)
    found = []
    for node in module.scope.node.body:
        begins = [node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]
        first, last = min(begins), node.end_lineno or node.lineno
        text = "".join(lines[first - 1 : last])
        declared = (name for each in _DECLARED.findall(text) for name in _WORD.findall(each))
        binds = frozenset({node.name, *declared}) if isinstance(node, _DEFINITIONS) else _NOTHING
        found.append(_Statement(first, last, text, binds))
    return found


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text))
