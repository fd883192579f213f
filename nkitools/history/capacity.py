"""Capacity: the tensors on chip must fit into SBUF (NK202) and PSUM (NK203); checked after all programs have ended.

If NKI's own allocation of SBUF fails, the compiler's takes over, unless the kernel's CompileConfig says
``nki_alloc_fallback=False``: it moves tensors to HBM and back (spilling). On NeuronCore-v3 it did so for 50 of 50
kernels that nki 0.6.0 compiled, and refused those with a tensor wider than a partition (NCC_INLA001), or an instruction
whose operands do not fit (NCC_IBIR229). So it does in the legacy dialect, by its performance guide, with PSUM too.
"Spilling is disabled for kernels today" (NCC_EGCA111) stands among the messages of neuronx-cc 2.24; of NKI 0.6 it has
been published for kernels that give some of their tensors an address, next to others without one.
"""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from nkitools.chip.dialect_semantics import DialectSemantics
from nkitools.facts.generations import Generation
from nkitools.history.tiles_on_chip import Memory, Tiles
from nkitools.record.columns import Columns
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.rules.catalogue import RULES
from nkitools.rules.finding import REPORTER

_SHAPE_AND_MEMORY = attrgetter("shape", "memory")


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
    from nkitools.history.excesses import report_excesses

    # A tensor beyond a limit of its own is one cause, and has been reported.
    report_excesses(record, columns, reporter, chip, of_memories, exceeded, alone=not _beyond_a_limit(reporter))


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


def _memories(chip: Generation, dialect: DialectSemantics, *, spills: bool) -> tuple[Memory, Memory]:
    size = f"{chip.sbuf_partition_bytes // 1024} KiB, less the {chip.sbuf_reserved_bytes // 1024} KiB"
    capacity = chip.sbuf_usable_bytes
    if not dialect.spills:
        size, capacity = f"{size} and {chip.sbuf_compiler_bytes} bytes", chip.sbuf_automatic_bytes
    banks = f"{chip.psum_banks} banks of {chip.psum_bank_bytes // 1024} KiB"
    psum, foreseen = chip.psum_partition_bytes, spills and not dialect.spills
    return (
        Memory("SBUF", "NK202", capacity, f"{size} that the compiler keeps", spills, foreseen),
        Memory("PSUM", "NK203", psum, banks, dialect.spills, foreseen=False),
    )
