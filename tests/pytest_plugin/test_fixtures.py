"""run_kernel, device_prints and kernel_benchmark: what they hold, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from nkitools.targets import machine, neuron
from nkitools.targets.neuron import NeuronDevice
from nkitools.targets.target import Prepared


def test_run_kernel_returns_the_outputs_and_keeps_the_run(author: Any) -> None:
    """The outputs come back, `.run` is the run of the last call, and device_prints has the records of all calls."""
    author.run(
        "-m",
        "sim",
        test="""
def test_it(run_kernel, device_prints):
    assert run_kernel(double, 4) == 8
    first = run_kernel.run
    assert (first.kernel, first.outputs) == ("double", 8)
    assert run_kernel(double, [1, 2]) == [1, 2, 1, 2]
    assert run_kernel.run is not first
    assert len(device_prints) == 2
    assert [one.shape for one in device_prints] == [(), (2,)]
    assert device_prints[-1].place() == "program 0, m=0, n=1, giou.py:41"
    assert device_prints == device_prints() == device_prints("x") == first.prints + run_kernel.run.prints
    assert device_prints("y") == []
""",
    ).assert_outcomes(passed=1)


def test_a_failing_run_is_kept_too(author: Any) -> None:
    """After pytest.raises the run is there to be looked at, findings, prints and all."""
    author.run(
        "-m",
        "sim",
        test="""
from nkitools.rules.finding import KernelError

def test_it(run_kernel, device_prints):
    with pytest.raises(KernelError, match="256 partitions") as caught:
        run_kernel(too_wide, 4)
    assert run_kernel.run.error is caught.value
    assert [finding.rule for finding in run_kernel.run.findings] == ["NK101"]
    assert len(device_prints) == 1
""",
    ).assert_outcomes(passed=1)


def test_nothing_is_left_for_the_next_test(author: Any) -> None:
    """Each test starts empty, whatever the test before it did, and says so when asked for a run."""
    author.run(
        "-m",
        "sim",
        test="""
def test_first(run_kernel, device_prints):
    run_kernel(double, 4)
    assert len(device_prints) == 1

def test_second(run_kernel, device_prints):
    assert not device_prints
    with pytest.raises(AttributeError, match="run_kernel has run nothing in this test yet"):
        run_kernel.run
    run_kernel(double, 4)
    assert len(device_prints) == 1
""",
    ).assert_outcomes(passed=2)


def test_device_prints_come_from_every_way_in(author: Any) -> None:
    """A kernel that the test runs by other means than run_kernel prints into device_prints as well."""
    author.run(
        test="""
from nkitools.targets.builtin import BuiltinSimulator

def test_it(device_prints):
    BuiltinSimulator().run(double, 4)
    assert [one.prefix for one in device_prints] == ["x"]
    assert repr(device_prints).startswith("<device_prints: 1\\n  0: <Print x [program 0, m=0, n=1, giou.py:41]")
    assert device_prints["x"].where(m=0) == device_prints == device_prints.program(0)
"""
    ).assert_outcomes(passed=1)


def test_prints_of_a_fixture_belong_to_the_test_that_sets_it_up(author: Any) -> None:
    """A kernel run in the setup of a test is part of what this test did."""
    author.run(
        "-m",
        "sim",
        test="""
@pytest.fixture(scope="module")
def doubled(run_kernel):
    return run_kernel(double, 4)

def test_first(doubled, device_prints):
    assert len(device_prints) == 1

def test_second(doubled, device_prints):
    assert not device_prints
""",
    ).assert_outcomes(passed=2)


GIVEN = """
from hypothesis import given, settings, strategies as st

seen = []

@settings(max_examples=20, database=None)
@given(x=st.integers(0, 1000))
def test_it(run_kernel, device_prints, x):
    assert not device_prints
    assert not hasattr(run_kernel, "run")
    assert run_kernel(double, x) == 2 * x
    assert run_kernel.run.outputs == 2 * x
    assert [int(one.value) for one in device_prints] == [x]
    seen.append(x)

