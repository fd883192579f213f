"""Parameters have types that an editor can use: bare ``Any`` is for what truly can be anything."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.house.public_api import Place, places_of, roots
from tests.house.sources import nodes_under, tree_of

PACKAGE = Path(__file__).parents[2] / "nkitools"

# room: the share of its annotated parameters that may be bare Any, bare object or a name that stands for Any
ROOMS = {
    **dict.fromkeys(("chip", "engines", "history", "isa", "language", "lint"), 0.05),
    "dialects": 0.08,
    "facts": 0.08,  # a space of cases has values of any type
    "rules": 0.0,
}

# Methods whose parameters Python itself declares as object.
OF_PYTHON = frozenset({"__contains__", "__eq__", "__exit__", "__get__", "__ne__"})
# Those that a tile refuses, whatever stands beside it.
REFUSED = frozenset(
    f"__{name}__"
    for name in (
        *(
            "array_ufunc",
            "call",
            "ceil",
            "delitem",
            "divmod",
            "floor",
            "floordiv",
            "len",
            "matmul",
            "mod",
            "next",
            "pos",
        ),
        *("rdivmod", "rfloordiv", "rmatmul", "rmod", "round", "trunc"),
    )
)
# public place: why it has no type
EXCEPTIONS = {
    "nkitools.language.grids.NkiGrid.__init__(kwargs)": "AWS's own signature of a class that kernels do not construct",
    "nkitools.record.instruction_record.RecordedPlan.touches": "masks of lanes; in a file whether there were some",
    "nkitools.record.instruction_record.RecordedPlan.chooses": "a function of arrays; in a file whether there was one",
    "nkitools.record.open_instruction.OpenInstruction.plan": "the plan of a room above, which gets it back as it was",
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
    for node in nodes_under(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = node.args
            for each in (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg):
                if each is not None and each.annotation is not None:
                    yield f"{node.name}({each.arg})", ast.unparse(each.annotation).strip("'\"")


def is_untyped(annotation: str, names: set[str]) -> bool:
    """Whether the annotation, or one of its alternatives, is a name that says nothing."""
    return any(part in names for part in annotation.split(" | "))


@cache
def names_of_the_package() -> set[str]:
    """Return ``Any``, ``object`` and the package's own names for them."""
    return untyped_names(tree_of(file) for file in sorted(PACKAGE.rglob("*.py")))


@pytest.mark.parametrize("room", ROOMS)
def test_parameters_have_types(room: str) -> None:
    """At most this share of a room's parameters says nothing about what it takes."""
    found = [each for tree in trees(room) for each in parameters(tree)]
    untyped = [where for where, annotation in found if is_untyped(annotation, names_of_the_package())]
    assert len(untyped) <= ROOMS[room] * len(found), untyped


def untyped_places(places: Iterable[Place]) -> list[str]:
    """Return the public places that say nothing, but for those that Python declares so."""
    found = [each for each in places if is_untyped(each.annotation.strip("'\""), names_of_the_package())]
    return [
        each.where
        for each in found
        if each.annotation != "object" or each.where.rpartition(".")[2].partition("(")[0] not in OF_PYTHON | REFUSED
    ]


def test_public_interface_has_types() -> None:
    """No public parameter or field says nothing about what it takes, except where the reason is given."""
    places = places_of(roots())
    assert sorted(untyped_places(places)) == sorted(EXCEPTIONS)
    reached = {each.where for each in places}
    assert reached >= {
        "nkitools.customop.library.load(name)",
        "nkitools.dialects.legacy.tiles.tensor.Tensor.__getitem__(key)",
        "nkitools.dialects.modern.kernel.jit(fn)",
        "nkitools.isa.collectives.all_reduce(op)",
        "nkitools.isa.matmul.nc_matmul(stationary)",
        "nkitools.language.creation.ndarray(shape)",
        "nkitools.pallas.launch.run(args)",
        "nkitools.pytest_plugin.kernel_runner.KernelRunner.__call__(kernel)",
        "nkitools.record.prints.print_sequence.PrintFilters.where(counters)",
        "nkitools.record.run_contents.RunContents.findings",
        "nkitools.rules.finding.Finding.message",
        "nkitools.strategies.arrays.arrays(shape)",
    }


class Returned:
    """A class that is reached as the result of a function."""

    field: Any

    def __eq__(self, other: object) -> bool:
        return self is other

    def method(self, key: Any, whole: int) -> None:
        """Take a parameter without a type."""

    def _internal(self, key: Any) -> None:
        """Take a parameter that no author sees."""


def public(value: object, /, *more: int, **named: Any) -> Returned | None:
    """Take parameters without types."""


def test_untyped_public_places_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: parameters, fields, and members of what a function returns."""
    for each in (public, Returned, Returned.__eq__, Returned.method):
        monkeypatch.setattr(each, "__module__", f"nkitools.{__name__}")
    monkeypatch.setitem(sys.modules, f"nkitools.{__name__}", sys.modules[__name__])
    assert [each.removeprefix(f"nkitools.{__name__}.") for each in untyped_places(places_of([public]))] == [
        "public(value)",
        "public(named)",
        "Returned.field",
        "Returned.method(key)",
    ]


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
