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
from nkitools.facts.laws import law_of, operand, profiled
from nkitools.record.columns import Columns
from nkitools.record.instruction_record import RecordedPlan
from nkitools.timing.knobs import Knobs
from nkitools.timing.schedule import Clock

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
    other_duration: float = 0.0  # from start to end there
    rows: float = 0.0  # of the Tensor Engine: the share of its rows that are used
    shared: float = 0.0  # of the DMA engines, which all queues share


def times(columns: Columns, chip: Generation, knobs: Knobs, *, reorders: bool) -> tuple[Array, list[Time]]:
    """Return for each instruction the place of its time in a list, which is returned too."""
    record, which = columns.record, columns.which.copy()
    found, spreads = list[Time](), list[int]()
    plans = columns.first_of_plans()
    for place, (known, first) in enumerate(plans):
        accesses = record.accesses(first) if first >= 0 else []
        layouts = [access.layout for access in accesses]
        if first < 0:
            found.append(Time(engine=LEFT_OUT, occupied=0.0, duration=0.0))
        elif known.name == "dma_copy" and accesses[0].storage == accesses[1].storage and layouts[0].on_chip:
            spreads.append(place)
            found.append(_spread(layouts[0], chip, knobs))
        else:
            found.append(time_of(known, layouts, chip, knobs, reorders=reorders))
    if spreads:
        _read_from_psum(columns, [plan for plan, _ in plans], which, found, spreads, chip, knobs)
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
    columns: Columns,
    plans: Sequence[RecordedPlan],
    which: Array,
    found: list[Time],
    spreads: list[int],
    chip: Generation,
    knobs: Knobs,
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
        plan = plans[place]
        if plan.name == "tensor_tensor" and plan.engine == "vector":
            mine = reads[which[reads] == place]
            found.append(
                time_of(RecordedPlan(plan.engine, max(64.0, plan.cycles / 2), name=plan.name), [], chip, knobs)
            )
            which[mine] = len(found) - 1


def time_of(
    plan: RecordedPlan, layouts: Sequence[Layout], chip: Generation, knobs: Knobs, *, reorders: bool = False
) -> Time:
    """Return the time of an instruction by its plan and the layouts of its operands."""
    engine = ENGINES.index(plan.engine) if plan.engine in ENGINES else SYNC
    if engine == DMA:
        return _transfer(plan, layouts, chip, knobs, reorders=reorders)
    if plan.name == "memset" and layouts[0].memory is MemoryRegion.psum:
        return Time(engine=LEFT_OUT, occupied=0.0, duration=0.0)
    occupied, duration = _by_law(plan, plan.engine, plan.cycles, layouts, chip, knobs)
    if not plan.elsewhere:
        rows = layouts[-1].partitions / chip.partitions if engine == TENSOR and layouts else 0.0
        return Time(engine=engine, occupied=occupied, duration=duration, rows=rows)
    name, cycles = plan.elsewhere[0]
    other_occupied, other_duration = _by_law(plan, name, cycles, layouts, chip, knobs)
    return Time(
        engine=engine,
        occupied=occupied,
        duration=duration,
        other=ENGINES.index(name),
        other_occupied=other_occupied,
        other_duration=other_duration,
    )


def _by_law(
    plan: RecordedPlan, name: str, cycles: float, layouts: Sequence[Layout], chip: Generation, knobs: Knobs
) -> tuple[float, float]:
    """Return how long an engine is occupied, and how long the instruction takes: by a profile's law, or the documents.

    The law of matmuls is that of four passes of float32, or of one of half widths.
    """
    engine = ENGINES.index(name) if name in ENGINES else SYNC
    documented = cycles / _clock(chip, engine)
    if layouts and plan.passes in (1, 4):
        on_chip = [each for each in layouts if each.on_chip]
        src, dst = (operand(each.dtype.itemsize, each.memory.name.upper()) for each in (layouts[:2][-1], layouts[0]))
        if any(each.memory is MemoryRegion.psum for each in on_chip[1:]):
            src = src.replace("SBUF", "PSUM")
        function = f"{plan.function} operand_ptr" if len(layouts) > 2 else plan.function
        law = law_of(chip.short_name, name, plan.name, function, src, dst)
        if law is not None:
            elements = cycles / plan.passes if engine == TENSOR else max(each.free_elements for each in on_chip)
            duration = law.nanoseconds(elements, documented)
            return duration - law.overlap_ns, duration
    gap = knobs.matmul_gap_cycles * plan.passes if engine == TENSOR else knobs.instruction_gap_cycles
    documented += gap / _clock(chip, engine)
    return documented, documented


def clock_of(chip: Generation) -> Clock | None:
    """Return the law of the Tensor Engine's clock, where profiles show one."""
    names = ("window", "warms", "stays", "cold")
    found = [profiled(chip.short_name, "Tensor", "CLOCK", name) for name in names]
    window, warms, stays, cold = (0.0 if each is None else each.fixed_ns for each in found)
    return Clock(window_ns=window, warms=warms, stays=stays, cold=cold) if window else None


def _clock(chip: Generation, engine: int) -> float:
    """Return the cycles of a nanosecond; registers and semaphores count by the clock of the GpSimd Engine."""
    return float(getattr(chip.clocks, ENGINES[engine], chip.clocks.gpsimd))


def _transfer(plan: RecordedPlan, layouts: Sequence[Layout], chip: Generation, knobs: Knobs, *, reorders: bool) -> Time:
    data = max(plan.nanoseconds - DMA_COMPLETION_NS, 0.0) / knobs.dma_bandwidth
    engines, descriptors = DMA_ENGINES, 1
    if layouts:
        on_chip = [each for each in layouts if each.on_chip]
        rows = min((each.partitions for each in on_chip), default=chip.partitions)
        engines = min(DMA_ENGINES, ceil(rows / _PARTITIONS_PER_DMA_ENGINE))
        run = min(each.run // each.dtype.itemsize for each in layouts[:2])
        descriptors = max(1, layouts[0].elements // max(run, 1))
    packet = profiled(chip.short_name, "DMA", "DMA_PACKET", "packet")
    issue = profiled(chip.short_name, "DMA", "DMA_DIRECT2D", "sync issue")
    if packet is None or issue is None or not layouts:
        of_descriptors = descriptors * knobs.descriptor_ns
        occupied = max(data, of_descriptors / DMA_ENGINES + knobs.dma_issue_ns)
        own = max(data * DMA_ENGINES, of_descriptors) / engines
        whole = max(own, occupied) + knobs.dma_latency_ns
        return Time(engine=DMA, occupied=occupied, duration=whole, shared=occupied)
    # The documented nanoseconds say how many times the bytes move, and how well.
    moved = max(each.nbytes for each in layouts[:2])
    share = (plan.nanoseconds - DMA_COMPLETION_NS) * chip.dma_bytes_per_second / 1e9 / moved
    all_engines = descriptors * packet.nanoseconds(moved / descriptors) * share
    own = all_engines / engines
    return Time(
        engine=DMA,
        occupied=issue.fixed_ns if reorders else max(own, issue.fixed_ns),
        duration=(max(own, issue.fixed_ns) if reorders else issue.fixed_ns + own) + knobs.dma_latency_ns,
        shared=all_engines / DMA_ENGINES,
    )


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
