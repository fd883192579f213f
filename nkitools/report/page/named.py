"""Lines, counters, programs, storages, layouts and plans by the numbers that stand for them in a page's columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from nkitools.chip.layout import LAYOUTS
from nkitools.record.record import Record
from nkitools.record.run import Run
from nkitools.record.source_sites import UNKNOWN, Site
from nkitools.report.page.shown_files import excerpt, short_names
from nkitools.report.page.tables import Table, number

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
        """Return the number of a turn of the loops."""
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
        """Return the author's files, that of the first instruction first, as far as they are at hand."""
        sources = self._run.sources
        named = dict.fromkeys(file for file, _ in self.tables["places"].rows if file != UNKNOWN.file)
        short = short_names(list(named))
        lines = {file: [line for other, line in self.tables["places"].rows if other == file] for file in named}
        return [{"path": file, "name": short[file], **excerpt(sources.get(file, ""), lines[file])} for file in named]
