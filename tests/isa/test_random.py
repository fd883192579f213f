"""nisa.rng, dropout, rand2 and the seeds and states of the generators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.xorwow import draw, seeded
from tests.isa.issued import Tile, empty, inside, placed, tile
from tests.isa.oracles import FLOATS, INTEGERS, float64, held, sample

U32 = nl.uint32
VECTOR, GPSIMD = nisa.engine.vector, nisa.engine.gpsimd
CHIPS = ("trn1", "trn2", "trn3")


def seed(value: int = 1, dtype: Any = U32) -> None:
    """Seed the Vector Engine."""
    nisa.set_rng_seed(placed(tile(np.full((1, 1), value, dtype.dtype))))


def bits(shape: tuple[int, ...] = (128, 256), dtype: Any = U32, memory: str = "sbuf", **kwargs: Any) -> np.ndarray:
    """Random bits of an engine."""
    dst = placed(empty(shape, dtype, memory))
    nisa.rng(dst, **kwargs)
    return np.array(dst.array)


def uniform(low: Any = 0.0, high: Any = 1.0, shape: tuple[int, ...] = (128, 256), dtype: Any = nl.float32) -> Any:
    """Random numbers of the Vector Engine."""
    dst = placed(empty(shape, dtype))
    nisa.rand2(dst, low, high)
    return np.array(dst.array)


# --- the algorithm ---------------------------------------------------------------------------------------------------


def xorwow(words: list[int]) -> tuple[int, list[int]]:
    """One step, on Python's integers, as the paper writes it."""
    x, y, z, w, v, d = words
    t = x ^ (x >> 2)
    x, y, z, w = y, z, w, v
    v = (v ^ (v << 4) ^ t ^ (t << 1)) & 0xFFFFFFFF
    d = (d + 362437) & 0xFFFFFFFF
    return (d + v) & 0xFFFFFFFF, [x, y, z, w, v, d]


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from([1, 4]), st.lists(st.integers(1, 23), min_size=1))
def test_drawing_is_xorwow(number: int, lanes: int, states: int, counts: list[int]) -> None:
    """Step by step, however many are drawn at once; the states of a lane take turns."""
    state = seeded(number, lanes, states)
    model = state.tolist()
    for count in counts:
        got = draw(state, count)
        expected = []
        for lane in model:
            drawn = []
            for _ in range(math.ceil(count / states)):
                for each in range(states):
                    value, lane[each] = xorwow(lane[each])
                    drawn.append(value)
            expected.append(drawn[:count])
        assert got.tolist() == expected
    assert state.tolist() == model


def test_the_first_numbers_of_the_paper_s_seed() -> None:
    """Marsaglia's initial words: a known answer that does not come from this code."""
    state = np.array([[[123456789, 362436069, 521288629, 88675123, 5783321, 6615241]]], np.uint32)
    assert draw(state, 3).tolist() == [[246875399, 3690007200, 1264581005]]


# --- reproducibility -------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_numbers() -> None:
    """In every run and on every generation; another seed gives others, and so does going on."""

    def body(value: int) -> Any:
        seed(value)
        return [bits((128, 16)), bits((128, 16))]

    first = inside(lambda: body(7))
    for chip in CHIPS:
        np.testing.assert_array_equal(inside(lambda: body(7), chip=chip), first)
    assert (inside(lambda: body(8))[0] != first[0]).mean() > 0.99
    assert (first[0] != first[1]).mean() > 0.99


def test_an_engine_without_a_seed_is_reproducible_too() -> None:
    """And begins as if seeded with 0; no state outlives a run."""
    first = inside(bits)
    np.testing.assert_array_equal(inside(bits), first)

    def body() -> Any:
        seed(0)
        return bits()

    np.testing.assert_array_equal(inside(body), first)


def test_a_seed_is_32_bits_of_any_dtype() -> None:
    """-1 as int32 is 4294967295 as uint32; a float counts by its bits."""

    def body(value: Any, dtype: Any) -> Any:
        seed(value, dtype)
        return bits((2, 8))

    np.testing.assert_array_equal(inside(lambda: body(-1, nl.int32)), inside(lambda: body(2**32 - 1, U32)))
    np.testing.assert_array_equal(inside(lambda: body(1.0, nl.float32)), inside(lambda: body(0x3F800000, U32)))


