"""The fixtures. All but `kernel_benchmark` live as long as the session, so Hypothesis tests may use them.

What they hold belongs to the running test, and under ``@given`` to the current example: `run_kernel.run` and
`device_prints` start empty for each. A fixture that runs a kernel does so on behalf of the test that sets it up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import pytest

from nkitools import options
from nkitools.pytest_plugin.devices import refuse
from nkitools.pytest_plugin.recording import RECORDER, Recorder

if TYPE_CHECKING:
    from nkitools.expect import expect_finding as Expectation  # noqa: N812 - the fixture has the other name
    from nkitools.record.prints import Print
    from nkitools.record.run import Run
    from nkitools.targets import Target


@pytest.fixture(scope="session", params=["sim", "hw"])
def _nki_target(request: pytest.FixtureRequest) -> str:
    """The target of this variant of the test.

    Of the session's scope: what other fixtures computed on one target is thrown away before the other's turn.
    """
    return str(request.param)


@pytest.fixture(scope="session")
def run_kernel(_nki_target: str, pytestconfig: pytest.Config) -> KernelRunner:
    """Run a kernel on the target of the test: ``outputs = run_kernel(kernel, *arrays, **kwargs)``.

    Takes an NKI kernel or a JAX function with Pallas calls. The test becomes two, ``[sim]`` and ``[hw]``.
    ``run_kernel.run`` is the whole run of the last call: outputs, prints, findings, instructions. ``allow`` names rules
    whose findings are accepted in this call; like ``grid``, ``chip``, ``ranks`` and ``rules`` it does not reach the
    kernel, whose own parameter of such a name is passed by position.
    """
    return KernelRunner(_nki_target, pytestconfig.stash[RECORDER])


@pytest.fixture(scope="session")
def device_prints(pytestconfig: pytest.Config) -> DevicePrints:
    """The device prints of this test so far, a sequence of records, by whatever way in its kernels were run."""
    return DevicePrints(pytestconfig.stash[RECORDER])


@pytest.fixture(scope="session")
def expect_finding(pytestconfig: pytest.Config) -> NegativeTest:
    """A block that must break a rule: ``with expect_finding("NK103", line="nc_matmul("): run_kernel(kernel, a, b)``.

    Takes what ``nkitools.expect_finding`` does. The test runs in simulation only, where rules are judged.
    """
    return NegativeTest(pytestconfig.stash[RECORDER])


@pytest.fixture
def kernel_benchmark(_nki_target: str, request: pytest.FixtureRequest) -> KernelBenchmark:
    """Time a kernel on hardware with pytest-benchmark: ``outputs = kernel_benchmark(kernel, *arrays, **kwargs)``.

    In simulation the call skips the test: a simulator's time is not the device's.
    """
    return KernelBenchmark(_nki_target, request)


class KernelRunner:
    """Runs kernels on one target and remembers the last run of the test."""

    def __init__(self, target: str, recorder: Recorder) -> None:
        self._target = target
        self._recorder = recorder

    def __call__(self, kernel: Any, /, *args: Any, allow: str | Sequence[str] = (), **kwargs: Any) -> Any:
        """Run ``kernel`` and return its outputs; skips where the kernel's device is missing.

        Findings of the rules in ``allow`` are accepted. Raises what the kernel raises, ``KernelError`` for a broken
        rule among it, and ValueError where ``allow`` names no rule.
        """
        __tracebackhide__ = True
        from nkitools.record.allowed import allow_findings, set_aside
        from nkitools.record.collect import collect_runs

        target = _target_for(kernel, self._target)
        with allow_findings(*([allow] if isinstance(allow, str) else allow)), collect_runs() as runs:
            try:
                run = target.run(kernel, *args, **kwargs)
            finally:
                for each in runs:
                    set_aside(each)
                # A run that failed is the most interesting one. The first: kernels may launch others inside.
                self._recorder.last_run = runs[0] if runs else None
        self._recorder.last_run = run
        return run.outputs

    @property
    def run(self) -> Run:
        """The run of the last call in this test (under ``@given``: in this example), also if it failed."""
        last = self._recorder.last_run
        if last is None:
            raise AttributeError("run_kernel has run nothing in this test yet (under @given: in this example)")
        return last

    def __repr__(self) -> str:
        return f"<run_kernel on {self._target}>"


class DevicePrints(Sequence["Print"]):
    """The records of the device prints of the running test, in order; a live view."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __call__(self, prefix: str | None = None) -> list[Print]:
        """The records so far as a list of their own; with ``prefix`` only those printed under it."""
        prints = [one for run in self._recorder.runs for one in run.prints]
        return prints if prefix is None else [one for one in prints if one.prefix == prefix]

    @overload
    def __getitem__(self, index: int) -> Print: ...
    @overload
    def __getitem__(self, index: slice) -> list[Print]: ...
    def __getitem__(self, index: int | slice) -> Print | list[Print]:
        return self()[index]

    def __len__(self) -> int:
        return sum(len(run.prints) for run in self._recorder.runs)

    def __eq__(self, other: object) -> bool:
        return self() == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # its content changes

    def __repr__(self) -> str:
        return f"<device_prints: {len(self)} of this test>"


class NegativeTest:
    """Makes blocks that must break a rule."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __call__(
        self, *rules: str, line: int | str | None = None, file: str | None = None, match: str | None = None
    ) -> Expectation:
        """A block as of ``nkitools.expect_finding``; skips the test where AWS's simulator, which has no rules, runs."""
        from nkitools.expect import expect_finding

        if options.value("simulator") == "official" and self._recorder.asks_for("run_kernel"):
            pytest.skip("AWS's simulator reports no rules (--nki-simulator=official)")
        return expect_finding(*rules, line=line, file=file, match=match)

    def __repr__(self) -> str:
        return "<expect_finding: nkitools.expect_finding>"


class KernelBenchmark:
    """Times kernels on hardware; in simulation it refuses."""

    def __init__(self, target: str, request: pytest.FixtureRequest) -> None:
        self._target = target
        self._request = request

    def __call__(self, kernel: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Time ``kernel`` with pytest-benchmark and return the outputs of its last run."""
        __tracebackhide__ = True
        if self._target == "sim":
            pytest.skip("kernel_benchmark measures on hardware (-m hw): a simulator's time is not the device's")
        target = _target_for(kernel, self._target)
        if not self._request.config.pluginmanager.hasplugin("benchmark"):
            pytest.fail("kernel_benchmark needs pytest-benchmark: pip install pytest-benchmark", pytrace=False)
        benchmark = self._request.getfixturevalue("benchmark")
        benchmark.extra_info.update(kernel=getattr(kernel, "__name__", repr(kernel)), target=target.name)
        return benchmark(target.run, kernel, *args, **kwargs).outputs


def _target_for(kernel: Any, target: str) -> Target:
    __tracebackhide__ = True
    from nkitools.targets import device_for, simulator_for

    if target == "sim":
        return simulator_for(kernel)
    device = device_for(kernel)
    found = device.available()
    if not found.ok:
        refuse(found.reason)
    return device
