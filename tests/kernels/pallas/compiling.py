"""Asks the TPU compiler whether it takes a kernel; a test skips, with the reason, where that compiler is absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import nkitools.pallas

CHIPS = ("v5e", "v6e", "tpu7x")


def zeros(dtype: Any, *dimensions: int) -> npt.NDArray[Any]:
    """An array whose shape and dtype are compiled for; its content is not looked at."""
    return np.zeros(dimensions, dtype)


def assert_compiles(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """``fn`` lowers for all of ``CHIPS``, and their compilers accept every Pallas call that it makes."""
    run = nkitools.pallas.check(fn, *args, modes=("lower", "aot"), chips=CHIPS, **kwargs)
    assert [finding.text() for finding in run.findings] == []
    if "aot" in run.left_out:
        pytest.skip(run.left_out["aot"])
    assert {chip: run.compiled[chip].accepted for chip in CHIPS} == dict.fromkeys(CHIPS, True)
