"""What takes fork, file locks, limits or signals is asked for where it is needed: the simulator runs without."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

# A Python without what Windows lacks, as far as the standard library itself allows it.
WITHOUT = """
import os, signal, subprocess, sys
import pytest
from click.testing import CliRunner

sys.modules.update(dict.fromkeys(("fcntl", "resource", "termios")))
for module, names in {
    os: ("fork", "killpg", "setsid", "sched_getaffinity", "mkfifo"),
    signal: ("SIGKILL", "SIGUSR1", "SIGALRM", "SIGHUP", "SIGCHLD"),
}.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
"""
PROGRAM = (
    WITHOUT
    + """
import numpy as np
from nkitools.cli import main
from nkitools.customop import load
from nkitools.customop.errors import BuildError

for words in (["doctor"], ["run", "double.py"], ["view", "-o", "page.html", "double.py"], ["lint", "double.py"]):
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, (words, done.output, done.exception)
try:
    load("scale", ["scale.cpp"], ["scale_shape.cpp"])
except BuildError as error:
    print(error)
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-m", "sim", "test_pinned.py"]))
"""
)


@pytest.mark.process
def test_the_simulator_needs_nothing_of_unix(tmp_path: Path) -> None:
    """Commands and a test session run without it, and an operator is refused in a sentence."""
    for path in (REPOSITORY / "docs" / "how-to" / "example").iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "custom operators run on Linux and macOS" in done.stdout
    assert "7 passed" in done.stdout
