"""A failed assertion on a simulated result: the wrong elements, who wrote them, and what they were made from."""

from __future__ import annotations

import ast
import linecache
import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

import numpy as np
import pytest

from nkitools import options
from nkitools.record.saved.encoding import as_array, leaves
from nkitools.report.tolerance import Tolerance, diverging, numbers_of
from nkitools.rules.code_lines import line_at
from nkitools.rules.shown_text import shown
from nkitools.why.asked_elements import Asked
from nkitools.why.element_slices import nearest_steps

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument
    from nkitools.chip.numerics import Array
    from nkitools.record.expected_outputs import Reference
    from nkitools.record.instruction_record import InstructionRecord
    from nkitools.record.run import Run

HEADING = "nki why"
_PAIRS = (("actual", "desired"), ("actual", "expected"), ("x", "y"), ("a", "b"))
"""The names that functions which compare arrays have for what came out, and for what should have."""

_NEAREST = 4  # instructions before the one that wrote the element
_MOST_BISECTED = 5_000  # instructions of a run whose first wrong line is looked for
_MOST_SAVED = 200_000  # instructions of a run that is saved for the command


@dataclass(frozen=True, eq=False)
class _Difference:
    """A result of a run, and what a test has expected of it; ``apart``: the elements that differ."""

    run: Run
    place: int
    actual: Array
    expected: Array
    apart: Array
    stated: tuple[float | None, float | None]  # the relative and the absolute tolerance of the test


def assert_as_expected(outputs: Argument, reference: Reference) -> None:
    """Compare the outputs of a kernel with its reference, by the stated tolerance, as ``assert_allclose`` does."""
    __tracebackhide__ = True
    found, wanted = dict(leaves(outputs)), dict(leaves(reference.values))
    if found.keys() != wanted.keys():
        raise AssertionError(f"the kernel returns {', '.join(found)}; the reference has {', '.join(wanted)}")
    for place, value in found.items():
        np.testing.assert_allclose(
            numbers_of(value),
            numbers_of(wanted[place]),
            reference.rtol or 0.0,
            reference.atol or 0.0,
            equal_nan=reference.equal_nan,
            err_msg=place if len(found) > 1 else "",
        )


def wrong_elements(config: pytest.Config, nodeid: str, failure: BaseException, runs: Sequence[Run]) -> list[str]:
    """Return five lines about a failed assertion on a result of some runs; none where it is about something else."""
    if options.value("why") == "off" or not isinstance(failure, AssertionError):
        return []
    found = next(_differences(failure.__traceback__, runs), None)
    return [] if found is None else [shown(line) for line in _lines(config, nodeid, found)]


def _differences(traceback: TracebackType | None, runs: Sequence[Run]) -> Iterator[_Difference]:
    """Yield the results that the frames of a failure compare, the innermost frame first."""
    frames = []
    while traceback is not None:
        frame = traceback.tb_frame
        frames.append((frame, line_at(frame.f_code, traceback.tb_lasti, traceback.tb_lineno)))
        traceback = traceback.tb_next
    results = [
        (run, place, array)
        for run in reversed(runs)
        if run.all_records
        for place, (_, array) in enumerate(leaves(run.outputs))
        if isinstance(array, np.ndarray) and array.dtype.names is None
    ]
    for frame, line in reversed(frames):
        for actual, expected in _compared(frame, line):
            for run, place, result in results:
                if _is_same(result, actual):
                    stated = _tolerance(frame)
                    apart = _apart(stated, result, expected)
                    if apart.any():
                        yield _Difference(run, place, result, expected, apart, stated)


def _compared(frame: FrameType, line: int) -> Iterator[tuple[Array, Array]]:
    """Yield pairs of arrays that a frame compares: by the names of such functions, else those of the failed line."""
    values = {name: array for name, value in frame.f_locals.items() if (array := as_array(value)) is not None}
    for actual, expected in _PAIRS:
        if actual in values and expected in values and values[actual].shape == values[expected].shape:
            yield values[actual], values[expected]
    named = [values[name] for name in _names(frame, line) if name in values]
    for at, first in enumerate(named):
        for second in named[at + 1 :]:
            if first.shape == second.shape:
                yield first, second
                yield second, first


def _names(frame: FrameType, line: int) -> list[str]:
    """Return the names on a line of source, in their order."""
    text = linecache.getline(frame.f_code.co_filename, line).strip()
    try:
        tree = ast.parse(text)
    except SyntaxError:  # a statement of several lines
        return []
    return list(dict.fromkeys(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)))


def _is_same(result: Array, seen: Array) -> bool:
    """Return whether an array is a result, or holds the same numbers."""
    if result.shape != seen.shape or seen.dtype.names is not None:
        return False
    is_view = result.__array_interface__["data"] == seen.__array_interface__["data"]
    return is_view or bool(np.array_equal(numbers_of(result), numbers_of(seen), equal_nan=True))


