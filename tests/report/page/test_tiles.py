"""Values packed for the page, read back as the page reads them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkitools.record.prints.summaries import summary_of
from nkitools.report.page.tiles import Pack, Shown, numbers_of, shares

NAN, INF, UNWRITTEN = 1, 2, 3
READ = {"f4": "<f4", "b2": "<u2", "i4": "<i4", "u4": "<u4", "u1": "u1", "i1": "i1"}


def shown(value: Any, unwritten: Any = None, weight: int = 1) -> Shown:
    return Shown(value.shape, value, unwritten, weight=weight)


def unpacked(pack: Pack, tile: list[Any]) -> tuple[Any, Any]:
    """The cells of a tile and what each of them is, by the rules that the page's script follows."""
    place, kind, rows, columns, _, _ = tile
    assert place % 12 == 0
    raw = np.frombuffer(pack.joined(), READ[kind], rows * columns, place).reshape(rows, columns)
    if kind not in ("f4", "b2"):
        return raw, np.zeros(raw.shape, int)
    bits = raw.astype("<u4") << 16 if kind == "b2" else raw.view("<u4")
    values = np.ascontiguousarray(bits).view("<f4")
    states = np.where(np.isnan(values), NAN, np.where(np.isinf(values), INF, 0))
    states[bits == (0x7FC10000 if kind == "b2" else 0x7FC00001)] = UNWRITTEN
    return values, states


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
    ],
)
def test_small_tiles_are_exact(dtype: str) -> None:
    """Every value of every dtype comes back, with more dimensions than two as rows of the first."""
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    value = np.arange(24).reshape(2, 3, 4).astype(kind)
    if dtype in ("int32", "uint32"):
        value[0, 0, 0] = np.iinfo(dtype).max
    pack = Pack()
    cells, states = unpacked(pack, pack.add(shown(value), 1 << 20))
    np.testing.assert_array_equal(cells, value.reshape(2, 12).astype(cells.dtype))
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
def test_a_picture_keeps_to_its_share_and_hides_no_nan(rows: int, columns: int, share: int, seed: int) -> None:
    """However coarse: no more bytes than granted, means of what they stand for, and the NaN's block is NaN."""
    random = np.random.default_rng(seed)
    value = random.standard_normal((rows, columns), np.float32)
    row, column = int(random.integers(rows)), int(random.integers(columns))
    value[row, column] = np.nan
    pack = Pack()
    tile = pack.add(shown(value), share)
    assert len(pack.joined()) <= max(share, 256) + 12
    cells, states = unpacked(pack, tile)
    down, across = cells.shape
    begins = [np.arange(count) * size // count for count, size in ((down, rows), (across, columns))]
    at = tuple(
        int(np.searchsorted(begin, place, "right")) - 1 for begin, place in zip(begins, (row, column), strict=True)
    )
    assert states[at] == NAN
    assert np.count_nonzero(states) == 1
    first = value[: [*begins[0], rows][1], : [*begins[1], columns][1]]
    if at != (0, 0):
        np.testing.assert_allclose(cells[0, 0], first.mean(dtype=np.float64), rtol=2**-8, atol=1e-6)


def test_equal_tiles_stand_there_once() -> None:
    """A value that is copied on takes no bytes again."""
    pack, value = Pack(), np.ones((8, 8), np.float32)
    assert pack.add(shown(value), 1 << 20) == pack.add(shown(value.copy()), 1 << 20)
    assert len(pack.joined()) == 264  # 256 bytes, and up to a multiple of 12


def test_a_summary_shows_its_blocks() -> None:
    """What was not kept by value has the picture that is left of it."""
    value = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    pack = Pack()
    reduced = Shown(value.shape, None, None, summary_of(value))
    tile = pack.add(reduced, 1 << 20)
    assert tile[1:] == ["b2", 32, 32, 64, 64]
    cells, _ = unpacked(pack, tile)
    np.testing.assert_allclose(cells, value.reshape(32, 2, 32, 2).mean(axis=(1, 3)), rtol=2**-8)
    assert numbers_of(reduced)[:3] == [0, 4095, 2047.5]


@given(
    st.lists(st.tuples(st.integers(1, 2000), st.sampled_from([1, 4, 24])), min_size=1, max_size=30),
    st.integers(0, 40_000),
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
