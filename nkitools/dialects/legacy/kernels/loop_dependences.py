"""Dependences between iterations (NK501): no iteration of nl.affine_range may write or read another one's writes,
since AWS runs them in any order, or at once. Sums and products into one place, ``+=`` and its kin, are no dependence.

Three forms are warnings, since right public kernels have them: a tile on chip that carries a value into a later
iteration which has no effect afterwards, a tile on chip that every iteration overwrites with another tile by
nisa.dma_copy, and a ring of rows that iterations load from HBM for later ones. They need the order of the program.

The check runs when the loop has ended. It looks up in the record which elements of older tensors each iteration has
written and read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nkitools.chip.core import CORE, Core
from nkitools.chip.memory_region import MEMORY_NAMES, MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.dialects.legacy.kernels.error_codes import placed
from nkitools.dialects.legacy.kernels.immutable_inputs import IMMUTABLE
from nkitools.dialects.legacy.kernels.kernel_state import form_of
from nkitools.dialects.legacy.kernels.traced_loops import TracedRange
from nkitools.record.dataflow.accesses import row_lengths
from nkitools.record.dataflow.elements import Forms
from nkitools.record.dataflow.pieces import View, pieces_of
from nkitools.record.source_sites import author_frame
from nkitools.rules.finding import report

# How an instruction writes: it overwrites (PLAIN), or it updates elements by an operator for which order is no matter.
PLAIN, SUM, PRODUCT, MAXIMUM, MINIMUM = 1, 2, 3, 4, 5
_FAMILIES = {
    "add": SUM,
    "subtract": SUM,
    "multiply": PRODUCT,
    "divide": PRODUCT,
    "maximum": MAXIMUM,
    "minimum": MINIMUM,
}
_ON_CHIP = (MEMORY_NAMES[MemoryRegion.sbuf], MEMORY_NAMES[MemoryRegion.psum])
_MOST_KEPT = 1024  # accesses whose dependence is kept for loops that look the same


class AffineRange(TracedRange):
    """``nl.affine_range``: a loop whose iterations are compared when it has ended."""

    def __iter__(self) -> Iterator[int]:
        core = CORE.get()
        if core is None or len(self.range) < 2:
            yield from super().__iter__()
            return
        loop = _Loop(core)
        try:
            for value in super().__iter__():
                loop.begin(value)
                yield value
        finally:
            loop.close()
        loop.compare()


def note_update(what: str, count: int) -> None:
    """Note that instructions since the record held ``count`` of them update their destination by ``what``."""
    core = CORE.get()
    form = form_of()
    if core is not None and form.loops:
        for position in range(count, core.record.count):
            form.updates[position] = _FAMILIES.get(what, PLAIN)


class _Touch(NamedTuple):
    """An access of one operand: the iteration, the kind of access, and the elements."""

    iteration: int
    kind: int
    written: bool
    view: View


class _Access(NamedTuple):
    """One operand of an instruction, older than the loop that the instruction is in."""

    position: int
    site: int
    storage: int
    written: bool
    view: View


class _Loop:
    """The iterations of one loop: their numbers, and the position of the record at the begin of each."""

    def __init__(self, core: Core) -> None:
        record = core.record
        self.core = core
        self.form = form_of()
        self.form.loops.append(self)
        self.site = record.site()
        self.oldest = next(reversed(record.storages), -1) + 1  # of the storages that the loop makes
        self.values: list[int] = []
        self.starts: list[int] = []
        self.inner: list[tuple[int, int, list[_Access]]] = []  # of loops in it: first and end position, and accesses
        self.turns = len(record.programs)
        self.kept = record.keeps_parts, record.keeps_all_parts
        record.keeps_parts = record.keeps_all_parts = True

    def begin(self, value: int) -> None:
        """Begin an iteration."""
        self.values.append(value)
        self.starts.append(self.core.record.count)

    def close(self) -> None:
        """Leave the loop, at its end or before."""
        record = self.core.record
        record.keeps_parts, record.keeps_all_parts = self.kept
        self.form.loops.remove(self)

    def compare(self) -> None:
        """All iterations have ended: compare them."""
        end = self.core.record.count
        accesses = self._accesses(end)
        of_storages: dict[int, list[_Access]] = {}
        for each in accesses:
            of_storages.setdefault(each.storage, []).append(each)
        for storage, mine in of_storages.items():
            self._compare(storage, mine)
        if not self.form.loops:
            self.form.updates.clear()
        elif self.form.loops[-1].starts[0] <= self.starts[0]:
            self.form.loops[-1].inner.append((self.starts[0], end, accesses))

    def _accesses(self, end: int) -> list[_Access]:
        """Return the accesses to storages older than the loop, in program order; inner loops have found theirs."""
        found: list[_Access] = []
        first = self.starts[0]
        for start, after, accesses in self.inner:
            found += self._between(first, start)
            found += [each for each in accesses if each.storage < self.oldest]
            first = after
        found += self._between(first, end)
        return found

    def _between(self, first: int, end: int) -> Iterator[_Access]:
        record, left_out = self.core.record, IMMUTABLE.get()
        others = len(record.programs) > self.turns  # had a turn in between
        for row, number in record.accesses_before(self.oldest, first, end):
            storage, layout, byte_offset, written = row.access(number)
            if storage in left_out or (others and record.program_at(row.position) != self.core.program):
                continue
            view = View(layout, byte_offset, record.beside.part_as_run(row.position, number))
            yield _Access(row.position, row.site, storage, written, view)

    def _compare(self, storage: int, accesses: Sequence[_Access]) -> None:
        """Report the first dependence between iterations that access a storage."""
        if not any(each.written for each in accesses):
            return
        accesses = sorted(accesses, key=lambda each: (each.position, each.written))
        kinds, starts = self._kinds(accesses), self.starts
        touches = tuple(
            _Touch(bisect_right(starts, each.position) - 1, kind, each.written, each.view)
            for each, kind in zip(accesses, kinds, strict=True)
        )
        known = self.core.record.storages[storage]
        # In allocated kernels AWS keeps the order of dependent instructions; its own pipelines rely on it.
        keeps_order = storage in self.form.placed
        is_kept = len(touches) <= _MOST_KEPT and all(each.view.part is None for each in touches)
        find = _first_dependence if is_kept else _first_dependence.__wrapped__
        found = find(touches, row_lengths(known), keeps_order)
        if found is not None and not self.form.reported & {(storage, each.site) for each in accesses if each.written}:
            at, other = found
            in_order = known.memory in _ON_CHIP and self._needs_order_only(accesses, touches, row_lengths(known))
            self._report(accesses[at], touches[at].iteration, other, in_order=in_order)

    def _kinds(self, accesses: Sequence[_Access]) -> list[int]:
        """Return the kind of each access. An update reads its destination as an update, and other operands plainly.

        The first operand with the view that is written counts as the destination.
        """
        updates = self.form.updates
        updated = {(each.position, each.view) for each in accesses if each.written and each.position in updates}
        writing = {position for position, _ in updated}
        read = Counter((each.position, each.view) for each in accesses if not each.written)

        def kind(each: _Access) -> int:
            place = each.position, each.view
            adds = each.position in writing and not each.written and (place not in updated or read[place] > 1)
            return PLAIN if adds else updates.get(each.position, PLAIN)

        return [kind(each) for each in accesses]

    def _needs_order_only(
        self, accesses: Sequence[_Access], touches: tuple[_Touch, ...], row_lengths: tuple[int, ...]
    ) -> bool:
        """Return whether a dependence is one of the three forms that compilers have run in the program's order."""
        readers, sources = _flows(touches, row_lengths)
        written = [self._dma_source(each.position) for each in accesses if each.written]
        if readers & sources:  # no iteration goes on with what it has read where all that is written comes from HBM
            return None not in written and not set(written) & set(_ON_CHIP)
        return bool(readers) or all(each in _ON_CHIP for each in written)

    def _dma_source(self, position: int) -> str | None:
        """Return the memory that a DMA copies from into a tile; None for other instructions."""
        record = self.core.record
        if record.plan_at(position).name != "dma_copy":
            return None
        memories = {record.storages[each.storage].memory for each in record.accesses(position) if not each.written}
        return memories.pop() if len(memories) == 1 else None

    def _report(self, access: _Access, iteration: int, other: int, *, in_order: bool) -> None:
        record, storage = self.core.record, access.storage
        known, loop = record.storages[storage], record.sites[self.site]
        self.form.reported.add((storage, access.site))
        counter = loop.bound or "i"
        first, second = self.values[other], self.values[iteration]
        tensor = f"\x00{storage}\x00 ({known.memory}, {known.dtype} {list(known.shape)})"
        where = f"of the nl.affine_range in line {loop.line}"
        if access.written:
            both = f"iterations {counter}={first} and {counter}={second}"
            sentence = f"{both} {where} write the same elements of {tensor}"
        else:
            sentence = f"iteration {counter}={second} {where} reads elements of {tensor} that {counter}={first} writes"
        if in_order:
            sentence += "; compilers have kept the order of such iterations, which the documents do not promise"
        loops = record.loops(record.states[access.position])
        with placed(record.sites[access.site], author_frame(2), program=self.core.program, loops=loops):
            report(
                "NK501",
                sentence,
                remedy=f"Index the tensor with `{counter}`, create it inside the loop, add up with +=, or loop over "
                "nl.sequential_range.",
                severity="warning" if in_order else "",
                facts={
                    "tensor": f"\x00{storage}\x00",
                    "memory": known.memory,
                    "dtype": known.dtype,
                    "shape": known.shape,
                    "loop_line": loop.line,
                },
            )


