"""The fixtures. All but `kernel_benchmark` live as long as the session, so Hypothesis tests may use them.

What they hold belongs to the running test, and under ``@given`` to the current example: `run_kernel.run` and
`device_prints` start empty for each. A fixture that runs a kernel does so on behalf of the test that sets it up.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import pytest

from nkitools import options
from nkitools.pytest_plugin.devices import ask_for_degree, note_status, refuse
from nkitools.pytest_plugin.recording import RECORDER, Recorder

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument, Kernel
    from nkitools.expect import expect_finding as Expectation  # noqa: N812 - the fixture has the other name
    from nkitools.pytest_plugin.prints_fixture import DevicePrints
    from nkitools.record.expected_outputs import Reference
    from nkitools.record.outputs import Outputs
    from nkitools.record.run import Run
    from nkitools.targets.target import Device, Target

# What run_kernel takes for simulation alone: a device judges no rules and shows no values on the way.
_OF_SIMULATION = ("nki_version", "rules", "watch")
# What of its keywords does not reach the kernel.
_OF_LAUNCHES = ("grid", "chip", "ranks", *_OF_SIMULATION)


@pytest.fixture(scope="session")
def _nki_target(request: pytest.FixtureRequest) -> str:
    """Return the target of this variant of the test; simulation for a test that has no variants.

    A method of `unittest.TestCase` has none, and neither has a test that asks by `request.getfixturevalue`. The scope
    is the session: what other fixtures computed on one target is thrown away before the other target's turn.
    """
    return str(getattr(request, "param", "sim"))


@pytest.fixture(scope="session")
def run_kernel(_nki_target: str, pytestconfig: pytest.Config) -> KernelRunner:
    """Run a kernel on the target of the test: ``outputs = run_kernel(kernel, *arrays, **kwargs)``.

    Takes an NKI kernel or a JAX function with Pallas calls. The test is ``[sim]``; its variant ``[hw]`` is made where a
    device is there, where ``-m`` names hw, and with ``--nki-require-hw``.
    ``run_kernel.run`` is the whole run of the last call: outputs, prints, findings, instructions. ``allow`` names rules
    whose findings are accepted in this call, ``reference`` what the outputs should be; like ``grid``, ``chip``,
    ``nki_version``, ``ranks`` and ``rules`` they do not reach the kernel, whose own parameter of such a name is passed
    by position.
    """
    return KernelRunner(_nki_target, pytestconfig)


@pytest.fixture(scope="session")
def device_prints(pytestconfig: pytest.Config) -> DevicePrints:
    """Return the device prints of this test so far, a sequence of records, by whatever way in its kernels were run."""
    from nkitools.pytest_plugin.prints_fixture import DevicePrints

    return DevicePrints(pytestconfig.stash[RECORDER])


@pytest.fixture(scope="session")
def kernels_ran(pytestconfig: pytest.Config) -> KernelsRan:
    """Return the names of the kernels that have run in this test so far, by whatever way in: a live sequence.

    For a library that chooses between a kernel and a fallback: ``assert kernels_ran == ["softmax"]``.
    """
    return KernelsRan(pytestconfig.stash[RECORDER])


@pytest.fixture(scope="session")
def expect_finding(pytestconfig: pytest.Config) -> NegativeTest:
    """Return a block that must break a rule: ``with expect_finding("NK103", line="nc_matmul("): run_kernel(kernel, a,
    b)``.

    Takes the arguments of ``nkitools.expect_finding``. The test runs in simulation only, where rules are judged.
    """
    return NegativeTest(pytestconfig.stash[RECORDER])


@pytest.fixture
def kernel_benchmark(_nki_target: str, request: pytest.FixtureRequest) -> KernelBenchmark:
    """Time a kernel on hardware with pytest-benchmark: ``outputs = kernel_benchmark(kernel, *arrays, **kwargs)``.

    In simulation the call skips the test, with the estimated time of the kernel as a part of the reason.
    """
    return KernelBenchmark(_nki_target, request)


@pytest.fixture
def nki_case(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    """Run one case of ``@pytest.mark.nki_sweep`` and return its row; the test fails where the case does not pass.

    The row is one of `nkitools.sweep`: the case's own names, ``chip``, ``outcome``, ``findings``, ``max_error``,
    ``estimate_us``, ``seconds``.
    """
    from nkitools.pytest_plugin.sweep_mark import run_case

    return run_case(request)


class KernelRunner:
    """Runs kernels on one target and remembers the last run of the test."""

    def __init__(self, target: str, config: pytest.Config) -> None:
        self._target = target
        self._config = config
        self._recorder = config.stash[RECORDER]

    def __call__(
        self,
        kernel: Kernel,
        /,
        *args: Argument,
        allow: str | Sequence[str] = (),
        reference: Argument = None,
        rtol: float | None = None,
        atol: float | None = None,
        equal_nan: bool | None = None,
        tolerance: str | None = None,
        expect: Mapping[str, Callable[..., Any]] | None = None,
        **kwargs: Argument,
    ) -> Outputs:
        """Run ``kernel`` and return its outputs; skips where the kernel's device is missing.

        Findings of the rules in ``allow`` are accepted. ``reference`` is what the outputs should be, or a function of
        the same arguments that returns it (it is called before the kernel, which may write into them): the run keeps
        it (``run_kernel.run.reference``) and its page shows the difference. With a tolerance (``rtol``, ``atol``, as
        ``numpy.testing.assert_allclose`` has them) outputs that differ fail the test; without one, comparing is the
        test's own. Without ``reference``, ``rtol``, ``atol`` and ``equal_nan`` are the kernel's.
        ``tolerance="auto"``, in simulation: that which the run explains (``run_kernel.run.tolerance()``); beside
        ``rtol`` and ``atol`` a warning where they lie below it or far above it. Where an assertion on the outputs
        fails, the report names the line and turn that is wrong first. ``expect``: functions that return what tensors
        of the kernel hold at the end of a turn, by their names; each takes the kernel's arguments and, by keyword, the
        loop counters that it names; without ``reference`` it is the kernel's. Raises what the kernel raises,
        ``KernelError`` for a broken rule among it; AssertionError where outputs differ; ValueError where ``allow``
        names no rule.
        """
        __tracebackhide__ = True
        target = _target_for(kernel, self._target, self._recorder.asked_devices())
        if self._target == "hw":
            kwargs = {name: value for name, value in kwargs.items() if name not in _OF_SIMULATION}
            _refuse_unfit(target, kernel, args, kwargs, self._recorder.asked_devices())
        if tolerance not in (None, "auto"):
            raise ValueError(f"tolerance: it may be 'auto', it is {tolerance!r}")
        stated = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
        stated = {name: value for name, value in stated.items() if value is not None}
        if reference is None:
            kwargs |= stated if expect is None else {**stated, "expect": expect}
        expected = _expected(reference, args, kwargs, {**stated, "expect": expect})
        run, full = self._run(target, kernel, allow, args, kwargs)
        _remind_of_gradients((args, kwargs), run.outputs)
        self._recorder.last_run = run
        self._recorder.asked_for.append((run, full))
        run.reference = expected
        if tolerance == "auto":
            _explain_tolerance(run, rtol, atol, self._target)
        if run.reference is not None and run.reference.is_stated:
            from nkitools.pytest_plugin.reference_check import assert_as_expected

            assert_as_expected(run.outputs, run.reference)
        outputs: Outputs = run.outputs
        return outputs

    def _run(
        self,
        target: Target,
        kernel: Kernel,
        allow: str | Sequence[str],
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
    ) -> tuple[Run, Run | None]:
        """Return the run, with the findings of ``allow`` set aside, and that in full precision where one is asked for.

        A run that fails is remembered as the last one, too.
        """
        __tracebackhide__ = True
        from nkitools.record.allowed_rules import allow_findings, set_aside
        from nkitools.record.run_listeners import collect_runs
        from nkitools.targets.target import OtherDegree, WrongDevice

        with allow_findings(*([allow] if isinstance(allow, str) else allow)), collect_runs() as runs:
            try:
                full = _in_full_precision(target, kernel, args, kwargs)
                return target.run(kernel, *args, **kwargs), full
            except WrongDevice as error:
                refuse(str(error))
            except OtherDegree as error:
                ask_for_degree(self._config, error)
            except Exception as error:
                note_status(self._config, error)
                raise
            finally:
                for each in runs:
                    set_aside(each)
                # A run that failed is the most interesting one. The first: kernels may launch others inside.
                self._recorder.last_run = runs[0] if runs else None

    @property
    def run(self) -> Run:
        """The run of the last call in this test (under ``@given``: in this example), also if it failed."""
        last = self._recorder.last_run
        if last is None:
            raise AttributeError("run_kernel has run nothing in this test yet (under @given: in this example)")
        return last

    def __repr__(self) -> str:
        return f"<run_kernel on {self._target}>"


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
    """Makes blocks that must break a rule."""

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
    """Times kernels on hardware; in simulation it skips with an estimate."""

    def __init__(self, target: str, request: pytest.FixtureRequest) -> None:
        self._target = target
        self._request = request

    def __call__(self, kernel: Kernel, /, *args: Argument, operations: float | None = None, **kwargs: Argument) -> Any:
        """Time ``kernel`` with pytest-benchmark on the device and return the outputs of its last run.

        The first call, which compiles, is not among the rounds; each round ends when the device has finished.
        ``operations``: how many of them the kernel makes, for its share of the chip's peak; like ``chip`` and ``grid``
        it does not reach the kernel. What was measured, and on what, stands in ``extra_info``.
        """
        __tracebackhide__ = True
        if self._target == "sim":
            from nkitools.pytest_plugin.benchmarks import estimated

            pytest.skip(
                "kernel_benchmark measures on hardware (-m hw): a simulator's wall time says nothing of the chip; "
                + estimated(kernel, args, kwargs)
            )
        recorder = self._request.config.stash[RECORDER]
        device = _target_for(kernel, self._target, recorder.asked_devices())
        if not self._request.config.pluginmanager.hasplugin("benchmark"):
            pytest.fail("kernel_benchmark needs pytest-benchmark: pip install pytest-benchmark", pytrace=False)
        from nkitools.pytest_plugin.benchmarks import count_as_used, remember_call
        from nkitools.targets.target import OtherDegree, WrongDevice
        from nkitools.targets.timing import time_kernel

        kwargs = {name: value for name, value in kwargs.items() if name not in _OF_SIMULATION}
        _refuse_unfit(device, kernel, args, kwargs, recorder.asked_devices())
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


class GradientReminder(UserWarning):
    """An argument of a kernel requires a gradient, and its results carry none."""


def _remind_of_gradients(given: Any, outputs: Any) -> None:
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():  # within torch.autograd.Function it is off
        return
    if _requires_gradient(given, torch) and not _requires_gradient(outputs, torch):
        warnings.warn(
            "an argument requires a gradient, and the kernel's results carry none: backward() ends here. Call the "
            "kernel in the forward of a torch.autograd.Function, or pass tensor.detach().",
            GradientReminder,
            stacklevel=3,
        )


def _requires_gradient(value: Any, torch: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(value.requires_grad)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return any(_requires_gradient(each, torch) for each in parts)


def _explain_tolerance(run: Run, rtol: float | None, atol: float | None, target: str) -> None:
    """Give the reference of a run the tolerance that the run explains, or say what is wrong with the stated one."""
    if target == "hw":
        if rtol is None and atol is None:
            sentence = "tolerance='auto' is known in simulation only: nothing was compared; state rtol and atol, too"
            warnings.warn(sentence, stacklevel=3)
        return
    explained = run.tolerance()
    if rtol is not None or atol is not None:
        for sentence in explained.sentences(rtol or 0.0, atol or 0.0):
            warnings.warn(sentence, stacklevel=3)
    elif run.reference is not None:
        run.reference = replace(run.reference, rtol=explained.rtol, atol=explained.atol)


def _expected(
    reference: Argument, args: tuple[Any, ...], kwargs: dict[str, Any], stated: dict[str, Any]
) -> Reference | None:
    if reference is None:
        return None
    from nkitools.record.expected_outputs import Reference

    function = reference if callable(reference) else None
    if function is not None:
        reference = function(*args, **{name: value for name, value in kwargs.items() if name not in _OF_LAUNCHES})
    return Reference(reference, **stated, function=function)


def _target_for(kernel: Kernel, target: str, asked: Collection[str]) -> Any:
    __tracebackhide__ = True
    from nkitools.targets import device_for, simulator_for

    if target == "sim":
        return simulator_for(kernel)
    found = device_for(kernel, asked)
    if found.device is None:
        refuse(found.reason)
    return found.device


def _refuse_unfit(
    device: Device, kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any], asked: Collection[str]
) -> None:
    """Skip what was not written for the device, unless the user named that: then the error is the test's."""
    __tracebackhide__ = True
    if device.key in asked or options.value("target") == device.key:
        return
    reason = device.unfit(kernel, args, {name: value for name, value in kwargs.items() if name != "chip"})
    if reason:
        refuse(reason)


def _in_full_precision(target: Target, kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run | None:
    if not options.value("compare"):
        return None
    from nkitools.pytest_plugin.compare_targets import in_full_precision

    full: Run | None = in_full_precision(target, kernel, args, kwargs)
    return full
