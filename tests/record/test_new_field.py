"""A further field of each instruction is a change of one file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nkitools

# Before the first method of `InstructionRecord`: a field of plans that no run shows, and a counter.
FIELDS = (
    "\n    def __repr__(self) -> str:\n        program",
    """\
    tiled: bool = False
    turn: int = 7

    def __repr__(self) -> str:
        program""",
)
COUNTER = ("    loop: int = -1", "    turn: int = 7\n    loop: int = -1")

SCRIPT = """
import numpy as np, nki, nki.isa as nisa, nki.language as nl
import nkitools
from nkitools.record.record import Record
from nkitools.record.run import Run

begin, made = Record.turn_of, []

def counted(record, program):
    begin(record, program)
    record.turn = len(made)
    made.append(program)

Record.turn_of = counted

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tile)
    return out

run = nkitools.simulate(kernel, np.ones((128, 4), np.float32), grid=2, rules="off")
loaded = Run.from_json(run.to_json())
for each in (run, loaded):
    assert [(one.turn, one.tiled) for one in each.instructions] == [(0, False)] * 2 + [(1, False)] * 2, each
    columns = each.instructions.columns().instructions
    assert columns["turn"].tolist() == [0, 0, 1, 1] and columns["tiled"].tolist() == [False] * 4
"""


@pytest.mark.process
def test_in_rows_columns_and_saved_runs(tmp_path: Path) -> None:
    """A value of the plan and a counter, declared in one file, are in a run's instructions, columns and saved file."""
    package = tmp_path / "nkitools"
    shutil.copytree(Path(nkitools.__file__).parent, package, ignore=shutil.ignore_patterns("examples", "__pycache__"))
    declared = package / "record" / "instruction_record.py"
    text = declared.read_text(encoding="utf-8")
    for before, after in (FIELDS, COUNTER):
        assert text.count(before) == 1
        text = text.replace(before, after)
    declared.write_text(text, encoding="utf-8")
    (tmp_path / "script.py").write_text(f"import nkitools\nnkitools.install_stand_in()\n{SCRIPT}", encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
