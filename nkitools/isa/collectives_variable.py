"""Collectives whose parts have sizes that are known only when the kernel runs: all_gather_v, all_to_all_v.

Both take tensors in HBM as flat buffers of elements, and a uint32 tensor of metadata, one column a rank: row 0 how many
elements are sent, row 1 from which element of ``src`` on, row 2 how many have come (an output), row 3 where these begin
in ``dst``. Without row 3 ``dst`` is divided into slots of equal size, one a sender. What no chunk reaches stays as it
was. The metadata are read when both cores of the rank have come.

`nkitools.isa.collectives_prepared` has the halves of both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from nkitools.chip.dtypes import uint32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.issue import guards, instruction_guards
from nkitools.issue.collective_call import Collective
from nkitools.issue.collective_meeting import Met, both_cores, check_lnc, meet, shared_words
from nkitools.issue.element_maps import Elements, From
from nkitools.issue.element_rules import All, Parts, Rule
from nkitools.issue.instruction import NkiInstruction
from nkitools.issue.replica_groups import ReplicaGroup, rank_list
from nkitools.rules.finding import not_modelled

RANKS_OF_A_CHIP = 4  # "exactly 4 ranks (intra-chip)" (all_gather_v), "4 under LNC=2" (all_to_all_v)
COUNTS, DISPLACEMENTS, RECEIVED, PLACES = range(4)  # rows of the metadata


class Chunk(NamedTuple):
    """Elements of a flat buffer."""

    start: int
    size: int


def all_gather_v(
    srcs: list[NkiTensor],
    dsts: list[NkiTensor],
    replica_group: ReplicaGroup,
    metadata_tensor: NkiTensor,
    recv_counts_known: bool = False,
    has_rdispls: bool = False,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Send one chunk of each rank's source to all ranks; ``dst`` has the chunk of rank number s at the start of slot s.

    ``srcs``, ``dsts``: lists of one contiguous tensor in HBM, of equal dtype and any sizes. ``dst`` divides into as
    many equal slots as the group has ranks; a chunk that is larger than a slot is NK402, and the rest of a slot stays
    as it was. ``metadata_tensor``: uint32, contiguous, [3, ranks] in HBM or [1, 3, ranks] in SBUF (a fourth row is
    allowed and not read). Column 0 has the size (row 0) and the start (row 1) of the rank's own chunk, in elements. The
    call writes the sizes of all ranks' chunks into row 2, unless ``recv_counts_known``.
    Limits of the reference, which are checked: four ranks a group, LNC=2, no ``has_rdispls``. ``priority``, waiting and
    the handle are as in ``all_reduce``.
    Errors: NK109, NK113, NK201, NK301, NK401, NK402, NK504, NK606, NK609, NK613.
    Source: nki.collectives.all_gather_v (NKI 0.6).
    """
    call = ChunkExchange(all_gather_v, priority, name, recv_counts_known, has_rdispls)
    call.gather(srcs, dsts, replica_group, metadata_tensor)
    return call.run()


