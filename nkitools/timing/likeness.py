"""The respects in which a run may be unlike the published kernels that the model is fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.columns import Columns
from nkitools.timing.timeline import Timeline


@dataclass(frozen=True, kw_only=True)
class Likeness:
    """The values of a run in the respects in which the published kernels have a range."""

    dtypes: frozenset[str]  # of all operands
    cores: int  # of all ranks together
    latency_us: float  # the estimate
    overlap: float  # how many instructions are under way at once, on average
    tile_elements: float  # of the largest operand of an instruction, on average


def likeness(timeline: Timeline, latency_us: float) -> Likeness:
    """Return the values of a run, by its timeline."""
    names = {layout.dtype.name for each in timeline.columns for layout in each.known_layouts}
    largest = np.concatenate([_largest_operands(each) for each in timeline.columns])
    span = timeline.span_ns
    return Likeness(
        dtypes=frozenset(names),
        cores=timeline.cores,
        latency_us=latency_us,
        overlap=float(timeline.work.durations.sum()) / span if span else 1.0,
        tile_elements=float(largest.mean()) if largest.size else 0.0,
    )


def family_of(columns: Sequence[Columns], *, is_legacy: bool, spills: bool) -> str:
    """Return what kind of kernel it is: its dialect, what its instructions are, and whether tensors spill."""
    plans = [each.plan for one in columns for each in one.record.plans.values()]
    has_matmul = any(each.name == "nc_matmul" for each in plans)
    has_function = any(each.function not in ("", "copy") for each in plans)
    words = ["matmul"] * has_matmul + ["activation"] * has_function or ["neither matmul nor activation"]
    return f"{'legacy' if is_legacy else 'modern'}, {' and '.join(words)}" + ", spilled" * spills


def _largest_operands(columns: Columns) -> Array:
    """Return the elements of the largest operand of each instruction that has operands."""
    elements = columns.of_layouts(lambda layout: layout.elements)
    firsts = columns.first_operands[:-1]
    has_some = np.diff(columns.first_operands) > 0
    return np.asarray(np.maximum.reduceat(elements, firsts[has_some])) if has_some.any() else elements[:0]