def test_afterwards(device_prints):
    assert len(seen) > 1
    assert not device_prints
"""


def test_hypothesis_takes_them_and_each_example_starts_empty(author: Any) -> None:
    """No health check complains of the fixtures' scope, and no example sees another's run or prints."""
    result = author.run("-m", "not hw", test=GIVEN)
    result.assert_outcomes(passed=2, deselected=1)
    result.stdout.fnmatch_lines(["nki: 20 kernels run, 0 findings, 20 device prints"])


def test_hypothesis_on_methods_has_both_variants(author: Any) -> None:
    """A method under @given runs once for each target without tripping over its two instances."""
    result = author.run(
        "-m",
        "sim or hw",
        test="""
from hypothesis import given, strategies as st

class TestIt:
    @given(x=st.integers(0, 1000))
    def test_double(self, run_kernel, x):
        assert run_kernel(double, x) == 2 * x
""",
    )
    result.assert_outcomes(passed=1, skipped=1)


def test_a_failing_example_shows_its_own_prints(author: Any) -> None:
    """The sections of a failing Hypothesis test are those of the example that is reported, the smallest."""
    result = author.run(
        "-m",
        "sim",
        test="""
from hypothesis import given, settings, strategies as st

@settings(database=None)
@given(x=st.integers(0, 1000))
def test_it(run_kernel, x):
    assert run_kernel(double, x) < 100
""",
    )
    result.assert_outcomes(failed=1)
    section = result.stdout.str().partition("nki prints")[2]
    assert section.count("[program 0, m=0, n=1, giou.py:41]") == 1
    assert "\n50\n" in section


def test_a_benchmark_refuses_to_time_a_simulator(author: Any) -> None:
    """In simulation what comes before kernel_benchmark is checked, then the test is skipped with the reason."""
    result = author.run(
        "-rs",
        test="""
def test_it(run_kernel, kernel_benchmark):
    assert run_kernel(double, 4) == 8
    kernel_benchmark(double, 4)

def test_wrong(run_kernel, kernel_benchmark):
    assert run_kernel(double, 4) == 9
    kernel_benchmark(double, 4)
""",
    )
    result.assert_outcomes(skipped=1, failed=1)
    (reason,) = [line for line in result.outlines if "test_it.py:6" in line and line.startswith("SKIPPED")]
    assert "kernel_benchmark measures on hardware (-m hw): a simulator's wall time says nothing of the chip; " in reason
    assert "estimated" in reason


@pytest.fixture
def neuron_that_runs(author: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a NeuronCore that nkitools can drive."""
    monkeypatch.setattr(machine, "nodes", lambda *patterns: ("/dev/neuron0",) if "neuron" in patterns[0] else ())
    monkeypatch.setattr(neuron, "neuron_packages", lambda: ("neuronxcc",))

    def prepare(_: NeuronDevice, kernel: Any, args: Any, kwargs: Any) -> Prepared:
        return Prepared(lambda: kernel(*args, **kwargs), lambda outputs: outputs, 1.0)

    monkeypatch.setattr(NeuronDevice, "prepare", prepare)
    monkeypatch.setenv("NKITOOLS_ISOLATE", "none")  # another process would not be patched


@pytest.mark.usefixtures("neuron_that_runs")
@pytest.mark.parametrize("flags", [(), ("--benchmark-only",)])
def test_a_benchmark_on_hardware_is_pytest_benchmarks(author: Any, flags: tuple[str, ...]) -> None:
    """On a device the numbers are taken by pytest-benchmark, which also knows the test as a benchmark."""
    pytest.importorskip("pytest_benchmark")
    test = """
def triple(x):
    return 3 * x

def test_it(kernel_benchmark):
    assert kernel_benchmark(triple, 4) == 12
"""
    result = author.run("-m", "hw", "--benchmark-json=times.json", *flags, test=test)
    result.assert_outcomes(passed=1, deselected=1)
    times = (author.pytester.path / "times.json").read_text()
    assert '"kernel": "triple"' in times
    assert '"target": "neuron"' in times


