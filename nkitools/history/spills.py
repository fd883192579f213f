"""Predicts spills: the tensors that a compiler moves from SBUF to HBM and back for lack of room.

The law: a used tensor is in SBUF as a whole. If there is no room for it, the tensors with the farthest next use leave.
A tensor that leaves stores the elements that HBM lacks and that will be read again. A tensor that comes back loads the
elements that its instruction touches, and gets its room some instructions earlier, if tensors with later uses can
leave. An instruction that reads nothing, such as a memset, is moved to the first use of the tensor that it fills.

On NeuronCore-v3 (nki 0.6.0, a blocked matmul of float32 with 50 settings that spilled) it meets the bytes that the
profiler counted within 7 % in the median, and with no instructions ahead, which is the one fitted number, within 9 %.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.history.liveness import Liveness
from nkitools.history.tiles_on_chip import Demand, Tiles
from nkitools.record.columns import Columns
from nkitools.record.dataflow.accesses import Accesses, row_lengths
from nkitools.record.dataflow.cells import cells_of
from nkitools.record.dataflow.last_accesses import ADDS, MAY_WRITE, READS, WRITES
from nkitools.record.record import Record

AHEAD = 24  # instructions; fitted to the bytes of 50 kernels that spilled on NeuronCore-v3, together
_EARLY = 4  # so much of SBUF, one part in four, may hold tensors that came back ahead
_NEVER = 1 << 62


class Spilled(NamedTuple):
    """A tensor that spills: its program, by number, and the bytes that move to HBM and back."""

    owner: int
    storage: int
    stored: int
    loaded: int

    @property
    def nbytes(self) -> int:
        """Return the bytes that move, both ways."""
        return self.stored + self.loaded


def spills_of(record: Record, columns: Columns, chip: Generation) -> list[Spilled]:
    """Return the tensors of a run that a compiler of the modern dialect spills; [] if it refuses the run (NK202)."""
    tiles, capacity = Tiles.of_memories(record, chip)["SBUF"], chip.sbuf_automatic_bytes
    if not tiles.may_exceed(capacity):
        return []
    liveness = Liveness(Accesses(record, columns), tiles)
    exceeding = liveness.exceeding(capacity)
    if not exceeding or liveness.too_large_alone(capacity):
        return []
    return foreseen_spills(liveness, exceeding, capacity)


def foreseen_spills(
    liveness: Liveness, exceeding: Sequence[Demand], capacity: int, ahead: int = AHEAD
) -> list[Spilled]:
    """Return the tensors that spill, program by program.

    ``exceeding``: the demands of programs that exceed ``capacity`` bytes of a partition. ``ahead``: the number of
    instructions before its use at which a tensor comes back.
    """
    found, missing = list[Spilled](), {each.owner for each in exceeding}
    for moves in (True, False):  # a program that fits once memsets are moved is taken as its author ordered it
        if missing:
            found += _spilled(_uses_of(liveness, moves=moves), liveness, missing, capacity, ahead)
            missing -= {each.owner for each in found}
    return found


def _spilled(uses: _Uses, liveness: Liveness, wanted: set[int], capacity: int, ahead: int) -> Iterator[Spilled]:
    """Yield the spilled tensors of the ``wanted`` programs."""
    tiles, owners = liveness.tiles, liveness.owners[uses.tiles]
    for owner in sorted(wanted):
        core = _Core(capacity * tiles.quarters)
        core.run(uses, np.flatnonzero(owners == owner), tiles.areas, ahead)
        moved: dict[int, list[int]] = {}
        for each in core.lives.values():
            total = moved.setdefault(each.tile, [0, 0])
            total[0] += each.stored
            total[1] += each.loaded
        yield from (Spilled(owner, int(tiles.ids[tile]), *total) for tile, total in moved.items() if any(total))


class _Uses(NamedTuple):
    """The uses of tiles in the order of the compiler's instructions.

    ``times``: the instruction of each use. ``nexts``: the instruction of the next use in the same life, `_NEVER` for
    the last. ``cells``: for each view of the record the cells that it touches, and the bytes of all cells.
    """

    tiles: Array
    lives: Array
    times: Array
    nexts: Array
    reads: Array
    writes: Array
    views: Array
    cells: list[tuple[Array, Array]]


def _uses_of(liveness: Liveness, *, moves: bool) -> _Uses:
    """Return the uses of tiles.

    ``moves``: whether an instruction that reads nothing is moved to the first use of the tensor that it fills.
    """
    accesses, (owners, begins, _) = liveness.accesses, liveness.element_lives
    room = accesses.columns.plans.size + 1
    reads = (accesses.kinds & (READS | ADDS | MAY_WRITE)) != 0
    tiles = liveness.tiles.places_of(accesses.storages)
    at = np.flatnonzero((tiles >= 0) & ~liveness.passing[tiles])
    positions, tiles = accesses.positions[at], tiles[at]
    lives = np.searchsorted(owners * room + begins, tiles * room + positions, "right") - 1
    reading = np.isin(positions, accesses.positions[reads])
    times = _moved_to_use(lives, positions, reading, room) if moves else positions
    order = np.lexsort((at, times))
    at, tiles, lives, times = at[order], tiles[order], lives[order], times[order]
    stretches, which = np.unique(lives * room + times, return_inverse=True)
    nexts = np.append(np.where(np.diff(stretches // room) == 0, stretches[1:] % room, _NEVER), _NEVER)
    writes = (accesses.kinds[at] & (WRITES | MAY_WRITE)) != 0
    views = accesses.views.which[at]
    return _Uses(tiles, lives, times, nexts[which.reshape(-1)], reads[at], writes, views, _cells(accesses, views))


def _moved_to_use(lives: Array, positions: Array, reading: Array, room: int) -> Array:
    """Return when each use takes place: if its instruction reads nothing, at the next use of its life that reads."""
    order = np.argsort(lives, kind="stable")
    keys = lives[order] * room + positions[order]
    later = np.minimum.accumulate(np.where(reading[order], keys, _NEVER)[::-1])[::-1]
    times = np.empty_like(positions)
    times[order] = np.where(later // room == lives[order], later, keys) % room
    return times


def _cells(accesses: Accesses, wanted: Array) -> list[tuple[Array, Array]]:
    """Return for each view of the record the cells that it touches, and the bytes of all cells of its tensor."""
    views, nothing = accesses.views, np.zeros(0, np.int64)
    found, known = [(nothing, nothing)] * views.storages.size, dict[bytes, list[tuple[Array, Array]]]()
    looks = np.stack((views.layouts, views.byte_offsets, views.parts), 1)
    for members in _by_storage(views.storages, np.unique(wanted)):
        key = looks[members].tobytes()
        if key not in known:
            shown = accesses.shown(members, views.byte_offsets[members])
            cells = cells_of(shown, row_lengths(accesses.record.storages[int(views.storages[members[0]])]))
            places, touched = np.unique(np.concatenate(list(cells.by_view.values())), return_inverse=True)
            rows, columns = np.divmod(places, cells.columns.size)
            nbytes = np.diff(cells.rows)[rows] * np.diff(cells.columns)[columns]
            ends = np.cumsum([each.size for each in cells.by_view.values()])[:-1]
            known[key] = [(each, nbytes) for each in np.split(touched.reshape(-1), ends)]
        for member, each in zip(members.tolist(), known[key], strict=True):
            found[member] = each
    return found


def _by_storage(storages: Array, views: Array) -> Iterator[Array]:
    """Yield the views of each storage."""
    order = views[np.argsort(storages[views], kind="stable")]
    yield from np.split(order, np.flatnonzero(np.diff(storages[order])) + 1)


class _Life:
    """The life of a tile: which of its cells are on the chip, which in HBM, and when each is read the last time."""

    def __init__(self, tile: int, area: int, nbytes: Array) -> None:
        self.tile, self.area, self.nbytes = tile, area, nbytes
        self.here, self.there = np.zeros((2, nbytes.size), np.bool_)
        self.last_read = np.full(nbytes.size, -1)
        self.next = _NEVER
        self.is_here = self.is_in_hbm = self.is_early = False
        self.stored = self.loaded = 0

    def touch(self, cells: Array, *, reads: bool, writes: bool) -> None:
        """Use some cells; load those that are read and are only in HBM."""
        if reads:
            self.loaded += int(self.nbytes[cells[self.there[cells] & ~self.here[cells]]].sum())
        self.here[cells] = self.is_here = True
        if writes:
            self.there[cells] = False

    def leave(self, now: int) -> None:
        """Move to HBM, and count the bytes that HBM lacks and that are read again."""
        moved = self.here & ~self.there & (self.last_read > now)
        self.stored += int(self.nbytes[moved].sum())
        self.there |= moved
        self.here[:] = False
        self.is_here, self.is_in_hbm = False, True


class _Core:
    """The SBUF of a core: its lives, and its free bytes of a partition, summed over the quarters of all partitions."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.early = room // _EARLY  # the part that is free for lives that come back before their use
        self.lives: dict[int, _Life] = {}
        self.farthest: list[tuple[int, int]] = []  # a heap of next uses, negative, and lives; some entries are outdated
        self.waiting = (_NEVER, -1)  # the next use to bring a life back for: its time, and the life

    def run(self, uses: _Uses, mine: Array, areas: Array, ahead: int) -> None:
        """Go through the uses of the core's program (``mine``), and count the bytes that spill."""
        names = "tiles", "lives", "times", "nexts", "reads", "writes", "views"
        rows = list(zip(*(getattr(uses, name)[mine].tolist() for name in names), strict=True))
        for tile, number, time, _, reads, _, view in rows:
            cells, nbytes = uses.cells[view]
            life = self.lives.get(number) or self.lives.setdefault(number, _Life(tile, int(areas[tile]), nbytes))
            if reads:
                life.last_read[cells] = time
        arrivals = ((time, number) for _, number, time, *_ in rows)
        self.waiting = next(arrivals, (_NEVER, -1))
        for time, group in groupby(rows, itemgetter(2)):
            used = set()
            for _, number, _, following, reads, writes, view in group:
                life = self.lives[number]
                self.room -= 0 if life.is_here else life.area
                self.early += life.area if life.is_early else 0
                life.is_early = False
                life.touch(uses.cells[view][0], reads=reads, writes=writes)
                life.next = following
                used.add(number)
            self._make_room(time, used)
            self._bring_back(time, arrivals, ahead)

    def _make_room(self, now: int, used: set[int]) -> None:
        """Move lives out until there is room, those with the farthest next use first; free ended lives, too."""
        while self.room < 0 and self._let_go(now, now):
            pass
        for number in used:
            life = self.lives[number]
            if life.next == _NEVER:
                life.is_here = False
                self.room += life.area
            else:
                heappush(self.farthest, (-life.next, number))

    def _let_go(self, now: int, beyond: int) -> bool:
        """Move out the life with the farthest next use; return False if none is used later than ``beyond``."""
        while self.farthest:
            following, number = self.farthest[0]
            life = self.lives[number]
            is_last = life.is_here and life.next == -following
            if is_last and life.next <= beyond:
                return False
            heappop(self.farthest)
            if is_last:
                self.early += life.area if life.is_early else 0
                life.is_early = False
                life.leave(now)
                self.room += life.area
                return True
        return False

    def _bring_back(self, now: int, arrivals: Iterator[tuple[int, int]], ahead: int) -> None:
        """Bring lives back from HBM that are used soon, in place of others that are used later."""
        until = now + ahead
        while self.waiting[0] <= until:
            time, number = self.waiting
            life = self.lives[number]
            if time > now and life.is_in_hbm and not life.is_here:
                if self.early < life.area:
                    return
                while self.room < life.area and self._let_go(now, time):
                    pass
                if self.room < life.area:
                    return
                life.is_here = life.is_early = True
                self.early -= life.area
                self.room -= life.area
                heappush(self.farthest, (-life.next, number))
            self.waiting = next(arrivals, (_NEVER, -1))
