"""The first difference of two arrays, of two runs' prints and of two runs' kept writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.comparison.compared_arrays import ComparedArrays, compared, shown
from nkitools.comparison.rule import Rule

if TYPE_CHECKING:
    from nkitools.record.prints.device_print import Print
    from nkitools.record.run import Run
    from nkitools.record.watch.written import Written


@dataclass(frozen=True)
class Values:
    """The difference of two arrays of one shape: the first different element, the count, and the largest distance.

    ``worst``: that distance, None if a different element is NaN or infinite in one array. ``first``, ``second``: the
    two values at ``index``, as texts. ``flat``: that index in C order. ``rtol``, ``atol``: the allowed differences.
    """

    index: tuple[int, ...]
    flat: int
    first: str
    second: str
    different: int
    size: int
    worst: float | None
    rtol: float
    atol: float

    def text(self) -> str:
        """Return ``element [3, 17] (1553): 0.25 and 0.5; 16 of 65536 differ, by up to 0.25``."""
        index = ", ".join(map(str, self.index))
        element = f"element [{index}] ({self.flat})" if self.index else "the value"
        most = "some by NaN or infinity" if self.worst is None else f"by up to {self.worst:.4g}"
        return f"{element}: {self.first} and {self.second}; {self.different} of {self.size} differ, {most}"


@dataclass(frozen=True)
class Place:
    """The place of a print or a write in each of two runs, as text."""

    first: str
    second: str

    def text(self) -> str:
        """Return both texts, or one if they are equal."""
        return self.first if self.first == self.second else f"{self.first}; in the second {self.second}"


@dataclass(frozen=True)
class Diverging:
    """A print, a write or an output that differs between two runs; ``why``: the reason if values cannot be compared.

    ``writers``: for an element of an output, its last writer in each run.
    """

    what: str
    place: Place | None
    values: Values | None
    why: str = ""
    writers: Place | None = None

    def lines(self) -> list[str]:
        """Return text lines: what differs, the element, and its writers."""
        where = f" [{self.place.text()}]" if self.place is not None else ""
        found = [f"{self.what}{where}", f"  {self.values.text() if self.values is not None else self.why}"]
        return [*found, f"  written by {self.writers.text()}"] if self.writers is not None else found


def values_of(found: ComparedArrays) -> Values | None:
    """Return the difference of two compared arrays; None if they agree."""
    if not found.count:
        return None
    index = found.first
    flat = int(np.argmax(found.wrong))
    first, second = (shown(each, index) for each in (found.actual, found.expected))
    return Values(index, flat, first, second, found.count, found.size, found.largest, found.rtol, found.atol)


def place_of(name: str, rank: int | None, program: tuple[int, ...], loops: dict[str, int], file: str, line: int) -> str:
    parts = [f"rank {rank}"] if rank is not None else []
    parts += [f"program {', '.join(map(str, program))}"] if any(program) else []
    parts += [f"{counter}={value}" for counter, value in loops.items()]
    return ", ".join([f"{name} at {file}:{line}", *parts])


def prints_of(first: Run, second: Run, rule: Rule) -> tuple[Diverging | None, tuple[list[str], list[str]]]:
    keys = [_print_keys(run, first, second) for run in (first, second)]
    there = dict(zip(keys[1], second.prints, strict=True))
    diverging_print = None
    for key, one in zip(keys[0], first.prints, strict=True):
        other = there.get(key)
        if other is not None and diverging_print is None:
            diverging_print = _print_difference(one, other, rule)
    only = [
        [one.header() for key, one in zip(mine, run.prints, strict=True) if key not in theirs]
        for run, mine, theirs in ((first, keys[0], set(keys[1])), (second, keys[1], set(keys[0])))
    ]
    return diverging_print, (only[0], only[1])


def _print_keys(run: Run, first: Run, second: Run) -> list[Hashable]:
    """Return the key of a print that both runs have, and the number of earlier prints with the same key.

    The key has no programs or counters if the device of a run does not give them.
    """
    told = [
        name
        for name in ("program", "loops")
        if all(any(getattr(one, name) for one in r.prints) for r in (first, second))
    ]
    seen: Counter[Hashable] = Counter()
    keys: list[Hashable] = []
    for one in run.prints:
        program = (one.program or (0,)) if "program" in told else ()
        loops = tuple(one.loops.items()) if "loops" in told else ()
        key = (one.prefix, one.rank, program, loops)
        keys.append((*key, seen[key]))
        seen[key] += 1
    return keys


def _print_difference(one: Print, other: Print, rule: Rule) -> Diverging | None:
    what, place = f"print {one.prefix!r}", Place(one.place(), other.place())
    if one.shape != other.shape:
        return Diverging(what, place, None, f"shapes {list(one.shape)} and {list(other.shape)}")
    if not one.is_whole or not other.is_whole:
        if _numbers(one) == _numbers(other):
            return None
        why = f"of values beyond the print limit: {one.numbers()} and {other.numbers()}"
        return Diverging(what, place, None, why)
    hidden = left_out(one)
    if not np.array_equal(hidden, left_out(other)):
        return Diverging(what, place, None, "other elements are masked or were never written")
    values = values_of(compared(one.value, other.value, rule, dtypes=(one.dtype, other.dtype), looked_at=~hidden))
    return None if values is None else Diverging(what, place, values)


def _numbers(one: Print) -> tuple[Any, ...]:
    return one.min, one.max, one.mean, one.nan_count, one.inf_count


def left_out(one: Print | Written) -> Array:
    """Return the elements of a print or a write that are masked or were never written."""
    found = np.zeros(one.value.shape, np.bool_)  # type: ignore[union-attr]
    for name in ("mask", "unwritten"):
        elements = getattr(one, name, None)
        if elements is not None:
            found |= elements
    return found


def writes_of(first: Run, second: Run, rule: Rule) -> Diverging | None:
    """Return the first differing write with values in both runs; writes match by tensor, program and counters."""
    there = dict(keyed(second.writes))
    for key, one in keyed(first.writes):
        other = there.get(key)
        if other is None or one.value is None or other.value is None or one.shape != other.shape:
            continue
        written = ~(left_out(one) | left_out(other))
        found = compared(one.value, other.value, rule, dtypes=(one.dtype, other.dtype), looked_at=written)
        values = values_of(found)
        if values is not None:
            return Diverging(
                f"write to {one.tensor or 'a tensor'}", Place(_write_place(one), _write_place(other)), values
            )
    return None


def keyed(writes: Iterable[Written]) -> Iterable[tuple[Hashable, Written]]:
    """Yield each write with its tensor, rank, program, counters, and how many such there were before."""
    seen: Counter[Hashable] = Counter()
    for one in writes:
        key = (one.tensor, one.rank, one.program, tuple(one.loops.items()))
        yield (*key, seen[key]), one
        seen[key] += 1


def _write_place(one: Written) -> str:
    return place_of(one.instruction, one.rank, one.program, one.loops, one.file, one.line)
