"""The lines that a newer NKI changes: those of the modern dialect, and in legacy files what the modern one changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nkitools.edits.source import Text
from nkitools.facts import options, versions
from nkitools.lint.changed_results import changed_results
from nkitools.lint.context import Interface
from nkitools.lint.engine import lint
from nkitools.lint.module import Module, Unreadable, parse
from nkitools.lint.project import Project
from nkitools.lint.rewriting import line_to_write
from nkitools.lint.scope import LEGACY
from nkitools.rules.finding import Finding

_ALWAYS = frozenset({"NK618", "NK622"})


class _AsModern(Project):
    """Reads a legacy file as if it imported the modern dialect, line by line the same."""

    def module(self, path: Path) -> Module:
        found = super().module(path)
        if "legacy" not in found.dialects:
            return found
        return parse(found.text.replace(f"{LEGACY}.nki", "nki"), found.path, dialect="modern")


def migration(paths: Sequence[Path], interface: Interface) -> list[Finding]:
    """Return a finding at each line that the newest version changes; its remedy is the line to write where it follows.

    A finding of every version stays out: it is no matter of the migration. NK622 is about loops that stay as they are.
    """
    *_, older, newest = versions.versions_of()
    legacy = {each.file for each in _imports(paths, interface)}
    before = {_place(each) for each in _under(older, paths, interface) if each.file not in legacy}
    found = [*_imports(paths, interface), *_under(newest, paths, interface)]
    kept = [each for each in found if each.rule in _ALWAYS or _place(each) not in before]
    texts = {file: Path(file).read_text(encoding="utf-8") for file in {each.file for each in kept}}
    written = [replace(each, remedy=_written(each, texts[each.file]) or each.remedy) for each in kept]
    written += [each for path in paths for each in _other_results(path)]
    return sorted(written, key=lambda each: (each.file, each.line, each.column or 0, each.rule))


def _other_results(path: Path) -> list[Finding]:
    """Return a hint at each line of a modern file that the newest version takes, with another result."""
    try:
        module = Project().module(path)
    except Unreadable:  # a finding of its own
        return []
    if "modern" not in module.dialects:
        return []
    return [
        Finding.of(
            "NK618",
            each.message,
            (module.path, each.node.lineno, ""),
            remedy=each.remedy,
            severity="hint",
            column=module.column(each.node),
        )
        for each in changed_results(module)
    ]


def _under(version: str, paths: Sequence[Path], interface: Interface) -> list[Finding]:
    with options.override(nki_version=version):
        return lint(paths, "auto", interface, _AsModern()).findings


def _imports(paths: Sequence[Path], interface: Interface) -> list[Finding]:
    """Return the imports of the legacy dialect."""
    found = lint(paths, "modern", interface).findings
    return [each for each in found if each.rule == "NK608" and _is_legacy_import(each)]


def _is_legacy_import(found: Finding) -> bool:
    return str(found.facts.get("name", "")).startswith(f"{LEGACY}.nki")


def _place(found: Finding) -> tuple[str, str, int, int]:
    return found.rule, found.file, found.line, found.column or 0


def _written(found: Finding, text: str) -> str:
    """Return the line to write as a sentence, '' where it does not follow from the old one."""
    if _is_legacy_import(found):
        line = Text(text).lines[found.line - 1].replace(f"{LEGACY}.nki", "nki").strip()
    else:
        line = line_to_write(text, found.file, found.line)
    return f"Write `{line}`." if line else ""
