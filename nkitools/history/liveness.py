"""The lives of the tensors on chip, and the bytes of a partition that they take together.

A tensor is alive from its first write to its last read. A write to all of it ends the life of its earlier value:
between the last read of that value and the write its bytes are free, since a compiler may place the two values
separately. If tensors do not fit by this count, their lives are computed element by element, which takes longer: a
tensor that is filled part by part is free from the last read of its earlier elements to the first of these writes.
Tiles that one call of the author's makes and uses up, a part of nl.softmax say, do not count: the compiler's needs
inside are not documented. Nor do tensors with an address, for whose places the author is responsible (NK204, NK402).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from nkitools.chip.layout import LAYOUTS
from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import NamedTuple, replace
from nkitools.history.tiles_on_chip import Demand, Tiles
from nkitools.record.beside_rows import ascending
from nkitools.record.columns import program_numbers

if TYPE_CHECKING:
    from nkitools.record.dataflow.accesses import Accesses


class _Accesses(NamedTuple):
    """The accesses to tiles, sorted by tile, then as they were."""

    tiles: Array
    positions: Array
    written: Array
    begins: Array  # whether a life begins here


class Liveness:
    """The lives of the tiles of a run."""

    def __init__(self, accesses: Accesses, tiles: Tiles) -> None:
        self._record = accesses.record
        self.accesses = accesses
        self.tiles = tiles

    def oversized(self, capacity: int) -> Demand | None:
        """Return the demand at the first use of a tile that alone exceeds ``capacity``; None if none does."""
        accesses = self._uses
        found = np.flatnonzero(self.tiles.nbytes[accesses.tiles] > capacity)
        if not found.size:
            return None
        first = found[[np.argmin(accesses.positions[found])]]
        return self._demand(int(accesses.positions[first[0]]), accesses.tiles[first])

    def busiest(self) -> Demand | None:
        """Return the demand of the instruction whose own operands need the most; of several the first."""
        accesses, count = self._uses, self.tiles.ids.size
        counts = ~self.passing[accesses.tiles]
        pairs = ascending(accesses.positions[counts] * count + accesses.tiles[counts])
        if not pairs.size:
            return None
        positions, tiles = np.divmod(pairs, count)
        firsts = np.flatnonzero(np.diff(positions, prepend=-1))
        position = positions[firsts[np.argmax(np.add.reduceat(self.tiles.areas[tiles], firsts))]]
        return self._demand(int(position), tiles[positions == position])

    def too_large_alone(self, capacity: int) -> Demand | None:
        """Return the demand of one tile, or of one instruction's operands, above a capacity; None if none is."""
        found = self.oversized(capacity) or self.busiest()
        return found if found is not None and found.nbytes > capacity else None

    def exceeding(self, capacity: int) -> list[Demand]:
        """Return the demands of programs that exceed ``capacity``, with lives computed element by element."""
        if all(demand.nbytes <= capacity for demand in self.peaks()):
            return []
        return [demand for demand in self.peaks(by_element=True) if demand.nbytes > capacity]

    def fits_when_emptied_early(self, capacity: int) -> bool:
        """Return whether the tensors fit if each is copied elsewhere as soon as the last write to it is done."""
        return all(demand.nbytes <= capacity for demand in self._peaks(*self._filling))

    def peaks(self, *, by_element: bool = False) -> Iterator[Demand]:
        """Yield each program's largest demand of live tensors, at the first instruction that has it."""
        yield from self._peaks(*(self.element_lives if by_element else self._lives))

    def _peaks(self, tiles: Array, begins: Array, ends: Array) -> Iterator[Demand]:
        """Yield each program's largest demand, for the given lives."""
        owners = self.owners[tiles]
        for owner in ascending(owners).tolist():
            own = owners == owner
            mine, first, last = tiles[own], begins[own], ends[own]
            areas = self.tiles.areas[mine]
            edges = np.concatenate([first, last + 1])
            times = ascending(edges)
            changes = np.bincount(np.searchsorted(times, edges), np.concatenate([areas, -areas]))
            position = int(times[np.argmax(np.cumsum(changes))])
            alive = (first <= position) & (position <= last)
            yield replace(self.tiles.demand(position, mine[alive], first[alive]), owner=owner)

    def lives(self) -> tuple[Array, Array, Array]:
        """Return for each life its storage, and the positions of its begin and end."""
        tiles, begins, ends = self._lives
        return self.tiles.ids[tiles], begins, ends

    def _demand(self, position: int, tiles: Array) -> Demand:
        """Return the demand of ``tiles`` at an instruction, as if their lives began at their first accesses."""
        accesses = self._uses
        return self.tiles.demand(position, tiles, accesses.positions[np.searchsorted(accesses.tiles, tiles)])

    @cached_property
    def _uses(self) -> _Accesses:
        from nkitools.record.dataflow.last_accesses import MAY_WRITE, WRITES

        every, known = self.accesses, self.tiles
        tiles = known.places_of(every.storages)
        found = np.flatnonzero(tiles >= 0)
        tiles, positions, kinds, layouts = (
            each[found] for each in (tiles, every.positions, every.kinds, every.layouts)
        )
        written = (kinds & (WRITES | MAY_WRITE)) != 0
        begins = (kinds == WRITES) & (every.numbers[found] < 0) & (_nbytes_of(layouts) == known.whole[tiles])
        order = np.argsort(tiles, kind="stable")
        tiles, positions, written, begins = tiles[order], positions[order], written[order], begins[order]
        again = (tiles[1:] == tiles[:-1]) & (positions[1:] == positions[:-1])
        begins[1:] &= ~again  # an instruction that also reads the tile goes on with its life
        begins[:-1] &= ~again
        begins[np.flatnonzero(np.diff(tiles, prepend=-1))] = True
        return _Accesses(tiles, positions, written, begins)

    @cached_property
    def _lives(self) -> tuple[Array, Array, Array]:
        """For each life its tile, and the positions of its begin and end."""
        accesses = self._uses
        firsts = np.flatnonzero(accesses.begins)
        if not firsts.size:
            return firsts, firsts, firsts
        tiles, begins = accesses.tiles[firsts], accesses.positions[firsts]
        # A tensor that is never read takes its place while it is written.
        ends = np.maximum.reduceat(np.where(accesses.written, -1, accesses.positions), firsts)
        counts = ~self.passing[tiles]
        return tiles[counts], begins[counts], np.maximum(begins, ends)[counts]

    @cached_property
    def element_lives(self) -> tuple[Array, Array, Array]:
        """The lives of the tensors, computed element by element."""
        from nkitools.history.element_lives import element_lives as lives_by_element

        tiles, begins, ends = lives_by_element(self.accesses, self.tiles.places_of(self.accesses.storages))
        counts = ~self.passing[tiles]
        return tiles[counts], begins[counts], ends[counts]

    @cached_property
    def _filling(self) -> tuple[Array, Array, Array]:
        """The lives by element, each only to the last write to its tile."""
        tiles, begins, ends = self.element_lives
        accesses, room = self._uses, len(self.accesses.columns.heads) + 1
        writes = (accesses.tiles * room + accesses.positions)[accesses.written]
        last = writes[np.searchsorted(writes, tiles * room + ends, "right") - 1] % room
        return tiles, begins, np.maximum(begins, last)

    @cached_property
    def passing(self) -> Array:
        """For each tile whether a single call of the author's makes, writes and reads it."""
        tiles, positions, written, _ = self._uses
        passing = np.zeros(self.tiles.ids.size, np.bool_)
        firsts = np.flatnonzero(np.diff(tiles, prepend=-1))
        if not firsts.size:
            return passing
        sites = self.accesses.columns.sites[positions]
        alone = np.minimum.reduceat(sites, firsts) == np.maximum.reduceat(sites, firsts)
        used = np.logical_or.reduceat(written, firsts) & ~np.logical_and.reduceat(written, firsts)
        for first in firsts[alone & used].tolist():
            passing[tiles[first]] = self._is_made_at(int(tiles[first]), int(sites[first]))
        return passing

    def _is_made_at(self, tile: int, site: int) -> bool:
        """Return whether the call at ``site`` made a tile; True, too, if a function returns the value of that call."""
        record = self._record
        return record.storages[int(self.tiles.ids[tile])].site == site or record.sites[site].returned

    @cached_property
    def owners(self) -> Array:
        """For each tile the number of the program that touches it first; each program has a core of its own."""
        record = self._record
        owners = np.zeros(self.tiles.ids.size, np.int64)
        if len(record.programs) > 1:
            tiles, positions, _, _ = self._uses
            firsts = np.flatnonzero(np.diff(tiles, prepend=-1))
            owners[tiles[firsts]] = program_numbers(record, positions[firsts])
        return owners


def _nbytes_of(layouts: Array) -> Array:
    """Return the bytes of a view of each layout; ``layouts``: their numbers."""
    known = ascending(layouts)
    nbytes = np.array([LAYOUTS[number].nbytes for number in known.tolist()], np.int64)
    return np.asarray(nbytes[np.searchsorted(known, layouts)])
