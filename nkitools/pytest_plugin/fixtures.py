"""The fixtures. All but `kernel_benchmark` live as long as the session, so Hypothesis tests may use them.

Their contents belong to the running test, and under ``@given`` to the current example: `run_kernel.run` and
`device_prints` start empty for each. A kernel that another fixture runs belongs to the test that sets the fixture up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import pytest

from nkitools.facts import options
from nkitools.pytest_plugin.asked_comparison import OF_SIMULATION
from nkitools.pytest_plugin.devices import ask_for_degree, note_status, refuse
from nkitools.pytest_plugin.kernel_runner import KernelRunner, refuse_unfit, target_for
from nkitools.pytest_plugin.recording import RECORDER, Recorder

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument, Kernel
    from nkitools.expect import expect_finding as Expectation  # noqa: N812 - the fixture has the other name
    from nkitools.pytest_plugin.prints_fixture import DevicePrints


@pytest.fixture(scope="session")
def _nki_target(request: pytest.FixtureRequest) -> str:
    """Return the target of this variant of the test; simulation for a test that has no variants.

    A method of `unittest.TestCase` has no variants, nor has a test that uses `request.getfixturevalue`. The scope is
    the session: values of other fixtures on one target are dropped before the other target's turn.
    """
    return str(getattr(request, "param", "sim"))


@pytest.fixture(scope="session")
def run_kernel(_nki_target: str, pytestconfig: pytest.Config) -> KernelRunner:
    """Run a kernel on the target of the test: ``outputs = run_kernel(kernel, *arrays, **kwargs)``.

    Takes an NKI kernel or a JAX function with Pallas calls. The variants of the test are ``[sim]`` and ``[hw]``;
    ``[hw]`` is made if there is a device, or if ``-m hw`` or ``--nki-require-hw`` asks for one. The marks sim and hw
    choose between them. ``run_kernel.run`` is the whole run of the last call: outputs, prints, findings, instructions.
    ``allow`` names rules whose findings are accepted in this call. ``reference``: the expected outputs, or a function
    of the arguments that returns them; they are compared with the kernel's, and AssertionError says if they differ.
    Like ``mutates``, ``watch``, ``grid``, ``chip``, ``nki_version``, ``ranks``, ``rules`` and ``sum_order`` they do not
    reach the kernel; pass a kernel's own parameter of such a name by position. Without ``reference``,
    ``rtol``, ``atol``, ``equal_nan`` and ``tolerance`` go to the kernel.
    """
    return KernelRunner(_nki_target, pytestconfig)


@pytest.fixture(scope="session")
def device_prints(pytestconfig: pytest.Config) -> DevicePrints:
    """Return the device prints of this test so far, however its kernels were called: a live sequence of
    `nkitools.Print`, with the filters of `nkitools.Prints`.

    On a target that does not print, the first look at the prints skips the test.
    """
    from nkitools.pytest_plugin.prints_fixture import DevicePrints

    return DevicePrints(pytestconfig.stash[RECORDER])


@pytest.fixture(scope="session")
def kernels_ran(pytestconfig: pytest.Config) -> KernelsRan:
    """Return the names of the kernels that this test has started so far, however they were called: a live sequence.

    A kernel has one entry for each run, also for one that fails. For a library that chooses between a kernel and a
    fallback: ``assert kernels_ran == ["softmax"]``.
    """
    return KernelsRan(pytestconfig.stash[RECORDER])


@pytest.fixture(scope="session")
def expect_finding(pytestconfig: pytest.Config) -> NegativeTest:
    """Return `nkitools.expect_finding`, for a block that must break a rule: ``with expect_finding("NK103"):
    run_kernel(kernel, a, b)``.

    AssertionError if no run inside the block breaks it. The test runs in simulation only, since devices check no rules,
    and is skipped under AWS's simulator if it uses `run_kernel`.
    """
    return NegativeTest(pytestconfig.stash[RECORDER])


@pytest.fixture
def kernel_benchmark(_nki_target: str, request: pytest.FixtureRequest) -> KernelBenchmark:
    """Time a kernel on hardware with pytest-benchmark: ``outputs = kernel_benchmark(kernel, *arrays, **kwargs)``.

    The outputs are those of the last round. In simulation the call skips the test, with the estimated time of the
    kernel as a part of the reason. Without pytest-benchmark the test fails.
    """
    return KernelBenchmark(_nki_target, request)


@pytest.fixture
def nki_case(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    """Run one case of ``@pytest.mark.nki_sweep`` and return its row.

    If the outcome is not ``pass``, the test fails before its body runs. The row is that of `nkitools.sweep`: the
    case's own names, ``chip``, ``outcome``, ``findings``, ``max_error``, ``estimate_us``, ``seconds``,
    ``low_precision``, ``remaining``, ``error``, ``left_out``.
    """
    from nkitools.pytest_plugin.sweep_mark import run_case

    return run_case(request)


class KernelsRan(Sequence[str]):
    """The names of the kernels of the running test, in the order in which they began."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def _names(self) -> list[str]:
        return [run.kernel for run in self._recorder.runs]

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self._names()[index]

    def __len__(self) -> int:
        return len(self._recorder.runs)

    def __eq__(self, other: object) -> bool:
        return self._names() == (list(other) if isinstance(other, (list, tuple, KernelsRan)) else other)

    def __repr__(self) -> str:
        return repr(self._names())