def test_the_engines_have_generators_of_their_own() -> None:
    """Seeding or using the one leaves the other alone."""

    def body() -> Any:
        first = bits((4, 8), engine=GPSIMD)
        seed(3)
        bits()
        return first, bits((4, 8), engine=GPSIMD)

    def straight() -> Any:
        return bits((4, 8), engine=GPSIMD), bits((4, 8), engine=GPSIMD)

    np.testing.assert_array_equal(inside(body), inside(straight))


def test_each_lane_goes_its_own_way() -> None:
    """Partition p of a tile is lane p: a tile that begins at partition 32 uses and moves on those lanes only."""

    def body() -> Any:
        seed(5)
        part = placed(empty((64, 8), U32))
        nisa.rng(part[32:64])
        return np.array(part.array[32:64]), bits((64, 8))

    def straight() -> Any:
        seed(5)
        return bits((64, 8)), bits((64, 8))

    (part, after), (first, second) = inside(body), inside(straight)
    np.testing.assert_array_equal(part, first[32:])
    np.testing.assert_array_equal(after, np.concatenate([first[:32], second[32:]]))


# --- two cores -------------------------------------------------------------------------------------------------------


def on_two_cores(body: Callable[[int], Any], chip: str = "trn3", cores: int = 2) -> list[Any]:
    """What ``body(program)`` returns on each core."""
    results: dict[int, Any] = {}

    def kernel() -> None:
        program = nl.program_id(0)
        results[program] = body(program)

    nkitools.simulate(kernel, grid=cores, chip=chip)
    return [results[program] for program in range(cores)]


@pytest.mark.parametrize("engine", [VECTOR, GPSIMD], ids=str)
def test_two_cores_draw_different_numbers(engine: Any) -> None:
    """Where nobody seeds them: the first as a core on its own does, the second others, both in every run and chip."""
    first, second = on_two_cores(lambda program: bits(engine=engine))
    np.testing.assert_array_equal(first, inside(lambda: bits(engine=engine), chip="trn3"))
    assert (first != second).mean() > 0.99
    for chip in ("trn2", "trn3"):
        again = on_two_cores(lambda program: bits(engine=engine), chip)
        np.testing.assert_array_equal(again, [first, second])


def test_two_cores_with_one_seed_draw_the_same() -> None:
    """The same seed, the same sequence (set_rng_seed), wherever; kernels add the program to it, or draw alike."""

    def body(program: int) -> Any:
        seed(21)
        return bits((128, 8)), uniform(shape=(128, 8))

    (first, first_floats), (second, second_floats) = on_two_cores(body)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first_floats, second_floats)


def test_a_core_s_generators_are_its_own() -> None:
    """Neither its seed nor its state nor its draws reach the other core."""

    def body(program: int) -> Any:
        if program == 0:
            seed(5)
            nisa.rand_set_state(placed(tile(np.arange(6 * 16, dtype=np.uint32).reshape(16, 6))), GPSIMD)
            bits()
        return bits((16, 9)), bits((16, 9), engine=GPSIMD)

    _, alone = on_two_cores(lambda program: (bits((16, 9)), bits((16, 9), engine=GPSIMD)))
    changed, untouched = on_two_cores(body)
    np.testing.assert_array_equal(untouched, alone)
    assert (np.array(changed) != np.array(untouched)).mean() > 0.99


def test_a_state_makes_its_way_to_the_other_core() -> None:
    """Saved on one core and put into the other's engine, it goes on there as it would have here."""
    saved: list[np.ndarray] = []

    def body(program: int) -> Any:
        if program == 0:
            bits((128, 7))
            state = placed(empty((128, 24), U32))
            nisa.rand_get_state(state, VECTOR)
            saved.append(np.array(state.array))
        else:
            nisa.rand_set_state(placed(tile(saved[0])), VECTOR)
        return bits((128, 11))

    first, second = on_two_cores(body)
    np.testing.assert_array_equal(first, second)


