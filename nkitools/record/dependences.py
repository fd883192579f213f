"""Dependences between instructions, exact to the element: who wrote, overwrote and read the elements of each.

Memory is cut into pieces: every access touches all of a piece or nothing of it (`nkitools.record.dataflow`). The
dependences are computed when they are first used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import dataclass
from nkitools.record import rows
from nkitools.record.beside_rows import Transfer
from nkitools.record.columns import Columns
from nkitools.record.dataflow.accesses import Accesses
from nkitools.record.dataflow.last_accesses import (
    ADDS,
    GIVEN,
    READS,
    UNWRITTEN,
    WRITES,
    Edges,
    Writers,
    joined,
    last_accesses,
)
from nkitools.record.record import Record


@dataclass(frozen=True, eq=False)
class CompressedRows:
    """The sources of each instruction: those of instruction n are ``sources[starts[n]:starts[n + 1]]``, sorted.

    ``starts``, ``sources``: int64; there is one start more than instructions.
    """

    starts: Array
    sources: Array

    def __len__(self) -> int:
        return self.starts.size - 1

    def __getitem__(self, position: int) -> Array:
        if not -len(self) <= position < len(self):
            raise IndexError(f"row {position} of {len(self)}")
        at = position % len(self)
        return self.sources[self.starts[at] : self.starts[at + 1]]


@dataclass(frozen=True, eq=False)
class _Found:
    """The dependences inside of one record, repeats included.

    ``operands``: their number in the record. ``places``: the index of each access's operand in the rows.
    ``readers``: the accesses that read, in the instructions ``reads.targets``.
    ``every``: flow, output and anti. The targets of output are shifted by the number of instructions, those of anti by
    twice that.
    """

    operands: int
    places: Array
    readers: Array
    reads: Edges
    every: Edges


class Dependences:
    """The dependences of a run. Positions count through its instructions, those of ranks one after the other.

    ``flow``: for each instruction, the last writers of the elements that it reads; -1 an argument or a constant, -2
    memory that was never written. ``output``: the last writers of the elements that it overwrites. ``anti``: the
    instructions that read these elements since then.

    Under a predicate of data (`nisa.tensor_copy_predicated`, say) an instruction may have written any element of its
    destination: a later reader depends on it and on the writer before it, and it reads all of its operands. A matmul
    that accumulates reads its destination. Indices and registers are operands. Data that a collective or sendrecv
    received depend on the sender's instruction, which may have a later position.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records

    @property
    def flow(self) -> CompressedRows:
        """Return the writers of the elements that each instruction reads."""
        return self._rows[0]

    @property
    def output(self) -> CompressedRows:
        """Return the writers of the elements that each instruction overwrites."""
        return self._rows[1]

    @property
    def anti(self) -> CompressedRows:
        """Return the readers of the elements that each instruction overwrites."""
        return self._rows[2]

    @cached_property
    def by_operand(self) -> CompressedRows:
        """Return the writers of the elements that each operand reads: a row for each operand, instruction after
        instruction.

        Indices, registers and data sent by other programs are in `flow` only.
        """
        edges, before = list[Edges](), 0
        for found, base in zip(self._found, self.bases, strict=False):
            owners = rows.operand_at(found.places[found.readers], found.reads.targets)
            mine = owners < found.operands
            edges.append(_moved(Edges(owners[mine], found.reads.sources[mine]), before, base))
            before += found.operands
        return _compressed(edges, before)

    @cached_property
    def bases(self) -> list[int]:
        """Return the position of the first instruction of each record, and the number of all instructions."""
        return list(accumulate((record.count for record in self._records), initial=0))

    @cached_property
    def _found(self) -> list[_Found]:
        return [_within(record) for record in self._records]

    @cached_property
    def _rows(self) -> list[CompressedRows]:
        """Return the three dependences, which are compressed as one: a row of each for each instruction."""
        count, edges = self.bases[-1], self._received()
        for record, found, base in zip(self._records, self._found, self.bases, strict=False):
            targets = found.every.targets
            if record.count < count:
                targets = targets + targets // record.count * (count - record.count)
            edges.append(_moved(Edges(targets, found.every.sources), base, base))
        every = _compressed(edges, 3 * count)
        first, kinds = 0, []
        for kind in range(1, 4):
            starts = every.starts[(kind - 1) * count : kind * count + 1]
            last = int(starts[-1])
            kinds.append(CompressedRows(starts - first if first else starts, every.sources[first:last]))
            first = last
        return kinds

    def _received(self) -> list[Edges]:
        """Return the edges from senders to receivers of collectives and sendrecv."""
        meetings: dict[Exchange, dict[int, int]] = {}
        received: list[tuple[Exchange, int, tuple[int, ...]]] = []
        for meeting, number, each in transfers_in(self._records):
            position = self.bases[number] + each.position
            meetings.setdefault(meeting, {})[each.member] = position
            received.append((meeting, position, each.senders))
        pairs = [
            (position, meetings[meeting][sender])
            for meeting, position, senders in received
            for sender in senders
            if sender in meetings[meeting]
        ]
        return [Edges(*np.array(pairs, np.int64).T)] if pairs else []


