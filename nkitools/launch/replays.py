"""Runs that are replayed: whether a launch may be, what was recorded of an earlier one, and the run made of that."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from nkitools import options
from nkitools.chip.memory import Storage
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.versions import LanguageVersion
from nkitools.launch.arguments import Arguments
from nkitools.launch.blas import limit_thread, one_thread
from nkitools.launch.frameworks import framework_of
from nkitools.launch.launch import Launch
from nkitools.launch.nested_arguments import mapped
from nkitools.launch.settings import resolve_replay, resolve_replay_threads
from nkitools.record.prints.device_print import Print
from nkitools.record.run import Run
from nkitools.record.run_contents import Replayed
from nkitools.record.run_session import Findings
from nkitools.record.tensor_names import tensor_of
from nkitools.replay.kept_lists import KEPT, Form, Recorded, has_chosen, list_of, shared, writes_meet
from nkitools.replay.purity import Impure, is_kernel, plain_form, reads_of
from nkitools.replay.recording import MOST_STEPS, TOO_MANY, Recording, bytes_of
from nkitools.replay.step_list import unreported
from nkitools.rules.finding import Finding

Entering = Callable[[Arguments], Any]  # brings the arguments of a launch in
_READ_BY_KERNELS = ("NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE",)  # environment variables
_DEEPEST = 16  # containers inside of each other
_EVIDENCE = "its values call for a look at them"
_VALUE_RULES = frozenset({"NK502", "NK508", "NK304", "NK305", "NK307", "NK404", "NK505", "NK509"})


class NotReplayable(ValueError):
    """replay="on" was asked for, and a kernel's run cannot be recorded; the message says why."""


@dataclass(frozen=True)
class Place:
    """The place of a result: in an argument, or in a storage of the results; ``offset`` and ``strides`` in bytes."""

    argument: int
    result: int
    shape: tuple[int, ...]
    dtype: Any
    memory: MemoryRegion
    is_whole: bool
    offset: int
    strides: tuple[int, ...]
    storage_shape: tuple[int, ...]
    storage_dtype: Any

    def on(self, storage: Storage) -> NkiTensor:
        """Return the result, which lies in this storage."""
        whole = NkiTensor.whole(storage)
        if self.is_whole:
            return whole
        window = storage.window(self.shape, self.dtype, self.offset, self.strides)
        return whole._view(window, self.offset, self.dtype)


class ReplayedRuns:
    """One run as replay sees it; ``recording`` is that of the run, None where it is not recorded."""

    def __init__(self, launch: Launch, run: Run, replay: str | None, level: str, *, is_plain: bool) -> None:
        self.launch = launch
        self.run = run
        self.level = level
        self.is_demanded = (mode := resolve_replay(replay)) == "on"
        self.recording: Recording | None = None
        self.form: Form | None = None
        self.reason = _reason_of(mode, run, is_plain=is_plain)

    def look_up(self, language: LanguageVersion, arguments: Any) -> None:
        """Find out what was recorded of a call of this form, and whether this one is to be."""
        function, codes = _author_function(self.launch), list[Any]()
        if self.reason:
            return
        try:
            key = (_form_of(arguments, codes), _settings_of(self.launch, self.run.chip, self.level, language))
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

    def replay(self, findings: Findings, entering: Sequence[tuple[Arguments, Entering]]) -> tuple[Any, ...] | None:
        """Make the run out of the recorded one, and return its outputs, rank by rank; None where the kernel has to run.

        ``entering``: what takes the arguments of each rank, and brings them in. Nothing has changed where it is None.
        """
        recorded = self.form.recorded if self.form is not None and not self.reason else None
        self.run.replayed = Replayed(recorded is not None, self.reason)
        if recorded is None or self.form is None:
            return None
        try:
            with unreported():
                for arguments, enter in entering:
                    enter(arguments)
        except Exception:  # which the kernel's own launch reports at its place
            self._missed("its arguments cannot enter")
            return None
        storages = [each for arguments, _ in entering for each in arguments.storages]
        results = [np.empty(shape, dtype) for shape, dtype in recorded.results]
        if [(each.shape, each.dtype) for each in storages] != recorded.inputs or not _are_apart(recorded, storages):
            self._missed("its arguments share memory in another way than those of the recorded run")
            return None
        given, made = ([bytes_of(array) for array in each] for each in ([one.array for one in storages], results))
        with recorded.steps.lock, one_thread():
            looks = self.level != "off"
            threads = resolve_replay_threads()
            prints = recorded.steps.execute(given, made, looks=looks, threads=threads, begin=limit_thread)
            chosen = recorded.steps.chosen_rows()
        if prints is None:
            self._missed(_EVIDENCE)
            return None
        self.form.misses = 0
        self._show(recorded, prints, chosen)
        findings.add(recorded.findings)
        for arguments, _ in entering:
            arguments.finish()
        left = _result_of(recorded, storages, results)
        return tuple(arguments.leave(each) for (arguments, _), each in zip(entering, left, strict=True))

    def _show(self, recorded: Recorded, prints: list[Print], chosen: dict[int, list[Array]]) -> None:
        """Give the run the records, with the rows that data have chosen on each rank, and the device prints."""
        kept = enumerate(recorded.records)
        records = [shared(record, self.launch.echo, chosen.get(rank)) for rank, record in kept]
        run, first = self.run, records[0]
        run.peak_bytes = recorded.peak_bytes
        if run.records:
            run.records = tuple(records)
        run.record, run.prints = first, first.prints
        for each in records:
            each.prints = first.prints
        for one in prints:
            records[one.rank or 0].add_print(one)

    def keep(self, arguments: Sequence[Arguments], results: Sequence[Any]) -> None:
        """Keep what a recorded run has shown, once it has ended well; of each rank its arguments and its result."""
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

        def place_of(value: Any) -> Any:
            tensor = tensor_of(value)
            return value if tensor is None else _place_of(tensor, inputs, kept, recording)

        places = [mapped(each, place_of) for each in results]
        if recording.reason:
            return None
        after, made = ([bytes_of(each.array) for each in those] for those in (storages, kept.values()))
        with one_thread():  # as in the run: several threads add in another order
            steps = list_of(recording, after, made)
        if steps is None:
            return None
        if not has_chosen(self.run.all_records, steps.chosen_rows()):
            recording.refuse("its record says which elements data choose")
            return None
        return Recorded(
            steps,
            [shared(each) for each in self.run.all_records],
            found,
            places,
            [(each.shape, each.array.dtype) for each in kept.values()],
            [(each.shape, each.dtype) for each in storages],
            self.run.peak_bytes,
        )


