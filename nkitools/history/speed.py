"""Hints about speed (NK7): lines that spend much of a run in a way that the documents advise against.

The documents define what is inefficient, and not from when on. Here a line counts with at least 256 such instructions
(for DMA also 32,768 such descriptors), if these are at least a quarter of all that the run spends of that kind: of its
DMAs or their descriptors, of the cycles of an engine that is at least half as busy as the busiest. All programs and
iterations count together, and a line has one hint.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nkitools.chip.generations import Generation
from nkitools.chip.layout import Layout
from nkitools.record.columns import Columns
from nkitools.record.reporter import Reporter
from nkitools.record.rows import plan_of, site_of
from nkitools.rules.finding import report

_MANY = 256  # instructions
_MANY_DESCRIPTORS = 256 * 128
_SHARE = 0.25
_BUSY = 0.5  # of the busiest engine's time

# "Severely overhead-bound" below 256 bytes of each partition (nki-dma-bandwidth-guide, Bandwidth vs. Payload Size).
_SMALL_PAYLOAD = 256
_COPIES = ("dma_copy", "dma_compute")
_LANES = {"vector": "Vector", "scalar": "Scalar", "gpsimd": "GpSimd"}
_FLOAT32_PASSES = 4  # "roughly 4x" (trainium_inferentia2_arch, Tensor Engine, Cost Model)


@dataclass(frozen=True)
class _Kind:
    """Instructions of one plan at one site: how many, and the layouts of their operands."""

    plan: Any
    site: int
    count: int
    layouts: tuple[Layout, ...]

    @property
    def cycles(self) -> float:
        """Return the cycles of all these instructions together."""
        return self.count * float(self.plan.cycles)


@dataclass
class _Line:
    """The inefficient instructions of a line: how many, how much, and their measures."""

    count: int = 0
    amount: float = 0.0
    least: int = 1 << 62
    most: int = 0

    def add(self, kind: _Kind, amount: float, measure: int) -> None:
        """Count those of one kind."""
        self.count += kind.count
        self.amount += amount
        self.least, self.most = min(self.least, measure), max(self.most, measure)

    @property
    def measures(self) -> str:
        """The measure, or the least and the most of it."""
        return f"{self.most:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"


_Lines = defaultdict[int, _Line]
"""The lines that have inefficient instructions of a sort, by their sites."""


def report_speed(columns: Columns, reporter: Reporter, chip: Generation) -> None:
    """NK701 to NK704."""
    speed = _Speed(columns, reporter, chip)
    speed.small_dma()
    speed.few_partitions()
    speed.matmuls()


class _Speed:
    """A run, by kinds of instructions."""

    def __init__(self, columns: Columns, reporter: Reporter, chip: Generation) -> None:
        self.reporter = reporter
        self.chip = chip
        self.record = columns.record
        self.kinds = list(_kinds(columns))

    @cached_property
    def cycles(self) -> dict[str, float]:
        """Return the cycles of each compute engine."""
        cycles: dict[str, float] = dict.fromkeys(("tensor", *_LANES), 0.0)
        for kind in self.kinds:
            if kind.plan.engine in cycles:
                cycles[kind.plan.engine] += kind.cycles
        return cycles

    def costly(self, engine: str, lines: _Lines) -> Iterator[tuple[int, _Line, str]]:
        """Yield the lines that take a large share of the cycles of an engine that is busy, with their shares."""
        times = {name: cycles / getattr(self.chip.clocks, name) for name, cycles in self.cycles.items()}
        if times[engine] < _BUSY * max(times.values()):
            return
        for site, line in lines.items():
            if line.count >= _MANY and line.amount >= _SHARE * self.cycles[engine]:
                yield site, line, f"{line.amount / self.cycles[engine]:.0%}"

    def small_dma(self) -> None:
        """NK701."""
        lines, descriptors, dmas = _Lines(_Line), 0, 0
        for kind in self.kinds:
            if kind.plan.name not in _COPIES:
                continue
            run = min(layout.run // layout.dtype.itemsize for layout in kind.layouts)
            payload = run * max(layout.dtype.itemsize for layout in kind.layouts)
            count = kind.count * (kind.layouts[0].elements // run)
            descriptors, dmas = descriptors + count, dmas + kind.count
            if payload < _SMALL_PAYLOAD:
                lines[kind.site].add(kind, count, payload)
        for site, line in lines.items():
            many = line.count >= _MANY and line.count >= _SHARE * dmas
            if many or (line.amount >= _MANY_DESCRIPTORS and line.amount >= _SHARE * descriptors):
                self._say(
                    "NK701",
                    site,
                    f"{line.count:,} of the run's {dmas:,} DMAs and {int(line.amount):,} of their {descriptors:,} "
                    f"descriptors are this line's, of {line.measures} bytes each; below {_SMALL_PAYLOAD} bytes in a "
                    "row overhead takes most of the time",
                )

    def few_partitions(self) -> None:
        """NK702."""
        half = self.chip.partitions // 2
        for engine, name in _LANES.items():
            lines = _Lines(_Line)
            for kind in self.kinds:
                # A transposition of 32 x 32 has no more.
                if kind.plan.engine == engine and kind.plan.name != "nc_transpose":
                    partitions = max((each.partitions for each in kind.layouts if each.on_chip), default=half + 1)
                    if partitions <= half:
                        lines[kind.site].add(kind, kind.cycles, partitions)
            for site, line, share in self.costly(engine, lines):
                self._say(
                    "NK702",
                    site,
                    f"{line.count:,} instructions of this line use {line.measures} of the {self.chip.partitions} lanes "
                    f"of the {name} Engine and take {share} of its cycles; on all partitions each would take no longer",
                )

    def matmuls(self) -> None:
        """NK703, NK704."""
        passes, idle = _Lines(_Line), _Lines(_Line)
        array = self.chip.partitions * self.chip.stationary_fmax
        for kind in self.kinds:
            if kind.plan.name != "nc_matmul":
                continue
            dst, stationary, _ = kind.layouts
            if kind.plan.passes >= _FLOAT32_PASSES:
                passes[kind.site].add(kind, kind.cycles, kind.plan.passes)
            used = stationary.partitions * dst.partitions
            if 2 * used <= array and not kind.plan.tiled:
                idle[kind.site].add(kind, kind.cycles, round(100 * used / array))
        for site, line, share in self.costly("tensor", passes):
            self._say(
                "NK703",
                site,
                f"{line.count:,} matmuls of this line multiply float32, in {line.measures} passes each, and take "
                f"{share} of the Tensor Engine's cycles",
            )
        for site, line, share in self.costly("tensor", idle):
            self._say(
                "NK704",
                site,
                f"{line.count:,} matmuls of this line use {line.measures}% of the Tensor Engine's "
                f"{self.chip.partitions} x {self.chip.stationary_fmax} processing elements and take {share} of its "
                "cycles",
            )

    def _say(self, rule: str, site: int, message: str) -> None:
        with self.reporter.placed(self.record.sites[site]):
            report(rule, message)


def _kinds(columns: Columns) -> Iterator[_Kind]:
    heads, firsts, counts = np.unique(columns.heads, return_index=True, return_counts=True)
    for head, first, count in zip(heads.tolist(), firsts.tolist(), counts.tolist(), strict=True):
        plan = columns.record.plans[plan_of(head)].plan
        if not plan.names_only:
            layouts = tuple(access.layout for access in columns.record.accesses(first))  # those of all of the plan
            yield _Kind(plan, site_of(head), count, layouts)
