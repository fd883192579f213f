"""A kernel call that is run again and again, on copies of its arguments, with a trace of its writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from nkitools.chip.argument_types import Grid, Kernel
from nkitools.chip.chosen_chip import resolve_chip
from nkitools.chip.full_precision_shadow import digits_of
from nkitools.chip.memory import Storage
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.facts import options
from nkitools.launch.kernel import as_launch
from nkitools.launch.launch import Launch
from nkitools.launch.second_run import Again
from nkitools.launch.signatures import signature_of
from nkitools.precision.difference import exact
from nkitools.precision.runs import Half, run_half
from nkitools.record.loop_counters import moment_of
from nkitools.record.record import Observer, Record
from nkitools.record.rows import Access, Row
from nkitools.record.run import Run
from nkitools.record.source_sites import author_frame
from nkitools.record.tensor_names import names_in_kernel
from nkitools.record.watch.watched_record import observing
from nkitools.record.watch.watching import watching

MOST_BYTES = 256 << 20  # of all values that a trace keeps


@dataclass(frozen=True, eq=False)
class Held:
    """The elements of a tensor at the end of a loop turn."""

    name: str  # in the kernel
    turn: dict[str, int]  # the wanted loop counters, with their values
    program: tuple[int, ...]  # the program that wrote the tensor
    number: int  # of the record
    position: int  # the last instruction of the turn that wrote to the tensor
    access: Access  # all of the tensor
    value: Array  # float64
    unwritten: Array | None  # the elements that were never written


@dataclass(frozen=True, eq=False)
class Write:
    """The elements that an instruction wrote into one of its destinations."""

    access: Access
    value: Array  # as they were right after the instruction


class Trace(Observer):
    """An observer that keeps the loop turn of every instruction, and named tensors at the end of each turn.

    ``wanted``: by a tensor's name, the loop counters that tell its turns apart. ``keeps_writes``: whether the values of
    all writes are kept, too.
    """

    def __init__(self, wanted: Mapping[str, Sequence[str]] | None = None, *, keeps_writes: bool = False) -> None:
        self.turns: dict[tuple[int, int], dict[str, int]] = {}
        self.held: dict[tuple[str, tuple[int, ...], tuple[int, ...]], Held] = {}
        self.writes: dict[tuple[int, int], list[Write]] = {}
        self.names: set[str] = set()  # of the tensors that were written
        self.left_out = False  # whether there was no room for a value
        self._wanted = {name: tuple(counters) for name, counters in (wanted or {}).items()}
        self._keeps_writes = keeps_writes
        self._room = MOST_BYTES
        self._storages: WeakValueDictionary[int, Storage] = WeakValueDictionary()

    def allocated(self, record: Record, storage: Storage) -> None:
        """Keep a reference to a storage."""
        self._storages[storage.id] = storage

    def issued(self, record: Record, row: Row) -> None:
        """Keep the instruction's loop turn, and the tensors that it wrote as far as they are wanted."""
        frame = author_frame(2)
        number, turn = record.rank or 0, (record.moment or moment_of(frame)).loops
        self.turns[number, row.position] = turn
        for access in row.writes():
            storage = self._storages.get(access.storage)
            if storage is None:
                continue
            if self._keeps_writes:
                self._keep_write(number, row.position, storage, access)
            if self._wanted:
                names = [*names_in_kernel(frame, storage.id), record.name_of(storage.id)]
                self.names.update(filter(None, names))
                for name in self._wanted.keys() & set(names):
                    self._hold(record, row, storage, name, turn)

    def _keep_write(self, number: int, position: int, storage: Storage, access: Access) -> None:
        view = NkiTensor.__new__(NkiTensor)
        layout, offset = access.layout, access.byte_offset
        view._set(storage, storage.window(layout.shape, layout.dtype, offset, layout.strides), layout.dtype, offset)
        value = np.array(digits_of(view))
        self._room -= value.nbytes
        if self._room < 0 or layout.dtype.kind == "packed":
            self.left_out = True
            return
        self.writes.setdefault((number, position), []).append(Write(access, value))

    def _hold(self, record: Record, row: Row, storage: Storage, name: str, turn: Mapping[str, int]) -> None:
        counters = self._wanted[name]
        if not all(counter in turn for counter in counters):
            return
        tensor = NkiTensor.whole(storage)
        value = exact(digits_of(tensor))
        program = record.programs[-1][1] if record.programs else ()
        key = name, program, tuple(turn[counter] for counter in counters)
        known = self.held.pop(key, None)
        self._room -= 0 if known is not None else value.nbytes
        if self._room < 0:
            self.left_out = True
            return
        self.held[key] = Held(
            name,
            {counter: turn[counter] for counter in counters},
            program,
            record.rank or 0,
            row.position,
            Access(storage.id, tensor.layout, tensor.byte_offset, written=False),
            value,
            tensor.unwritten(),
        )


