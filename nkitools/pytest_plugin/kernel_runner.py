"""The fixture `run_kernel`: runs kernels on the target of the test, and compares their outputs with a reference."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from nkitools.facts import options
from nkitools.pytest_plugin.asked_comparison import OF_SIMULATION, AskedComparison
from nkitools.pytest_plugin.devices import ask_for_degree, note_status, refuse
from nkitools.pytest_plugin.recording import RECORDER

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument, Kernel
    from nkitools.record.outputs import Outputs
    from nkitools.record.run import Run
    from nkitools.targets.target import Device, Target
    from nkitools.verdict.rows import Verdict


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
        mutates: str | Sequence[str] = (),
        **kwargs: Argument,
    ) -> Outputs:
        """Run ``kernel`` and return its outputs; skip the test if the kernel's device is missing.

        Findings of the rules in ``allow`` are accepted. ``reference``: the expected outputs, or a function that returns
        them; it gets copies of the arguments, made before the kernel ran. Outputs and reference are compared: shapes,
        kinds of dtypes and NaN first, then numbers, by ``rtol`` and ``atol`` as in ``numpy.testing.assert_allclose``.
        Without both, or with ``tolerance="auto"``, the tolerance is the error that the dtypes, and in simulation the
        sums and functions of the run, explain (``run_kernel.run.tolerance()``). If that could hide a mistake, the test
        fails as undecided and asks for a stated tolerance. ``tolerance="auto"`` beside ``rtol`` and ``atol`` warns if
        they are too tight or far too wide. Without ``reference``, the keywords ``rtol``, ``atol``, ``equal_nan`` and
        ``tolerance`` go to the kernel, which must have them.

        The arguments keep their values. A kernel that changes one, and does not return it, fails (NK409), unless
        ``mutates`` names its parameter: then the caller's array gets the kernel's changes, and they are compared with
        those that the function ``reference`` makes to its own copy.

        ``expect``: functions by the names of tensors of the kernel, which return the expected contents at the end of a
        turn; each takes the kernel's arguments and, by keyword, the loop counters that it names. In simulation these
        tensors are compared too, in float64. The run keeps the reference (``run_kernel.run.reference``). If an
        assertion on the outputs fails, the report has the edit of the kernel that makes them right, if one is found.
        Exceptions of the kernel pass through, also ``KernelError`` for a broken rule; AssertionError if outputs or
        tensors differ; ValueError for a comparison with nothing, such as a tolerance without ``reference``, for a
        tolerance that is no finite number, and for unknown names.
        """
        __tracebackhide__ = True
        numbers = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "tolerance": tolerance}
        stated = {name: value for name, value in numbers.items() if value is not None}
        if expect is not None and _has_its_own(kernel, "expect"):
            kwargs, expect = {**kwargs, "expect": expect}, None
        asked = AskedComparison(
            kernel=kernel,
            args=args,
            kwargs=kwargs if self._target == "sim" else _without(OF_SIMULATION, kwargs),
            reference=reference,
            stated=stated,
            expect=expect,
            mutates=(mutates,) if isinstance(mutates, str) else tuple(mutates),
        )
        return self._run_and_compare(asked, allow)

    def _run_and_compare(self, asked: AskedComparison, allow: str | Sequence[str]) -> Outputs:
        __tracebackhide__ = True
        target = target_for(asked.kernel, self._target, self._recorder.asked_devices())
        if self._target == "hw":
            refuse_unfit(target, asked.kernel, asked.args, asked.kwargs, self._recorder.asked_devices())
        kwargs = asked.of_the_kernel()
        asked.must_fit()
        expected = asked.expected()
        is_ours = self._target == "sim" and target.key == "builtin"  # others let every kernel change its arguments
        in_simulator = {"mutates": asked.mutates} if asked.mutates and is_ours else {}
        run, full = self._run(target, asked.kernel, allow, asked.args, {**kwargs, **in_simulator})
        _remind_of_gradients((asked.args, kwargs), run.outputs)
        self._recorder.last_run = run
        self._recorder.asked_for.append((run, full))
        run.reference = expected
        if expected is not None:
            self._compare(run, asked)
        outputs: Outputs = run.outputs
        return outputs

    def _compare(self, run: Run, asked: AskedComparison) -> None:
        """Compare a run with its reference, and warn of a stated tolerance that the run does not explain."""
        __tracebackhide__ = True
        from nkitools.pytest_plugin.reference_check import assert_as_expected

        is_simulated = self._target == "sim"
        if asked.stated.get("tolerance") == "auto" and is_simulated and asked.has_numbers:
            rtol, atol = (float(asked.stated.get(name, 0.0)) for name in ("rtol", "atol"))
            for sentence in run.tolerance().sentences(rtol, atol):
                warnings.warn(sentence, stacklevel=4)
        assert_as_expected(run, asked.changed(), asked.ties(), is_simulated=is_simulated)

    def _run(
        self,
        target: Target,
        kernel: Kernel,
        allow: str | Sequence[str],
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
    ) -> tuple[Run, Run | None]:
        """Run the kernel, with findings of ``allow`` set aside; also in full precision, if asked for.

        A failing run is kept as the last run, too.
        """
        __tracebackhide__ = True
        from nkitools.launch.kept_arguments import changes_fail
        from nkitools.record.allowed_rules import allow_findings, set_aside
        from nkitools.record.run_listeners import collect_runs
        from nkitools.targets.target import OtherDegree, WrongDevice

        with allow_findings(*([allow] if isinstance(allow, str) else allow)), collect_runs() as runs:
            try:
                full = _in_full_precision(target, kernel, args, kwargs)
                with changes_fail():
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

    def verify(self, kernel: Kernel, /, *args: Argument, reference: Argument, **options: Argument) -> Verdict:
        """Return the verdict on ``kernel``, as `nkitools.verify` does, with its options; AssertionError if a row fails.

        A verdict of ``unknown`` is returned. In the ``[hw]`` variant the call skips the test: verdicts are made in
        simulation.
        """
        __tracebackhide__ = True
        from nkitools.verdict.verify import verify

        if self._target != "sim":
            refuse("verify judges a kernel in simulation")
        said: dict[str, Any] = dict(options)
        found = verify(kernel, *args, reference=reference, **said)
        assert found.outcome != "fail", str(found)
        return found

    @property
    def run(self) -> Run:
        """Return the run of the last call in this test (under ``@given``: in this example), also if it failed.

        AttributeError before the first call, and if the last call failed before a run began.
        """
        last = self._recorder.last_run
        if last is None:
            raise AttributeError("run_kernel has run nothing in this test yet (under @given: in this example)")
        return last

    def __repr__(self) -> str:
        return f"<run_kernel on {self._target}>"


class GradientReminder(UserWarning):
    """Warns that an argument of a kernel requires a gradient, and that the kernel's results carry none."""


