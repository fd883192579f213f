"""The time of each instruction: its cycles by its definition, its engine's clock, and the fitted knobs.

An instruction's definition states its engine and cycles, or nanoseconds for a transfer. Where the author leaves the
engine to the compiler, `balance` assumes one of those that its definition names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from nkitools.chip.layout import Layout
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.record.columns import Columns
from nkitools.record.instruction_record import RecordedPlan
from nkitools.timing.knobs import Knobs

ENGINES = ("tensor", "vector", "scalar", "gpsimd", "sync", "dma", "left out")
TENSOR, VECTOR, SCALAR, GPSIMD, SYNC, DMA, LEFT_OUT = range(len(ENGINES))
DMA_COMPLETION_NS = 1300.0  # the share of completion in the documented nanoseconds of a DMA (NKI DMA overview)
DMA_ENGINES = 16  # of a core (nki-dma-overview)
_PARTITIONS_PER_DMA_ENGINE = 8  # "a 4-partition load keeps 15 engines idle" (nki-dma-overview)


@dataclass(frozen=True, kw_only=True)
class Time:
    """The times of the instructions of one plan, in nanoseconds."""

    engine: int  # that of the definition, by its number in `ENGINES`
    occupied: float  # of the engine
    duration: float  # from start to end
    other: int = -1  # another engine that may do it, -1 for none
    other_occupied: float = 0.0  # of that engine


def times(columns: Columns, chip: Generation, knobs: Knobs) -> tuple[Array, list[Time]]:
    """Return for each instruction the place of its time in a list, which is returned too."""
    plans, firsts, which = np.unique(columns.plans, return_index=True, return_inverse=True)
    record, which = columns.record, which.reshape(-1)
    found, spreads = list[Time](), list[int]()
    for place, (plan, first) in enumerate(zip(plans.tolist(), firsts.tolist(), strict=True)):
        accesses = record.accesses(first)
        layouts = [access.layout for access in accesses]
        known = record.plans[plan].plan
        if known.name == "dma_copy" and accesses[0].storage == accesses[1].storage and layouts[0].on_chip:
            spreads.append(place)
            found.append(_spread(layouts[0], chip, knobs))
        else:
            found.append(time_of(known, layouts, chip, knobs))
    if spreads:
        _read_from_psum(columns, plans, which, found, spreads, chip, knobs)
    return which, found


def _spread(layout: Layout, chip: Generation, knobs: Knobs) -> Time:
    """Return the time of a copy within one tile, which doubles the partitions that hold a row (nl.broadcast_to).

    The compiler is assumed to multiply the row with ones on the Tensor Engine: the copies of one tile together take the
    time of that matmul.
    """
    passes = 4 if layout.dtype.itemsize == 4 else 1
    cycles = passes * (layout.free_elements + knobs.matmul_gap_cycles)
    occupied = cycles / chip.clocks.tensor * layout.partitions / (chip.partitions - 1)
    return Time(engine=TENSOR, occupied=occupied, duration=occupied)


def _read_from_psum(
    columns: Columns, plans: Array, which: Array, found: list[Time], spreads: list[int], chip: Generation, knobs: Knobs
) -> None:
    """Give tensor_tensor the time that it has with one operand in PSUM, where a row that was spread is left there."""
    record, instructions = columns.record, which[columns.positions]
    tiles = [
        storage
        for storage in np.unique(columns.storages[np.isin(instructions, spreads)]).tolist()
        if record.storages[storage].partition_bytes <= chip.psum_bank_bytes
    ]
    reads = np.unique(columns.positions[np.isin(columns.storages, tiles)])
    for place in np.unique(which[reads]).tolist():
        plan = record.plans[int(plans[place])].plan
        if plan.name == "tensor_tensor" and plan.engine == "vector":
            mine = reads[which[reads] == place]
            found.append(
                time_of(RecordedPlan(plan.engine, max(64.0, plan.cycles / 2), name=plan.name), [], chip, knobs)
            )
            which[mine] = len(found) - 1


def time_of(plan: RecordedPlan, layouts: Sequence[Layout], chip: Generation, knobs: Knobs) -> Time:
    """Return the time of an instruction by its plan and the layouts of its operands."""
    engine = ENGINES.index(plan.engine) if plan.engine in ENGINES else SYNC
    if engine == DMA:
        return _transfer(plan, layouts, chip, knobs)
    if plan.name == "memset" and layouts[0].memory is MemoryRegion.psum:
        return Time(engine=LEFT_OUT, occupied=0.0, duration=0.0)
    gap = knobs.matmul_gap_cycles * plan.passes if engine == TENSOR else knobs.instruction_gap_cycles
    occupied = (plan.cycles + gap) / _clock(chip, engine)
    if not plan.elsewhere:
        return Time(engine=engine, occupied=occupied, duration=occupied)
    name, cycles = plan.elsewhere[0]
    other = ENGINES.index(name)
    other_occupied = (cycles + knobs.instruction_gap_cycles) / _clock(chip, other)
    return Time(engine=engine, occupied=occupied, duration=occupied, other=other, other_occupied=other_occupied)


def _clock(chip: Generation, engine: int) -> float:
    """Return the cycles of a nanosecond; registers and semaphores count by the clock of the GpSimd Engine."""
    return float(getattr(chip.clocks, ENGINES[engine], chip.clocks.gpsimd))


def _transfer(plan: RecordedPlan, layouts: Sequence[Layout], chip: Generation, knobs: Knobs) -> Time:
    data = max(plan.nanoseconds - DMA_COMPLETION_NS, 0.0) / knobs.dma_bandwidth
    engines, descriptors = DMA_ENGINES, 1
    if layouts:
        on_chip = [each for each in layouts if each.on_chip]
        rows = min((each.partitions for each in on_chip), default=chip.partitions)
        engines = min(DMA_ENGINES, ceil(rows / _PARTITIONS_PER_DMA_ENGINE))
        run = min(each.run // each.dtype.itemsize for each in layouts[:2])
        descriptors = max(1, layouts[0].elements // max(run, 1))
    of_descriptors = descriptors * knobs.descriptor_ns / engines
    occupied = max(data, descriptors * knobs.descriptor_ns / DMA_ENGINES + knobs.dma_issue_ns)
    own = max(data * DMA_ENGINES / engines, of_descriptors)
    return Time(engine=DMA, occupied=occupied, duration=max(own, occupied) + knobs.dma_latency_ns)


def balance(which: Array, found: Sequence[Time], engines: Array, mine: Array) -> None:
    """Change the engines of one core's instructions: the Vector and the Scalar Engine share what either may do.

    ``mine``: the positions of the core's instructions. Each that either may do goes to the engine that has less to do
    up to there, with its own time.
    """
    other = np.array([each.other for each in found])[which[mine]]
    choices = np.flatnonzero(other >= 0)
    if not choices.size:
        return
    fixed = np.where(other < 0, np.array([each.occupied for each in found])[which[mine]], 0.0)
    done = {engine: np.cumsum(np.where(engines[mine] == engine, fixed, 0.0)) for engine in (VECTOR, SCALAR)}
    extra = [0.0] * len(ENGINES)
    for place in choices.tolist():
        position = mine[place]
        time = found[which[position]]
        here = float(done[time.engine][place]) + extra[time.engine] + time.occupied
        there = float(done[time.other][place]) + extra[time.other] + time.other_occupied
        if there < here:
            engines[position] = time.other
            extra[time.other] += time.other_occupied
        else:
            extra[time.engine] += time.occupied
