"""The rooms of the package know each other downward only."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.cases import each
from tests.house.sources import nodes_of

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "nkitools"

# room: the rooms that it may name. Each stands above it in this table, so there is no way back up. Lazy imports and
# imports for type checking count.
BELOW: dict[str, set[str]] = {}  # filled by `room`, in the order of the calls


def room(name: str, *named: str) -> None:
    BELOW[name] = set(named)


room("platforms")  # what differs by operating system
room("processes", "platforms")  # children of this process
room("output_streams")
room("facts", "platforms")
room("authors_code", "facts")  # what code of authors names, reads and says
room("edits", "authors_code")  # of texts of authors: the only way to change one by its places
room("rules", "authors_code", "facts")  # the catalogue, and what a broken rule says
room("comparison")
room("examples")  # the example kernels, which the wheel has in this place
room("chip", "facts", "platforms", "rules")
room("mx", "chip")
room("engines", "chip", "facts")
room("record", "authors_code", "chip", "comparison", "facts", "rules")
room("history", "chip", "facts", "record", "rules")
room("issue", "chip", "engines", "facts", "record", "rules")
room("isa", "chip", "engines", "facts", "issue", "record", "rules")
room("language", "authors_code", "chip", "engines", "facts", "isa", "issue", "record", "rules")
room("lint", "authors_code", "edits", "facts", "rules")
room(
    "launch",
    "authors_code", "chip", "facts", "history", "lint", "output_streams", "platforms", "record", "rules",
)  # fmt: skip
room("timing", "chip", "facts", "history", "record", "rules")
room("precision", "authors_code", "chip", "comparison", "facts", "launch", "record")
room(
    "dialects",
    "authors_code", "chip", "engines", "facts", "isa", "issue", "language", "launch", "lint", "record",
    "rules",
)  # fmt: skip
room("strategies", "chip", "dialects", "facts", "issue", "launch", "rules")
room("why", "chip", "comparison", "facts", "issue", "launch", "precision", "record", "rules")
room("suggestions", "dialects", "edits", "facts", "issue", "lint", "rules")
room("pallas", "authors_code", "chip", "comparison", "facts", "precision", "processes", "record", "rules")
room(
    "repair",  # of kernels that a comparison shows to be wrong
    "authors_code", "chip", "comparison", "edits", "facts", "launch", "pallas", "platforms", "precision", "processes",
    "record", "rules", "why",
)  # fmt: skip
room("kernel_settings", "chip")
room("module_files", "authors_code", "facts", "lint")
room("kernel_file", "authors_code", "chip", "facts", "kernel_settings", "module_files", "pallas", "rules")
room("customop", "authors_code", "chip", "facts", "platforms", "processes", "record", "rules")
room(
    "targets",
    "chip", "customop", "dialects", "facts", "kernel_file", "kernel_settings", "launch", "pallas", "platforms",
    "precision", "processes", "record", "rules",
)  # fmt: skip
room(
    "sweeps",  # any kind of kernel, wherever it runs
    "authors_code", "chip", "comparison", "edits", "facts", "kernel_settings", "launch", "module_files", "platforms",
    "precision", "processes", "record", "rules", "targets",
)  # fmt: skip
room(
    "report",
    "authors_code", "chip", "comparison", "facts", "history", "lint", "output_streams", "record", "rules",
    "suggestions", "timing",
)  # fmt: skip
room(
    "verdict",  # on one kernel, by all that is below
    "authors_code", "chip", "comparison", "edits", "facts", "history", "kernel_file", "kernel_settings", "launch",
    "platforms", "precision", "processes", "record", "repair", "report", "rules", "sweeps", "targets",
)  # fmt: skip
room("expect", "facts", "record", "report", "rules")
room(
    "nkitools",  # what users import
    "customop", "dialects", "expect", "facts", "launch", "mx", "pallas", "platforms", "precision", "record", "report",
    "rules", "strategies", "sweeps", "timing", "verdict", "why",
)  # fmt: skip
room(
    "serve",
    "authors_code", "chip", "comparison", "dialects", "edits", "facts", "kernel_file", "kernel_settings", "launch",
    "lint", "platforms", "precision", "processes", "record", "repair", "report", "rules", "suggestions", "targets",
    "verdict", "why",
)  # fmt: skip
room(
    "pytest_plugin",
    "authors_code", "chip", "comparison", "dialects", "expect", "facts", "launch", "pallas", "precision",
    "processes", "record", "repair", "report", "rules", "sweeps", "targets", "verdict", "why",
)  # fmt: skip
room(
    "field",  # tests, scripts and kernels of others, as they are
    "dialects", "facts", "lint", "pallas", "platforms", "processes", "record", "rules",
)  # fmt: skip
room("typing", "authors_code", "precision", "pytest_plugin", "record", "report", "rules", "sweeps", "verdict")
room(
    "cli",  # its templates are files of users
    "authors_code", "chip", "comparison", "customop", "dialects", "edits", "examples", "facts", "field", "kernel_file",
    "kernel_settings", "launch", "lint", "nkitools", "pallas", "platforms", "precision", "processes", "record",
    "repair", "report", "rules", "serve", "suggestions", "sweeps", "targets", "timing", "verdict", "why",
)  # fmt: skip
room("__main__", "cli", "output_streams", "platforms")

GROUND = ("facts", "output_streams", "platforms", "rules")  # what light code may import


def module_name(path: Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room_of(module: str) -> str:
    """``nkitools.chip.core`` is in room ``chip``; the package itself is a room."""
    return module.removeprefix("nkitools").lstrip(".").split(".")[0] or "nkitools"


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
        case ast.Call(
            func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"), args=[first, *_]
        ):
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
    own = room_of(module)
    assert own in BELOW, f"{module} is in no room of the table of arrows; give it one"
    against = [
        f"{MODULES[module].relative_to(REPOSITORY)}:{line}: {own} may not name {name}"
        for line, name in imports_of(module)
        if is_ours(name) and room_of(name) not in BELOW[own] | {own}
    ]
    assert against == []


OF_BYTECODE = frozenset({"co_code", "co_consts", "co_freevars", "co_positions", "getclosurevars"})


@each("module", MODULES)
def test_bytecode_is_read_in_one_room(module: str) -> None:
    """Python's versions differ in it, so `authors_code` alone imports `dis` and reads what belongs to it."""
    if room_of(module) == "authors_code":
        return
    nodes = list(nodes_of(MODULES[module]))
    read = [each.attr for each in nodes if isinstance(each, ast.Attribute) and each.attr in OF_BYTECODE]
    assert (read, "dis" in {name for _, name in imports_of(module)}) == ([], False)


