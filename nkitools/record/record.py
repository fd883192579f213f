"""The record: what was issued, in 64 bytes an instruction; ids and regions, never arrays.

An instruction is a loop state (4 bytes) and a row of 64-bit words (`nkitools.record.rows`).
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from types import CodeType
from typing import TYPE_CHECKING, Any

from nkitools.chip.memory import Storage
from nkitools.chip.view_checks import MEMORY_NAMES
from nkitools.facts.light_classes import NamedTuple, dataclass, field, replace
from nkitools.record.device_turns import LoopTurns
from nkitools.record.instruction_record import RecordedPlan
from nkitools.record.loop_counters import qualified
from nkitools.record.loop_states import LoopStates
from nkitools.record.open_instruction import OpenRows
from nkitools.record.prints.print_sequence import Prints
from nkitools.record.rows import Access, Row
from nkitools.record.source_sites import KernelLines, Site, author_frame
from nkitools.rules.shown_text import shown_file

if TYPE_CHECKING:
    from nkitools.chip.tensor import NkiTensor
    from nkitools.record.beside_rows import Part
    from nkitools.record.prints.device_print import Print
    from nkitools.record.watch.written import Written


@dataclass(slots=True)  # not frozen: that would take as long as the rest of an allocation's history
class StorageRecord:
    """The facts about a storage that are kept after the storage is gone."""

    name: str
    memory: str
    dtype: str
    shape: tuple[int, ...]
    site: int
    has_address: bool = False  # the author says where it lies
    start_partition: int = 0  # where that is
    start_byte: int = 0
    place: int = -1  # of storages with addresses: the memory whose bytes they share, by number
    partition_bytes: int = 0  # on chip: from one partition to the next
    is_given: bool = False  # an argument or a constant, which no instruction has to write
    tile_shape: tuple[int, ...] = ()  # of the grid that the author last made over all of it
    elements: tuple[int, ...] = ()  # along each dimension of a grid whose tiles lie side by side in it
    fingerprint: int = field(default=0, init=False, repr=False, compare=False)  # of the other facts, once asked for

    @property
    def first_byte(self) -> int:
        """Return where the storage begins in the memory that it shares."""
        return self.start_partition * self.partition_bytes + self.start_byte


class Meeting(NamedTuple):
    """Programs that waited for each other. It orders their accesses to ``storage``; -1: to all storages."""

    position: int
    programs: tuple[tuple[int, ...], ...]
    storage: int


class Observer:
    """A base class for objects that follow a record during its run: values for watches, checksums for races, pauses.

    The methods here do nothing; an observer overrides what it needs. Each method gets the record, so that no observer
    keeps a record alive.
    """

    def allocated(self, record: Record, storage: Storage) -> None:
        """Look at a storage that was just made, or at one that holds an argument."""

    def issued(self, record: Record, row: Row) -> None:
        """Look at the last instruction, whose row the record already has."""

    def printed(self, record: Record) -> None:
        """Get ready for a device print, which the record keeps next."""

    def returned(self, record: Record, tensors: Sequence[NkiTensor]) -> None:
        """Look at the kernel's results, once all programs have ended."""


