"""The events of traced kernels (Pallas, custom operators) in the page's own tables: as instructions and writes."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.numerics import Array
from nkitools.record.run import Run
from nkitools.record.trace import Event, Touch, Trace, traces_of
from nkitools.report.page.comparison import wrong_writes
from nkitools.report.page.named import Named
from nkitools.report.page.tiles import Shown

GIVEN, NEVER_WRITTEN = -1, -2
GRIDS = "pallas-interpret"  # the target of runs whose programs are points of a grid
_GIVEN_KINDS = ("input", "scalar")
_RESULT = 24  # how much more of the budget an argument gets than a write
_TO, _FROM = "to", "from"  # the operands of an event


class Traced:
    """Rows of the page for the traces of a run, one trace after the other.

    ``table``: the JSON of each trace. ``writes`` and ``columns``: as for instructions. ``counts`` and ``sources``: for
    each operand the events that wrote the elements it reads.
    """

    def __init__(self, run: Run, named: Named, tile: Callable[[Shown], int]) -> None:
        self._named, self._tile = named, tile
        self.table: list[dict[str, Any]] = []
        self.writes: list[list[Any]] = []
        self.columns: dict[str, list[int]] = {
            name: [] for name in ("plan", "place", "loops", "program", "storage", "layout", "offset")
        }
        self.events: dict[str, list[int]] = {name: [] for name in ("step", "core", "begun")}
        self.counts: list[int] = []
        self.sources: list[int] = []
        self.others: list[tuple[int, int]] = []  # what an event may rest on besides
        self.inputs: list[dict[str, Any]] = []
        self._outputs: list[_Output] = []
        self._count = 0
        for number, trace in enumerate(traces_of(run)):
            self._add(number, trace)

    def _add(self, number: int, trace: Trace) -> None:
        storages = [self._storage(number, at, trace) for at in range(len(trace.buffers))]
        units = {each.unit for each in trace.buffers if each.unit >= 0}
        last = [_before(buffer.kind, buffer.shape) for buffer in trace.buffers]
        first = self._count
        for event in trace.events:
            self._event(event, trace, storages, last, first, several=len(units) > 1)
        for at, buffer in enumerate(trace.buffers):
            if buffer.kind == "output":
                shape = buffer.block if trace.kind == "cores" else buffer.shape  # that of an operator is flattened
                self._outputs.append(_Output(tuple(shape), at, trace, storages[at], last[at].reshape(-1)))
        self._give(trace, storages)
        self.table.append(
            {
                "kind": trace.kind,
                "name": trace.name,
                "place": self._named.place_at(trace.file, trace.line),
                "grid": list(trace.grid),
                "parallel": list(trace.parallel),
                "points": [list(point) for point in trace.points],
                "first": first,
                "count": len(trace.events),
                "buffers": [
                    [storages[at], each.kind, list(each.block), each.of, each.unit]
                    for at, each in enumerate(trace.buffers)
                ],
                "notes": {first + at: each.note for at, each in enumerate(trace.events) if each.note},
                "left_out": trace.left_out,
                "without_value": trace.without_value,
            }
        )

    def _give(self, trace: Trace, storages: list[int]) -> None:
        units = {each.unit for each in trace.buffers if each.unit >= 0}
        for number, value in trace.given.items():
            buffer = trace.buffers[number]
            about = {"name": buffer.name, "memory": buffer.memory, "dtype": buffer.dtype, "shape": list(buffer.shape)}
            rank = buffer.unit if len(units) > 1 else None
            tile = self._tile(_in_rows(value, weight=_RESULT))
            self.inputs.append({**about, "rank": rank, "storage": storages[number], "tile": tile})

    def writers(self, wrong: Array) -> list[list[int]]:
        """Return the events that wrote the wrong elements of an output, as `wrong_writes` does.

        The output is found by its shape; [] if several have this shape.
        """
        alike = [each for each in self._outputs if each.shape == wrong.shape]
        return wrong_writes(alike[0].last, wrong) if len(alike) == 1 else []

    def place_of(self, value: Array) -> dict[str, int]:
        """Return the grid's output that has the values of an output of the function; {} unless there is exactly one."""
        found = [each for each in self._outputs if each.trace.kind == "grid" and each.holds(value)]
        if len(found) != 1:
            return {}
        strides = np.empty(found[0].trace.buffers[found[0].number].shape, value.dtype).strides
        layout = self._named.layout(value.shape, strides, value.dtype.itemsize)
        return {"storage": found[0].storage, "layout": layout, "offset": 0}

    def _storage(self, number: int, at: int, trace: Trace) -> int:
        buffer = trace.buffers[at]
        place = self._named.place_at(trace.file, trace.line)
        row = [buffer.name, buffer.memory, buffer.dtype, list(buffer.shape), place, 0, [], []]
        kinds = self._named.tables["storages"]
        return self._named.storages.place(("traced", number, at), lambda: kinds.place(repr(row), row))

    def _event(
        self, event: Event, trace: Trace, storages: list[int], last: list[Any], first: int, *, several: bool
    ) -> None:
        named, position = self._named, self._count
        self._count += 1
        touches = [*event.writes, *event.reads]
        names = [_TO] * len(event.writes) + [_FROM] * len(event.reads)  # of each at most one
        elements = named.tables["element_maps"].place(_elements(event, trace))
        row = [event.kind, event.engine, None, [2] * len(event.writes) + [0] * len(event.reads), names, elements]
        point = trace.points[event.step] if 0 <= event.step < len(trace.points) else ()
        is_grid = trace.kind == "grid"
        loops = named.counters(counters_of(point)) if is_grid else 0
        program = named.program(event.unit if several and is_grid else None, () if is_grid else (event.core,))
        place = named.place_at(event.file, event.line)
        self.columns["plan"].append(named.tables["plans"].place(repr(row), row))
        self.columns["place"].append(place)
        self.columns["loops"].append(loops)
        self.columns["program"].append(program)
        self.events["step"].append(event.step)
        self.events["core"].append(event.core)
        self.events["begun"].append(first + event.begun if event.begun >= 0 else -1)
        places = [self._layout(each, trace) for each in touches]
        for touch, (layout, offset) in zip(touches, places, strict=True):
            self.columns["storage"].append(storages[touch.buffer])
            self.columns["layout"].append(layout)
            self.columns["offset"].append(offset)
        if event.begun >= 0:
            self.others.append((position, first + event.begun))
        self.counts += [0] * len(event.writes)
        for touch in event.reads:
            found = np.unique(last[touch.buffer][_where(touch)])
            self.counts.append(found.size)
            self.sources += found.tolist()
        for touch in event.writes:
            last[touch.buffer][_where(touch)] = position
        if event.value is not None and event.writes:
            touch, (layout, offset) = event.writes[0], places[0]
            value = np.asarray(event.value).reshape(_shape(touch))
            dtype = named.tables["dtypes"].place(trace.buffers[touch.buffer].dtype)
            line = (trace.name, event.kind, touch.buffer, event.file, event.line)
            tile = self._tile(_in_rows(value, line=line))
            storage = storages[touch.buffer]
            callers = named.callers(())
            self.writes.append([position, storage, layout, offset, place, loops, program, dtype, tile, 0, callers])

    def _layout(self, touch: Touch, trace: Trace) -> tuple[int, int]:
        buffer = trace.buffers[touch.buffer]
        itemsize = as_dtype(buffer.dtype).itemsize
        own = [itemsize * math.prod(buffer.shape[axis + 1 :]) for axis in range(len(buffer.shape))]
        strides = [stride * step for stride, step in zip(own, touch.steps, strict=True)]
        offset = sum(start * stride for start, stride in zip(touch.starts, own, strict=True))
        return self._named.layout(_shape(touch), strides, itemsize), offset


