"""nl.floor, nl.ceil and nl.trunc against NumPy's, over all of float32 and the dtypes of tiles."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as legacy
import neuronxcc.nki.language as legacy_nl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.language as nl
from tests.isa.issued import tile
from tests.isa.oracles import INTEGERS, float64, held, sample, words
from tests.language.tiles import computed, issued, refused, values

ROUNDING: dict[str, Any] = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}
CHIPS = ("trn1", "trn2", "trn3")
EDGES = np.array(
    [
        *(0, 0.5, 1.5, 2.5, 3.2, 3.7, 1e-10, 1e-45, 1 - 2**-24, 1 + 2**-23, 2**22 + 0.5, 2**22 - 0.25),
        *(2**23 - 0.5, 2**23, 2**23 + 1, 2**24, 2**31, 2**32, 1e20, 3.4e38, np.inf),
    ],
    np.float32,
)
single = st.floats(width=32, allow_nan=False)
each_function = pytest.mark.parametrize("name", ROUNDING)


@each_function
@pytest.mark.parametrize("chip", CHIPS)
def test_the_edges_of_float32(name: str, chip: str) -> None:
    """Halves, neighbours of integers, what int32 and a 24-bit significand cannot hold, infinities; both signs."""
    x = np.concatenate([EDGES, -EDGES])[None]
    np.testing.assert_array_equal(values(getattr(nl, name), x, chip=chip), ROUNDING[name](x))


@given(st.lists(single, min_size=1, max_size=40))
def test_floor_and_ceil_are_what_they_are_defined_to_be(numbers: list[float]) -> None:
    """``floor(x) <= x < floor(x) + 1``, ``ceil(x) = -floor(-x)``, trunc is the one of them that is nearer to zero."""
    x = np.array([numbers], np.float32)
    down, up, inward = (float64(values(getattr(nl, name), x)) for name in ROUNDING)
    exact = float64(x)
    assert (down <= exact).all()
    assert (down == np.rint(down)).all()
    has_fraction = np.abs(exact) < 2**23
    assert (exact[has_fraction] < down[has_fraction] + 1).all()
    np.testing.assert_array_equal(down[~has_fraction], exact[~has_fraction])
    np.testing.assert_array_equal(up, -float64(values(nl.floor, -x)))
    np.testing.assert_array_equal(inward, np.where(exact < 0, up, down))


@each_function
def test_not_a_number_stays(name: str) -> None:
    """And does not touch its neighbours."""
    x = np.array([[np.nan, 1.5, np.nan]], np.float32)
    np.testing.assert_array_equal(values(getattr(nl, name), x), ROUNDING[name](x))


@each_function
@pytest.mark.parametrize("language", [nl, legacy_nl], ids=["modern", "legacy"])
@pytest.mark.parametrize("dtype", [nl.float32, nl.int32], ids=str)
def test_not_a_number_is_reported_where_it_is_lost(name: str, language: Any, dtype: Any) -> None:
    """Not in the integers between, which no author has; in a result of integers it becomes 0 (NK304)."""

    def kernel(x: Any) -> Any:
        out = language.ndarray((2, 3), dtype=dtype.dtype, buffer=language.shared_hbm)
        tile = language.load(x)
        whole = getattr(language, name)(tile, dtype=dtype.dtype)
        language.store(out, whole)
        return out

    x = np.array([[np.nan, 1.5, 2.5], [0.5, np.inf if dtype is nl.float32 else 7.0, 4.0]], np.float32)
    run = nkitools.simulate(legacy.jit(kernel) if language is legacy_nl else kernel, x, rules="report")
    with np.errstate(invalid="ignore"):
        expected = np.nan_to_num(ROUNDING[name](x)) if dtype is nl.int32 else ROUNDING[name](x)
    np.testing.assert_array_equal(run.outputs, expected)
    told = ["1 of 6 elements of tensor `whole` (SBUF, int32 [2, 3]) saturate; the first at [0, 0]: nan becomes 0"]
    assert [each.message.partition(": ")[2] for each in run.findings] == (told if dtype is nl.int32 else [])


@each_function
@pytest.mark.parametrize("dtype", [nl.bfloat16, nl.float16, nl.tfloat32, nl.float8_e4m3, nl.float8_e5m2], ids=str)
@pytest.mark.parametrize("asked", [None, nl.float32, nl.int32, nl.uint8], ids=str)
def test_dtypes(name: str, dtype: Any, asked: Any) -> None:
    """The result has the tile's dtype, or the one asked for, cast once."""
    x = sample((16, 5, 8), dtype, 1, -200, 200)
    result, kind = computed(getattr(nl, name), tile(x, dtype=dtype), dtype=asked)
    assert kind is (asked or dtype)
    np.testing.assert_array_equal(result, held(ROUNDING[name](float64(x)), asked or dtype))


@each_function
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_are_copied(name: str, dtype: Any) -> None:
    """To the bit, beyond what float32 holds."""
    x = words((8, 16), dtype)
    result, kind = computed(getattr(nl, name), x)
    assert kind == dtype
    np.testing.assert_array_equal(result, x)


@each_function
def test_a_tile_in_psum(name: str) -> None:
    """Is read where it is; one in HBM is refused, and so is one that is too tall."""
    x = sample((128, 30), seed=3)
    np.testing.assert_array_equal(values(getattr(nl, name), tile(x, "psum")), ROUNDING[name](x))
    assert refused(getattr(nl, name), tile(x, "hbm")).rule == "NK201"
    assert refused(getattr(nl, name), np.ones((129, 2), np.float32)).rule == "NK101"


def test_the_instructions_are_in_the_record() -> None:
    """The Scalar Engine gives the sign; everything else is the Vector Engine's."""
    x = sample((8, 4))
    assert issued(nl.floor, x)[-1] == ("tensor_tensor", "vector")
    assert {engine for _, engine in issued(nl.ceil, x)} == {"vector"}
    assert ("activation", "scalar") in issued(nl.trunc, x)
    assert issued(nl.floor, np.ones((8, 4), np.int32)) == [("tensor_copy", "vector")]
