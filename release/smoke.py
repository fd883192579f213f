"""The smoke test: a wheel in an empty environment outside of the checkout, where a newcomer's first commands work."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

# What is run there, each with a text that it must say.
_COMMANDS = (
    (("nkitools", "demo", "--page", "page.html"), "Next:"),
    (("nkitools", "doctor"), "nkitools"),
    (("nkitools", "new", "centred"), "run the tests"),
    (("pytest", "-q", "-m", "sim"), "4 passed"),
    (("nkitools", "lint", "."), "nothing found"),
    (("nkitools", "estimate", "centred.py::centred"), "us"),
)


def smoke_test(wheel: Path) -> int:
    """Return 0 where every command does as it must; the first that does not is shown."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        install = [str(programs / "python"), "-m", "pip", "install", "--quiet", f"{wheel.resolve()}[test]"]
        subprocess.run(install, check=True, cwd=scratch)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NKI"))}
        (folder / "author").mkdir()
        for command, said in _COMMANDS:
            done = subprocess.run(
                [str(programs / command[0]), *command[1:]],
                cwd=folder / "author",
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode or said not in done.stdout + done.stderr:
                print(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}", file=sys.stderr)
                return 1
            print(f"{' '.join(command)}: as it must")
    return 0
