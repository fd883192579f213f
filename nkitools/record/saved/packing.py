"""Converts the compact record to columns of numbers and small tables, and back, for saved runs.

One column has an entry for each instruction (``plan``, ``site``, and counters, as ``loop``) or for each operand, one
instruction after the other (``storage``, ``layout``, ``byte_offset``); their entries are places in the tables
``plans``, ``sites``, ``storages`` and ``layouts``. How many operands an instruction has is the length of ``written`` of
its plan. A ``loop`` is a place in ``loops``, whose columns say of each iteration of a loop its parent (-1: none), the
site of the loop and the counter's value; -1 is outside of all. ``ranges`` says of the site of a loop what its range is
called. ``programs`` says from which instruction on which program was running.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from nkitools.chip.layout import LAYOUTS, Layout
from nkitools.chip.memory_region import MEMORY_NAMES
from nkitools.chip.numerics import Array
from nkitools.record.beside_rows import BesideRows, Part, Transfer
from nkitools.record.columns import Columns
from nkitools.record.dataflow.accesses import parts_of_plans
from nkitools.record.instruction_record import COUNTERS, Counters, RecordedPlan
from nkitools.record.loop_states import LoopStates
from nkitools.record.record import Meeting, Record, StorageRecord
from nkitools.record.rows import Access, Planned, layout_column, storage_column, words_of_view
from nkitools.record.saved.decoding import Reader
from nkitools.record.saved.encoding import Writer, field_names
from nkitools.record.source_sites import Site
from nkitools.record.watch.written import Written

_REGISTERS = ("flow", "output", "anti")


def packed_beside(record: Record, storages: Mapping[int, int], writer: Writer) -> dict[str, Any]:
    """Return the data beside the rows of a record; ``storages``: the index of each storage in the table."""
    beside, places = record.beside, dict[Any, int]()
    touched = [(position, operand, _place(places, part)) for position, operand, part in beside.parts()]
    plans = {number: at for at, number in enumerate(record.plans)}
    of_plans = [
        (plans[number], operand, _place(places, part))
        for number, parts in parts_of_plans(record).items()
        for operand, part in parts
    ]
    indices = np.array(beside.indices, np.int64).reshape(-1, 3)
    layouts = dict.fromkeys([part.layout.id for part in places] + layout_column(indices[:, 1]).tolist())
    numbers = {number: at for at, number in enumerate(layouts)}
    found = [storages.get(each, -1) for each in storage_column(indices[:, 1]).tolist()]
    seen = [numbers[each] for each in layout_column(indices[:, 1]).tolist()]
    views = zip(indices[:, 0].tolist(), found, seen, indices[:, 2].tolist(), strict=True)
    tables: dict[str, dict[str, Array]] = {
        "touched": _columns(("position", "operand", "part"), touched),
        "plans": _columns(("plan", "operand", "part"), of_plans),
        "indices": _columns(("position", "storage", "layout", "byte_offset"), views),
        **{name: _columns(("later", "earlier"), getattr(beside, name)) for name in _REGISTERS},
    }
    return {
        "layouts": [LAYOUTS[number] for number in layouts],
        "parts": [{"layout": numbers[part.layout.id], **writer.columns(_elements(part))} for part in places],
        "transfers": beside.transfers,
        **{name: writer.columns(each) for name, each in tables.items()},
    }


def _place(places: dict[Any, int], part: Part) -> int:
    return places.setdefault(part, len(places))


def _elements(part: Part) -> dict[str, Array]:
    """Return the elements of its layout that a part has."""
    if part.bits is not None:
        return {"lanes": np.frombuffer(part.bits, np.uint8)}
    return {name: each for name in ("rows", "columns") if (each := getattr(part, name)) is not None}


def _columns(names: tuple[str, ...], rows: Iterable[Any]) -> dict[str, Array]:
    return dict(zip(names, np.array(list(rows), np.int64).reshape(-1, len(names)).T, strict=True))


def beside_from(packed: Mapping[str, Any], record: Record, reader: Reader) -> BesideRows:
    """Return the data that `packed_beside` has packed. ValueError for indices out of range."""
    beside, layouts = BesideRows(), reader.field(list[Layout], packed["layouts"])

    def rows(name: str, *sizes: int | None) -> list[list[int]]:
        return _rows(reader.columns(packed[name]), *sizes)

    parts = [_part_from(beside, each, layouts, reader) for each in packed["parts"]]
    for position, operand, part in rows("touched", record.count, None, len(parts)):
        beside.keep(position, operand, parts[part])
    for plan, operand, part in rows("plans", len(record.plans), None, len(parts)):
        beside.of_plans.setdefault(plan, []).append((operand, parts[part]))
    for position, storage, layout, at in rows("indices", record.count, len(record.storages), len(layouts), None):
        beside.indices.extend((position, *words_of_view(storage, layouts[layout], at)))
    for name in _REGISTERS:
        getattr(beside, name).extend(chain.from_iterable(rows(name, record.count, record.count)))
    beside.transfers = reader.field(list[Transfer], packed["transfers"])
    return beside


def _part_from(beside: BesideRows, packed: Mapping[str, Any], layouts: list[Layout], reader: Reader) -> Part:
    layout = layouts[int(packed["layout"])]
    for name, made in (("rows", beside.rows), ("columns", beside.columns)):
        if name in packed:
            return made(layout, reader.column(packed[name]))
    return Part(layout, bits=reader.column(packed["lanes"]).astype(np.uint8).tobytes())


def _rows(columns: Mapping[str, Array], *sizes: int | None) -> list[list[int]]:
    """Return the rows of columns. ValueError for a number beyond its column's size, if the column has one."""
    for column, size in zip(columns.values(), sizes, strict=True):
        if size is not None and column.size and not 0 <= column.min() <= column.max() < size:
            raise ValueError("what is kept beside the instructions names a place that is not there")
    rows: list[list[int]] = np.stack(list(columns.values()), axis=1).tolist()
    return rows


