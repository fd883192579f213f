"""Tests on (fake) hardware: which of them run there, on what, and what is said where they cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cases import FULL

ONE_TEST = """
def test_double(run_kernel):
    np.testing.assert_array_equal(run_kernel(double, X), 2 * X)
"""


def test_hardware_tests_run_on_the_device_in_one_process(inf2: Any) -> None:
    """Core and generation are in that process's environment alone; trn1 and inf2 are one generation, trn2 is not."""
    test = f"""{ONE_TEST}
@pytest.fixture(scope="session")
def process():
    yield os.getpid()
    with open("torn_down", "w") as file:
        file.write(str(os.getpid()))

@pytest.mark.hw
def test_where(run_kernel, process):
    run_kernel(double, X)
    assert run_kernel.run.target == "neuron" and run_kernel.run.chip == "inf2"
    assert os.environ["NEURON_RT_VISIBLE_CORES"] == "0"
    assert os.environ["NEURON_PLATFORM_TARGET_OVERRIDE"] == "inf2"
    print("process", process, os.getppid())

@pytest.mark.hw
def test_shared(process):
    assert process == os.getpid()

@pytest.mark.hw
def test_other_generation(run_kernel):
    run_kernel(double, X, chip="trn2")

@pytest.mark.hw("tpu")
def test_other_device(run_kernel):
    run_kernel(double, X)

@pytest.mark.hw
def test_prints(run_kernel, device_prints):
    run_kernel(double, X)
    assert not device_prints

def test_here():
    assert "NEURON_RT_VISIBLE_CORES" not in os.environ
"""
    result = inf2.run("-rPs", "--nki-chip=trn1", test=test)
    result.assert_outcomes(passed=5, skipped=3)
    words = next(line for line in result.outlines if line.startswith("process")).split()
    assert words[1] != words[2]
    assert (inf2.pytester.path / "torn_down").read_text() == words[1]
    result.stdout.fnmatch_lines_random(
        [
            "SKIPPED*the kernel is to run on trn2, and the NeuronCore of this machine is of inf2",
            "SKIPPED*no TPU: *",
            "SKIPPED*device_print is captured in simulation only*",
        ]
    )


def test_a_kernel_of_two_cores_gets_a_process_of_its_degree(machine: Any) -> None:
    """The first process hands the test back; one test with kernels of two degrees has no process that fits."""
    both = """
@pytest.mark.hw
def test_both(run_kernel):
    run_kernel(double[2], X)
    run_kernel(double, X)
"""
    test = """
@pytest.mark.hw
def test_two_cores(run_kernel):
    run_kernel(double, X, grid=2)
    assert (os.environ["NEURON_LOGICAL_NC_CONFIG"], os.environ["NEURON_RT_VISIBLE_CORES"]) == ("2", "0")
"""
    author = machine("aws", instance="Trn2", architecture="NCv3")
    result = author.run("-m", "hw", test=test + both * FULL)  # each degree takes another process
    result.assert_outcomes(passed=1, failed=int(FULL))
    if FULL:
        result.stdout.fnmatch_lines(["it calls kernels of two degrees, and a process has one: *"])


_WRONG = {
    "crash": [
        "*_ test_pulled?hw-crash? _*",
        "crashed: the process on the device was ended by SIGABRT. Its last words:",
        '  File "*__init__.py", line * in __call__',
    ],
    "hang": [
        "*_ test_pulled?hw-hang? _*",
        "hung: the process on the device did not end within 5 s (--nki-timeout). Where it stands:",
        '  File "*__init__.py", line * in __call__',
    ],
    "wrong": ["*_ test_pulled?hw-wrong? _*", "*Mismatched elements: 8 / 8 (100%)*"],
    "busy": [
        "*_ test_pulled?hw-busy? _*",
        "*nrt_init failed: NRT_RESOURCE: logical NeuronCore 0 is in use by another process",
    ],
}


@pytest.mark.soak
def test_what_a_device_does_wrong_fails_one_test(inf2: Any) -> None:
    """Crash, hang, wrong result, busy device: that test fails with its own words, and the next one runs.

    A status that no process recovers from ends the process also where the test expects it.
    """
    plugs = [*_WRONG] if FULL else ["crash", "hang"]  # each takes another process; other tests have wrong and busy
    test = f"""
@pytest.mark.hw
@pytest.mark.parametrize("plug", {[*plugs, ""]})
def test_pulled(run_kernel, monkeypatch, plug):
    monkeypatch.setenv("FAKE_NEURON", plug)
    if plug == "crash" and os.fork() == 0:  # as a compiler may, which then has all that the process has open
        time.sleep(1000)
    np.testing.assert_array_equal(run_kernel(double, X), 2 * X)
    with open("process", "w") as file:
        file.write(str(os.getpid()))

@pytest.mark.hw
def test_expected(run_kernel, monkeypatch):
    with open("process") as file:
        assert file.read() == str(os.getpid())
    monkeypatch.setenv("FAKE_NEURON", "fatal")
    with pytest.raises(RuntimeError, match="UNRECOVERABLE"):
        run_kernel(double, X)

@pytest.mark.hw
def test_after(run_kernel):
    run_kernel(double, X)
    with open("process") as file:
        assert file.read() != str(os.getpid())
"""
    result = inf2.run("-m", "hw", "--nki-timeout", "5", test=test)
    result.assert_outcomes(passed=3, failed=len(plugs))
    result.stdout.fnmatch_lines([line for plug in plugs for line in _WRONG[plug]])


