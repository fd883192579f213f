"""Runs that are replayed: whether a launch may be, what was recorded of an earlier one, and the run made of that."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from nkitools.chip.memory import Storage
from nkitools.chip.numerics import Array
from nkitools.launch.arguments import Arguments
from nkitools.launch.blas import limit_thread, one_thread
from nkitools.launch.frameworks import framework_of
from nkitools.launch.launch import Launch
from nkitools.launch.nested_arguments import mapped, parts_of
from nkitools.launch.plain_arguments import order_of, plain_arrays
from nkitools.launch.replayed_results import Place, array_of, place_of, result_of
from nkitools.launch.settings import Settings, resolve_replay, resolve_replay_threads
from nkitools.record.prints.device_print import Print
from nkitools.record.prints.print_sequence import Prints
from nkitools.record.record import Record
from nkitools.record.run import Run
from nkitools.record.run_contents import Replayed
from nkitools.record.run_session import Findings
from nkitools.record.tensor_names import tensor_of
from nkitools.record.watch.watching import is_watched
from nkitools.replay.kept_lists import KEPT, Form, Recorded, has_chosen, list_of, shared, writes_meet
from nkitools.replay.purity import Impure, is_kernel, plain_form, reads_of
from nkitools.replay.recording import MOST_STEPS, TOO_MANY, Recording
from nkitools.replay.step_list import unreported
from nkitools.replay.steps import bytes_of
from nkitools.rules.finding import Finding

Call = tuple[tuple[Any, ...], dict[str, Any]]
Entering = Callable[[Arguments], Any]  # brings the arguments of a launch in
_DEEPEST = 16  # containers inside of each other
_SHARED = "its arguments share memory in another way than those of the recorded run"
_DONE = Replayed(True)
_EVIDENCE = "its values call for a look at them"
_VALUE_RULES = frozenset({"NK502", "NK508", "NK304", "NK305", "NK307", "NK404", "NK505", "NK509"})


class NotReplayable(ValueError):
    """replay="on" was asked for, and a kernel's run cannot be recorded; the message says why."""


