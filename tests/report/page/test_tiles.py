"""Values packed for the page, read back as the page reads them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkitools.record.prints.summaries import summary_of
from nkitools.report.page.tiles import BLOCKS, EXACT, FORMS, LEFT_OUT, Pack, Shown, numbers_of, rounded_outwards, shares

NAN, INF, UNWRITTEN = 1, 2, 3
READ = {"f4": "<f4", "f8": "<f8", "b2": "<u2", "i4": "<i4", "u4": "<u4", "u1": "u1", "i1": "i1", "m2": "<u2"}


def shown(value: Any, unwritten: Any = None, weight: int = 1) -> Shown:
    return Shown(value.shape, value, unwritten, weight=weight)


def unpacked(pack: Pack, tile: list[int]) -> tuple[Any, Any]:
    """The cells of a tile and what each of them is, by the rules that the page's script follows; of blocks the low and
    the high ends."""
    place, number, _, rows, columns, _, _ = tile
    form = FORMS[number]
    kind, count = np.dtype(READ[form]), rows * columns * (2 if form == "m2" else 1)
    data = pack.joined()[place : place + count * kind.itemsize]
    raw = np.frombuffer(data, np.uint8).reshape(kind.itemsize, count).T.copy().view(kind).reshape(-1, rows, columns)
    if form[0] in "ui":
        return raw[0], np.zeros((rows, columns), int)
    bits = raw.astype("<u4") << 16 if form in ("b2", "m2") else raw.view(f"<u{form[1]}")
    values = np.ascontiguousarray(bits).view("<f8" if form == "f8" else "<f4")
    states = np.where(np.isnan(values[0]), NAN, np.where(np.isinf(values[0]), INF, 0))
    states[bits[0] == {"f4": 0x7FC00001, "f8": 0x7FF8000000000001}.get(form, 0x7FC10000)] = UNWRITTEN
    return values if form == "m2" else values[0], states


@pytest.mark.parametrize(
    "dtype",
    [
        "float32",
        "float16",
        "bfloat16",
        "float8_e4m3",
        "float8_e5m2",
        "int32",
        "uint32",
        "int16",
        "int8",
        "uint8",
        "bool",
        "float64",
        "int64",
    ],
)
def test_small_tiles_are_exact(dtype: str) -> None:
    """Every value of every dtype comes back, with more dimensions than two as rows of the first."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    value = np.arange(24).reshape(2, 3, 4).astype(kind)
    if dtype in ("int32", "uint32"):
        value[0, 0, 0] = np.iinfo(dtype).max
    if dtype == "float64":
        value[1, 1, 1] = np.pi
    pack = Pack()
    tile = pack.add(shown(value), 1 << 20)
    assert tile[2] == EXACT
    cells, states = unpacked(pack, tile)
    np.testing.assert_array_equal(cells.astype(kind), value.reshape(2, 12))
    assert not states.any()


def test_what_is_no_number_says_what_it_is() -> None:
    """NaN, the infinities and what was never written are told apart."""
    value = np.array([[1, np.nan, np.inf, -np.inf, np.nan]], np.float32)
    missing = np.array([[False, False, False, False, True]])
    pack = Pack()
    cells, states = unpacked(pack, pack.add(shown(value, missing), 1 << 20))
    np.testing.assert_array_equal(states, [[0, NAN, INF, INF, UNWRITTEN]])
    assert cells[0, 3] == -np.inf
    assert numbers_of(shown(value, missing)) == [1, 1, 1, 1, 2, 1, 1, 0]


