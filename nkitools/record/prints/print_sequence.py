"""The device prints of a run or of several: a list with filters, which keeps large values within a limit."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias, overload

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.facts import options
from nkitools.facts.light_classes import replace

if TYPE_CHECKING:
    from nkitools.record.prints.device_print import Print

_IN_ALL = 16  # so many values of the size of the limit are kept of one run
_LISTED = 12  # prints that the repr lists

Wanted: TypeAlias = int | Collection[int]  # the value of a loop counter, or several


class PrintFilters:
    """The filters of a sequence of device prints."""

    @property
    def now(self) -> Prints:
        """The prints so far, as a sequence of their own."""
        raise NotImplementedError

    def where(self, condition: Callable[[Print], object] | None = None, /, **counters: Wanted) -> Prints:
        """Return the prints whose loop counters have these values: ``where(m=0)``, ``where(m=range(2), n=1)``.

        Counters that Python cannot name are given as ``where(**{"tile.m": 0})``. ``condition`` is called with each
        print: ``where(lambda one: one.nan_count)``.
        """

        def fits(one: Print) -> bool:
            if condition is not None and not condition(one):
                return False
            return all(is_among(one.loops.get(name), value) for name, value in counters.items())

        said = [f"{name}={value!r}" for name, value in counters.items()]
        return self.now._those(fits, f"where {', '.join([*said, *(['the condition holds'] if condition else [])])}")

    def program(self, *index: int) -> Prints:
        """Return the prints of one program: ``program(1)``, in a grid of two dimensions ``program(0, 1)``."""
        return self.now._those(lambda one: (one.program or (0,)) == index, f"of program {', '.join(map(str, index))}")

    def rank(self, rank: int) -> Prints:
        """Return the prints of one of the communicating ranks."""
        return self.now._those(lambda one: one.rank == rank, f"of rank {rank}")

    def at(self, place: int | str) -> Prints:
        """Return the prints of one line: ``at(57)`` or ``at("giou.py:57")``."""
        file, _, line = str(place).rpartition(":")
        return self.now._those(
            lambda one: str(one.line) == line and (not file or is_file(one.file, file)), f"at line {place}"
        )

    @property
    def values(self) -> list[Array]:
        """The values alone, one array a print: ``np.testing.assert_allclose(prints["x"].values, expected)``."""
        return [one.value for one in self.now]

    @property
    def prefixes(self) -> list[str]:
        """The prefixes, each once, in the order in which they were first printed."""
        return list(dict.fromkeys(one.prefix for one in self.now))


class Prints(PrintFilters, list["Print"]):
    """Device prints in order: a list, and ``prints["preds"]`` are the prints with one prefix.

    A prefix, a slice and filters return a sequence of the same kind, empty if no print fits, so that they can be
    chained: ``prints["preds"].where(m=0).program(1).rank(0)``. Two sequences (or lists) of equal prints are equal; see
    `Print`.
    """

    _limit: int | None = None
    _left = 0
    _why_empty = ""

    @overload
    def __getitem__(self, which: SupportsIndex) -> Print: ...
    @overload
    def __getitem__(self, which: slice | str) -> Prints: ...
    def __getitem__(self, which: SupportsIndex | slice | str) -> Print | Prints:
        __tracebackhide__ = True
        if isinstance(which, str):
            return self._those(lambda one: one.prefix == which, f"with prefix {which!r}")
        if isinstance(which, slice):
            return Prints(super().__getitem__(which))
        try:
            return super().__getitem__(which)
        except IndexError:
            asked = f" {self._why_empty}" if self._why_empty else ""
            raise IndexError(f"print {which.__index__()} of {len(self)} prints{asked}") from None

    @property
    def now(self) -> Prints:
        """Return the sequence itself; a live view, as of `nkitools.capture_prints`, returns a copy."""
        return self

    def _those(self, fits: Callable[[Print], bool], asked: str) -> Prints:
        found = Prints(one for one in self if fits(one))
        found._why_empty = " and ".join(filter(None, (self._why_empty, asked)))
        if not found:
            found._why_empty = f"{asked}; {self._there_are()}" if self else self._why_empty or "(there are no prints)"
        return found

    def __add__(self, other: Iterable[Print]) -> Prints:  # type: ignore[override]
        return Prints([*self, *other])

    def __repr__(self) -> str:
        if not self:
            return f"<Prints: none{f' {self._why_empty}' if self._why_empty else ''}>"
        lines = [f"  {number}: {one!r}" for number, one in enumerate(self[:_LISTED])]
        more = [f"  ... and {len(self) - _LISTED} more"] if len(self) > _LISTED else []
        return "\n".join([f"<Prints: {len(self)}", *lines, *more]) + ">"

    def _there_are(self) -> str:
        counts = Counter(one.prefix for one in self)
        return f"there are {', '.join(f'{prefix!r} ({count})' for prefix, count in counts.most_common(8))}"

    def append(self, one: Print) -> None:
        """Append a print; the given object stays as it is.

        A print without an order (-1) is stored as a copy with its position as the order. A print whose value has more
        bytes than the option ``print_limit``, or than is left of 16 times as many for this sequence, is stored as a
        copy with summary and corners.
        """
        if one.is_whole and not self._takes(one.value.nbytes):
            one = self._reduced(one)
        if one.order < 0:
            one = replace(one, order=len(self))
        super().append(one)

    def extend(self, prints: Iterable[Print]) -> None:
        """Append each print of an iterable as `append` does."""
        for one in [*prints]:  # which may be this sequence
            self.append(one)

    def keep(self, one: Print) -> None:
        """Append a print that was made for this sequence, and whose value is the tensor's own memory.

        The print itself gets a copy of the value, and its position as the order. Beyond the limit (see `append`) a copy
        with summary and corners is appended in its place.
        """
        if self._takes(one.value.nbytes):
            object.__setattr__(one, "value", np.array(one.value))
        else:
            one = self._reduced(one)
        object.__setattr__(one, "order", len(self))  # of a print that was made just now, for this sequence
        super().append(one)

    def _takes(self, nbytes: int) -> bool:
        """Return whether there is room for so many bytes, which are then taken."""
        if self._limit is None:  # when the first one comes: a run that prints nothing asks for no option
            self._limit = print_limit()
            self._left = _IN_ALL * self._limit
        if nbytes > min(self._limit, self._left):
            return False
        self._left -= nbytes
        return True

    def _reduced(self, one: Print) -> Print:
        from nkitools.record.prints.device_print import missing_of
        from nkitools.record.prints.summaries import corners_of, summary_of

        summary = summary_of(one.value, missing_of(one.mask, one.unwritten))
        mask, unwritten = (None if each is None else corners_of(each) for each in (one.mask, one.unwritten))
        return replace(one, value=summary.corners, mask=mask, unwritten=unwritten, reduced=summary)


def joined(sequences: Iterable[Sequence[Print]]) -> Prints:
    """Return the prints of several runs, one run after the other."""
    return Prints(one for each in sequences for one in each)


def as_prints(prints: list[Print]) -> Prints:
    """Return a list of prints as `Prints`, itself if it is one."""
    return prints if isinstance(prints, Prints) else Prints(prints)


def print_limit() -> int:
    """Return the option ``print_limit`` in bytes: the most that a print keeps by value, and a run 16 times as many."""
    return int(float(str(options.value("print_limit"))) * 2**20)


def is_file(path: str, asked: str) -> bool:
    """Return whether ``asked``, a name or the end of a path, means the file ``path``."""
    wanted = os.path.normpath(asked)
    return path == wanted or path.endswith(os.sep + wanted)


def is_among(value: int | None, wanted: Wanted) -> bool:
    """Return whether a counter has the value that is wanted, or one of several."""
    return value in wanted if isinstance(wanted, Collection) else value == wanted
