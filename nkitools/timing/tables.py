"""The Scalar Engine's tables of functions: it loads one where an activation calls another function than the last one.

Profiles of NeuronCore-v3 have a load of 1,283 ns at each change (``facts/laws.tsv``). Which functions share a table is
not published: each is taken to have its own, and those that no table is needed for to be in all of them.
"""

from __future__ import annotations

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.facts.laws import profiled
from nkitools.record.columns import Columns
from nkitools.timing.durations import SCALAR

_IN_ALL = frozenset({"", "copy", "square", "relu", "sign", "abs"})


def load_ns(chip: Generation) -> float:
    """Return how long the load of a table takes, 0 where no profile shows it."""
    law = profiled(chip.short_name, "Scalar", "ACT_TABLE_LOAD", "")
    return 0.0 if law is None else law.fixed_ns


def table_loads(columns: Columns, engines: Array, cores: Array) -> Array:
    """Return the positions of the activations that another table is loaded for than the one before on their core.

    The first table of a core is there before its first operand is.
    """
    functions = {each.plan.function for each in columns.record.plans.values()}
    numbers = {name: number for number, name in enumerate(sorted(functions - _IN_ALL))}
    if len(numbers) < 2:
        return np.zeros(0, np.int64)
    tables = columns.of_each_plan(lambda plan: numbers.get(plan.function, -1), np.int64)
    found = np.flatnonzero((tables >= 0) & (engines == SCALAR))
    found = found[np.argsort(cores[found], kind="stable")]
    changes = (np.diff(tables[found]) != 0) & (np.diff(cores[found]) == 0)
    return np.sort(found[1:][changes])
