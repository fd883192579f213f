"""What is printed never breaks off what prints it: without a reader, on a full disk, closed, or in ASCII."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nkitools.output_streams import write_line
from tests.cases import each

pytestmark = pytest.mark.process

SCRIPT = """
import numpy as np
import nki
import nki.language as nl

@nki.jit
def copy(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for step in range(300):
        nl.device_print("t\u00fcle", tile)
    nl.store(out, tile)
    return out

print("\u00e4", nki.simulate(copy)(np.ones((4, 4), np.float32)).sum())
open("reached", "w").close()
"""
SAID = {"run": "nkitools: 1 kernel run, 0 findings, 300 device prints\n"}  # on stderr
FULL = "nkitools: standard output cannot be written: No space left on device\n"
VERBS = (
    ("--help",), ("rules",), ("rules", "--format", "json"), ("explain", "NK101"),
    ("lint", "--format", "json", "script.py"), ("guide",), ("doctor",), ("run", "script.py"),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONIOENCODING", "PYTHONUTF8", "PYTHONUNBUFFERED"):
        monkeypatch.delenv(name, raising=False)
    Path("script.py").write_text(SCRIPT, encoding="utf-8")


def started(*words: str, shell: str = "", stdout: int = subprocess.PIPE, **said: str) -> tuple[int, str, str]:
    """Return the exit code, stdout and stderr of a command, behind the redirections of ``shell``."""
    command = ["sh", "-c", f'exec "$@" {shell}', "sh", sys.executable, "-m", "nkitools", *words]
    done = subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, env={**os.environ, **said}, timeout=120, check=False
    )
    return done.returncode, (done.stdout or b"").decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


@each("words", VERBS)
def test_a_reader_that_has_gone_ends_no_command(words: tuple[str, ...]) -> None:
    """Exit code 0 and not a word of it, as behind `| head`; a script runs to its end."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        code, _, stderr = started(*words, stdout=writing)
    finally:
        os.close(writing)
    assert (code, stderr) == (0, SAID.get(words[0], ""))
    assert Path("reached").exists() == (words[0] == "run")


@each("words", VERBS)
def test_a_full_disk_is_one_line_at_the_end(words: tuple[str, ...]) -> None:
    """Exit code 2, and the cause; a script runs to its end before."""
    if not os.path.exists("/dev/full"):
        pytest.skip("the system has no /dev/full")
    code, _, stderr = started(*words, shell="> /dev/full")
    assert (code, stderr) == (2, SAID.get(words[0], "") + FULL)
    assert Path("reached").exists() == (words[0] == "run")


@each("words", VERBS)
def test_closed_streams_are_no_error(words: tuple[str, ...]) -> None:
    """Output goes nowhere, and into no file that the command opens; no stream at all is no error either."""
    assert started(*words, shell=">&-") == (0, "", SAID.get(words[0], ""))
    assert started(*words, shell="<&- >&- 2>&-") == (0, "", "")
    assert not Path("reached").exists() or Path("reached").read_text() == ""


@each("words", VERBS)
@each("said", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
def test_what_the_encoding_lacks_is_an_escape(words: tuple[str, ...], said: dict[str, str]) -> None:
    """An ASCII terminal shows every text, and no command ends for it."""
    code, stdout, stderr = started(*words, **said)
    assert (code, stderr) == (0, SAID.get(words[0], ""))
    if words[0] == "run":
        assert stdout.isascii()
        assert stdout.startswith("t\\xfcle [program 0, step=0, script.py:11]")
        assert stdout.endswith("\n\\xe4 16.0\n")


def test_a_script_without_the_command_prints_as_well() -> None:
    """Device prints under plain Python: an ASCII stream and a reader that has gone do not end the kernel."""
    prologue = "import sys, nkitools; nkitools.install_stand_in()\n"
    ending = "print = lambda *_: None\n"
    program = prologue + ending + SCRIPT
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, timeout=120, check=True)
    assert done.stdout.startswith(b"t\\xfcle ")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        Path("reached").unlink()
        subprocess.run(command, stdout=writing, stderr=subprocess.DEVNULL, timeout=120, check=False)
    finally:
        os.close(writing)
    assert Path("reached").exists()


def test_a_line_for_a_stream_that_does_not_take_it() -> None:
    """None takes nothing; an encoding takes escapes; a line without room is left out."""
    write_line("x", None)
    stream = io.TextIOWrapper(io.BytesIO(), "latin-1")
    write_line("\u00fc \u2192", stream)
    assert stream.buffer.getvalue() == b"\xfc \\u2192\n"  # type: ignore[attr-defined]

    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    write_line("x", Full())
