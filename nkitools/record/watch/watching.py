"""What instructions write, kept as values for whoever watches: a page that shows tiles, a probe on a named tensor.

Nothing here runs unless somebody watches: a launch then makes a record of another class, whose ``issued`` also looks at
what the instruction has written. The values are kept up to a budget of bytes; what comes after it is kept as a summary,
and the run counts those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol
from weakref import WeakValueDictionary

import numpy as np

from nkitools.chip.full_precision_shadow import digits_of
from nkitools.chip.memory import POISON_INTEGER, Layout, Storage
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import MEMORY_NAMES
from nkitools.record.loop_counters import author_frames, counters
from nkitools.record.prints.device_print import Print
from nkitools.record.prints.summaries import Summary, summary_of
from nkitools.record.record import Record
from nkitools.record.rows import Row
from nkitools.record.source_sites import UNKNOWN, author_frame

BUDGET = 256 << 20  # bytes of values of one run that a watch keeps, unless it says otherwise

Wanted = Callable[[str, str, int], bool]
"""Whether a write is kept: by the tensor's name, and the file and line of the instruction."""


@dataclass(frozen=True, eq=False)
class Written:
    """What an instruction has written into one of its destinations, as it is right after the instruction.

    ``position``: which instruction of its record that is, -1 for what was there before the first one (`Record.inputs`).
    ``value``: the elements of the destination, in the dtype that they have there (in full precision float32), or None
    where the budget was used up: then only the ``summary`` is left, which every other write has, too (of its blocks the
    means are kept then, not the extremes). ``unwritten``:
    which elements nothing has ever been written to (under a mask, say), None where there are none.
    ``storage``, ``byte_offset`` and ``strides`` (in bytes) say where in its tensor, of ``tensor_shape``, it lies. Where
    an index on the device chooses the elements (scatter), it is all of the tensor, and ``scattered``. ``callers`` are
    the author's lines (file, line) that called the function in which ``line`` is, the innermost first.
    """

    position: int
    instruction: str
    tensor: str
    memory: str
    dtype: str
    shape: tuple[int, ...]
    value: Array | None
    unwritten: Array | None
    program: tuple[int, ...]
    loops: dict[str, int]
    file: str
    line: int
    rank: int | None
    storage: int
    tensor_shape: tuple[int, ...]
    strides: tuple[int, ...]
    byte_offset: int
    scattered: bool = False
    callers: tuple[tuple[str, int], ...] = ()
    reduced: Summary | None = None  # what is left where the value is not kept

    @cached_property
    def summary(self) -> Summary:
        """Minimum, maximum, mean, how many elements are NaN, infinite and unwritten, the corners, a coarse picture."""
        if self.reduced is not None:
            return self.reduced
        assert self.value is not None
        return summary_of(self.value, self.unwritten)


class Watcher(Protocol):
    """Looks at writes while a run goes on."""

    def wants(self, record: Record, storage: int, tensor: str, file: str, line: int) -> bool:
        """Whether a write to ``tensor`` is kept; called in the instruction that has just written."""

    def look(self, record: Record, position: int) -> None:
        """The writes up to ``position`` will change no more; called after each instruction and before each print."""


@dataclass(eq=False)
class _Watch:
    """Which writes somebody wants to keep (None: all of them, and the arguments and results), and how many bytes."""

    wanted: Wanted | None
    budget: int
    watcher: Watcher | None = None


_watches: ContextVar[tuple[_Watch, ...]] = ContextVar("nkitools_watches", default=())


@contextmanager
def watching(wanted: Wanted | None = None, budget: int = BUDGET, watcher: Watcher | None = None) -> Iterator[None]:
    """Keep what the instructions of runs started inside write, in ``run.writes``.

    ``wanted(tensor, file, line)`` says which writes; None keeps all of them, and what the arguments and results hold.
    Of each run values are kept up to ``budget`` bytes, after that summaries (``run.reduced_writes`` counts them). Where
    several watch, each has its own budget, and ``run.writes`` has what any of them wants, once. ValueError for a
    negative budget. ``watcher`` wants further writes, and looks at all of them as they come.
    """
    if budget < 0:
        raise ValueError(f"budget: must be a number of bytes, it is {budget}")
    watch = _Watch(wanted, budget, watcher)
    _watches.set((*_watches.get(), watch))
    try:
        yield
    finally:
        # Not by a token: those of generator fixtures may be closed in another context than they were opened in.
        _watches.set(tuple(each for each in _watches.get() if each is not watch))


def new_record(kind: type[Record]) -> Record:
    """A record of this kind, and one that keeps values where somebody watches."""
    if not _watches.get():
        return kind()
    watching_kind: type[Record] = type(f"Watching{kind.__name__}", (WatchingRecord, kind), {})
    return watching_kind()


