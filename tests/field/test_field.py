"""``nkitools try``: a suite of kernels in the form of the public ones, run in processes with limits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from nkitools.cli import main
from tests.children import SECONDS, python, started

REPOSITORY = Path(__file__).parents[2]

KERNELS = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def double(x, partitions=128):
    tile = nl.ndarray((partitions, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""

TESTS = '''
import os
import signal
import time
import unittest

import numpy as np
import pytest
from doubles.double import double

import nki

X = np.ones((128, 4), dtype=np.float32)


class SuiteError(Exception):
    """The suite's own exception, which does not name the simulator's."""


def test_passes():
    np.testing.assert_array_equal(nki.simulate(double)(X), 2 * X)


def test_expects_a_refusal():
    with pytest.raises(Exception):
        nki.simulate(double)(X, partitions=64)


@pytest.mark.xfail(reason="as its authors say")
def test_expected_to_fail():
    assert nki.simulate(double)(X)[0, 0] == 3


@pytest.mark.skip(reason="for another day")
def test_skipped():
    raise AssertionError


def test_refused():
    failed = False
    try:
        nki.simulate(double)(X, partitions=64)
    except Exception:
        failed = True
    if failed:
        raise SuiteError("the kernel failed")


def test_wrong():
    np.testing.assert_array_equal(nki.simulate(double)(X), 3 * X)


def test_turns_for_ever():
    while True:
        pass


def test_waits_for_ever():
    time.sleep(3600)


def test_takes_too_much():
    np.ones(2**30)  # 8 GiB


def test_takes_too_much_of_torch():
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8589934592 bytes.")


def test_dies():
    os.kill(os.getpid(), signal.SIGSEGV)


def test_error():
    raise KeyError("no kernel")


class TestOfUnittest(unittest.TestCase):
    def test_refused(self):
        nki.simulate(double)(X, partitions=64)
'''

EXPECTED = {
    "test_passes": "passed",
    "test_expects_a_refusal": "passed",
    "test_expected_to_fail": "xfailed",
    "test_skipped": "skipped",
    "test_refused": "refused",
    "test_wrong": "wrong",
    "test_turns_for_ever": "timeout",
    "test_waits_for_ever": "timeout",
    "test_takes_too_much": "memory",
    "test_takes_too_much_of_torch": "memory",
    "test_dies": "died",
    "test_error": "error",
    "TestOfUnittest::test_refused": "refused",
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout: kernels under src, tests that import them."""
    root = tmp_path_factory.mktemp("checkout")
    for file, text in {
        ".git/HEAD": "",
        "src/doubles/double.py": KERNELS,
        "test/test_double.py": TESTS,
        "test/test_broken.py": "import no_such_library\n",
        "pytest.ini": "[pytest]\n",
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text, encoding="utf-8")
    return root


def run(suite: Path, *options: str, folder: str = "test") -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    kept = suite / "outcomes.json"
    command = [sys.executable, "-m", "nkitools", "try", str(suite / folder), "--json", str(kept), *options]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False)
    return done, json.loads(kept.read_text(encoding="utf-8"))


@pytest.mark.process
def test_outcomes(suite: Path) -> None:
    """Each test has the outcome that its form deserves, and one that dies or hangs takes no other with it."""
    done, kept = run(suite, "--timeout", "1", "--memory", "2", "--jobs", "2")

    found = {each["test"].partition("::")[2]: each for each in kept["tests"]}
    expected = dict(EXPECTED) if sys.platform == "linux" else EXPECTED | {"test_takes_too_much": "passed"}
    assert {test: each["kind"] for test, each in found.items()} == expected
    refusal = found["test_refused"]["refusal"]
    assert (refusal["rule"], refusal["place"]) == ("NK109", "src/doubles/double.py:10")
    assert found["test_refused"]["message"] == "SuiteError: the kernel failed"
    assert found["test_dies"]["message"] == "its process was ended by SIGSEGV"
    assert kept["uncollected"] == ["test/test_broken.py: ModuleNotFoundError: No module named 'no_such_library'"]
    assert done.returncode == 1
    assert "passed           2   15.4%" in done.stdout
    assert "refused 2: NK109 at src/doubles/double.py:10" in done.stdout


