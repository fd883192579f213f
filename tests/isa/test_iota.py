"""nisa.iota: its pattern against the docstring's loops, the dtypes of its result, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import empty, issue, refusal, tile
from tests.isa.oracles import held

numbers = st.integers(-1000, 1000)
patterns = st.lists(st.tuples(numbers, st.integers(1, 4)), min_size=1, max_size=4)


@given(patterns, numbers, numbers, st.integers(1, 128), st.sampled_from([nl.int32, nl.float32, nl.int16]))
def test_iota_counts_as_its_pseudo_code(
    pattern: list[tuple[int, int]], offset: int, multiplier: int, partitions: int, dtype: Any
) -> None:
    """The loops of the docstring, written out."""
    rows = [
        [
            offset + channel * multiplier + sum(step * i for (step, _), i in zip(pattern, index, strict=True))
            for index in itertools.product(*[range(count) for _, count in pattern])
        ]
        for channel in range(partitions)
    ]
    expected = np.array(rows, np.float64)
    dst = empty((partitions, len(rows[0])), dtype)
    result = issue(nisa.iota, dst, [list(pair) for pair in pattern], offset, multiplier).dst
    np.testing.assert_array_equal(result, held(expected, dtype) if dtype is not nl.int32 else expected)


def test_iota_in_other_shapes_and_dtypes() -> None:
    """Any free dimensions of as many elements; keywords; saturation of narrow integers; 32 bits that wrap."""
    result = issue(nisa.iota, dst=empty((4, 2, 3), nl.uint8), pattern=((100, 3), (1, 2)), channel_multiplier=1).dst
    expected = np.array([[p + 100 * i + j for i in range(3) for j in range(2)] for p in range(4)]).reshape(4, 2, 3)
    np.testing.assert_array_equal(result, np.minimum(expected, 255))
    wrapped = issue(nisa.iota, empty((2, 1), nl.int32), [[1, 1]], 2**31 - 1, 1).dst
    np.testing.assert_array_equal(wrapped, [[2**31 - 1], [-(2**31)]])
    half = issue(nisa.iota, empty((1, 300), nl.bfloat16), [[1, 300]]).dst
    np.testing.assert_array_equal(half[0], held(np.arange(300), nl.bfloat16))
    view = tile(np.zeros((3, 8), np.float32), view=lambda t: t[:, ::2])
    np.testing.assert_array_equal(issue(nisa.iota, view, [[1, 4]]).storages["dst"][0], [0, 0, 1, 0, 2, 0, 3, 0])


I32 = empty((4, 6), nl.int32)
IOTA_REFUSED: dict[str, tuple[str, str, tuple[Any, ...]]] = {
    "256 partitions": ("NK101", "`dst`", (empty((256, 1)), [[1, 1]])),
    "long": ("NK107", "`dst`", (empty((1, 70000)), [[1, 70000]])),
    "start": ("NK108", "`dst`", (empty((64, 6), view=lambda t: t[1:5, :]), [[1, 6]])),
    "elements": ("NK109", "`pattern`", (I32, [[1, 5]])),
    "PSUM": ("NK201", "`dst`", (empty((4, 6), memory="psum"), [[1, 6]])),
    "packed": ("NK301", "`dst`", (empty((4, 6), nl.float8_e5m2_x4), [[1, 6]])),
    "five dimensions": ("NK609", "`pattern`", (I32, [[1, 6], [1, 1], [1, 1], [1, 1], [1, 1]])),
    "empty": ("NK609", "`pattern`", (I32, [])),
    "flat": ("NK609", "`pattern`", (I32, [1, 6])),
    "num of 0": ("NK609", "`pattern`", (I32, [[1, 0]])),
    "step of 1.5": ("NK609", "`pattern step`", (I32, [[1.5, 6]])),
    "offset of 0.5": ("NK609", "`offset`", (I32, [[1, 6]], 0.5)),
    "offset too large": ("NK609", "`offset`", (I32, [[1, 6]], 2**31)),
    "multiplier": ("NK609", "`channel_multiplier`", (I32, [[1, 6]], 0, "1")),
}


@pytest.mark.parametrize("case", IOTA_REFUSED)
def test_what_iota_refuses(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args = IOTA_REFUSED[case]
    finding = refusal(nisa.iota, *args)
    assert finding.rule == rule
    assert named in finding.message
