"""The instructions of a run as NumPy's structured arrays, made without a loop over instructions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import add
from typing import Any, NamedTuple

import numpy as np

from nkitools.chip.layout import LAYOUTS
from nkitools.chip.memory_region import MEMORY_NAMES
from nkitools.chip.numerics import Array
from nkitools.record.columns import Columns, programs_at
from nkitools.record.instruction_record import SHOWN_COUNTERS, SHOWN_OF_PLANS, InstructionRecord
from nkitools.record.record import Record
from nkitools.record.source_sites import UNKNOWN

_KINDS: dict[str, type] = {"float": np.float64, "int": np.int64, "bool": np.bool_}  # of annotations; objects else
_INSTRUCTION = np.dtype(
    [
        *[(name, _KINDS.get(InstructionRecord.__annotations__[name], object)) for name in SHOWN_OF_PLANS],
        *[(name, np.int64) for name in SHOWN_COUNTERS],
        ("operand", np.int64),
        ("operands", np.int64),
        ("file", object),
        ("line", np.int64),
        ("program", object),
        ("loop", np.int64),
        ("rank", np.int64),
    ]
)
_OPERAND = np.dtype(
    [
        ("instruction", np.int64),
        ("tensor", object),
        ("memory", object),
        ("dtype", object),
        ("shape", object),
        ("strides", object),
        ("byte_offset", np.int64),
        ("written", np.bool_),
    ]
)
_LOOP = np.dtype([("outer", np.int64), ("name", object), ("value", np.int64)])


class InstructionColumns(NamedTuple):
    """The instructions of a run as NumPy columns. Equal texts and tuples are one Python object.

    ``instructions``: the fields of `InstructionRecord`. ``operand`` is the index in ``operands`` of the first operand,
    ``operands`` their number; ``loop`` is an index in ``loops``, -1 outside of loops; ``rank`` is -1 without ranks.
    ``operands``: the fields of `OperandRecord`, and ``instruction``, the index of its instruction.
    ``loops``: the turns of loops: the name and value of the counter, and ``outer``, the index of the turn around it
    (-1: none).
    """

    instructions: Array
    operands: Array
    loops: Array


def columns_of(records: Sequence[Record]) -> InstructionColumns:
    """Return the instructions of some records, one record after the other."""
    columns = [Columns(record) for record in records]
    sizes = [(each.starts.size, each.positions.size, each.record.loop_states.count) for each in columns]
    ends = list(accumulate(sizes, lambda before, size: tuple(map(add, before, size)), initial=(0, 0, 0)))
    # Not np.empty: six times as fast where there are objects.
    made = [np.zeros(size, dtype) for size, dtype in zip(ends[-1], (_INSTRUCTION, _OPERAND, _LOOP), strict=True)]
    for each, (instruction, operand, loop), behind in zip(columns, ends, ends[1:], strict=False):
        _fill_instructions(made[0][instruction : behind[0]], each, operand, loop)
        _fill_operands(made[1][operand : behind[1]], each, instruction)
        _fill_loops(made[2][loop : behind[2]], each.record, loop)
    return InstructionColumns(*made)


def _fill_instructions(made: Array, columns: Columns, operand: int, loop: int) -> None:
    """Fill the entries of a record's instructions, after ``operand`` operands and ``loop`` turns of earlier records."""
    record = columns.record
    numbers, which = _numbered(columns.plans)
    plans = [record.plans[number].plan for number in numbers]
    sites = [*record.sites.all, UNKNOWN]  # the site -1 is the last one
    programs = [*(program for _, program in record.programs), ()]
    states = np.array(record.states, np.int64)
    for name in SHOWN_OF_PLANS:
        made[name] = np.fromiter((getattr(plan, name) for plan in plans), made.dtype[name])[which]
    for name in SHOWN_COUNTERS:
        made[name] = record.counted[name]
    made["operand"] = columns.first_operands[:-1] + operand
    made["operands"] = np.diff(columns.first_operands)
    made["file"] = _objects(site.file for site in sites)[columns.sites]
    made["line"] = np.array([site.line for site in sites], np.int64)[columns.sites]
    made["program"] = _objects(programs)[programs_at(record, np.arange(states.size))]
    made["loop"] = np.where(states < 0, states, states + loop)
    made["rank"] = -1 if record.rank is None else record.rank


def _fill_operands(made: Array, columns: Columns, instruction: int) -> None:
    """Fill the entries of a record's operands, after ``instruction`` instructions of earlier records."""
    storages, which_storage = _numbered(columns.storages)
    numbers, which = _numbered(columns.layouts)
    layouts = [LAYOUTS[number] for number in numbers]
    made["instruction"] = columns.positions + instruction
    made["tensor"] = _objects(map(columns.record.name_of, storages))[which_storage]
    made["memory"] = _objects(MEMORY_NAMES[each.memory] for each in layouts)[which]
    made["dtype"] = _objects(each.dtype.name for each in layouts)[which]
    made["shape"] = _objects(each.shape for each in layouts)[which]
    made["strides"] = _objects(each.strides for each in layouts)[which]
    made["byte_offset"] = columns.byte_offsets
    made["written"] = columns.writes


def _fill_loops(made: Array, record: Record, loop: int) -> None:
    """Fill the entries of a record's turns, after ``loop`` turns of earlier records."""
    parents, sites, values = record.loop_states.columns()
    made["outer"] = np.where(parents < 0, parents, parents + loop)
    made["name"] = _objects(record.counter_names((site,))[0] for site in range(len(record.sites.all)))[sites]
    made["value"] = values


def _numbered(column: Array) -> tuple[list[int], Array]:
    """Return the distinct numbers of a column, and the place of each of the column's among them.

    They lie close together: this is five times as fast as `np.unique`.
    """
    least = int(column.min(initial=np.iinfo(column.dtype).max))
    moved = column - least
    is_there = np.zeros(int(moved.max(initial=-1)) + 1, np.bool_)
    is_there[moved] = True
    return (is_there.nonzero()[0] + least).tolist(), (is_there.cumsum() - 1)[moved]


def _objects(values: Iterable[Any]) -> Array:
    return np.fromiter(values, object)
