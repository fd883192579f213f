"""Hardware tests have a process of their own, and are tests like others: pytest can do with them what it can."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.children import has_ended, python, started
from tests.processes import LEAN

ORDINARY = """
import sys
import warnings
from hypothesis import given, settings, strategies as st

@pytest.mark.hw
@pytest.mark.parametrize("text", ["[a]", "a/b::c", "\\u03b1 b", "[", ""])
def test_ids(run_kernel, text):
    assert run_kernel(double, X).shape == X.shape

class TestInClass:
    @pytest.mark.hw
    def test_method(self, run_kernel):
        run_kernel(double, X)

@pytest.mark.hw
@settings(max_examples=3, database=None, deadline=None)
@given(st.integers(1, 3))
def test_given(run_kernel, rows):
    assert run_kernel(double, X[:rows]).shape == X[:rows].shape

@pytest.mark.hw
def test_captured(capfd):
    print("heard")
    os.write(2, b"past Python")
    out, err = capfd.readouterr()
    assert (out, err) == ("heard\\n", "past Python")

@pytest.mark.hw
@pytest.mark.xfail(reason="not yet")
def test_expected_to_fail():
    assert False

@pytest.mark.hw
@pytest.mark.skip(reason="not today")
def test_skipped():
    assert False

@pytest.mark.hw
def test_files_and_properties(tmp_path, record_property):
    (tmp_path / "file").touch()
    record_property("speed", "fast")

@pytest.mark.hw
@pytest.mark.filterwarnings("always")
def test_warns():
    class Odd(Warning):
        pass
    warnings.warn("this is odd", Odd)

@pytest.mark.hw
def test_written_past_python():
    print("by Python")
    os.write(2, b"compiler: out of memory\\n")
    assert False
"""


def test_a_hardware_test_is_a_test_like_others(inf2: Any) -> None:
    """Ids, classes, Hypothesis, captures, xfail, skip, tmp_path, warnings, JUnit, durations, report, other rootdir."""
    inf2.pytester.makeini("[pytest]\naddopts = --strict-markers --junitxml=junit.xml\n")
    inf2.write(test_it=inf2.header + ORDINARY)
    inf2.pytester.mkdir("elsewhere")
    os.chdir("elsewhere")
    result = inf2.run("--durations=2", "--durations-min=0", "--nki-report=report", "-rs", "../test_it.py")
    result.assert_outcomes(passed=10, xfailed=1, skipped=1, failed=1, warnings=1)
    result.stdout.fnmatch_lines(["*- Written by the process on the device -*", "compiler: out of memory"])
    result.stdout.fnmatch_lines(["*Odd: this is odd*", "*slowest 2 durations*", "SKIPPED*not today"])
    assert result.outlines.count("by Python") == 1
    cases = {case.get("name"): case for case in ElementTree.parse("junit.xml").iter("testcase")}
    assert len(cases) == 13
    assert cases["test_files_and_properties"].find("properties/property").attrib == {"name": "speed", "value": "fast"}
    assert cases["test_written_past_python"].find("failure") is not None
    assert list(Path("report").glob("*test_method*")), sorted(Path("report").iterdir())
    found = {str(file) for file in inf2.pytester.path.parent.rglob("test_files_and_properties*/file")}
    assert any("/hw" in file for file in found), found


SCOPES = """
@pytest.fixture(scope="module")
def module():
    with open("log", "a") as file:
        file.write(f"+{__name__} ")
    yield
    with open("log", "a") as file:
        file.write(f"-{__name__} ")

def test_before(module):
    pass

@pytest.mark.hw
def test_there(module, of_directory):
    assert of_directory == "below"

def test_after(module):
    pass
