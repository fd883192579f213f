"""`device_prints` where a target of the test prints nothing that reaches it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nkitools.pytest_plugin.prints_fixture import DevicePrints
from nkitools.record.run import Run


def prints(target: str) -> DevicePrints:
    """Those of a test that has run one kernel on ``target``."""
    recorder: Any = SimpleNamespace(runs=[Run(kernel="k", target=target, chip="trn2")])
    return DevicePrints(recorder)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("neuron", "device_print is captured in simulation only: AWS documents it for its simulators"),
        ("compile", "AWS's compiler: nothing runs on a device"),
    ],
)
def test_a_test_of_prints_is_skipped_where_there_are_none(target: str, reason: str) -> None:
    """AWS's files of `device_print` are not written in the eager mode of the native backend: no empty list passes."""
    with pytest.raises(pytest.skip.Exception) as caught:
        len(prints(target))
    assert str(caught.value) == reason
    assert len(prints("builtin")) == 0