_WRITES = ("writes", "inputs", "results")
_LOOPS = ("parent", "site", "value")


def packed_record(record: Record, writer: Writer) -> dict[str, Any]:
    """Return a record without its prints and findings, which are the run's."""
    tables = _Tables(record)
    loops = record.loop_states.columns()
    packed = {
        "rank": record.rank,
        "instructions": record.count,
        "columns": writer.columns(tables.columns()),
        "loops": writer.columns(dict(zip(_LOOPS, loops, strict=True))),
        "ranges": list(record.ranges.items()),
        "plans": [_plan(planned.plan) for planned in record.plans.values()],
        "layouts": [LAYOUTS[number] for number in tables.layouts.tolist()],
        "storages": tables.placed(),
        "sites": record.sites.all,
        "programs": record.programs,
        "meetings": [each._replace(storage=tables.storage(each.storage)) for each in record.meetings],
        "outputs": [(tables.storage(each.storage), each.layout, each.byte_offset) for each in record.outputs],
        "findings_left_out": record.findings_left_out,
        "rounded": record.rounded,
        "beside": packed_beside(record, tables.places, writer),
        "reduced_writes": record.reduced_writes,
    }
    for name in _WRITES:
        packed[name] = [replace(each, storage=tables.storage(each.storage)) for each in getattr(record, name)]
    plain: dict[str, Any] = writer.field(packed)
    for plan in plain["plans"]:
        del plan["id"]  # its place
    return plain


