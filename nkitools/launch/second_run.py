"""A second run of a launch on the original arguments, for values that the first run did not keep.

Small arguments are copied before the first run, large ones only if this kernel is known to write to them. Without
copies a second run on the current arguments counts only if it gives the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from types import CodeType
from typing import Any
from weakref import WeakSet

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.facts import options
from nkitools.facts.light_classes import replace
from nkitools.launch.frameworks import framework_of
from nkitools.launch.launch import Launch
from nkitools.launch.nested_arguments import mapped, parts_of
from nkitools.record.columns import Columns
from nkitools.record.record import Observer, Record
from nkitools.record.run import Run
from nkitools.record.run_contents import RunContents
from nkitools.record.watch.watched_record import observing
from nkitools.rules.finding import KernelError

SMALL = 1 << 20  # bytes of all arguments of a run together, which are copied

_writing: WeakSet[CodeType] = WeakSet()
"""Kernels that have written into their arguments."""

Start = Callable[..., Run]


class Again:
    """The launch of a run, to be run once more.

    ``start``: runs a launch with arguments. ``asked``: fields of the launch that options decided the first time.
    ``copies``: the arguments as they were, by the identity of their objects.
    """

    def __init__(self, start: Start, launch: Launch, args: Any, kwargs: dict[str, Any], asked: dict[str, Any]) -> None:
        self._start, self._launch, self._asked = start, launch, asked
        self._given = args, kwargs
        self._copies = _copies(self._given, launch)

    def __call__(self, observer: Observer, first: RunContents) -> RunContents | str:
        """Run the launch once more, with an observer; or return why that is not the first run over again."""
        if first.precision != "precise":
            return "it has computed in full precision"
        if first.error is not None:
            return "it has ended with an error"
        given, copies = self._given, self._copies
        if copies is None and _writes_arguments(first):
            self._remember()
            return "the kernel has written over its arguments; of its next run they are copied before"
        fresh = {key: array.copy() for key, (_, array) in (copies or {}).items()}
        args, kwargs = mapped(given, lambda each: fresh.get(id(each), each))
        launch = replace(
            self.launch,
            chip=first.chip,
            precision="precise",
            rules="off" if first.settings["rules"] == "off" else "report",
        )
        try:
            second = Context().run(_observed, observer, self._start, launch, args, kwargs, first.settings)
        except KernelError as error:
            return f"a second run has failed: {error}"
        if not _is_alike(first, second):
            return "a second run has issued other instructions: an argument, or what the kernel reads, has changed"
        if copies is None and not _gives_the_same(first.outputs, second.outputs):
            return "a second run gives other results: an argument, or a result, has changed since"
        return second

    def form(self) -> dict[str, Any]:
        """Return the form of the call, see `nkitools.launch.call_form`."""
        from nkitools.launch.call_form import call_form

        return call_form(self._launch.function, *self._given)

    @property
    def launch(self) -> Launch:
        """Return the launch of the kernel, for another run."""
        return replace(self._launch, **self._asked, echo=None)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Return the original arguments; None if they were not copied."""
        if self._copies is None:
            return None
        fresh = {key: array.copy() for key, (_, array) in self._copies.items()}
        args, kwargs = mapped(self._given, lambda each: fresh.get(id(each), each))
        return tuple(args), dict(kwargs)

    def arguments_now(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments as they are, which the caller must not change."""
        args, kwargs = self._given
        return tuple(args), dict(kwargs)

    def _remember(self) -> None:
        code = getattr(self._launch.function, "__code__", None)
        if code is not None:
            _writing.add(code)


def _observed(
    observer: Observer, start: Start, launch: Launch, args: Any, kwargs: dict[str, Any], settings: dict[str, Any]
) -> Run:
    seed = settings["schedule_seed"]
    with options.override(schedule_seed=None if seed is None else str(seed), watch=None), observing(observer):
        return start(launch, args, kwargs)


def _copies(given: Any, launch: Launch) -> dict[int, tuple[Any, Array]] | None:
    """Return the arrays with copies, by the ids of the objects; None if some cannot be copied.

    Arrays that share memory and arrays of other frameworks are not copied.
    """
    found: dict[int, tuple[Any, Array]] = {}
    room = SMALL
    args, kwargs = given
    for value in (*args, *kwargs.values()):
        of_numpy = type(value) is np.ndarray
        if not of_numpy and not isinstance(value, (list, tuple, dict)) and framework_of(value) is None:
            continue
        for part in (value,) if of_numpy else [each for _, each in parts_of(value) if framework_of(each) is not None]:
            if type(part) is not np.ndarray:
                return None
            if id(part) in found:
                continue
            room -= part.nbytes
            is_shared = part.base is not None and any(np.may_share_memory(part, other) for other, _ in found.values())
            if is_shared or (room < 0 and getattr(launch.function, "__code__", None) not in _writing):
                return None
            found[id(part)] = part, part.copy()
    return found


def _writes_arguments(run: RunContents) -> bool:
    return any(
        record.storages[each].is_given
        for record in run.all_records
        for each in Columns(record).written_storages
        if each in record.storages
    )


def _is_alike(first: RunContents, second: RunContents) -> bool:
    """Return whether two runs have issued the same instructions on the same views."""
    pairs = zip(first.all_records, second.all_records, strict=True)
    return all(_views(one) == _views(other) for one, other in pairs)


def _views(record: Record) -> tuple[bytes, ...]:
    columns = Columns(record)
    lines = np.array([*(site.line for site in record.sites.all), 0])[columns.sites]
    return columns.layouts.tobytes(), columns.byte_offsets.tobytes(), lines.tobytes()


def _gives_the_same(first: Any, second: Any) -> bool:
    arrays = [
        [np.asarray(part) for _, part in parts_of(outputs) if framework_of(part) is not None]
        for outputs in (first, second)
    ]
    return len(arrays[0]) == len(arrays[1]) and all(
        (one.dtype, one.shape) == (other.dtype, other.shape) and one.tobytes() == other.tobytes()
        for one, other in zip(*arrays, strict=True)
    )
