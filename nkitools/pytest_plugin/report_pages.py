"""`--nki-report DIR`: what its pages need of a running test: values, and what they were compared with."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from nkitools.pytest_plugin.recording import Recorder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nkitools.record.run import Run

# What the assertions of numpy.testing and torch.testing call the two sides.
_SIDES = (("actual", "desired"), ("actual", "expected"), ("x", "y"))
_ASSERTING = ("numpy.testing", "torch.testing")


class Pages:
    """Has the kernels of tests watched, and learns from a failed assertion what their outputs should have been."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Keep what instructions write in this test."""
        from nkitools.record.watch.watching import watching

        with watching():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Return where numpy.testing or torch.testing has compared an output, that is the run's reference."""
        if call.excinfo is not None:
            for variables in _compared(call.excinfo):
                _learn(variables, self._recorder.runs)
        return (yield)


def _compared(failure: pytest.ExceptionInfo[BaseException]) -> Iterator[Mapping[str, Any]]:
    """Yield the variables of the frames in which an assertion of arrays has failed, the outermost first."""
    for frame, _ in traceback.walk_tb(failure.value.__traceback__):
        if str(frame.f_globals.get("__name__", "")).startswith(_ASSERTING):
            yield frame.f_locals


def _learn(variables: Mapping[str, Any], runs: list[Run]) -> None:
    for first, second in _SIDES:
        if first in variables and second in variables:
            sides = variables[first], variables[second]
            for run in reversed(runs):
                if run.reference is None and _take(run, *sides, variables):
                    return


def _take(run: Run, actual: Any, desired: Any, variables: Mapping[str, Any]) -> bool:
    """Return whether one of two compared arrays is an output of the run; the other is then what that should be."""
    from nkitools.record.expected_outputs import Reference
    from nkitools.record.saved.encoding import as_array, leaves

    outputs = [value for _, value in leaves(run.outputs)]
    for ours, theirs in ((actual, desired), (desired, actual)):
        array, other = as_array(ours), as_array(theirs)
        at = None if array is None else next((at for at, each in enumerate(outputs) if _is_same(each, array)), None)
        if at is not None and other is not None:
            known: list[Any] = [None] * len(outputs)
            known[at] = other
            rtol, atol = _number(variables.get("rtol")), _number(variables.get("atol"))
            run.reference = Reference(known, rtol, atol, variables.get("equal_nan") is not False)
            return True
    return False


def _is_same(output: Any, array: NDArray[Any]) -> bool:
    """Return whether two arrays are one, or hold the same."""
    import numpy as np

    if not isinstance(output, np.ndarray) or output.shape != array.shape:
        return False
    return output is array or np.shares_memory(output, array) or output.tobytes() == array.tobytes()


def _number(value: float | None) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
