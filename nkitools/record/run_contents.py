"""The contents of a run: the results of a kernel, and everything that happened on the way."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol, cast

from nkitools.facts import options
from nkitools.facts.light_classes import dataclass, field
from nkitools.record.prints.print_sequence import Prints, as_prints
from nkitools.record.source_sites import is_internal, source_texts
from nkitools.rules.finding import Finding

if TYPE_CHECKING:
    from nkitools.record.expected_outputs import Reference
    from nkitools.record.instruction_sequence import Instructions
    from nkitools.record.outputs import Outputs
    from nkitools.record.record import Observer, Record
    from nkitools.record.watch.written import Written


@dataclass(frozen=True)
class Replayed:
    """The answer of `RunContents.replayed`: not done, and why."""

    done: bool = False
    reason: str = options.NO_REPLAY

    def __bool__(self) -> bool:
        return self.done


class WatchCounts(Protocol):
    """The counts of a watch in a run, see `nkitools.record.watch.probes.Probes`."""

    of_option: bool

    def as_plain(self) -> dict[str, Any]: ...


class SecondRun(Protocol):
    """The launch of a run, to be run once more, see `nkitools.launch.second_run.Again`."""

    def __call__(self, observer: Observer, first: RunContents) -> RunContents | str: ...

    def form(self) -> dict[str, Any]: ...


@dataclass(eq=False)
class RunContents:
    """The fields of a `Run`."""

    kernel: str
    target: str
    chip: str = ""
    precision: str = "precise"
    outputs: Outputs = field(default=cast(Any, None))  # None where `has_outputs` is false
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
    repair: list[str] = field(default_factory=list, repr=False)  # what a search for one edit has said, after a failure
    probes: list[WatchCounts] = field(default_factory=list, repr=False)  # whose prints are among ``prints``
    # The most that its arguments and tensors in HBM took of the host at one time.
    peak_bytes: int = field(default=0, repr=False)
    again: SecondRun | None = field(default=None, repr=False)  # the same launch on the same arguments
    kept_call: dict[str, Any] | None = field(default=None, repr=False)  # of a run out of a file: `call`

    def __post_init__(self) -> None:
        if self.prints.__class__ is not Prints:
            self.prints = as_prints(self.prints)

    @property
    def has_outputs(self) -> bool:
        """Return whether the kernel returned something."""
        return cast(Any, self.outputs) is not None

    @property
    def replayed(self) -> Replayed:
        """Return that the run was not replayed. No run is, and the next version has no such attribute."""
        options.say_that_nothing_is_replayed()
        return Replayed()

    @property
    def instructions(self) -> Instructions:
        """Return the issued instructions: name, engine, operands, file and line of each."""
        from nkitools.record.instruction_sequence import Instructions

        return Instructions(self.all_records)

    @property
    def call(self) -> dict[str, Any] | None:
        """Return the kernel's place and its arguments without elements, `nkitools.launch.call_form`; None: not kept."""
        return self.kept_call if self.again is None else self.again.form()

    @property
    def writes(self) -> list[Written]:
        """Return the watched writes of the instructions, in order (of ranks one after the other)."""
        return [each for record in self.all_records for each in record.writes]

    @property
    def reduced_writes(self) -> int:
        """Return the number of written values, arguments and results that were kept as summaries only, for lack of
        budget.
        """
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
        """The record of every rank, or the one record; () if nkitools has not simulated the run."""
        return self.records or (() if self.record is None else (self.record,))

    @property
    def rounded(self) -> dict[str, int]:
        """In full precision: the names of instructions that used rounded operands all the same, and how many times.

        They work on the bits of a dtype, or got a view with another dtype than the tensor's.
        """
        return dict(sum((record.rounded for record in self.all_records), Counter()))

    @property
    def findings_left_out(self) -> int:
        """Return 0; of runs that an earlier version has saved, how many repeats at one line were counted only."""
        return sum(record.findings_left_out for record in self.all_records)

    @property
    def sources(self) -> dict[str, str]:
        """The text of the author's files that the run names: as they are now, of a saved run as they were then."""
        if self.kept_sources is not None:
            return self.kept_sources
        places = (each.file for each in (*self.prints, *self.findings, *self.allowed))
        sites = (site.file for record in self.all_records for site in record.sites.all)
        from nkitools.record.trace import traces_of

        traced = {file for trace in traces_of(self) for file in trace.files()}
        return source_texts(file for file in (*places, *sites, *sorted(traced)) if file and not is_internal(file))