@pytest.mark.usefixtures("neuron_that_runs")
def test_a_benchmark_without_pytest_benchmark_says_what_it_needs(author: Any) -> None:
    """Switched off or not installed: the test fails with what to install."""
    result = author.run(
        "-m", "hw", "-p", "no:benchmark", test="def test_it(kernel_benchmark):\n    kernel_benchmark(double, 4)\n"
    )
    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(["kernel_benchmark needs pytest-benchmark: pip install pytest-benchmark"])


MANY = """
@pytest.mark.parametrize("x", range(6))
def test_double(run_kernel, device_prints, x):
    assert run_kernel(double, x) == 2 * x
    assert [int(one.value) for one in device_prints] == [x]

def test_other_way_in(device_prints):
    assert not device_prints
"""


def test_with_xdist_every_test_is_counted_once(author: Any) -> None:
    """Workers send what their tests did; the controller adds it up, shows the prints and writes the report there."""
    pytest.importorskip("xdist")
    result = author.run_apart("-n", "2", "--nki-prints", "--nki-report=out", test=MANY)
    result.assert_outcomes(passed=7)
    result.stdout.fnmatch_lines(
        ["*nki device prints*", "nki: 6 kernels run, 0 findings, 6 device prints; report in *out"]
    )
    assert len(list((author.pytester.path / "out").glob("*.json"))) == 6


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_in_random_order_nothing_leaks(author: Any, seed: str) -> None:
    """Shuffled tests, targets mixed, see their own runs only."""
    pytest.importorskip("pytest_randomly")
    result = author.run_apart("-p", "pytest_randomly", f"--randomly-seed={seed}", test=MANY)
    result.assert_outcomes(passed=7)


def test_the_kernels_that_ran_are_known_by_name(author: Any) -> None:
    """A live sequence, empty for each test anew; the test that asks is one of simulation."""
    result = author.run(
        "-m",
        "sim",
        test="""
def test_it(kernels_ran, run_kernel):
    assert kernels_ran == [] and not kernels_ran
    run_kernel(double, 4)
    run_kernel(wide, 4)
    assert kernels_ran == ["double", "wide"] and kernels_ran[0] == "double" and "wide" in kernels_ran

def test_next(kernels_ran):
    assert len(kernels_ran) == 0

def test_another():
    pass
""",
    )
    result.assert_outcomes(passed=2, deselected=1)


def test_a_run_may_be_required(author: Any) -> None:
    """--nki-require-run fails a test in which the kernel was not reached; tests without our fixtures are left alone."""
    test = """
def compute(run_kernel, x, fast):
    return run_kernel(double, x) if fast else 2 * x

@pytest.mark.parametrize("fast", [True, False])
def test_it(run_kernel, fast):
    assert compute(run_kernel, 4, fast) == 8

def test_other():
    pass
"""
    author.run(test=test).assert_outcomes(passed=3)
    result = author.run("--nki-require-run", test=test)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["FAILED test_it.py::test_it?sim-False? - *no kernel has run in this*"])


def test_a_lost_gradient_is_said(author: Any) -> None:
    """Once a call: an argument requires a gradient and no result carries one; not where autograd is off."""
    pytest.importorskip("torch")
    test = """
import warnings
import torch

def identity(run, x):
    return x.detach()

def test_it(run_kernel):
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="backward.. ends here") as said:
        run_kernel(identity, x)
    assert said[0].filename == __file__
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error")
        run_kernel(identity, x)

def test_without(run_kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_kernel(identity, torch.ones(2))
"""
    author.run_apart(test=test).assert_outcomes(passed=2)