Exchange = tuple[tuple[int, ...], int]
"""A meeting in which programs exchange data: its members, and how many meetings of theirs came before."""


def transfers_in(records: Sequence[Record]) -> Iterator[tuple[Exchange, int, Transfer]]:
    """Yield what was received in meetings, each with its meeting and the number of its record.

    The n-th meeting of a member is the n-th one of all.
    """
    times: dict[tuple[tuple[int, ...], int], int] = {}
    for number, record in enumerate(records):
        for each in record.beside.transfers:
            turn = times[each.members, each.member] = times.get((each.members, each.member), -1) + 1
            yield (each.members, turn), number, each


def _within(record: Record) -> _Found:
    columns, beside = Columns(record), record.beside
    accesses = Accesses(record, columns)
    writers, anti = last_accesses(accesses.pieces(), *accesses.views[-2:], accesses.positions, accesses.kinds)
    overwrites = ((writers.kinds >= WRITES) & (writers.sources >= 0)).nonzero()[0]
    output = Edges(writers.positions[overwrites], writers.sources[overwrites])
    reads = _reads(accesses, writers)
    flow = Edges(writers.positions[reads], writers.sources[reads])
    kinds = [_with_registers(*each) for each in ((flow, beside.flow), (output, beside.output), (anti, beside.anti))]
    targets, sources = joined(kinds)
    others = targets != sources  # an instruction does not overwrite what it has itself written or read
    flows, outputs = kinds[0].targets.size, kinds[1].targets.size
    others[:flows] = True
    targets[flows:] += record.count
    targets[flows + outputs :] += record.count
    every = Edges(targets[others], sources[others])
    return _Found(columns.positions.size, accesses.places, writers.accesses[reads], flow, every)


def _reads(accesses: Accesses, writers: Writers) -> Array:
    """Return the indices of the writers whose elements are read, and mark arguments and constants as `GIVEN`.

    An access that only adds (`ADDS`) reads nothing if nothing was written, or if another storage was.
    """
    at, _, kinds, sources = writers
    kinds = kinds & (READS | ADDS)
    reads: Array = kinds != 0
    unwritten = (reads & (sources == UNWRITTEN)).nonzero()[0]
    sources[unwritten[accesses.given(accesses.storages[at[unwritten]])]] = GIVEN
    adds = (kinds == ADDS).nonzero()[0]
    if adds.size:
        reads[adds] = sources[adds] != UNWRITTEN
        if accesses.share_memory:
            writes, room = accesses.kinds >= WRITES, int(accesses.storages.max()) + 1
            written = accesses.positions[writes] * room + accesses.storages[writes]
            own = np.isin(sources[adds] * room + accesses.storages[at[adds]], written)
            reads[adds] &= (sources[adds] < 0) | own
    return reads.nonzero()[0]


def _with_registers(edges: Edges, pairs: Sequence[int]) -> Edges:
    return joined([edges, Edges(*np.array(pairs, np.int64).reshape(-1, 2).T)]) if pairs else edges


def _moved(edges: Edges, targets: int, sources: int) -> Edges:
    """Return edges that count from another place on; sources that are no instructions stay."""
    if not targets and not sources:
        return edges
    if not sources:
        return Edges(edges.targets + targets, edges.sources)
    return Edges(edges.targets + targets, np.where(edges.sources < 0, edges.sources, edges.sources + sources))


def _compressed(edges: Sequence[Edges], count: int) -> CompressedRows:
    found = joined(edges).distinct()
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(found.targets, minlength=count), out=starts[1:])
    return CompressedRows(starts, found.sources)