def _tolerance(frame: FrameType) -> tuple[float | None, float | None]:
    """Return the tolerances that a frame has."""
    limits = [frame.f_locals.get(name) for name in ("rtol", "atol")]
    relative, absolute = (float(each) if isinstance(each, (int, float)) else None for each in limits)
    return relative, absolute


def _apart(stated: tuple[float | None, float | None], result: Array, expected: Array) -> Array:
    """Return which elements differ, within the stated tolerances, else by dtype."""
    names = [each.dtype.name for each in (result, expected)]
    return diverging(numbers_of(expected), numbers_of(result), *Tolerance(*stated).of(names))


# --- what is said of it ---------------------------------------------------------------------------------------------


def _lines(config: pytest.Config, nodeid: str, found: _Difference) -> list[str]:
    first = tuple(int(at) for at in np.argwhere(found.apart)[0])
    with np.errstate(all="ignore"):
        far = np.abs(numbers_of(found.actual) - numbers_of(found.expected))
    far = np.where(found.apart, np.where(np.isnan(far), np.inf, far), -1)
    worst = tuple(int(at) for at in np.unravel_index(int(far.argmax()), far.shape))
    number, access = [
        (number, access) for number, record in enumerate(found.run.all_records) for access in record.outputs
    ][found.place]
    wanted = np.zeros(access.layout.shape, np.bool_)
    wanted[first] = True
    steps = nearest_steps(found.run, Asked(number, access, wanted), _NEAREST + 1)
    name = found.run.all_records[number].name_of(access.storage) or f"result {found.place}"
    count = int(np.count_nonzero(found.apart))
    lines = [
        f"first wrong: {_element(name, first, found)}; {count} of {found.apart.size} differ",
        f"worst wrong: {_element(name, worst, found)}",
        f"{name}{_shown(first)} was {f'written by {_place(steps[0])}' if steps else 'never written'}",
    ]
    if len(steps) > 1:
        lines.append(f"made from what {', '.join(_place(each) for each in steps[1:])} wrote")
    return [*lines, *_too_close(found), *_bisected(found.run), f"more: {_command(config, nodeid, found, first)}"]


def _too_close(found: _Difference) -> list[str]:
    """Return a sentence where the test allows less than its run's dtypes and sums explain."""
    if found.stated == (None, None) or len(found.run.instructions) > _MOST_BISECTED:
        return []
    try:
        explained = found.run.tolerance()[found.place]
    except (ValueError, IndexError):  # the run cannot be repeated
        return []
    sentence = explained.too_narrow(found.stated[0] or 0.0, found.stated[1] or 0.0)
    return [f"tolerance: {sentence}"] if sentence else []


def _bisected(run: Run) -> list[str]:
    """Return the first line that is wrong, where the test has a reference."""
    if run.reference is None or len(run.instructions) > _MOST_BISECTED:
        return []
    from nkitools.why.bisection import bisection_of_run

    try:
        found = bisection_of_run(run)
    except Exception as error:  # a mistake in the reference must not hide the failure of the test
        return [f"bisect: {type(error).__name__}: {error}"]
    return [] if found is None or not found.places else [f"bisect: {line.strip()}" for line in found.lines()[:6]]


def _element(name: str, index: tuple[int, ...], found: _Difference) -> str:
    return f"{name}{_shown(index)} is {found.actual[index]}, expected {found.expected[index]}"


def _shown(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]"


def _place(one: InstructionRecord) -> str:
    where = [f"rank {one.rank}"] if one.rank is not None else []
    where += [f"program {', '.join(map(str, one.program))}"] if any(one.program) else []
    where += [f"turn {', '.join(f'{name}={value}' for name, value in one.loops.items())}"] if one.loops else []
    return f"{os.path.basename(one.file)}:{one.line} {one.name}" + (f" ({', '.join(where)})" if where else "")


def _command(config: pytest.Config, nodeid: str, found: _Difference, index: tuple[int, ...]) -> str:
    """Return what tells more: a command on the saved run, or, where no cache keeps it, the call in Python."""
    call = f"run_kernel.run.why({found.place}, {index})"
    cache = getattr(config, "cache", None)
    if cache is None or len(found.run.instructions) > _MOST_SAVED:
        return call
    try:
        path = Path(cache.mkdir("nkitools")) / f"{sha1(nodeid.encode()).hexdigest()[:12]}.json"
        found.run.save(path)
    except OSError:
        return call
    shown = os.path.relpath(path, config.invocation_params.dir)
    element = ",".join(map(str, index))
    return f"nkitools why {shlex.quote(shown)} --element {element} --output {found.place}; with values: {call}"
