"""Parameters have types that an editor can use: bare ``Any`` is for what truly can be anything."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.house.sources import tree_of

PACKAGE = Path(__file__).parents[2] / "nkitools"

# room: the share of its annotated parameters that may be bare Any, bare object or a name that stands for Any
ROOMS = {
    **dict.fromkeys(("chip", "engines", "history", "isa", "language", "lint"), 0.05),
    "dialects": 0.08,
    **dict.fromkeys(("options", "rules"), 0.0),
}


def trees(room: str) -> list[ast.Module]:
    folder = PACKAGE / room
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    return [tree_of(file) for file in files if "examples" not in file.parts]


def untyped_names(modules: Iterable[ast.Module]) -> set[str]:
    """``Any``, ``object`` and the names that a module makes equal to one of them."""
    found = {"Any", "object", "typing.Any"}
    for tree in modules:
        for node in tree.body:
            match node:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    if ast.unparse(value).strip("'\"") in found:
                        found.add(name)
    return found


def parameters(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(``function(parameter)``, annotation) of every parameter that has an annotation."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = node.args
            for each in (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg):
                if each is not None and each.annotation is not None:
                    yield f"{node.name}({each.arg})", ast.unparse(each.annotation).strip("'\"")


def is_untyped(annotation: str, names: set[str]) -> bool:
    """Whether the annotation, or one of its alternatives, is a name that says nothing."""
    return any(part in names for part in annotation.split(" | "))


NAMES = untyped_names(tree_of(file) for file in sorted(PACKAGE.rglob("*.py")))


@pytest.mark.parametrize("room", ROOMS)
def test_parameters_have_types(room: str) -> None:
    """At most this share of a room's parameters says nothing about what it takes."""
    found = [each for tree in trees(room) for each in parameters(tree)]
    untyped = [where for where, annotation in found if is_untyped(annotation, NAMES)]
    assert len(untyped) <= ROOMS[room] * len(found), untyped


def test_untyped_parameters_are_found() -> None:
    """The test above can fail: bare, quoted, beside None, and by another name."""
    tree = ast.parse(
        "Anything = Any\nThing: TypeAlias = 'object'\n"
        "def f(a: Any, b: 'object', c: Any | None, d: Anything, *e: Thing, g: int, **h: list[Any]): ..."
    )
    names = untyped_names([tree])
    assert [where for where, each in parameters(tree) if is_untyped(each, names)] == [
        "f(a)",
        "f(b)",
        "f(c)",
        "f(d)",
        "f(e)",
    ]
