"""Lint: files in, findings out."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from nkitools.facts import versions
from nkitools.facts.light_classes import dataclass
from nkitools.lint.body import look_at
from nkitools.lint.checks import UNSEEN_BY_RUNS, all_checks, gathered
from nkitools.lint.context import Checks, Context, Interface
from nkitools.lint.module import Module, Unreadable
from nkitools.lint.project import Found, Project
from nkitools.lint.scope import LEGACY, Function, Scope, own_nodes
from nkitools.rules.finding import Finding

if TYPE_CHECKING:
    from pathlib import Path

UNSEEN = gathered(UNSEEN_BY_RUNS)
_IMPORTED = ("nki.collectives.", "nki.compiler.")  # kernels import their names one by one
_UNMODELLED = "non_ssa_legalization"  # of CompileConfig: what a simulation cannot show
DIALECTS = ("auto", "modern", "legacy")


@dataclass(frozen=True)
class Report:
    """The findings of a lint run in the order of files and lines, and the number of files."""

    findings: list[Finding]
    files: int


def lint(
    paths: Sequence[Path], dialect: str = "auto", interface: Interface | None = None, project: Project | None = None
) -> Report:
    """Return the findings in files and in the functions that their kernels call.

    ``dialect`` decides where a file's imports do not; ``project`` reads the files.
    """
    from nkitools.lint.kernel_call_graph import kernel_code  # for files; a run knows its functions

    project = project or Project("" if dialect == "auto" else dialect)
    findings: list[Finding] = []
    modules = []
    for path in paths:
        try:
            modules.append(project.module(path))
        except Unreadable as error:
            findings.append(_unreadable(path, error))
        except OSError as error:
            findings.append(_unreadable(path, Unreadable(error.strerror or type(error).__name__)))
    code = kernel_code(project, modules)
    for module in modules:
        findings += _declared(module, project, dialect, interface)
    for found, written_in in code:
        look = partial(look_at_function, found, written_in, project, all_checks(), interface)
        findings += project.findings_in(found, written_in, look)
    every = {module.path: module for module in (*modules, *(each.module for each, _ in code))}
    return Report(_judged(findings, every.values()), len(paths))


def _judged(findings: list[Finding], modules: Iterable[Module]) -> list[Finding]:
    """Return the findings once each and sorted, without ignored ones, with the findings about the ignore comments."""
    from nkitools.lint.ignores import Ignore, ignores_of, without_ignored, wrong_ignores

    kept: list[Finding] = []
    ignores: dict[str, list[Ignore]] = {module.path: ignores_of(module.text) for module in modules}
    by_place = {(each.file, each.line, each.column or 0, each.rule): each for each in findings}
    for finding in by_place.values():
        kept += without_ignored([finding], ignores.get(finding.file, []))
    for path, comments in ignores.items():
        kept += wrong_ignores(comments, path)
    return sorted(kept, key=lambda each: (each.file, each.line, each.column or 0, each.rule))


def look_at_function(
    found: Found,
    dialect: str,
    project: Project,
    checks: Checks,
    interface: Interface | None = None,
    *,
    kernel: bool = False,
    language: versions.LanguageVersion | None = None,
) -> list[Finding]:
    """Return the findings in one function and in those defined inside.

    ``kernel``: treat an undecorated function as a kernel.
    """
    assert not isinstance(found.node, ast.ClassDef)
    kernel = kernel or found.module.is_kernel(found.node, found.scope)
    context = Context(found.module, found.inner, project, checks, dialect, kernel, interface)
    context.language = language or context.language
    notice = context.language.front_end_notice if context.modern and kernel else None
    if notice is not None:
        context.find("NK618", found.node, notice.message, notice.remedy, notice.severity)
    look_at(found.node, context)
    if context.legacy:
        _look_at_legacy(found.inner, context)
    return context.findings


def _look_at_legacy(inner: Scope, context: Context) -> None:
    """Report what the legacy dialect alone forbids: NK208, NK601, NK605."""
    from nkitools.lint.legacy_scopes import Scopes  # which a run of a modern kernel does not need

    for scope in inner.all():
        if isinstance(scope.node, Function):
            for each in Scopes(scope).function():
                context.find_at(each.rule, each.line, each.column, each.message, each.remedy, code=each.code)


def _declared(module: Module, project: Project, dialect: str, interface: Interface | None) -> list[Finding]:
    """Return the findings of a file outside of kernels: imports that NKI does not have, and how kernels are made.

    An import inside ``try`` may fail.
    """
    context = Context(module, module.scope, project, {}, interface=interface)
    for scope in module.scope.all():
        for call in scope.calls:
            _made(context, call, scope)
        for imported in scope.sure_imports:
            _imported(context, imported, dialect)
        for each in scope.definitions.values():
            for node in own_nodes(each.decorator_list):
                if isinstance(node, ast.Call):
                    _made(context, node, scope)
    return context.findings


def _made(context: Context, node: ast.Call, scope: Scope) -> None:
    """Check a call of nki.jit and its kin, and of CompileConfig: NK608, NK609, NK621."""
    name = scope.qualified(node.func)
    if context.interface is not None and context.module.makes_kernel(node.func, scope):
        wrong = context.interface.wrong_call(name, node)
        if wrong is not None:
            context.find(wrong[0], node, *wrong[1:])
    if name == "nki.compiler.CompileConfig":
        for key in node.keywords:
            if key.arg == _UNMODELLED and isinstance(key.value, ast.Constant) and key.value.value is True:
                message = f"{_UNMODELLED}=True is not modelled; the chip may compute something else"
                context.find("NK621", key, message, "Compare the results with those of the chip.")


def _imported(context: Context, node: ast.AST, dialect: str) -> None:
    """Report imported names that are gone (NK608), and legacy imports in a file of the modern dialect."""
    for name in _imported_names(node):
        missing = None if context.interface is None else context.interface.missing(name)
        if missing is not None and (missing[0] == "NK608" or name.startswith(_IMPORTED)):
            context.find(missing[0], node, *missing[1:], name=name)
        elif dialect == "modern" and name.startswith(f"{LEGACY}.nki"):
            row = versions.by_full_name()[LEGACY + ".nki"]
            message = f"{name}: using neuronxcc.nki in kernels is a compile error since NKI {row.until}"
            context.find("NK608", node, message, row.instead, name=name)


def _imported_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module if each.name == "*" else f"{node.module}.{each.name}" for each in node.names]
    return []


def _unreadable(path: Path, error: Unreadable) -> Finding:
    """NK601: every kernel is valid Python."""
    message, remedy = f"the file cannot be read: {error}", "Mend what the message says, or leave the file out."
    return Finding.of("NK601", message, (str(path), error.line, ""), remedy=remedy, column=error.column)
