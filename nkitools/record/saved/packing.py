"""The compact record as columns of numbers and small tables, and back: what a saved run keeps of its instructions.

One column has an entry for each instruction (``plan``, ``site``, ``loop``) or for each operand, one instruction after
the other (``storage``, ``layout``, ``byte_offset``); their entries are places in the tables ``plans``, ``sites``,
``storages`` and ``layouts``. How many operands an instruction has is the length of ``written`` of its plan. A ``loop``
is a place in ``loops``, whose columns say of each iteration of an nl range its parent (-1: none), the site of the loop
and the counter's value; -1 is outside of all. ``programs`` says from which instruction on which program was running.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.layout import LAYOUTS, Layout, layout_of
from nkitools.chip.memory_region import MEMORY_NAMES, MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.record.columns import Columns
from nkitools.record.record import Meeting, Record, StorageRecord
from nkitools.record.rows import Access, Planned, RecordedPlan
from nkitools.record.saved.beside_packing import beside_from, packed_beside
from nkitools.record.saved.encoding import decoded_array, decoded_fields, encoded_array, encoded_fields, field_names
from nkitools.record.source_sites import Site

_WRITES = ("writes", "inputs", "results")
_PLACE = {  # of a layout
    "start_partition": int, "free_offset": int, "partition_step": int, "placed_to_fit": bool, "reinterprets": bool,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """The saved part of a plan (see `nkitools.issue.plan`); ``touches`` and ``chooses`` are kept as truth values."""

    name: str
    engine: str
    cycles: float
    arguments: tuple[str, ...]
    written: tuple[bool, ...]
    names_only: bool
    overwrites: bool
    wants_fresh: bool
    touches: bool
    chooses: bool | None
    passes: int
    tiled: bool
    adds_always: bool = False
    id: int = -1


def packed_record(record: Record, *, compress: bool) -> dict[str, Any]:
    """Return a record without its prints and findings, which are the run's."""
    tables = _Tables(record)
    columns = tables.columns()
    loops = np.array(record._loop_rows, np.int64).reshape(-1, 3)
    packed = {
        "rank": record.rank,
        "instructions": record.count,
        "columns": {name: _column(values, compress) for name, values in columns.items()},
        "loops": {name: _column(loops[:, at], compress) for at, name in enumerate(("parent", "site", "value"))},
        "plans": [_plan(planned.plan) for planned in record.plans.values()],
        "layouts": [_layout(LAYOUTS[number]) for number in tables.layouts.tolist()],
        "storages": [encoded_fields(each, compress=compress) for each in tables.placed()],
        "sites": [encoded_fields(each, compress=compress) for each in record.sites.all],
        "programs": [[position, list(program)] for position, program in record.programs],
        "meetings": [
            [each.position, [list(program) for program in each.programs], tables.storage(each.storage)]
            for each in record.meetings
        ],
        "outputs": [[tables.storage(each.storage), _layout(each.layout), each.byte_offset] for each in record.outputs],
        "findings_left_out": record.findings_left_out,
        "rounded": dict(record.rounded),
        "beside": packed_beside(record, tables.places, lambda values: _column(values, compress), _layout),
    }
    return packed | _packed_writes(record, tables, compress)


