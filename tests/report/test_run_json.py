"""Runs as JSON: what the statistics of a print say."""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkitools.record.prints.device_print import Print
from nkitools.record.run import Run
from nkitools.report.prints import first_prints
from nkitools.report.run_json import described


def statistics(value: Any) -> list[Any]:
    """min, max, mean, nan and inf of a print of ``value``, after a journey through JSON."""
    array = np.asarray(value)
    run = Run("giou", "builtin", prints=[Print("x", array, array.shape, array.dtype.name)])
    (one,) = json.loads(json.dumps(described(run), allow_nan=False))["prints"]
    return [one[key] for key in ("min", "max", "mean", "nan", "inf")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([[1, 2], [3, 6]], np.int8), [1, 6, 3, 0, 0]),
        (np.array([1.5, -0.5], ml_dtypes.bfloat16), [-0.5, 1.5, 0.5, 0, 0]),
        (np.array([np.nan, 2.0, -np.inf], np.float32), [2.0, 2.0, 2.0, 1, 1]),
        (np.array([np.nan], np.float32), [None, None, None, 1, 0]),
        (np.zeros((0, 4), np.float32), [None, None, None, 0, 0]),
        (np.array([True, False]), [0, 1, 0.5, 0, 0]),
        (np.zeros(2, [("float8_e4m3fn_x4", "<u4")]), [None, None, None, 0, 0]),
    ],
)
def test_statistics_are_of_the_finite_elements(value: Any, expected: list[Any]) -> None:
    """Every dtype of the chip; NaN and infinities are counted, since JSON cannot hold them."""
    assert statistics(value) == expected


def test_first_prints_are_cut_and_the_rest_is_counted() -> None:
    """So many prints, so many lines of each, and how many there would have been."""
    value = np.zeros((20, 2), np.float32)
    run = Run("giou", "builtin", prints=[Print("x", value, value.shape, "float32")] * 5)
    shown = first_prints([*run.prints, *run.prints], 3, 12)
    assert len(shown) == 4
    assert shown[0].splitlines()[-1] == "... (9 more lines)"
    assert shown[-1] == "... and 7 more"
    assert first_prints([], 3, 12) == []
