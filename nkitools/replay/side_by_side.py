"""Programs of a list that need nothing of each other, in threads: NumPy and BLAS compute without Python's lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from math import prod
from threading import Thread

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.replay.steps import Root, Step, View

# A thread that waits for Python's lock at every step takes longer than it saves, and so does beginning it.
LEAST_STEP = 1 << 18  # bytes that a step touches on average
LEAST_LIST = 1 << 23  # bytes that all steps touch together


def programs_apart(steps: Sequence[Step]) -> list[list[Step]]:
    """Return the steps of each program, in order; all steps together where programs share memory, or threads cost more.

    A device print belongs to the program of the step before it.
    """
    programs: dict[int, list[Step]] = {}
    mine = list[Step]()
    for step in steps:
        if step.printed is None or not programs:
            mine = programs.setdefault(id(step.engines), [])
        mine.append(step)
    found = list(programs.values())
    return found if len(found) > 1 and _are_long(steps) and _are_apart(found) else [list(steps)]


def _are_long(steps: Sequence[Step]) -> bool:
    touched = sum(prod(view.shape) * view.dtype.itemsize for step in steps for _, view in step.views())
    return touched >= max(LEAST_STEP * len(steps), LEAST_LIST)


def _are_apart(programs: Sequence[Sequence[Step]]) -> bool:
    """Return whether no program touches a byte that another one writes, nor memory of the kernel's own that it uses."""
    owners: dict[Root, Array] = {}  # for each byte the number of the program that writes it, 0 for none
    users: dict[Root, int] = {}
    for number, steps in enumerate(programs, 1):
        for step in steps:
            if any(users.setdefault(view.root, number) != number and view.root.is_own for _, view in step.views()):
                return False
            for view in step.writes():
                written = _owners_of(view, owners)
                if ((written != 0) & (written != number)).any():
                    return False
                written[...] = number
    return all(
        view.root not in owners or np.isin(_owners_of(view, owners), (0, number)).all()
        for number, steps in enumerate(programs, 1)
        for step in steps
        for view in step.sources()
    )


def _owners_of(view: View, owners: dict[Root, Array]) -> Array:
    """Return the part of the numbers of a root's bytes that a view shows."""
    if view.root not in owners:
        owners[view.root] = np.zeros(view.root.nbytes, np.int16)
    shape, strides = (*view.shape, view.dtype.itemsize), (*(2 * each for each in view.strides), 2)
    return np.ndarray(shape, np.int16, owners[view.root], 2 * view.offset, strides)


def side_by_side(programs: Sequence[Callable[[], None]], count: int, begin: Callable[[], None]) -> None:
    """Execute programs in so many threads, this one among them, and wait for all; raises an error that one has raised.

    ``begin`` is called in each of the other threads first.
    """
    if count == 1 or len(programs) == 1:
        for each in programs:
            each()
        return
    parts = [programs[first::count] for first in range(min(count, len(programs)))]
    errors: list[Exception] = []

    def work(part: Sequence[Callable[[], None]]) -> None:
        try:
            begin()
            for each in part:
                each()
        except Exception as error:
            errors.append(error)

    # Each thread has the evidence, the reporter and the flags of this one.
    threads = [Thread(target=copy_context().run, args=(work, part)) for part in parts[1:]]
    for thread in threads:
        thread.start()
    try:
        for each in parts[0]:
            each()
    finally:
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