class _Tables:
    """The numbers that plans, storages and layouts have in the file."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self._columns = Columns(record)
        self.storages = {**record.storages, **self._unnamed()}
        self.places = {number: at for at, number in enumerate(self.storages)}
        self.layouts: Array = np.unique(self._columns.layouts)

    def storage(self, number: int) -> int:
        """Return the index of a storage; -1 for none, and for a storage that the record does not have."""
        return self.places.get(number, -1)

    def _unnamed(self) -> dict[int, StorageRecord]:
        """Storages that instructions name and the record does not know, as the first view shows them."""
        found = {}
        numbers, firsts = np.unique(self._columns.storages, return_index=True)
        for number, first in zip(numbers.tolist(), firsts.tolist(), strict=True):
            if number not in self.record.storages:
                layout = LAYOUTS[int(self._columns.layouts[first])]
                found[number] = StorageRecord(
                    "", MEMORY_NAMES[layout.memory], layout.dtype.name, layout.shape, -1, is_given=True
                )
        return found

    def placed(self) -> list[StorageRecord]:
        """Return the storages; the memories that they share are numbered after them."""
        shared = dict.fromkeys(each.place for each in self.storages.values() if each.place >= 0)
        numbers = {-1: -1, **{place: len(self.storages) + at for at, place in enumerate(shared)}}
        return [replace(each, place=numbers[each.place]) for each in self.storages.values()]

    def columns(self) -> dict[str, Array]:
        """Return the columns of instructions and of operands."""
        columns = self._columns
        return {
            "plan": _places(columns.plans, self.record.plans),
            "site": columns.sites,
            **{name: np.array(numbers, np.int64) for name, numbers in self.record.counted.items()},
            "storage": _places(columns.storages, self.places),
            "layout": np.searchsorted(self.layouts, columns.layouts),
            "byte_offset": columns.byte_offsets.astype(np.int64),
        }


def _places(values: Array, among: Collection[int]) -> Array:
    """For each value its place in a collection of numbers that has it."""
    known = np.fromiter(among, np.int64, len(among))
    order = np.argsort(known)
    return np.asarray(order[np.searchsorted(known[order], values)]) if known.size else values


def _in_units(plan: RecordedPlan) -> RecordedPlan:
    """Return a plan with the nanoseconds of a transfer in their own field: older files have them as cycles."""
    if plan.engine == "dma" and not plan.nanoseconds:
        plan.cycles, plan.nanoseconds = 0.0, plan.cycles
    return plan


def _plan(plan: RecordedPlan) -> RecordedPlan:
    known = {name: getattr(plan, name) for name in field_names(RecordedPlan) if name != "id"}
    known["element_map"] = plan.element_text()
    known |= {"written": tuple(map(bool, plan.written)), "touches": bool(plan.touches)}
    return RecordedPlan(**known | {"chooses": None if plan.chooses is None else True})


class SavedRecord(Record):
    """A record out of a file: to be read only. ``writes``, ``inputs`` and ``results`` as of a watched run."""

    def __init__(self, packed: Mapping[str, Any], reader: Reader) -> None:
        super().__init__()
        self.rank = packed["rank"]
        self.findings_left_out = int(packed["findings_left_out"])
        self.reduced_writes = int(packed["reduced_writes"])
        self.rounded = Counter(packed["rounded"])
        self.sites.all = reader.field(list[Site], packed["sites"])
        self.storages = dict(enumerate(reader.field(list[StorageRecord], packed["storages"])))
        self.programs = reader.field(list[tuple[int, tuple[int, ...]]], packed["programs"])
        self.meetings = reader.field(list[Meeting], packed["meetings"])
        outputs = reader.field(list[tuple[int, Layout, int]], packed["outputs"])
        self.outputs = [Access(storage, layout, byte_offset, False) for storage, layout, byte_offset in outputs]
        plans = reader.field(list[RecordedPlan], packed["plans"])
        self.plans = {at: Planned.of(_in_units(replace(each, id=at))) for at, each in enumerate(plans)}
        self.writes, self.inputs, self.results = (reader.field(list[Written], packed[name]) for name in _WRITES)
        self.ranges = dict(reader.field(list[tuple[int, str]], packed.get("ranges", [])))
        self._fill_loops(reader.columns(packed["loops"]))
        layouts = np.array([each.id for each in reader.field(list[Layout], packed["layouts"])], np.int64)
        self._fill_rows(reader.columns(packed["columns"]), layouts, packed["instructions"])
        if "beside" in packed:  # files of older versions have none
            self.beside = beside_from(packed["beside"], self, reader)

    def _fill_loops(self, columns: Mapping[str, Array]) -> None:
        loops = [columns[name] for name in _LOOPS]
        _within(loops[0] - np.arange(loops[0].size), 0, "loop", least=-loops[0].size - 1)  # outer ones come first
        _within(loops[0], loops[0].size, "loop", least=-1)
        _within(loops[1], len(self.sites.all), "site", least=-1)
        made = np.array([each.site for each in self.storages.values()], np.int64)
        _within(made, len(self.sites.all), "site", least=-1)
        self.loop_states = LoopStates.of_columns(np.stack(loops))

    def _fill_rows(self, columns: Mapping[str, Array], layouts: Array, count: int) -> None:
        """Fill the rows of instructions and operands."""
        plans, sites, states = columns["plan"], columns["site"], columns["loop"]
        if not (plans.shape == sites.shape == states.shape == (count,)):
            raise ValueError("the columns of instructions differ in their lengths")
        _within(plans, len(self.plans), "plan")
        _within(sites, len(self.sites.all), "site", least=-1)
        _within(states, self.loop_states.count, "loop", least=-1)
        _within(columns["layout"], layouts.size, "layout")
        _within(columns["storage"], len(self.storages), "storage")
        counters = {name: np.full(count, getattr(Counters, name)) for name in COUNTERS if name not in columns}
        self.fill({**columns, **counters}, layouts)


def _within(values: Array, size: int, what: str, least: int = 0) -> None:
    if values.size and not (least <= values.min() and values.max() < size):
        raise ValueError(f"a {what} is named that is not there")
