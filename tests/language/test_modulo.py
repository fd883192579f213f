"""nl.mod and nl.fmod against Python's own remainders, and what is said of the chip."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import inside, placed, refusal, tile
from tests.isa.oracles import float64, held, sample, words
from tests.language.tiles import computed, refused, values

numbers = st.floats(-(2.0**60), 2.0**60, width=32, allow_subnormal=False)
each_remainder = pytest.mark.parametrize("name", ["mod", "fmod"])


def exact(name: str, x: Any, y: Any) -> np.ndarray:
    """Each remainder of float64 values: the C library's is exact, and where its sign is wrong one divisor is added."""

    def remainder(dividend: float, divisor: float) -> float:
        found = math.fmod(dividend, divisor)
        return found + divisor if name == "mod" and found * divisor < 0 else found

    return np.vectorize(remainder, otypes=[np.float64])(float64(np.asarray(x)), float64(np.asarray(y)))


@each_remainder
def test_two_tiles_a_number_and_a_vector(name: str) -> None:
    """Either side may be the number; free dimensions broadcast."""
    x, y = sample((32, 3, 8), seed=1, low=-50, high=50), sample((32, 3, 8), seed=2, low=0.25, high=9)
    function = getattr(nl, name)
    column = y[:, :1, :1]
    for left, right in ((x, y), (x, -y), (x, 3.5), (x, -3.5), (7.25, y), (x, column), (column, x)):
        np.testing.assert_array_equal(values(function, left, right), exact(name, left, right).astype(np.float32))


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=20))
def test_remainders_have_the_sign_that_is_documented(pairs: list[tuple[float, float]]) -> None:
    """That of the divisor for mod, of the dividend for fmod; both are smaller than the divisor."""
    assume(all(divisor != 0 for _, divisor in pairs))
    x, y = (np.array([side], np.float32) for side in zip(*pairs, strict=True))
    modulo, remainder = float64(values(nl.mod, x, y)), float64(values(nl.fmod, x, y))
    assert (modulo * np.sign(float64(y)) >= 0).all()
    assert (remainder * np.sign(float64(x)) >= 0).all()
    assert (np.abs(modulo) <= np.abs(float64(y))).all()  # a tiny negative dividend rounds to the divisor itself
    assert (np.abs(remainder) < np.abs(float64(y))).all()
    np.testing.assert_array_equal(remainder, exact("fmod", x, y))


@each_remainder
@pytest.mark.parametrize("dtype", [nl.int32, nl.uint32], ids=str)
def test_words_are_exact(name: str, dtype: Any) -> None:
    """As integers, beyond what float32 holds."""
    x, y = words((16, 20), dtype, 1), words((16, 20), dtype, 2) // 1000 | 1
    oracle = np.mod if name == "mod" else np.fmod
    result, kind = computed(getattr(nl, name), x, y)
    assert kind == dtype
    np.testing.assert_array_equal(result, oracle(x.astype(np.int64), y.astype(np.int64)).astype(dtype.dtype))


@each_remainder
def test_dtypes(name: str) -> None:
    """Promoted as in nl.add, or the one asked for."""
    x, y = sample((8, 6), nl.bfloat16, 1, -9, 9), sample((8, 6), nl.float16, 2, 1, 4)
    result, kind = computed(getattr(nl, name), x, y)
    assert kind is nl.float32
    np.testing.assert_array_equal(result, exact(name, x, y).astype(np.float32))
    result, kind = computed(getattr(nl, name), x, y, dtype=nl.int8)
    assert kind is nl.int8
    np.testing.assert_array_equal(result, held(exact(name, x, y), nl.int8))


@each_remainder
def test_limits_of_division(name: str) -> None:
    """By zero there is no remainder; by infinity the dividend is it, brought to the divisor's sign by mod."""
    x = np.array([[1.0, -1.0, np.inf, 1.0, -1.0, np.nan]], np.float32)
    y = np.array([[0.0, 0.0, 2.0, np.inf, np.inf, 1.0]], np.float32)
    last = [np.nan, np.nan, np.nan, 1.0, np.inf if name == "mod" else -1.0, np.nan]
    np.testing.assert_array_equal(values(getattr(nl, name), x, y)[0], last)


@each_remainder
@pytest.mark.parametrize("chip", ["trn1", "trn2", "trn3"])
def test_a_warning_says_that_no_chip_has_it(name: str, chip: str) -> None:
    """NK615 on every chip; it fails no run, and is silent where rules are off."""

    def kernel() -> None:
        getattr(nl, name)(placed(tile(np.ones((4, 4), np.float32))), 2.0)

    (finding,) = nkitools.simulate(kernel, chip=chip).findings
    assert (finding.rule, finding.severity, finding.file) == ("NK615", "warning", __file__)
    assert f"nl.{name} " in finding.message
    assert nkitools.simulate(kernel, chip=chip, rules="off").findings == []


@each_remainder
def test_it_is_no_operator_of_an_engine(name: str) -> None:
    """Neither an instruction takes it, nor does it take what nl.add does not."""
    x = np.ones((4, 4), np.float32)
    assert refusal(nisa.tensor_scalar, tile(x), tile(x), getattr(nl, name), 2.0).rule in ("NK306", "NK609")
    assert refused(getattr(nl, name), x, x[:2]).rule == "NK102"
    assert refused(getattr(nl, name), x, x[:1]).rule == "NK111"
    assert refused(getattr(nl, name), x, x[:, :3]).rule == "NK109"
    assert refused(getattr(nl, name), x, tile(x, "hbm")).rule == "NK201"
    assert inside(lambda: getattr(nl, name).__doc__)
