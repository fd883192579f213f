"""The careful execution of a plan: unwritten elements, masked and indirect views."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.chip.core import Core
from nkitools.chip.dynamic import VectorTensor
from nkitools.chip.indirection import ColumnTensor
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.views import describe
from nkitools.isa.accumulation import check_addition, note_write
from nkitools.isa.plan import DATA, WRITTEN, Plan
from nkitools.rules.finding import report

Operands = list[tuple[NkiTensor, int]]


def execute(core: Core, plan: Plan, roles: tuple[int, ...], values: tuple[Any, ...], *, skip: bool) -> list[int]:
    """Execute a plan on its operands; returns the words that the record keeps of them.

    ``skip``: rows that an index names out of bounds are left out silently, else they are NK402.
    """
    data = [(value, role) for value, role in zip(values, roles, strict=True) if role in DATA]
    tensors = [(value, role) for value, role in data if isinstance(value, NkiTensor)]
    lanes = _valid_lanes(plan, tensors, skip=skip)
    touches = _touches(plan, data, tensors)
    undefined = _undefined_lanes(core, plan, tensors, touches)
    outputs = [tensor for tensor, role in tensors if role in WRITTEN]
    keywords = {"fresh": _fresh(plan, outputs[0])} if plan.wants_fresh else {}
    in_place = lanes is None
    results = {
        id(tensor): tensor.array if tensor.direct and in_place else np.array(tensor.read()) for tensor in outputs
    }
    arrays = [_array(value, results) for value, _ in data]
    plan.compute(*arrays, **keywords)
    for (tensor, role), touched in zip(tensors, touches, strict=True):
        if role in WRITTEN:
            _written(plan, tensor, results[id(tensor)], undefined, lanes, touched)
    words: list[int] = []
    for tensor, _ in tensors:
        words += (tensor.storage.id << 32 | tensor.layout.id, tensor.byte_offset)
    return words


def _array(value: Any, results: dict[int, Array]) -> Any:
    """What compute gets of an operand: where its result goes, its elements, or the number that it is."""
    if not isinstance(value, NkiTensor):
        return value
    return results[id(value)] if id(value) in results else value.read()


def _undefined_lanes(core: Core, plan: Plan, tensors: Operands, touches: tuple[Any, ...]) -> Array | None:
    """Lanes of the result that depend on unwritten elements; where they may not travel, that is NK401."""
    undefined: Array | None = None
    for (tensor, role), touched in zip(tensors, touches, strict=True):
        if role in WRITTEN:
            continue
        missing = tensor.unwritten()
        if missing is not None and touched is not None:
            missing = missing & touched
        if missing is None or not missing.any():
            continue
        travels = core.undefined_travels and plan.lanes == "travel"
        lanes = _lanes(missing, tensors[0][0].shape) if travels else None
        if lanes is None:
            tensor.storage.poison_unwritten()
            _report_unwritten(plan, tensor, missing)
            continue
        undefined = lanes if undefined is None else undefined | lanes
    return undefined


def _lanes(missing: Array, shape: tuple[int, ...]) -> Array | None:
    """A mask over an operand's elements as a mask over the result, where the two have one form."""
    if missing.size == int(np.prod(shape)):
        return missing.reshape(shape)
    try:
        return np.broadcast_to(missing, shape)
    except ValueError:
        return None


def _report_unwritten(plan: Plan, tensor: NkiTensor, missing: Array) -> None:
    first = [int(axis[0]) for axis in np.nonzero(missing)]
    count = int(np.count_nonzero(missing))
    report(
        "NK401",
        f"{plan.name}: {count} of {missing.size} elements of {describe(tensor)} are read but were never written; the "
        f"first is at index {first}",
        about=(tensor,),
    )


def _fresh(plan: Plan, tensor: NkiTensor) -> Any:
    """Which lanes of the destination were never written: True for all, False for none, else a mask."""
    missing = tensor.unwritten()
    if isinstance(tensor, ColumnTensor):
        _check_columns(plan, tensor, missing)
    if missing is None:
        check_addition(plan, tensor)
        return False
    if plan.adds_always:
        report(
            "NK503",
            f"{plan.name}: accumulate=True adds to elements of {describe(tensor)} that were never written; the first "
            "matmul into a PSUM tile must overwrite",
            about=(tensor,),
            remedy="Pass accumulate=(i > 0), or leave accumulate out.",
        )
    return True if missing.all() else missing