@given(st.integers(1, 300), st.integers(1, 300), st.integers(128, 4096), st.integers(0, 2**32 - 1))
def test_a_picture_keeps_to_its_share_and_hides_nothing(rows: int, columns: int, share: int, seed: int) -> None:
    """However coarse: no more bytes than granted; the NaN's block counts it; each element lies within its block's
    ends, and these are not farther than bfloat16 has to round."""
    random = np.random.default_rng(seed)
    value = random.standard_normal((rows, columns), np.float32)
    value[int(random.integers(rows)), int(random.integers(columns))] = 1e6
    row, column = int(random.integers(rows)), int(random.integers(columns))
    value[row, column] = np.nan
    pack = Pack()
    tile = pack.add(shown(value), share)
    assert len(pack.joined()) <= share
    cells, states = unpacked(pack, tile)
    if FORMS[tile[1]] != "m2":
        np.testing.assert_array_equal(cells, value)
        return
    (down, across), counts = cells.shape[1:], cells[1].view("<u4") >> 16
    begins = [np.arange(count) * size // count for count, size in ((down, rows), (across, columns))]
    places = zip(begins, (row, column), strict=True)
    at = tuple(int(np.searchsorted(begin, place, "right")) - 1 for begin, place in places)
    assert states[at] == NAN
    assert counts[at] == 1
    assert np.count_nonzero(states) == 1
    fine = states == 0
    for ends, extreme, way in ((cells[0], np.fmin, 1), (cells[1], np.fmax, -1)):
        true = extreme.reduceat(extreme.reduceat(value, begins[0], axis=0), begins[1], axis=1)[fine]
        assert (way * (true - ends[fine]) >= 0).all()
        np.testing.assert_allclose(ends[fine], true, rtol=2**-7)


def test_equal_tiles_stand_there_once() -> None:
    """A value that is copied on takes no bytes again."""
    pack, value = Pack(), np.ones((8, 8), np.float32)
    assert pack.add(shown(value), 1 << 20) == pack.add(shown(value.copy()), 1 << 20)
    assert len(pack.joined()) == 256


def test_a_summary_shows_its_blocks() -> None:
    """What was not kept by value has the picture that is left of it."""
    value = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    pack = Pack()
    reduced = Shown(value.shape, None, None, summary_of(value))
    tile = pack.add(reduced, 1 << 20)
    assert tile[1:] == [FORMS.index("m2"), BLOCKS, 32, 32, 64, 64]
    (low, high), _ = unpacked(pack, tile)
    blocks = value.reshape(32, 2, 32, 2)
    np.testing.assert_allclose(low, blocks.min(axis=(1, 3)), rtol=2**-7)
    np.testing.assert_allclose(high, blocks.max(axis=(1, 3)), rtol=2**-7)
    assert numbers_of(reduced)[:3] == [0, 4095, 2047.5]


def test_a_summary_keeps_to_its_share() -> None:
    """Of little room there are fewer blocks, whose ends hold every element; a NaN is lost in none of them."""
    value = np.random.default_rng(3).standard_normal((128, 100), np.float32)
    value[77, 50] = np.nan
    pack = Pack()
    tile = pack.add(Shown(value.shape, None, None, summary_of(value)), 600)
    assert len(pack.joined()) <= 600
    assert tile[1:] == [FORMS.index("m2"), BLOCKS, 8, 16, 128, 100]
    (low, high), states = unpacked(pack, tile)
    begins = [np.arange(count) * size // count for count, size in ((8, 128), (16, 100))]
    assert states[4, 8] == NAN
    assert np.count_nonzero(states) == 1
    fine = states == 0
    for ends, extreme, way in ((low, np.fmin, 1), (high, np.fmax, -1)):
        true = extreme.reduceat(extreme.reduceat(value, begins[0], axis=0), begins[1], axis=1)[fine]
        assert (way * (true - ends[fine]) >= 0).all()
        np.testing.assert_allclose(ends[fine], true, rtol=2**-7)


def test_numbers_in_three_digits_hold_what_they_stand_for() -> None:
    """The least is rounded down and the largest up, by no more than bfloat16 has to."""
    values = np.random.default_rng(4).standard_normal(1000).astype(np.float32)
    low, high = rounded_outwards(values, up=False), rounded_outwards(values, up=True)
    assert (low <= values).all()
    assert (values <= high).all()
    np.testing.assert_allclose(low, high, rtol=2**-7)
    assert np.isnan(rounded_outwards(np.array([np.nan]), up=True)).all()


@given(
    st.lists(st.tuples(st.integers(1, 2000), st.sampled_from([1, 4, 24])), min_size=1, max_size=30),
    st.integers(8_000, 40_000),
)
def test_shares_stay_within_the_budget(sizes: list[tuple[int, int]], budget: int) -> None:
    """Nobody gets more than they need, all together no more than there is, and of those of one weight nobody in need is
    left with less than another one, but for the bytes that are lost by rounding."""
    wanted = [shown(np.zeros(size, np.float32), weight=weight) for size, weight in sizes]
    granted = shares(wanted, budget)
    needs = [each.exact_bytes for each in wanted]
    assert all(0 <= got <= need for got, need in zip(granted, needs, strict=True))
    assert sum(granted) <= budget
    if sum(needs) <= budget:
        assert granted == needs
    for (_, weight), got, need in zip(sizes, granted, needs, strict=True):
        for (_, other), theirs in zip(sizes, granted, strict=True):
            assert got == need or weight != other or theirs <= got + len(sizes)


def test_what_comes_first_is_exact_and_what_is_left_out_is_said() -> None:
    """Of a thousand large values within a small budget the one that comes first is exact, some turns of the line have
    pictures, and the others say that they have none."""
    value = np.random.default_rng(5).standard_normal((64, 64), np.float32)
    wanted = [shown(value + turn) for turn in range(1000)]
    wanted[700].comes_first = True
    granted = shares(wanted, 40_000)
    assert sum(granted) <= 40_000
    pack = Pack()
    tiles = [pack.add(each, share) for each, share in zip(wanted, granted, strict=True)]
    np.testing.assert_array_equal(unpacked(pack, tiles[700])[0], value + 700)
    kinds = [tile[2] for tile in tiles]
    assert 50 < kinds.count(BLOCKS) < 200
    assert kinds.count(LEFT_OUT) == 999 - kinds.count(BLOCKS)
