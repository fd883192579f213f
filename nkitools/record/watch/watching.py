"""Values that instructions write, kept for watches: a page that shows tiles, a probe on a named tensor.

Nothing here runs unless a watch is on: the record of a run then has an observer for the writes of each instruction.
Values are kept up to a budget of bytes. Later values are kept as summaries, and the run counts them. After many
summaries (`MOST_PICTURES`) further ones have numbers only, since their pictures would fill the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

import numpy as np

from nkitools.chip.memory import POISON_INTEGER, Layout, Storage
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import MEMORY_NAMES
from nkitools.facts.light_classes import dataclass
from nkitools.record.loop_counters import Moment, moment_of
from nkitools.record.record import Observer, Record
from nkitools.record.rows import Access, Row
from nkitools.record.run_listeners import WATCHES, added
from nkitools.record.source_sites import Site, author_frame

if TYPE_CHECKING:
    from nkitools.record.watch.written import Written

BUDGET = 256 << 20  # bytes of values of one run that a watch keeps, unless it says otherwise
MOST_PICTURES = 1 << 14  # summaries of a run that have a picture, up to 15 KiB: later ones have their numbers only

Wanted = Callable[[str, str, int], bool]
"""Decides from a tensor's name, and the file and line of an instruction, whether its write is kept."""


class Watcher(Protocol):
    """Looks at writes while a run goes on."""

    def wants(self, record: Record, position: int, storage: int, tensor: str, site: Site) -> bool:
        """Return whether a write to ``tensor`` is kept; called while its instruction, at ``position``, is issued."""

    def look(self, record: Record, position: int) -> None:
        """Look at the writes up to ``position``, now final; called after each instruction and before each print."""


@dataclass(eq=False)
class Watch:
    """The writes to keep (None: all of them, and the arguments and results), and the budget in bytes."""

    wanted: Wanted | None
    budget: int
    watcher: Watcher | None = None


@contextmanager
def watching(wanted: Wanted | None = None, budget: int = BUDGET, watcher: Watcher | None = None) -> Iterator[None]:
    """Keep the values that instructions write, in ``run.writes`` of the runs inside a block.

    ``wanted(tensor, file, line)`` returns whether to keep a write; None keeps all of them, and the values of arguments
    and results. For each run values are kept up to ``budget`` bytes (by default 256 MiB); a value that no longer fits
    is kept as its summary (``run.reduced_writes`` counts these), after 16,384 summaries without its picture. Nested
    watches have budgets of their own, and ``run.writes`` has each write that one of them wants once. ``watcher``: an
    object whose ``wants`` chooses further writes, and whose ``look`` is called after each instruction; see `Watcher`.
    ValueError for a negative budget.
    """
    if budget < 0:
        raise ValueError(f"budget: must be a number of bytes, it is {budget}")
    with added(WATCHES, Watch(wanted, budget, watcher)):
        yield


def watched_bytes() -> int:
    """Return the budget in bytes of the watch that keeps all writes; 0 if there is none."""
    return max((watch.budget for watch in WATCHES.get() if watch.wanted is None), default=0)


