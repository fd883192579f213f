"""``nkitools lint --migrate`` and ``--fix``: from an older NKI to the newest one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import nkitools
from nkitools import options
from nkitools.cli import main
from nkitools.lint.interface import Dialects
from nkitools.lint.migration import migration
from nkitools.lint.rewriting import rewritten
from tests.dialects.modern.test_python_under_tracing import kernel_of
from tests.lint.linted import LEGACY, MODERN, findings, places

OLD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros(x.shape, dtype=x.dtype)
    for part in nl.affine_range(2):
        columns = nl.ds(part * 32, 32)
        for i in nl.dynamic_range(1, 4):
            tile = nl.load(x[:, columns])
            nisa.tensor_tensor(dst=total[:, columns], data1=total[:, columns], data2=tile, op=nl.add,
                               engine=nisa.vector_engine)
    nl.store(out, total)
    return out
"""
NEW = OLD.replace("nl.affine_range", "range").replace("for i in nl.dynamic_range(1, 4):", "def i_body(i):")
NEW = NEW.replace("nisa.vector_engine)", "nisa.engine.vector)\n\n        nl.fori_loop(1, 4, i_body)")
X = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
STAYS = {
    "a loop that is left": "for i in nl.dynamic_range(4):\n    break",
    "a loop that leaves a value": "n = 0\nfor i in nl.dynamic_range(4):\n    n = n + 1",
    "a counter that is used afterwards": "for i in nl.dynamic_range(4):\n    pass\nprint(i)",
    "a loop with an else": "for i in nl.dynamic_range(4):\n    pass\nelse:\n    pass",
}


def test_what_is_rewritten() -> None:
    """Ranges, loops on the device and constants; a second time nothing is left."""
    assert rewritten(OLD, "old.py") == NEW
    assert rewritten(NEW, "new.py") == NEW


def test_loops_in_loops() -> None:
    """The inner one ends first."""
    text = MODERN + "    for i in nl.dynamic_range(2):\n        for j in nl.dynamic_range(3):\n            f(x)\n"
    body = rewritten(text, "old.py").removeprefix(MODERN)
    expected = "def i_body(i): def j_body(j): f(x) nl.fori_loop(0, 3, j_body) nl.fori_loop(0, 2, i_body)"
    assert " ".join(body.split()) == expected


def test_the_rewritten_kernel_computes_the_same(tmp_path: Path) -> None:
    """Three times x, under 0.7 too; there is nothing to find any more."""
    path = tmp_path / "new.py"
    path.write_text(rewritten(OLD, "old.py"))
    np.testing.assert_array_equal(nkitools.simulate(kernel_of(path), X.copy(), nki_version="0.7").outputs, 3 * X)
    with options.override(nki_version="0.7"):
        assert findings(path) == []
    assert migration([path], Dialects()) == []


@pytest.mark.parametrize("body", STAYS.values(), ids=STAYS)
def test_a_loop_whose_body_is_no_function_stays(body: str) -> None:
    """Its state would not go on from turn to turn."""
    text = MODERN + "".join(f"    {line}\n" for line in body.splitlines())
    assert rewritten(text, "old.py") == text


def test_each_line_comes_with_the_line_to_write(tmp_path: Path) -> None:
    """Those that 0.7 changes, and no finding that every version has."""
    path = tmp_path / "old.py"
    path.write_text(OLD + "\n\n@nki.jit\ndef wrong(x):\n    nl.lod(x)\n")
    found = migration([path], Dialects())
    assert places(found) == [("NK618", 10, 17), ("NK608", 12, 18), ("NK618", 15, 39)]
    assert found[0].remedy == "Write `for part in range(2):`."
    assert found[1].remedy == "Write `def i_body(i):`, and behind the block `nl.fori_loop(1, 4, i_body)`."
    assert found[2].remedy == "Write `engine=nisa.engine.vector)`."


def test_a_legacy_file_is_compared_with_the_modern_dialect(tmp_path: Path) -> None:
    """Its imports, and the names that only the legacy dialect has."""
    path = tmp_path / "old.py"
    path.write_text(LEGACY + "    i = nl.arange(128)\n")
    found = migration([path], Dialects())
    assert [(each.rule, each.line) for each in found] == [("NK608", 1), ("NK608", 2), ("NK608", 3), ("NK608", 8)]
    assert found[0].remedy == "Write `import nki as nki`."


def test_the_command(tmp_path: Path) -> None:
    """``--migrate`` shows what to write, ``--fix`` writes it."""
    path = tmp_path / "old.py"
    path.write_text(OLD)
    shown = CliRunner().invoke(main, ["lint", "--migrate", str(path)])
    assert "Write `for part in range(2):`." in shown.output.replace("\n", " ")
    assert path.read_text() == OLD
    CliRunner().invoke(main, ["lint", "--fix", str(path)])
    assert path.read_text() == NEW


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("from nki.collectives import all_redoce", "NK607"),
        ("from nki.compiler import enable_stack_allocator", "NK608"),
        ("from nki.compiler import CompileConfiguration", "NK607"),
    ],
)
def test_names_of_the_smaller_modules(line: str, rule: str, tmp_path: Path) -> None:
    """An imported name of nki.collectives and of nki.compiler must be there."""
    path = tmp_path / "kernel.py"
    path.write_text(f"{line}\n{MODERN}    pass\n")
    assert [(each.rule, each.line) for each in findings(path)] == [(rule, 1)]


def test_names_of_collectives_in_a_kernel(tmp_path: Path) -> None:
    """A misspelt one is found at its call."""
    path = tmp_path / "kernel.py"
    path.write_text(f"import nki.collectives as ncc\n{MODERN}    ncc.all_redoce(x)\n    ncc.rank_id()\n")
    assert [(each.rule, each.line) for each in findings(path)] == [("NK607", 9)]
