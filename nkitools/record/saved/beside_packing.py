"""The facts beside the rows of a record in a saved run: ``beside`` of each record.

``layouts``: those that its other tables name by their places. ``parts``: the distinct sets of elements, each of a
``layout``: its ``rows``, its ``columns`` or its ``lanes`` (8 in a byte, the first one in the highest bit).
``touched``: columns with the ``part`` that an ``operand`` of an instruction (``position``) touches.
``plans``: the same for all instructions of a ``plan``. ``indices``: views that were read as an index or an address.
``flow``, ``output``, ``anti``: dependences by registers, of a ``later`` position on an ``earlier`` one. ``transfers``:
position, members, member and senders of a `nkitools.record.beside_rows.Transfer`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nkitools.chip.layout import LAYOUTS, Layout
from nkitools.record.beside_rows import BesideRows, Part, Transfer
from nkitools.record.dataflow.accesses import parts_of_plans
from nkitools.record.record import Record
from nkitools.record.rows import layout_column, storage_column, words_of_view
from nkitools.record.saved.encoding import Column, decoded_field

_REGISTERS = ("flow", "output", "anti")


def packed_beside(record: Record, storages: Mapping[int, int]) -> dict[str, Any]:
    """Return what is beside the rows of a record; ``storages``: their places."""
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
    return {
        "layouts": [LAYOUTS[number] for number in layouts],
        "parts": [_part(part, numbers[part.layout.id]) for part in places],
        "touched": _columns(("position", "operand", "part"), touched),
        "plans": _columns(("plan", "operand", "part"), of_plans),
        "indices": _columns(("position", "storage", "layout", "byte_offset"), views),
        "transfers": beside.transfers,
        **{name: _columns(("later", "earlier"), getattr(beside, name)) for name in _REGISTERS},
    }


def _place(places: dict[Any, int], part: Part) -> int:
    return places.setdefault(part, len(places))


def _part(part: Part, layout: int) -> dict[str, Column | int]:
    lanes = None if part.bits is None else np.frombuffer(part.bits, np.uint8)
    data = {"rows": part.rows, "columns": part.columns, "lanes": lanes}
    return {"layout": layout, **{name: Column(each) for name, each in data.items() if each is not None}}


def _columns(names: tuple[str, ...], rows: Iterable[Any]) -> dict[str, Column]:
    table = np.array(list(rows), np.int64).reshape(-1, len(names))
    return {name: Column(table[:, at]) for at, name in enumerate(names)}


def beside_from(packed: Mapping[str, Any], record: Record) -> BesideRows:
    """Return what `packed_beside` has packed. ValueError for places out of range."""
    beside, layouts = BesideRows(), decoded_field(list[Layout], packed["layouts"])
    parts = [_part_from(beside, each, layouts) for each in packed["parts"]]
    for position, operand, part in _rows(packed["touched"], record.count, None, len(parts)):
        beside.keep(position, operand, parts[part])
    for plan, operand, part in _rows(packed["plans"], len(record.plans), None, len(parts)):
        beside.of_plans.setdefault(plan, []).append((operand, parts[part]))
    sizes = (record.count, len(record.storages), len(layouts), None)
    for position, storage, layout, byte_offset in _rows(packed["indices"], *sizes):
        beside.indices.extend((position, *words_of_view(storage, layouts[layout], byte_offset)))
    for name in _REGISTERS:
        for pair in _rows(packed[name], record.count, record.count):
            getattr(beside, name).extend(pair)
    beside.transfers = decoded_field(list[Transfer], packed["transfers"])
    return beside


def _part_from(beside: BesideRows, packed: Mapping[str, Any], layouts: list[Layout]) -> Part:
    layout = layouts[int(packed["layout"])]
    for name in ("rows", "columns"):
        if name in packed:
            found: Part = getattr(beside, name)(layout, decoded_field(Column, packed[name]).values)
            return found
    return Part(layout, bits=decoded_field(Column, packed["lanes"]).values.astype(np.uint8).tobytes())


def _rows(packed: Mapping[str, Any], *sizes: int | None) -> list[list[int]]:
    """Return the rows of packed columns; each column counts below its size, where it has one."""
    columns = [decoded_field(Column, each).values for each in packed.values()]
    for column, size in zip(columns, sizes, strict=True):
        if size is not None and column.size and not 0 <= column.min() <= column.max() < size:
            raise ValueError("what is kept beside the instructions names a place that is not there")
    rows: list[list[int]] = np.stack(columns, axis=1).tolist()
    return rows
