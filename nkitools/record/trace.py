"""The events of a kernel that is not made of a NeuronCore's instructions: of a grid of Pallas, or of GpSimd cores.

They are kept while values are watched (`nkitools.record.watch.watching.watching`), for the page of the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from nkitools.chip.numerics import Array

MOST_EVENTS = 200_000  # of one traced kernel; the later ones are counted


@dataclass(frozen=True)
class Touch:
    """A part of a buffer that an event reads or writes: its number, and start and stop along each dimension.

    ``steps``: how far apart the elements are along each dimension.
    """

    buffer: int
    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class TracedBuffer:
    """A buffer of a traced kernel.

    ``kind``: ``input``, ``output``, ``scalar``, ``window`` (the block of an operand that lies in fast memory),
    ``scratch``, ``scoped``, ``block`` (of TCM). ``block``: the shape of the blocks that it comes in, () for a whole
    one; of a tensor that an operator takes as if it was flattened, the tensor's own shape. ``of``: the number of the
    array that a window shows a block of, -1 for another buffer. ``unit``: the device or the core that it belongs to,
    -1 for all.
    """

    name: str
    kind: str
    memory: str
    dtype: str
    shape: tuple[int, ...]
    block: tuple[int, ...] = ()
    of: int = -1
    unit: int = -1


@dataclass(frozen=True)
class Event:
    """One event: its kind, step of the grid, device, core, and line of the author's.

    ``engine``: ``pipeline``, ``kernel``, ``dma``, ``semaphore``; of an operator ``tcm``, ``stream``, ``element``.
    ``value``: the contents of the written part afterwards, None if not kept. ``begun``: if this event ends a DMA, the
    number of the event that began it, else -1. ``note``: a number in words, such as a count.
    """

    kind: str
    engine: str
    step: int
    unit: int
    core: int
    file: str
    line: int
    reads: tuple[Touch, ...] = ()
    writes: tuple[Touch, ...] = ()
    value: Array | None = None
    begun: int = -1
    note: str = ""


@dataclass(eq=False)
class Trace:
    """The events of one kernel in the order of their simulation, which is not their order in time.

    ``kind``: ``grid`` (Pallas) or ``cores`` (custom operators). ``points``: the point of the grid of each step.
    ``given``: the first contents of arguments, by the number of the buffer, as far as the budget goes.
    ``left_out``: the number of events that were not kept; ``without_value``: the number of writes beyond the budget.
    """

    kind: str
    name: str
    file: str = ""
    line: int = 0
    grid: tuple[int, ...] = ()
    parallel: tuple[bool, ...] = ()
    points: list[tuple[int, ...]] = field(default_factory=list)
    buffers: list[TracedBuffer] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    given: dict[int, Array] = field(default_factory=dict)
    left_out: int = 0
    without_value: int = 0
    budget: int = 0  # bytes of values that may still be kept

    def add(self, event: Event) -> int:
        """Add an event and return its number; -1 if there are too many events."""
        if len(self.events) >= MOST_EVENTS:
            self.left_out += 1
            return -1
        value = event.value
        if value is not None:
            if value.nbytes > self.budget:
                self.without_value += 1
                event = replace(event, value=None)
            else:
                self.budget -= value.nbytes
        self.events.append(event)
        return len(self.events) - 1

    def give(self, buffer: int, value: Array) -> None:
        """Keep the first contents of an argument."""
        if value.nbytes <= self.budget:
            self.budget -= value.nbytes
            self.given[buffer] = value.copy()

    def files(self) -> set[str]:
        """Return the author's files that the trace names."""
        return {self.file, *(event.file for event in self.events)}


def traces_of(run: Any) -> list[Trace]:
    """Return the traces of a run; [] for a kind of run without traces."""
    return list(getattr(run, "traces", ()))