def all_to_all_v(
    srcs: list[NkiTensor],
    dsts: list[NkiTensor],
    replica_group: ReplicaGroup,
    metadata_tensor: NkiTensor,
    recv_counts_known: bool = False,
    has_rdispls: bool = False,
    priority: int | None = None,
    name: str | None = None,
) -> NkiInstruction:
    """Send to each rank number r of the group the chunk of the source that column r of the metadata describes.

    ``srcs``, ``dsts``: lists of one contiguous tensor in HBM, of equal dtype and any sizes. ``metadata_tensor``:
    uint32, contiguous, [3, ranks] in HBM or [1, 3, ranks] in SBUF, with ``has_rdispls`` of four rows. All numbers are
    in elements: row 0 has the sizes of the chunks, row 1 their starts in ``src``. The chunk of rank number s is at the
    start of slot s of ``dst``, which divides into as many equal slots as there are ranks; with ``has_rdispls`` it is at
    the element in column s of the receiver's row 3. What is not received stays as it was. The call writes the sizes of
    the received chunks into row 2, unless ``recv_counts_known``. A rank's own column is a chunk like others. AWS's
    docstring says that row 3 "may be omitted": four rows are allowed without has_rdispls, as public kernels pass them.
    Limits of the reference, which are checked: on NeuronCore-v4 LNC=2, and groups of four ranks or a multiple, numbered
    without a gap in ascending order. Elsewhere ``has_rdispls`` came with NKI 0.7, for groups whose ranks are on
    different nodes; before, the call itself was for such groups. Which ranks share a node is not known here. (The
    release notes of NKI 0.3 say that has_rdispls has no effect on NeuronCore-v4; AWS's docstring is newer.)
    ``priority``, waiting and the handle are as in ``all_reduce``.
    Errors: NK109, NK113, NK201, NK301, NK401, NK402, NK504, NK606, NK607 (chunks that overlap), NK609, NK613.
    Source: nki.collectives.all_to_all_v (NKI 0.7).
    """
    call = ChunkExchange(all_to_all_v, priority, name, recv_counts_known, has_rdispls)
    call.scatter(srcs, dsts, replica_group, metadata_tensor)
    return call.run()


