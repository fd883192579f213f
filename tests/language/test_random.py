"""nl.rand, nl.random_seed and nl.dropout: distributions, reproducibility, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import inside, placed, tile
from tests.isa.oracles import float64, sample, words
from tests.language.tiles import computed, refused, values

CHIPS = ("trn1", "trn2", "trn3")
MANY = 128 * 512


def drawn(*args: Any, chip: str = "trn2", **kwargs: Any) -> np.ndarray:
    """The values of a random tensor."""
    found: np.ndarray = inside(lambda: np.array(nl.rand(*args, **kwargs).array), chip=chip)
    return found


# --- rand ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("memory", [nl.sbuf, nl.psum, nl.hbm, nl.shared_hbm], ids=str)
def test_numbers_are_uniform(chip: str, memory: Any) -> None:
    """In [0, 1), in ten equal parts (chi-square, a thousandth), with no likeness between neighbours."""
    x = float64(drawn((128, 512), nl.float32, memory, chip=chip))
    assert x.shape == (128, 512)
    assert x.min() >= 0
    assert x.max() < 1
    counts = np.histogram(x, 10, (0, 1))[0]
    assert ((counts - MANY / 10) ** 2 / (MANY / 10)).sum() < 27.88
    for first, second in ((x[:, :-1], x[:, 1:]), (x[:-1], x[1:])):
        assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 4.5 / np.sqrt(MANY)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("dtype", [nl.bfloat16, nl.float16, nl.float8_e4m3, nl.uint8], ids=str)
def test_dtypes_round_once(chip: str, dtype: Any) -> None:
    """To numbers from 0 to 1, half of them on either side; of integers that is 0 and 1."""
    x = float64(drawn((128, 256), dtype, chip=chip))
    assert x.min() >= 0
    assert x.max() == 1
    variance = 1 / 4 if dtype is nl.uint8 else 1 / 12
    assert abs(x.mean() - 0.5) < 4.5 * np.sqrt(variance / x.size)


@pytest.mark.parametrize("shape", [(8, 4), (128, 2, 3, 4), (1, 1)])
def test_shapes_on_chip(shape: tuple[int, ...]) -> None:
    """Every element is written, so that it may be read."""
    nkitools.simulate(lambda: nl.device_print("x", nl.rand(shape, nl.float32)))
    assert drawn(shape, nl.float32).shape == shape


@pytest.mark.parametrize("shape", [(3,), (7, 11), (300, 5, 2), (2048,), (4097,), (600_001,)])
def test_shapes_in_hbm(shape: tuple[int, ...]) -> None:
    """Any number of dimensions and rows, whole or not; no part repeats another."""
    x = drawn(shape, nl.float32, nl.hbm).ravel()
    assert 0 <= x.min() <= x.max() < 1
    assert len(np.unique(x)) > 0.9 * x.size


def test_every_call_draws_new_numbers_in_every_run_the_same() -> None:
    """A generator has a state; a run begins anew."""

    def two() -> tuple[np.ndarray, np.ndarray]:
        first, second = (nl.rand((16, 32), nl.float32) for _ in range(2))
        return np.array(first.array), np.array(second.array)

    first, second = inside(two)
    assert (first != second).any()
    np.testing.assert_array_equal(first, inside(two)[0])


def test_names_and_refusals() -> None:
    """A name is the tensor's; 129 partitions are one too many, an engine makes no packed elements."""
    assert inside(lambda: nl.rand((4, 4), nl.float32, name="noise").name) == "noise"
    for wrong, rule in (
        ({"shape": (129, 4), "dtype": nl.float32}, "NK101"),
        ({"shape": (4,), "dtype": nl.float32}, "NK110"),
        ({"shape": (4, 4), "dtype": nl.float4_e2m1fn_x4}, "NK301"),
    ):
        assert refused(lambda wrong=wrong: nl.rand(**wrong)).rule == rule


@pytest.mark.parametrize(("chip", "names"), [("trn2", ["rng", "tensor_scalar", "tensor_scalar"]), ("trn3", ["rand2"])])
def test_instructions(chip: str, names: list[str]) -> None:
    """nisa.rand2 where there is one, else bits that are scaled; all on the engine that has the seed."""
    run = nkitools.simulate(lambda: [nl.rand((4, 4), nl.float32), None][1], chip=chip)
    assert [(each.name, each.engine) for each in run.instructions] == [(name, "vector") for name in names]


