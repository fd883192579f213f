"""The arguments that reach an output by the instructions of a run, and the parts of them that do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.history.unread_arguments import unread_part
from nkitools.precision.runs import Half
from nkitools.record import rows
from nkitools.record.columns import Columns
from nkitools.record.dependences import CompressedRows


@dataclass(frozen=True)
class Reach:
    """The effect of an argument on an output. ``reaches``: whether instructions lead from it to the output.

    ``left``: a mask of the argument's elements that do not reach it; None: all may.
    """

    reaches: bool
    left: Array | None = None


def reach_of(run: Any, half: Half) -> dict[str, dict[str, Reach]]:
    """Return for each output of a run without ranks the reach of every argument.

    An argument that holds the output reaches it. ``left`` is unknown if the run reads indices or registers.
    """
    (record,) = run.all_records
    columns = Columns(record)
    storages = [each.storage for each in record.outputs]
    outputs = dict(zip(half.outputs, storages, strict=False)) if len(storages) == len(half.outputs) else {}
    outputs |= {name: half.accesses[name].storage for name in half.changed - half.returned}
    is_indirect = bool(record.beside.indices or record.beside.flow)
    flow = run.dependences.flow
    found = {}
    for output, storage in outputs.items():
        reached = _backward(flow, columns.positions[columns.writes & (columns.storages == storage)])
        reads = ~columns.writes & reached[columns.positions]
        indices = np.frombuffer(record.beside.indices.tobytes(), np.int64).reshape(-1, 3)[:, 1]
        seen = {*np.unique(columns.storages[reads]).tolist(), *rows.storage_column(indices).tolist(), storage}
        mine = {}
        for name, access in half.accesses.items():
            left = None
            if access.storage in seen and not is_indirect and access.storage in record.storages:
                left = unread_part(
                    columns, record.storages[access.storage], reads & (columns.storages == access.storage)
                )
            mine[name] = Reach(access.storage in seen, left)
        found[output] = mine
    return found


def _backward(flow: CompressedRows, first: Array) -> Array:
    """Return a mask of the instructions that the instructions ``first`` depend on, these among them."""
    reached = np.zeros(len(flow), np.bool_)
    frontier = np.unique(first)
    while frontier.size:
        reached[frontier] = True
        counts = flow.starts[frontier + 1] - flow.starts[frontier]
        offsets = np.repeat(flow.starts[frontier] - np.cumsum(counts) + counts, counts)
        sources = flow.sources[offsets + np.arange(counts.sum())]
        sources = np.unique(sources[sources >= 0])
        frontier = sources[~reached[sources]]
    return reached