@lru_cache(256)  # the same kernel makes the same accesses in every run
def _first_dependence(
    touches: tuple[_Touch, ...], row_lengths: tuple[int, ...], keeps_order: bool
) -> tuple[int, int] | None:
    """Return the first access to a storage that depends on another iteration, and that iteration; None if there is
    none.

    ``row_lengths``: of rows that may divide the storage. ``keeps_order``: ignore reads.
    """
    kinds = {each.kind for each in touches if each.written}
    only_updates = len(kinds) == 1 and PLAIN not in kinds and all(each.kind != PLAIN for each in touches)
    if only_updates or len({each.iteration for each in touches}) < 2:
        return None
    elements = _Elements(touches, row_lengths)
    for at, touch in enumerate(touches):
        other = elements.write(touch) if touch.written else None
        if other is not None:
            return at, other
    for at, touch in enumerate(() if keeps_order else touches):
        other = elements.read(touch) if not touch.written and touch.kind == PLAIN else None
        if other is not None:
            return at, other
    return None


def _flows(touches: Sequence[_Touch], row_lengths: Sequence[int]) -> tuple[set[int], set[int]]:
    """Return the iterations that read elements which an earlier one wrote last, and those earlier iterations."""
    elements = _Elements(touches, row_lengths)
    readers: set[int] = set()
    sources: set[int] = set()
    for touch in touches:
        places = elements.pieces[touch.view]
        if not touch.written or touch.kind != PLAIN:
            owners = np.unique(elements.owners[places])
            earlier = {each for each in owners.tolist() if 0 <= each != touch.iteration}
            sources |= earlier
            readers |= {touch.iteration} if earlier else set()
        if touch.written:
            elements.owners[places] = touch.iteration
    return readers, sources


