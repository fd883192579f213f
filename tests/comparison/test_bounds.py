"""The bounds that no derived tolerance passes, and the verdicts that follow from them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkitools.comparison.bounds import bound_of, most_relative, root_mean_square
from nkitools.comparison.rule import Rule
from nkitools.precision.judgement import judged
from nkitools.record.explained_errors import ExplainedError


@pytest.mark.parametrize(
    ("dtype", "rtol"),
    [
        ("float32", 1e-4),
        ("bfloat16", 2e-2),
        ("float16", 3e-3),
        ("float8_e4m3fn", 0.15),
        ("float8_e5m2", 0.15),
        ("int32", 0.0),
        ("uint8", 0.0),
        ("bool", 0.0),
    ],
)
def test_the_bounds_by_dtype(dtype: str, rtol: float) -> None:
    """Integers and bool are exact; ``atol`` is at most that share of the root mean square."""
    assert most_relative(dtype) == rtol
    values = np.array([3, -4, 0, 5]).astype(getattr(ml_dtypes, dtype, dtype))
    expected = np.sqrt(np.mean(np.square(values.astype(np.float64))))
    assert bound_of(values, values) == Rule(rtol, pytest.approx(rtol * expected))


def test_the_root_mean_square_is_that_of_finite_values() -> None:
    """NaN and infinities are left out, and large values do not overflow."""
    assert root_mean_square([3.0, np.nan, 4.0, -np.inf]) == pytest.approx(np.sqrt(12.5))
    assert root_mean_square([1e300, 1e300]) == pytest.approx(1e300)
    assert root_mean_square([]) == 0


ONES = np.ones((10, 10), np.float32)


def verdict(off: float, rtol: float, atol: float = 0.0, rule: Rule | None = None, dtype: Any = np.float32) -> str:
    """The verdict on ones, one of which is off, where the run explains a tolerance."""
    actual = ONES.astype(dtype)
    actual[4, 5] = 1 + off
    bound = bound_of(ONES, ONES)
    beyond = (rtol, atol) if rtol > (bound.rtol or 0) else None
    explained = ExplainedError("output", "float32", min(rtol, 1e-4), atol, 0.0, (), ONES, ONES, beyond)
    return judged("output", actual, ONES.astype(dtype), rule or Rule(), lambda: explained).outcome


@pytest.mark.parametrize(
    ("off", "rtol", "outcome"),
    [
        (1e-6, 0.0, "pass"),  # by the table
        (1e-5, 1.2e-5, "pass"),  # by what the run explains
        (2e-5, 1.2e-5, "wrong"),  # the less is used
        (9e-5, 0.5, "pass"),  # within the bounds
        (0.3, 0.5, "undecided"),  # beyond them, and explained
        (0.6, 0.5, "wrong"),  # not even explained
    ],
)
def test_the_less_is_used_and_what_cannot_be_told_is_undecided(off: float, rtol: float, outcome: str) -> None:
    """Table, explained error, bound: in this order."""
    assert verdict(off, rtol) == outcome


def test_a_stated_tolerance_decides_alone() -> None:
    """Whatever is explained."""
    assert verdict(0.3, 0.5, rule=Rule(rtol=0.5)) == "pass"
    assert verdict(1e-6, 0.5, rule=Rule(rtol=1e-7)) == "wrong"
    assert verdict(1, 0.9, rule=None, dtype=np.int32) == "wrong"


@pytest.mark.parametrize(
    ("dtype", "share"),
    [
        ("float32", 2.864e-6),  # products of tiles, the largest of 10 sizes
        ("float32", 4.815e-7),  # pooling, the largest of 4 sizes
        ("float32", 4.8e-5),  # softmax
        ("bfloat16", 7.7778e-3),  # three blocked products in a model, the largest of 50 settings
    ],
)
def test_errors_of_right_kernels_on_a_chip_lie_within_the_bounds(dtype: str, share: float) -> None:
    """Where nothing is derived, as on hardware, elements may be as far off as trn2 was, in their root mean square."""
    expected = np.random.default_rng(0).standard_normal((64, 64))
    kind = getattr(ml_dtypes, dtype, dtype)
    rounded = expected.astype(kind)
    off = (rounded.astype(np.float64) + share * root_mean_square(expected)).astype(kind)
    assert judged("output", off, rounded, Rule()).outcome == "pass"
    far = (rounded.astype(np.float64) + 10 * most_relative(dtype)).astype(kind)
    assert judged("output", far, rounded, Rule()).outcome == "wrong"