class WatchingRecord(Record):
    """A record that also keeps what instructions write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[Written] = []
        self.inputs: list[Written] = []
        self.results: list[Written] = []
        self._watches = _watches.get()
        self._all = any(watch.wanted is None for watch in self._watches)
        self._left = [watch.budget for watch in self._watches]
        self._storages: WeakValueDictionary[int, Storage] = WeakValueDictionary()

    def allocated(self, storage: Storage) -> None:
        """Remember a storage, and what an argument holds when the kernel begins."""
        super().allocated(storage)
        self._storages[storage.id] = storage
        if storage.full and self._all:
            self.inputs.append(self._written(-1, "", NkiTensor.whole(storage), -1, self._all_watches()))

    def issued(self, plan: Any, site: int, operands: list[int]) -> None:
        """Add an instruction, which has been carried out."""
        for access in Row(self.count, plan, site, operands).writes():
            storage = self._storages.get(access.storage)
            if storage is not None:
                self._look_at(plan.name, storage, access.layout, access.byte_offset, site)
        super().issued(plan, site, operands)
        self._tell(self.count - 3)  # the last one may yet be folded into the one before it

    def add_print(self, record: Print) -> None:
        """Keep a device print, behind those of probes on what was written before it."""
        self._tell(self.count)
        super().add_print(record)

    def _tell(self, position: int) -> None:
        for watch in self._watches:
            if watch.watcher is not None:
                watch.watcher.look(self, position)

    def folded(self) -> None:
        """What the copy has written is what the instruction before it wrote."""
        while self.writes and self.writes[-1].position == self.count:
            copied = self.writes.pop()
            name = self.plan_at(self.count - 1).name
            if self.writes and self.writes[-1].position == self.count - 1:
                self.writes.pop()
            self.writes.append(replace(copied, position=self.count - 1, instruction=name))

    def returned(self, tensors: Sequence[NkiTensor]) -> None:
        """Keep what the results hold when all programs have ended."""
        super().returned(tensors)
        if self._all:
            self.results = [self._written(self.count, "", each, -1, self._all_watches()) for each in tensors]

    def _look_at(self, name: str, storage: Storage, layout: Layout, byte_offset: int, site: int) -> None:
        place = self.sites[site] if site >= 0 else UNKNOWN
        tensor = self.name_of(storage.id)
        watches = [
            number
            for number, watch in enumerate(self._watches)
            if watch.wanted is None
            or watch.wanted(tensor, place.file, place.line)
            or (watch.watcher is not None and watch.watcher.wants(self, storage.id, tensor, place.file, place.line))
        ]
        if watches:
            view = _view_of(storage, layout, byte_offset)
            self.writes.append(self._written(self.count, name, view, site, watches, scattered=view.layout != layout))

    def _written(
        self, position: int, name: str, view: NkiTensor, site: int, watches: list[int], *, scattered: bool = False
    ) -> Written:
        storage, place = view.storage, self.sites[site] if site >= 0 else UNKNOWN
        value, unwritten = digits_of(view), view.unwritten()
        frame = author_frame(2) if site >= 0 else None
        reduced = None
        if self._afford(watches, value.nbytes + (0 if unwritten is None else unwritten.nbytes)):
            value = _copied(value, unwritten)
        else:
            reduced = summary_of(value, unwritten, means_only=True)
            self.reduced_writes += 1
        return Written(
            position,
            name,
            self.name_of(storage.id),
            MEMORY_NAMES[storage.memory],
            view.dtype.name,
            view.shape,
            value if reduced is None else None,
            unwritten if reduced is None else None,
            self.programs[-1][1] if self.programs else (),
            counters(frame),
            place.file if site >= 0 else "",
            place.line,
            self.rank,
            storage.id,
            storage.shape,
            view.array.strides,
            view.byte_offset,
            scattered,
            tuple((each.f_code.co_filename, each.f_lineno) for each in author_frames(frame)[1:]),
            reduced,
        )

    def _afford(self, watches: list[int], nbytes: int) -> bool:
        """Whether a watch that wants a value has room for it, which is then taken from all that want it."""
        if not any(self._left[number] >= nbytes for number in watches):
            return False
        for number in watches:
            self._left[number] = max(0, self._left[number] - nbytes)
        return True

    def _all_watches(self) -> list[int]:
        return [number for number, watch in enumerate(self._watches) if watch.wanted is None]


def _copied(value: Array, unwritten: Array | None) -> Array:
    """A copy, as the next instruction may overwrite it; with what prints show of unwritten elements: NaN, or 4."""
    copied = np.array(value)
    if unwritten is not None:
        if value.dtype.names:
            np.copyto(copied.view(f"u{value.itemsize}"), POISON_INTEGER, where=unwritten)
        else:
            is_float = value.dtype.kind not in "iub"
            np.copyto(copied, np.array(np.nan if is_float else POISON_INTEGER, value.dtype), where=unwritten)
    return copied


def _view_of(storage: Storage, layout: Layout, byte_offset: int) -> NkiTensor:
    """The destination as a view; all of its tensor where the record knows only that an index chooses its elements."""
    strides = layout.strides
    chosen = any(stride == 0 and size > 1 for stride, size in zip(strides, layout.shape, strict=True))
    if chosen:
        return NkiTensor.whole(storage)
    view = NkiTensor.__new__(NkiTensor)
    view._set(storage, storage.window(layout.shape, layout.dtype, byte_offset, strides), layout.dtype, byte_offset)
    return view
