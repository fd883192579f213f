"""The files that an editor has open, and the findings of lint in them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from nkitools.lint.engine import lint
from nkitools.lint.module import Module, Unreadable, module_of
from nkitools.lint.project import package_of
from nkitools.lint.settings import Settings, settings_for
from nkitools.rules.finding import Finding
from nkitools.serve.edited_tree import edited_tree
from nkitools.serve.kept_findings import OpenProject
from nkitools.suggestions.catalogue import suggestions
from nkitools.suggestions.lint_interface import Dialects
from nkitools.suggestions.site import Suggestion


@dataclass(eq=False)
class OpenFile:
    """A file in an editor: its text, and the findings in it."""

    path: Path
    text: str
    parsed: Module | Unreadable
    settings: Settings
    findings: list[Finding] = field(default_factory=list)

    @property
    def module(self) -> Module | None:
        """The parsed text; None if it is no Python at the moment."""
        return self.parsed if isinstance(self.parsed, Module) else None

    def suggestions(self, finding: Finding) -> list[Suggestion]:
        """Return the changes that mend a finding in the file's text."""
        return [] if self.module is None else suggestions(finding, self.text, self.module)

    def node_at(self, line: int, column: int) -> ast.expr | None:
        """Return the outermost expression that begins at a line and column, from 1, in characters."""
        module = self.module
        if module is None:
            return None
        for scope in module.scope.all():
            for node in scope.nodes:
                if isinstance(node, ast.expr) and node.lineno == line and module.column(node) == column:
                    return node
        return None


class OpenFiles:
    """The files that are open."""

    def __init__(self) -> None:
        self._files: dict[Path, OpenFile] = {}

    def get(self, path: Path) -> OpenFile | None:
        """Return the file at a path; None if it is not open."""
        return self._files.get(path.resolve())

    def put(self, path: Path, text: str) -> OpenFile:
        """Set the text of a file, lint it, and return the file. ValueError for settings that cannot be read."""
        key = path.resolve()
        settings = settings_for(key)
        said = settings.dialect
        dialect = "" if said == "auto" else said
        earlier = self._files.get(key)
        parsed = _parsed(text, key, dialect, None if earlier is None else earlier.module)
        found = OpenFile(key, text, parsed, settings)
        self._files[key] = found
        project = OpenProject(dialect, {each: file.parsed for each, file in self._files.items()})
        report = lint([key], said, Dialects(), project)
        found.findings = [each for each in report.findings if each.file == str(key) and settings.wants(each)]
        return found

    def close(self, path: Path) -> None:
        """Forget a file."""
        self._files.pop(path.resolve(), None)


def _parsed(text: str, path: Path, dialect: str, earlier: Module | None) -> Module | Unreadable:
    """Return the file of a text, which has the definitions of an earlier text that no edit has touched."""
    before = None if earlier is None else earlier.scope
    try:
        return module_of(text, str(path), package_of(path), dialect, partial(edited_tree, earlier), before)
    except Unreadable as error:
        return error
