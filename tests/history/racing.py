"""What tests of races share: runs in every order, and the line that a text stands in."""

from __future__ import annotations

from typing import Any

import numpy as np

import nkitools
from nkitools.facts import options

ORDERS = [None, *map(str, range(5))]
X = np.arange(64, dtype=np.float32).reshape(8, 8)


def found(kernel: Any, *arrays: Any, **keywords: Any) -> list[Any]:
    """The findings of a run on two cores, which are the same in every order."""
    each = []
    for seed in ORDERS:
        with options.override(schedule_seed=seed):
            run = nkitools.simulate(kernel, *arrays, grid=2, rules="report", **keywords)
        each.append([(one.rule, one.message, one.line, one.program) for one in run.findings])
    assert all(one == each[0] for one in each)
    return run.findings


def line_of(function: Any, text: str) -> int:
    """The line of a kernel that holds ``text``."""
    import inspect

    lines, start = inspect.getsourcelines(function)
    return start + next(number for number, line in enumerate(lines) if text in line)
