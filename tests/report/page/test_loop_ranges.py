"""The kinds of loops around lines, as a page has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import nkitools
from nkitools.dialects import legacy
from nkitools.dialects.legacy import language as nl
from nkitools.report.page.page_data import Gathering


def nested(x: Any) -> Any:
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(2):
        for j in nl.sequential_range(2):
            twice = added(x, i, j)
            for k in nl.static_range(1):
                nl.store(out[k + i, j], twice)
    for i in nl.static_range(2):
        added(x, i, 0)
    for _ in range(2):
        last = nl.load(x[0, 0])
    nl.store(out[0, 0], last)
    return out


def added(x: Any, i: Any, j: Any) -> Any:
    tile = nl.load(x[i, j])
    return tile + tile


def test_each_line_has_the_kinds_of_the_loops_around_it(tmp_path: Path) -> None:
    """Nested kinds, a function that loops of two kinds call, Python's own range, and none; a saved run has the same."""
    run = nkitools.simulate(legacy.jit(nested), np.ones((2, 2, 4, 8), np.float32), rules="off")
    run.save(tmp_path / "run.json")
    first = nested.__code__.co_firstlineno
    for each in (run, nkitools.load_run(tmp_path / "run.json")):
        tables = Gathering(each, None).tables
        kinds = {tables["places"][int(place)][1]: names for place, names in tables["ranges"].items()}
        assert kinds == {
            first + 6: {"i": "affine_range", "j": "sequential_range", "k": "static_range"},
            added.__code__.co_firstlineno + 1: {"i": "affine_range or static_range", "j": "sequential_range"},
            added.__code__.co_firstlineno + 2: {"i": "affine_range or static_range", "j": "sequential_range"},
            first + 10: {"_": "range"},
        }
