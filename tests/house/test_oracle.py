"""The oracle of fuzzed programs knows nothing of what it judges."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from tests.house.sources import nodes_of

ORACLE = Path(__file__).parents[1] / "oracle"
ALLOWED = {"numpy", "ml_dtypes", *sys.stdlib_module_names}


def test_the_oracle_imports_nothing_of_the_package() -> None:
    """NumPy, ml_dtypes, the standard library and itself; no import by a name that is computed."""
    found = set()
    files = sorted(ORACLE.glob("*.py"))
    for file in files:
        for node in nodes_of(file):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level
                found.add(str(node.module))
            elif isinstance(node, ast.Name | ast.Attribute):
                assert (node.id if isinstance(node, ast.Name) else node.attr) not in ("import_module", "__import__")
    assert len(files) >= 4
    foreign = {name for name in found if name.partition(".")[0] not in ALLOWED}
    assert {name for name in foreign if not f"{name}.".startswith("tests.oracle.")} == set()
