"""The device prints of the running test, as its fixture shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nkitools.record.prints.print_listeners import LivePrints

if TYPE_CHECKING:
    from nkitools.pytest_plugin.recording import Recorder
    from nkitools.record.run import Run


class DevicePrints(LivePrints):
    """The device prints of the running test (`nkitools.Print`), in order: a live view with the filters of
    `nkitools.Prints`, as of `nkitools.capture_prints`.

    On a target that does not print, the first look at the prints skips the test.
    """

    name = "device_prints"

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(lambda: _runs_that_print(recorder))


def _runs_that_print(recorder: Recorder) -> list[Run]:
    """Return the runs of the running test; skip the test if one was on a device that does not print."""
    targets = {run.target for run in recorder.runs}
    if targets & {"neuron", "compile"}:
        from nkitools.targets.choice import COMPILER
        from nkitools.targets.neuron import NeuronDevice

        pytest.skip(NeuronDevice.prints if NeuronDevice.key in targets else f"{COMPILER.name}: {COMPILER.prints}")
    return recorder.runs
