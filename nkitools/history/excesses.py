"""Demands beyond a memory on chip: the tensors that are alive together, as NK202 and NK203 list them; their spills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from nkitools.facts.generations import Generation
from nkitools.facts.light_classes import NamedTuple, replace
from nkitools.history.liveness import Liveness
from nkitools.history.tiles_on_chip import Demand, Memory, Tiles, partition_bytes
from nkitools.record.columns import Columns
from nkitools.record.dataflow.accesses import Accesses
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.record.source_sites import Site
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import REPORTER

if TYPE_CHECKING:
    from nkitools.history.spills import Spilled

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


class _Excess(NamedTuple):
    """A demand beyond the capacity of a memory, its severity, a remedy, and the tensors that spill."""

    demand: Demand
    severity: str
    remedy: str = ""
    spilled: Sequence[Spilled] = ()


def report_excesses(
    record: Record,
    columns: Columns,
    reporter: Reporter,
    chip: Generation,
    of_memories: Mapping[str, Tiles],
    exceeded: Sequence[Memory],
    *,
    alone: bool,
) -> None:
    """Report the demands beyond the memories that may be exceeded; ``alone``: also those of one tensor."""
    accesses = Accesses(record, columns)
    for memory in exceeded:
        said: set[Site] = set()
        liveness = Liveness(accesses, of_memories[memory.name])
        for excess in _excesses(liveness, memory):
            site = record.site_at(excess.demand.position)
            if (alone or len(excess.demand.tensors) > 1) and site not in said:
                said.add(site)
                _report(record, reporter, memory, chip, excess)


def _excesses(liveness: Liveness, memory: Memory) -> Iterator[_Excess]:
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


def _report(record: Record, reporter: Reporter, memory: Memory, chip: Generation, excess: _Excess) -> None:
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


def _travels(record: Record, excess: _Excess, site: Site, memory: Memory, chip: Generation) -> str:
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
