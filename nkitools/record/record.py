"""The record: what was issued, in 64 bytes an instruction; ids and regions, never arrays.

An instruction is a loop state (4 bytes) and a row of 64-bit words: ``plan << 32 | site``, then for each operand
``storage << 32 | layout`` and its byte offset. How many operands there are is the plan's to say.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nkitools.chip.memory import LAYOUTS, Storage
from nkitools.chip.views import MEMORY_NAMES
from nkitools.record.loops import qualified
from nkitools.record.prints import Print
from nkitools.record.run import InstructionRecord, OperandRecord
from nkitools.record.sites import Site, Sites
from nkitools.rules.finding import Finding, refuse

_LOW = (1 << 32) - 1
_STRIDE = 16  # the rows of one instruction in so many are found at once, those between by walking


@dataclass(frozen=True, slots=True)
class StorageRecord:
    """What is kept of a storage after it is gone."""

    name: str
    memory: str
    dtype: str
    shape: tuple[int, ...]
    site: int


@dataclass(frozen=True, slots=True)
class _Planned:
    """A plan, and the length of the rows of its instructions."""

    plan: Any
    words: int


class Record:
    """The history of one run."""

    def __init__(self) -> None:
        self.sites = Sites()
        self.rows = array("q")
        self.states = array("i")
        self.plans: dict[int, _Planned] = {}
        self.storages: dict[int, StorageRecord] = {}
        self.programs: list[tuple[int, tuple[int, ...]]] = []
        self.loop = -1
        self._oldest = 1 << 62  # the word of this run's first storage: ids only grow
        self._loop_rows = array("q")
        self._starts = array("q")
        self.prints: list[Print] = []
        self.findings: list[Finding] = []
        self.findings_left_out = 0
        self.echo: Callable[[str], None] | None = None

    # --- writing ---------------------------------------------------------------------------------------------------

    def site(self) -> int:
        """The author's current site."""
        return self.sites.current(2)

    def allocated(self, storage: Storage) -> None:
        """Remember a storage."""
        self._oldest = min(self._oldest, storage.id << 32)
        self.storages[storage.id] = StorageRecord(
            storage.name, MEMORY_NAMES[storage.memory], storage.dtype.name, storage.shape, storage.site
        )

    def begin_program(self, program: tuple[int, ...]) -> None:
        """What is issued from here on belongs to ``program``."""
        self.programs.append((len(self.states), program))
        self.loop = -1

    def issued(self, plan: Any, site: int, operands: list[int]) -> None:
        """Add an instruction; ``operands`` are the words of its operands.

        NK611 where one of them is older than this run. For speed those in the middle are looked at only when the run
        meets the plan for the first time.
        """
        self.states.append(self.loop)
        self.rows.append(plan.id << 32 | (site & _LOW))
        self.rows.extend(operands)
        if plan.id not in self.plans:
            self.plans[plan.id] = _Planned(plan, 1 + len(operands))
            self._check_ages(plan, operands)
        elif operands and (operands[0] < self._oldest or operands[-2] < self._oldest):
            self._check_ages(plan, operands)

    def _check_ages(self, plan: Any, operands: list[int]) -> None:
        for position, word in enumerate(operands[::2]):
            if word < self._oldest:
                layout = LAYOUTS[word & _LOW]
                refuse(
                    "NK611",
                    f"{plan.name}: operand {position} ({MEMORY_NAMES[layout.memory]}, {layout.dtype} "
                    f"{list(layout.shape)}) is a tensor of another run, which has ended",
                    remedy="Make tensors in the kernel that uses them, and pass data between kernels as arrays.",
                )

    def enter_iteration(self, parent: int, site: int, value: int) -> int:
        """The loop state of one iteration of an nl range: its parent state, the loop's site, the counter's value."""
        state = len(self._loop_rows) // 3
        self._loop_rows.extend((parent, site, value))
        return state

    def add_print(self, record: Print) -> None:
        """Keep a device print, and show it where the way in promises that."""
        self.prints.append(record)
        if self.echo is not None:
            self.echo(record.text())

    # --- reading ---------------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """Number of instructions issued."""
        return len(self.states)

    def name_of(self, storage: int) -> str:
        """A storage's name: the one it was created with, else the variable that the new tensor was assigned to."""
        known = self.storages.get(storage)
        return "" if known is None else known.name or self.sites[known.site].bound

    def loops(self, state: int) -> dict[str, int]:
        """Counter names and values of a loop state, outermost first."""
        found: list[tuple[str, str, int]] = []
        while state >= 0:
            parent, site_number, value = self._loop_rows[state * 3 : state * 3 + 3]
            site = self.sites[site_number]
            found.append((site.function, site.bound or f"line {site.line}", value))
            state = parent
        return qualified(found[::-1])

    def program_at(self, position: int) -> tuple[int, ...]:
        """The program that issued the instruction at ``position``."""
        at = bisect_right(self.programs, position, key=lambda begun: begun[0])
        return self.programs[at - 1][1] if at else ()

    def instruction(self, position: int) -> InstructionRecord:
        """The instruction at ``position``."""
        start = self._start(position)
        head = self.rows[start]
        planned = self.plans[head >> 32]
        plan = planned.plan
        site = self._site(head)
        operands = [
            self._operand(self.rows[at], self.rows[at + 1], written=plan.written[number])
            for number, at in enumerate(range(start + 1, start + planned.words, 2))
        ]
        return InstructionRecord(
            plan.name,
            plan.engine,
            plan.cycles,
            tuple(operands),
            site.file,
            site.line,
            self.program_at(position),
            self.loops(self.states[position]),
        )

    def _start(self, position: int) -> int:
        """Where the row of an instruction begins."""
        known = self._starts
        if not known:
            known.append(0)
        while len(known) <= position // _STRIDE:
            known.append(self._walk(known[-1], _STRIDE))
        return self._walk(known[position // _STRIDE], position % _STRIDE)

    def _walk(self, start: int, steps: int) -> int:
        for _ in range(steps):
            start += self.plans[self.rows[start] >> 32].words
        return start

    def _site(self, head: int) -> Site:
        number = head & _LOW
        return self.sites[-1 if number == _LOW else number]

    def _operand(self, word: int, byte_offset: int, *, written: bool) -> OperandRecord:
        layout = LAYOUTS[word & _LOW]
        return OperandRecord(
            self.name_of(word >> 32),
            MEMORY_NAMES[layout.memory],
            layout.dtype.name,
            layout.shape,
            layout.strides,
            byte_offset,
            written,
        )
