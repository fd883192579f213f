"""Tests on (fake) hardware: run in a process of their own, each with its own end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes import machines

HEADER = """
import os, time
import numpy as np
import pytest
import nki
import nki.language as nl

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.add(tile, tile))
    return out

X = np.arange(8, dtype=np.float32).reshape(2, 4)

"""
ONE_TEST = """
def test_double(run_kernel):
    np.testing.assert_array_equal(run_kernel(double, X), 2 * X)
"""


@pytest.fixture
def inf2(bare_author: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """An author on an instance with one Inferentia2 and AWS's nki, both fake."""
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(machines.neuron_root(tmp_path / "root")))
    monkeypatch.setenv("PYTHONPATH", machines.packages("aws"))
    monkeypatch.delenv("NEURON_RT_VISIBLE_CORES", raising=False)
    bare_author.header = HEADER
    return bare_author


def test_a_kernel_runs_on_the_device_in_a_process_of_its_own(inf2: Any) -> None:
    """The device's core and generation are in that process's environment, and in no other's."""
    test = f"""{ONE_TEST}
@pytest.mark.hw
def test_where(run_kernel):
    run_kernel(double, X)
    assert run_kernel.run.target == "neuron" and run_kernel.run.chip == "inf2"
    assert os.environ["NEURON_RT_VISIBLE_CORES"] == "0"
    assert os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"] == "inf2"
    print("process", os.getpid(), os.getppid())

def test_here():
    assert "NEURON_RT_VISIBLE_CORES" not in os.environ
"""
    result = inf2.run_apart("-rP", test=test)
    result.assert_outcomes(passed=4)
    words = next(line for line in result.outlines if line.startswith("process")).split()
    assert words[1] != words[2]


PULLED = [
    ("crash", "crashed: the process on the device was ended by SIGABRT. Its last words:"),
    ("hang", "hung: the process on the device did not end within 4 s (--nki-timeout). Where it stands:"),
    ("wrong", "*Mismatched elements: 8 / 8 (100%)*"),
    ("busy", "*nrt_init failed: NRT_RESOURCE: logical NeuronCore 0 is in use by another process"),
]


@pytest.mark.parametrize(("plug", "said"), PULLED, ids=[plug for plug, _ in PULLED])
def test_what_a_device_does_wrong_fails_one_test(inf2: Any, plug: str, said: str) -> None:
    """Crash, hang, wrong result, busy device: that test fails with its own words, and the next one runs."""
    test = f"""
@pytest.mark.hw
def test_pulled(run_kernel, monkeypatch):
    monkeypatch.setenv("FAKE_NEURON", "{plug}")
    np.testing.assert_array_equal(run_kernel(double, X), 2 * X)
{ONE_TEST}"""
    result = inf2.run_apart("-m", "hw", "--nki-timeout", "4", "-v", test=test)
    result.assert_outcomes(passed=1, failed=1, deselected=1)
    result.stdout.fnmatch_lines(["*test_pulled?hw? FAILED*", "*test_double?hw? PASSED*"])
    result.stdout.fnmatch_lines([said])
    if plug in ("crash", "hang"):
        result.stdout.fnmatch_lines(['  File "*__init__.py", line * in __call__'])