def test_a_partial_install_fails_its_tests_only(machine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where AWS's package does not import, in a test or at the head of a file, the error is that of those tests."""
    author = machine()
    broken = tmp_path / "broken/nki"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('libnrt.so.1: cannot open shared object file')\n")
    (broken / "isa.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "broken"))
    author.write(test_head=author.header + ONE_TEST)
    author.header = "import pytest\n"
    test = """
@pytest.mark.hw
def test_inside(run_kernel):
    import nki

@pytest.mark.hw
def test_without():
    pass
"""
    result = author.run("-v", test=test)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines_random(["*test_double?sim? PASSED*", "*test_without PASSED*"])
    result.stdout.fnmatch_lines(
        [
            "*_ test_double?hw? _*",
            "the process for hardware tests could not collect it:",
            "E * ImportError: libnrt.so.1: cannot open shared object file",
            "*_ test_inside?hw? _*",
            "E * ImportError: libnrt.so.1: cannot open shared object file",
        ]
    )


def test_the_placeholder_of_pypi_is_named(machine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyPI's nki is no package that can reach a device: the tests are skipped, and the reason says what is missing."""
    placeholder = tmp_path / "pypi/nki"
    placeholder.mkdir(parents=True)
    (placeholder / "__init__.py").write_text("raise RuntimeError('WRONG PACKAGE')\n")
    monkeypatch.syspath_prepend(str(tmp_path / "pypi"))
    result = machine().run("-m", "hw", "-rs", "--nki-target", "neuron", test=ONE_TEST)
    result.assert_outcomes(skipped=1, deselected=1)
    result.stdout.fnmatch_lines(["SKIPPED*no NeuronCore: found neither module nki nor module neuronxcc of AWS's own*"])


def test_a_device_lost_on_the_way_skips_what_comes_after(inf2: Any, tmp_path: Path) -> None:
    """Device nodes are looked for before each test."""
    test = f"""
@pytest.mark.hw
def test_last(run_kernel):
    run_kernel(double, X)
    os.unlink({str(tmp_path / "root/dev/neuron0")!r})
{ONE_TEST}"""
    result = inf2.run("-m", "hw", "-rs", "--nki-target=neuron", test=test)
    result.assert_outcomes(passed=1, skipped=1, deselected=1)
    result.stdout.fnmatch_lines(["SKIPPED*no NeuronCore: found no device node /dev/neuron*"])


def test_hardware_that_is_required_must_be_here(inf2: Any) -> None:
    """Absent device, device of another kind, other generation: what would be skipped fails, there and here."""
    test = f"""{ONE_TEST}
@pytest.mark.hw("tpu")
def test_tpu(run_kernel):
    run_kernel(double, X)

@pytest.mark.hw
def test_trn2(run_kernel):
    run_kernel(double, X, chip="trn2")
"""
    result = inf2.run("-m", "hw", "--nki-require-hw", test=test)
    result.assert_outcomes(passed=1, failed=2, deselected=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*_ test_tpu?hw? _*",
            "hardware is required (--nki-require-hw): no TPU: *",
            "*_ test_trn2?hw? _*",
            "hardware is required (--nki-require-hw): the kernel is to run on trn2, and the NeuronCore of *",
        ]
    )


def test_the_option_names_the_device(inf2: Any) -> None:
    """Under --nki-target tpu a test is skipped for want of one, though a NeuronCore is here; unknown names are told."""
    result = inf2.run("-rs", "--nki-target", "tpu", "-m", "hw", test=ONE_TEST)
    result.assert_outcomes(skipped=1, deselected=1)
    result.stdout.fnmatch_lines(["SKIPPED*no TPU: *"])
    wrong = inf2.run("-m", "hw", test=ONE_TEST.replace("def test", '@pytest.mark.hw("abacus")\ndef test'))
    wrong.stderr.fnmatch_lines(["*mark hw names 'abacus'; choose of neuron, tpu, gpu*"])


def test_without_isolation_the_test_runs_here(inf2: Any) -> None:
    """--nki-isolate=none is for debuggers: pytest's own process opens the device."""
    test = (
        f"{ONE_TEST}\n@pytest.mark.hw\ndef test_here(run_kernel):\n    assert 'NKITOOLS_HW_WORKER' not in os.environ\n"
    )
    inf2.run_apart("-m", "hw", "--nki-isolate=none", test=test).assert_outcomes(passed=2, deselected=1)
