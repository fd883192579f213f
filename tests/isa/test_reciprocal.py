"""nisa.reciprocal against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import empty, issue, refusal, tile
from tests.isa.oracles import float64, held, sample


@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16, nl.float16, nl.int32, nl.uint8], ids=str)
@pytest.mark.parametrize("result", [nl.float32, nl.bfloat16], ids=str)
def test_it_is_rounded_once(dtype: Any, result: Any) -> None:
    """``1 / x`` in float32, cast once; zero gives infinity."""
    x = sample((128, 30), dtype, 1, -50, 50)
    x[0, 0] = 0
    with np.errstate(divide="ignore"):
        expected = held((1 / float64(x)).astype(np.float32), result)
    np.testing.assert_array_equal(issue(nisa.reciprocal, empty(x.shape, result), tile(x)).dst, expected)


def test_in_place_and_of_views() -> None:
    """``dst`` may be ``data``; dimensions may differ."""
    x = sample((16, 12), seed=1) + 10
    data = tile(x)
    np.testing.assert_array_equal(issue(nisa.reciprocal, data, data).dst, (1 / float64(x)).astype(np.float32))
    result = issue(nisa.reciprocal, dst=empty((16, 2, 3)), data=tile(x, "psum", view=lambda t: t[:, ::2])).dst
    np.testing.assert_array_equal(result, (1 / float64(x[:, ::2])).astype(np.float32).reshape(16, 2, 3))


X = np.ones((32, 8), np.float32)
DST = empty((32, 8))


@pytest.mark.parametrize(
    ("rule", "named", "args"),
    [
        ("NK101", "`data`", (empty((256, 2)), tile(np.ones((256, 2), np.float32)))),
        ("NK102", "`dst`", (empty((16, 8)), tile(X))),
        ("NK109", "`dst`", (empty((32, 4)), tile(X))),
        ("NK201", "`data`", (DST, tile(X, "hbm"))),
        ("NK301", "`data`", (DST, tile(np.zeros((32, 8), nl.float8_e4m3fn_x4.dtype)))),
        ("NK609", "`data`", (DST, 2.0)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_refused(rule: str, named: str, args: tuple[Any, ...]) -> None:
    """One finding, of the documented rule, that names the operand."""
    finding = refusal(nisa.reciprocal, *args)
    assert finding.rule == rule
    assert named in finding.message