# --- states ----------------------------------------------------------------------------------------------------------

STATES = [("trn2", GPSIMD, 6), ("trn3", GPSIMD, 6), ("trn3", VECTOR, 24)]


@pytest.mark.parametrize(("chip", "engine", "words"), STATES)
def test_a_state_makes_the_round_trip(chip: str, engine: Any, words: int) -> None:
    """What is stored, and put back later, brings the same numbers again: 6 words a lane of GpSimd, 24 of Vector."""

    def body() -> Any:
        bits((128, 5), engine=engine)
        state = placed(empty((128, words), U32))
        nisa.rand_get_state(state, engine=engine)
        first = bits((128, 9), engine=engine)
        nisa.rand_set_state(state, engine=engine)
        return first, bits((128, 9), engine=engine)

    first, second = inside(body, chip=chip)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(("chip", "engine", "words"), STATES)
def test_states_of_some_lanes(chip: str, engine: Any, words: int) -> None:
    """Each partition seeds its lane, the others keep theirs; equal states give equal numbers."""
    values = np.tile(np.arange(1, words + 1, dtype=np.uint32), (8, 1))

    def body() -> Any:
        before = placed(empty((128, words), U32))
        nisa.rand_get_state(before, engine)
        nisa.rand_set_state(placed(tile(values)), engine)
        after = placed(empty((128, words), U32))
        nisa.rand_get_state(dst=after, engine=engine)
        return np.array(before.array), np.array(after.array), bits((16, 4), engine=engine)

    before, after, numbers = inside(body, chip=chip)
    np.testing.assert_array_equal(after, np.concatenate([values, before[8:]]))
    assert (numbers[:8] == numbers[0]).all()
    assert len(np.unique(numbers[8:], axis=0)) == 8
    assert numbers[0, 0] == xorwow([1, 2, 3, 4, 5, 6])[0]


# --- rng -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_rng_keeps_the_lowest_bits(dtype: Any) -> None:
    """32 bits are drawn for each element, whatever the dtype."""
    wide = inside(bits)
    narrow = inside(lambda: bits(dtype=dtype))
    unsigned = f"u{dtype.itemsize}"
    np.testing.assert_array_equal(narrow.view(unsigned), wide.astype(unsigned))


@pytest.mark.parametrize("engine", [VECTOR, GPSIMD], ids=str)
def test_rng_is_uniform(engine: Any) -> None:
    """Each of the 32 bits is set in half of the elements, and bytes are equally frequent (chi-square, 255 degrees)."""
    numbers = inside(lambda: bits((128, 2048), engine=engine)).reshape(-1)
    count = numbers.size
    for bit in range(32):
        assert abs(((numbers >> bit) & 1).mean() - 0.5) < 4 * 0.5 / math.sqrt(count)
    for shift in (0, 8, 16, 24):
        seen = np.bincount((numbers >> shift) & 255, minlength=256)
        chi_square = ((seen - count / 256) ** 2 / (count / 256)).sum()
        assert abs(chi_square - 255) < 5 * math.sqrt(2 * 255)
    lanes = numbers.reshape(128, -1).astype(np.float64)
    assert np.abs(np.corrcoef(lanes) - np.eye(128)).max() < 6 / math.sqrt(2048)


def test_rng_writes_to_psum_and_to_several_dimensions() -> None:
    """With the same numbers in the flattened order."""
    flat = inside(bits)
    np.testing.assert_array_equal(inside(lambda: bits(memory="psum")), flat)
    np.testing.assert_array_equal(inside(lambda: bits((128, 4, 8, 8))).reshape(128, 256), flat)


# --- dropout ---------------------------------------------------------------------------------------------------------


