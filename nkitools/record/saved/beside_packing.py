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
from itertools import chain
from typing import Any

import numpy as np

from nkitools.chip.layout import LAYOUTS, Layout
from nkitools.chip.numerics import Array
from nkitools.record.beside_rows import BesideRows, Part, Transfer
from nkitools.record.dataflow.accesses import parts_of_plans
from nkitools.record.record import Record
from nkitools.record.rows import layout_column, storage_column, words_of_view
from nkitools.record.saved.decoding import Reader
from nkitools.record.saved.encoding import Writer

_REGISTERS = ("flow", "output", "anti")


def packed_beside(record: Record, storages: Mapping[int, int], writer: Writer) -> dict[str, Any]:
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
    """Return which elements of its layout a part is."""
    if part.bits is not None:
        return {"lanes": np.frombuffer(part.bits, np.uint8)}
    return {name: each for name in ("rows", "columns") if (each := getattr(part, name)) is not None}


def _columns(names: tuple[str, ...], rows: Iterable[Any]) -> dict[str, Array]:
    return dict(zip(names, np.array(list(rows), np.int64).reshape(-1, len(names)).T, strict=True))


def beside_from(packed: Mapping[str, Any], record: Record, reader: Reader) -> BesideRows:
    """Return what `packed_beside` has packed. ValueError for places out of range."""
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
    """Return the rows of columns; each column counts below its size, where it has one."""
    for column, size in zip(columns.values(), sizes, strict=True):
        if size is not None and column.size and not 0 <= column.min() <= column.max() < size:
            raise ValueError("what is kept beside the instructions names a place that is not there")
    rows: list[list[int]] = np.stack(list(columns.values()), axis=1).tolist()
    return rows
