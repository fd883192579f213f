"""Dependences between iterations (NK501): no iteration of nl.affine_range may write or read another one's writes,
since AWS runs them in any order, or at once. Sums and products into one place, ``+=`` and its kin, are no dependence.

Judged when the loop has ended, from the record: which elements of the tensors that are older than the loop each
iteration has written and read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from nkitools.chip.core import CORE, Core
from nkitools.chip.numerics import Array
from nkitools.dialects.legacy.kernels.error_codes import placed
from nkitools.dialects.legacy.kernels.immutable_inputs import IMMUTABLE
from nkitools.dialects.legacy.kernels.kernel_state import form_of
from nkitools.dialects.legacy.kernels.traced_loops import TracedRange
from nkitools.record.dataflow.accesses import pieces_of_storage
from nkitools.record.dataflow.pieces import View
from nkitools.record.record import StorageRecord
from nkitools.record.source_sites import author_frame
from nkitools.rules.finding import report

# How an instruction writes: it overwrites, or it updates what is there in a way that takes any order.
PLAIN, SUM, PRODUCT, MAXIMUM, MINIMUM = 1, 2, 3, 4, 5
_FAMILIES = {
    "add": SUM,
    "subtract": SUM,
    "multiply": PRODUCT,
    "divide": PRODUCT,
    "maximum": MAXIMUM,
    "minimum": MINIMUM,
}


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


@dataclass(frozen=True, slots=True)
class _Access:
    """One operand of an instruction: by which iteration, at which site, which elements."""

    iteration: int
    position: int
    site: int
    kind: int
    view: View


@dataclass(slots=True)
class _Accesses:
    """All writes and reads of one storage in a loop."""

    writes: list[_Access] = field(default_factory=list)
    reads: list[_Access] = field(default_factory=list)

    @property
    def may_depend(self) -> bool:
        """Return whether the elements matter: not where all writes are sums, say, and there is no other read."""
        kinds = {each.kind for each in self.writes}
        only_updates = len(kinds) == 1 and PLAIN not in kinds and all(each.kind != PLAIN for each in self.reads)
        return bool(kinds) and not only_updates


class _Loop:
    """The iterations of one loop: their numbers, and where the record stood when each began."""

    def __init__(self, core: Core) -> None:
        record = core.record
        self.core = core
        self.form = form_of()
        self.form.loops += 1
        self.site = record.site()
        self.newest = next(reversed(record.storages), -1)
        self.values: list[int] = []
        self.starts: list[int] = []
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
        self.form.loops -= 1

    def compare(self) -> None:
        """All iterations have ended: compare them."""
        for storage, accesses in self._accesses().items():
            if accesses.may_depend and not self.form.reported & {(storage, each.site) for each in accesses.writes}:
                self._compare(storage, accesses)
        if not self.form.loops:
            self.form.updates.clear()

    def _accesses(self) -> dict[int, _Accesses]:
        """Return the accesses to storages older than the loop, in program order."""
        record, found = self.core.record, dict[int, _Accesses]()
        updates = self.form.updates
        oldest, left_out = self.newest + 1, IMMUTABLE.get()
        others = len(record.programs) > self.turns  # had a turn in between
        ends = [*self.starts[1:], record.count]
        for iteration, (first, end) in enumerate(zip(self.starts, ends, strict=True)):
            for row, number in record.accesses_before(oldest, first, end):
                position = row.position
                storage, layout, byte_offset, written = row.access(number)
                if storage in left_out or (others and record.program_at(position) != self.core.program):
                    continue
                accesses = found.get(storage)
                if accesses is None:
                    accesses = found[storage] = _Accesses()
                view = View(layout, byte_offset, record.beside.part_as_run(position, number))
                (accesses.writes if written else accesses.reads).append(
                    _Access(iteration, position, row.site, updates.get(position, PLAIN), view)
                )
        return found

    def _compare(self, storage: int, accesses: _Accesses) -> None:
        if len({each.iteration for each in (*accesses.writes, *accesses.reads)}) < 2:
            return
        elements = _Elements(self.core.record.storages[storage], accesses)
        for access in accesses.writes:
            other = elements.write(access)
            if other is not None:
                self._report(storage, access, other, "write")
                return
        if storage in self.form.placed:
            return  # in allocated kernels AWS keeps the order of dependent instructions; its own pipelines rely on it
        for access in accesses.reads:
            other = None if access.kind != PLAIN else elements.read(access)
            if other is not None:
                self._report(storage, access, other, "read")
                return

    def _report(self, storage: int, access: _Access, other: int, verb: str) -> None:
        record = self.core.record
        known, loop = record.storages[storage], record.sites[self.site]
        self.form.reported.add((storage, access.site))
        counter = loop.bound or "i"
        first, second = self.values[other], self.values[access.iteration]
        tensor = f"\x00{storage}\x00({known.memory}, {known.dtype} {list(known.shape)})"
        where = f"of the nl.affine_range in line {loop.line}"
        if verb == "write":
            both = f"iterations {counter}={first} and {counter}={second}"
            sentence = f"{both} {where} write the same elements of {tensor}"
        else:
            sentence = f"iteration {counter}={second} {where} reads elements of {tensor} that {counter}={first} writes"
        loops = record.loops(record.states[access.position])
        with placed(record.sites[access.site], author_frame(2), program=self.core.program, loops=loops):
            report(
                "NK501",
                sentence,
                remedy=f"Index the tensor with `{counter}`, create it inside the loop, add up with +=, or loop over "
                "nl.sequential_range.",
            )


class _Elements:
    """The iteration that wrote each piece of a storage, which all accesses touch as a whole or not at all."""

    def __init__(self, known: StorageRecord, accesses: _Accesses) -> None:
        views = list(dict.fromkeys(each.view for each in (*accesses.writes, *accesses.reads)))
        pieces = pieces_of_storage(known, views)
        self.pieces = pieces.by_view(views)
        self.owners: Array = np.full(pieces.total, -1, np.int32)
        self.kinds: Array = np.zeros(pieces.total, np.int8)
        self.shared: Array = np.zeros(pieces.total, np.bool_)

    def write(self, access: _Access) -> int | None:
        """Take the elements for an iteration; another one that has written them, where that is a dependence."""
        places = self.pieces[access.view]
        owners, kinds, shared = (each[places] for each in (self.owners, self.kinds, self.shared))
        others = (owners >= 0) & (owners != access.iteration)
        wrong = others | shared
        if access.kind != PLAIN:
            wrong = wrong & (kinds != access.kind)
        if wrong.any():
            return _first(owners[wrong & others], access)
        self.owners[places] = access.iteration
        self.kinds[places] = np.where((kinds == 0) | (kinds == access.kind), access.kind, PLAIN)
        self.shared[places] = shared | others
        return None

    def read(self, access: _Access) -> int | None:
        """Return an iteration that has written elements which another one reads."""
        places = self.pieces[access.view]
        owners = self.owners[places]
        others = (owners >= 0) & (owners != access.iteration)
        wrong = others | self.shared[places]
        return _first(owners[others], access) if wrong.any() else None


def _first(iterations: Array, access: _Access) -> int:
    """Return the first of other iterations; the one before where it is known only that there is one."""
    return int(iterations.min()) if iterations.size else access.iteration - 1
