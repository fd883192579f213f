"""The careful execution of a plan: unwritten elements, masked and indirect views."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from nkitools.chip.column_gather import ColumnTensor
from nkitools.chip.core import Core
from nkitools.chip.masked_out import inherit, mask_of
from nkitools.chip.numerics import Array
from nkitools.chip.pictures import LEFT_OUT, OUTSIDE, UNWRITTEN, picture_of
from nkitools.chip.runtime_views import VectorTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.issue.accumulation import check_addition, note_accesses
from nkitools.issue.concurrency import after_others
from nkitools.issue.full_precision import FullPrecision
from nkitools.issue.nan_origin import Operand
from nkitools.issue.overwritten import report_lost
from nkitools.issue.plan import DATA, WRITTEN, Plan
from nkitools.issue.refused_instructions import leave_rows_undone
from nkitools.issue.scatter_order import check_columns, check_order, check_unique
from nkitools.issue.touched_elements import keep_touched
from nkitools.issue.value_rules import judge
from nkitools.record.rows import words_of
from nkitools.rules.finding import report

Operands = list[tuple[NkiTensor, int]]


def execute(
    core: Core,
    plan: Plan,
    roles: tuple[int, ...],
    values: tuple[Any, ...],
    *,
    skip: bool,
    full: FullPrecision | None = None,
) -> list[int]:
    """Execute a plan on its operands; returns the words that the record keeps of them.

    ``skip``: rows that an index names out of bounds are left out silently, else they are NK402. ``full``: what computes
    in the plan's place, and on what in the operands' place, in full precision.
    """
    meaning, shown = (plan, values) if full is None else (full.plan, full.shown)
    data = [(value, seen, role) for value, seen, role in zip(values, shown, roles, strict=True) if role in DATA]
    tensors = [(value, role) for value, _, role in data if isinstance(value, NkiTensor)]
    lanes, beyond = _valid_lanes(plan, tensors, skip=skip)
    touches = _touches(meaning, [seen for _, seen, _ in data], tensors, full)
    undefined = _undefined_lanes(core, plan, tensors, touches)
    outputs = [(value, seen) for value, seen, role in data if role in WRITTEN and isinstance(value, NkiTensor)]
    keywords = {"fresh": _fresh(plan, outputs[0][0])} if plan.wants_fresh else {}
    if full is not None:
        full.renew()
    results = {id(seen): seen.array if seen.direct and lanes is None else np.array(seen.read()) for _, seen in outputs}
    meaning.compute(*(_array(seen, results) for _, seen, _ in data), **keywords)
    if core.evidence:
        judge(core, plan, *_judged(plan, roles, values, shown, results, lanes, touches, undefined))
    written = [touched for (_, role), touched in zip(tensors, touches, strict=True) if role in WRITTEN]
    for (tensor, seen), touched in zip(outputs, written, strict=True):
        _put(plan, seen, results[id(seen)], lanes, touched)
        _mark(plan, tensor, undefined, lanes, touched)
        if full is not None:
            full.written(tensor, touched)
    if beyond is not None:
        leave_rows_undone(core, [tensor for tensor, _ in outputs], beyond, last_axis=plan.last_axis)
    if plan.in_psum:
        note_accesses(plan, [value for value, _, _ in data])
    keep_touched(core, plan, tensors, touches, lanes, lambda tensor: _kept(plan, tensor, lanes))
    return words_of(tensor for tensor, _ in tensors)


def _judged(
    plan: Plan,
    roles: tuple[int, ...],
    values: tuple[Any, ...],
    shown: tuple[Any, ...],
    results: dict[int, Array],
    lanes: Array | None,
    touches: tuple[Any, ...],
    undefined: Array | None,
) -> tuple[list[Operand], dict[str, Any]]:
    """The operands as they were computed with, and the other arguments."""
    operands, settings, masks = [], {}, iter(touches)
    for name, value, seen, role in zip(plan.arguments, values, shown, roles, strict=True):
        if role not in DATA:
            settings[name] = value
        elif not isinstance(value, NkiTensor):
            operands.append(Operand(name, value, value, written=False))
        elif role in WRITTEN:
            where = _written(plan, value, lanes, next(masks), undefined)
            operands.append(Operand(name, value, results[id(seen)], written=True, where=where))
        else:
            next(masks)
            operands.append(Operand(name, value, seen.read(), written=False))
    return operands, settings


def _written(
    plan: Plan, tensor: NkiTensor, lanes: Array | None, touched: Array | None, undefined: Array | None
) -> Array | None:
    """The elements of an output that get a defined value; None for all."""
    where = _kept(plan, tensor, lanes)
    for mask in (touched, None if undefined is None else ~undefined):
        if mask is not None:
            try:
                spread = np.broadcast_to(mask, tensor.shape)
            except ValueError:  # of another output
                continue
            where = spread if where is None else where & spread
    return where


def _array(value: Any, results: dict[int, Array]) -> Any:
    """What compute gets of an operand: where its result goes, its elements, or the number that it is."""
    if not isinstance(value, NkiTensor):
        return value
    return results[id(value)] if id(value) in results else value.read()


def _undefined_lanes(core: Core, plan: Plan, tensors: Operands, touches: tuple[Any, ...]) -> Array | None:
    """Lanes of the result that depend on unwritten elements; where they may not travel, that is NK401."""
    undefined: Array | None = None
    told: list[Any] = []  # one finding for a tensor that is two operands
    for number, ((tensor, role), touched) in enumerate(zip(tensors, touches, strict=True)):
        if role in WRITTEN:
            continue
        missing = tensor.unwritten()
        if missing is not None and touched is not None:
            missing = missing & touched
        if missing is None or not missing.any():
            continue
        missing = after_others(core, tensor, missing, touched)
        if missing is None or not missing.any():
            continue
        if tensor.storage.losses and report_lost(plan.name, tensor, missing):
            continue
        name, shape = plan.operands[number], tensors[0][0].shape
        lanes = _travelling(plan, name, missing, shape) if core.dialect.undefined_lanes_travel else None
        if lanes is None:
            if tensor.storage not in told:
                told.append(tensor.storage)
                tensor.storage.poison_unwritten()
                _report_unwritten(core, plan, tensor, missing)
            continue
        for target, written in tensors if tensor.storage.left_out else ():
            if written in WRITTEN:
                inherit(target.storage, (tensor,))
        undefined = lanes if undefined is None else undefined | lanes
    return undefined


def _travelling(plan: Plan, operand: str, missing: Array, shape: tuple[int, ...]) -> Array | None:
    """Return the elements of the first result that are undefined since those of an operand are; None for a use."""
    if plan.lanes == "use":
        return None
    rules = [rule for source, rule in plan.elements.of(plan.operands[0]) if source.operand == operand]
    reached = [rule.results(missing, shape, {}) for rule in rules]
    undefined: Array = np.logical_or.reduce(reached) if reached else np.zeros(shape, np.bool_)
    return None if plan.lanes == "product" and undefined.all() else undefined


def _report_unwritten(core: Core, plan: Plan, tensor: NkiTensor, missing: Array) -> None:
    first = [int(axis[0]) for axis in np.nonzero(missing)]
    what = f"{plan.name}: {np.count_nonzero(missing)} of {missing.size} elements of {describe(tensor)}"
    mask = mask_of(tensor, missing) if tensor.storage.left_out else None
    if mask is not None:
        report(
            "NK405",
            f"{what} are used here, which the mask {_place(core, mask)} left out; the first is at index {first}",
            about=(tensor,),
            picture=lambda: picture_of(missing, LEFT_OUT),
        )
        return
    report(
        "NK401",
        f"{what} are read but were never written; the first is at index {first}",
        about=(tensor,),
        picture=lambda: picture_of(missing, UNWRITTEN),
    )


def _place(core: Core, site: int) -> str:
    """A line of the author's, as seen from the one that is told of it."""
    sites = core.record.sites
    there, here = sites[site], sites[core.record.site()]
    return f"at line {there.line}" if there.file == here.file else f"at {there.file}:{there.line}"


