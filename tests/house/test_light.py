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


KERNEL = """
import nkitools; nkitools.install_stand_in()
import sys
import nki, numpy as np
import nki.isa as nisa, nki.language as nl

@nki.jit
def kernel(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out

x = np.ones((128, 64), np.float32)
assert (nki.simulate(kernel)(x) == 2 * x).all()
for name, module in sorted(sys.modules.items()):
    if name.partition(".")[0] == "nkitools":
        print(name, module.__file__)
"""
MOST_MODULES, MOST_LINES = 220, 30_000
NOT_NEEDED = frozenset({
    "cli", "customop", "kernel_file", "mx", "pallas", "precision", "pytest_plugin", "report", "serve", "strategies",
    "suggestions", "sweeps", "targets", "timing", "why",
})  # fmt: skip


def test_a_kernel_of_three_lines_loads_what_it_needs(tmp_path: Path) -> None:
    """Its instructions, the record, the rules that judge it and its source: no other verb's rooms, a bounded number."""
    file = tmp_path / "three_lines.py"
    file.write_text(KERNEL)
    done = subprocess.run([sys.executable, str(file)], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    loaded = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert {name.split(".")[1] for name in loaded if "." in name} & NOT_NEEDED == set()
    assert "nkitools.lint.checks.subset" in loaded, "the source rules have not looked at the kernel"
    lines = sum(len(Path(each).read_text().splitlines()) for each in loaded.values())
    assert len(loaded) <= MOST_MODULES
    assert lines <= MOST_LINES


def test_what_few_kernels_need_is_loaded_when_they_need_it(tmp_path: Path) -> None:
    """The three-line kernel has no masks, gathers, watches or findings; its classes are made without dataclasses."""
    file = tmp_path / "three_lines.py"
    file.write_text(KERNEL + 'print("dataclasses", "dataclasses" in sys.modules)\n')
    done = subprocess.run([sys.executable, str(file)], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    loaded = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert loaded.pop("dataclasses") == "False"
    for module in ("chip.masked_out", "issue.scatter_order", "record.watch.watching", "chip.pictures"):
        assert f"nkitools.{module}" not in loaded, module