def _valid_lanes(plan: Plan, tensors: Operands, *, skip: bool) -> Array | None:
    """Which partitions of gathered inputs are in bounds, where not all are; out of bounds without ``skip`` is NK402."""
    lanes: Array | None = None
    for tensor, role in tensors:
        if not isinstance(tensor, VectorTensor):
            continue
        if plan.unique_rows and role in WRITTEN:
            _check_unique(plan, tensor)
        invalid = tensor.first_invalid()
        if invalid is None:
            continue
        if not skip:
            report(
                "NK402",
                f"{plan.name}: partition {invalid[0]} of {describe(tensor.index)} is {invalid[1]}, out of bounds for "
                f"the {tensor.rows.shape[0]} rows of {describe(tensor.rows)}",
                about=(tensor.rows,),
                remedy="Mend the index, or pass oob_mode=nisa.oob_mode.skip to leave such rows out.",
            )
        if role not in WRITTEN:
            _, valid = tensor.chosen()
            lanes = valid if lanes is None else lanes & valid
    return lanes


def _check_unique(plan: Plan, tensor: VectorTensor) -> None:
    """NK505: one read-modify-write of a row would not see the other."""
    rows, valid = tensor.chosen()
    named, counts = np.unique(rows[valid], return_counts=True)
    if (counts > 1).any():
        row = int(named[np.argmax(counts > 1)])
        first, second = (int(each) for each in np.flatnonzero(valid & (rows == row))[:2])
        report(
            "NK505",
            f"{plan.name}: partitions {first} and {second} of {describe(tensor.index)} both name row {row} of "
            f"{describe(tensor.rows)}",
            about=(tensor.index, tensor.rows),
        )


def _check_columns(plan: Plan, tensor: ColumnTensor, missing: Array | None) -> None:
    """NK505: of two additions to one column, one would not see the other."""
    offsets = tensor.offsets
    assert offsets is not None
    named, counts = np.unique(offsets, return_counts=True)
    if (counts > 1).any() and (missing is None or not missing.all()):
        column = int(named[np.argmax(counts > 1)])
        first, second = (int(each) for each in np.flatnonzero(offsets == column)[:2])
        report(
            "NK505",
            f"{plan.name}: offsets {first} and {second} of {describe(tensor.index)} both name element {column} of the "
            f"partitions of {describe(tensor.columns)}",
            about=(tensor.index, tensor.columns),
        )


def _touches(plan: Plan, data: list[tuple[Any, int]], tensors: Operands) -> tuple[Any, ...]:
    """The lanes of each operand that the instruction reads or writes; None: all of them."""
    if plan.chooses is None:
        return plan.touches or (None,) * len(tensors)
    unready = [tensor for tensor, role in tensors if role not in WRITTEN and not tensor.storage.full]
    if not unready and not plan.touches:
        return (None,) * len(tensors)
    for tensor in unready:
        tensor.storage.poison_unwritten()  # what was never written chooses the same lanes in every run
    return plan.chooses(*(value.read() if isinstance(value, NkiTensor) else value for value, _ in data))


def _written(
    plan: Plan, tensor: NkiTensor, result: Array, undefined: Array | None, lanes: Array | None, touched: Array | None
) -> None:
    """Put a result where it belongs, and remember which elements are now written."""
    if isinstance(tensor, VectorTensor):
        tensor.write(result, lanes)
        tensor.mark_written(lanes)
        return
    if isinstance(tensor, ColumnTensor):
        tensor.write(result, touched)
        tensor.mark_written(touched)
        return
    where = getattr(tensor, "where", None)
    if lanes is not None:
        # Rows left out of a gather leave their part of the destination as it was.
        spread_out = np.tile if plan.last_axis else np.repeat
        kept = spread_out(lanes, tensor.size // lanes.size).reshape(tensor.shape)
        where = kept if where is None else where & kept
        np.copyto(tensor.array, result, where=where)
    elif not tensor.direct:
        tensor.write(result)
    if touched is not None:
        touched = np.broadcast_to(touched, tensor.shape)
        where = touched if where is None else where & touched
    storage = tensor.storage
    if not storage.full:
        storage.mark_written(tensor.layout, tensor.byte_offset, where)
    note_write(plan, tensor)
    if undefined is not None:
        try:
            spread = np.broadcast_to(undefined, tensor.shape)
        except ValueError:
            return
        storage.mark_unwritten(tensor.layout, tensor.byte_offset, spread if where is None else spread & where)
