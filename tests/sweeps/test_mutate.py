"""Mistakes in a kernel under the author's own tests."""

from __future__ import annotations

import importlib.machinery
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner

from nkitools.cli import main
from nkitools.edits.candidates import KINDS
from nkitools.sweeps.distinguishing import Results, _apart, distinguishing
from nkitools.sweeps.local_engine import LocalEngine
from nkitools.sweeps.mutate import USUAL
from nkitools.sweeps.tests_of_author import Call, _forget, run_tests

KERNEL = """import nki
import nki.isa as nisa
import nki.language as nl

BLOCK = 64
OTHER = 3


def width(x, start):
    return min(BLOCK, x.shape[1] - start)


def unused(x):
    return min(OTHER, x)


@nki.jit
def doubled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for start in range(0, x.shape[1], BLOCK):
        tile = nl.ndarray((x.shape[0], width(x, start)), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[:, nl.ds(start, tile.shape[1])])
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
        nisa.dma_copy(dst=out[:, nl.ds(start, tile.shape[1])], src=tile)
    return out
"""
TESTS = """import numpy as np
from doubled import doubled


def test_doubled(run_kernel):
    x = np.ones((4, COLUMNS), np.float32)
    assert (run_kernel(doubled, x) == 2 * x).all()
"""


def author(folder: Path, columns: int, kernel: str = KERNEL) -> str:
    """An author's folder; the path of the kernel's file."""
    (folder / "doubled.py").write_text(kernel)
    (folder / "test_doubled.py").write_text(TESTS.replace("COLUMNS", str(columns)))
    return str(folder / "doubled.py")


def test_the_usual_kinds_are_kinds() -> None:
    """Each of them is in the table."""
    assert set(USUAL) <= set(KINDS)


@pytest.mark.process
def test_a_mistake_that_no_test_notices_is_shown_with_an_input(tmp_path: Path) -> None:
    """A test of one whole tile misses a lost last tile; one with a part of a tile notices it."""
    file = author(tmp_path, 64)
    command = ["mutate", f"{file}::doubled", "--workers", "1", "--kind", "drop-minimum"]
    done = CliRunner().invoke(main, [*command, "--kind", "drop-instruction"])
    assert done.exit_code == 1, done.output
    lines = done.output.splitlines()
    at = lines.index("doubled.py:10: drop-minimum: min(BLOCK, x.shape[1] - start) -> BLOCK")
    assert lines[at + 1].startswith("    differs with x float32[4, ")
    assert not any("drop-instruction" in line for line in lines)
    author(tmp_path, 100)
    done = CliRunner().invoke(main, command)
    assert not any("drop-minimum" in line and "-> BLOCK" in line for line in done.output.splitlines())
    assert Path(file).read_text() == KERNEL


@pytest.mark.process
def test_tests_that_fail_by_themselves_are_refused(tmp_path: Path) -> None:
    """With the first failure; so is a file without tests."""
    file = author(tmp_path, 64, KERNEL.replace("op=nl.add", "op=nl.multiply"))
    done = CliRunner().invoke(main, ["mutate", f"{file}::doubled", "--workers", "1"])
    assert done.exit_code == 2
    assert "the tests do not pass without a mistake" in done.output
    (tmp_path / "test_doubled.py").unlink()
    done = CliRunner().invoke(main, ["mutate", f"{file}::doubled"])
    assert "there is no test_doubled.py beside" in done.output


def test_a_package_with_compiled_parts_is_imported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as torch, wherever it is installed: it cannot be imported twice in one process. The author's own are."""
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    files = {"whole": "whole/__init__.py", "whole._C": f"whole/_C{suffix}", "own": "own.py", "own_part": "own_part.py"}
    for name, file in files.items():
        module = ModuleType(name)
        module.__file__ = str(tmp_path / file)
        monkeypatch.setitem(sys.modules, name, module)
    _forget({*files, "json"})
    assert {*files, "json"} & set(sys.modules) == {"whole", "whole._C", "json"}


