"""nl.sin, cos, tan and arctan against NumPy's in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.engines.operators import token_name
from tests.isa.issued import empty, issue, tile
from tests.isa.oracles import float64, held, sample
from tests.language.tiles import computed, issued, refused, values

CHIPS = ("trn1", "trn2", "trn3")
WAVES: dict[str, Any] = {"sin": np.sin, "cos": np.cos}
ERROR = 1e-6  # what the docstrings promise up to an angle of 2**20


def angles(low: float, high: float, seed: int = 0) -> np.ndarray:
    """Angles of both signs, all powers of two between two bounds alike."""
    generator = np.random.default_rng(seed)
    magnitude = np.exp2(generator.uniform(math.log2(low), math.log2(high), (64, 400)))
    return (magnitude * generator.choice([-1, 1], magnitude.shape)).astype(np.float32)


@pytest.mark.parametrize("name", WAVES)
@pytest.mark.parametrize("chip", CHIPS)
def test_waves_are_right_for_many_turns(name: str, chip: str) -> None:
    """As accurate at a million as at one: the nearest multiple of the period is taken away exactly."""
    for low, high in ((2**-40, 4.0), (4.0, 2.0**13), (2.0**13, 2.0**20)):
        x = angles(low, high)
        result = float64(values(getattr(nl, name), x, chip=chip))
        np.testing.assert_allclose(result, WAVES[name](float64(x)), rtol=0, atol=ERROR)


@pytest.mark.parametrize("name", WAVES)
def test_beyond_them_the_error_is_that_of_a_neighbouring_angle(name: str) -> None:
    """And the result is a sine: no polynomial runs away."""
    x = angles(2.0**20, 2.0**40)
    result = float64(values(getattr(nl, name), x))
    assert (np.abs(result) <= 1).all()
    np.testing.assert_array_less(np.abs(result - WAVES[name](float64(x))), np.spacing(np.abs(x)) + ERROR)
    huge = np.array([[1e30, -1e30, 3.4e38]], np.float32)
    assert (np.abs(values(getattr(nl, name), huge)) <= 1).all()
    assert np.isnan(values(getattr(nl, name), np.array([[np.inf, -np.inf, np.nan]], np.float32))).all()


def test_multiples_of_a_quarter_of_a_turn() -> None:
    """Where the sine's range ends and where rounding takes the nearest multiple to be the next one."""
    x = (np.arange(-4000, 4001) * (math.pi / 2)).astype(np.float32)[None]
    for name, wave in WAVES.items():
        np.testing.assert_allclose(values(getattr(nl, name), x), wave(float64(x)), rtol=0, atol=ERROR)


def test_small_angles_keep_their_digits() -> None:
    """``sin(x)`` and ``tan(x)`` are ``x`` to the last one."""
    x = angles(2.0**-60, 2.0**-13)
    np.testing.assert_array_equal(values(nl.sin, x), x)
    np.testing.assert_array_equal(values(nl.tan, x), x)
    zero = np.zeros((2, 2), np.float32)
    assert [values(getattr(nl, name), zero).tolist()[0] for name in ("sin", "cos", "tan")] == [[0, 0], [1, 1], [0, 0]]


@given(st.lists(st.floats(-(2.0**19), 2.0**19, width=32), min_size=1, max_size=30))
def test_laws_of_sine_and_cosine(numbers: list[float]) -> None:
    """One is odd and the other even, and their squares add up to one."""
    x = np.array([numbers], np.float32)
    sine, cosine = (float64(values(function, x)) for function in (nl.sin, nl.cos))
    np.testing.assert_array_equal(sine, -float64(values(nl.sin, -x)))
    np.testing.assert_allclose(cosine, float64(values(nl.cos, -x)), rtol=0, atol=2 * ERROR)
    np.testing.assert_allclose(sine**2 + cosine**2, 1, rtol=0, atol=4 * ERROR)


@pytest.mark.parametrize("chip", CHIPS)
def test_tangents(chip: str) -> None:
    """Off by what the angle is off by, times the tangent's slope."""
    for low, high in ((2**-40, 4.0), (4.0, 2.0**20)):
        x = angles(low, high)
        expected = np.tan(float64(x))
        error = np.abs(float64(values(nl.tan, x, chip=chip)) - expected) / (1 + expected**2)
        assert error.max() < ERROR


def test_inverse_tangents() -> None:
    """Those of the Scalar Engine, in one instruction."""
    x = sample((32, 9), nl.float32, 1, -1.5, 1.5)
    np.testing.assert_array_max_ulp(values(nl.arctan, x), np.arctan(float64(x)).astype(np.float32), 2)
    assert issued(nl.arctan, x) == [("activation", "scalar")]


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "arctan"])
@pytest.mark.parametrize(("dtype", "asked"), [(nl.bfloat16, None), (nl.float16, nl.float32), (nl.int32, nl.bfloat16)])
def test_dtypes_and_memories(name: str, dtype: Any, asked: Any) -> None:
    """The tile's dtype, or the one asked for; out of PSUM too, not out of HBM."""
    x = np.rint(sample((16, 3, 4), nl.float32, 1, -1, 1)).astype(dtype.dtype)
    result, kind = computed(getattr(nl, name), tile(x, "psum", dtype=dtype), dtype=asked)
    assert kind is (asked or dtype)
    expected = getattr(np, name)(float64(x))
    tolerance = {nl.bfloat16: 2**-8, nl.float32: 4 * ERROR}[asked or dtype]
    np.testing.assert_allclose(float64(result), float64(held(expected, asked or dtype)), rtol=tolerance, atol=ERROR)
    assert refused(getattr(nl, name), tile(x, "hbm", dtype=dtype)).rule == "NK201"


def test_sine_and_arctangent_are_still_tokens() -> None:
    """Of the Scalar Engine's own functions: the sine there is a polynomial beyond pi. The cosine is none."""
    assert (token_name(nl.sin), token_name(nl.arctan)) == ("sin", "arctan")
    x = np.array([[0.5, 9.0]], np.float32)
    activated = issue(nisa.activation, empty(x.shape), nl.sin, tile(x)).dst
    np.testing.assert_allclose(activated, [[math.sin(0.5), 27.65]], rtol=1e-3)
    np.testing.assert_allclose(values(nl.sin, x), np.sin(float64(x)), rtol=0, atol=ERROR)
    assert [token_name(function) for function in (nl.cos, nl.tan, nl.floor, nl.mod)] == [None] * 4
