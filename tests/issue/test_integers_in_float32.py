"""NK307: integers beyond 2**24 that an engine's float32 has rounded, and only those."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import Issued, Tile, empty, issue, tile

LARGE = np.array([[16777217, 3, -16777219, 16777216]], np.int32).repeat(4, axis=0)
ROWS = np.arange(16777216, 16777224, dtype=np.int32)[None].repeat(4, axis=0)
SMALL = np.array([[4097, 3, -4097, 4096]], np.int32).repeat(4, axis=0)


def lost(issued: Issued) -> list[str]:
    """The messages of NK307, the only rule there may be."""
    assert {each.rule for each in issued.findings} <= {"NK307"}
    assert {each.severity for each in issued.findings} <= {"warning"}
    return [each.message for each in issued.findings]


def words(shape: tuple[int, ...] = (4, 4), dtype: Any = nl.int32) -> Any:
    """A destination of integers."""
    return empty(shape, dtype)


CALLS: dict[str, tuple[Any, ...]] = {
    "activation": (nisa.activation, words(), nl.copy, tile(LARGE)),
    "tensor_scalar of a large operand": (nisa.tensor_scalar, words(), tile(LARGE), nl.add, 0),
    "tensor_scalar with a large result": (nisa.tensor_scalar, words(), tile(SMALL), nl.multiply, 4097),
    "a comparison": (nisa.tensor_scalar, empty((4, 4), nl.uint8), tile(LARGE), nl.equal, 16777216),
    "a comparison into floats": (nisa.tensor_scalar, empty((4, 4)), tile(LARGE), nl.equal, 16777216),
    "a reduction": (nisa.tensor_reduce, words((4, 1)), nl.add, tile(LARGE), 1),
    "two operators": (nisa.scalar_tensor_tensor, words(), tile(LARGE), nl.add, 0, nl.add, tile(SMALL)),
    "an operator before a reduction": (nisa.tensor_scalar_reduce, words(), tile(LARGE), nl.add, 0, nl.maximum),
    "a scan": (nisa.tensor_tensor_scan, words(), tile(np.ones_like(LARGE)), tile(LARGE), 0, nl.multiply, nl.maximum),
    "the largest": (nisa.max8, words((4, 8)), tile(np.tile(LARGE, 2))),
    "a place": (nisa.nc_find_index8, words((4, 8), nl.uint32), tile(ROWS), tile(ROWS[:, ::-1])),
    "a replacement": (nisa.nc_match_replace8, words((4, 8)), tile(ROWS), tile(ROWS + 1), 0),
    "a cast": (nisa.tensor_copy, words(dtype=nl.uint32), tile(np.abs(LARGE))),
    "a cast by DMA": (nisa.dma_copy, words(dtype=nl.uint32), tile(np.abs(LARGE), "hbm")),
}


@pytest.mark.parametrize("name", CALLS)
def test_integers_that_float32_rounds_are_a_warning(name: str) -> None:
    """It names the first element, what it should be, and what it is."""
    (message,) = lost(issue(*CALLS[name]))
    assert "lose their low bits in float32, which holds integers up to 2**24" in message


@pytest.mark.parametrize("operand", ["first", "second", "both"])
@pytest.mark.parametrize("name", ["two operators", "a scan", "two tiles"])
def test_operands_of_other_shapes_lose_the_same_integers(name: str, operand: str) -> None:
    """Equally many elements a partition are enough: the values and the message are those of one shape."""
    two_tiles = (nisa.tensor_tensor, words(), tile(LARGE), tile(SMALL), nl.add, nisa.engine.vector)
    call = list({**CALLS, "two tiles": two_tiles}[name])
    alike = issue(*call)
    tiles = [at for at, each in enumerate(call) if isinstance(each, Tile)]
    for at, shape in {"first": [(tiles[1], (4, 2, 2))], "second": [(tiles[2], (4, 4, 1))],
                      "both": [(tiles[1], (4, 1, 4)), (tiles[2], (4, 2, 2))]}[operand]:  # fmt: skip
        call[at] = tile(call[at].values.reshape(shape))
    unlike = issue(*call)
    np.testing.assert_array_equal(unlike.dst, alike.dst)
    ((one,), (other,)) = (lost(each) for each in (alike, unlike))
    assert one.split(";")[1:] == other.split(";")[1:] != []


def test_the_engine_decides() -> None:
    """int32 tiles are added exactly on the GpSimd Engine, and in float32 on the Vector Engine."""
    one = tile(np.ones((4, 4), np.int32))
    exactly = issue(nisa.tensor_tensor, words(), tile(LARGE), one, nl.add)
    assert lost(exactly) == []
    np.testing.assert_array_equal(exactly.dst, LARGE + 1)
    (message,) = lost(issue(nisa.tensor_tensor, words(), tile(LARGE), one, nl.add, nisa.engine.vector))
    assert "the first at [0, 0]: 16777218 becomes 16777216" in message


def test_the_destination_may_be_the_operand() -> None:
    """What the call has overwritten was looked at before."""
    x = tile(LARGE)
    (message,) = lost(issue(nisa.tensor_scalar, x, x, nl.add, 0))
    assert "8 of 16 elements" in message
    assert "the first at [0, 0]: 16777217 becomes 16777216" in message


@pytest.mark.parametrize(
    "call",
    [
        (nisa.activation, words(), nl.copy, tile(SMALL)),
        (nisa.activation, empty((4, 4)), nl.copy, tile(LARGE)),  # floats are meant
        (nisa.activation, words(), nl.exp, tile(SMALL // 1000)),
        (nisa.tensor_copy, words(), tile(LARGE)),  # bits
        (nisa.tensor_scalar, words(), tile(SMALL), nl.multiply, 4096),  # large, and held
        (nisa.tensor_scalar, words(), tile(LARGE), nl.bitwise_and, 255),
        (nisa.tensor_scalar, words(), tile(SMALL * 1000), nl.multiply, 0.3),  # rounds in any precision
        (nisa.tensor_copy, words(), tile(np.full((4, 4), 33554434.0, np.float32))),  # floats, not integers
    ],
)
def test_nothing_is_said_where_nothing_is_lost(call: tuple[Any, ...]) -> None:
    """Nor where floats round, as they do."""
    assert lost(issue(*call)) == []


def test_what_saturates_is_another_rule() -> None:
    """NK304 has the elements beyond the destination, and says so alone."""
    big = tile(np.full((4, 4), 2147483647, np.int32))
    assert issue(nisa.tensor_scalar, words(), big, nl.multiply, 2).rules == ["NK304"]


@pytest.mark.parametrize("negated", [False, True])
def test_a_sum_of_held_integers_may_not_be_held(negated: bool) -> None:
    """Each of the elements is below 2**24, the sum that the reduce registers give back is not."""
    halves = tile(np.array([[8388609, 8388608]], np.int32).repeat(4, axis=0))
    total = words((4, 1))
    args = (words((4, 2)), halves, nl.add, 0, nl.add, total)
    (message,) = lost(issue(nisa.tensor_scalar_reduce, *args, reduce_res_negate=negated))
    sign = "-" if negated else ""
    assert "4 of 4 elements" in message
    assert f"the first at [0, 0]: {sign}16777217 becomes {sign}16777216" in message


def test_a_scan_goes_beyond_by_adding() -> None:
    """Each sum is held up to 2**24; the last one is odd and beyond."""
    ones, steps = tile(np.ones((4, 3), np.int32)), tile(np.array([[8388608, 8388608, 1]], np.int32).repeat(4, axis=0))
    (message,) = lost(issue(nisa.tensor_tensor_scan, words((4, 3)), ones, steps, 0, nl.multiply, nl.add))
    assert "the first at [0, 2]: 16777217 becomes 16777216" in message