class ChunkExchange(Collective):
    """A call of either: its operands, then which chunks go where, then the exchange."""

    def __init__(
        self, function: Callable[..., object], priority: int | None, name: str | None, known: bool, placed: bool
    ) -> None:
        super().__init__(function, priority, name)
        for role, flag in (("recv_counts_known", known), ("has_rdispls", placed)):
            if not isinstance(flag, (bool, np.bool_)):
                self.check.refuse("NK609", f"`{role}` must be True or False, it is {flag!r}")
        self.known = bool(known)
        self.placed = bool(placed)

    def gather(
        self, srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], group: ReplicaGroup, metadata: NkiTensor
    ) -> None:
        """Take the operands of an all_gather_v. Errors: NK609, NK613 and those of `_take`."""
        self.ranks, self.columns = rank_list(self.check, self.core, group), 1
        check_lnc(self.check, self.core)
        if len(self.ranks) != RANKS_OF_A_CHIP:
            message = f"each group must have exactly {RANKS_OF_A_CHIP} ranks, it has {len(self.ranks)}"
            self.check.fail("NK609", message)
        if self.placed:
            remedy = "Leave it out: chunks begin their slots."
            self.check.fail("NK609", "`has_rdispls`=True is not supported", remedy=remedy)
        self._take(srcs, dsts, metadata)

    def scatter(
        self, srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], group: ReplicaGroup, metadata: NkiTensor
    ) -> None:
        """Take the operands of an all_to_all_v. Errors: NK606, NK609, NK613 and those of `_take`."""
        ranks = self.ranks = rank_list(self.check, self.core, group)
        self.columns = len(ranks)
        chip = self.core.generation
        if chip.neuron_switch:
            check_lnc(self.check, self.core)
            if len(ranks) % RANKS_OF_A_CHIP or list(ranks) != list(range(ranks[0], ranks[0] + len(ranks))):
                self.check.fail(
                    "NK609",
                    f"on {chip.name} a group must be sequential ranks of whole chips, {RANKS_OF_A_CHIP} each; it is "
                    f"{list(ranks)}",
                )
        elif self.placed and not self.core.language.places_between_nodes:
            guards.came_later(self.check, "neuron_switch", "`has_rdispls`=True", argument="has_rdispls")
        self._take(srcs, dsts, metadata)

    def _take(self, srcs: Sequence[NkiTensor], dsts: Sequence[NkiTensor], metadata: NkiTensor) -> None:
        """Check the tensors. Errors: NK109, NK113, NK201, NK301, NK609."""
        count = len(self.ranks)
        (self.src,), (self.dst,), _ = self.pairs(srcs, dsts, one=True, only_hbm=True)
        (self.metadata,) = self.tensors("metadata_tensor", [metadata], one=True)
        for role, tensor in (("srcs[0]", self.src), ("dsts[0]", self.dst), ("metadata_tensor", self.metadata)):
            if not tensor.is_contiguous():
                message = (
                    f"`{role}`, {describe(tensor)}, must lie contiguously in memory, as it is taken as a flat buffer"
                )
                remedy = "Copy it into a tensor of its own with nisa.dma_copy."
                self.check.refuse("NK109", message, tensor, remedy=remedy)
        self._check_metadata(count)
        if self.dst.size % count:
            message = f"`dsts[0]`, {describe(self.dst)}, has {self.dst.size} elements, which make no {count} slots"
            self.check.refuse("NK113", message, self.dst, remedy=f"Allocate it with a multiple of {count} elements.")

    def _check_metadata(self, count: int) -> None:
        """NK201, NK301, NK109: uint32, one column a rank, in SBUF on one partition."""
        tensor, check = self.metadata, self.check
        guards.memory(check, tensor, "metadata_tensor", (*guards.HBM, MemoryRegion.sbuf))
        instruction_guards.of_dtype(check, "metadata_tensor", tensor, uint32)
        rows = (4,) if self.placed else (3, 4)
        first = (1,) if tensor.on_chip else ()
        if tensor.shape not in [(*first, each, count) for each in rows]:
            message = (
                f"`metadata_tensor`, {describe(tensor)}, must have shape {[*first, rows[0], count]}: a column for "
                f"each of {count} ranks"
            )
            check.refuse("NK109", message, tensor)

    def run(self) -> NkiInstruction:
        """Read the metadata, and exchange."""
        both_cores(self.core, self.name, shared_words([self.src, self.dst, self.metadata]))
        return self.send(self.read(), [self.metadata])

    def send(self, table: Array, read: list[NkiTensor]) -> NkiInstruction:
        """Send the metadata to the other ranks, and exchange; ``read``: the metadata where the exchange reads them."""
        ranks = self.ranks
        forms: dict[str, str | int] = {"has_rdispls": self.placed, "dtypes": str(self.src.dtype)}
        agreed = {**forms, "recv_counts_known": self.known}
        met = meet(self.check, self.core, ranks, agreed, [table])
        tables = met.sources(0)
        mine, column = tables[met.at], 0 if self.columns == 1 else met.at
        sent = [self._chunk(mine, receiver) for receiver in range(self.columns)]
        counts = [int(each[COUNTS, column]) for each in tables]
        places = self._places(counts, mine)

        def moves(again: Met, destinations: list[Array]) -> None:
            flat = destinations[0].reshape(-1)
            for start, source, place in zip(starts, again.sources(0), places, strict=True):
                flat[place.start : place.start + place.size] = source.reshape(-1)[start : start + place.size]
            if not self.known:
                np.copyto(destinations[1], np.array(counts, np.uint32).reshape(destinations[1].shape))

        outputs = [self.dst] if self.known else [self.dst, self._row(RECEIVED)]
        masks = (_mask(self.dst, places), *([] if self.known else [None]), _mask(self.src, sent))
        starts = [int(each[DISPLACEMENTS, column]) for each in tables]
        elements = self._elements(places, starts, COUNTS * len(ranks) + column if read else None)
        used = [self.used for _ in read]
        touches, operands = (*masks, *used), [self.src, *read]
        return self.exchange(ranks, outputs, operands, moves, elements, touches=touches, alike=False, **agreed)

    def _elements(self, places: list[Chunk], starts: list[int], counted: int | None) -> Elements:
        """Return the element map: chunks of the sources at the places in all ranks' metadata; the rest stays as it was.

        ``counted``: the element of the metadata with the number of sent elements; None if the metadata are no operand.
        """
        filled = sorted(chunk for chunk in places if chunk.size)
        ends = [0, *(chunk.start + chunk.size for chunk in filled)]
        gaps = zip(ends, [*(chunk.start for chunk in filled), self.dst.size], strict=True)
        found: list[tuple[From, Rule]] = [
            (From("dsts[0]"), Parts(tuple((start, start, end - start) for start, end in gaps if start < end)))
        ]
        received: list[tuple[From, Rule]] = []
        for at, (rank, place, start) in enumerate(zip(self.ranks, places, starts, strict=True)):
            found.append((From("srcs[0]", rank), Parts(((place.start, start, place.size),))))
            if counted is not None:
                found.append((From("srcs[1]", rank), All()))
                received.append((From("srcs[1]", rank), Parts(((at, counted, 1),))))
        if self.known:
            return Elements((("dsts[0]", tuple(found)),))
        return Elements((("dsts[0]", tuple(found)), ("dsts[1]", tuple(received))))

    @cached_property
    def used(self) -> Array:
        """The elements of the metadata that are inputs, as a mask."""
        used = np.zeros((self.metadata.shape[-2], len(self.ranks)), np.bool_)
        used[:RECEIVED, : self.columns] = True
        if self.placed:
            used[PLACES] = True
        return used.reshape(self.metadata.shape)

    def read(self) -> Array:
        """Return the current metadata [rows, ranks]; NK401 if a used element was never written."""
        missing, used = self.metadata.unwritten(), self.used
        if missing is not None and (missing & used).any():
            row, column = (int(each[0]) for each in np.nonzero((missing & used).reshape(used.shape[-2:])))
            message = (
                f"row {row} of `metadata_tensor`, {describe(self.metadata)}, is read and was never written in column "
                f"{column}"
            )
            self.check.refuse("NK401", message, self.metadata)
        return np.array(self.metadata.read(), np.int64).reshape(used.shape[-2:])

    def _row(self, row: int) -> NkiTensor:
        """Return a row of the metadata as a view."""
        found = self.metadata[:, row : row + 1, :] if self.metadata.on_chip else self.metadata[row : row + 1, :]
        assert isinstance(found, NkiTensor)
        return found

    def _chunk(self, mine: Array, column: int) -> Chunk:
        """NK402: what a column sends lies in the source."""
        chunk = Chunk(int(mine[DISPLACEMENTS, column]), int(mine[COUNTS, column]))
        if chunk.size and chunk.start + chunk.size > self.src.size:
            message = (
                f"column {column} of `metadata_tensor` sends {chunk.size} elements from {chunk.start} on; `srcs[0]`, "
                f"{describe(self.src)}, has {self.src.size}"
            )
            remedy = (
                f"Mend column {column} of the metadata: its start and its count together are at most {self.src.size}."
            )
            self.check.refuse("NK402", message, self.src, remedy=remedy)
        return chunk

    def _places(self, counts: list[int], mine: Array) -> list[Chunk]:
        """NK402, NK607: where the chunks of the ranks land; in their slots, or apart from each other."""
        slot = self.dst.size // len(counts)
        starts = [int(each) for each in mine[PLACES]] if self.placed else [slot * each for each in range(len(counts))]
        places = [Chunk(start, count) for start, count in zip(starts, counts, strict=True)]
        for sender, (start, count) in enumerate(places):
            room = self.dst.size - start if self.placed else slot
            if count > room:
                there = f"from element {start} on" if self.placed else "slot of it"
                message = (
                    f"rank number {sender} of the group sends {count} elements; `dsts[0]`, {describe(self.dst)}, has "
                    f"room for {max(room, 0)} in the {there}"
                )
                remedy = (
                    f"Mend the counts and places in the metadata of rank number {sender}, or make `dsts[0]` larger."
                )
                self.check.refuse("NK402", message, self.dst, remedy=remedy)
        ends = 0
        for start, count in sorted(each for each in places if each.size):
            if start < ends:
                not_modelled(
                    f"{self.name}: chunks overlap in `dsts[0]`, from element {start} on; which one stays is unknown",
                    remedy="Let row 3 of the metadata place the chunks apart from each other.",
                )
            ends = start + count
        return places


def _mask(tensor: NkiTensor, chunks: list[Chunk]) -> Array:
    """Return the elements of some chunks."""
    flags = np.zeros(tensor.size, np.bool_)
    for start, count in chunks:
        flags[start : start + count] = True
    return flags.reshape(tensor.shape)