def test_in_what_results_differ() -> None:
    """Numbers by how much, shapes by both, and else the error or the rules that come with the mistake."""
    right = Results([np.zeros((2, 3))], [])
    assert _apart(right, Results([np.full((2, 3), 0.25)], [])) == "; off by up to 0.25"
    assert _apart(right, Results([np.zeros((2, 2))], [])) == "; the shapes differ: [2, 3] becomes [2, 2]"
    assert _apart(right, Results([np.zeros((2, 3))], ["NK403"])) == "; with the mistake it breaks NK403"
    assert _apart(right, "KernelError") == "; with the mistake it raises KernelError"


OF_RANKS = """import numpy as np
import nkitools
from doubled import Factor, doubled


def test_doubled():
    x = np.ones((4, 8), np.float32)
    outputs = nkitools.simulate(doubled, (x, Factor(3)), (x, Factor(3)), ranks=2).outputs
    assert all((each == 3 * x).all() for each in outputs)
    assert (nkitools.simulate(doubled, x, Factor(2)).outputs == 2 * x).all()
"""


@pytest.mark.process
def test_calls_that_go_to_no_other_process_are_runs_all_the_same(tmp_path: Path) -> None:
    """Of ranks, and with an object of a class of the kernel's file."""
    by_factor = KERNEL.replace("def doubled(x)", "def doubled(x, factor)").replace("tensor_tensor", "tensor_scalar")
    by_factor = by_factor.replace(
        "data1=tile, data2=tile, op=nl.add", "data=tile, op0=nl.multiply, operand0=factor.value"
    )
    factor = "class Factor:\n    def __init__(self, value):\n        self.value = value\n\n\n"
    text = by_factor.replace("BLOCK = 64", f"{factor}BLOCK = 64")
    file = author(tmp_path, 64, text)
    (tmp_path / "test_doubled.py").write_text(OF_RANKS)
    work = partial(run_tests, file, text, [str(tmp_path / "test_doubled.py")])
    (ended,) = LocalEngine(workers=1).run(work, ["doubled"])
    assert (ended.result.code, ended.result.runs, ended.result.calls) == (0, 2, []), ended.result


LEFT_BEHIND = {
    "a file": 'LEFT = pathlib.Path(__file__).with_name("left")\n    assert not LEFT.exists()\n    LEFT.touch()',
    "the process": 'assert "NO_SUCH_VARIABLE" not in os.environ\n    os.environ["NO_SUCH_VARIABLE"] = "1"',
}


@pytest.mark.process
@pytest.mark.parametrize("left", LEFT_BEHIND)
def test_tests_that_pass_once_have_no_score(tmp_path: Path, left: str) -> None:
    """They compare nothing, and are red from the second run on: every mistake would count as noticed."""
    file = author(tmp_path, 64)
    whole = "assert (run_kernel(doubled, x) == 2 * x).all()"
    text = TESTS.replace("COLUMNS", "64").replace(whole, "run_kernel(doubled, x)")
    (tmp_path / "test_doubled.py").write_text(f"import os\nimport pathlib\n{text}    {LEFT_BEHIND[left]}\n")
    done = CliRunner().invoke(main, ["mutate", f"{file}::doubled", "--workers", "1"])
    assert done.exit_code == 2, done.output
    assert "the tests also fail without a mistake once they have run" in done.output
    assert "noticed" not in done.output.splitlines()[-1]


@pytest.mark.frameworks
@pytest.mark.parametrize("name", ["numpy", "jax.numpy", "torch"])
def test_an_input_of_the_tests_that_shows_a_mistake_is_named_with_the_distance(tmp_path: Path, name: str) -> None:
    """Of each framework: a mistake that the tests' own arguments show is hidden by what the tests compare."""
    framework = pytest.importorskip(name)
    made = framework.ones((4, 8), dtype=framework.float32)
    wrong = KERNEL.replace("dtype=x.dtype, buffer=nl.shared_hbm", "dtype=nl.float8_e5m2, buffer=nl.shared_hbm")
    call = Call((made * (1 + 2**-7),), {}, None, "trn2")
    said = distinguishing(author(tmp_path, 64), KERNEL, wrong, "doubled", [call])
    own = "the tests' own arguments, which no assertion notices (x float32[4, 8])"
    assert said == f"{own}; off by up to 0.0156"
