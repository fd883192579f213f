"""NK602, NK603, NK604, NK620: indices and masks of the legacy dialect."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.linted import LEGACY, marked

INDICES = "i_p = nl.arange(128)[:, None]\ni_f = nl.arange(512)[None, :]\n"
CASES = {
    "an index of one dimension": "i = nl.arange(128)\ntile = nl.load(x[i, 0])  # NK603 16",
    "one that is written on the spot": "tile = nl.load(x[nl.arange(128)])  # NK603 16",
    "one that is a sum": "tile = nl.load(x[nl.arange(128) + 4])  # NK603 16",
    "indices of the tile": INDICES + "tile = nl.load(x[i_p, i_f + 4])",
    "a grid": "i_p, i_f = nl.mgrid[0:128, 0:512]\ntile = nl.load(x[i_p, i_f], mask=(i_p < 100) & (i_f < 4))",
    "an attribute of a grid": "grid = nl.mgrid[0:128, 0:512]\ntile = nl.load(x[grid.p, grid.x])",
    "indices and slices": INDICES + "tile = nl.load(x[i_p, 0:512])  # NK603 16",
    "counters and slices": "for i in nl.affine_range(4):\n    tile = nl.load(x[i * 128 : (i + 1) * 128, 0:4])",
    "half of an odd size": "tile = nl.load(x)\nhalf = x.shape[1] / 2\npart = tile[:, 0:half]  # NK603 16",
    "a tuple": INDICES + "tile = nl.load(x[i_p, i_f], mask=(i_p < 4, i_f < 4))  # NK604 34",
    "sizes": INDICES + "tile = nl.load(x[i_p, i_f], mask=(100, 64))  # NK604 34",
    "an index": INDICES + "tile = nl.load(x[i_p, i_f], mask=i_p)  # NK604 34",
    "a number": INDICES + "tile = nl.load(x[i_p, i_f], mask=5)  # NK604 34",
    "None and flags": INDICES + "tile = nl.load(x[i_p, i_f], mask=None)\nother = nl.load(x[i_p, i_f], mask=True)",
    "and": INDICES + "tile = nl.load(x[i_p, i_f], mask=i_p < 4 and i_f < 4)  # NK620 34",
    "and with a flag": INDICES + "tile = nl.load(x[i_p, i_f], mask=i_p < 4 and x.ndim == 2)  # NK604 34",
    "or": INDICES + "tile = nl.load(x[i_p, i_f], mask=i_p < 4 or i_f < 4)  # NK604 34",
    "not": INDICES + "tile = nl.load(x[i_p, i_f], mask=not i_p < 4)  # NK604 38",
    "|": INDICES + "tile = nl.load(x[i_p, i_f], mask=(i_p < 4) | (i_f < 4))  # NK604 34",
    "a chain": INDICES + "tile = nl.load(x[i_p, i_f], mask=2 < i_p < 4)  # NK604 34",
    "//": INDICES + "tile = nl.load(x[i_p, i_f], mask=i_p // 4 < 25)  # NK604 34",
    "// beside": INDICES + "tile = nl.load(x[i_p, i_f], mask=i_p < x.shape[0] // 4)",
    "%": INDICES + "tile = nl.load(x[i_p, i_f], mask=(i_p < 4) & (i_f % 2 < 1))  # NK604 47",
    "if": INDICES + "if i_p < 4:  # NK602 4\n    pass",
    "if of an index": INDICES + "if i_p:  # NK602 4\n    pass",
    "load of a mask": INDICES + "tile = nl.load((i_p < 4) & (i_f < 4))  # NK609 8",
}


@pytest.mark.parametrize("body", CASES.values(), ids=CASES)
def test_indices_and_masks(tmp_path: Path, body: str) -> None:
    """What is marked is found, and nothing else."""
    marked(tmp_path, body, LEGACY)