@pytest.mark.process
def test_sample(suite: Path, tmp_path: Path) -> None:
    """A sample runs alone; an id that the suite does not have, and a file that cannot be imported, are status 1."""
    sample = tmp_path / "sample.txt"
    sample.write_text("# two\ntest/test_double.py::test_passes\n", encoding="utf-8")
    done, kept = run(suite, "--sample", str(sample))
    assert (done.returncode, kept["counts"], kept["uncollected"]) == (0, {"passed": 1}, [])

    sample.write_text("test/test_double.py::test_passes\ntest/test_double.py::test_gone\n", encoding="utf-8")
    done, kept = run(suite, "--sample", str(sample), "--", "-k", "not gone")
    assert (done.returncode, kept["counts"]) == (1, {"absent": 1, "passed": 1})

    sample.write_text("test/test_double.py::test_passes\n", encoding="utf-8")
    done, kept = run(suite, "--sample", str(sample), "--collect-all")
    assert (done.returncode, kept["counts"], len(kept["uncollected"])) == (1, {"passed": 1}, 1)


@pytest.mark.process
def test_resume(suite: Path, tmp_path: Path) -> None:
    """A session goes on where another was ended: what is known is kept as it was, and not run again.

    All files are collected for it, where the suite's cases depend on that.
    """
    sample = tmp_path / "sample.txt"
    sample.write_text("test/test_double.py::test_refused\n", encoding="utf-8")
    _, first = run(suite, "--sample", str(sample))
    with sample.open("a", encoding="utf-8") as file:
        file.write("test/test_double.py::test_passes\n")

    done, kept = run(suite, "--sample", str(sample), "--resume", "--collect-all")
    assert kept["tests"][0] == first["tests"][0]
    assert kept["counts"] == {"passed": 1, "refused": 1}
    assert kept["uncollected"] == ["test/test_broken.py: ModuleNotFoundError: No module named 'no_such_library'"]
    assert done.returncode == 1


@pytest.mark.process
def test_where_no_process_is_a_fork(suite: Path, tmp_path: Path) -> None:
    """On macOS tests share the session's process, as tests beside JAX's threads do, and have the same outcomes."""
    program = "import sys, nkitools.platforms as here; here.IS_MACOS = True; from nkitools.cli import main; main()"
    sample, kept = tmp_path / "sample.txt", tmp_path / "outcomes.json"
    names = ("test_passes", "test_refused", "test_wrong", "test_error")
    sample.write_text("".join(f"test/test_double.py::{name}\n" for name in names), encoding="utf-8")
    words = ["try", str(suite / "test"), "--sample", str(sample), "--json", str(kept)]
    done = subprocess.run([sys.executable, "-c", program, *words], cwd=REPOSITORY, timeout=120, check=False)
    tests = json.loads(kept.read_text(encoding="utf-8"))["tests"]
    assert done.returncode == 1
    assert {each["test"].partition("::")[2]: each["kind"] for each in tests} == {name: EXPECTED[name] for name in names}
    assert [each["refusal"]["place"] for each in tests if each["refusal"]] == ["src/doubles/double.py:10"]


CALL = """
import sys
from pathlib import Path
import numpy as np
from double import double

if __name__ == "__main__":
    assert Path(sys.argv[0]).name == Path(__file__).name
    x = np.ones((128, 4), dtype=np.float32)
    assert (double(x) == {times} * x).all()
"""


@pytest.mark.process
def test_scripts_and_kernels(tmp_path: Path) -> None:
    """A script is one test, run in its folder, also where it has tests and pytest would not look into it.

    Its exit code decides, as it does for python. A file of kernels that nothing imports is listed with a command. A
    test file that ends the process when it is imported is listed as not collected, and takes no other with it.
    """
    (tmp_path / "scripts").mkdir()
    for file, text in {
        "double.py": KERNELS,
        "right.py": "import nki" + CALL.format(times=2),
        "wrong.py": "import nki" + CALL.format(times=3),
        "elsewhere.py": "import nki, no_such_library\n" + CALL.format(times=2),
        "alone.py": KERNELS,
        "plain.py": "print('no kernel')\n",
        "tested.py": "import nki\ndef test_it():\n    assert 0\n" + CALL.format(times=2),
        "ends_well.py": "import nki, sys\nsys.exit(0)\n",
        "ends_badly.py": "import nki, sys\nsys.exit(3)\n",
        "test_that_ends.py": "import sys\nsys.exit(0)\n",
    }.items():
        (tmp_path / "scripts" / file).write_text(text, encoding="utf-8")
    done, kept = run(tmp_path, "--root", str(tmp_path), folder="scripts")

    assert {each["test"]: each["kind"] for each in kept["tests"]} == {
        "scripts/alone.py::kernels": "uncalled",
        "scripts/elsewhere.py::script": "missing",
        "scripts/ends_badly.py::script": "error",
        "scripts/ends_well.py::script": "passed",
        "scripts/right.py::script": "passed",
        "scripts/tested.py::script": "passed",
        "scripts/wrong.py::script": "wrong",
    }
    assert "UncalledKernels: no test and no script calls them; to run one: nkitools estimate " in done.stdout
    assert "missing 1: ModuleNotFoundError: No module named 'no_such_library'" in done.stdout
    assert "error 1: SystemExit: 3" in done.stdout
    (ends,) = kept["uncollected"]
    assert ends.startswith("scripts/test_that_ends.py: SystemExit: 0: put what a script does below `if __name__")
    assert done.returncode == 1


