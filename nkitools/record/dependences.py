"""The instructions that made, overwrote and read the elements of each instruction: exact, element by element.

Memory is cut into pieces that every access touches all together or not at all (`nkitools.record.dataflow`). Nothing is
computed before it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.columns import Columns
from nkitools.record.dataflow.accesses import Accesses
from nkitools.record.dataflow.last_accesses import GIVEN as GIVEN
from nkitools.record.dataflow.last_accesses import UNWRITTEN as UNWRITTEN
from nkitools.record.dataflow.last_accesses import Edges, Timeline, edges_of
from nkitools.record.record import Record

_BATCH = 1 << 23  # accesses to pieces that are looked at together


@dataclass(frozen=True, eq=False)
class CompressedRows:
    """A row of sources for each instruction: those of instruction n are ``sources[starts[n]:starts[n + 1]]``, sorted.

    ``starts``, ``sources``: int64; one start more than there are instructions.
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
    """The dependences inside of one record: of its operands (and indices) on writers, and of instructions."""

    columns: Columns
    by_operand: Edges
    flow: Edges
    output: Edges
    anti: Edges


class Dependences:
    """The dependences of a run. Positions count through its instructions, those of ranks one after the other.

    ``flow``: the instructions that wrote the elements which each one reads, as the last ones before it; -1 an argument
    or a constant, -2 memory that was never written. ``output``: those that wrote the elements which it overwrites.
    ``anti``: those that have read these elements since they were written.

    Under a predicate of data (`nisa.tensor_copy_predicated`, say) an instruction may have written any element of its
    destination: who reads one later depends on it and on the writer before it, and it reads all of its operands. A
    matmul that accumulates reads its destination. Indices and registers are operands. What a collective or sendrecv has
    received depends on the sender's instruction, which may have a later position.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records

    @cached_property
    def flow(self) -> CompressedRows:
        """Return the writers of the elements that each instruction reads."""
        edges = [_moved(each.flow, base) for each, base in zip(self._found, self._bases, strict=True)]
        return self._rows([*edges, self._received()])

    @cached_property
    def output(self) -> CompressedRows:
        """Return the writers of the elements that each instruction overwrites."""
        return self._rows([_moved(each.output, base) for each, base in zip(self._found, self._bases, strict=True)])

    @cached_property
    def anti(self) -> CompressedRows:
        """Return the readers of the elements that each instruction overwrites."""
        return self._rows([_moved(each.anti, base) for each, base in zip(self._found, self._bases, strict=True)])

    @cached_property
    def by_operand(self) -> CompressedRows:
        """Return the writers of the elements that each operand reads: a row for each operand, instruction after
        instruction.

        Indices, registers and data sent by other programs are in `flow` only.
        """
        counts = [each.columns.positions.size for each in self._found]
        targets, sources, before = [], [], 0
        for found, count, base in zip(self._found, counts, self._bases, strict=True):
            edges = found.by_operand
            mine = edges.targets < count
            targets.append(edges.targets[mine] + before)
            sources.append(np.where(edges.sources[mine] < 0, edges.sources[mine], edges.sources[mine] + base))
            before += count
        return _compressed(_joined(targets), _joined(sources), before)

    @cached_property
    def _bases(self) -> list[int]:
        counts = [record.count for record in self._records]
        return [sum(counts[:at]) for at in range(len(counts))]

    @cached_property
    def _found(self) -> list[_Found]:
        return [_within(record) for record in self._records]

    def _rows(self, edges: Sequence[Edges]) -> CompressedRows:
        count = sum(record.count for record in self._records)
        return _compressed(_joined([each.targets for each in edges]), _joined([each.sources for each in edges]), count)

    def _received(self) -> Edges:
        """Return what was received by collectives and sendrecv: the n-th meeting of a group is one for all of them."""
        meetings: dict[tuple[tuple[int, ...], int], dict[int, int]] = {}
        received: list[tuple[tuple[tuple[int, ...], int], int, tuple[int, ...]]] = []
        times: dict[tuple[tuple[int, ...], int], int] = {}
        for record, base in zip(self._records, self._bases, strict=True):
            for each in record.beside.transfers:
                turn = times[each.members, each.member] = times.get((each.members, each.member), -1) + 1
                meetings.setdefault((each.members, turn), {})[each.member] = base + each.position
                received.append(((each.members, turn), base + each.position, each.senders))
        pairs = [
            (position, meetings[meeting][sender])
            for meeting, position, senders in received
            for sender in senders
            if sender in meetings[meeting]
        ]
        return Edges(*np.array(pairs, np.int64).reshape(-1, 2).T)


def _within(record: Record) -> _Found:
    columns, beside = Columns(record), record.beside
    accesses = Accesses(record, columns)
    by_operand, output, anti = _edges(accesses)
    owners = np.empty(columns.positions.size + len(beside.indices) // 3, np.int64)
    owners[accesses.owners] = accesses.positions
    flow = Edges(owners[by_operand.targets], by_operand.sources)
    return _Found(
        columns,
        by_operand,
        _with_registers(flow, beside.flow),
        _with_registers(output, beside.output),
        _with_registers(anti, beside.anti),
    )


def _with_registers(edges: Edges, pairs: Sequence[int]) -> Edges:
    more = np.array(pairs, np.int64).reshape(-1, 2)
    return Edges(np.concatenate((edges.targets, more[:, 0])), np.concatenate((edges.sources, more[:, 1])))


def _edges(accesses: Accesses) -> tuple[Edges, Edges, Edges]:
    """Return who wrote what operands read, and who wrote and read what instructions overwrite."""
    views, pieces, unwritten = accesses.views, accesses.pieces(), accesses.unwritten()
    order = np.argsort(views.which, kind="stable")  # the accesses of a view together, in their order
    lengths = np.bincount(views.which, minlength=views.storages.size)
    firsts = np.cumsum(lengths) - lengths
    owners = np.repeat(np.arange(views.storages.size), np.diff(pieces.starts))  # the view of each piece of a view
    by_piece = np.argsort(pieces.pieces, kind="stable")
    sizes = lengths[owners[by_piece]]
    found: list[tuple[Edges, Edges, Edges]] = []
    for first, last in _batches(pieces.pieces[by_piece], sizes):
        mine = by_piece[first:last]
        chosen = _ranges(firsts[owners[mine]], sizes[first:last])
        access, piece = order[chosen], np.repeat(pieces.pieces[mine], sizes[first:last])
        sequence = np.argsort(piece * accesses.positions.size + access, kind="stable")
        access, piece = access[sequence], piece[sequence]
        view = views.which[access]
        owner, position, kind, storage = (
            each[access] for each in (accesses.owners, accesses.positions, accesses.kinds, accesses.storages)
        )
        found.append(edges_of(Timeline(piece, owner, position, kind, storage, unwritten[view])))
    if len(found) == 1:
        return found[0]
    by_operand, output, anti = (
        _distinct_edges(_joined([each[at].targets for each in found]), _joined([each[at].sources for each in found]))
        for at in range(3)
    )
    return by_operand, output, anti


def _batches(pieces: Array, sizes: Array) -> list[tuple[int, int]]:
    """Return where to cut a sorted list of pieces, with so many accesses each, so that no piece is cut through."""
    cuts, total = [0], np.cumsum(sizes)
    while cuts[-1] < pieces.size:
        before = int(total[cuts[-1] - 1]) if cuts[-1] else 0
        end = max(int(np.searchsorted(total, before + _BATCH, "right")), cuts[-1] + 1)
        end = int(np.searchsorted(pieces, pieces[end - 1], "right")) if end < pieces.size else pieces.size
        cuts.append(end)
    return list(pairwise(cuts))


def _ranges(firsts: Array, lengths: Array) -> Array:
    """Return the numbers from each first on, as many as its length, one range after the other."""
    return np.asarray(np.arange(lengths.sum()) + np.repeat(firsts - (np.cumsum(lengths) - lengths), lengths))


def _joined(arrays: Sequence[Array]) -> Array:
    return np.concatenate([np.zeros(0, np.int64), *arrays])


def _moved(edges: Edges, base: int) -> Edges:
    """Return edges of positions that count from another place on; sources that are no instructions stay."""
    sources = edges.sources
    return Edges(edges.targets + base, np.where(sources < 0, sources, sources + base))


def _distinct_edges(targets: Array, sources: Array) -> Edges:
    """Return each edge once, sorted by target and source."""
    bits = int(sources.max(initial=0) + 2).bit_length()
    pairs = np.sort((targets << bits) | (sources + 2))  # twice as fast as np.unique, which hashes
    distinct = np.ones(pairs.size, np.bool_)
    distinct[1:] = pairs[1:] != pairs[:-1]
    pairs = pairs[distinct]
    return Edges(pairs >> bits, (pairs & ((1 << bits) - 1)) - 2)


def _compressed(targets: Array, sources: Array, count: int) -> CompressedRows:
    edges = _distinct_edges(targets, sources)
    return CompressedRows(np.searchsorted(edges.targets, np.arange(count + 1)), edges.sources)