class NegativeTest:
    """The fixture `expect_finding`: a call returns a ``with`` block that must break a rule."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __call__(
        self, *rules: str, line: int | str | None = None, file: str | None = None, match: str | None = None
    ) -> Expectation:
        """Return a block as of ``nkitools.expect_finding``; skips the test under AWS's simulator, without rules."""
        from nkitools.expect import expect_finding

        if options.value("simulator") == "official" and self._recorder.asks_for("run_kernel"):
            pytest.skip("AWS's simulator reports no rules (--nki-simulator=official)")
        return expect_finding(*rules, line=line, file=file, match=match)

    def __repr__(self) -> str:
        return "<expect_finding: nkitools.expect_finding>"


class KernelBenchmark:
    """Times kernels on hardware with pytest-benchmark; in simulation a call skips the test, with an estimate."""

    def __init__(self, target: str, request: pytest.FixtureRequest) -> None:
        self._target = target
        self._request = request

    def __call__(self, kernel: Kernel, /, *args: Argument, operations: float | None = None, **kwargs: Argument) -> Any:
        """Time ``kernel`` with pytest-benchmark on the device and return the outputs of its last run.

        The first call compiles and is not counted; each round ends when the device has finished. ``operations``: the
        kernel's number of operations, for its share of the chip's peak; like ``chip`` and ``grid`` it does not reach
        the kernel. ``extra_info`` has the kernel, the device and the measurements.
        """
        __tracebackhide__ = True
        if self._target == "sim":
            from nkitools.pytest_plugin.benchmarks import estimated

            pytest.skip(
                "kernel_benchmark measures on hardware (-m hw): a simulator's wall time says nothing of the chip; "
                + estimated(kernel, args, kwargs)
            )
        recorder = self._request.config.stash[RECORDER]
        device = target_for(kernel, self._target, recorder.asked_devices())
        if not self._request.config.pluginmanager.hasplugin("benchmark"):
            pytest.fail("kernel_benchmark needs pytest-benchmark: pip install pytest-benchmark", pytrace=False)
        from nkitools.pytest_plugin.benchmarks import count_as_used, remember_call
        from nkitools.targets.target import OtherDegree, WrongDevice
        from nkitools.targets.timing import time_kernel

        kwargs = {name: value for name, value in kwargs.items() if name not in OF_SIMULATION}
        refuse_unfit(device, kernel, args, kwargs, recorder.asked_devices())
        benchmark = self._request.getfixturevalue("benchmark")
        given = (args, {name: value for name, value in kwargs.items() if name != "chip"})
        try:
            outputs = time_kernel(benchmark, device, kernel, args, kwargs, operations)
            remember_call(self._request.config, benchmark, device.chip(), kernel, *given)
            return outputs
        except WrongDevice as error:
            refuse(str(error))
        except OtherDegree as error:
            ask_for_degree(self._request.config, error)
        except Exception as error:
            note_status(self._request.config, error)
            raise
        finally:
            count_as_used(benchmark)
