"""The smoke test: a wheel in an empty environment outside of the checkout, where a newcomer's first commands work."""

from __future__ import annotations

import os
import re
import shutil
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

_TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorial"
# Blocks of commands as the tutorials have them, after the installation: the page, which block, the files that the
# reader has saved by then, and what the commands must say.
_PASTED: tuple[tuple[str, int, dict[str, str], str], ...] = (
    ("first-kernel.md", 1, {"row_sums_first.py": "row_sums.py", "test_row_sums.py": "test_row_sums.py"}, "NK101"),
    ("first-kernel.md", 2, {"row_sums.py": "row_sums.py"}, "0 findings, 2 device prints"),
    ("first-operator.md", 1, {}, "3 passed"),
    ("first-pallas-kernel.md", 1, {}, "3 passed"),
)


def smoke_test(wheel: Path) -> int:
    """Return 0 where every command does as it must; the first that does not is shown."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
        programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        install = [str(programs / "python"), "-m", "pip", "install", "--quiet", f"{wheel.resolve()}[pallas,test]"]
        subprocess.run(install, check=True, cwd=scratch)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NKI"))}
        environment["PATH"] = f"{programs}{os.pathsep}{environment['PATH']}"
        (folder / "author").mkdir()
        for command, said in _COMMANDS:
            if not _does(command, said, folder / "author", environment):
                return 1
        for page, number, files, said in _PASTED:
            reader = folder / page
            reader.mkdir(exist_ok=True)
            for name, saved_as in files.items():
                shutil.copy(_TUTORIALS / "example" / name, reader / saved_as)
            text = (_TUTORIALS / page).read_text(encoding="utf-8")
            pasted = re.findall(r"^```sh\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)[number]
            if not _does(("sh", "-c", pasted), said, reader, environment, may_fail=said.startswith("NK")):
                return 1
    return 0


def _does(
    command: tuple[str, ...], said: str, folder: Path, environment: dict[str, str], *, may_fail: bool = False
) -> bool:
    """Run a command there, and return whether it ends and speaks as it must."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    words = " ".join(command[-1].split()) if command[0] == "sh" else " ".join(command)
    if (done.returncode and not may_fail) or said not in done.stdout + done.stderr:
        print(f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}", file=sys.stderr)
        return False
    print(f"{words}: as it must")
    return True
