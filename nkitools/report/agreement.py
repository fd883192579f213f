"""Compares the results of two targets on one kernel: their first difference, and what explains it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nkitools.record.saved.encoding import leaves
from nkitools.report.run_diff import Comparison, compare_runs

if TYPE_CHECKING:
    from nkitools.record.run import Run

# What may leave elements of a result to chance.
_UNDEFINED = ("NK401", "NK403", "NK405")


@dataclass(frozen=True)
class Agreement:
    """The comparison of two runs of a kernel, and explanations if they differ."""

    comparison: Comparison
    explanations: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Return whether the results are equal within the tolerance of their dtypes."""
        return not self.comparison.outputs and self.comparison.ended is None

    def lines(self) -> list[str]:
        """Return the comparison as text: each output that diverges, then the explanations."""
        ended = [] if self.comparison.ended is None else [f"the first {self.comparison.ended[0]}"]
        ended += [] if self.comparison.ended is None else [f"the second {self.comparison.ended[1]}"]
        return [
            *ended,
            *(line for output in self.comparison.outputs for line in output.lines()),
            *(f"  {text}" for text in self.explanations),
        ]

    def as_plain(self) -> dict[str, Any]:
        """For JSON: ``agree``, the comparison's keys, and ``explanations``."""
        return {"agree": self.is_same, **self.comparison.as_plain(), "explanations": list(self.explanations)}


def agreement(
    first: Run, second: Run, full: Run | None = None, *, rtol: float | None = None, atol: float | None = None
) -> Agreement:
    """Compare the outputs of two runs of one kernel with one set of arguments.

    ``full`` is the kernel simulated in full precision, ``rtol`` and ``atol`` as `compare_runs` has them.
    """
    comparison = compare_runs(first, second, rtol=rtol, atol=atol)
    if not comparison.outputs:
        return Agreement(comparison)
    told = [*_undefined(first, second), *_low_precision(comparison, first, second, full), *_broken_rules(first, second)]
    return Agreement(comparison, tuple(told) or ("nothing that nkitools knows explains it",))


def _undefined(*runs: Run) -> list[str]:
    found = {each.rule: each for run in runs for each in run.findings if each.rule in _UNDEFINED}
    return [f"undefined input explains it: {each.text()}" for each in found.values()]


def _broken_rules(*runs: Run) -> list[str]:
    found = {
        each.rule: each
        for run in runs
        for each in run.findings
        if each.severity in ("error", "warning") and each.rule not in _UNDEFINED
    }
    return [f"a broken rule may explain it: {each.text()}" for each in found.values()]


def _low_precision(comparison: Comparison, first: Run, second: Run, full: Run | None) -> list[str]:
    """Return whether rounding moves the simulated results by half as much as the two are apart, or more."""
    simulated = next((run for run in (first, second) if run.all_records), None)
    if full is None or full.outputs is None or simulated is None:
        return []
    parts: list[Mapping[str, Any]] = [dict(leaves(run.outputs)) for run in (first, second, simulated, full)]
    most = 0.0
    for output in comparison.outputs:
        if output.values is None or any(output.what not in part for part in parts):
            return []
        one, other, narrow, wide = (np.asarray(part[output.what], np.float64) for part in parts)
        with np.errstate(all="ignore"):
            apart = float(np.max(np.abs(one - other)))
            rounding = float(np.max(np.abs(narrow - wide)))
        if not apart <= 2 * rounding:
            return []
        most = max(most, rounding)
    return [
        "low precision explains it: with float32 in the place of narrower dtypes the simulated result moves by up to "
        f"{most:.3g}"
    ]
