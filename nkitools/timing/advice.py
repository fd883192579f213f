"""Hints about speed with their prices: what the schedule would save if a line were mended (NK701 to NK708, NK710).

Each hint is a change of the work: shorter times, edges that go, another engine. The change is scheduled, and the
hint is given where the whole run gets shorter by a twentieth or more. The price is an estimate: a mended kernel may
meet another limit, or lose other waits with the change.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.history.speed import Kind, kinds_of
from nkitools.record.time_estimate import Advice
from nkitools.rules.catalogue import RULES
from nkitools.timing.critical_path import path_of
from nkitools.timing.durations import DMA, ENGINES, SYNC
from nkitools.timing.operations import Operations
from nkitools.timing.tables import load_ns, table_loads
from nkitools.timing.timeline import Timeline, pairs_of
from nkitools.timing.what_if import Change, covered_ns

if TYPE_CHECKING:
    from nkitools.record.dependences import CompressedRows

LEAST = 0.05  # of the latency that a hint must save
_MOST = 8  # changes that are scheduled, those with the largest bounds
_GOOD_PAYLOAD = 2048  # bytes of a descriptor from which on overhead is small (nki-dma-bandwidth-guide)
_APART = 0.1  # of the shorter one of loads and compute that may overlap where they count as apart
_FULL = 0.9  # of the schedule in which an engine is busy that counts as always busy

# What an engine may hand to another one, whose lanes take as many cycles. The GpSimd Engine takes nothing from the
# Vector Engine: these two share their port to SBUF.
_MOVES = {
    "vector": (("scalar", ("tensor_copy",)),),
    "scalar": (("vector", ("tensor_copy", "tensor_scalar")),),
    "gpsimd": (("vector", ("tensor_copy", "tensor_scalar", "tensor_tensor", "memset")), ("scalar", ("tensor_copy",))),
}


def advice(timeline: Timeline, flow: CompressedRows, chip: Generation, latency_us: float) -> tuple[Advice, ...]:
    """Return the hints that save enough, the largest price first. ``flow``: which results each instruction reads."""
    least = LEAST * latency_us * 1e3
    changes, base = list[Change](), 0
    for operations in timeline.operations:
        changes += _Changes(timeline, operations, base, flow, chip).all()
        base += operations.columns.record.count
    bounds = [change.bound_ns(timeline) for change in changes]
    tried = sorted((at for at in range(len(changes)) if bounds[at] >= least), key=lambda at: -bounds[at])[:_MOST]
    found = []
    for change in (changes[at] for at in tried):
        saved = change.saved_ns(timeline) / 1e3
        if saved >= LEAST * latency_us:
            found.append(
                Advice(
                    rule=change.rule,
                    file=change.file,
                    line=change.line,
                    message=change.message,
                    remedy=RULES[change.rule].remedy,
                    us=saved,
                    share=saved / latency_us,
                )
            )
    return tuple(sorted(found, key=lambda each: (-round(each.us, 6), each.file, each.line, each.rule)))


class _Changes:
    """The changes that hints propose for one record, whose first instruction has the position ``base`` in the run."""

    def __init__(
        self, timeline: Timeline, operations: Operations, base: int, flow: CompressedRows, chip: Generation
    ) -> None:
        self.timeline = timeline
        self.operations, self.columns = operations, operations.columns
        self.record = record = operations.columns.record
        self.base = base
        self.flow = flow
        self.chip = chip
        self.engines = timeline.kinds[base : base + record.count]

    def all(self) -> Iterator[Change]:
        """Yield them all."""
        yield from self.slow_kinds()
        yield from self.reloads()
        yield from self.no_overlap()
        yield from self.evacuations()
        yield from self.one_engine()
        yield from self.table_loads()

    def slow_kinds(self) -> Iterator[Change]:
        """NK701 to NK704: the definitions of the rules, without their thresholds."""
        found: dict[tuple[str, int], list[tuple[Array, float]]] = {}
        for kind in kinds_of(self.columns):
            for rule, factor in self._factors(kind):
                positions = np.flatnonzero(self.columns.heads == kind.head)
                found.setdefault((rule, kind.site), []).append((positions, factor))
        for (rule, site), parts in found.items():
            positions = np.concatenate([each for each, _ in parts])
            factors = np.concatenate([np.full(each.size, factor) for each, factor in parts])
            yield self._change(rule, site, positions, factors, _SLOW[rule].format(count=positions.size))

    def _factors(self, kind: Kind) -> Iterator[tuple[str, float]]:
        if kind.small_payload:
            yield "NK701", kind.small_payload / _GOOD_PAYLOAD
        if lanes := kind.few_partitions(self.chip):
            yield "NK702", lanes / self.chip.partitions
        if kind.float32_passes:
            yield "NK703", 1 / kind.float32_passes
        if share := kind.small_array(self.chip):
            yield "NK704", share

    def reloads(self) -> Iterator[Change]:
        """NK705: loads of elements that an earlier load has brought to SBUF."""
        again = self.operations.reloads(self.flow, self.base)
        for site, positions in self._by_site(again):
            loads = int((self.columns.sites[self.operations.loads] == site).sum())
            tensor = self.record.name_of(int(self.columns.storages[self.columns.first_operands[positions[0]] + 1]))
            message = (
                f"{positions.size:,} of this line's {loads:,} loads of `{tensor}` bring what an earlier one has brought"
            )
            yield self._change("NK705", site, positions, np.zeros(positions.size), message)

    def no_overlap(self) -> Iterator[Change]:
        """NK706: loads that wait for the instructions that read their tile, while nothing is computed."""
        loads = self.operations.loads
        compute = np.flatnonzero((self.engines != DMA) & (self.engines < SYNC))
        if not loads.size or not compute.size:
            return
        made = self.timeline.schedule
        of_loads, of_compute, both = (
            covered_ns(made.starts[self.base + each], made.ends[self.base + each])
            for each in (loads, compute, np.concatenate((loads, compute)))
        )
        if of_loads + of_compute - both > _APART * min(of_loads, of_compute):
            return
        work = self.timeline.work
        dropped = np.isin(work.targets, self.base + loads)
        dropped[: pairs_of(self.flow)[0].size] = False  # what is loaded must have been written
        sites, counts = np.unique(self.columns.sites[loads], return_counts=True)
        message = (
            f"loads take {of_loads / 1e3:.3g} us and computing takes {of_compute / 1e3:.3g} us, one after the other: "
            "each load waits for the instructions that read the tile before"
        )
        nothing = np.zeros(0, np.int64)
        yield self._change("NK706", int(sites[counts.argmax()]), nothing, nothing, message, dropped=dropped)

    def evacuations(self) -> Iterator[Change]:
        """NK707: copies from PSUM to SBUF, where some are on the critical path."""
        path = np.array(path_of(self.timeline.schedule)) - self.base
        for site, positions in self._by_site(self.operations.evacuations):
            on_path = int(np.isin(positions, path).sum())
            if on_path:
                message = f"{on_path:,} of this line's {positions.size:,} copies from PSUM are on the critical path"
                yield self._change("NK707", site, positions, np.zeros(positions.size), message)

    def one_engine(self) -> Iterator[Change]:
        """NK708: an engine that is always busy, with work that another one could do."""
        span = self.timeline.span_ns
        occupied = self.timeline.work.occupied[self.base : self.base + self.record.count]
        core = self.timeline.core_numbers[self.base : self.base + self.record.count]
        for number in np.unique(core).tolist():
            mine = core == number
            busy = np.bincount(self.engines[mine], occupied[mine], minlength=len(ENGINES))
            for name, moves in _MOVES.items():
                engine = ENGINES.index(name)
                if busy[engine] < _FULL * span:
                    continue
                for other, names in moves:
                    movable = self._fixed(names)
                    movable = movable[mine[movable] & (self.engines[movable] == engine)]
                    yield from self._move(movable, engine, ENGINES.index(other), busy, occupied, number)

    def _fixed(self, names: tuple[str, ...]) -> Array:
        """Return the positions of the instructions of some names whose engine the author has chosen."""
        found = self.operations.named(*names)
        plans = self.record.plans
        free = {number for number in np.unique(self.columns.plans[found]).tolist() if plans[number].plan.elsewhere}
        return found[~np.isin(self.columns.plans[found], list(free))]

    def _move(
        self, movable: Array, engine: int, other: int, busy: Array, occupied: Array, core: int
    ) -> Iterator[Change]:
        """Yield the change that moves so many instructions that both engines are busy as long."""
        sites, counts = np.unique(self.columns.sites[movable], return_counts=True)
        if not sites.size or busy[other] >= busy[engine]:
            return
        clocks = self.chip.clocks
        factor = getattr(clocks, ENGINES[engine]) / getattr(clocks, ENGINES[other])
        share = min(1.0, (busy[engine] - busy[other]) / (1 + factor) / occupied[movable].sum())
        turns = np.floor(np.arange(movable.size + 1) * share)
        moved = movable[np.diff(turns) > 0]
        message = (
            f"the {_SHOWN[engine]} Engine is busy all the time, the {_SHOWN[other]} Engine "
            f"{busy[other] / busy[engine]:.0%} as long; it could take {moved.size:,} of {movable.size:,} instructions"
        )
        yield self._change(
            "NK708",
            int(sites[counts.argmax()]),
            moved,
            np.full(moved.size, factor),
            message,
            engines=np.full(moved.size, other + core * len(ENGINES)),
        )

    def table_loads(self) -> Iterator[Change]:
        """NK710: activations that load another table of functions each time."""
        loading, cores = load_ns(self.chip), self.timeline.core_numbers[self.base : self.base + self.record.count]
        if not loading:
            return
        durations = self.timeline.work.durations[self.base : self.base + self.record.count]
        for site, positions in self._by_site(table_loads(self.columns, self.engines, cores)):
            message = (
                f"{positions.size:,} activations of this line load another table of functions, {loading / 1e3:.3g} us "
                "each: the Scalar Engine has called another function in between"
            )
            yield self._change("NK710", site, positions, 1 - loading / durations[positions], message)

    def _by_site(self, positions: Array) -> Iterator[tuple[int, Array]]:
        sites = self.columns.sites[positions]
        for site in np.unique(sites).tolist():
            yield site, positions[sites == site]

    def _change(
        self,
        rule: str,
        site: int,
        positions: Array,
        factors: Array,
        message: str,
        *,
        engines: Array | None = None,
        dropped: Array | None = None,
    ) -> Change:
        place = self.record.sites[site]
        return Change(
            rule=rule,
            file=place.file,
            line=place.line,
            message=message,
            positions=positions + self.base,
            factors=factors,
            engines=engines,
            dropped=dropped,
        )


_SHOWN = ("Tensor", "Vector", "Scalar", "GpSimd")
_SLOW = {
    "NK701": "{count:,} DMAs of this line move less than 256 bytes in a row",
    "NK702": "{count:,} instructions of this line use half of the lanes or fewer",
    "NK703": "{count:,} matmuls of this line multiply float32 in several passes",
    "NK704": "{count:,} matmuls of this line use half of the Tensor Engine's elements or fewer",
}
