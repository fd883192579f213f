"""The lines that a newer NKI changes: those of the modern dialect, and in legacy files what the modern one changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nkitools.edits.source import FUNCTIONS, Text
from nkitools.facts import options, versions
from nkitools.lint.changed_results import changed_results
from nkitools.lint.context import Interface
from nkitools.lint.engine import lint
from nkitools.lint.modern_lines import Writer, Written
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
        return parse(_as_modern(found.text), found.path, dialect="modern")


_FROM = re.compile(rf"from {LEGACY} import nki(?: as (\w+))?(?=\s*(?:#|$))", re.MULTILINE)


def _as_modern(text: str) -> str:
    """Return a text with the imports of the modern dialect, line by line."""
    return _FROM.sub(lambda found: f"import nki{f' as {found[1]}' if found[1] else ''}", text).replace(
        f"{LEGACY}.nki", "nki"
    )


def migration(paths: Sequence[Path], interface: Interface) -> list[Finding]:
    """Return a finding at each line that the newest version changes; its remedy is the line to write, if that follows.

    Findings that older versions have too are left out. NK622 stays: it is about loops that need no new line.
    """
    *_, older, newest = versions.versions_of()
    legacy = {each.file for each in _imports(paths, interface)}
    before = {_place(each) for each in _under(older, paths, interface) if each.file not in legacy}
    found = [*_imports(paths, interface), *_under(newest, paths, interface)]
    lines = {(each.file, each.line) for each in found}
    found += [each for path in paths for each in _harness(path) if (each.file, each.line) not in lines]
    kept = [each for each in found if each.rule in _ALWAYS or _place(each) not in before]
    texts = {file: Path(file).read_text(encoding="utf-8") for file in {each.file for each in kept}}
    modern = {file: _modern_lines(Path(file), kept, interface) for file in legacy & texts.keys()}
    written = [replace(each, remedy=_written(each, texts[each.file], modern) or each.remedy) for each in kept]
    for file in (file for file, lines in modern.items() if _lacks_isa(texts[file], lines)):
        at = next((at for at, each in enumerate(written) if each.file == file and _is_legacy_import(each)), None)
        if at is not None and written[at].remedy.startswith("Write `"):
            written[at] = replace(written[at], remedy=f"{written[at].remedy[:-1]}, then `import nki.isa as nisa`.")
    named = {(each.file, each.line) for each in kept}
    written += [
        _of_indices(file, each) for file, lines in modern.items() for each in lines
        if not any((file, line) in named for line in range(each.first, each.last + 1))
    ]  # fmt: skip
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


def _harness(path: Path) -> list[Finding]:
    """Return a finding at each line that measures or simulates by a function that is gone, such as nki.benchmark."""
    try:
        module = _AsModern().module(path)
    except Unreadable:  # a finding of its own
        return []
    functions = (each for each in ast.walk(module.scope.node) if isinstance(each, FUNCTIONS))
    decorators = (part for each in functions for decorator in each.decorator_list for part in ast.walk(decorator))
    nodes = [(module.scope, each) for each in decorators]
    nodes += [(scope, node) for scope in module.scope.all() for node in scope.nodes]
    names = [(scope, node) for scope, node in nodes if isinstance(node, ast.Attribute | ast.Name)]
    rows = [(versions.by_full_name().get(scope.qualified(node)), node) for scope, node in names]
    return [
        Finding.of(
            "NK608",
            f"nki.{row.name} was removed from NKI",
            (module.path, node.lineno, ""),
            remedy=row.instead,
            column=module.column(node),
        )
        for row, node in rows
        if row is not None and row.module == "nki" and row.until and isinstance(node.ctx, ast.Load)
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


def _modern_lines(path: Path, found: Sequence[Finding], interface: Interface) -> list[Written]:
    """Return what to write for the statements of a legacy file."""
    newest = [*versions.versions_of()][-1]
    with options.override(nki_version=newest):
        own = [each for each in found if each.file == str(path)]
        return list(Writer(_AsModern().module(path), own, lambda name: _parameters(interface.form(name))).statements())


def _lacks_isa(text: str, lines: list[Written]) -> bool:
    """Return whether the new lines of a file call instructions, and the file imports none."""
    uses = any("nisa." in said for each in lines for said in (*each.before, each.text))
    return uses and not re.search(r"nki\.isa|nki import .*\bisa\b|\bnisa\b", text)


def _parameters(form: str) -> tuple[str, ...]:
    """Return the parameters of a call form: ``The call form is nisa.memset(dst, value).``"""
    inside = re.sub(r"=(?=, |$)", "=0", form.partition("(")[2].rpartition(")")[0])  # an empty text is written so
    arguments = ast.parse(f"def f({inside}): 0").body[0].args  # type: ignore[attr-defined]
    return tuple(each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def _of_indices(file: str, written: Written) -> Finding:
    """Return the finding at a line that is fine by itself, but not with the slices and tiles of the lines before."""
    message = "NKI has slices in the place of index tensors and masks, and instructions write into a destination"
    return Finding.of("NK608", message, (file, written.first, ""), remedy=written.sentence())


def _written(found: Finding, text: str, modern: Mapping[str, list[Written]]) -> str:
    """Return the line to write as a sentence; '' if it does not follow from the old line."""
    old = Text(text).lines[found.line - 1].strip()
    if _is_legacy_import(found) or re.match(rf"(from|import) {LEGACY}\b", old):
        return _import_to_write(old)
    here = [each for each in modern.get(found.file, ()) if each.first <= found.line <= each.last]
    if here:
        measures = f" {found.remedy}" if "kernel_benchmark" in found.remedy and not here[-1].supposes else ""
        return here[-1].sentence() + measures
    line = line_to_write(text, found.file, found.line)
    return f"Write `{line}`." if line else ""


def _import_to_write(line: str) -> str:
    """Return as a sentence the line to write for an import of the legacy dialect, without names that are gone."""
    new = re.sub(r"^import nki as nki\b", "import nki", _as_modern(line))
    try:
        (node,) = ast.parse(new).body
    except (SyntaxError, ValueError):  # one line of several
        return f"Write `{new}`." if new != line else ""
    if not isinstance(node, ast.ImportFrom):
        return f"Write `{new}`." if new != line else ""
    rows = {each.name: versions.by_full_name().get(f"{node.module}.{each.name}") for each in node.names}
    gone = {name: row.instead for name, row in rows.items() if row is not None and row.until}
    kept = [ast.unparse(each) for each in node.names if each.name not in gone]
    if not gone:
        return f"Write `{new}`."
    start = f"Write `from {node.module} import {', '.join(kept)}`" if kept else "Leave the line out"
    return f"{start}: {', '.join(gone)} {'is' if len(gone) == 1 else 'are'} gone. {next(iter(gone.values()))}"
