"""``nkitools compare``: one kernel, two targets, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkitools.targets import comparison_worker
from nkitools.targets.target import OtherDegree
from tests.cases import FULL
from tests.children import has_ended
from tests.fakes import machines

pytestmark = pytest.mark.process

REPOSITORY = Path(__file__).parents[2]
KERNEL = """
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def square(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    narrow = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=narrow, data1=tile, data2=tile, op=nl.multiply)
    nl.store(out, nl.add(narrow, narrow))
    return out

def inputs():
    return {"x": np.linspace(1, 2, 32, dtype=np.float32).reshape(4, 8)}
"""


class Author:
    """Runs the command in a directory with a kernel, on a machine with a fake Inferentia2."""

    def __init__(self, directory: Path, root: Path) -> None:
        self.directory, self.root = directory, root
        (directory / "square.py").write_text(KERNEL)

    def run(self, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """The command's end."""
        path = os.pathsep.join([machines.packages("aws"), str(REPOSITORY)])
        environment = {**os.environ, "NKITOOLS_SYSROOT": str(self.root), "PYTHONPATH": path, **variables}
        command = [sys.executable, "-m", "nkitools", "compare", *args]
        return subprocess.run(
            command, cwd=self.directory, env=environment, capture_output=True, text=True, timeout=120, check=False
        )


@pytest.fixture
def author(tmp_path: Path) -> Author:
    """On an instance."""
    return Author(tmp_path, machines.neuron_root(tmp_path / "root"))


@pytest.mark.soak
@pytest.mark.parametrize("is_native", [False, True] if FULL else [False])  # torch is imported twice for the second
def test_targets_that_agree(author: Author, is_native: bool) -> None:
    """Exit code 0, one line; also for a file that imports torch on a Trn2 of today.

    There torch leaves AWS's backend alone in simulation; on the device it loads the backend, which imports AWS's nki.
    """
    told = {}
    if is_native:
        machines.neuron_root(author.root / "newer", instance="Trn2", architecture="NCv3")
        (author.directory / "square.py").write_text("import torch\n" + KERNEL)
        told = {"PYTHONPATH": os.pathsep.join([machines.packages("native", "aws"), str(REPOSITORY)])}
        told["NKITOOLS_SYSROOT"] = str(author.root / "newer")
    done = author.run("square.py::square", **told)
    assert (done.returncode, done.stdout) == (0, "square: sim and hw agree\n"), done.stderr


def test_a_kernel_of_another_degree_is_run_in_a_process_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The degree must be set before AWS's packages are imported: the process begins anew, once."""
    begun: list[list[str]] = []

    def refused(request: dict[str, Any]) -> None:
        raise OtherDegree("`double` is for logical cores of 2 physical ones", 2)

    def replaced(program: str, command: list[str]) -> None:
        begun.append(command)
        raise SystemExit

    monkeypatch.setattr(comparison_worker, "play", refused)
    monkeypatch.setattr("os.execv", replaced)
    monkeypatch.setattr(sys, "argv", ["", json.dumps({"side": "hw"})])
    with pytest.raises(SystemExit):
        comparison_worker.main()
    assert json.loads(begun[0][-1]) == {"side": "hw", "degree": 2}
    monkeypatch.setattr(sys, "argv", ["", begun[0][-1]])
    assert comparison_worker.main() == 2


def test_targets_that_differ(author: Author, tmp_path: Path) -> None:
    """Exit code 1; the element, the line that wrote it; arguments and outputs are kept for a report."""
    done = author.run("square.py::square", "--keep", "kept", FAKE_NEURON="wrong")
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "square: sim and hw differ"
    assert "element [0, 0] (0): 2.0 and 3.0; 32 of 32 differ" in lines[2]
    assert "square.py:13" in lines[3]
    x = np.linspace(1, 2, 32, dtype=np.float32).reshape(4, 8)
    with np.load(tmp_path / "kept/inputs.npz") as kept:
        np.testing.assert_array_equal(kept["x"], x)
    with np.load(tmp_path / "kept/sim.npz") as sim, np.load(tmp_path / "kept/hw.npz") as hw:
        np.testing.assert_array_equal(hw["outputs"], sim["outputs"] + 1)
        np.testing.assert_allclose(sim["outputs"], 2 * x * x, rtol=2**-8)


def test_low_precision_is_an_explanation(author: Author) -> None:
    """A device that keeps float32 where the simulator rounds to bfloat16 differs by what rounding moves the result."""
    done = author.run("square.py::square", "--between", "sim,official", "--format", "json", FAKE_NEURON="wide")
    found = json.loads(done.stdout)
    assert (done.returncode, found["agree"]) == (1, False), done.stderr
    (said,) = found["explanations"]
    assert said.startswith("low precision explains it: with float32 in the place of narrower dtypes")


