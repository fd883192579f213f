"""A list of steps with memory of its own: it is executed on the arguments of a run, instead of the kernel's Python."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from nkitools.chip.core import CORE
from nkitools.chip.numeric_flags import noticing
from nkitools.chip.numerics import Array
from nkitools.record.prints.device_print import Print
from nkitools.replay.gathers import ChosenRows, CopiedRows, Gather, rows_of
from nkitools.replay.side_by_side import programs_apart, side_by_side
from nkitools.replay.steps import Root, Step, View, bytes_of
from nkitools.rules.finding import REPORTER

_MOVES = ("copy", "gather")  # kinds of steps that leave values as they are, so that nothing is to notice
_ALIGNMENT = 64  # bytes: a line of the cache


class _Evidence(Exception):
    """A value called for a look at it."""


class StepList:
    """Steps, ready to be executed.

    What lies in memory of the kernel's own is bound once. Arguments and results are other arrays in each run: their
    places are filled when it begins.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.lock = threading.Lock()  # the memory of its own serves one run at a time
        views = [view for step in steps for _, view in step.views()]
        roots = {id(view.root): view.root for view in views}
        # A written argument stays as it is until all steps have passed: they work on a copy.
        self.changed = [root for root in roots.values() if root.argument >= 0 and root.is_written]
        programs = programs_apart(steps)
        self._memory, self.nbytes = dict[Root, Array](), 0
        for program in programs:
            memory, nbytes = placed(program)
            self._memory.update(memory)
            self.nbytes += nbytes
        self._gathers: dict[int, list[CopiedRows | Gather]] = {}  # by rank
        for step in steps:
            if isinstance(step.compute, (CopiedRows, Gather)) and step.engines is not None:
                self._gathers.setdefault(step.engines.rank or 0, []).append(step.compute)
        self.only_moves = all(step.kind in _MOVES and not step.masks for step in steps)
        self._engines: list[Any] = []
        self._printed: dict[int, Print] = {}  # by the number of the step
        self._holes: dict[View, list[tuple[list[Any], int]]] = {}  # where arrays of arguments and results belong
        self._calls: list[list[tuple[Callable[..., Any], list[Any]]]] = []
        numbers = {id(step): number for number, step in enumerate(steps)}
        self._known: dict[tuple[int, ...], list[Any]] = {}  # by the identities of arguments: those bound
        self._arrays: dict[int, Array] = {}  # by the identity of a view
        for program in programs:
            self._calls.append([])
            self._bind(program, self._calls[-1], numbers)
        del self._known, self._arrays

    def _bind(
        self, steps: Sequence[Step], calls: list[tuple[Callable[..., Any], list[Any]]], numbers: dict[int, int]
    ) -> None:
        engines = None
        for step in steps:
            if step.engines is not engines and step.printed is None:
                engines = step.engines
                self._engines.append(engines)
                calls.append((CORE.set, [engines]))
            compute = partial(step.compute, **step.keywords) if step.keywords else step.compute
            if step.masks:
                compute = partial(_masked, compute, step.masks, _same_views(step))
            if step.printed is not None:
                compute = partial(self._print, numbers[id(step)], step.printed)
            calls.append((compute, self._bound(step.arguments)))

    def _bound(self, arguments: Sequence[Any]) -> list[Any]:
        """Return arguments with arrays in the place of views; steps with the same arguments share the list."""
        key = tuple(map(id, arguments))
        bound = self._known.get(key)
        if bound is not None:
            return bound
        bound = self._known[key] = list(arguments)
        for number, each in enumerate(arguments):
            if each.__class__ is View:
                bound[number] = self._array(each)
                if bound[number] is None:
                    self._holes.setdefault(each, []).append((bound, number))
        return bound

    def _array(self, view: View) -> Array | None:
        """Return the array of a view, None where it is another one in each run."""
        array = self._arrays.get(id(view))
        if array is None and view.root in self._memory:
            array = self._arrays[id(view)] = view.on(self._memory[view.root])
        return array

    def _print(self, number: int, one: Print, value: Array) -> None:
        self._printed[number] = replace(one, value=np.array(value), order=-1)

    @property
    def has_programs_apart(self) -> bool:
        """Return whether several threads may execute it."""
        return len(self._calls) > 1

    def next_rows(self) -> dict[int, ChosenRows]:
        """Return for each rank with gathers what gives the rows that data choose in the next execution."""
        return {rank: rows_of(gathers) for rank, gathers in self._gathers.items()}

    def execute(
        self,
        inputs: Sequence[Array],
        results: Sequence[Array],
        *,
        looks: bool,
        threads: int = 1,
        begin: Callable[[], None] = lambda: None,
    ) -> list[Print] | None:
        """Compute the results from the arguments, all of them contiguous arrays; returns the device prints.

        None where a value calls for a look at it: nothing but ``results`` has then changed. ``looks``: whether values
        are looked at, which rules="off" does without. ``threads``: how many may execute programs side by side;
        ``begin`` is called in each of the other ones first.
        """
        evidence: list[Any] = []
        self._printed = {}
        for root in self.changed:
            np.copyto(self._memory[root], bytes_of(inputs[root.argument]))
        for view, places in self._holes.items():
            root = view.root
            array = view.of(results[root.result] if root.result >= 0 else inputs[root.argument])
            for arguments, number in places:
                arguments[number] = array
        for engines in self._engines:
            engines.reset()
        core = CORE.set(None)
        try:
            if self.only_moves and len(self._calls) == 1:
                _compute(self._calls[0])
            else:
                with unreported(), noticing(evidence if looks else None):
                    side_by_side([partial(_compute, calls) for calls in self._calls], threads, begin)
        except Exception:  # the kernel's own run raises it again, at its line
            return None
        finally:
            CORE.reset(core)
            for places in self._holes.values():
                for arguments, number in places:
                    arguments[number] = None
        if evidence:
            return None
        for root in self.changed:
            np.copyto(bytes_of(inputs[root.argument]), self._memory[root])
        return [self._printed[number] for number in sorted(self._printed)]


