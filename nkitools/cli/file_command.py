"""The command that runs a file as it is, from the text of the file: nothing of it is run."""

from __future__ import annotations

import ast
import shlex
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from nkitools.authors_code.source_text import nodes_of
from nkitools.dialects.import_hint import imports_nki
from nkitools.facts.options import FIXTURES
from nkitools.module_files import file_of_import, text_of
from nkitools.rules.top_level import bound_names

_INPUTS = frozenset({"inputs", "arguments"})


def command_for(file: Path) -> str:
    """Return the command, with a remark behind it where one is needed. Errors: UsageError for what is no Python."""
    try:
        with tokenize.open(file) as source:
            text = source.read()
        tree = ast.parse(text, str(file))
    except (SyntaxError, ValueError, OSError) as error:
        raise click.UsageError(f"{file} cannot be read as Python: {error}") from None
    name, modules = shlex.quote(str(file)), frozenset(_modules(tree))
    is_nki = _reaches_nki(file.absolute(), set())
    functions = [each.name for each in tree.body if isinstance(each, ast.FunctionDef) and each.name not in _INPUTS]
    if any(each.startswith("test_") for each in functions) or "TestCase" in text:
        knows_us = _has(modules, "nkitools") or not _parameters(tree).isdisjoint(FIXTURES)
        return f"pytest {name}" if knows_us or not is_nki else f"pytest -o nki_stand_in=always {name}"
    if any(_runs(each, {*functions}) for each in tree.body):
        return f"nkitools run {name}" if is_nki else f"python {name}"
    says_inputs = bool(_INPUTS & {*(bound_names(text) or ())})
    kernel = _kernel_of(tree) or (_imported_kernel(tree, file.absolute()) if says_inputs else "")
    if not (kernel or functions) or not (is_nki or _has(modules, "jax.experimental.pallas")):
        return f"python {name}"
    kernel = f"{name}::{kernel or functions[0]}"
    needs = "" if says_inputs else "   # once the file has `inputs = (array, ...)`"
    return f"nkitools estimate {kernel}{needs}"


def _modules(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (node.module, *(f"{node.module}.{each.name}" for each in node.names))


def _has(modules: frozenset[str], root: str) -> bool:
    return any(f"{module}.".startswith(f"{root}.") for module in modules)


def _parameters(tree: ast.Module) -> set[str]:
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


def _kernel_of(tree: ast.Module) -> str:
    """Return the first function with a decorator that makes a kernel; '' for none."""
    for each in tree.body:
        if isinstance(each, ast.FunctionDef) and _is_kernel(each):
            return each.name
    return ""


def _reaches_nki(file: Path, seen: set[Path]) -> bool:
    """Return whether a file imports NKI, or an own module that does."""
    seen.add(file)
    text = text_of(file)
    if imports_nki(text):
        return True
    places = (place for _, place in _own_imports(nodes_of(text), file))
    return any(place not in seen and _reaches_nki(place, seen) for place in places)


def _own_imports(nodes: Iterable[ast.AST], file: Path) -> Iterator[tuple[ast.alias, Path]]:
    """Yield what a file imports of the author's own modules: each name with the module's file."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            whole = file_of_import(node.module or "", node.level, file)
            for alias in node.names:
                inner = file_of_import(f"{node.module or ''}.{alias.name}".lstrip("."), node.level, file)
                yield from ((alias, place) for place in (inner or whole,) if place is not None)
        elif isinstance(node, ast.Import):
            named = ((alias, file_of_import(alias.name, 0, file)) for alias in node.names)
            yield from ((alias, place) for alias, place in named if place is not None)


def _imported_kernel(tree: ast.Module, file: Path) -> str:
    """Return the first kernel that a file imports from an own module, also through a package; '' for none."""
    for alias, place in _own_imports(tree.body, file):
        within = ast.parse(text_of(place))
        kernels = (each for each in within.body if isinstance(each, ast.FunctionDef) and each.name == alias.name)
        passed_on = [each for each in within.body if isinstance(each, ast.ImportFrom)]
        of_alias = ast.Module([each for each in passed_on if alias.name in {one.name for one in each.names}], [])
        if any(map(_is_kernel, kernels)) or (of_alias.body and _imported_kernel(of_alias, place)):
            return alias.asname or alias.name
    return ""


def _is_kernel(function: ast.FunctionDef) -> bool:
    return any("jit" in ast.unparse(each) for each in function.decorator_list)