@each("name", BELOW)
def test_no_rooms_are_a_knot(name: str) -> None:
    """A room may name only rooms that stand before it in the table, so that no chain of imports leads back to it."""
    order = list(BELOW)
    assert {other for other in BELOW[name] if other not in order[: order.index(name)]} == set()


@each("name", BELOW)
def test_the_table_allows_no_more_than_there_is(name: str) -> None:
    """An arrow that no import needs is not in the table; a room without modules is not, either."""
    named = {
        room_of(other)
        for module in MODULES
        if room_of(module) == name
        for _, other in imports_of(module)
        if is_ours(other)
    }
    assert BELOW[name] - named == set()
    assert name == "examples" or any(room_of(module) == name for module in MODULES)


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


@each("name", GROUND)
def test_the_ground_stands_on_the_standard_library(name: str) -> None:
    """Tables, catalogue, findings and options reach rule texts, what reads systems, and the standard library alone."""
    code = (module for module in MODULES if room_of(module) == name and ".examples." not in module)
    reached = {other for module in code for other in reach(module, set())}
    assert {room_of(other) for other in reached if is_ours(other)} <= {*GROUND, "authors_code"}
    outside = {other.partition(".")[0] for other in reached if not is_ours(other)}
    assert outside - {"hypothesis"} <= sys.stdlib_module_names  # for the strategy of a space of cases, when asked


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


def test_the_picture_of_the_rooms_has_their_order() -> None:
    """A room that another one names lies on a lower floor of the picture, or on the same floor to its right."""
    picture = (REPOSITORY / "docs/explanation/rooms.svg").read_text(encoding="utf-8")
    found = re.findall(r'<text x="([\d.]+)" y="(\d+)" text-anchor="middle">(\w+)</text>', picture)
    places = {name: (int(y), float(x)) for x, y, name in found}
    assert {name for name in BELOW if (PACKAGE / name).is_dir()} <= places.keys() | {"examples", "nkitools"}
    pairs = [(one, other) for one in places for other in BELOW[one] & places.keys()]
    assert [(one, other) for one, other in pairs if places[one] >= places[other]] == []
