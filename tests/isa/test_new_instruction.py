"""A new instruction is its function and a line in the table of versions; tests of every instruction try it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nkitools

REPOSITORY = Path(__file__).parents[2]
FUNCTION = '''
@instruction
def halve(check: Check, dst: Dst, data: Src, name: str | None = None) -> Plan:
    """``dst = data / 2`` on the Vector Engine, in float32.

    Errors: NK101, NK102, NK107 to NK110, NK201, NK301. Source: nki.isa.halve (NKI 0.7).
    """
    guards.tiles(check, dst=dst, data=data)
    guards.same_elements(check, ("dst", dst), ("data", data))
    half = np.float32(0.5)
    compute = widened(lambda values, out: np.multiply(half, values, out=out), dst.dtype, data.shape)
    return Plan("vector", streaming(check.chip, data, 8), compute, made(dst={"data": SAME}), lanes="travel")
'''
ROW = "nki.isa\thalve\tnkitools.isa.elementwise\t0.7\t\t\t\tUse nisa.tensor_scalar.\n"
SCRIPT = """
import numpy as np
import nkitools
from docs.generate_instructions import instruction_page
from nkitools.strategies import dtypes
nkitools.install_stand_in(prefer="builtin")
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for _ in range(3):
        nisa.halve(dst=tile, data=tile)
    nl.store(out, tile)
    return out

x = np.arange(256, dtype=np.float32).reshape(8, 32)
assert np.array_equal(nkitools.simulate(kernel, x).outputs, x / 8)
try:
    nkitools.simulate(kernel, x, nki_version="0.6")
except nkitools.KernelError as error:
    assert error.finding.rule == "NK608" and "since NKI 0.7" in error.finding.message, error
assert "nisa.halve(dst=dst, data=data)" in instruction_page("halve")
dtypes("halve")
from tests.dialects.modern.valid_calls import CALLS, NEWEST
from tests.issue.element_calls import CALLS as FORMS
assert "halve" in CALLS and "halve" in NEWEST and "halve" in {each.instruction for each in FORMS}
"""


@pytest.mark.process
def test_two_files_of_the_package(tmp_path: Path) -> None:
    """It runs, is refused where the version lacks it, has a page with an example, and is in the tests' tables."""
    package = tmp_path / "nkitools"
    shutil.copytree(Path(nkitools.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("docs", "tests"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    for file, more in (("isa/elementwise.py", FUNCTION), ("facts/versions.tsv", ROW)):
        with (package / file).open("a", encoding="utf-8") as opened:
            opened.write(more)
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
