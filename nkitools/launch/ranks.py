"""Runs communicating ranks: one kernel, each rank with its own arguments, memory and cores.

All programs of all ranks take turns by one baton. Each rank has its own record.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, cast

import numpy as np

from nkitools.chip.argument_types import Argument
from nkitools.chip.core import CORE, World
from nkitools.chip.numerics import Array
from nkitools.launch.blas import one_thread
from nkitools.launch.breakpoints import authors_breakpoints
from nkitools.launch.frameworks import framework_of
from nkitools.launch.launch import Launch
from nkitools.launch.nested_arguments import parts_of
from nkitools.launch.plain_ranges import counted_ranges
from nkitools.launch.prepared import Prepared, prepared_for
from nkitools.launch.program_scheduler import Baton
from nkitools.launch.programs import Programs, report_source, reporting
from nkitools.launch.second_run import Again
from nkitools.record.record import Record
from nkitools.record.reporter import Reporter
from nkitools.record.run import Run
from nkitools.record.run_session import session
from nkitools.record.watch.watched_record import watched_record
from nkitools.rules.finding import KernelError, not_modelled, refuse

_FORM = "Call nkitools.simulate(kernel, (arguments of rank 0), (arguments of rank 1), ..., ranks=N)."


def arguments_by_rank(ranks: int, given: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return the arguments of each rank; TypeError and ValueError for no number of ranks, or no tuple of arguments."""
    if isinstance(ranks, bool) or not isinstance(ranks, (int, np.integer)):
        raise TypeError(f"ranks: must be an integer, it is {ranks!r}. {_FORM}")
    if ranks < 1:
        raise ValueError(f"ranks: must be at least 1, it is {ranks}. {_FORM}")
    for rank, each in enumerate(given):
        if not isinstance(each, (tuple, list)):
            raise TypeError(
                f"ranks={ranks}: the arguments of rank {rank} must be a tuple or a list, they are "
                f"{type(each).__name__}. {_FORM}"
            )
    if len(given) != ranks:
        raise ValueError(f"ranks={ranks}: there must be as many tuples of arguments, there are {len(given)}. {_FORM}")
    return [tuple(each) for each in given]


def run_ranks(launch: Launch, by_rank: list[tuple[Any, ...]], kwargs: dict[str, Any]) -> Run:
    """Run a launch on as many ranks as there are tuples of arguments; keywords go to all of them.

    The run's outputs are a tuple with each rank's results; its prints and findings are those of all ranks in order of
    time. An array given to several ranks, as keywords are, is one memory: all may read it, and writing it is NK609.
    Exceptions of the kernel pass through.
    """
    __tracebackhide__ = True
    if CORE.get() is not None:
        refuse("NK610", f"kernel {launch.name} is launched inside a running kernel")
    if not launch.dialect.takes_ranks:
        message = f"kernel {launch.name} is of the legacy dialect, which has no collectives here"
        not_modelled(message, remedy="Leave ranks= out, or port the kernel to nki and nki.collectives.")
    return prepared_for(launch).watched(_run, by_rank, kwargs)


def _run(prepared: Prepared, by_rank: list[tuple[Any, ...]], kwargs: dict[str, Any]) -> Run:
    launch, settings = prepared.launch, prepared.settings
    run = Run(launch.name, "builtin", settings.chip, settings.precision)
    run.records = tuple(_record(run, launch, rank) for rank in range(len(by_rank)))
    run.record = run.records[0]
    run.settings = settings.described(launch.grid)
    run.again = Again(run_ranks, launch, by_rank, kwargs, settings.asked)
    world = World(len(by_rank))
    is_shared = _shared_among(by_rank, kwargs)
    host = prepared.host_memory()
    with session(run, settings.level) as findings:
        programs = [
            Programs(prepared, record, Reporter(findings, record), world=world, is_shared=is_shared, host=host)
            for record in run.records
        ]
        report_source(prepared, programs[0].reporter)
        with one_thread(), authors_breakpoints(prepared.sets_breakpoints), counted_ranges(prepared.kernel):
            try:
                run.outputs = cast(Any, _Ranks(programs, settings.seed).run(by_rank, kwargs))
            finally:
                run.peak_bytes = host.peak
    return run


def _record(run: Run, launch: Launch, rank: int) -> Record:
    record = watched_record()
    record.prints, record.echo, record.rank = run.prints, launch.echo, rank
    return record


class _Ranks:
    """The programs of all ranks: those of rank 0 come first, then those of rank 1."""

    def __init__(self, programs: list[Programs], seed: int | None) -> None:
        self.programs = programs
        self.cores = len(programs[0].programs)
        names = [
            f"rank {rank}, {name}" if self.cores > 1 else f"rank {rank}"
            for rank, each in enumerate(programs)
            for name in each.prepared.names
        ]
        self.baton = Baton(names, self._turn_of, seed)

    def run(self, by_rank: list[tuple[Any, ...]], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Run them all; returns the results in kind, rank by rank."""
        try:
            for each, args in zip(self.programs, by_rank, strict=True):
                _reporting(each, partial(each.enter, args, kwargs))
                each.join(self.baton)
            results = self.baton.run(self._play)
            return tuple(
                _reporting(each, partial(each.finish, results[rank * self.cores : (rank + 1) * self.cores]))
                for rank, each in enumerate(self.programs)
            )
        finally:
            for each in reversed(self.programs):
                each.arguments.restore()

    def _turn_of(self, number: int) -> None:
        self.programs[number // self.cores].turn_of(number % self.cores)

    def _play(self, number: int) -> Any:
        each = self.programs[number // self.cores]
        return _reporting(each, partial(each.play, number % self.cores))


def _reporting(programs: Programs, work: Callable[[], Any]) -> Any:
    """Do work of a rank, with its own reporter."""
    with reporting(programs.reporter):
        return work()


_WORK = 100_000  # candidates that NumPy tries before it says that two strided arrays may have an element in common


def _shared_among(by_rank: list[tuple[Any, ...]], kwargs: dict[str, Any]) -> Callable[[Array], bool]:
    """Return whether an argument's elements are also another rank's: a device's ranks have memories of their own."""
    found = sorted(
        ((*_bounds(array), rank, array) for rank, args in enumerate(by_rank) for array in _arrays((args, kwargs))),
        key=lambda each: each[:3],
    )
    shared: set[tuple[Any, ...]] = set()
    before: list[tuple[int, int, int, Array]] = []
    for each in found:
        before = [other for other in before if other[1] > each[0]]
        for other in before:
            # NumPy's stub has 0 and -1 only.
            if other[2] != each[2] and np.may_share_memory(other[3], each[3], max_work=_WORK):  # type: ignore[arg-type]
                shared |= {_place(other[3]), _place(each[3])}
        before.append(each)
    return lambda array: _place(array) in shared


def _arrays(arguments: Argument) -> list[Array]:
    """Return the arrays that a kernel could write into."""
    found: list[Array] = []
    for _, value in parts_of(arguments):
        framework = framework_of(value)
        if framework is not None:
            with suppress(KernelError):  # what cannot be an argument is said when it enters
                found.append(framework.to_numpy("", value))
    return [array for array in found if array.size and array.flags.writeable]


def _bounds(array: Array) -> tuple[int, int]:
    """Return the first byte of an array, and the one behind its last."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return int(low), int(high)


def _place(array: Array) -> tuple[Any, ...]:
    return (array.__array_interface__["data"][0], array.shape, array.strides)