class _Elements:
    """The iteration that wrote each piece of a storage, which all accesses touch as a whole or not at all."""

    def __init__(self, touches: Sequence[_Touch], row_lengths: Sequence[int]) -> None:
        views = list(dict.fromkeys(each.view for each in touches))
        pieces = pieces_of(views, row_lengths, Forms())
        self.pieces = pieces.by_view(views)
        self.owners: Array = np.full(pieces.total, -1, np.int32)
        self.kinds: Array = np.zeros(pieces.total, np.int8)
        self.shared: Array = np.zeros(pieces.total, np.bool_)

    def write(self, touch: _Touch) -> int | None:
        """Note a write of an iteration; return another iteration that wrote the elements, if that is a dependence."""
        places = self.pieces[touch.view]
        owners, kinds, shared = (each[places] for each in (self.owners, self.kinds, self.shared))
        others = (owners >= 0) & (owners != touch.iteration)
        wrong = others | shared
        if touch.kind != PLAIN:
            wrong = wrong & (kinds != touch.kind)
        if wrong.any():
            return _first(owners[wrong & others], touch)
        self.owners[places] = touch.iteration
        self.kinds[places] = np.where((kinds == 0) | (kinds == touch.kind), touch.kind, PLAIN)
        self.shared[places] = shared | others
        return None

    def read(self, touch: _Touch) -> int | None:
        """Return another iteration that has written elements of this read; None if there is none."""
        places = self.pieces[touch.view]
        owners = self.owners[places]
        others = (owners >= 0) & (owners != touch.iteration)
        wrong = others | self.shared[places]
        return _first(owners[others], touch) if wrong.any() else None


def _first(iterations: Array, touch: _Touch) -> int:
    """Return the first of ``iterations``; if they are unknown, the iteration before that of the access."""
    return int(iterations.min()) if iterations.size else touch.iteration - 1
