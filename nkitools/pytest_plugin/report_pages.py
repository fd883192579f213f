"""`--nki-report DIR`: what its pages need of a running test: values, and what they were compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from nkitools.pytest_plugin.recording import Recorder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from nkitools.pytest_plugin.compared_arguments import Pair
    from nkitools.record.run import Run


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
            _learn(call.excinfo.value, self._recorder.runs)
        return (yield)


def _learn(failure: BaseException, runs: list[Run]) -> None:
    """Take what a failed assertion has compared an output with for its run's reference."""
    from nkitools.pytest_plugin.compared_arguments import compared_pairs

    for pair in compared_pairs(failure.__traceback__, of_library=True):
        for run in reversed(runs):
            if run.reference is None and _take(run, pair):
                return


def _take(run: Run, pair: Pair) -> bool:
    """Return whether one of two compared arrays is an output of the run; the other is then what that should be."""
    from nkitools.record.expected_outputs import Reference
    from nkitools.record.saved.encoding import leaves

    outputs = [value for _, value in leaves(run.outputs)]
    for ours, theirs in ((pair.actual, pair.expected), (pair.expected, pair.actual)):
        at = next((at for at, each in enumerate(outputs) if _is_same(each, ours)), None)
        if at is not None:
            known: list[Any] = [None] * len(outputs)
            known[at] = theirs
            run.reference = Reference(known, pair.rule.rtol, pair.rule.atol, pair.rule.equal_nan)
            return True
    return False


def _is_same(output: Any, array: NDArray[Any]) -> bool:
    """Return whether two arrays are one, or hold the same."""
    import numpy as np

    if not isinstance(output, np.ndarray) or output.shape != array.shape:
        return False
    return output is array or np.shares_memory(output, array) or output.tobytes() == array.tobytes()