def _compute(calls: Sequence[tuple[Callable[..., Any], list[Any]]]) -> None:
    for compute, arguments in calls:
        compute(*arguments)


@contextmanager
def unreported() -> Iterator[None]:
    """Raise an exception in place of each report of the block."""
    token = REPORTER.set(_no_report)
    try:
        yield
    finally:
        REPORTER.reset(token)


def _no_report(*args: Any, **kwargs: Any) -> bool:
    raise _Evidence


def _masked(compute: Callable[..., Any], masks: dict[int, Array], same: dict[int, int], *arguments: Any) -> None:
    """Compute into copies of the masked outputs, and put those elements of them where they belong that are written."""
    given = list(arguments)
    for number in masks:
        given[number] = np.array(arguments[number])
    for number, output in same.items():
        given[number] = given[output]
    compute(*given)
    for number, mask in masks.items():
        np.copyto(arguments[number], given[number], where=mask)


def _same_views(step: Step) -> dict[int, int]:
    """Return the operands that are a masked output themselves, and see what is computed there."""
    return {
        number: output
        for number, view in step.views()
        for output in step.masks
        if number != output and view is step.arguments[output]
    }


def placed(steps: Sequence[Step]) -> tuple[dict[Root, Array], int]:
    """Return the bytes of each root that is the same in every run, and how many bytes all of them are.

    Those that are not alive at the same time share memory, the most recently used first: it is in the cache.
    """
    last: dict[Root, int] = {}
    reach: dict[Root, int] = {}  # bytes that are used: of a whole memory with addresses few
    seen: set[int] = set()
    for number, step in enumerate(steps):
        for _, view in step.views():
            last[view.root] = number
            if id(view) not in seen:
                seen.add(id(view))
                reach[view.root] = max(reach.get(view.root, 0), view.bounds[1])
    memory: dict[Root, Array] = {}
    free: dict[int, list[Array]] = {}
    ending: dict[int, list[Root]] = {}
    total = 0
    for number, step in enumerate(steps):
        for _, view in step.views():
            root = view.root
            if root in memory or root.result >= 0:
                continue
            if root.constant is not None:
                memory[root] = root.constant
            elif root.argument >= 0:
                if root.is_written:
                    memory[root] = _bytes(root.nbytes)
                    total += root.nbytes
            else:
                kept = free.setdefault(reach[root], [])
                if not kept:
                    kept.append(_bytes(reach[root]))
                    total += reach[root]
                memory[root] = kept.pop()
                ending.setdefault(last[root], []).append(root)
        for root in ending.pop(number, ()):
            free[reach[root]].append(memory[root])
    return memory, total


def _bytes(count: int) -> Array:
    """Return memory that begins where a line of the cache does."""
    raw = np.empty(count + _ALIGNMENT, np.uint8)
    start = -int(raw.__array_interface__["data"][0]) % _ALIGNMENT
    return raw[start : start + count]
