"""Calls that break a rule and are computed all the same, again and again: each is reported, few are checked anew."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.issue.instruction import Instruction
from tests.issue.test_both_ways import both, seen

X = np.arange(8 * 8, dtype=np.float32).reshape(8, 8)


def elements(x: Any) -> Any:
    """Each element by itself: all rows but the first begin at a partition where no access may (NK108)."""
    out = nl.ndarray((8, 8), nl.float32, buffer=nl.shared_hbm)
    tile, swapped = nl.load(x), nl.ndarray((8, 8), nl.float32, buffer=nl.sbuf)
    for i in range(8):
        for j in range(8):
            nisa.tensor_copy(dst=swapped[i : i + 1, j : j + 1], src=tile[i : i + 1, 7 - j : 8 - j])
    nl.store(out, swapped)
    return out


def assigned(x: Any) -> Any:
    """Elements by assignments, each with two findings (NK108 and NK621), of two tiles and in two loops."""
    out = nl.ndarray((16, 8), nl.float32, buffer=nl.shared_hbm)
    tile, first, second = nl.load(x), nl.load(x), nl.load(x)
    for i in range(8):
        for j in range(8):
            first[i, j] = tile[i, 7 - j]
        for k in range(4):
            (first, second)[k % 2][i, k] = tile[i, k]
    nl.store(out[0:8], first)
    nl.store(out[8:16], second)
    return out


def two_tiles(x: Any) -> Any:
    """Two tiles in turns at one line, whose findings name each."""
    out = nl.ndarray((16, 8), nl.float32, buffer=nl.shared_hbm)
    first, second = nl.load(x), nl.load(x)
    for i in range(6):
        tile = (first, second)[i % 2]
        nisa.tensor_scalar(dst=tile[1:3], data=tile[1:3], op0=nl.add, operand0=1.0)
    nl.store(out[0:8], first)
    nl.store(out[8:16], second)
    return out


def numbers(x: Any) -> Any:
    """A dtype that takes no such number, and then one that it takes: the form is one, the findings are not (NK304)."""
    out = nl.ndarray((8, 8), nl.int8, buffer=nl.shared_hbm)
    tile = nl.ndarray((8, 8), nl.int8, buffer=nl.sbuf)
    for i in range(6):
        nisa.memset(tile[0:8], value=(300, 5, 1000)[i % 3])
        nisa.memset(tile[1:2], value=(300, 5, 1000)[i % 3])
    nl.store(out, tile)
    return out


@pytest.mark.parametrize("kernel", [elements, assigned, two_tiles, numbers])
def test_both_ways_agree(kernel: Any) -> None:
    """Outputs, rows, dependences and findings, with their counts, places and names, are the careful path's."""
    warm, careful = both(partial(seen, kernel, X))
    assert warm["findings"]
    assert warm == careful


def test_each_time_is_counted_and_computed() -> None:
    """The values are NumPy's, and the finding counts the 56 elements outside of the first row."""
    run = nkitools.simulate(elements, X, rules="report")
    np.testing.assert_array_equal(run.outputs, X[:, ::-1])
    (found,) = [each for each in run.findings if each.rule == "NK108"]
    assert (found.count, found.loops, found.last.loops) == (56, {"i": 1, "j": 0}, {"i": 7, "j": 7})


def test_each_tile_is_named() -> None:
    """A tile's findings say its own name, and the other one's do not."""
    run = nkitools.simulate(two_tiles, X, rules="report")
    np.testing.assert_array_equal(run.outputs[1:3], X[1:3] + 3)
    np.testing.assert_array_equal(run.outputs[9:11], X[1:3] + 3)
    texts = " ".join(f"{each.message} {each.last.message if each.last else ''}" for each in run.findings)
    assert "`first`" in texts
    assert "`second`" in texts


@pytest.mark.usefixtures("fast")
def test_few_are_checked_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call of a form alone takes the careful way: a form is a partition here."""
    careful, whole = Counter[str](), Instruction.issue_carefully

    def counted(self: Any, core: Any, values: Any) -> None:
        careful[self.name] += 1
        whole(self, core, values)

    monkeypatch.setattr(Instruction, "issue_carefully", counted)
    nkitools.simulate(elements, X, rules="report")
    assert careful["tensor_copy"] <= 9
