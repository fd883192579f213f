"""Dialects and the language call instructions by keyword: a new parameter never takes a place that was another's."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from nkitools.issue.instruction import Instruction
from tests.house.sources import nodes_in

REPOSITORY = Path(__file__).parents[2]
ROOMS = ("dialects", "language", "isa")
FILES = [path for room in ROOMS for path in sorted((REPOSITORY / "nkitools" / room).rglob("*.py"))]


def named(node: ast.expr, names: dict[str, Any]) -> Any:
    """Return what a name, or an attribute of a module, stands for; None for other expressions."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = names.get(node.value.id)
        return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
    return None


def of_an_instruction(node: ast.expr, names: dict[str, Any]) -> bool:
    """Return whether an expression is an instruction, or the function that checks and plans one."""
    if isinstance(node, ast.Attribute) and node.attr == "function":
        node = node.value
    return isinstance(named(node, names), Instruction)


def by_position(source: str, names: dict[str, Any]) -> list[int]:
    """Return the lines that call an instruction by position, or hand it to what might.

    A plan's function has one argument by position, the check. `functools.partial` takes an instruction with keywords.
    """
    nodes, lines, called = nodes_in(source), [], set()
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        if of_an_instruction(node.func, names):
            called.add(id(node.func))
            allowed = int(isinstance(node.func, ast.Attribute) and node.func.attr == "function")
            if len(node.args) > allowed:
                lines.append(node.lineno)
        elif isinstance(node.func, ast.Name) and node.func.id == "partial" and len(node.args) == 1:
            called.add(id(node.args[0]))
    called |= {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        is_value = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load)
        if is_value and id(node) not in called and isinstance(named(node, names), Instruction):  # type: ignore[arg-type]
            lines.append(node.lineno)
    return sorted(set(lines))


def names_in(path: Path) -> dict[str, Any]:
    """Return the names of a file of the package."""
    module = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
    return vars(importlib.import_module(module))


def test_instructions_are_called_by_keyword() -> None:
    """No call of an instruction, in a dialect, the language or another instruction, has an argument by position."""
    found = [
        f"{path.relative_to(REPOSITORY)}:{line}"
        for path in FILES
        for line in by_position(path.read_text(), names_in(path))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "tensor_copy(dst, src=src)",
        "move.tensor_copy(dst, src)",
        "tensor_copy(*operands)",
        "write_lanes(tensor_copy, dst, (src,), lanes)",
        "into = tensor_copy",
        "partial(tensor_copy, dst)",
        "tensor_copy.function(check, dst, src)",
    ],
)
def test_a_call_by_position_is_found(source: str) -> None:
    """The test above can fail: in the call, and where an instruction is handed on as a function."""
    move = importlib.import_module("nkitools.isa.move")
    assert by_position(source, {"tensor_copy": move.tensor_copy, "move": move}) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "tensor_copy(dst=dst, src=src)",
        "move.tensor_copy(dst=dst, src=src)",
        "partial(tensor_copy, dst=dst, src=src)",
        "tensor_copy.function(check, dst=dst, src=src)",
        "shown = tensor_copy.name",
    ],
)
def test_a_call_by_keyword_is_not(source: str) -> None:
    """Keywords name the parameters, whatever comes between them."""
    move = importlib.import_module("nkitools.isa.move")
    assert by_position(source, {"tensor_copy": move.tensor_copy, "move": move}) == []