def _reason_of(mode: str, run: Run, *, is_plain: bool) -> str:
    """Return why a run is not replayed whatever its kernel; '' for no reason."""
    if mode == "off":
        return "replay is off"
    if not is_plain:
        return "its programs are interleaved, or it computes in full precision"
    if run.record is not None and run.record.observers:
        return "a watch looks at the run"
    return "a debugger or tracer is on" if sys.gettrace() is not None else ""


def _author_function(launch: Launch) -> Any:
    """Return a launch's function; where a dialect has made one around the author's, that of the author."""
    function = launch.function
    while isinstance(function, FunctionType) and str(function.__globals__.get("__name__")).startswith("nkitools."):
        inner = function.__dict__.get("__wrapped__")
        if inner is None:
            break
        function = inner
    return function


def _settings_of(launch: Launch, chip: str, level: str, language: LanguageVersion) -> Hashable:
    """Return what decides a launch beside its function and its arguments."""
    environment = (*(os.environ.get(name) for name in _READ_BY_KERNELS), options.value("memory"))
    return (
        launch.name, launch.grid, chip, level, language, launch.dialect.name, launch.results_as_declared,
        launch.returns_on_chip, launch.compile_config, launch.specialization_config, launch.environment_lnc,
        launch.schedule, launch.variant, environment,
    )  # fmt: skip


def _form_of(value: Any, codes: list[Any], depth: int = 0) -> Any:
    """Return the form of an argument: shapes and dtypes of arrays, other values as they are; `Impure` for what changes.

    ``codes`` gets functions and classes of the author's.
    """
    if depth > _DEEPEST:
        raise Impure("an argument has containers inside of containers, without an end")
    if type(value) is np.ndarray:
        return value.dtype, value.shape
    if isinstance(value, (tuple, list)):
        return (type(value), *(_form_of(each, codes, depth + 1) for each in value))
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


def _are_apart(recorded: Recorded, storages: list[Storage]) -> bool:
    """Return whether every argument that the kernel writes may be written, and no other one sees that."""
    for root in recorded.steps.changed:
        mine = storages[root.argument].array
        if not mine.flags.writeable:
            return False
        others = (each.array for number, each in enumerate(storages) if number != root.argument)
        if any(np.may_share_memory(mine, other) for other in others):
            return False
    return True


def _place_of(tensor: NkiTensor, inputs: dict[int, int], results: dict[int, Storage], recording: Recording) -> Place:
    storage = tensor.storage
    argument = inputs.get(storage.id, -1)
    number = -1
    if argument < 0:
        root = recording.roots.get(storage.id)
        if root is None or root.constant is not None or storage.physical is not None:
            recording.refuse("it returns a constant, or a tensor that has an address")
        else:
            results.setdefault(storage.id, storage)
            number = root.result = list(results).index(storage.id)
    whole = tensor.shape == storage.shape and tensor.dtype is storage.dtype and tensor.array is storage.array
    return Place(
        argument, number, tensor.shape, tensor.dtype, storage.memory, whole, tensor.byte_offset, tensor.array.strides,
        storage.shape, storage.dtype,
    )  # fmt: skip


def _result_of(recorded: Recorded, storages: list[Storage], results: list[Array]) -> list[Any]:
    """Return what the kernel would return on each rank, on the storages of this run."""
    made: dict[int, Storage] = {}

    def tensor(value: Any) -> Any:
        if not isinstance(value, Place):
            return value
        if value.argument >= 0:
            return value.on(storages[value.argument])
        if value.result not in made:
            array = results[value.result]
            made[value.result] = Storage(value.storage_shape, value.storage_dtype, value.memory, array=array)
        return value.on(made[value.result])

    return [mapped(each, tensor) for each in recorded.places]