@pytest.mark.process
def test_interrupted(tmp_path: Path) -> None:
    """A session that Ctrl-C ends is no success, though all tests until then have passed; what they gave is kept."""
    (tmp_path / "test_a.py").write_text("def test_first():\n    pass\n", encoding="utf-8")
    (tmp_path / "test_b.py").write_text("import time\ndef test_waits():\n    time.sleep(60)\n", encoding="utf-8")
    kept = tmp_path / "outcomes.json"
    with started(python("-m", "nkitools", "try", str(tmp_path), "--json", str(kept))) as child:
        until = time.monotonic() + SECONDS
        while not kept.exists() and time.monotonic() < until:
            time.sleep(0.1)
        os.killpg(child.pid, signal.SIGINT)
        _, said = child.communicate(timeout=SECONDS)
    assert (child.returncode, said) == (130, "nkitools: interrupted: the other tests did not run\n")
    assert json.loads(kept.read_text(encoding="utf-8"))["counts"] == {"passed": 1}


@pytest.mark.parametrize("option", ["--timeout=0", "--memory=-1", "--jobs=0", "--json=no/such/folder/x.json"])
def test_options_that_mean_nothing(tmp_path: Path, option: str) -> None:
    """A limit of zero, and a file that cannot be written, are refused before a test runs."""
    done = CliRunner().invoke(main, ["try", str(tmp_path), option])
    assert (done.exit_code, f"Invalid value for '{option.partition('=')[0]}'" in done.output) == (2, True)


@pytest.mark.process
def test_a_script_that_measures(tmp_path: Path) -> None:
    """A script that asks for a latency has the outcome `device`: its kernels ran, and no chip is here."""
    (tmp_path / "measures.py").write_text(
        "from neuronxcc import nki\nimport neuronxcc.nki.language as nl\nimport numpy as np\n"
        "@nki.benchmark\ndef copied(x):\n    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)\n"
        "    nl.store(out, nl.load(x))\n    return out\n"
        "copied(np.ones((4, 4), np.float32))\n"
        "print(copied.benchmark_result.nc_latency.get_latency_percentile(50))\n",
        encoding="utf-8",
    )
    _, kept = run(tmp_path, "--root", str(tmp_path), folder=".")
    assert [(each["kind"], each["runs"]) for each in kept["tests"]] == [("device", 1)]


TPU_TESTS = """
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

pytestmark = pytest.mark.skipif(jax.default_backend() != "tpu", reason="for TPUs")
X = np.arange(2048, dtype=np.float32).reshape(16, 128)


def double(x_ref, out_ref):
    out_ref[...] = x_ref[...] * 2


def doubled(index_map):
    blocks = [pl.BlockSpec((8, 128), index_map)]
    out = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(double, grid=(2,), out_shape=jax.ShapeDtypeStruct(X.shape, X.dtype), in_specs=blocks,
                          out_specs=out)(X)


def test_right():
    np.testing.assert_array_equal(doubled(lambda i: (i, 0)), 2 * X)


def test_outside():
    doubled(lambda i: (i + 1, 0))


def test_wrong():
    np.testing.assert_array_equal(doubled(lambda i: (0, 0)), 2 * X)


def test_chip():
    assert jax.devices()[0].device_kind == "TPU v6 lite"
"""


@pytest.mark.process
def test_tests_for_tpus(tmp_path: Path) -> None:
    """With --tpu they are not skipped, their Pallas calls are interpreted as on the chip, and findings are kept."""
    pytest.importorskip("jax")
    (tmp_path / "test_double.py").write_text(TPU_TESTS, encoding="utf-8")
    _, kept = run(tmp_path, "--root", str(tmp_path), "--tpu", "v6e", folder=".")
    found = {each["test"].partition("::")[2]: each for each in kept["tests"]}
    kinds = {"test_right": "passed", "test_outside": "passed", "test_wrong": "wrong", "test_chip": "passed"}
    assert {test: each["kind"] for test, each in found.items()} == kinds
    assert [each["runs"] for each in found.values()] == [1, 1, 1, 0]
    assert [each["rule"] for each in found["test_outside"]["findings"]] == ["PL201"]
    assert found["test_right"]["findings"] == []
