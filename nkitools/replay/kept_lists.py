"""The lists of steps that are kept, each with the run that it was recorded in; and how a list comes about."""

from __future__ import annotations

import math
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.prints.print_sequence import Prints
from nkitools.record.record import Record
from nkitools.replay.gathers import ChosenRows
from nkitools.replay.passes import shortened
from nkitools.replay.purity import Impure, Reads
from nkitools.replay.recording import Recording
from nkitools.replay.step_list import StepList
from nkitools.rules.finding import Finding

MOST_FORMS = 128  # calls of some form that are remembered
MOST_BYTES = 256 << 20  # of the memory of all lists
_WIDEST = 8  # bytes of an element
_STEP_BYTES = 2048  # a step's own, about
MOST_MISSES = 3  # runs one after the other that evidence has sent to the kernel's Python


@dataclass(eq=False)
class Recorded:
    """A recorded run: its steps, and what every replay of it has in common with it."""

    steps: StepList
    records: list[Record]  # of each rank
    findings: list[Finding]
    places: list[Any]  # what the kernel returned on each rank, with a place for each tensor
    results: list[tuple[tuple[int, ...], np.dtype[Any]]]  # the storages of the results
    inputs: list[tuple[tuple[int, ...], Any]]  # shapes and dtypes of the storages of the arguments
    peak_bytes: int  # that the run took of the host
    # Of a call whose arguments are plain, and whose results are whole storages: where the storages of the arguments
    # are among its arrays.
    order: list[int] | None = None


@dataclass(eq=False)
class Form:
    """Calls of one kernel with arguments of one form."""

    function: Callable[[], Any]  # returns the kernel's function, None where it is gone
    reads: Reads | None = None  # from the recorded run on
    reason: str = ""  # why none of them is replayed
    runs: int = 0
    issued: int = 0  # instructions of the last of them
    misses: int = 0  # runs one after the other whose values have called for a look at them
    recorded: Recorded | None = None

    def refuse(self, reason: str) -> None:
        """Let no run of this form be replayed."""
        self.reason, self.reads, self.recorded = reason, None, None

    @property
    def rests(self) -> bool:
        """Return whether a run is left to the kernel's Python after so many: the 4th, 8th, 16th one tries again."""
        return self.misses >= MOST_MISSES and self.misses & (self.misses - 1) != 0

    @property
    def nbytes(self) -> int:
        """The memory of its list."""
        steps = None if self.recorded is None else self.recorded.steps
        return 0 if steps is None else steps.nbytes + _STEP_BYTES * len(steps.steps)


@dataclass(eq=False)
class KeptForms:
    """The forms that were met last."""

    forms: OrderedDict[Hashable, Form] = field(default_factory=OrderedDict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def form(self, form: Hashable, function: Any) -> Form:
        """Return the form of a function's call; a new one where what its code reads has changed."""
        key = (id(function), form)
        with self.lock:
            try:
                found = self.forms.get(key)
            except TypeError:
                raise Impure("its arguments, or the settings of its launch, cannot be compared") from None
            if found is None or found.function() is not function or not (found.reads is None or found.reads.hold()):
                found = self.forms[key] = Form(_weakly(function))
            self.forms.move_to_end(key)
            while len(self.forms) > MOST_FORMS:
                self.forms.popitem(last=False)
            return found

    def keep(self, form: Form, recorded: Recorded) -> None:
        """Keep a list, and forget the oldest ones where all of them together have too much memory."""
        with self.lock:
            form.recorded = recorded
            total = sum(each.nbytes for each in self.forms.values())
            for each in list(self.forms.values()):
                if total <= MOST_BYTES:
                    return
                total -= each.nbytes
                each.recorded, each.runs = None, 0

    def clear(self) -> None:
        """Forget all of them."""
        with self.lock:
            self.forms.clear()


KEPT = KeptForms()


def _weakly(function: Any) -> Callable[[], Any]:
    """Return a reference that keeps no function alive; `Impure` where there is none, as of a partial."""
    try:
        return weakref.ref(function)
    except TypeError:
        raise Impure(f"the kernel is of class {type(function).__name__}, which can change") from None


def list_of(
    recording: Recording, after: Sequence[Array], results: Sequence[Array]
) -> tuple[StepList, dict[int, ChosenRows]] | None:
    """Return a list that gives the same bits as the recorded run; None where it gives others.

    ``after``: the bytes of the arguments after the run, ``results``: those of its results. Beside the list it returns
    the rows that data have chosen, by rank.
    """
    short = shortened(recording.steps)
    for steps in [short, recording.steps] if short is not recording.steps else [recording.steps]:
        made = StepList(steps)
        rows = made.next_rows()
        if _agrees(made, recording.before, after, results):
            return made, rows
    return None


def _agrees(steps: StepList, inputs: Sequence[Array], after: Sequence[Array], results: Sequence[Array]) -> bool:
    """Return whether a list makes these bytes of those."""
    changed = {root.argument for root in steps.changed}
    given = [each.copy() if number in changed else each for number, each in enumerate(inputs)]
    made = [np.empty_like(each) for each in results]
    if steps.execute(given, made, looks=False) is None:
        return False
    pairs = [*zip(made, results, strict=True), *((given[number], after[number]) for number in changed)]
    return all(_are_equal(one, other) for one, other in pairs)


def _are_equal(one: Array, other: Array) -> bool:
    """Return whether two pieces of memory hold the same bytes."""
    wide = one.size - one.size % 8
    same = np.array_equal(one[:wide].view(np.uint64), other[:wide].view(np.uint64))
    return same and np.array_equal(one[wide:], other[wide:])


def shared(
    record: Record, prints: Prints, echo: Callable[[str], None] | None = None, chosen: ChosenRows | None = None
) -> Record:
    """Return a record with the same rows and other prints, for another run of the same instructions.

    ``chosen`` gives the rows of gathers that data have chosen in the other run, where they have.
    """
    other = record.same_rows()
    other.prints, other.echo = prints, echo
    if chosen is not None:
        other.beside = record.beside.with_chosen(chosen)
    return other


def has_chosen(records: Sequence[Record], chosen: dict[int, ChosenRows]) -> bool:
    """Return whether data have chosen these rows, by rank, in a run with these records, and no others."""
    for rank, record in enumerate(records):
        kept = [rows for _, rows in record.beside.chosen.values()]
        mine = chosen[rank]() if rank in chosen else []
        if len(kept) != len(mine) or not all(map(np.array_equal, kept, mine)):
            return False
    return True


def writes_meet(record: Record) -> bool:
    """Return whether two programs have written to the same bytes of a storage that they share."""
    owners: dict[int, Array] = {}  # by storage, for each byte the number of a program
    numbers: dict[tuple[int, ...], int] = {}
    for _, program, access, _ in record.values:
        layout, number = access.layout, numbers.setdefault(program, len(numbers) + 1)
        if access.storage not in owners:
            nbytes = math.prod(record.storages[access.storage].shape) * _WIDEST
            owners[access.storage] = np.zeros(nbytes, np.int16)
        shape, strides = (*layout.shape, layout.dtype.itemsize), (*(2 * each for each in layout.strides), 2)
        mine = np.ndarray(shape, np.int16, owners[access.storage], 2 * access.byte_offset, strides)
        if ((mine != 0) & (mine != number)).any():
            return True
        mine[...] = number
    return False