def _fresh(plan: Plan, tensor: NkiTensor) -> Any:
    """Which lanes of the destination were never written: True for all, False for none, else a mask."""
    missing = tensor.unwritten()
    if isinstance(tensor, ColumnTensor):
        check_columns(plan, tensor, missing)
    if missing is None:
        check_addition(plan, tensor)
        return False
    if plan.adds_always and not report_lost(plan.name, tensor, missing):
        report(
            "NK503",
            f"{plan.name}: accumulate=True adds to elements of {describe(tensor)} that were never written; the first "
            "matmul into a PSUM tile must overwrite",
            about=(tensor,),
            remedy="Pass accumulate=(i > 0), or leave accumulate out.",
        )
    return True if missing.all() else missing


def _valid_lanes(plan: Plan, tensors: Operands, *, skip: bool) -> tuple[Array | None, Array | None]:
    """Which partitions of gathered inputs are in bounds, where not all are; out of bounds without ``skip`` is NK402.

    And which rows of the outputs were to come from there, or go there, where that was reported.
    """
    lanes: Array | None = None
    beyond: Array | None = None
    for tensor, role in tensors:
        if not isinstance(tensor, VectorTensor):
            continue
        if plan.unique_rows and role in WRITTEN:
            check_unique(plan, tensor)
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
                picture=partial(picture_of, ~tensor.chosen()[1], OUTSIDE, "entries of the index"),
            )
            beyond = ~tensor.chosen()[1]
        if role not in WRITTEN:
            _, valid = tensor.chosen()
            lanes = valid if lanes is None else lanes & valid
    return lanes, beyond