"""


def modules_in_directories(author: Any) -> None:
    """Two directories with a conftest.py and a module each."""
    for name in ("a", "b"):
        place = author.pytester.mkdir(name)
        (place / "conftest.py").write_text(
            "import pytest\n@pytest.fixture\ndef of_directory():\n    return 'below'\n", encoding="utf-8"
        )
        (place / f"test_{name}.py").write_text("import pytest\n" + SCOPES, encoding="utf-8")


def test_fixtures_of_modules_begin_and_end_in_both_processes(inf2: Any) -> None:
    """A module's tests may be here and there; directories have a conftest.py each."""
    modules_in_directories(inf2)
    # The last test of a module is one on hardware: what the module has set up here must end all the same.
    result = inf2.run("--deselect", "a/test_a.py::test_after", "--deselect", "b/test_b.py::test_before")
    result.assert_outcomes(passed=4, deselected=2)
    log = (inf2.pytester.path / "log").read_text().split()
    assert sorted(log) == sorted(
        ["+test_a", "-test_a", "+test_a", "-test_a", "+test_b", "-test_b", "+test_b", "-test_b"]
    )


CORES = """
@pytest.mark.hw
def test_core(run_kernel):
    run_kernel(double, X)
    with open("cores", "a") as file:
        file.write(os.environ["NEURON_RT_VISIBLE_CORES"])
    until = time.monotonic() + 60
    while os.path.getsize("cores") < 2 and time.monotonic() < until:
        time.sleep(0.05)
"""


def test_two_workers_of_xdist_have_a_core_each(inf2: Any) -> None:
    """Under pytest-xdist a lock gives each worker a NeuronCore of its own; modules are torn down there too."""
    pytest.importorskip("xdist")
    modules_in_directories(inf2)
    inf2.run_apart("-n", "2", "--dist=each", test=CORES).assert_outcomes(passed=14)
    assert sorted((inf2.pytester.path / "cores").read_text()) == ["0", "1"]


def test_stopping_and_running_the_failed_ones_again(inf2: Any) -> None:
    """-x ends the session after a hardware test that fails; --lf runs that one, and -s shows all that it writes."""
    test = """
import sys

@pytest.mark.hw
@pytest.mark.parametrize("turn", range(4))
def test_turn(turn):
    print("\\none")
    print("two", file=sys.stderr)
    os.write(1, b"three\\n")
    os.write(2, b"four\\n")
    assert turn != 1
"""
    inf2.write(test_it=inf2.header + test)
    result = inf2.pytester.runpytest_inprocess("-p", "no:randomly", "-x")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*stopping after 1 failures*"])
    result = inf2.pytester.runpytest_subprocess(*LEAN, "--lf", "-s")
    result.assert_outcomes(failed=1)
    assert {"one", "three"} <= set(result.outlines)
    assert {"two", "four"} <= set(result.errlines)


def test_a_conftest_that_fails_only_there_is_reported(inf2: Any) -> None:
    """The tests that needed it fail with its error; those in simulation pass."""
    inf2.elsewhere = "import os\nif 'NKITOOLS_HW_WORKER' in os.environ:\n    import libneuron_of_nobody\n"
    test = "def test_double(run_kernel):\n    run_kernel(double, X)\n"
    result = inf2.run_apart(test=test)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "the process for hardware tests could not begin:",
            '  File "*conftest.py", line 3, in <module>',
            "ModuleNotFoundError: No module named 'libneuron_of_nobody'",
        ]
    )


WAITING = """
@pytest.fixture
def guarded():
    yield
    open("torn_down", "w").close()

@pytest.mark.hw
def test_long(guarded):
    with open("begun", "w") as file:
        file.write(str(os.getpid()))
    os.rename("begun", "process")
    time.sleep(100)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_session(inf2: Any, how: signal.Signals) -> None:
    """After Ctrl-C what fixtures undo is undone and the device is free at once; where pytest is killed too."""
    if how == signal.SIGKILL and sys.platform != "linux":
        pytest.skip("only Linux tells a process that its parent has died")
    inf2.write(test_it=inf2.header + WAITING)
    process = Path("process")
    with started(python("-m", "pytest", *LEAN)) as session:
        until = time.monotonic() + 60
        while not process.exists() and time.monotonic() < until:
            time.sleep(0.05)
        session.send_signal(how)
        out, _ = session.communicate(timeout=30)
    assert has_ended(int(process.read_text()))
    if how == signal.SIGINT:
        assert session.returncode == pytest.ExitCode.INTERRUPTED, out
        assert Path("torn_down").exists()
