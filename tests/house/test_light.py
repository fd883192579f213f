"""The package is light to import: whoever does not run a kernel does not pay for one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).parents[2]

HEAVY = {"click", "hypothesis", "jax", "jinja2", "ml_dtypes", "numpy", "rich", "scipy", "torch"}


@pytest.mark.parametrize(
    "module",
    [
        "nkitools",
        "nkitools.facts.generations",
        "nkitools.facts.options",
        "nkitools.pytest_plugin",
        "nkitools.record.run_listeners",
        "nkitools.rules.finding",
    ],
)
def test_importing_it_imports_nothing_heavy(module: str) -> None:
    """Every pytest session of every user imports these, whether it tests kernels or not."""
    code = f"import sys, {module}; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