def test_a_package_that_does_not_import_fails_its_tests_only(inf2: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """A partial install: the import error is the test's, with its own words."""
    broken = tmp_path / "broken/nki"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('libnrt.so.1: cannot open shared object file')\n")
    (broken / "isa.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "broken"))
    inf2.header = "import pytest\n"
    test = """
@pytest.mark.hw
def test_pulled(run_kernel):
    import nki

def test_other():
    pass
"""
    result = inf2.run_apart(test=test)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E * ImportError: libnrt.so.1: cannot open shared object file"])


def test_the_placeholder_of_pypi_is_named(inf2: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """PyPI's nki is no package that can reach a device: the tests are skipped, and the reason says what is missing."""
    placeholder = tmp_path / "pypi/nki"
    placeholder.mkdir(parents=True)
    (placeholder / "__init__.py").write_text("raise RuntimeError('WRONG PACKAGE')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "pypi"))
    result = inf2.run_apart("-m", "hw", "-rs", "--nki-target", "neuron", test=ONE_TEST)
    result.assert_outcomes(skipped=1, deselected=1)
    result.stdout.fnmatch_lines(["SKIPPED*no NeuronCore: found neither module nki nor module neuronxcc of AWS's own*"])


def test_another_generation_is_skipped_with_both_names(inf2: Any) -> None:
    """A kernel for trn2, by its own argument or by --nki-chip, does not run on an Inferentia2."""
    test = ONE_TEST.replace("double, X", "double, X, chip='trn2'")
    said = ["SKIPPED*the kernel is to run on trn2, and the NeuronCore of this machine is of inf2"]
    for arguments, text in (((), test), (("--nki-chip", "trn2"), ONE_TEST)):
        result = inf2.run_apart("-m", "hw", "-rs", *arguments, test=text)
        result.assert_outcomes(skipped=1, deselected=1)
        result.stdout.fnmatch_lines(said)


def test_trn1_and_inf2_are_one_generation(inf2: Any) -> None:
    """NeuronCore-v2 is in both."""
    inf2.run_apart("-m", "hw", "--nki-chip", "trn1", test=ONE_TEST).assert_outcomes(passed=1, deselected=1)


def test_a_device_lost_on_the_way_skips_what_comes_after(inf2: Any, tmp_path: Path) -> None:
    """Device nodes are looked for before each test."""
    test = f"""
@pytest.mark.hw
def test_last(run_kernel):
    run_kernel(double, X)
    os.unlink({str(tmp_path / "root/dev/neuron0")!r})
{ONE_TEST}"""
    result = inf2.run_apart("-m", "hw", "-rs", "--nki-target=neuron", test=test)
    result.assert_outcomes(passed=1, skipped=1, deselected=1)
    result.stdout.fnmatch_lines(["SKIPPED*no NeuronCore: found no device node /dev/neuron*"])


def test_fixtures_of_a_session_live_from_test_to_test_and_are_torn_down(inf2: Any) -> None:
    """One process runs all hardware tests while they pass."""
    test = """
@pytest.fixture(scope="session")
def process():
    yield os.getpid()
    with open("torn_down", "w") as file:
        file.write(str(os.getpid()))

@pytest.mark.hw
@pytest.mark.parametrize("turn", range(3))
def test_shared(run_kernel, process, turn):
    assert process == os.getpid()
    run_kernel(double, X)
"""
    inf2.run_apart(test=test).assert_outcomes(passed=3)
    assert (inf2.pytester.path / "torn_down").read_text().isdigit()


def test_the_marks_and_the_option_name_the_device(inf2: Any) -> None:
    """A test for a TPU is skipped for want of one, though a NeuronCore is here; --nki-target narrows alike."""
    marked = ONE_TEST.replace("def test", '@pytest.mark.hw("tpu")\ndef test')
    for arguments, text in ((), marked), (("--nki-target", "tpu", "-m", "hw"), ONE_TEST):
        result = inf2.run_apart("-rs", *arguments, test=text)
        assert result.parseoutcomes()["skipped"] == 1
        result.stdout.fnmatch_lines(["SKIPPED*no TPU: *"])
    wrong = inf2.run_apart("-m", "hw", test=marked.replace('"tpu"', '"abacus"'))
    wrong.stderr.fnmatch_lines(["*mark hw names 'abacus'; choose of neuron, tpu, gpu*"])


def test_two_workers_of_xdist_have_a_core_each(inf2: Any) -> None:
    """Under pytest-xdist a lock gives each worker a NeuronCore of its own."""
    pytest.importorskip("xdist")
    test = """
@pytest.mark.hw
@pytest.mark.parametrize("turn", range(2))
def test_core(run_kernel, turn):
    run_kernel(double, X)
    with open("cores", "a") as file:
        file.write(os.environ["NEURON_RT_VISIBLE_CORES"])
    until = time.monotonic() + 30
    while os.path.getsize("cores") < 2 and time.monotonic() < until:
        time.sleep(0.05)
"""
    inf2.run_apart("-n", "2", "--dist=load", test=test).assert_outcomes(passed=2)
    assert sorted((inf2.pytester.path / "cores").read_text()) == ["0", "1"]


def test_a_device_that_does_not_print_skips_what_looks_at_prints(inf2: Any) -> None:
    """device_print is documented for simulators: a test of what is printed is not a test of a NeuronCore."""
    test = ONE_TEST.replace("run_kernel)", "run_kernel, device_prints)", 1) + "    assert not device_prints\n"
    result = inf2.run_apart("-rs", test=test)
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*device_print is heard in simulation only*"])


def test_without_isolation_the_test_runs_here(inf2: Any) -> None:
    """--nki-isolate=none is for debuggers: pytest's own process opens the device."""
    test = (
        f"{ONE_TEST}\n@pytest.mark.hw\ndef test_here(run_kernel):\n    assert 'NKITOOLS_HW_WORKER' not in os.environ\n"
    )
    inf2.run_apart("-m", "hw", "--nki-isolate=none", test=test).assert_outcomes(passed=2, deselected=1)
