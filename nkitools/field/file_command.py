"""The command that runs a file as it is, from the text of the file: nothing of it is run."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path

import click

from nkitools.dialects.import_hint import imports_nki
from nkitools.facts.options import FIXTURES
from nkitools.lint.module import Module, Unreadable
from nkitools.lint.project import Project
from nkitools.lint.scope import Definition
from nkitools.rules.top_level import bound_names

_INPUTS = frozenset({"inputs", "arguments"})


def command_for(file: Path, *, is_test: bool = True) -> str:
    """Return the command, with a remark behind it where one is needed. Errors: UsageError for what is no Python.

    ``is_test``: whether functions named as tests are tests.
    """
    name, project = shlex.quote(str(file)), Project()
    try:
        module = project.module(file.absolute())
    except (Unreadable, OSError) as error:
        raise click.UsageError(f"{file} cannot be read as Python: {error}") from None
    text, tree = module.text, module.scope.node
    is_nki = _reaches_nki(project, module, set())
    functions = [each.name for each in tree.body if isinstance(each, ast.FunctionDef) and each.name not in _INPUTS]
    if is_test and _has_tests(tree):
        roots = {each.partition(".")[0] for each in module.imported}
        knows_us = "nkitools" in roots or not _parameters(tree).isdisjoint(FIXTURES)
        return f"pytest {name}" if knows_us or not is_nki else f"pytest -o nki_stand_in=always {name}"
    if any(_runs(each, {*functions}) for each in tree.body):
        return f"nkitools run {name}" if is_nki else f"python {name}"
    says_inputs = bool(_INPUTS & {*(bound_names(text) or ())})
    kernel = _kernel_of(tree) or (_imported_kernel(project, module) if says_inputs else "")
    if not (kernel or functions) or not (is_nki or _names_kernels(text)):
        return f"python {name}"
    kernel = f"{name}::{kernel or functions[0]}"
    needs = "" if says_inputs else "   # once the file has `inputs = (array, ...)`"
    return f"nkitools estimate {kernel}{needs}"


def _has_tests(tree: ast.Module | Definition) -> bool:
    """Return whether pytest finds tests in a file: functions or classes with their names, or `unittest`'s."""
    classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
    return (
        any(isinstance(each, ast.FunctionDef) and each.name.startswith("test_") for each in tree.body)
        or any(each.name.startswith("Test") for each in classes)
        or any("TestCase" in ast.unparse(base) for each in classes for base in each.bases)
    )


def has_kernels(file: Path) -> bool:
    """Return whether a file itself imports what kernels are written in."""
    return _names_kernels(file.read_text(encoding="utf-8", errors="replace"))


def _names_kernels(text: str) -> bool:
    return imports_nki(text) or "jax.experimental" in text


def modules_in(file: Path) -> set[str]:
    """Return the names in a file's import statements; none where it is no Python."""
    try:
        tree = ast.parse(file.read_bytes(), str(file)) if file.suffix == ".py" else ast.Module([], [])
    except (SyntaxError, ValueError, OSError):
        return set()
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    names = [each.name for node in imports for each in node.names]
    names += [node.module or "" for node in imports if isinstance(node, ast.ImportFrom)]
    return {part for name in names for part in name.split(".")}


def _parameters(tree: ast.AST) -> set[str]:
    return {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def _runs(statement: ast.stmt, functions: set[str]) -> bool:
    """Return whether a statement of the top level does more than define, import or set a constant."""
    if isinstance(statement, (ast.For, ast.While, ast.With)):
        return True
    if isinstance(statement, ast.If):
        return "__name__" in ast.dump(statement.test) or any(_runs(each, functions) for each in statement.body)
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call)
    if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        called = (node.func for node in ast.walk(statement.value) if isinstance(node, ast.Call))
        return any(isinstance(each, ast.Name) and each.id in functions for each in called)
    return False


def _kernel_of(tree: ast.Module | Definition) -> str:
    """Return the first function with a decorator that makes a kernel; '' for none."""
    return next((each.name for each in tree.body if isinstance(each, ast.FunctionDef) and _is_kernel(each)), "")


def _reaches_nki(project: Project, module: Module, seen: set[str]) -> bool:
    """Return whether a file imports NKI, or an own module that does."""
    seen.add(module.path)
    if imports_nki(module.text):
        return True
    for target in module.imported:
        own = project.find(target, module) or project.find(target.rpartition(".")[0], module)
        if own is not None and own.path not in seen and _reaches_nki(project, own, seen):
            return True
    return False


def _imported_kernel(project: Project, module: Module) -> str:
    """Return the first kernel that a file imports from own modules, also through a package; '' for none."""
    for name, targets in module.scope.imports.items():
        for found in (project.definition(each, module) for each in targets):
            if found is not None and isinstance(found.node, ast.FunctionDef) and _is_kernel(found.node):
                return name
    return ""


def _is_kernel(function: ast.FunctionDef) -> bool:
    return any("jit" in ast.unparse(each) for each in function.decorator_list)