# --- random_seed -----------------------------------------------------------------------------------------------------


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1), st.sampled_from(CHIPS))
def test_a_seed_decides_what_follows(seed: int, other: int, chip: str) -> None:
    """The same one gives the same numbers of nl.rand and of nl.dropout again, another one others."""

    def after(number: int) -> tuple[np.ndarray, np.ndarray]:
        nl.random_seed(nl.full((1, 1), number, nl.int32))
        noise = nl.rand((32, 16), nl.float32)
        return np.array(noise.array), np.array(nl.dropout(nl.ones((32, 16), nl.float32), 0.5).array)

    first, again, third = inside(lambda: (after(seed), after(seed), after(other)), chip=chip)
    for position in range(2):
        np.testing.assert_array_equal(first[position], again[position])
        assert (first[position] == third[position]).all() == (seed == other)


def test_seeds_are_tiles_of_32_bits() -> None:
    """In SBUF or PSUM; a number is refused with what to write instead."""
    finding = refused(lambda: nl.random_seed(42))
    assert (finding.rule, "nl.full((1, 1), 42" in finding.remedy) == ("NK609", True)
    for wrong, rule in (
        (tile(np.zeros((1, 2), np.int32)), "NK109"),
        (tile(np.zeros((1, 1), np.int16)), "NK301"),
        (tile(np.zeros((1, 1), np.int32), "hbm"), "NK201"),
    ):
        assert refused(nl.random_seed, wrong).rule == rule
    inside(lambda: nl.random_seed(placed(tile(np.zeros((1, 1), np.uint32), "psum"))))


# --- dropout ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("rate", [0, 0.1, 0.5, 0.9, 1])
def test_a_share_of_the_elements_becomes_zero(chip: str, rate: float) -> None:
    """As large as the rate; the others keep their values, unscaled."""
    x = sample((128, 512), low=1, high=2)
    result = values(nl.dropout, x, rate, chip=chip)
    dropped = result == 0
    np.testing.assert_array_equal(result[~dropped], x[~dropped])
    deviation = np.sqrt(rate * (1 - rate) / MANY)
    assert abs(dropped.mean() - rate) <= 4.5 * deviation


def test_each_partition_may_have_a_rate_of_its_own() -> None:
    """In a tile of one column, of any float dtype."""
    x = np.ones((4, 4096), np.float32)
    rates = np.array([[0], [0.25], [0.75], [1]], np.float32)
    for dtype in (nl.float32, nl.bfloat16):
        result = values(nl.dropout, x, tile(rates, dtype=dtype))
        np.testing.assert_allclose((result == 0).mean(axis=1), rates[:, 0], atol=4.5 * 0.5 / 64)
        assert result[0].all()
        assert not result[3].any()


@pytest.mark.parametrize(("dtype", "asked"), [(nl.bfloat16, None), (nl.int32, None), (nl.int16, nl.float32)], ids=str)
def test_dropout_keeps_the_dtype_or_takes_another(dtype: Any, asked: Any) -> None:
    """Integers are kept to the bit."""
    x = words((16, 64), dtype) if dtype is not nl.bfloat16 else sample((16, 64), dtype)
    result, kind = computed(nl.dropout, x, 0.5, dtype=asked)
    assert kind == (asked or dtype)
    kept = result != 0
    assert kept.any()
    np.testing.assert_array_equal(result[kept], x.astype(result.dtype)[kept])


def test_what_dropout_refuses() -> None:
    """No probability, a rate for each element, a rate of another dtype beside integers, a tensor in HBM."""
    x = np.ones((8, 4), np.float32)
    assert refused(nl.dropout, x, -0.01).rule == "NK609"
    assert refused(nl.dropout, x, np.full((8, 1), -2, np.float32)).rule == "NK609"
    assert refused(nl.dropout, x, x / 2).rule == "NK109"
    assert refused(nl.dropout, x.astype(np.int32), tile(x[:, :1] / 2, dtype=nl.bfloat16)).rule == "NK301"
    assert refused(nl.dropout, tile(x, "hbm"), 0.5).rule == "NK201"


def test_the_generators_are_the_instructions_own() -> None:
    """nl.random_seed is nisa.set_rng_seed: what nisa.rng draws afterwards is decided as well."""

    def bits(seed: Any) -> np.ndarray:
        seed(nl.full((1, 1), 7, nl.int32))
        drawn = nl.ndarray((8, 8), nl.uint32)
        nisa.rng(drawn)
        return np.array(drawn.array)

    np.testing.assert_array_equal(inside(lambda: bits(nl.random_seed)), inside(lambda: bits(nisa.set_rng_seed)))
