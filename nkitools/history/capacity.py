"""Capacity: the tensors on chip fit into SBUF (NK202) and PSUM (NK203) together; judged once all programs have ended.

In the modern dialect a kernel that does not fit is not compiled: "Memory allocation failed … Spilling is disabled for
kernels" (NCC_EGCA111, in messages that kernel authors have published; the page on the memory hierarchy, which is older,
has the compiler spill). In the legacy dialect the compiler does spill, by its performance guide: tensors that do not
fit are a warning there, unless the operands of a single instruction do not fit, which the compiler refuses (GCA035).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from nkitools.facts.generations import Generation
from nkitools.history.liveness import Demand, Liveness, Tiles, partition_bytes
from nkitools.record.columns import Columns
from nkitools.record.dataflow.accesses import Accesses
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.record.source_sites import Site
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import REPORTER

_SHAPE_AND_MEMORY = attrgetter("shape", "memory")
_LISTED = 8  # groups of tensors that a message tells apart
_SPILLS = (
    "As it is, the compiler keeps some of them in HBM and reads them back (spilling), which costs the time of those "
    "transfers."
)
_WAIT = "As it is, the kernel fits only if the compiler copies each sum out of PSUM as soon as it is complete."


class _Memory(NamedTuple):
    """A memory that has an end: its name, its rule, and the bytes of a partition that a kernel may use."""

    name: str
    rule: str
    capacity: int
    size: str


def report_capacity(record: Record, columns: Columns, reporter: Reporter, chip: Generation, *, spills: bool) -> None:
    """NK202 and NK203, at the instruction that needs the most. ``spills``: the compiler moves to HBM what does not fit.

    Both are warnings then, where each instruction alone fits.
    """
    _report_too_tall(record, columns, reporter, chip)
    of_memories = Tiles.of_memories(record, chip)
    exceeded = [memory for memory in _memories(chip) if of_memories[memory.name].may_exceed(memory.capacity)]
    if not exceeded:
        return
    accesses = Accesses(record, columns)
    for memory in exceeded:
        said: set[Site] = set()
        liveness = Liveness(accesses, of_memories[memory.name])
        for demand, severity, remedy in _demands(liveness, memory, spills=spills):
            site = record.site_at(demand.position)
            if len(demand.tensors) == 1 and _beyond_a_limit(reporter):
                continue  # a tensor beyond a limit of its own is one cause, and has been reported
            if site not in said:
                said.add(site)
                _report(record, reporter, memory, demand, severity, remedy)


def _report_too_tall(record: Record, columns: Columns, reporter: Reporter, chip: Generation) -> None:
    """NK101 of a tile that a DMA has filled and no instruction has read whole, so that none has complained."""
    kinds = set(map(_SHAPE_AND_MEMORY, record.storages.values()))  # few, of however many tensors
    if not any(shape[0] > chip.partitions and memory in ("SBUF", "PSUM") for shape, memory in kinds):
        return
    tall = [
        number
        for number, known in record.storages.items()
        if known.shape[0] > chip.partitions and known.memory in ("SBUF", "PSUM")
    ]
    if _beyond_a_limit(reporter):
        return
    uses = np.flatnonzero(np.isin(columns.storages, tall))
    if not uses.size:
        return
    position, number = int(columns.positions[uses[0]]), int(columns.storages[uses[0]])
    known, name = record.storages[number], record.name_of(number)
    message = (
        f"tensor {f'`{name}` ' if name else ''}({known.memory}, {known.dtype} {list(known.shape)}) has "
        f"{known.shape[0]} partitions; a NeuronCore has {chip.partitions}"
    )
    facts = {"memory": known.memory, "dtype": known.dtype, "shape": known.shape, "tensor": name}
    limits = {"partitions": known.shape[0], "limit": chip.partitions}
    report = REPORTER.get() or reporter
    loops = record.loops(record.states[position])
    with reporter.placed(record.site_at(position), program=record.program_at(position), loops=loops):
        report(RULES["NK101"], message, False, (), RULES["NK101"].remedy, None, {**facts, **limits})


def _beyond_a_limit(reporter: Reporter) -> bool:
    """Return whether a tensor beyond a limit of its own has been found, accepted or not."""
    return any(each.rule.startswith("NK10") for each in reporter.findings.all)


def _memories(chip: Generation) -> tuple[_Memory, _Memory]:
    kib = chip.sbuf_partition_bytes // 1024
    size = f"{kib} KiB, less the {chip.sbuf_reserved_bytes // 1024} KiB that the compiler keeps"
    banks = f"{chip.psum_banks} banks of {chip.psum_bank_bytes // 1024} KiB"
    return (
        _Memory("SBUF", "NK202", chip.sbuf_usable_bytes, size),
        _Memory("PSUM", "NK203", chip.psum_partition_bytes, banks),
    )


def _demands(liveness: Liveness, memory: _Memory, *, spills: bool) -> Iterator[tuple[Demand, str, str]]:
    """Yield what is too much, how grave, and a remedy: one tensor, the operands of one instruction, or all alive."""
    capacity = memory.capacity
    alone = liveness.oversized(capacity)
    if alone is None and spills:
        alone = liveness.busiest()
    if alone is not None and alone.nbytes > capacity:
        yield alone, "error", ""
        return
    exceeding = liveness.exceeding(capacity)
    if not exceeding:
        return
    severity, remedy = ("warning", _SPILLS) if spills else ("error", "")
    if not spills and memory.name == "PSUM" and liveness.fits_when_emptied_early(capacity):
        severity, remedy = "warning", _WAIT
    for demand in exceeding:
        yield demand, severity, remedy


def _report(record: Record, reporter: Reporter, memory: _Memory, demand: Demand, severity: str, more: str) -> None:
    site = record.site_at(demand.position)
    count = len(demand.tensors)
    what = f"by {count} tensors that are alive together" if count > 1 else "by one tensor"
    beside = ", taking those of few partitions to lie beside each other" if demand.beside else ""
    message = (
        f"{demand.nbytes:,} bytes of each {memory.name} partition are needed here {what}{beside}; a kernel has "
        f"{memory.capacity:,} ({memory.size}): {_listed(record, demand, site)}"
    )
    rule = replace(RULES[memory.rule], severity=severity)
    remedy = f"{rule.remedy} {more}".rstrip()
    report = REPORTER.get() or reporter
    program, loops = record.program_at(demand.position), record.loops(record.states[demand.position])
    with reporter.placed(site, program=program, loops=loops):
        facts = {"memory": memory.name, "extent": demand.nbytes, "limit": memory.capacity}
        report(rule, message, False, (), remedy, None, facts)


def _listed(record: Record, demand: Demand, site: Site) -> str:
    """Return the tensors by size; those of one kind that one line has made stand together."""
    groups: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for storage, begins in demand.tensors:
        groups.setdefault(_described(record, storage, site), []).append((storage, begins))
    sizes = {key: len(tensors) * partition_bytes(record.storages[tensors[0][0]]) for key, tensors in groups.items()}
    ranked = sorted(groups, key=lambda key: -sizes[key])
    listed = [_told(record, key, groups[key]) for key in ranked[:_LISTED]]
    if len(ranked) > _LISTED:
        others = sum(len(groups[key]) for key in ranked[_LISTED:])
        listed.append(f"and {others} more, {sum(sizes[key] for key in ranked[_LISTED:]):,}")
    return "; ".join(listed)


def _described(record: Record, storage: int, site: Site) -> tuple[str, str]:
    """Return what a tensor is and where it was made; the file where that is another one than the reader is in."""
    known, name = record.storages[storage], record.name_of(storage)
    made = record.sites[known.site]
    place = f"line {made.line}" if made.file == site.file else f"{made.file}:{made.line}"
    return f"{f'`{name}` ' if name else ''}{known.dtype} {list(known.shape)}", place


def _told(record: Record, key: tuple[str, str], tensors: list[tuple[int, int]]) -> str:
    what, place = key
    nbytes = partition_bytes(record.storages[tensors[0][0]])
    times = f"{len(tensors)} x {nbytes:,}" if len(tensors) > 1 else f"{nbytes:,}"
    around = _around([record.loops(record.states[begins]) for _, begins in tensors])
    return f"{what} {times} ({place}{around})"


def _around(loops: list[dict[str, int]]) -> str:
    """Return the counters of the loops in which tensors were first written, each from its lowest to its highest."""
    names = dict.fromkeys(name for each in loops for name in each)
    values = {name: [each[name] for each in loops if name in each] for name in names}
    ranges = [
        f"{name}={min(each)}" if min(each) == max(each) else f"{name}={min(each)}..{max(each)}"
        for name, each in values.items()
    ]
    return f", loop {', '.join(ranges)}" if ranges else ""
