"""Hints about speed (NK7): lines that spend much of a run in a way that the documents advise against.

The documents define what is inefficient, but no threshold. Here a line counts with at least 256 such instructions
(for DMA also 32,768 such descriptors), if these are at least a quarter of the run's total of that kind: of its
DMAs or their descriptors, or of the cycles of an engine that is at least half as busy as the busiest. All programs and
iterations count together, and a line has one hint.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from nkitools.chip.layout import Layout
from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.facts.light_classes import dataclass
from nkitools.record.columns import FEW, Columns
from nkitools.record.instruction_record import RecordedPlan
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
_LANE_ENGINES = {"vector": "Vector", "scalar": "Scalar", "gpsimd": "GpSimd"}
_FLOAT32_PASSES = 4  # "roughly 4x" (trainium_inferentia2_arch, Tensor Engine, Cost Model)


@dataclass(frozen=True)
class Kind:
    """Instructions of one plan at one site: how many, and the layouts of their operands."""

    head: int  # the first word of their rows, which no other kind has
    plan: RecordedPlan
    site: int
    count: int
    layouts: tuple[Layout, ...]

    @property
    def cycles(self) -> float:
        """Return the cycles of all these instructions together."""
        return self.count * float(self.plan.cycles)

    @property
    def run(self) -> int:
        """Return the number of consecutive elements that one descriptor of these DMAs moves."""
        return min(layout.run // layout.dtype.itemsize for layout in self.layouts)

    @property
    def small_payload(self) -> int:
        """Return the bytes that one descriptor of these DMAs moves if they are too few (NK701), else 0."""
        if self.plan.name not in _COPIES:
            return 0
        payload = self.run * max(layout.dtype.itemsize for layout in self.layouts)
        return payload if payload < _SMALL_PAYLOAD else 0

    def few_partitions(self, chip: Generation) -> int:
        """Return the partitions that these instructions use if they are too few (NK702), else 0."""
        half = chip.partitions // 2
        # A transposition of 32 x 32 elements cannot use more.
        if self.plan.engine not in _LANE_ENGINES or self.plan.name == "nc_transpose":
            return 0
        partitions = max((each.partitions for each in self.layouts if each.on_chip), default=half + 1)
        return partitions if partitions <= half else 0

    @property
    def float32_passes(self) -> int:
        """Return the passes of these matmuls if they multiply float32 (NK703), else 0."""
        return self.plan.passes if self.plan.name == "nc_matmul" and self.plan.passes >= _FLOAT32_PASSES else 0

    def small_array(self, chip: Generation) -> float:
        """Return the used share of the Tensor Engine's elements if it is at most a half (NK704), else 0."""
        if self.plan.name != "nc_matmul" or self.plan.tiled:
            return 0.0
        dst, stationary, _ = self.layouts
        share = stationary.partitions * dst.partitions / (chip.partitions * chip.stationary_fmax)
        return share if 2 * share <= 1 else 0.0


@dataclass
class _Line:
    """The inefficient instructions of a line: their number, their cycles or descriptors, and the range of a measure."""

    count: int = 0
    amount: float = 0.0
    least: int = 1 << 62
    most: int = 0

    def add(self, kind: Kind, amount: float, measure: int) -> None:
        """Add the instructions of one kind."""
        self.count += kind.count
        self.amount += amount
        self.least, self.most = min(self.least, measure), max(self.most, measure)

    @property
    def measures(self) -> str:
        """Return the measure as text, or its least and greatest value."""
        return f"{self.most:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"


_Lines = defaultdict[int, _Line]
"""The lines that have inefficient instructions of one sort, by their sites."""


def report_speed(columns: Columns, reporter: Reporter, chip: Generation) -> None:
    """Report NK701 to NK704."""
    speed = _Speed(columns, reporter, chip)
    speed.small_dma()
    if columns.heads.size >= _MANY:
        speed.few_partitions()
        speed.matmuls()


class _Speed:
    """A run by kinds of instructions, with the checks of the rules."""

    def __init__(self, columns: Columns, reporter: Reporter, chip: Generation) -> None:
        self.reporter = reporter
        self.chip = chip
        self.record = columns.record
        self.kinds = list(kinds_of(columns))

    @cached_property
    def cycles(self) -> dict[str, float]:
        """Return the cycles of each compute engine."""
        cycles: dict[str, float] = dict.fromkeys(("tensor", *_LANE_ENGINES), 0.0)
        for kind in self.kinds:
            if kind.plan.engine in cycles:
                cycles[kind.plan.engine] += kind.cycles
        return cycles

    def costly(self, engine: str, lines: _Lines) -> Iterator[tuple[int, _Line, str]]:
        """Yield the lines that take a large share of a busy engine's cycles, with the share in words."""
        times = {name: cycles / getattr(self.chip.clocks, name) for name, cycles in self.cycles.items()}
        if times[engine] < _BUSY * max(times.values()):
            return
        for site, line in lines.items():
            if line.count >= _MANY and line.amount >= _SHARE * self.cycles[engine]:
                yield site, line, f"{line.amount / self.cycles[engine]:.0%}"

    def small_dma(self) -> None:
        """Report NK701."""
        lines, descriptors, dmas = _Lines(_Line), 0, 0
        for kind in self.kinds:
            if kind.plan.name not in _COPIES:
                continue
            count = kind.count * (kind.layouts[0].elements // kind.run)
            descriptors, dmas = descriptors + count, dmas + kind.count
            if kind.small_payload:
                lines[kind.site].add(kind, count, kind.small_payload)
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
        """Report NK702."""
        for engine, name in _LANE_ENGINES.items():
            lines = _Lines(_Line)
            for kind in self.kinds:
                if kind.plan.engine == engine and (partitions := kind.few_partitions(self.chip)):
                    lines[kind.site].add(kind, kind.cycles, partitions)
            for site, line, share in self.costly(engine, lines):
                self._say(
                    "NK702",
                    site,
                    f"{line.count:,} instructions of this line use {line.measures} of the {self.chip.partitions} lanes "
                    f"of the {name} Engine and take {share} of its cycles; on all partitions each would take no longer",
                )

    def matmuls(self) -> None:
        """Report NK703 and NK704."""
        passes, idle = _Lines(_Line), _Lines(_Line)
        for kind in self.kinds:
            if kind.float32_passes:
                passes[kind.site].add(kind, kind.cycles, kind.float32_passes)
            if used := kind.small_array(self.chip):
                idle[kind.site].add(kind, kind.cycles, round(100 * used))
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


def _firsts_and_counts(heads: Array) -> dict[int, tuple[int, int]]:
    """Return for each number of ``heads`` its first index and its count."""
    if heads.size > FEW:
        found = np.unique(heads, return_index=True, return_counts=True)
        return {head: (first, count) for head, first, count in zip(*(each.tolist() for each in found), strict=True)}
    listed = heads.tolist()
    firsts = {head: at for at, head in reversed(list(enumerate(listed)))}
    return {head: (firsts[head], count) for head, count in Counter(listed).items()}


def kinds_of(columns: Columns) -> Iterator[Kind]:
    """Yield the instructions of a run, grouped by plan and site."""
    for head, (first, count) in sorted(_firsts_and_counts(columns.heads).items()):
        plan = columns.record.plans[plan_of(head)].plan
        if not plan.names_only:
            layouts = tuple(access.layout for access in columns.record.accesses(first))  # the same for all of the plan
            yield Kind(head, plan, site_of(head), count, layouts)