def _remind_of_gradients(given: Any, outputs: Any) -> None:
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():  # within torch.autograd.Function it is off
        return
    if _requires_gradient(given, torch) and not _requires_gradient(outputs, torch):
        warnings.warn(
            "an argument requires a gradient, and the kernel's results carry none: backward() ends here. Call the "
            "kernel in the forward of a torch.autograd.Function, or pass tensor.detach().",
            GradientReminder,
            stacklevel=4,
        )


def _requires_gradient(value: Any, torch: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(value.requires_grad)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return any(_requires_gradient(each, torch) for each in parts)


def _has_its_own(kernel: Kernel, name: str) -> bool:
    """Return True if a kernel has a parameter of this name, beside ``**kwargs``."""
    try:
        return name in inspect.signature(kernel).parameters
    except (TypeError, ValueError):
        return False


def _without(names: Collection[str], kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name not in names}


def target_for(kernel: Kernel, target: str, asked: Collection[str]) -> Any:
    __tracebackhide__ = True
    from nkitools.targets import device_for, simulator_for

    if target == "sim":
        return simulator_for(kernel)
    found = device_for(kernel, asked)
    if found.device is None:
        refuse(found.reason)
    return found.device


def refuse_unfit(
    device: Device, kernel: Kernel, args: tuple[Any, ...], kwargs: dict[str, Any], asked: Collection[str]
) -> None:
    """Skip a kernel that was not written for the device, unless the user named the device: then it is an error."""
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