class WatchedValues(Observer):
    """An observer that keeps written values, in `Record.writes`, `Record.inputs` and `Record.results`."""

    def __init__(self, watches: tuple[Watch, ...]) -> None:
        self._watches = watches
        self._all = any(watch.wanted is None for watch in self._watches)
        self._left = [watch.budget for watch in self._watches]
        self._storages: WeakValueDictionary[int, Storage] = WeakValueDictionary()

    def allocated(self, record: Record, storage: Storage) -> None:
        """Remember a storage, and the value of an argument at the kernel's begin."""
        self._storages[storage.id] = storage
        if storage.full and self._all:
            whole = NkiTensor.whole(storage)
            record.inputs.append(self._written(record, -1, "", whole, -1, self._all_watches()))

    def issued(self, record: Record, row: Row) -> None:
        """Keep the values that the instruction wrote."""
        for access in row.writes():
            storage = self._storages.get(access.storage)
            if storage is not None:
                self._look_at(record, row, storage, access)
        self._let_watchers_look(record, row.position)

    def printed(self, record: Record) -> None:
        """Let probes print earlier writes before a device print."""
        self._let_watchers_look(record, record.count)

    def _let_watchers_look(self, record: Record, position: int) -> None:
        for watch in self._watches:
            if watch.watcher is not None:
                watch.watcher.look(record, position)

    def returned(self, record: Record, tensors: Sequence[NkiTensor]) -> None:
        """Keep the values of the results after all programs have ended."""
        if self._all:
            every = self._all_watches()
            record.results = [self._written(record, record.count, "", each, -1, every) for each in tensors]

    def _look_at(self, record: Record, row: Row, storage: Storage, access: Access) -> None:
        place = record.sites[row.site]
        tensor = record.name_of(storage.id)
        watches = [
            number
            for number, watch in enumerate(self._watches)
            if watch.wanted is None
            or watch.wanted(tensor, place.file, place.line)
            or (watch.watcher is not None and watch.watcher.wants(record, row.position, storage.id, tensor, place))
        ]
        if watches:
            view = _view_of(storage, access.layout, access.byte_offset)
            scattered = view.layout != access.layout
            record.writes.append(
                self._written(record, row.position, row.plan.name, view, row.site, watches, scattered=scattered)
            )

    def _written(
        self,
        record: Record,
        position: int,
        name: str,
        view: NkiTensor,
        site: int,
        watches: list[int],
        *,
        scattered: bool = False,
    ) -> Written:
        from nkitools.chip.full_precision_shadow import digits_of  # for runs that are watched
        from nkitools.record.prints.summaries import numbers_only, summary_of
        from nkitools.record.watch.written import Written

        storage, place = view.storage, record.sites[site]
        value, unwritten = digits_of(view), view.unwritten()
        moment = (record.moment or moment_of(author_frame(2))) if site >= 0 else Moment({}, ())
        reduced = None
        if self._afford(watches, value.nbytes + (0 if unwritten is None else unwritten.nbytes)):
            value = _copied(value, unwritten)
        else:
            summarised = summary_of if record.reduced_writes < MOST_PICTURES else numbers_only
            reduced = summarised(value, unwritten)
            record.reduced_writes += 1
        return Written(
            position,
            name,
            record.name_of(storage.id),
            MEMORY_NAMES[storage.memory],
            view.dtype.name,
            view.shape,
            value if reduced is None else None,
            unwritten if reduced is None else None,
            record.programs[-1][1] if record.programs else (),
            moment.loops,
            place.file if site >= 0 else "",
            place.line,
            record.rank,
            storage.id,
            storage.shape,
            view.array.strides,
            view.byte_offset,
            scattered,
            moment.callers,
            reduced,
        )

    def _afford(self, watches: list[int], nbytes: int) -> bool:
        """Return whether a watch that wants a value has room for it, which is then taken from all that want it."""
        if not any(self._left[number] >= nbytes for number in watches):
            return False
        for number in watches:
            self._left[number] = max(0, self._left[number] - nbytes)
        return True

    def _all_watches(self) -> list[int]:
        return [number for number, watch in enumerate(self._watches) if watch.wanted is None]


def _copied(value: Array, unwritten: Array | None) -> Array:
    """Return a copy, as the next instruction may overwrite it; unwritten elements as prints show them: NaN, or 4."""
    copied = np.array(value)
    if unwritten is not None:
        if value.dtype.names:
            np.copyto(copied.view(f"u{value.itemsize}"), POISON_INTEGER, where=unwritten)
        else:
            is_float = value.dtype.kind not in "iub"
            np.copyto(copied, np.array(np.nan if is_float else POISON_INTEGER, value.dtype), where=unwritten)
    return copied


def _view_of(storage: Storage, layout: Layout, byte_offset: int) -> NkiTensor:
    """Return the destination as a view; the whole tensor if an index chooses elements that the record lacks."""
    strides = layout.strides
    chosen = any(stride == 0 and size > 1 for stride, size in zip(strides, layout.shape, strict=True))
    if chosen:
        return NkiTensor.whole(storage)
    view = NkiTensor.__new__(NkiTensor)
    view._set(storage, storage.window(layout.shape, layout.dtype, byte_offset, strides), layout.dtype, byte_offset)
    return view
