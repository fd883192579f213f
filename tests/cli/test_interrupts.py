"""Ctrl-C gives exit code 130 and one line wherever it comes: imports, instructions, the page writer, workers."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import nkitools
from nkitools import __main__ as entry
from nkitools.cli import commands, main
from tests.children import line_of, python, started
from tests.launch.kernels import doubled

ONE_LINE = "nkitools: interrupted\n"


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ctrl_c: None) -> None:
    monkeypatch.chdir(tmp_path)


def command(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def press(*_: Any, **__: Any) -> None:
    """Send what Ctrl-C sends."""
    os.kill(os.getpid(), signal.SIGINT)


def test_while_the_command_line_is_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was a traceback of twenty lines."""
    half = ModuleType("nkitools.cli")
    monkeypatch.setattr(half, "__getattr__", press, raising=False)
    monkeypatch.setitem(sys.modules, "nkitools.cli", half)
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert (ended.value.code, capsys.readouterr().err) == (130, ONE_LINE)


def test_while_numpy_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's extension modules print a Ctrl-C and raise ImportError: it is held back until they are there."""
    after: list[bool] = []

    def imported(name: str) -> None:
        press()
        after.append(True)

    nkitools.simulate(doubled, np.ones((4, 4), np.float32)).save("run.json")
    monkeypatch.setattr(commands, "import_module", imported)
    done = command("timeline", "run.json")
    assert (done.exit_code, done.stderr, after) == (130, ONE_LINE, [True])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not list(Path().glob("*.pftrace"))


WRAPPED = {
    "of an import": 'try:\n    press()\nexcept KeyboardInterrupt:\n    raise ImportError("no umath")\n',
    "of a class": "class Named:\n    def __set_name__(self, *_):\n        press()\nclass Whole:\n    part = Named()\n",
    "of a regular module": "import json.decoder, re\nre.sub('x', press, 'x')\n",
}
PRESS = (
    "import os, signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "def press(*_):\n    os.kill(os.getpid(), signal.SIGINT)\n"
)


@pytest.mark.parametrize("where", WRAPPED)
def test_while_a_script_imports(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What Python makes of a Ctrl-C there is a Ctrl-C still; the line is the author's, not one of a library."""
    Path("script.py").write_text(PRESS + WRAPPED[where])
    done = command("run", "script.py")
    assert done.exit_code == 130
    said = capsys.readouterr().err + done.stderr
    assert said.startswith("nkitools: interrupted at script.py:")
    assert "Traceback" not in said


def test_an_import_error_stays_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """Only Ctrl-C is one."""
    Path("script.py").write_text("try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise ImportError('mine')\n")
    done = command("run", "script.py")
    assert done.exit_code == 1
    assert "ImportError: mine" in capsys.readouterr().err + done.stderr


def test_while_a_page_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old page stays, and nothing is left beside it."""
    nkitools.simulate(doubled, np.ones((4, 4), np.float32)).save("run.json")
    Path("page.html").write_text("before")
    monkeypatch.setattr("nkitools.record.whole_file.os.replace", press)
    done = command("view", "-o", "page.html", "run.json")
    assert (done.exit_code, done.stderr) == (130, ONE_LINE)
    assert {each.name for each in Path().iterdir()} == {"page.html", "run.json"}
    assert Path("page.html").read_text() == "before"


LONG = """\
import threading, numpy as np, nki, nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for turn in range(10**9):
        nl.store(out, nl.load(x))
        turn != 4 or threading.Timer(0.2, press).start()
    return out

kernel(np.ones((4, 4), np.float32))
"""


def test_inside_an_instruction(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever nkitools is doing, the line is the kernel's, and what has run is saved."""
    Path("script.py").write_text(PRESS + LONG)
    done = command("run", "--save", "run.json", "script.py")
    said = capsys.readouterr().err + done.stderr
    assert done.exit_code == 130
    assert said.splitlines()[0] in [f"nkitools: interrupted at script.py:{line}" for line in (10, 11, 12)]
    assert "Traceback" not in said
    assert len(nkitools.load_run("run.json").instructions) > 3


@pytest.mark.process
def test_a_process_that_ctrl_c_ends() -> None:
    """As a terminal sends it, to the whole group: one line, no traceback of a worker, 130."""
    Path("script.py").write_text(PRESS + "import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    with started(python("-m", "nkitools", "run", "script.py")) as process:
        assert line_of(process) == "ready\n"
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    # Python may see the signal as the print ends, one line before.
    lines = [f"nkitools: interrupted at script.py:{line}" for line in (6, 7)]
    assert process.returncode == 130
    assert said.splitlines()[0] in lines
    assert "Traceback" not in said
