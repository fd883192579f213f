"""`nkitools doctor FILE`: the command that runs a file, told from its text."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from nkitools.cli import main
from nkitools.field.file_command import command_for
from nkitools.targets import examination
from nkitools.targets.examination import Part

KERNEL = """
import nki
import nki.language as nl
import numpy as np

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.add(tile, tile))
    return out
"""
TEST = "\ndef test_it({fixture}):\n    assert (double(np.ones((4, 4), np.float32)) == 2).all()\n"
PALLAS = "from jax.experimental import pallas as pl\ndef f(x):\n    return pl.pallas_call(None)(x)\n"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        (KERNEL + "print(double(np.ones((4, 4), np.float32)))\n", "nkitools run {file}"),
        (KERNEL + "if __name__ == '__main__':\n    double(np.ones((4, 4), np.float32))\n", "nkitools run {file}"),
        (KERNEL + "result = double(np.ones((4, 4), np.float32)) + 1\n", "nkitools run {file}"),
        (KERNEL.replace("import nki\n", "from neuronxcc import nki\n") + "double(1)\n", "nkitools run {file}"),
        (KERNEL + TEST.format(fixture=""), "pytest -o nki_stand_in=always {file}"),
        (KERNEL + TEST.format(fixture="device_prints"), "pytest {file}"),
        (KERNEL + "class TestIt:\n    def test_it(self):\n        pass\n", "pytest -o nki_stand_in=always {file}"),
        (KERNEL + "class Tests(unittest.TestCase):\n    pass\n", "pytest -o nki_stand_in=always {file}"),
        ("from beside import double\ndouble(1)\n", "nkitools run {file}"),
        ("import nkitools\n" + KERNEL + TEST.format(fixture=""), "pytest {file}"),
        (KERNEL + "inputs = (np.ones((4, 4), np.float32),)\n", "nkitools estimate {file}::double"),
        (KERNEL + "def inputs():\n    return (np.ones((4, 4)),)\n", "nkitools estimate {file}::double"),
        (KERNEL, "nkitools estimate {file}::double   # once the file has `inputs = (array, ...)`"),
        (PALLAS + "x = 1\ninputs = (x,)\n", "nkitools estimate {file}::f"),
        (PALLAS + "print(f(1))\n", "python {file}"),
        ("print('hello')\n", "python {file}"),
    ],
)
def test_the_command_follows_from_the_text(tmp_path: Path, text: str, command: str) -> None:
    """For scripts, tests with and without nkitools, kernels with and without inputs, in both dialects and Pallas.

    A script whose kernels are in a file beside it is one, too.
    """
    file = tmp_path / "some file.py"
    file.write_text(text)
    (tmp_path / "beside.py").write_text(KERNEL)
    assert command_for(file) == command.format(file=shlex.quote(str(file)))


@pytest.mark.process
@pytest.mark.parametrize(
    "text",
    [
        KERNEL + "print(double(np.ones((4, 4), np.float32)))\n",
        KERNEL + TEST.format(fixture=""),
        KERNEL + "inputs = (np.ones((4, 4), np.float32),)\n",
    ],
)
def test_the_command_runs_the_file(tmp_path: Path, text: str) -> None:
    """Each of the three ends well, as it stands."""
    file = tmp_path / "test_it.py"
    file.write_text(text)
    _, *words = shlex.split(command_for(file))
    module = "pytest" if "-o" in words else "nkitools"
    done = subprocess.run([sys.executable, "-m", module, *words], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_last_line_of_doctor_is_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In text and in JSON; a file that is no Python, or beside --hardware, is refused in a line."""
    monkeypatch.setattr(examination, "examine", lambda: [Part("Packages", "jax", True, "0.10.2", "Pallas")])
    file = tmp_path / "script.py"
    file.write_text(KERNEL + "double(1)\n")
    told = CliRunner().invoke(main, ["doctor", str(file)])
    assert told.stdout.splitlines()[-1] == f"Run {file}:  nkitools run {file}"
    told = CliRunner().invoke(main, ["doctor", "--json", str(file)])
    assert json.loads(told.stdout)["command"] == f"nkitools run {file}"
    refused = CliRunner().invoke(main, ["doctor", "--hardware", str(tmp_path), str(file)])
    assert refused.exit_code == 2
    file.write_text("def (:\n")
    refused = CliRunner().invoke(main, ["doctor", str(file)])
    assert (refused.exit_code, "cannot be read as Python" in refused.output) == (2, True)


def test_own_modules_are_followed(tmp_path: Path) -> None:
    """A script and a file of inputs that have NKI by way of a package; a re-exported kernel is one, a function none."""
    files = {
        "pyproject.toml": "[project]\nname = 'shop'\n",
        "src/shop/__init__.py": "from .doubles import double as double\nfrom .doubles import help_it as help_it\n",
        "src/shop/doubles.py": KERNEL + "\n\ndef help_it():\n    return 1\n",
        "scripts/go.py": "from shop import double\n\nif __name__ == '__main__':\n    print(double)\n",
        "bench/cases.py": "from shop import help_it\nfrom shop import double as twice\n\ninputs = (1,)\n",
        "bench/numbers.py": "import json\n\ninputs = (1,)\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert command_for(tmp_path / "scripts/go.py") == f"nkitools run {tmp_path}/scripts/go.py"
    assert command_for(tmp_path / "bench/cases.py") == f"nkitools estimate {tmp_path}/bench/cases.py::twice"
    assert command_for(tmp_path / "bench/numbers.py") == f"python {tmp_path}/bench/numbers.py"