def test_what_dtypes_explain_beyond_the_bounds_is_undecided(author: Author) -> None:
    """With --tolerance auto a float32 output may be off by 1e-4; a bfloat16 tile before it explains more."""
    asked = ("--between", "sim,official", "--tolerance", "auto")
    done = author.run("square.py::square", *asked, FAKE_NEURON="wide")
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "square: sim and official are undecided"
    assert lines[-1].startswith("output (float32): rtol=0.0001")
    assert "are explained, more than may be derived" in lines[-1]
    found = json.loads(author.run("square.py::square", *asked, "--format", "json", FAKE_NEURON="wide").stdout)
    assert (found["verdict"], found["same"]) == ("undecided", False)


def test_arguments_come_from_a_file(author: Author, tmp_path: Path) -> None:
    """An .npz file by the names of the parameters."""
    np.savez(tmp_path / "given.npz", x=np.ones((2, 2), np.float32))
    (tmp_path / "square.py").write_text(KERNEL.partition("def inputs")[0])
    assert author.run("square.py::square", "--inputs", "given.npz").returncode == 0
    done = author.run("square.py::square")
    assert done.returncode == 2
    assert "says no inputs: give it `inputs`" in done.stderr


def test_nothing_runs_before_the_command_is_right(author: Author, tmp_path: Path) -> None:
    """A file without the kernel, or without inputs, is not run; a folder that cannot be made is one sentence."""
    (tmp_path / "loud.py").write_text("print('ran')\n\n\ndef kernel(x):\n    return x\n")
    (tmp_path / "file").write_text("")
    for args in (("loud.py::other",), ("loud.py::kernel",), ("square.py::square", "--keep", "file/kept")):
        done = author.run(*args)
        assert done.returncode == 2
        assert "ran\n" not in done.stdout + done.stderr
    assert done.stderr == "Error: file/kept cannot be read or written: Not a directory\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("square.py::cube",), "square.py has no kernel cube; it has inputs, square"),
        (("square.py",), "square.py names no kernel: write FILE::KERNEL"),
        (("triangle.py::square",), "triangle.py is no file"),
        (("square.py::square", "--between", "sim"), "sim: two different ones of sim, official, hw"),
        (("square.py::square", "--between", "sim,tpu"), "an NKI kernel does not run on TPU"),
    ],
)
def test_mistakes_in_the_command(author: Author, args: tuple[str, ...], said: Any) -> None:
    """Exit code 2 and what is wrong."""
    done = author.run(*args)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("plug", "said"),
    [
        ("crash", "neuron failed (SIGABRT):"),
        ("hang", "neuron did not end within 8 s (NKITOOLS_TIMEOUT). Where it stands:"),
    ],
    ids=["crash", "hang"],
)
def test_a_target_that_crashes_or_hangs(author: Author, plug: str, said: str) -> None:
    """Its last words, and no verdict; what it has started ends with it."""
    kernel = (
        KERNEL
        + "\nimport os, subprocess\nif 'NEURON_RT_VISIBLE_CORES' in os.environ:\n    "
        + ("open('process', 'w').write(str(subprocess.Popen(['sleep', '1000']).pid))\n")
    )
    (author.directory / "square.py").write_text(kernel)
    done = author.run("square.py::square", "--between", "neuron,sim", FAKE_NEURON=plug, NKITOOLS_TIMEOUT="8")
    assert done.returncode == 1
    assert said in done.stderr
    assert '__init__.py", line' in done.stderr
    assert done.stdout == ""
    # The environment stood before the file was imported, which then began this process.
    assert has_ended(int((author.directory / "process").read_text()))


PALLAS = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from nkitools.targets.jax_devices import TpuDevice

TpuDevice.platform = "cpu"

def double_kernel(x_ref, out_ref):
    out_ref[...] = x_ref[...] * 2

def double(x):
    with pltpu.force_tpu_interpret_mode(True):
        return pl.pallas_call(double_kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

inputs = (jnp.ones((8, 128)),)
"""


@pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")
def test_a_jax_function(author: Author) -> None:
    """On a (fake) TPU; AWS's simulator has nothing to say of it, and is not taken for a second opinion."""
    machines.node_root(author.root, "/dev/accel0")
    (author.directory / "double.py").write_text(PALLAS)
    done = author.run("double.py::double", NKITOOLS_PALLAS_MODES="interpret")
    assert (done.returncode, done.stdout) == (0, "double: sim and hw agree\n"), done.stderr
    done = author.run("double.py::double", "--between", "official,sim")
    assert done.returncode == 2
    assert "AWS's simulator runs NKI kernels alone" in done.stderr