class _Output(NamedTuple):
    """An output of a traced kernel: its shape and number, and of each element the event that wrote it last."""

    shape: tuple[int, ...]
    number: int
    trace: Trace
    storage: int
    last: Array

    def holds(self, value: Array) -> bool:
        """Return whether the kernel left these values there, as far as the trace has them."""
        buffer = self.trace.buffers[self.number]
        fits = len(value.shape) == len(buffer.shape) and all(map(operator.le, value.shape, buffer.shape))
        if not fits or value.dtype.name != buffer.dtype:  # a buffer may be padded to whole blocks
            return False
        corner = tuple(map(slice, value.shape))
        content, known = np.zeros(buffer.shape, value.dtype), False
        content[corner] = value
        for event in self.trace.events:
            for touch in event.writes:
                if touch.buffer == self.number and event.value is not None:
                    content[_where(touch)] = np.asarray(event.value).reshape(_shape(touch))
                    known = True
        return known and content[corner].tobytes() == value.tobytes()


def compiled_of(run: Run) -> list[dict[str, Any]]:
    """Return the answers of the TPU compiler and of the memory model for each Pallas call, by chip."""
    names = ("name", "accepted", "vmem_bytes", "vmem_limit", "vmem_measured", "bundles", "spills")
    return [
        {
            "chip": chip,
            "left_out": each.left_out,
            "kernels": [{name: getattr(kernel, name) for name in names} for kernel in each.kernels],
        }
        for chip, each in getattr(run, "compiled", {}).items()
    ]


def _elements(event: Event, trace: Trace) -> str:
    """Return the element map of an event: a copy keeps the order of elements; other events have no map."""
    if not event.writes:
        return "[]"
    sources: list[list[Any]] = []
    for each in event.reads:
        is_alike = math.prod(_shape(each)) == math.prod(_shape(event.writes[0]))
        sources.append([_FROM, None, None, ["Same" if is_alike else "All", {}]])
    return json.dumps([[_TO, sources]])


def _in_rows(value: Array, **about: Any) -> Shown:
    """Return a value to show, one of a single dimension as a row."""
    laid = value.reshape(1, -1) if value.ndim < 2 else value
    return Shown(laid.shape, laid, **about)


def counters_of(point: tuple[int, ...]) -> dict[str, int]:
    """Return the point of a grid as counters, by the names that a kernel asks for them with."""
    return {f"program_id({axis})": at for axis, at in enumerate(point)}


def _before(kind: str, shape: tuple[int, ...]) -> Any:
    return np.full(shape, GIVEN if kind in _GIVEN_KINDS else NEVER_WRITTEN, np.int32)


def _where(touch: Touch) -> tuple[slice, ...]:
    return tuple(slice(*each) for each in zip(touch.starts, touch.stops, touch.steps, strict=True))


def _shape(touch: Touch) -> tuple[int, ...]:
    return tuple(len(range(*each)) for each in zip(touch.starts, touch.stops, touch.steps, strict=True))
