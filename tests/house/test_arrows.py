"""The rooms of the package know each other downward only."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import each
from tests.house.sources import nodes_of

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "nkitools"

# What every room may name: tables of chips and NKI versions, ids, texts and options, which name no other room.
FOR_ALL = frozenset(
    {
        "chip.generations",
        "dialects.versions",
        "facts",
        "options",
        "output_streams",
        "platforms",
        "rules.catalogue",
        "rules.code_lines",
        "rules.finding",
        "rules.shown_text",
    }
)

# room: the rooms that it may name besides those for all. Lazy imports and imports for type checking count.
ARROWS: dict[str, set[str]] = {
    "chip.generations": set(),
    "dialects.versions": set(),
    "facts": set(),
    "options": set(),
    "output_streams": set(),
    "platforms": set(),
    "rules.catalogue": {"rules"},  # gathers the families, which are data; see the test of what is light
    "rules.code_lines": set(),
    "rules.finding": set(),
    "rules.shown_text": set(),
    "chip": set(),
    "comparison": set(),
    "authors_code": set(),
    "mx": {"chip"},
    "engines": {"chip"},
    "record": {"authors_code", "chip", "comparison"},
    "history": {"chip", "record"},
    "issue": {"chip", "engines", "record"},
    "isa": {"chip", "engines", "issue", "record"},
    "rules": {"chip", "record"},
    "language": {"chip", "engines", "isa", "issue", "record"},
    "lint": {"authors_code"},  # reads sources; what it knows of NKI's signatures comes from outside (lint.interface)
    "replay": {"chip", "issue", "record"},
    "why": {"authors_code", "chip", "comparison", "issue", "launch", "precision", "record"},
    "launch": {"authors_code", "chip", "history", "lint", "record", "replay", "rules"},
    "timing": {"chip", "history", "record"},
    "precision": {"chip", "comparison", "launch", "record"},
    "dialects": {
        "authors_code",
        "chip",
        "engines",
        "history",
        "isa",
        "issue",
        "language",
        "launch",
        "lint",
        "record",
        "rules",
    },
    "lint.interface": {"dialects", "isa", "issue", "lint", "rules"},
    "suggestions": {"lint", "lint.interface"},
    "sweeps.space": set(),
    "pallas": {"chip", "comparison", "precision", "record", "rules", "sweeps.space"},
    "customop": {"chip", "record", "rules"},
}
ARROWS["dialects"] |= {"rules"}
ARROWS["targets"] = set(ARROWS) | {"nkitools"}
ARROWS["sweeps"] = {*ARROWS["targets"], "targets"}  # any kind of kernel, wherever it runs
ARROWS["report"] = {
    "authors_code",
    "chip",
    "comparison",
    "history",
    "issue",
    "record",
    "rules",
    "suggestions",
    "timing",
}
ARROWS["expect"] = {"record", "report"}
ARROWS["strategies"] = {"chip", "dialects", "launch"}
ARROWS["pytest_plugin"] = ARROWS["cli"] = {*ARROWS["sweeps"], "sweeps", "report", "expect"}
ARROWS["cli"] = ARROWS["cli"] | {"examples"}  # the example kernels, which the wheel has in this place
ARROWS["serve"] = {*ARROWS["targets"], "report", "targets"}
ARROWS["cli"] = ARROWS["cli"] | {"serve"}
ARROWS["typing"] = {"authors_code", "precision", "pytest_plugin", "record", "report", "sweeps"}
ARROWS["nkitools"] = {*ARROWS["targets"], "sweeps", "expect", "report", "strategies"}
ARROWS["__main__"] = {"cli"}


def module_name(path: Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room_of(module: str) -> str:
    """``nkitools.chip.core`` is in room ``chip``; the package itself is a room, so are four modules of ``rules``."""
    inside = module.removeprefix("nkitools").lstrip(".")
    return inside if inside in ARROWS else inside.split(".")[0] or "nkitools"


def absolute(node: ast.ImportFrom, importer: str) -> str:
    """The module that ``from X import ...`` names, with the dots of a relative import resolved."""
    if not node.level:
        return node.module or ""
    package = importer if MODULES[importer].name == "__init__.py" else importer.rpartition(".")[0]
    for _ in range(node.level - 1):
        package = package.rpartition(".")[0]
    return f"{package}.{node.module}" if node.module else package


def named_by(node: ast.AST, importer: str) -> list[str]:
    """The modules that one statement or call imports."""
    match node:
        case ast.Import():
            return [alias.name for alias in node.names]
        case ast.ImportFrom():
            origin = absolute(node, importer)
            members = [f"{origin}.{alias.name}" for alias in node.names]
            return [member if member in MODULES else origin for member in members]
        case ast.Call(func=ast.Name(id="__import__") | ast.Attribute(attr="import_module"), args=[first, *_]):
            return [first.value] if isinstance(first, ast.Constant) and isinstance(first.value, str) else []
    return []


def imports_of(module: str) -> Iterator[tuple[int, str]]:
    """(line, imported module) of every import in ``module``, wherever it stands."""
    for node in nodes_of(MODULES[module]):
        for name in named_by(node, module):
            yield getattr(node, "lineno", 0), name


def is_ours(module: str) -> bool:
    return module.partition(".")[0] == "nkitools"


@each("module", MODULES)
def test_a_room_names_only_rooms_below_it(module: str) -> None:
    """Every import inside the package follows the table of arrows."""
    room = room_of(module)
    assert room in ARROWS, f"{module} is in no room of the table of arrows; give it one"
    may_name = ARROWS[room] | FOR_ALL | {room}
    against = [
        f"{MODULES[module].relative_to(REPOSITORY)}:{line}: {room} may not name {name}"
        for line, name in imports_of(module)
        if is_ours(name) and room_of(name) not in may_name
    ]
    assert against == []


def reach(module: str, seen: set[str]) -> set[str]:
    """Everything that importing ``module`` may import, its own packages included."""
    if module in seen:
        return seen
    seen.add(module)
    if module in MODULES:
        parent = module.rpartition(".")[0]
        # nkitools/__init__.py is left out: what it names it imports on demand (test_light.py).
        for name in [*([parent] if parent != "nkitools" else []), *(name for _, name in imports_of(module))]:
            reach(name, seen)
    return seen


@pytest.mark.parametrize("room", sorted(FOR_ALL))
def test_what_all_may_name_stands_on_the_standard_library(room: str) -> None:
    """Tables, catalogue, findings and options reach rule texts and the standard library, nothing else."""
    reached = reach(f"nkitools.{room}", set())
    reached -= {"nkitools.chip", "nkitools.dialects"}  # the packages of the tables, empty ones
    assert {room_of(name) for name in reached if is_ours(name)} <= FOR_ALL | {"rules"}
    assert {name.partition(".")[0] for name in reached if not is_ours(name)} <= sys.stdlib_module_names


def test_the_table_reads_imports_wherever_they_stand() -> None:
    """The arrows cannot be escaped by a lazy, relative, type-checking or dynamic import."""
    tree = ast.parse(
        "def late():\n    import nkitools.cli\n    from . import memory\n    from ..isa.move import dma_copy\n"
        "if TYPE_CHECKING:\n    from nkitools.record import Run\nimportlib.import_module('nkitools.launch')\n"
    )
    found = [name for node in ast.walk(tree) for name in named_by(node, "nkitools.chip.core")]
    assert sorted(found) == [
        "nkitools.chip.memory",
        "nkitools.cli",
        "nkitools.isa.move",
        "nkitools.launch",
        "nkitools.record",
    ]