class Record(OpenRows):
    """The history of one run.

    For schedules: ``labels`` has program, position (-1 if a run-time address skipped it) and name of each named
    instruction, for a loop on the device those of its first turn. ``ordered`` has the programs and ranges of positions
    that ``nl.no_reorder()`` keeps in order. ``skipped_loop``: whether a loop on the device had no turn.

    For the bodies of loops on the device, if ``compares_bodies``: ``compared_bodies`` are those whose first turn was
    checked, ``changed_bodies`` those that changed Python objects outside (`nkitools.language.body_state`).
    """

    # What most runs leave as it is stands in the class: a record is made for each run.
    observers: tuple[Observer, ...] = ()
    reduced_writes = 0
    report_site = -1  # of the report that is being made, where it is not the author's current one
    asks_for_program = False  # whether the kernel has asked which program it is
    asks_for_count = False  # whether it has asked how many programs there are
    keeps_parts = False  # what data choose, too: several programs are watched for races, or a loop's turns
    keeps_all_parts = False  # on chip too
    findings_left_out = 0
    skipped_loop = False
    has_ended = False  # all programs have ended: no instruction follows
    compares_bodies = False
    echo: Callable[[str], None] | None = None
    rank: int | None = None  # of the run's communicating ranks this is the history of one

    def __init__(self, lines: KernelLines | None = None) -> None:
        super().__init__()
        lines = lines or KernelLines()
        self._lines: KernelLines | None = lines  # until the run has ended
        self.sites, self.calls, self.tiles = lines.sites, lines.calls, lines.tiles
        # Empty unless a watch observes the run (`nkitools.record.watch.watching`).
        self.writes: list[Written] = []
        self.inputs: list[Written] = []
        self.results: list[Written] = []
        # By number of meetings, program, view and part: checksums of the values written there one after the other.
        self.values: dict[tuple[int, tuple[int, ...], Access, Part | None], list[int]] = {}
        self.masked: set[int] = set()  # sites of instructions of the legacy dialect under a mask
        self.origins: set[tuple[str, int]] = set()  # the lines that NK404 was reported for
        self.labels: list[tuple[tuple[int, ...], int, str]] = []
        self.ordered: list[tuple[tuple[int, ...], int, int]] = []
        self.compared_bodies: dict[int, CodeType] = {}  # by their ids
        self.ranges: dict[int, str] = {}  # by the site of a loop: what its range is called
        self._counter_names: dict[tuple[int, ...], tuple[str, ...]] = {}
        self.storages: dict[int, StorageRecord] = {}
        # By place in the author's code what it has issued last: see `nkitools.issue.fast_path`.
        self.issued: dict[int, tuple[Any, ...]] = {}
        self.programs: list[tuple[int, tuple[int, ...]]] = []  # from which position on, each time that it took over
        self.meetings: list[Meeting] = []
        self._loops_of: dict[tuple[int, ...], int] = {}
        self._latest_of: dict[tuple[int, ...], int] = {}  # as of the end of each program's last turn
        self.prints = Prints()
        self.device_loops: list[LoopTurns] = []  # in the order in which they ended
        self.changed_bodies: list[Any] = []
        self.outputs: list[Access] = []  # the kernel's results: where they lie
        self.printed: set[int] = set()  # the storages that device prints have shown

    @cached_property
    def loop_states(self) -> LoopStates:
        """Return the iterations of the loops."""
        return LoopStates()

    @cached_property
    def rounded(self) -> Counter[str]:
        """Return how many times each instruction has used rounded operands in full precision."""
        return Counter()

    def issued_before(self, place: int, *form: Hashable) -> tuple[Any, ...] | None:
        """Return what a place in the author's code has issued last in an earlier run, as this run has it from now on.

        ``form``: the instruction, and what decides its plan. None for another form. The record only adds rows.
        """
        lines = self._lines
        known = None if lines is None else lines.issued.get(place)
        if lines is None or known is None or not all(map(operator.is_, known, form)):
            return None
        plan = known[-2]
        self.plans[plan.id] = lines.plans[plan.id]
        self.issued[place] = known
        return known

    def observe(self, observer: Observer) -> None:
        """Let an observer look at the run from here on; before the first program begins."""
        self.observers += (observer,)
        self.only_adds = False

    def add_shown(self, plan: RecordedPlan, site: int, operands: list[int]) -> None:
        """Add an instruction and show it to the observers."""
        self.add(plan, site, operands)
        if not self.observers:
            return
        row = Row(self.count - 1, plan, site, operands)
        for observer in self.observers:
            observer.issued(self, row)

    def site(self) -> int:
        """Return the author's current site."""
        return self.sites.current(2)

    def tests_while(self) -> bool:
        """Return whether the truth value that the author's code needs now decides a ``while``."""
        frame = author_frame(2)
        from nkitools.authors_code.truth_values import is_while_test

        return frame is not None and is_while_test(frame.f_code, frame.f_lasti)

    def tests_comparison(self) -> bool:
        """Return whether the comparison that the author's code makes now decides an ``if`` or the like."""
        frame = author_frame(2)
        from nkitools.authors_code.truth_values import is_tested

        return frame is not None and is_tested(frame.f_code, frame.f_lasti)

    def tests_attribute(self) -> bool:
        """Return whether the truth value that the author's code needs now is that of an attribute."""
        frame = author_frame(2)
        from nkitools.authors_code.truth_values import is_attribute_test

        return frame is not None and is_attribute_test(frame.f_code, frame.f_lasti)

    def naming_site(self) -> int:
        """Return the site whose assignment gives the object that is being made its name; see `Sites.naming`."""
        return self.sites.naming(2)

    def place_of(self, site: int) -> str:
        """Return the file's name and the line of a site; '' if unknown."""
        found = self.sites.all[site] if site >= 0 else None
        return f"{shown_file(found.file, whole=False)}:{found.line}" if found is not None and found.line else ""

    def allocated(self, storage: Storage, known: StorageRecord | None = None) -> StorageRecord:
        """Keep the facts about a storage and return them; ``known``: the same facts, from another storage."""
        if storage.id < self.oldest:
            self.begin_storage(storage.id)
        self.storages[storage.id] = found = known or StorageRecord(
            storage.name,
            MEMORY_NAMES[storage.memory],
            storage.dtype.name,
            storage.shape,
            storage.site,
            storage.physical is not None,
            storage.start_partition,
            storage.start_byte,
            -1 if storage.physical is None else storage.physical.id,
            storage.partition_bytes if storage.on_chip else 0,
            storage.full,
        )
        for observer in self.observers:
            observer.allocated(self, storage)
        return found

    def given(self, storage: Storage) -> None:
        """Keep the facts about the storage of an argument."""
        assert self._lines is not None
        kept, key = self._lines.given, (storage.name, storage.memory, storage.dtype.name, storage.shape)
        kept[key] = self.allocated(storage, kept.get(key))

    def tiled(self, storage: int, tile_shape: tuple[int, ...], elements: tuple[int, ...] = ()) -> None:
        """Remember the tiles that the author sees a storage by."""
        known = self.storages.get(storage)
        if known is not None:
            self.storages[storage] = replace(known, tile_shape=tile_shape, elements=elements)  # others may share it

    def turn_of(self, program: tuple[int, ...]) -> None:
        """Begin the turn of ``program``: later instructions belong to it, inside the loops that it was in."""
        if self.open is not None:
            self.begin_instruction()
        if self.programs:
            before = self.programs[-1][1]
            self._loops_of[before], self._latest_of[before] = self.loop, self.latest
        self.programs.append((len(self.states), program))
        self.loop = self._loops_of.get(program, -1)

    def met(self, programs: Sequence[tuple[int, ...]], storage: int = -1) -> None:
        """Note that these programs wait for each other.

        Accesses that each issued before, to ``storage`` or to any, come before those that the others issue afterwards.
        """
        self.meetings.append(Meeting(len(self.states), tuple(programs), storage))

    def iterations(self, numbers: range, called: str = "range") -> Iterator[int]:
        """Yield the numbers of a loop in the author's source, each as one of its iterations."""
        parent, site, step, states, following = self.loop, self.site(), numbers.step, self.loop_states, -1
        self.ranges[site] = called
        try:
            for value in numbers:
                if states.count == following:  # no other loop has begun since
                    self.loop = following
                    states.go_on = ()
                    states.count = following = following + 1
                else:
                    self.loop = states.enter(parent, site, value, step)
                    following = self.loop + 1
                yield value
        finally:
            self.loop = parent

    def add_print(self, record: Print) -> None:
        """Keep a device print, whose value may still be the tensor's memory, and show it if prints are shown."""
        self.close()
        for observer in self.observers:
            observer.printed(self)
        self.prints.keep(record)
        self._show_last()

    def keep_print(self, record: Print) -> None:
        """Keep a print whose value is its own, and show it."""
        self.prints.append(record)
        self._show_last()

    def _show_last(self) -> None:
        from nkitools.record.prints.print_display import shown_by  # for kernels that print

        kept = self.prints[-1]
        show = shown_by()
        if show is not None and show(kept, self.echo is not None):
            return
        if self.echo is not None:
            self.echo(kept.text())

    @property
    def has_rows_only(self) -> bool:
        """Return whether the record is only rows, of one program and without loops on the device."""
        if len(self.programs) > 1 or self.keeps_parts or self.keeps_all_parts:
            return False
        facts = self.__dict__.get("beside")  # which most records never get
        return (facts is None or facts.is_empty) and not (self.meetings or self.device_loops or self.changed_bodies)

    def returned(self, tensors: Sequence[NkiTensor]) -> None:
        """Keep the places of the kernel's results after all programs have ended, and let go of the observers."""
        self.outputs = [Access(each.storage.id, each.layout, each.byte_offset, written=False) for each in tensors]
        for observer in self.observers:
            observer.returned(self, tensors)
        self.observers = ()
        if self._lines is not None:
            self._lines.keep_issued(self.issued, self.plans)
        self._lines = None
        self.issued.clear()

    @property
    def latest(self) -> int:
        """Position of the last instruction that the program that runs has issued."""
        begun, program = self.programs[-1] if self.programs else (0, ())
        return self.count - 1 if self.count > begun else self._latest_of.get(program, -1)

    def name_of(self, storage: int) -> str:
        """Return a storage's name: that of its creation, else the variable that the new tensor was assigned to."""
        known = self.storages.get(storage)
        return "" if known is None else known.name or self.sites[known.site].bound

    def loops(self, state: int) -> dict[str, int]:
        """Counter names and values of a loop state, outermost first."""
        sites, values = self._around(state)
        return dict(zip(self.counter_names(sites), values, strict=True))

    def ranges_of(self, state: int) -> dict[str, str]:
        """Return the kinds of ranges around a loop state (``affine_range``), by the names of their counters."""
        sites, _ = self._around(state)
        return {name: self.ranges.get(site, "") for name, site in zip(self.counter_names(sites), sites, strict=True)}

    def _around(self, state: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the sites and the counters of the loops of a loop state, outermost first."""
        sites: list[int] = []
        values: list[int] = []
        while state >= 0:
            state, site, value = self.loop_states.at(state)
            sites.append(site)
            values.append(value)
        return tuple(reversed(sites)), tuple(reversed(values))

    def counter_names(self, sites: tuple[int, ...]) -> tuple[str, ...]:
        """Return the names of the counters of nested loops, whose sites are given from the outermost on."""
        names = self._counter_names.get(sites)
        if names is None:
            found = [self.sites[each] for each in sites]
            names = qualified([(each.function, each.bound or f"line {each.line}") for each in found])
            self._counter_names[sites] = names
        return names

    def outer_loop(self, state: int) -> int:
        """Return the loop state around another one; -1 if there is none."""
        return self.loop_states.at(state)[0]

    def program_at(self, position: int) -> tuple[int, ...]:
        """Return the program that issued the instruction at ``position``."""
        at = bisect_right(self.programs, position, key=lambda begun: begun[0])
        return self.programs[at - 1][1] if at else ()

    def site_at(self, position: int) -> Site:
        """Return the author's line of the instruction at ``position``."""
        return self.sites[self.row(position).site]
