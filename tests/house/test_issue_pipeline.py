"""One pipeline issues every instruction: resolve, check, perform, commit."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house.sources import nodes_in

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "nkitools"
COMMIT = PACKAGE / "issue" / "commit.py"


def ends_of(source: str) -> list[int]:
    """Return the lines of a file that hand an instruction to a core's record, in source or in generated source."""
    lines = []
    for node in nodes_in(source):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "commit":
            owner = node.func.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name in ("core", "record"):
                lines.append(node.lineno)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "core.commit(" in node.value:
            lines.append(node.lineno)
    return lines


def test_every_way_of_issuing_ends_in_one_commit() -> None:
    """The fast path, the careful path, barriers, registers and collectives: only one file hands over instructions."""
    ends = {path for path in PACKAGE.rglob("*.py") if ends_of(path.read_text())}
    assert ends == {COMMIT}


@pytest.mark.parametrize(
    "source", ["core.commit(plan, 3, [])", "self.core.commit(plan, 3, [])", "x = 'core.commit(p)'"]
)
def test_another_end_is_found(source: str) -> None:
    """The test above can fail."""
    assert ends_of(source) == [1]


def test_the_stages_are_called_in_their_order() -> None:
    """Whatever issues without a kept plan resolves, checks, performs and commits, each once."""
    tree = ast.parse((PACKAGE / "issue" / "instruction.py").read_text())
    (unplanned,) = [node for node in ast.walk(tree) if getattr(node, "name", "") == "issue_unplanned"]
    calls = [node for node in ast.walk(unplanned) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    names = [node.func.id for node in sorted(calls, key=lambda node: node.lineno) if isinstance(node.func, ast.Name)]
    assert [name for name in names if name != "label"] == ["resolve", "check", "perform", "commit_call"]
