"""Lines, counters, programs, storages, layouts and plans by the numbers that stand for them in a page's columns."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from nkitools.chip.layout import LAYOUTS
from nkitools.record.record import Record
from nkitools.record.run import Run
from nkitools.record.source_sites import UNKNOWN, Site
from nkitools.rules.shown_text import shown_file

_TABLES = ("places", "loops", "programs", "callers", "storages", "layouts", "plans", "dtypes", "element_maps")


class Named:
    """Tables of things of a run, each with its number; ``bases``: the first position of each record of the run.

    ``tables``: by name. ``storages``: the storages of the run; several may look alike.
    """

    def __init__(self, run: Run, bases: Sequence[int]) -> None:
        self._run = run
        self._bases = bases
        self.tables = {name: Table() for name in _TABLES}
        self.tables["loops"].place(())
        self.storages = Table()

    def by_record(self) -> Iterable[tuple[int, Record]]:
        """Return the records, each with its first position."""
        return zip(self._bases, self._run.all_records, strict=True)

    def place(self, site: Site) -> int:
        """Return the number of a line of the author's."""
        return self.tables["places"].place((site.file, site.line))

    def place_at(self, file: str, line: int) -> int:
        """Return the number of a line of a file."""
        return self.tables["places"].place((file or UNKNOWN.file, line))

    def callers(self, lines: tuple[tuple[str, int], ...]) -> int:
        """Return the number of the lines that called a line, from file to file."""
        return self.tables["callers"].place(lines, [self.place_at(file, line) for file, line in lines])

    def counters(self, loops: dict[str, int]) -> int:
        """Return the index of a turn in the table of loops; add it if it is new."""
        return self.tables["loops"].place(tuple(loops.items()))

    def program(self, rank: int | None, program: Sequence[int]) -> int:
        """Return the number of a program of a rank."""
        return self.tables["programs"].place((rank, tuple(program)), [rank, list(program)])

    def storage(self, base: int, number: int) -> int:
        """Return a storage by its place; storages of different ranks may have one number."""
        return self.storages.place((base, number), lambda: self._kind_of(base, number))

    def _kind_of(self, base: int, number: int) -> int:
        record = next((each for at, each in self.by_record() if at == base and number in each.storages), None)
        if record is None:
            return self.tables["storages"].place("unknown", ["", "", "", [], self.place(UNKNOWN), 0, [], []])
        known = record.storages[number]
        place = self.place(record.sites[known.site] if known.site >= 0 else UNKNOWN)
        about = record.name_of(number), known.memory, known.dtype, known.shape, place, int(known.has_address)
        return self.tables["storages"].place((*about, known.tile_shape, known.elements))

    def layout(self, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> int:
        """Return the number of a layout by its shape, its strides (bytes) and the bytes of an element."""
        key = (tuple(shape), tuple(strides), itemsize)
        return self.tables["layouts"].place(key, [list(shape), list(strides), itemsize])

    def layout_of(self, key: int) -> int:
        """Return the number of an interned layout."""
        layout = LAYOUTS[key]
        return self.layout(layout.shape, layout.strides, layout.dtype.itemsize)

    def plan(self, plan: Any) -> int:
        """Return the number of a plan."""
        # For each operand: 0 is read, 1 is written to, 2 is overwritten whole.
        written = [int(each) for each in plan.written]
        elements = self.tables["element_maps"].place(plan.element_text())
        cost = number(float(plan.nanoseconds or plan.cycles))
        row = [plan.name, plan.engine, cost, written, list(plan.operands), elements]
        return self.tables["plans"].place(repr((row, plan.names_only)), row)

    def files(self) -> list[dict[str, Any]]:
        """Return the author's files whose text is available, that of the first instruction first."""
        sources = self._run.sources
        named = dict.fromkeys(file for file, _ in self.tables["places"].rows if file != UNKNOWN.file)
        short = short_names(list(named))
        lines = {file: [line for other, line in self.tables["places"].rows if other == file] for file in named}
        return [{"path": file, "name": short[file], **excerpt(sources.get(file, ""), lines[file])} for file in named]


def short_names(files: list[str]) -> dict[str, str]:
    """Return the last part of each path, and as many parts before it as make the paths distinct."""
    short = {file: shown_file(file, whole=False) or file for file in files}
    for depth in range(2, 6):
        names = list(short.values())
        for file, name in short.items():
            if names.count(name) > 1:
                short[file] = "/".join(file.replace(os.sep, "/").split("/")[-depth:])
    return short


_WHOLE, _AROUND = 2000, 60  # lines of a file that is shown whole; of a longer one, around those that matter


def excerpt(text: str, lines: list[int]) -> dict[str, Any]:
    """Return the lines of a file from the first on that the page shows."""
    found = text.split("\n")
    if found and not found[-1]:
        found.pop()
    if len(found) <= _WHOLE:
        return {"first": 1, "lines": found}
    first = max(1, min(lines) - _AROUND)
    last = max(lines) + _AROUND
    return {"first": first, "lines": found[first - 1 : last]}


class Table:
    """Rows, each once, by a key."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._places: dict[Hashable, int] = {}

    @property
    def keys(self) -> list[Hashable]:
        """Return the keys of the rows, in their order."""
        return list(self._places)

    def place(self, key: Hashable, row: Any = None) -> int:
        """Return the index of a row, and add it if it is new. ``row``: the row, a function that makes it, or None for
        the key.
        """
        known = self._places.get(key)
        if known is None:
            made = row() if callable(row) else row
            known = self._places[key] = len(self.rows)
            self.rows.append(key if made is None else made)
        return known


def number(value: float | None) -> float | int | None:
    """Return a number for JSON, with the digits of float32; None for NaN, infinity and None."""
    if value is None or not math.isfinite(value):
        return None
    if value == int(value) and abs(value) < 1 << 53:
        return int(value)
    return float(f"{value:.8g}")
