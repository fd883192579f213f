"""NK511: an instruction mixes values of two loop turns, since a line wrote fewer elements in the later one.

Most runs have no line that writes one tile on chip through views of different shapes (`short_writes`), and are skipped.
For the others the instructions are followed in order: for each element of a tile, its last writer, and whether its
value comes from an earlier turn. The findings of a form of run are kept for the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import prod

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.element_boxes import boxes_text
from nkitools.chip.numerics import Array
from nkitools.facts.kept import Kept
from nkitools.facts.light_classes import NamedTuple
from nkitools.record.columns import Columns, distinct
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.record.rows import Access, Row
from nkitools.rules.finding import report

_MOST_ELEMENTS = 1 << 22  # of all tiles that are followed

_known = Kept[bytes, "tuple[_Mixture, ...]"](
    "instructions that mix turns, by the form of the run", 256, "each has arrays of elements"
)


class _Mixture(NamedTuple):
    """An instruction that mixes values of two turns.

    ``operand``: the number of the operand. ``old``: a mask of its elements of an earlier turn. ``written``: the
    position of the shorter write in the later turn, -1 if unknown.
    """

    position: int
    operand: int
    old: Array
    written: int


def report_stale_rows(columns: Columns, reporter: Reporter, short: list[int]) -> None:
    """Report NK511 once for each line; ``short``: the positions of `short_writes`."""
    form = _form(columns)
    if form not in _known:
        _known[form] = tuple(_Turns(columns, short).mixtures())
    sites: set[int] = set()
    for each in _known[form]:
        row = columns.record.row(each.position)
        if row.site not in sites:
            sites.add(row.site)
            _report(columns.record, reporter, row, each)


def _form(columns: Columns) -> bytes:
    """Return a digest of all that the rule depends on: plans, lines, and views of storages numbered from 0."""
    from hashlib import blake2b

    storages = columns.storages
    digest = blake2b(digest_size=16)
    for part in (columns.heads, storages - storages.min(initial=0), columns.layouts, columns.byte_offsets):
        digest.update(part.tobytes())
    names = sorted((number, each.plan.name) for number, each in columns.record.plans.items())
    digest.update(repr((names, [(site.file, site.line) for site in columns.record.sites.all])).encode())
    return digest.digest()


class _Tile:
    """The elements of a tile: the position of the last write, and whether the value is of an earlier turn."""

    def __init__(self, shape: tuple[int, ...], itemsize: int) -> None:
        self.itemsize = itemsize
        self.writer = np.full(prod(shape), -1, np.int32)
        self.old = np.zeros(prod(shape), np.bool_)
        self.short: set[int] = set()  # the positions of the short writes to it

    def writer_of(self, access: Access) -> Array:
        """Return the last writers of the elements of a view, as a view that can be written."""
        return self._seen(self.writer, access)

    def old_of(self, access: Access) -> Array:
        """Return a mask of a view's old elements, as a view that can be written."""
        return self._seen(self.old, access)

    def _seen(self, values: Array, access: Access) -> Array:
        layout, width = access.layout, values.itemsize
        strides = [stride // self.itemsize * width for stride in layout.strides]
        return np.ndarray(layout.shape, values.dtype, values, access.byte_offset // self.itemsize * width, strides)


class _Turns:
    """The instructions of a run, followed for elements of earlier turns."""

    def __init__(self, columns: Columns, short: list[int]) -> None:
        self._record, self._sites = columns.record, columns.sites
        self._storages, self._firsts = columns.storages.tolist(), columns.first_operands.tolist()
        self._replaced: dict[int, list[int]] = {position: [] for position in short}
        # Only a short write makes old elements, and only what reads them carries them on.
        self._followed = {each.storage for at in short for each in self._record.row(at).accesses() if each.written}
        self._tiles: dict[int, _Tile | None] = {}
        self._room = _MOST_ELEMENTS

    def mixtures(self) -> Iterator[_Mixture]:
        """Yield the instructions that mix values of two turns, in order."""
        for position, (first, end) in enumerate(pairwise(self._firsts)):
            if self._followed.isdisjoint(self._storages[first:end]):
                continue
            row = self._record.row(position)
            if row.plan.names_only:
                continue
            accesses = row.accesses()
            olds = []
            for operand, access in enumerate(accesses):
                old, written = (None, -1) if access.written else self._old(access)
                olds.append(old)
                if old is not None and old.any() and self._mixes(row, accesses, access, old):
                    yield _Mixture(position, operand, old, written)
            for access in accesses:
                if access.written:
                    # A write that also reads its tile adds to the elements that are there.
                    if any(each.storage == access.storage and not each.written for each in accesses):
                        self._replaced.pop(row.position, None)
                    self._write(row, access, olds)

    def _tile(self, access: Access) -> _Tile | None:
        """Return the tile of a view; None for HBM, tiles with an address, and beyond the memory limit."""
        if access.storage not in self._tiles:
            known = self._record.storages.get(access.storage)
            found = None
            if known is not None and access.layout.on_chip and not known.has_address:
                self._room -= prod(known.shape)
                found = _Tile(known.shape, as_dtype(known.dtype).itemsize) if self._room >= 0 else None
            self._tiles[access.storage] = found
        tile = self._tiles[access.storage]
        return None if tile is None or access.layout.reinterprets else tile

    def _old(self, access: Access) -> tuple[Array | None, int]:
        """Return a mask of a view's elements of an earlier turn, and the position of the later, shorter write."""
        tile = self._tile(access) if access.storage in self._followed else None
        if tile is None:
            return None, -1
        old, last = tile.old_of(access).copy(), -1
        for position in sorted(tile.short):
            writers, replaced = tile.writer_of(access), self._replaced.get(position, [])
            if replaced and (writers == position).any():
                earlier = np.isin(writers, replaced)
                if earlier.any():
                    old, last = old | earlier, position
        return old, last

    def _mixes(self, row: Row, accesses: list[Access], read: Access, old: Array) -> bool:
        """Return whether an instruction makes one element of old and new ones, or stores both to HBM."""
        rows = old.reshape(old.shape[0], -1)
        if row.plan.name.startswith("nc_matmul"):
            return bool((rows.any(axis=0) & ~rows.all(axis=0)).any())
        written = [each for each in accesses if each.written]
        if any(not each.layout.on_chip for each in written):
            return not bool(old.all())
        least = min((each.layout.elements for each in written), default=read.layout.elements)
        return least < read.layout.elements and bool((rows.any(axis=1) & ~rows.all(axis=1)).any())

    def _write(self, row: Row, access: Access, olds: list[Array | None]) -> None:
        made = _made(row, access, olds)
        if made is not None:
            self._followed.add(access.storage)
        tile = self._tile(access) if access.storage in self._followed else None
        if tile is None:
            return
        writers = tile.writer_of(access)
        if row.position in self._replaced:  # a short write: note the writes that it replaces a part of
            whole = writers.reshape(-1)
            few = np.append(whole[:1], whole[1:][whole[1:] != whole[:-1]])  # neighbours mostly have one writer
            before = np.array(sorted(distinct(few) - {-1}), np.int64)
            mine = before[self._sites[before] == self._sites[row.position]]
            # One call may issue a copy of all and a masked instruction onto it: that is one turn.
            name = row.plan.name
            self._replaced[row.position] = [each for each in mine.tolist() if self._record.row(each).plan.name == name]
            tile.short.add(row.position)
        writers[...] = row.position
        tile.old_of(access)[...] = False if made is None else made


def _made(row: Row, access: Access, olds: list[Array | None]) -> Array | None:
    """Return a mask of the elements that an instruction makes of old ones; None if it reads none, or for a matmul."""
    some = [old for old in olds if old is not None and old.any()]
    if row.plan.name.startswith("nc_matmul") or not some:
        return None
    made = np.zeros(access.layout.shape, np.bool_)
    for old in some:
        if old.size == made.size:
            turned = "transpose" in row.plan.name
            made |= (old.reshape(old.shape[0], -1).T if turned else old).reshape(made.shape)
        elif made.shape[0] == old.shape[0]:
            rows = old.reshape(old.shape[0], -1).all(axis=1)
            made |= rows.reshape(-1, *[1] * (made.ndim - 1))
    return made


def _report(record: Record, reporter: Reporter, row: Row, found: _Mixture) -> None:
    access = row.access(found.operand)
    name = record.name_of(access.storage) or row.plan.operands[found.operand]
    site = record.site_at(found.written) if found.written >= 0 else None
    by = f": line {site.line} has written fewer elements in the later one" if site is not None else ""
    message = (
        f"{row.plan.name} mixes two turns: of its operand `{name}`, {boxes_text(name, found.old)} is of an earlier "
        f"turn than the rest{by}"
    )
    with reporter.placed(record.sites[row.site]):
        report("NK511", message)
