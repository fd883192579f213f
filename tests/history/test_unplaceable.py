"""Legacy tiles whose accesses no place serves; the compiler places the others."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki.language as nl
import numpy as np
import pytest
from neuronxcc import nki

import nkitools


def shifted(rows: int, count: int, *shifts: int) -> Any:
    """A kernel that adds the rows of one tile, each time shifted by some partitions."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((count, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(count)[:, None], nl.arange(16)[None, :]
        tile = nl.load(x)
        total = nl.exp(tile[i_p + shifts[0], i_f])
        for shift in shifts[1:]:
            total = nl.add(total, tile[i_p + shift, i_f])
        nl.store(out, total)
        return out

    return nkitools.simulate(kernel, np.random.default_rng(0).standard_normal((rows, 16)).astype(np.float32))


def told(run: Any) -> list[tuple[str, str]]:
    """Rules and severities, but for rows that nothing reads."""
    return [(each.rule, each.severity) for each in run.findings if each.rule not in ("NK513", "NK622")]


@pytest.mark.parametrize(
    ("rows", "count", "shifts"),
    [(128, 126, (0, 1, 2)), (128, 127, (1, 0)), (64, 62, (0, 2)), (100, 40, (0, 3)), (33, 32, (0, 1))],
)
def test_a_tile_for_two_accesses_that_want_it_elsewhere_is_a_warning(
    rows: int, count: int, shifts: tuple[int, ...]
) -> None:
    """NK108 at the line of the access that finds no place left; the numbers are right all the same."""
    assert told(shifted(rows, count, *shifts)) == [("NK108", "warning")]


@pytest.mark.parametrize(
    ("rows", "count", "shifts"),
    [(128, 128, (0,)), (128, 64, (0, 64)), (128, 32, (0, 32, 96)), (64, 32, (16,)), (100, 60, (5, 5))],
)
def test_a_tile_with_a_place_is_left_to_the_compiler(rows: int, count: int, shifts: tuple[int, ...]) -> None:
    """Starts that an engine has, and a shift that another place of the tile makes good."""
    assert told(shifted(rows, count, *shifts)) == []
