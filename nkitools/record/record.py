"""The record: what was issued, in 64 bytes an instruction; ids and regions, never arrays.

A row is ``plan << 32 | site``, the loop state, then for each operand ``storage << 32 | layout`` and its byte offset.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nkitools.chip.memory import LAYOUTS, Storage
from nkitools.chip.views import MEMORY_NAMES
from nkitools.record.loops import loop_names
from nkitools.record.prints import Print
from nkitools.record.run import InstructionRecord, OperandRecord
from nkitools.record.sites import Sites
from nkitools.rules.finding import Finding

_LOW = (1 << 32) - 1


@dataclass(frozen=True)
class StorageRecord:
    """What is kept of a storage after it is gone."""

    name: str
    memory: str
    dtype: str
    shape: tuple[int, ...]
    site: int


class Record:
    """The history of one run."""

    def __init__(self) -> None:
        self.sites = Sites()
        self.rows = array("q")
        self.starts = array("q")
        self.plans: dict[int, Any] = {}
        self.storages: dict[int, StorageRecord] = {}
        self.programs: list[tuple[int, tuple[int, ...]]] = []
        self.loop = -1
        self._loop_rows = array("q")
        self.prints: list[Print] = []
        self.findings: list[Finding] = []
        self.echo: Callable[[str], None] | None = None

    # --- writing ---------------------------------------------------------------------------------------------------

    def site(self) -> int:
        """The author's current site."""
        return self.sites.current(2)

    def allocated(self, storage: Storage) -> None:
        """Remember a storage."""
        self.storages[storage.id] = StorageRecord(
            storage.name, MEMORY_NAMES[storage.memory], storage.dtype.name, storage.shape, storage.site
        )

    def begin_program(self, program: tuple[int, ...]) -> None:
        """What is issued from here on belongs to ``program``."""
        self.programs.append((len(self.starts), program))
        self.loop = -1

    def issued(self, plan: Any, site: int, operands: list[int]) -> None:
        """Add an instruction; ``operands`` are the words of its operands."""
        rows = self.rows
        self.starts.append(len(rows))
        rows.append(plan.id << 32 | (site & _LOW))
        rows.append(self.loop)
        rows.extend(operands)
        if plan.id not in self.plans:
            self.plans[plan.id] = plan

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
        return len(self.starts)

    def loops(self, state: int) -> dict[str, int]:
        """Counter names and values of a loop state, outermost first."""
        found: list[tuple[str, int]] = []
        while state >= 0:
            parent, site_number, value = self._loop_rows[state * 3 : state * 3 + 3]
            site = self.sites[site_number]
            names = loop_names(site.file, site.line + 1) or ["loop"]
            found.append((names[-1], value))
            state = parent
        return dict(reversed(found))

    def program_at(self, position: int) -> tuple[int, ...]:
        """The program that issued the instruction at ``position``."""
        program: tuple[int, ...] = ()
        for start, each in self.programs:
            if start > position:
                break
            program = each
        return program

    def instruction(self, position: int) -> InstructionRecord:
        """The instruction at ``position``."""
        start = self.starts[position]
        end = self.starts[position + 1] if position + 1 < len(self.starts) else len(self.rows)
        head, state = self.rows[start], self.rows[start + 1]
        plan = self.plans[head >> 32]
        site_number = head & _LOW
        site = self.sites[-1 if site_number == _LOW else site_number]
        operands = [
            self._operand(self.rows[at], self.rows[at + 1], written=number < plan.outputs)
            for number, at in enumerate(range(start + 2, end, 2))
        ]
        return InstructionRecord(
            plan.name,
            plan.engine,
            plan.cycles,
            tuple(operands),
            site.file,
            site.line,
            self.program_at(position),
            self.loops(state),
        )

    def _operand(self, word: int, byte_offset: int, *, written: bool) -> OperandRecord:
        layout = LAYOUTS[word & _LOW]
        storage = self.storages.get(word >> 32)
        return OperandRecord(
            storage.name if storage else "",
            MEMORY_NAMES[layout.memory],
            layout.dtype.name,
            layout.shape,
            layout.strides,
            byte_offset,
            written,
        )