def dropped(values: np.ndarray, prob: Any, dtype: Any = nl.float32) -> np.ndarray:
    """What dropout leaves of these values."""

    def body() -> Any:
        dst, data = placed(empty(values.shape, dtype)), placed(tile(values, dtype=dtype))
        nisa.dropout(dst, data, placed(prob) if isinstance(prob, Tile) else prob)
        return np.array(dst.array)

    result: np.ndarray = inside(body)
    return result


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_dropout_keeps_values_or_zeroes_them(dtype: Any) -> None:
    """The values that stay are the original ones, to the bit and not scaled, NaN included; as many go as prob says."""
    values = held(np.where(sample((128, 200), dtype) == 0, 1, sample((128, 200), dtype)), dtype)
    if dtype in FLOATS:
        values[::7, 3] = np.nan
    got = dropped(values, 0.25, dtype)
    raw, unsigned = got.view(f"u{got.itemsize}"), values.view(f"u{got.itemsize}")
    gone = raw == 0
    np.testing.assert_array_equal(raw[~gone], unsigned[~gone])
    assert abs(gone.mean() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / gone.size)


@pytest.mark.parametrize("prob", [0, 0.0, 1, 1.0])
def test_the_ends_of_probability(prob: float) -> None:
    """0.0 keeps all, 1.0 keeps none (docstring)."""
    values = sample((128, 512))
    np.testing.assert_array_equal(dropped(values, prob), values if prob == 0 else 0 * values)


@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16], ids=str)
def test_each_partition_may_have_its_probability(dtype: Any) -> None:
    """A (partitions, 1) tile, of any float dtype for float data."""
    prob = np.linspace(0, 1, 128).astype(dtype.dtype).reshape(128, 1)
    gone = dropped(np.ones((128, 8, 250), np.float32), tile(prob, dtype=dtype)) == 0
    expected = prob.astype(np.float64)[:, 0]
    assert np.abs(gone.reshape(128, -1).mean(axis=1) - expected).max() < 5 * math.sqrt(0.25 / 2000)
    assert not gone[0].any()
    assert gone[127].all()


def test_dropout_in_place_and_after_a_seed() -> None:
    """The same seed drops the same elements, of other data too."""

    def body() -> Any:
        masks = []
        for values in (np.ones((32, 64), np.float32), np.full((32, 64), 3, np.float32)):
            seed(11)
            data = placed(tile(values))
            nisa.dropout(dst=data, data=data, prob=0.5)
            masks.append(np.array(data.array) == 0)
        return masks

    first, second = inside(body)
    np.testing.assert_array_equal(first, second)
    assert 0.4 < first.mean() < 0.6


# --- rand2 -----------------------------------------------------------------------------------------------------------


def test_rand2_is_uniform() -> None:
    """Mean, spread and the sixteenths of the range (trn3 only)."""
    values = inside(lambda: uniform(-2.0, 6.0, (128, 1024)), chip="trn3").astype(np.float64).reshape(-1)
    assert values.min() >= -2
    assert values.max() <= 6
    assert abs(values.mean() - 2) < 5 * 8 / math.sqrt(12 * values.size)
    counts, _ = np.histogram(values, 16, (-2, 6))
    expected = values.size / 16
    assert ((counts - expected) ** 2 / expected).sum() < 60


@pytest.mark.parametrize("dtype", [*FLOATS[:6], *INTEGERS], ids=str)
def test_rand2_casts_once(dtype: Any) -> None:
    """The same numbers in every dtype: rounded to even, saturated."""
    wide = inside(lambda: uniform(-50.0, 150.0), chip="trn3")
    got = inside(lambda: uniform(-50.0, 150.0, dtype=dtype), chip="trn3")
    np.testing.assert_array_equal(float64(got), float64(held(wide, dtype)))


def test_bounds_may_be_tiles() -> None:
    """For each partition its own, beside a number or another tile."""
    low = np.arange(128, dtype=np.float32).reshape(128, 1)

    def body(high: Any) -> Any:
        return uniform(placed(tile(low)), high() if callable(high) else high)

    both = inside(lambda: body(lambda: placed(tile(low + 2))), chip="trn3")
    assert ((both >= low) & (both <= low + 2)).all()
    assert (np.abs(both.mean(axis=1) - low[:, 0] - 1) < 0.25).all()
    one = inside(lambda: body(1000.0), chip="trn3")
    assert ((one >= low) & (one <= 1000)).all()
