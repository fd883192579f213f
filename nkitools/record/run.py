"""A run: what came out of a kernel, and everything that happened on the way."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from nkitools.record.prints.print_sequence import Prints, as_prints
from nkitools.rules.finding import Finding

if TYPE_CHECKING:
    from nkitools.record.expected_outputs import Reference
    from nkitools.record.record import Record
    from nkitools.record.watch.probes import Probes
    from nkitools.record.watch.watching import Written


@dataclass(frozen=True)
class OperandRecord:
    """One operand of an issued instruction: its tensor, and the region of it."""

    tensor: str
    memory: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    byte_offset: int
    written: bool


@dataclass(frozen=True)
class InstructionRecord:
    """One issued instruction."""

    name: str
    engine: str
    cycles: float
    operands: tuple[OperandRecord, ...]
    file: str
    line: int
    program: tuple[int, ...]
    loops: dict[str, int]
    rank: int | None = None


class Instructions(Sequence[InstructionRecord]):
    """The issued instructions, in order (of ranks one after the other); read from the compact records when asked
    for.
    """

    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records

    def __len__(self) -> int:
        return sum(record.count for record in self._records)

    @overload
    def __getitem__(self, index: int) -> InstructionRecord: ...
    @overload
    def __getitem__(self, index: slice) -> list[InstructionRecord]: ...
    def __getitem__(self, index: int | slice) -> InstructionRecord | list[InstructionRecord]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"instruction {index} of a run of {len(self)} instructions")
        records = iter(self._records)
        record = next(records)
        while position >= record.count:
            position -= record.count
            record = next(records)
        return record.instruction(position)

    def __iter__(self) -> Iterator[InstructionRecord]:
        for record in self._records:
            for position in range(record.count):
                yield record.instruction(position)


@dataclass(eq=False)
class Run:
    """The result of one simulated (or measured) kernel call.

    ``precision``: ``precise`` where every value is rounded to its dtype, ``full`` where the low-precision ones are kept
    in float32, in which ``outputs`` and ``prints`` then are. A run of communicating ranks has the outputs of each in a
    tuple; its prints, findings and instructions name their ``rank``. ``record`` is then the first rank's.
    ``expected`` are those of ``findings`` and ``allowed`` that a test asked for (`expect_finding`). ``settings``: the
    settings of its launch, where nkitools simulated it: ``rules``, ``grid``, ``schedule_seed``. ``kept_sources``: the
    sources of a run out of a file.
    """

    kernel: str
    target: str
    chip: str = ""
    precision: str = "precise"
    outputs: Any = None
    prints: Prints = field(default_factory=Prints)
    findings: list[Finding] = field(default_factory=list)
    expected: list[Finding] = field(default_factory=list)
    error: BaseException | None = None
    record: Record | None = field(default=None, repr=False)
    records: tuple[Record, ...] = field(default=(), repr=False)  # of the ranks
    set_aside: list[tuple[Finding, str]] = field(default_factory=list, repr=False)  # accepted findings, and why
    settings: dict[str, Any] = field(default_factory=dict, repr=False)
    kept_sources: dict[str, str] | None = field(default=None, repr=False)
    reference: Reference | None = field(default=None, repr=False)
    probes: list[Probes] = field(default_factory=list, repr=False)  # whose prints are among ``prints``

    def __post_init__(self) -> None:
        self.prints = as_prints(self.prints)

    @property
    def instructions(self) -> Instructions:
        """Return the issued instructions: name, engine, operands, file and line of each."""
        return Instructions(self.all_records)

    @property
    def writes(self) -> list[Written]:
        """Return the watched writes of the instructions, in order (of ranks one after the other)."""
        return [each for record in self.all_records for each in record.writes]

    @property
    def reduced_writes(self) -> int:
        """Return how many values, those of arguments and results too, are summaries only, as the budget was used up."""
        return sum(record.reduced_writes for record in self.all_records)

    @property
    def allowed(self) -> list[Finding]:
        """Return the findings of accepted rules (`allow_findings`); they are not among ``findings``."""
        return [finding for finding, _ in self.set_aside]

    @property
    def reasons(self) -> dict[str, str]:
        """Return why the findings in ``allowed`` are accepted, by the rule's id; '' without a stated reason."""
        return {finding.rule: reason for finding, reason in self.set_aside}

    @property
    def all_records(self) -> tuple[Record, ...]:
        """The record of every rank, or the one record; none where nkitools has not simulated it."""
        return self.records or (() if self.record is None else (self.record,))

    @property
    def rounded(self) -> dict[str, int]:
        """In full precision: which instructions took low-precision operands as rounded all the same, how many times.

        Those that work on the bits of their dtype, and those given a view of another dtype than the tensor's own.
        """
        return dict(sum((record.rounded for record in self.all_records), Counter()))

    @property
    def findings_left_out(self) -> int:
        """Return how many repeats of a finding at one line were counted only, since there were more than 1000."""
        return sum(record.findings_left_out for record in self.all_records)

    @property
    def sources(self) -> dict[str, str]:
        """The text of the author's files that the run names: as they are now, of a saved run as they were then."""
        from nkitools.record.saved.saving import sources_of

        return sources_of(self) if self.kept_sources is None else self.kept_sources

    def to_json(self, *, compress: bool = True) -> str:
        """Return everything of the run as one line of JSON, which `Run.from_json` reads again; arrays keep every bit.

        ``compress``: whether arrays are compressed (zlib) where that makes them shorter. The keys are explained in
        `nkitools.record.saved.saving`.
        """
        from nkitools.record.saved.saving import run_as_json

        return run_as_json(self, compress=compress)

    @staticmethod
    def from_json(text: str | bytes) -> Run:
        """Return the run that ``to_json`` made ``text`` of; `SavedRunError`, a ValueError, for anything else."""
        from nkitools.record.saved.loading import run_from_json

        return run_from_json(text)

    def _repr_html_(self) -> str:
        """Return the page of the run in a frame, which notebooks show where this is the last value of a cell."""
        # Reports lie above the record; the function comes from the package, which is always there.
        shown: str = sys.modules["nkitools"].in_frame(self)
        return shown

    def save(self, path: str | os.PathLike[str], *, compress: bool = True) -> None:
        """Write `to_json` to a file, which `nkitools.load_run` reads again. OSError where it cannot be written."""
        from nkitools.record.saved.saving import save_run

        save_run(self, path, compress=compress)


def must_be_run(value: Any, asks: str) -> None:
    """TypeError where ``value`` is no run (the path of one, say, or its outputs); ``asks`` says who wants one."""
    if not isinstance(value, Run):
        raise TypeError(
            f"{asks} takes a run, it is given {type(value).__name__}. "
            "Pass what nkitools.simulate returns, run_kernel.run, or nkitools.load_run(path)."
        )