class ReplayedRuns:
    """One run as replay sees it; ``recording`` is that of the run, None where it is not recorded."""

    def __init__(self, launch: Launch, run: Run, replay: str | None, settings: Settings) -> None:
        self.launch = launch
        self.run = run
        self.settings = settings
        self.is_demanded = (mode := settings.replay if replay is None else resolve_replay(replay)) == "on"
        self.recording: Recording | None = None
        self.form: Form | None = None
        self.reason = _reason_of(mode, settings)

    def look_up(self, arguments: Any) -> None:
        """Find out what was recorded of a call of this form, and whether this one is to be."""
        if self.reason:
            return
        function, codes = self.launch.author_function, list[Any]()
        try:
            key = (_form_of(arguments, codes), self.launch.form, self.settings.form)
            form = self.form = KEPT.form(key, function)
            self._choose(form, function, codes)
        except Impure as impure:
            self._refuse(str(impure))

    def _choose(self, form: Form, function: Any, codes: list[Any]) -> None:
        """Decide what becomes of a run of a form: replayed, recorded, or neither."""
        form.runs += 1
        if form.reason and not self.is_demanded:
            self.reason = form.reason
        elif form.rests:
            form.misses += 1
            self.reason = "its values have called for a look at them again and again"
        elif form.issued > MOST_STEPS and not self.is_demanded:
            self.reason = TOO_MANY
        elif form.recorded is None and (self.is_demanded or form.runs > 1):
            form.reads, form.reason = reads_of(function, *codes), ""
            self.recording = Recording()
            self.reason = "this run is recorded"
        elif form.recorded is None:
            self.reason = "it is the first run of this form"

    def _refuse(self, reason: str) -> None:
        """Keep why calls of this form are not replayed; an error where replay is demanded."""
        self.reason = reason
        if self.form is not None:
            self.form.refuse(reason)
        self.run.replayed = Replayed(False, reason)
        if self.is_demanded:
            name = self.launch.name
            raise NotReplayable(f"replay='on': a run of kernel {name} cannot be recorded: {reason}")

    def _missed(self, reason: str) -> None:
        """Leave this run to the kernel's Python, or as it was: its values decide what it shows."""
        self.reason = reason
        if self.form is not None:
            self.form.misses += 1
        self.run.replayed = Replayed(False, reason)

    @property
    def _kept(self) -> Recorded | None:
        """The recorded run that this one may be made of."""
        return None if self.reason or self.form is None else self.form.recorded

    def replay_plainly(self, findings: Findings, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Make the run out of the recorded one where no argument or result needs a look; returns whether it did so."""
        recorded = self._kept
        if recorded is None or recorded.order is None:
            return False
        arrays = plain_arrays(args, kwargs)
        if arrays is None:
            return False
        inputs = [arrays[number] for number in recorded.order]
        results = self._execute(recorded, inputs, findings)
        if results is None:
            return False
        self.run.outputs = mapped(recorded.places[0], lambda each: array_of(each, inputs, results))
        return True

    def replay(self, findings: Findings, entering: Sequence[tuple[Arguments, Entering]]) -> tuple[Any, ...] | None:
        """Make the run out of the recorded one, and return its outputs, rank by rank; None where the kernel has to run.

        ``entering``: what takes the arguments of each rank, and brings them in. Nothing has changed where it is None.
        """
        recorded = self._kept
        self.run.replayed = Replayed(False, self.reason)
        if recorded is None:
            return None
        try:
            with unreported():
                for arguments, enter in entering:
                    enter(arguments)
        except Exception:  # which the kernel's own launch reports at its place
            self._missed("its arguments cannot enter")
            return None
        storages = [each for arguments, _ in entering for each in arguments.storages]
        if [(each.shape, each.dtype) for each in storages] != recorded.inputs:
            self._missed(_SHARED)
            return None
        results = self._execute(recorded, [each.array for each in storages], findings)
        if results is None:
            return None
        for arguments, _ in entering:
            arguments.finish()
        left = result_of(recorded, storages, results)
        return tuple(arguments.leave(each) for (arguments, _), each in zip(entering, left, strict=True))

    def _execute(self, recorded: Recorded, inputs: Sequence[Array], findings: Findings) -> list[Array] | None:
        """Make the run out of the recorded one, and return its results; None, with the reason, where it cannot be."""
        form, steps = self.form, recorded.steps
        if form is None or not _are_apart(recorded, inputs):
            self._missed(_SHARED)
            return None
        results = [np.empty(shape, dtype) for shape, dtype in recorded.results]
        threads = resolve_replay_threads() if steps.has_programs_apart else 1
        with steps.lock, nullcontext() if steps.only_moves else one_thread():
            records = self._records(recorded)
            looks = self.settings.level != "off"
            prints = steps.execute(inputs, results, looks=looks, threads=threads, begin=limit_thread)
        if prints is None:
            self._missed(_EVIDENCE)
            return None
        form.misses = 0
        self.run.replayed, self.run.peak_bytes = _DONE, recorded.peak_bytes
        self._show(records, prints)
        findings.add(recorded.findings)
        return results

    def _records(self, recorded: Recorded) -> list[Callable[[], Record]]:
        """Return what makes the records of the next execution, which say the rows that data choose in it."""
        prints, echo, rows = self.run.prints, self.launch.echo, recorded.steps.next_rows()
        return [partial(shared, each, prints, echo, rows.get(rank)) for rank, each in enumerate(recorded.records)]

    def _show(self, records: Sequence[Callable[[], Record]], prints: Sequence[Print]) -> None:
        """Give the run its records and device prints."""
        run = self.run
        if not run.records and not prints:
            run.record_later(records[0])
            return
        made = tuple(make() for make in records)
        run.record, run.records = made[0], made if run.records else ()
        for one in prints:
            made[one.rank or 0].add_print(one)

    def keep(self, arguments: Sequence[Arguments], results: Sequence[Any], call: Call | None = None) -> None:
        """Keep what a recorded run has shown, once it has ended well; of each rank its arguments and its result.

        ``call``: the arguments as they were given, where there is one rank.
        """
        recording, form, run = self.recording, self.form, self.run
        if form is not None:
            form.issued = sum(record.count for record in run.all_records)
        if recording is None or form is None:
            return
        found = [*run.findings, *run.allowed]
        calls_for_look = recording.has_evidence or any(
            each.severity == "error" or each.rule in _VALUE_RULES for each in found
        )
        if calls_for_look and (self.is_demanded or not recording.reason):  # a full run of evidence is no error
            self._missed(_EVIDENCE)
            return
        for record in run.all_records:
            if record.meetings:
                recording.refuse("its programs wait for each other")
            if record.keeps_parts and writes_meet(record):
                recording.refuse("its programs write to the same elements")
        if sum(step.printed is not None for step in recording.steps) != len(run.prints):
            recording.refuse("it prints what is no tensor")
        recording.end()
        if form.reads is None or not form.reads.hold():
            recording.refuse("it has changed what its own code reads")
        recorded = self._recorded(recording, arguments, results, found)
        if recorded is not None and call is not None:
            recorded.order = _order_of(recorded, call, arguments[0])
        if recorded is None:
            self._refuse(recording.reason or "its list of steps gives other results")
        else:
            KEPT.keep(form, recorded)

    def _recorded(
        self, recording: Recording, arguments: Sequence[Arguments], results: Sequence[Any], found: list[Finding]
    ) -> Recorded | None:
        storages = [each for of_rank in arguments for each in of_rank.storages]
        inputs = {storage.id: number for number, storage in enumerate(storages)}
        kept: dict[int, Storage] = {}

        def placed(value: Any) -> Any:
            tensor = tensor_of(value)
            return value if tensor is None else place_of(tensor, inputs, kept, recording)

        places = [mapped(each, placed) for each in results]
        if recording.reason:
            return None
        after, made = ([bytes_of(each.array) for each in those] for those in (storages, kept.values()))
        with one_thread():  # as in the run: several threads add in another order
            found_list = list_of(recording, after, made)
        if found_list is None:
            return None
        steps, rows = found_list
        if not has_chosen(self.run.all_records, rows):
            recording.refuse("its record says which elements data choose")
            return None
        return Recorded(
            steps,
            [shared(each, Prints()) for each in self.run.all_records],
            found,
            places,
            [(each.shape, each.array.dtype) for each in kept.values()],
            [(each.shape, each.dtype) for each in storages],
            self.run.peak_bytes,
        )


def _reason_of(mode: str, settings: Settings) -> str:
    """Return why a run is not replayed whatever its kernel; '' for no reason."""
    if mode == "off":
        return "replay is off"
    if settings.seed is not None or settings.precision != "precise":
        return "its programs are interleaved, or it computes in full precision"
    if is_watched():
        return "a watch looks at the run"
    return "a debugger or tracer is on" if sys.gettrace() is not None else ""


def _form_of(value: Any, codes: list[Any], depth: int = 0) -> Any:
    """Return the form of an argument: shapes and dtypes of arrays, other values as they are; `Impure` for what changes.

    ``codes`` gets functions and classes of the author's.
    """
    if depth > _DEEPEST:
        raise Impure("an argument has containers inside of containers, without an end")
    if type(value) is np.ndarray:
        return value.dtype, value.shape
    if isinstance(value, (tuple, list)):
        found: list[Any] = [type(value)]
        for each in value:  # a loop, as most of them are arrays
            found.append((each.dtype, each.shape) if type(each) is np.ndarray else _form_of(each, codes, depth + 1))
        return tuple(found)
    if type(value) is dict:
        return (dict, *((key, _form_of(each, codes, depth + 1)) for key, each in value.items()))
    framework = framework_of(value)
    if framework is not None:
        return framework.name, str(value.dtype), tuple(value.shape)
    if isinstance(value, (FunctionType, type)) or is_kernel(value):
        codes.append(value)
        return value
    form = plain_form(value)
    if form is None:
        raise Impure(f"an argument is of class {type(value).__name__}, which can change")
    return form


def _are_apart(recorded: Recorded, inputs: Sequence[Array]) -> bool:
    """Return whether every argument that the kernel writes may be written, and no other one sees that."""
    for root in recorded.steps.changed:
        mine = inputs[root.argument]
        if not mine.flags.writeable:
            return False
        others = (each for number, each in enumerate(inputs) if number != root.argument)
        if any(np.may_share_memory(mine, other) for other in others):
            return False
    return True


def _order_of(recorded: Recorded, call: Call, arguments: Arguments) -> list[int] | None:
    """Return where the storages of plain arguments are among the arrays of their call; None where one needs a look."""
    places = (part for _, part in parts_of(recorded.places[0]) if isinstance(part, Place))
    arrays = plain_arrays(*call) if all(each.is_whole for each in places) else None
    return None if arrays is None else order_of(arrays, arguments.originals)