class Call:
    """A kernel with its arguments, which no run changes."""

    def __init__(
        self,
        kernel: Kernel,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        grid: Grid | None = None,
        chip: str | None = None,
        nki_version: str | None = None,
    ) -> None:
        launch = as_launch(kernel, grid=grid, chip=chip, nki_version=nki_version)
        version = options.value("nki_version") if launch.nki_version is None else launch.nki_version
        self.launch: Launch = replace(
            launch, chip=resolve_chip(launch.chip), nki_version=None if version is None else str(version)
        )
        self.args, self.kwargs = args, dict(kwargs)

    @classmethod
    def of_run(cls, run: Run) -> Call | None:
        """Return the call of a run; None for ranks, and if its arguments have changed since.

        Large arguments are not copied: a second run shows whether they have changed.
        """
        again = run.again
        if not isinstance(again, Again) or run.records:
            return None
        given = again.arguments()
        if given is None:
            if isinstance(again(Observer(), run), str):
                return None
            given = again.arguments_now()
        found = cls.__new__(cls)
        found.launch = replace(again.launch, chip=run.chip)
        found.args, found.kwargs = given
        return found

    @property
    def name(self) -> str:
        """Return the kernel's name."""
        return self.launch.name

    def places(self) -> dict[str, int | str]:
        """Return the position or the keyword of each array argument, by the names of the kernel's parameters."""
        signature = signature_of(self.launch.function)
        found: dict[str, int | str] = dict(zip(signature.parameters, range(len(self.args)), strict=False))
        found |= {name: name for name in self.kwargs}
        return {name: place for name, place in found.items() if isinstance(self.at(place), np.ndarray)}

    def at(self, place: int | str) -> Any:
        """Return the argument at a place."""
        return self.args[place] if isinstance(place, int) else self.kwargs[place]

    def changed(self, values: Mapping[str, Array]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with some arrays replaced by ``values``, by the names of the kernel's parameters."""
        args, kwargs, places = list(self.args), dict(self.kwargs), self.places()
        for name, value in values.items():
            place = places[name]
            if isinstance(place, int):
                args[place] = value
            else:
                kwargs[place] = value
        return tuple(args), kwargs

    def run(
        self,
        trace: Observer | None = None,
        *,
        precision: str = "float64",
        rules: str = "off",
        values: Mapping[str, Array] | None = None,
    ) -> Half:
        """Run the kernel on copies of its arguments, with some of them replaced by ``values``.

        Collectors and watches of the caller do not see the run.
        """
        args, kwargs = self.changed(values or {})
        launch = replace(self.launch, rules=rules)

        def apart() -> Half:
            with options.override(watch=None, schedule_seed=None):
                if trace is None:
                    return run_half(launch, precision, args, kwargs)
                with observing(trace):
                    return run_half(launch, precision, args, kwargs)

        return Context().run(apart)

    def watched(self) -> Run:
        """Run the kernel on copies of its arguments; return a run that keeps what its instructions wrote."""

        def apart() -> Run:
            with options.override(watch=None), watching():
                return run_half(replace(self.launch, rules="report"), "precise", self.args, self.kwargs).run

        return Context().run(apart)
