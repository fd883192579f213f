"""Everything that the page shows: tables for JSON, columns of numbers, and the bytes of all tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from nkitools.chip.chosen_chip import resolve_chip
from nkitools.chip.dtypes import as_dtype
from nkitools.chip.numerics import Array
from nkitools.chip.view_checks import MEMORY_NAMES
from nkitools.facts.generations import generation_of
from nkitools.record.columns import Columns, programs_at
from nkitools.record.expected_outputs import Reference
from nkitools.record.prints.device_print import Print
from nkitools.record.rows import Access
from nkitools.record.run import Run
from nkitools.record.saved.encoding import leaves
from nkitools.record.watch.written import Written
from nkitools.report.findings import finding_as_plain
from nkitools.report.page.comparison import Comparison, compared, wrong_tiles
from nkitools.report.page.differences import Against, compared_writes
from nkitools.report.page.loop_ranges import ranges_by_place
from nkitools.report.page.named import Named, Table, number
from nkitools.report.page.occupancy import Life, capacities, lives_in_page
from nkitools.report.page.packed_columns import packed
from nkitools.report.page.tiles import BUDGET, LEFT_OUT, Pack, Shown, numbers_of, rounded_outwards, shares
from nkitools.report.page.time_data import time_of
from nkitools.report.page.traced import GRIDS, Traced, compiled_of, counters_of
from nkitools.report.page.ways import flow_of, loose_instructions, memories_of
from nkitools.rules.finding import Finding

SCHEMA = 2

_PRINT, _RESULT = 4, 24  # how much more of the budget such a value gets than one that an instruction wrote
_MOST_FIRST = 16  # wrong tiles that are exact before others are
_WRITE = (
    *("position", "storage", "layout", "offset", "place", "loops", "program", "dtype"),
    *("tile", "scattered", "callers"),
)
_INSTRUCTION = ("plan", "place", "loops", "program", "storage", "layout", "offset")
_TILE = ("place", "form", "quality", "rows", "columns", "down", "across")
_NUMBERS = ("low", "high", "mean", "nan", "inf", "unwritten", "strange", "largest")
_MANY = 200_000  # from so many values on their numbers are kept in three digits


@cache
def _itemsize(dtype: str) -> int:
    return as_dtype(dtype).itemsize


class Gathering:
    """A run as the page's data.

    ``tables``: the JSON. ``columns``: long columns by name; the bytes of tiles are one of them. ``budget``: the bytes
    for columns and tiles, those of tiles before compression.
    """

    def __init__(
        self,
        run: Run,
        reference: Reference | None,
        title: str = "",
        *,
        passed: bool = False,
        budget: int | None = None,
        against: Against | None = None,
    ) -> None:
        self.run = run
        self.reference = reference
        self.passed = passed
        self.is_second = against is not None
        self._shown: list[Shown] = []
        self._columns = [Columns(record) for record in run.all_records]
        # Of ranks the instructions of one follow those of the other.
        counts = [record.count for record in run.all_records]
        self._bases = [sum(counts[:at]) for at in range(len(counts))]
        self._named = Named(run, self._bases)
        self.columns: dict[str, Array] = {}
        self.tables = self._tables(title)
        self.tables["against"] = None if against is None else self._against(against)
        self._add_loops()
        self._add_time()
        self._add_numbers()
        self._add_tiles(BUDGET if budget is None else budget)

    def _tables(self, title: str) -> dict[str, Any]:
        run = self.run
        writes = [self._write(base, each) for base, record in self._named.by_record() for each in record.writes]
        self._traced = Traced(run, self._named, self._tile)
        writes += self._traced.writes
        self._add("write", _WRITE, writes)
        self._instructions(writes)
        self.columns.update(flow_of(run, self._columns, self._bases, self._traced))
        prints = [self._print(each) for each in run.prints]
        findings = [self._finding(each, expected=any(each is one for one in run.expected)) for each in run.findings]
        outputs = self._outputs()
        inputs = [self._value(base, each) for base, record in self._named.by_record() for each in record.inputs]
        inputs += self._traced.inputs
        memory = self._add_memory()
        self._add_ways()
        self._put_first(outputs, writes)
        return {
            "schema": SCHEMA,
            "title": title,
            "run": {
                "kernel": run.kernel,
                "target": run.target,
                "chip": run.chip,
                "precision": run.precision,
                "repair": run.repair,
                "error": None if run.error is None else f"{type(run.error).__name__}: {run.error}",
                "ranks": len(run.records),
                "unit": "core" if getattr(run, "cores", ()) else "program",
                "reduced": run.reduced_writes,
                "left_out": run.findings_left_out,
                "watched": bool(writes or inputs or self._traced.table),
            },
            "storage_kinds": self._named.tables["storages"].rows,
            "ranges": ranges_by_place(self._columns, self._named),
            "traces": self._traced.table,
            "cores": [vars(each) for each in getattr(run, "cores", ())],  # of a custom operator
            "compiled": compiled_of(run),
            "left_out_modes": dict(getattr(run, "left_out", {})),
            "prints": prints,
            "findings": findings,
            "allowed": [{**self._finding(each), "reason": run.reasons[each.rule]} for each in run.allowed],
            "outputs": outputs,
            "inputs": inputs,
            "memory": memory,
            "files": self._named.files(),
            **{name: table.rows for name, table in self._named.tables.items() if name not in ("loops", "storages")},
        }

    def _add(self, name: str, fields: Sequence[str], rows: Sequence[Sequence[int]]) -> None:
        """Add a table as columns."""
        found = np.array(rows, np.int64).reshape(-1, len(fields))
        for at, each in enumerate(fields):
            self.columns[f"{name}.{each}"] = found[:, at]

    def _add_ways(self) -> None:
        """Add the storages with kind and place, and the instructions in which data choose elements."""
        self.columns["storages"] = np.array(self._named.storages.rows, np.int64)
        records = list(self._named.by_record())
        memories, firsts = memories_of(records, self._named.storages.keys)
        self.columns["storages.memory"], self.columns["storages.first"] = memories, firsts
        loose = [loose_instructions(base, each) for base, each in zip(self._bases, self._columns, strict=True)]
        self.columns["loose.position"] = np.concatenate([np.zeros(0, np.int64), *loose])

    def _add_time(self) -> None:
        """Add the estimated time of each instruction and of each line."""
        places = self.columns["instruction.place"]
        self.tables["time"], columns = time_of(self.run, self._columns, self._bases, places)
        self.columns.update(columns)

    def _against(self, against: Against) -> dict[str, Any]:
        """Return the differences from another run, write by write: number of elements, the first, the worst, both
        tiles.
        """
        found = compared_writes(self.run, against)
        bases = {id(write): base for base, record in self._named.by_record() for write in record.writes}
        rows = []
        for at, each in enumerate(found.different):
            first = at < _MOST_FIRST
            tiles = [
                Shown(each.other.shape, each.other.value, each.other.unwritten, comes_first=first),
                Shown(each.write.shape, each.distance, is_rounded=True, comes_first=first),
            ]
            base = bases[id(each.write)]
            place = base + each.write.position, self._named.storage(base, each.write.storage)
            rows.append([*place, each.elements, each.first, each.worst, *(self._tile(tile) for tile in tiles)])
        return {"name": against.name, "writes": rows, "unknown": found.unknown, "alone": found.alone}

    def _add_loops(self) -> None:
        """Add the counters: their names by kind, and their values one after the other."""
        kinds = Table()
        rows = [tuple(counters) for counters in self._named.tables["loops"].rows]
        places = [kinds.place(tuple(name for name, _ in row), [name for name, _ in row]) for row in rows]
        self.tables["loop_kinds"] = kinds.rows
        self.columns["loops.kind"] = np.array(places, np.int64)
        self.columns["loops.value"] = np.array([value for row in rows for _, value in row], np.int64)

    def _add_numbers(self) -> None:
        found = [numbers_of(shown) for shown in self._shown]
        are_many = self.tables["rounded_numbers"] = len(found) > _MANY
        for at, name in enumerate(_NUMBERS):
            values = np.array([np.nan if row[at] is None else row[at] for row in found])
            if at > 2:
                values = values.astype(np.int64)
            elif are_many:
                values = rounded_outwards(values, up=name == "high")
            self.columns[f"number.{name}"] = values

    def _put_first(self, outputs: list[dict[str, Any]], writes: list[list[int]]) -> None:
        """Give outputs and wrong tiles, which readers open first, exact values before others."""
        compared = [output["comparison"] for output in outputs if output.get("comparison", {}).get("tiles")]
        wrong = [position for each in compared for position, *_ in each["tiles"]]
        by_position = {write[0]: write[8] for write in reversed(writes)}
        first = [by_position[each] for each in wrong[:_MOST_FIRST] if each in by_position]
        beside = [each["comparison"] for each in outputs if "wrong" in each.get("comparison", {})]
        first += [each[name] for each in beside for name in ("expected", "wrong")]
        for tile in [*(each["tile"] for each in outputs), *first]:
            self._shown[tile].comes_first = True

    def _add_tiles(self, budget: int) -> None:
        """Pack the tiles into the rest of the budget after the columns."""
        pack = Pack()
        left = max(budget // 8, budget - len(packed(self.columns)[1]))
        self.tables["budget"] = left
        granted = shares(self._shown, left)
        rows = [pack.add(shown, share) for shown, share in zip(self._shown, granted, strict=True)]
        self._add("tile", _TILE, rows)
        self.columns["tiles"] = np.frombuffer(pack.joined(), np.uint8)
        self.tables["left_out"] = sum(row[2] == LEFT_OUT for row in rows)

    def _tile(self, shown: Shown) -> int:
        self._shown.append(shown)
        return len(self._shown) - 1

    def _write(self, base: int, write: Written) -> list[Any]:
        itemsize = _itemsize(write.dtype)
        line = (write.file, write.line, write.rank, write.program)
        tile = self._tile(Shown(write.shape, write.value, write.unwritten, write.reduced, line=line))
        return [
            base + write.position,
            self._named.storage(base, write.storage),
            self._named.layout(write.shape, write.strides, itemsize),
            write.byte_offset,
            self._named.place_at(write.file, write.line),
            self._named.counters(write.loops),
            self._named.program(write.rank, write.program),
            self._named.tables["dtypes"].place(write.dtype),
            tile,
            int(write.scattered),
            self._named.tables["callers"].place(
                write.callers, [self._named.place_at(file, line) for file, line in write.callers]
            ),
        ]

    def _instructions(self, writes: list[list[Any]]) -> None:
        """Add the instructions; one's operands are as many (storage, layout, byte offset) as its plan has."""
        columns: dict[str, list[int]] = {name: [] for name in _INSTRUCTION}
        for base, found in zip(self._bases, self._columns, strict=True):
            self._add_instructions(columns, base, found)
        for write in writes:  # which know the counters of every loop
            if write[5] and not self._traced.table:
                columns["loops"][write[0]] = write[5]
        for name, values in self._traced.columns.items():
            columns[name] += values
        for name, values in self._traced.events.items():
            self.columns[f"event.{name}"] = np.array(values, np.int64)
        for name, values in columns.items():
            self.columns[f"instruction.{name}"] = np.array(values, np.int64)

    def _add_instructions(self, to: dict[str, list[int]], base: int, columns: Columns) -> None:
        record = columns.record
        plans = {key: self._named.plan(planned.plan) for key, planned in record.plans.items()}
        places = {key: self._named.place(record.sites[key]) for key in np.unique(columns.sites).tolist()}
        states = {state: self._named.counters(record.loops(state)) for state in set(record.states)}
        turns = [self._named.program(record.rank, program) for _, program in record.programs] or [
            self._named.program(None, ())
        ]
        to["plan"] += [plans[plan] for plan in columns.plans.tolist()]
        to["place"] += [places[site] for site in columns.sites.tolist()]
        to["loops"] += [states[state] for state in record.states]
        to["program"] += [turns[turn] for turn in programs_at(record, np.arange(record.count)).tolist()]
        storages = {key: self._named.storage(base, key) for key in np.unique(columns.storages).tolist()}
        layouts = {key: self._named.layout_of(key) for key in np.unique(columns.layouts).tolist()}
        to["storage"] += [storages[each] for each in columns.storages.tolist()]
        to["layout"] += [layouts[each] for each in columns.layouts.tolist()]
        to["offset"] += columns.byte_offsets.tolist()

    @property
    def _of_grid(self) -> bool:
        return self.run.target == GRIDS

    def _counters(self, one: Print | Finding) -> dict[str, int]:
        """Return the counters of a print or a finding: in Pallas the point of the grid."""
        return counters_of(one.program) if self._of_grid else one.loops

    def _program(self, one: Print | Finding) -> int:
        return self._named.program(one.rank, () if self._of_grid else one.program)

    def _print(self, one: Print) -> dict[str, Any]:
        hidden = one.unwritten if one.mask is None else one.mask if one.unwritten is None else one.mask | one.unwritten
        value = None if one.reduced is not None else one.value
        return {
            "prefix": one.prefix,
            "issued": one.issued + (self._bases[one.rank] if one.rank is not None and self._bases else 0),
            "place": self._named.place_at(one.file, one.line),
            "loops": self._named.counters(self._counters(one)),
            "program": self._program(one),
            "point": list(one.program) if self._of_grid else None,
            "memory": one.memory,
            "dtype": one.dtype,
            "shape": list(one.shape),
            "masked": one.mask is not None,
            "tile": None
            if one.is_text
            else self._tile(Shown(one.shape, value, hidden, one.reduced, _PRINT, line=(one.file, one.line))),
        }

    def _finding(self, finding: Any, *, expected: bool = False) -> dict[str, Any]:
        return {
            **finding_as_plain(finding),
            "place": self._named.place_at(finding.file, finding.line),
            "counters": self._named.counters(self._counters(finding)),
            "program": self._program(finding),
            "expected": expected,
            "turns": [
                {"counters": self._named.counters(self._counters(each)), "program": self._program(each)}
                for each in (replace(finding, program=one.program, loops=one.loops) for one in finding.places[1:])
            ],
        }

    def _value(self, base: int, write: Written) -> dict[str, Any]:
        return {
            "name": write.tensor,
            "memory": write.memory,
            "dtype": write.dtype,
            "shape": list(write.shape),
            "rank": write.rank,
            "storage": self._named.storage(base, write.storage),
            "tile": self._tile(Shown(write.shape, write.value, write.unwritten, write.reduced, _RESULT)),
        }

    def _outputs(self) -> list[dict[str, Any]]:
        parts = list(leaves(self.run.outputs))
        found = [None] * len(parts) if self.reference is None else self._compared(self.reference)
        kept = [at for at, (_, value) in enumerate(parts) if isinstance(value, np.ndarray)]
        arrays, comparisons = [parts[at] for at in kept], [found[at] for at in kept]
        places = [(at, each) for at, record in enumerate(self.run.all_records) for each in record.outputs]
        known = places if len(places) == len(arrays) else [None] * len(arrays)
        if not arrays:  # the run ended before it returned them: those with elements that nothing wrote
            named = self._named.by_record()
            return [self._value(base, each) | {"unfinished": True} for base, record in named for each in record.results]
        holes = [each.unwritten for record in self.run.all_records for each in record.results]
        if len(holes) != len(arrays):
            holes = [None] * len(arrays)
        return [
            self._output(name, value, hole, comparison, place)
            for (name, value), hole, comparison, place in zip(arrays, holes, comparisons, known, strict=True)
        ]

    def _compared(self, reference: Reference) -> list[Comparison]:
        return compared(self.run.outputs, reference, passed=self.passed, is_second=self.is_second)

    def _output(
        self, name: str, value: Any, hole: Array | None, comparison: Comparison | None, place: tuple[int, Access] | None
    ) -> dict[str, Any]:
        about: dict[str, Any] = {
            "name": name,
            "dtype": value.dtype.name,
            "shape": list(value.shape),
            "tile": self._tile(Shown(value.shape, value, hole, weight=_RESULT)),
        }
        if place is not None:
            at, access = place
            about["storage"] = self._named.storage(self._bases[at], access.storage)
            about["layout"], about["offset"] = self._named.layout_of(access.layout.id), access.byte_offset
            about["memory"] = MEMORY_NAMES[access.layout.memory]
            about["rank"] = self.run.all_records[at].rank
        else:
            about |= self._traced.place_of(value)
        if comparison is not None:
            about["comparison"] = self._comparison(value, comparison, place)
        return about

    def _comparison(self, value: Any, found: Comparison, place: tuple[int, Access] | None) -> dict[str, Any]:
        if found.message:
            return {"message": found.message}
        tiles: list[list[int]] = []
        if place is not None and found.count:
            at, access = place
            columns = self._columns[at]
            if access.layout.shape == found.wrong.shape:
                rows = wrong_tiles(columns.record, columns, access, found.wrong)
                tiles = [[self._bases[at] + position, *about] for position, *about in rows]
        elif found.count:
            tiles = self._traced.writers(found.wrong)
        expected = found.actual if self.is_second else found.expected
        return {
            "message": "",
            "count": found.count,
            "size": int(value.size),
            "tolerance": found.tolerance,
            "rtol": found.rtol,
            "atol": found.atol,
            "worst": list(found.worst),
            "ours": str(value[found.worst]) if found.worst else "",
            "theirs": str(expected[found.worst]) if found.worst else "",
            "largest": number(float(found.distance[found.worst])) if found.worst else 0,
            "histogram": found.histogram(),
            "tiles": tiles,
            "distance": self._tile(
                Shown(value.shape, found.distance.astype(np.float32), weight=_RESULT, is_rounded=True)
            ),
            "wrong": self._tile(Shown(value.shape, found.wrong, weight=_RESULT)),
            "expected": self._tile(Shown(value.shape, expected, weight=_RESULT)),
        }

    def _add_memory(self) -> dict[str, Any]:
        """Add the lives of tensors on chip; return the sizes of the memories, {} of a run without instructions."""
        if not self._columns:
            return {}
        chip = generation_of(resolve_chip(self.run.chip or None))
        for name, rows in lives_in_page(self._columns, self._bases, self._named, chip).items():
            self._add(name, Life._fields, rows)
        return capacities(chip)
