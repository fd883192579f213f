"""Debuggers stop in the author's frame, where a tensor says what it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import nkitools
from tests.processes import LEAN

REPOSITORY = Path(__file__).parents[2]

KERNEL = """
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x):
    for m in range(2):
        tile = nl.ndarray((4, 2), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[0:2], src=x[0:2])
        STOP
        nisa.memset(tile, float(m))
    return x

x = np.ones((4, 2), np.float32)
"""

# From Python 3.13 on a breakpoint stops at its own line, before at what comes next.
AT_THE_CALL = sys.version_info >= (3, 13)
TILE = "<tensor `tile` (SBUF, float32 [4, 2]) at (0, 0), rows 0..1 of 4 written>"


def debugged(commands: str, *command: str) -> str:
    """What ``python command...`` says when these commands are typed at its breakpoints."""
    paths = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, *command], input=commands, env=environment, capture_output=True, text=True, check=False
    )
    return done.stdout


@pytest.mark.process
@pytest.mark.parametrize("call", ["kernel(x)", "kernel[2](x)"])
def test_a_breakpoint_stops_in_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """In each iteration, of each program; looking at tensors and counters changes nothing of what follows."""
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text(KERNEL.replace("STOP", "breakpoint()") + f"print({call}.sum())\n")
    programs = 2 if "[2]" in call else 1
    said = debugged("m\ntile\nc\n" * 2 * programs, "-m", "nkitools", "run", "--rules", "report", "script.py")
    lines = said.splitlines()
    stop = "(12)kernel()\n-> breakpoint()" if AT_THE_CALL else "(13)kernel()\n-> nisa.memset(tile, float(m))"
    assert "> " + str(tmp_path / "script.py") + stop.partition("\n")[0] in lines
    assert said.count(f"script.py{stop}") == 2 * programs
    assert [line for line in lines if line.startswith("(Pdb) ") and line[6:].isdigit()] == [
        "(Pdb) 0",
        "(Pdb) 1",
    ] * programs
    assert said.count(f"(Pdb) {TILE}\n[[ 1  1]\n [ 1  1]\n [-- --]\n [-- --]]\n") == 2 * programs
    assert lines[-1] == "(Pdb) 8.0"


STEPPED = """
import nkitools
import numpy as np
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl

def helper(tile):
    nisa.memset(tile, 1.0)
    return tile

def kernel(x):
    tile = nl.ndarray((4, 2), dtype=nl.float32, buffer=nl.sbuf)
    breakpoint(); nisa.dma_copy(dst=tile, src=x)
    tile = helper(tile)
    return x

nkitools.simulate(kernel, np.ones((4, 2), np.float32))
"""


@pytest.mark.process
def test_steps_stay_in_the_authors_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in an instruction, although it stands on the line of the breakpoint, or is the next thing to step into."""
    monkeypatch.chdir(tmp_path)
    Path("script.py").write_text(STEPPED)
    said = debugged("s\n" * (5 + AT_THE_CALL) + "c\n", "script.py")
    stops = [line.partition("script.py")[2].partition("->")[0] for line in said.splitlines() if "> " in line]
    assert [each for each in stops if each] == [
        *(["(13)kernel()"] if AT_THE_CALL else []),
        "(14)kernel()",
        "(7)helper()",
        "(8)helper()",
        "(9)helper()",
        "(9)helper()",
        "(15)kernel()",
    ]


@pytest.mark.process
@pytest.mark.parametrize("variable", ["PYTHONBREAKPOINT", ""])
def test_another_debugger_is_the_users_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Named by the environment, or as the hook of the program; and the hook is put back after a run."""
    monkeypatch.chdir(tmp_path)
    own = "import sys\nsys.breakpointhook = lambda: print('mine')\n" if not variable else ""
    if variable:
        monkeypatch.setenv(variable, "other.stop")
    Path("other.py").write_text("def stop():\n    print('mine')\n")
    hook = "import sys; print(sys.breakpointhook is sys.__breakpointhook__)\n"
    Path("script.py").write_text(own + STEPPED + hook)
    assert debugged("", "script.py").splitlines() == ["mine", str(bool(variable))]


def test_the_hook_is_back_after_a_run() -> None:
    """Also after one that fails."""

    def failing() -> None:
        assert sys.breakpointhook is not sys.__breakpointhook__
        raise RuntimeError("the kernel's own")

    before, sys.breakpointhook = sys.breakpointhook, sys.__breakpointhook__
    try:
        with pytest.raises(RuntimeError, match="the kernel's own"):
            nkitools.simulate(failing)
        assert sys.breakpointhook is sys.__breakpointhook__
    finally:
        sys.breakpointhook = before


@pytest.mark.process
def test_pytests_debugger_stops_at_the_line_of_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not somewhere within nkitools."""
    monkeypatch.chdir(tmp_path)
    wrong = "nisa.dma_copy(dst=tile, src=x[0:3])"
    test = "import nkitools\n\ndef test_it():\n    nki.simulate(kernel)(x)\n"
    Path("test_it.py").write_text(KERNEL.replace("STOP", wrong) + test)
    load = ("-p", "no:cacheprovider", "-p", "nkitools.pytest_plugin") if not _is_installed() else ()
    said = debugged("m\ntile.shape\nq\n", "-m", "pytest", "--pdb", *LEAN, *load, "test_it.py")
    assert f"> {tmp_path / 'test_it.py'}(12)kernel()\n-> {wrong}\n(Pdb) 0\n(Pdb) (4, 2)\n" in said


def _is_installed() -> bool:
    from importlib.metadata import entry_points

    return any(entry.name == "nkitools" for entry in entry_points(group="pytest11"))
