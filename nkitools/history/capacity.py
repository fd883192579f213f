"""Capacity: the tensors on chip must fit into SBUF (NK202) and PSUM (NK203); checked after all programs have ended.

If NKI's own allocation of SBUF fails, the compiler's takes over, unless the kernel's CompileConfig says
``nki_alloc_fallback=False``: it moves tensors to HBM and back (spilling). On NeuronCore-v3 it did so for 50 of 50
kernels that nki 0.6.0 compiled, and refused those with a tensor wider than a partition (NCC_INLA001), or an instruction
whose operands do not fit (NCC_IBIR229). So it does in the legacy dialect, by its performance guide, with PSUM too.
"Spilling is disabled for kernels today" (NCC_EGCA111) stands among the messages of neuronx-cc 2.24; of NKI 0.6 it has
been published for kernels that give some of their tensors an address, next to others without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from nkitools.chip.dialect_semantics import DialectSemantics
from nkitools.facts.generations import Generation
from nkitools.facts.light_classes import NamedTuple, replace
from nkitools.history.liveness import Demand, Liveness, Tiles, partition_bytes
from nkitools.record.columns import Columns
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.record.source_sites import Site
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import REPORTER

if TYPE_CHECKING:
    from nkitools.history.spills import Spilled

_SHAPE_AND_MEMORY = attrgetter("shape", "memory")
_LISTED = 8  # groups of tensors that a message lists
_SPILLS = (
    "As it is, the compiler keeps some of them in HBM and reads them back (spilling), which costs the time of those "
    "transfers."
)
_PLACED = (
    "The kernel gives other tensors an address, and compilers have refused such kernels (NCC_EGCA111, spilling is "
    "disabled): place all tensors, or none."
)
_WAIT = "As it is, the kernel fits only if the compiler copies each sum out of PSUM as soon as it is complete."


class _Memory(NamedTuple):
    """A limited memory: its name, its rule, and the bytes of a partition that a kernel may use.

    ``size``: these bytes in words. ``spills``: whether the compiler moves tensors that do not fit to HBM. ``foreseen``:
    whether the simulator predicts which.
    """

    name: str
    rule: str
    capacity: int
    size: str
    spills: bool
    foreseen: bool


class _Excess(NamedTuple):
    """A demand beyond the capacity of a memory, its severity, a remedy, and the tensors that spill."""

    demand: Demand
    severity: str
    remedy: str = ""
    spilled: Sequence[Spilled] = ()


def report_capacity(
    record: Record, columns: Columns, reporter: Reporter, chip: Generation, dialect: DialectSemantics, *, spills: bool
) -> None:
    """Report NK202 and NK203 at the instruction that needs the most.

    ``spills``: the compiler may move tensors of SBUF to HBM; an excess is then a warning, if each tensor and each
    instruction alone fits.
    """
    _report_too_tall(record, columns, reporter, chip)
    of_memories = Tiles.of_memories(record, chip)
    memories = _memories(chip, dialect, spills=spills)
    exceeded = [memory for memory in memories if of_memories[memory.name].may_exceed(memory.capacity)]
    if not exceeded:
        return
    from nkitools.record.dataflow.accesses import Accesses

    accesses = Accesses(record, columns)
    for memory in exceeded:
        said: set[Site] = set()
        liveness = Liveness(accesses, of_memories[memory.name])
        for excess in _excesses(liveness, memory):
            site = record.site_at(excess.demand.position)
            if len(excess.demand.tensors) == 1 and _beyond_a_limit(reporter):
                continue  # a tensor beyond a limit of its own is one cause, and has been reported
            if site not in said:
                said.add(site)
                _report(record, reporter, memory, chip, excess)


def _report_too_tall(record: Record, columns: Columns, reporter: Reporter, chip: Generation) -> None:
    """Report NK101 at the first use of a tensor with too many partitions, if no rule NK101 to NK109 has one."""
    kinds = set(map(_SHAPE_AND_MEMORY, record.storages.values()))  # few, even of many tensors
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
        made = f"`{name}` (line {record.sites[known.site].line})" if name else "it"
        remedy = (
            f"Make {made} with buffer=nl.shared_hbm if it is a result of the kernel; else split dimension 0 into tiles "
            "of nl.tile_size.pmax, one for each turn of a loop."
        )
        report(RULES["NK101"], message, False, (), remedy, None, {**facts, **limits})


def _beyond_a_limit(reporter: Reporter) -> bool:
    """Return whether the run has a finding of NK101 to NK109, the limits of a tile; accepted ones count."""
    return any(each.rule.startswith("NK10") for each in reporter.findings.all)


def _memories(chip: Generation, dialect: DialectSemantics, *, spills: bool) -> tuple[_Memory, _Memory]:
    size = f"{chip.sbuf_partition_bytes // 1024} KiB, less the {chip.sbuf_reserved_bytes // 1024} KiB"
    capacity = chip.sbuf_usable_bytes
    if not dialect.spills:
        size, capacity = f"{size} and {chip.sbuf_compiler_bytes} bytes", chip.sbuf_automatic_bytes
    banks = f"{chip.psum_banks} banks of {chip.psum_bank_bytes // 1024} KiB"
    psum, foreseen = chip.psum_partition_bytes, spills and not dialect.spills
    return (
        _Memory("SBUF", "NK202", capacity, f"{size} that the compiler keeps", spills, foreseen),
        _Memory("PSUM", "NK203", psum, banks, dialect.spills, foreseen=False),
    )


def _excesses(liveness: Liveness, memory: _Memory) -> Iterator[_Excess]:
    """Yield the excesses: of one tensor, of the operands of one instruction, or of all live tensors."""
    capacity = memory.capacity
    alone = liveness.too_large_alone(capacity) if memory.spills else liveness.oversized(capacity)
    if alone is not None:
        yield _Excess(alone, "error")
        return
    exceeding = liveness.exceeding(capacity)
    if not exceeding:
        return
    spilled: Sequence[Spilled] = ()
    if memory.foreseen:
        from nkitools.history.spills import foreseen_spills

        spilled = foreseen_spills(liveness, exceeding, capacity)
    severity, remedy = ("warning", _SPILLS) if memory.spills else ("error", "")
    if memory.name == "PSUM" and not memory.spills and liveness.fits_when_emptied_early(capacity):
        severity, remedy = "warning", _WAIT
    for demand in exceeding:
        yield _Excess(demand, severity, remedy, [each for each in spilled if each.owner == demand.owner])


def _report(record: Record, reporter: Reporter, memory: _Memory, chip: Generation, excess: _Excess) -> None:
    demand = excess.demand
    site = record.site_at(demand.position)
    count = len(demand.tensors)
    what = f"by {count} tensors that are alive together" if count > 1 else "by one tensor"
    beside = ", taking those of few partitions to lie beside each other" if demand.beside else ""
    message = (
        f"{demand.nbytes:,} bytes of each {memory.name} partition are needed here {what}{beside}; a kernel has "
        f"{memory.capacity:,} ({memory.size}): {_listed(record, demand, site)}"
    )
    facts = {"memory": memory.name, "extent": demand.nbytes, "limit": memory.capacity}
    rule = replace(RULES[memory.rule], severity=excess.severity)
    remedy = f"{rule.remedy} {excess.remedy}".rstrip()
    if excess.spilled:
        facts["spilled_bytes"] = sum(each.nbytes for each in excess.spilled)
        message += _travels(record, excess, site, memory, chip)
        remedy += f" {_PLACED}" if any(each.has_address for each in record.storages.values()) else ""
    report = REPORTER.get() or reporter
    program, loops = record.program_at(demand.position), record.loops(record.states[demand.position])
    with reporter.placed(site, program=program, loops=loops):
        report(rule, message, False, (), remedy, None, facts)


def _travels(record: Record, excess: _Excess, site: Site, memory: _Memory, chip: Generation) -> str:
    """Return a sentence on the expected spills: the bytes too many, the tensors, their traffic and its time."""
    groups: dict[tuple[str, str], list[Spilled]] = {}
    for each in excess.spilled:
        groups.setdefault(_described(record, each.storage, site), []).append(each)
    total = {key: sum(each.nbytes for each in members) for key, members in groups.items()}
    ranked = sorted(groups, key=lambda key: -total[key])
    listed = [f"{len(groups[key])} x {key[0]} ({key[1]}) {total[key]:,}" for key in ranked[:_LISTED]]
    if len(ranked) > _LISTED:
        listed.append(f"and others, {sum(total[key] for key in ranked[_LISTED:]):,}")
    nbytes, rate = sum(total.values()), chip.spill_bytes_per_second
    return (
        f". {excess.demand.nbytes - memory.capacity:,} bytes of each partition are too many; for want of them the "
        f"compiler is foreseen to move to HBM and back {nbytes:,} bytes, {nbytes / rate * 1e6:,.1f} us at "
        f"{rate / 1e9:.0f} GB/s: {'; '.join(listed)}"
    )


def _listed(record: Record, demand: Demand, site: Site) -> str:
    """Return the tensors in words, largest first; equal tensors of one line are listed together."""
    groups: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for storage, begins in demand.tensors:
        groups.setdefault(_described(record, storage, site), []).append((storage, begins))
    sizes = {key: len(tensors) * partition_bytes(record.storages[tensors[0][0]]) for key, tensors in groups.items()}
    ranked = sorted(groups, key=lambda key: -sizes[key])
    listed = [_group_text(record, key, groups[key]) for key in ranked[:_LISTED]]
    if len(ranked) > _LISTED:
        others = sum(len(groups[key]) for key in ranked[_LISTED:])
        listed.append(f"and {others} more, {sum(sizes[key] for key in ranked[_LISTED:]):,}")
    return "; ".join(listed)


def _described(record: Record, storage: int, site: Site) -> tuple[str, str]:
    """Return a tensor's description and line; with the file if it is another one than that of ``site``."""
    known, name = record.storages[storage], record.name_of(storage)
    made = record.sites[known.site]
    place = f"line {made.line}" if made.file == site.file else f"{made.file}:{made.line}"
    return f"{f'`{name}` ' if name else ''}{known.dtype} {list(known.shape)}", place


def _group_text(record: Record, key: tuple[str, str], tensors: list[tuple[int, int]]) -> str:
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