class _Tables:
    """The numbers that plans, storages and layouts have in the file."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self._columns = Columns(record)
        self.storages = {**record.storages, **self._unnamed()}
        self.places = {number: at for at, number in enumerate(self.storages)}
        self.layouts: Array = np.unique(self._columns.layouts)

    def storage(self, number: int) -> int:
        """Return the place of a storage; -1 for none, and for one that the record does not know."""
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
        """Return the storages; the memories that they share have numbers behind those of storages."""
        shared = dict.fromkeys(each.place for each in self.storages.values() if each.place >= 0)
        numbers = {-1: -1, **{place: len(self.storages) + at for at, place in enumerate(shared)}}
        return [replace(each, place=numbers[each.place]) for each in self.storages.values()]

    def columns(self) -> dict[str, Array]:
        """Return the columns of instructions and of operands."""
        columns = self._columns
        return {
            "plan": _places(columns.plans, self.record.plans),
            "site": columns.sites,
            "loop": np.array(self.record.states, np.int64),
            "storage": _places(columns.storages, self.places),
            "layout": np.searchsorted(self.layouts, columns.layouts),
            "byte_offset": columns.byte_offsets,
        }


def _places(values: Array, among: Collection[int]) -> Array:
    """For each value its place in a collection of numbers that has it."""
    known = np.fromiter(among, np.int64, len(among))
    order = np.argsort(known)
    return np.asarray(order[np.searchsorted(known[order], values)]) if known.size else values


def _column(values: Array, compress: bool) -> dict[str, Any]:
    """Return a column of integers in as few bytes each as they need."""
    kinds = (np.int8, np.int16, np.int32)
    fits = (
        kind
        for kind in kinds
        if not values.size or (np.iinfo(kind).min <= values.min() and values.max() <= np.iinfo(kind).max)
    )
    return encoded_array(values.astype(next(fits, np.int64)), compress=compress)


def _plan(plan: RecordedPlan) -> dict[str, Any]:
    known = {name: getattr(plan, name) for name in field_names(SavedPlan) if name != "id"}
    known |= {"written": tuple(map(bool, plan.written)), "touches": bool(plan.touches)}
    saved = SavedPlan(**known | {"chooses": None if plan.chooses is None else True})
    return {name: each for name, each in encoded_fields(saved, compress=False).items() if name != "id"}


def _layout(layout: Layout) -> dict[str, Any]:
    return {
        "shape": list(layout.shape),
        "strides": list(layout.strides),
        "dtype": layout.dtype.name,
        "memory": layout.memory.value,
        **{name: getattr(layout, name) for name in _PLACE},
    }


def _packed_writes(record: Record, tables: _Tables, compress: bool) -> dict[str, Any]:
    """Return the values that instructions wrote, where the run was watched."""
    packed: dict[str, Any] = {"reduced_writes": record.reduced_writes}
    for name in _WRITES:
        kept = [encoded_fields(each, compress=compress) for each in getattr(record, name)]
        for each in kept:
            each["storage"] = tables.storage(each["storage"])
        packed[name] = kept
    return packed


class SavedRecord(Record):
    """A record out of a file: to be read only. ``writes``, ``inputs`` and ``results`` as of a watched run."""

    def __init__(self, packed: Mapping[str, Any]) -> None:
        super().__init__()
        self.rank = packed["rank"]
        self.findings_left_out = int(packed["findings_left_out"])
        self.rounded = Counter(packed["rounded"])
        self.sites.all = [decoded_fields(Site, each) for each in packed["sites"]]
        self.storages = {at: decoded_fields(StorageRecord, each) for at, each in enumerate(packed["storages"])}
        self.programs = [(int(position), tuple(program)) for position, program in packed["programs"]]
        self.meetings = [
            Meeting(int(position), tuple(map(tuple, programs)), int(storage))
            for position, programs, storage in packed["meetings"]
        ]
        self.outputs = [
            Access(int(storage), layout_from(layout), int(byte_offset), False)
            for storage, layout, byte_offset in packed["outputs"]
        ]
        self.plans = {
            at: Planned.of(decoded_fields(SavedPlan, {**each, "id": at})) for at, each in enumerate(packed["plans"])
        }
        loops = [decoded_array(packed["loops"][name]).astype(np.int64) for name in ("parent", "site", "value")]
        _within(loops[0] - np.arange(loops[0].size), 0, "loop", least=-loops[0].size - 1)  # outer ones come first
        _within(loops[0], loops[0].size, "loop", least=-1)
        _within(loops[1], len(self.sites.all), "site", least=-1)
        made = np.array([each.site for each in self.storages.values()], np.int64)
        _within(made, len(self.sites.all), "site", least=-1)
        self._loop_rows = array("q", np.stack(loops, axis=1).astype(np.int64).tobytes())
        self._fill(packed)
        if "beside" in packed:  # files of older versions have none
            layouts = [layout_from(each) for each in packed["beside"]["layouts"]]
            self.beside = beside_from(packed["beside"], self, layouts)
        self._read_writes(packed)

    def _fill(self, packed: Mapping[str, Any]) -> None:
        """Fill the rows of instructions and operands."""
        columns = {name: decoded_array(each).astype(np.int64) for name, each in packed["columns"].items()}
        layouts = np.array([layout_from(each).id for each in packed["layouts"]], np.int64)
        plans, sites, states = columns["plan"], columns["site"], columns["loop"]
        if not (plans.shape == sites.shape == states.shape == (packed["instructions"],)):
            raise ValueError("the columns of instructions differ in their lengths")
        _within(plans, len(self.plans), "plan")
        _within(sites, len(self.sites.all), "site", least=-1)
        _within(states, len(self._loop_rows) // 3, "loop", least=-1)
        _within(columns["layout"], layouts.size, "layout")
        _within(columns["storage"], len(self.storages), "storage")
        self.fill(columns, layouts)

    def _read_writes(self, packed: Mapping[str, Any]) -> None:
        if any(packed[name] for name in _WRITES):
            from nkitools.record.watch.written import Written

            self.writes, self.inputs, self.results = (
                [decoded_fields(Written, each) for each in packed[name]] for name in _WRITES
            )
        self.reduced_writes = int(packed["reduced_writes"])


def layout_from(packed: Mapping[str, Any]) -> Layout:
    """Return the layout that was packed."""
    shape, strides = _numbers(packed["shape"]), _numbers(packed["strides"])
    if len(shape) != len(strides):
        raise ValueError("a layout has as many strides as sizes")
    return layout_of(
        shape,
        strides,
        as_dtype(packed["dtype"]),
        MemoryRegion(packed["memory"]),
        *(kind(packed[name]) for name, kind in _PLACE.items()),
    )


def _numbers(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


def _within(values: Array, size: int, what: str, least: int = 0) -> None:
    if values.size and not (least <= values.min() and values.max() < size):
        raise ValueError(f"a {what} is named that is not there")
