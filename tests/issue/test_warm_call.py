"""Calls of known forms that the fast path leaves: views that registers or an index move, outputs touched in part."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.issue.fast_path import _EARLY
from nkitools.issue.instruction import Instruction
from tests.issue.test_both_ways import both, seen

X = np.arange(32 * 8, dtype=np.float32).reshape(32, 8)
CHOSEN = np.array([[3, 1, 7, 0, 3, 2]], np.int32)
SWAPPED = [1, 0, *[255] * 30]  # of 32 partitions the first two change places, the others stay as they are


def moved(x: Any, chosen: Any) -> Any:
    """Rows of HBM, and columns on chip, at places that a register has; each turn reads what the last one wrote."""
    rows = nl.ndarray((6, 8), nl.float32, buffer=nl.shared_hbm)
    columns = nl.ndarray((32, 8), nl.float32, buffer=nl.shared_hbm)
    indices, tile, last = nl.load(chosen), nl.load(x), nl.load(x[:, 0:1])
    for i in range(6):
        at = nisa.register_alloc()
        nisa.register_load(at, indices[0:1, i : i + 1])
        row = nl.ndarray((1, 8), nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=row, src=x.ap([[8, 1], [1, 8]], scalar_offset=at, indirect_dim=0))
        nisa.dma_copy(dst=rows[i : i + 1], src=row)
        nisa.tensor_tensor(dst=tile.select(1, at), data1=tile.select(1, at), data2=last, op=nl.add)
        nisa.tensor_copy(dst=last, src=tile.select(1, at), name=f"last{i}")
    nisa.dma_copy(dst=columns, src=tile)
    return rows, columns


def expected_of_moved() -> list[np.ndarray]:
    """The same by NumPy."""
    tile, last = X.copy(), X[:, 0].copy()
    for at in CHOSEN[0]:
        tile[:, at] += last
        last = tile[:, at].copy()
    return [X[CHOSEN[0]], tile]


def shuffled(x: Any, chosen: Any) -> Any:
    """A tile of which an instruction writes two partitions, several times, and no other one the rest."""
    out = nl.ndarray((2, 8), nl.float32, buffer=nl.shared_hbm)
    tile, part = nl.load(x), nl.ndarray((32, 8), nl.float32, buffer=nl.sbuf)
    for _ in range(4):
        nisa.nc_stream_shuffle(dst=part, src=tile, shuffle_mask=SWAPPED)
        nisa.tensor_copy(dst=tile[0:2], src=part[0:2])
    nisa.dma_copy(dst=out, src=part[0:2])
    return out


def gathered(x: Any, chosen: Any) -> Any:
    """Rows of HBM that an index in SBUF names, another row of it in each turn; the last one has one beyond the rows."""
    out = nl.ndarray((4, 8), nl.float32, buffer=nl.shared_hbm)
    index, tile = nl.load(chosen[0, 0:4]), nl.ndarray((4, 8), nl.float32, buffer=nl.sbuf)
    nisa.memset(tile, 0.0)
    for i in range(4):
        nisa.dma_copy(dst=tile, src=x[0 : 8 - i].vector_select(0, index), oob_mode=nisa.oob_mode.skip)
    nisa.dma_copy(dst=out, src=tile)
    return out


def listed(x: Any, chosen: Any) -> Any:
    """Patterns and axes as lists, which may change from turn to turn."""
    out, sums = (nl.ndarray(shape, nl.float32, buffer=nl.shared_hbm) for shape in ((32, 8), (32, 1)))
    tile, total, pattern = nl.load(x), nl.ndarray((32, 1), nl.float32, buffer=nl.sbuf), [[1, 8]]
    for i in range(4):
        pattern[0][0] = i % 2 + 1
        nisa.iota(tile, pattern, offset=3, channel_multiplier=8)
        nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=[1])
    nisa.dma_copy(dst=out, src=tile)
    nisa.dma_copy(dst=sums, src=total)
    return out, sums


def undefined(x: Any, chosen: Any) -> Any:
    """A column that was never written, at a place that a register has, and then the result."""
    out = nl.ndarray((32, 1), nl.float32, buffer=nl.shared_hbm)
    tile, indices = nl.ndarray((32, 8), nl.float32, buffer=nl.sbuf), nl.load(chosen)
    nisa.dma_copy(dst=tile[:, 0:7], src=x[:, 0:7])
    for i in range(3):  # the third one
        at = nisa.register_alloc()
        nisa.register_load(at, indices[0:1, i : i + 1])
        nisa.dma_copy(dst=out, src=tile.select(1, at))
    return out


def outside(x: Any, chosen: Any) -> Any:
    """A row beyond the tensor, which is left out: the one before stays."""
    out = nl.ndarray((1, 8), nl.float32, buffer=nl.shared_hbm)
    indices = nl.load(chosen)
    for i in range(3):
        at = nisa.register_alloc()
        nisa.register_load(at, indices[0:1, i : i + 1])
        source = x[0:7].ap([[8, 1], [1, 8]], scalar_offset=at, indirect_dim=0)
        nisa.dma_copy(dst=out, src=source, oob_mode=nisa.oob_mode.skip)
    return out


@pytest.mark.parametrize("kernel", [moved, shuffled, gathered, listed, undefined, outside])
def test_both_ways_agree(kernel: Any) -> None:
    """Outputs, rows, dependences, labels and findings are the careful path's."""
    warm, careful = both(partial(seen, kernel, X, CHOSEN))
    assert warm == careful


def test_the_values_are_those_of_numpy() -> None:
    """Of each kernel that has a result, in a run that makes the plans and in one that has them."""
    for _ in range(2):
        for found, expected in zip(nkitools.simulate(moved, X, CHOSEN).outputs, expected_of_moved(), strict=True):
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(nkitools.simulate(shuffled, X, CHOSEN).outputs, X[0:2])
        np.testing.assert_array_equal(nkitools.simulate(gathered, X, CHOSEN).outputs, X[CHOSEN[0, 0:4]])
        numbers = 3 + 8 * np.arange(32)[:, None] + 2 * np.arange(8)
        for found, expected in zip(
            nkitools.simulate(listed, X, CHOSEN).outputs, (numbers, numbers.sum(1, keepdims=True)), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(nkitools.simulate(outside, X, CHOSEN).outputs, X[1:2])


def test_what_was_never_written_is_found() -> None:
    """NK401 at the third place alone, which is the only one of the last column."""
    (found,) = [
        each for each in nkitools.simulate(undefined, X, CHOSEN, rules="report").findings if each.rule == "NK401"
    ]
    assert (found.count, found.loops) == (1, {"i": 2})


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("kernel", [moved, shuffled, listed])
def test_a_known_form_is_not_checked_step_by_step(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a run that has all plans no call takes the careful way, but for the first of a function in a process."""
    for _ in range(_EARLY + 1):
        nkitools.simulate(kernel, X, CHOSEN)
    careful, whole = Counter[str](), Instruction.issue_carefully

    def counted(self: Any, core: Any, values: Any) -> None:
        careful[self.name] += 1
        whole(self, core, values)

    monkeypatch.setattr(Instruction, "issue_carefully", counted)
    nkitools.simulate(kernel, X, CHOSEN)
    assert careful.keys() <= {"register_load"}
