"""`--nki-report DIR`: collects values, and what they are compared with, from a running test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from nkitools.pytest_plugin.recording import Recorder

if TYPE_CHECKING:
    from nkitools.record.run import Run


class Pages:
    """Watches the kernels of tests, and takes the expected outputs from failed assertions."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        """Keep the values that instructions write in this test."""
        from nkitools.record.watch.watching import watching

        with watching():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        """Take the array with which numpy.testing or torch.testing compared an output as the run's reference."""
        if call.excinfo is not None:
            _learn(call.excinfo.value, self._recorder.runs)
        return (yield)


def _learn(failure: BaseException, runs: list[Run]) -> None:
    """Take the array with which a failed assertion compared an output as its run's reference."""
    from nkitools.pytest_plugin.compared_arguments import compared_outputs
    from nkitools.record.expected_outputs import Reference
    from nkitools.record.saved.encoding import leaves

    unknown = [run for run in runs if run.reference is None]
    found = next(compared_outputs(failure, unknown, of_library=True, either_side=True), None)
    if found is not None:
        known: list[Any] = [None for _ in leaves(found.run.outputs)]
        known[found.place] = found.expected
        found.run.reference = Reference(known, found.rule.rtol, found.rule.atol, found.rule.equal_nan)
