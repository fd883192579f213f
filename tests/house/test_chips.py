"""Chips are data: an ability of a chip is a field of its table, and every list of chips comes from the tables."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from nkitools.facts.generations import GENERATIONS, TABLES
from tests.cases import each
from tests.house.sources import nodes_under, tree_of

PACKAGE = Path(__file__).parents[2] / "nkitools"
FILES = {
    str(path.relative_to(PACKAGE)): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.relative_to(PACKAGE).parts[0] != "chip"
    and path != PACKAGE / "facts" / "generations.py"
    and path.relative_to(PACKAGE).parts[:2] != ("rules", "examples")
}
NAMES = {*GENERATIONS, *(generation.name for generation in TABLES)}

# The files outside of chip/ and the tables that may read an attribute ``version``, and why.
VERSIONS = {
    "cli/remembered_interface.py": "of Python",
    "customop/toolchain.py": "of a C++ compiler",
    "dialects/legacy/aws_names/enums.py": "the enum of versions is made from the tables",
    "dialects/legacy/isa.py": "get_nc_version returns it",
    "dialects/modern/isa.py": "get_nc_version returns it",
    "engines/enums.py": "the enum of versions is made from the tables",
    "serve/language_server.py": "of a document in an editor",
    "serve/mended_kernel.py": "of a document in an editor",
    "targets/examination.py": "of a C++ compiler",
    "targets/neuron.py": "the driver's names of the architectures are made from the tables",
}
COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def compared_versions(tree: ast.AST) -> Iterator[int]:
    """The lines that compare an attribute ``version``, match on one or look one up among others."""
    for node in nodes_under(tree):
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                ordered = any(isinstance(op, COMPARED) for op in ops) and any(map(is_version, (left, *others)))
                if ordered or is_version(left):
                    yield node.lineno
            case ast.Match(subject=subject) if is_version(subject):
                yield node.lineno
            case ast.Subscript(slice=index) if is_version(index):
                yield node.lineno


def read_versions(tree: ast.AST) -> Iterator[int]:
    """The lines that read an attribute ``version`` or ask for it by its name; a call of a function is none."""
    called = {id(node.func) for node in nodes_under(tree) if isinstance(node, ast.Call)}
    for node in nodes_under(tree):
        asked = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr"
        if asked and any(isinstance(each, ast.Constant) and each.value == "version" for each in ast.walk(node)):
            yield node.lineno
        if is_version(node) and id(node) not in called:
            yield node.lineno


def is_version(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "version"


def named_chips(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, text) of the texts that are the name of a chip or of a generation, and nothing else."""
    for node in nodes_under(tree):
        if isinstance(node, ast.Constant) and node.value in NAMES:
            yield node.lineno, node.value


@each("file", FILES)
def test_no_version_of_a_chip_is_compared(file: str) -> None:
    """What a generation can do is asked of its table, not told from its number."""
    tree = tree_of(FILES[file])
    assert list(compared_versions(tree)) == []
    if file not in VERSIONS:
        assert list(read_versions(tree)) == []


@each("file", FILES)
def test_no_list_of_chips_is_kept(file: str) -> None:
    """The name of a chip stands in its table only, so that a new chip is known everywhere."""
    assert list(named_chips(tree_of(FILES[file]))) == []


def test_every_exception_is_needed() -> None:
    """A file that no longer reads a version leaves the list."""
    assert [file for file in VERSIONS if not list(read_versions(tree_of(FILES[file])))] == []


@pytest.mark.parametrize(
    "code",
    [
        "chip.version < 3",
        "4 <= check.chip.version",
        "if since > core.generation.version: pass",
        "generation.version in (2, 3)",
        "{2: 1}[chip.version]",
        "match chip.version:\n    case 2: pass",
    ],
)
def test_a_comparison_is_found(code: str) -> None:
    """The test above can fail."""
    assert list(compared_versions(ast.parse(code))) == [1]


@pytest.mark.parametrize("code", ["old = chip.version", "old = getattr(chip, 'version')"])
def test_a_version_that_is_kept_for_later_is_found(code: str) -> None:
    """A comparison cannot hide behind a variable."""
    assert list(read_versions(ast.parse(code))) == [1]
    assert list(read_versions(ast.parse("libtpu.version() < 3"))) == []


def test_a_name_of_a_chip_is_found() -> None:
    """In a list or a comparison; a sentence that mentions chips is none."""
    tree = ast.parse("old = chip in ('trn1', 'inf2')\nnew = name == 'NeuronCore-v4'\nremedy = 'Run it on trn3.'")
    assert sorted(named_chips(tree)) == [(1, "inf2"), (1, "trn1"), (2, "NeuronCore-v4")]