def _touches(plan: Plan, data: list[Any], tensors: Operands, full: FullPrecision | None) -> tuple[Any, ...]:
    """The lanes of each operand that the instruction reads or writes; None: all of them."""
    if plan.chooses is None:
        return plan.touches or (None,) * len(tensors)
    unready = [tensor for tensor, role in tensors if role not in WRITTEN and not tensor.storage.full]
    if not unready and not plan.touches:
        return (None,) * len(tensors)
    for tensor in unready:
        tensor.storage.poison_unwritten()  # what was never written chooses the same lanes in every run
    if full is not None:
        full.renew()
    return plan.chooses(*(value.read() if isinstance(value, NkiTensor) else value for value in data))


def _put(plan: Plan, tensor: NkiTensor, result: Array, lanes: Array | None, touched: Array | None) -> None:
    """Put a result where it belongs."""
    if isinstance(tensor, VectorTensor):
        if not plan.unique_rows:
            check_order(plan, tensor, result, lanes)
        tensor.write(result, lanes)
    elif isinstance(tensor, ColumnTensor):
        tensor.write(result, touched)
    elif lanes is not None:
        np.copyto(tensor.array, result, where=_kept(plan, tensor, lanes))
    elif not tensor.direct:
        tensor.write(result)


def _kept(plan: Plan, tensor: NkiTensor, lanes: Array | None) -> Array | None:
    """Which elements of a destination are written, None for all: those of its mask, and of the rows of a gather."""
    where: Array | None = getattr(tensor, "where", None)
    if lanes is None:
        return where
    # Rows left out of a gather leave their part of the destination as it was.
    spread_out = np.tile if plan.last_axis else np.repeat
    kept = spread_out(lanes, tensor.size // lanes.size).reshape(tensor.shape)
    return kept if where is None else where & kept


def _mark(plan: Plan, tensor: NkiTensor, undefined: Array | None, lanes: Array | None, touched: Array | None) -> None:
    """Remember which elements are now written."""
    if isinstance(tensor, VectorTensor):
        tensor.mark_written(lanes)
        return
    if isinstance(tensor, ColumnTensor):
        tensor.mark_written(touched)
        return
    where = _kept(plan, tensor, lanes)
    if touched is not None:
        touched = np.broadcast_to(touched, tensor.shape)
        where = touched if where is None else where & touched
    storage = tensor.storage
    if not storage.full:
        storage.mark_written(tensor.layout, tensor.byte_offset, where)
    if undefined is not None:
        try:
            spread = np.broadcast_to(undefined, tensor.shape)
        except ValueError:
            return
        storage.mark_unwritten(tensor.layout, tensor.byte_offset, spread if where is None else spread & where)
