"""No file of the package imports, by way of others, itself; and no import hides from the tests that read imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import pytest

from nkitools.facts import versions
from tests.house.sources import nodes_of, nodes_under, tree_of
from tests.house.test_arrows import BELOW, MODULES, imports_of, is_ours, room_of

# file: why it imports a module by a name that is computed, or looks into sys.modules for one of our own.
HIDDEN = {
    "nkitools": "its public names, and what module each is in, are a table; they are imported when first asked for",
    "nkitools.pallas": "its public names, as above: JAX is imported when one of them is asked for",
    "nkitools.pallas.imports": "modules of JAX",
    "nkitools.dialects.stand_in": "shows a dialect under AWS's names; takes the stand-ins out of sys.modules again",
    "nkitools.dialects.stub_files": "the modules that the stand-in serves, for their stubs",
    "nkitools.dialects.public": "modules that the table of versions names; the tests here read them out of the table",
    "nkitools.dialects.version_forms": "the same",
    "nkitools.suggestions.lint_interface": "the module that stands in for the AWS module that a source imports",
    "nkitools.lint.project": "modules of the program that runs, which has imported them",
    "nkitools.sweeps.tests_of_author": "modules of an author's tests, which are forgotten again",
    "nkitools.targets.official": "AWS's packages",
    "nkitools.targets.neuron": "AWS's packages",
    "nkitools.module_files": "the module of an author's file",
    "nkitools.sweeps.named_function": "the module of an author's file",
    "nkitools.authors_code.content": "modules of the author's, which are imported already",
    "nkitools.targets.compilation": "AWS's packages, and the module of an author's kernel",
    "nkitools.pytest_plugin.benchmarks": "the module of an author's kernel, which the session has imported",
    "nkitools.processes.warm": "the modules that a room above asks for beforehand, which are in its own source",
    "nkitools.customop.torch_modules": "torch_neuronx, for which nkitools stands in",
}


def published(module: str) -> set[str]:
    """Return the files of the package that ``module`` takes public names from, by the table of versions."""
    calls = [node for node in nodes_of(MODULES[module]) if isinstance(node, ast.Call)]
    shown = [each.args[1] for each in calls if isinstance(each.func, ast.Name) and each.func.id == "publish"]
    names = [each.value for each in shown if isinstance(each, ast.Constant)]
    homes = {row.home.partition(":")[0] for name in names for row in versions.names_of(str(name)).values()}
    return (homes & set(MODULES)) - {module}


def graph() -> dict[str, list[str]]:
    """Return the files of the package that each file imports: lazily, for type checking and by the table too."""
    return {
        module: sorted({name for _, name in imports_of(module) if name in MODULES} | published(module))
        for module in MODULES
    }


def circles(edges: Mapping[str, list[str]]) -> list[list[str]]:
    """Return the groups of nodes that reach each other (Tarjan's strongly connected components), each sorted."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = lowest[node] = len(order)
        stack.append(node)
        for onward in edges.get(node, []):
            if onward not in order:
                visit(onward)
                lowest[node] = min(lowest[node], lowest[onward])
            elif onward in stack:
                lowest[node] = min(lowest[node], order[onward])
        if lowest[node] == order[node]:
            at = stack.index(node)
            group = sorted(stack[at:])
            del stack[at:]
            if len(group) > 1 or node in edges.get(node, []):
                found.append(group)

    for node in edges:
        if node not in order:
            visit(node)
    return sorted(found)


def test_no_file_imports_itself_by_way_of_others() -> None:
    """Lazy imports and imports for type checking count."""
    assert circles(graph()) == []


def test_the_table_of_versions_follows_the_arrows() -> None:
    """A dialect's public names come from rooms that the dialects may name."""
    homes = {home for module in MODULES for home in published(module)}
    assert len(homes) > 50
    assert {room_of(home) for home in homes} <= BELOW["dialects"] | {"dialects"}


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ({"a": ["b"], "b": ["c"], "c": []}, []),
        ({"a": ["b", "c"], "b": ["c"], "c": []}, []),
        ({"a": ["a"]}, [["a"]]),
        ({"a": ["b"], "b": ["c"], "c": ["a", "d"], "d": ["e"], "e": ["d"]}, [["a", "b", "c"], ["d", "e"]]),
    ],
)
def test_circles_are_found(edges: dict[str, list[str]], expected: list[list[str]]) -> None:
    """The test above can fail: circles of one, two and three are found, and nothing else is."""
    assert circles(edges) == expected


def hidden_imports(tree: ast.AST) -> Iterator[int]:
    """Return the lines that import a module by a computed name, or take one of ours out of ``sys.modules``."""
    for node in nodes_under(tree):
        match node:
            case ast.Call(func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module")):
                if not node.args or not isinstance(node.args[0], ast.Constant):
                    yield node.lineno
            case (
                ast.Subscript(value=place, slice=name) | ast.Call(func=ast.Attribute(value=place), args=[name, *_])
            ) if _is_sys_modules(place):
                if not isinstance(name, ast.Constant) or is_ours(str(name.value)):
                    yield node.lineno
            case ast.ImportFrom(module="sys", names=names) if any(each.name == "modules" for each in names):
                yield node.lineno


def _is_sys_modules(place: ast.expr) -> bool:
    match place:
        case ast.Attribute(value=ast.Name(id="sys"), attr="modules"):
            return True
    return False


def test_imports_do_not_hide() -> None:
    """What is imported stands in the source, where the tests of arrows and of circles read it."""
    hiding = {module: lines for module, path in MODULES.items() if (lines := list(hidden_imports(tree_of(path))))}
    assert {module: lines for module, lines in hiding.items() if module not in HIDDEN} == {}
    assert set(HIDDEN) <= set(hiding), "these hide no import any more; take them off the list"


@pytest.mark.parametrize(
    ("source", "is_found"),
    [
        ("import_module(f'nkitools.chip.{room}')", True),
        ("importlib.import_module(name)", True),
        ("__import__(name)", True),
        ("__import__('torch')", False),
        ("import_module('nkitools.chip.core')", False),  # test_arrows.py reads this one
        ("sys.modules['nkitools'].page", True),
        ("sys.modules.get('nkitools.cli')", True),
        ("sys.modules[name]", True),
        ("sys.modules.pop(name)", True),
        ("sys.modules['torch']", False),
        ("'torch' in sys.modules", False),
        ("from sys import modules", True),
        ("modules.append(name)", False),
    ],
)
def test_hidden_imports_are_found(source: str, is_found: bool) -> None:
    """The test above can fail."""
    assert bool(list(hidden_imports(ast.parse(source)))) is is_found
