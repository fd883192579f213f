"""Checks that depend on the values of operands: indices out of bounds, elements that were never written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from nkitools.chip.column_gather import ColumnTensor
from nkitools.chip.memory import Storage
from nkitools.chip.numerics import Array
from nkitools.chip.runtime_views import DynamicTensor, VectorTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.element_rules import Rule, Values
from nkitools.issue.plan import WRITTEN
from nkitools.issue.undefined import NOTHING_UNDEFINED, Undefined
from nkitools.rules.finding import StopRun, report


def check(call: CarefulCall) -> None:
    """Find the elements that a call reads and writes, and report reads that are not allowed."""
    _find_valid_lanes(call)
    call.touches = _touches(call)
    _find_undefined_lanes(call)
    if call.plan.wants_fresh:
        call.fresh = _fresh(call, call.outputs[0][0])


def _find_valid_lanes(call: CarefulCall) -> None:
    """Find what rows out of bounds leave out of the results; NK402 if there are such, unless they are skipped."""
    plan = call.plan
    for operand, (tensor, role) in zip(plan.operands, call.tensors, strict=True):
        if not isinstance(tensor, VectorTensor):
            continue
        if plan.unique_rows and role in WRITTEN:
            from nkitools.issue.scatter_order import check_unique

            check_unique(plan, tensor)
        invalid = tensor.first_invalid()
        if invalid is None:
            continue
        _, valid = tensor.chosen()
        if not call.skip:
            from nkitools.chip.pictures import OUTSIDE, picture_of

            report(
                "NK402",
                f"{plan.name}: partition {invalid[0]} of {describe(tensor.index)} is {invalid[1]}, out of bounds for "
                f"the {tensor.rows.shape[0]} rows of {describe(tensor.rows)}",
                about=(tensor.rows,),
                remedy="Mend the index, or pass oob_mode=nisa.oob_mode.skip to leave such rows out.",
                picture=partial(picture_of, ~valid, OUTSIDE, "entries of the index"),
                facts={"instruction": plan.name, "first_index": int(invalid[1]), "extent": tensor.rows.shape[0]},
            )
            call.beyond = True
        if role not in WRITTEN:
            outside = np.broadcast_to(~valid.reshape(-1, *[1] * (tensor.ndim - 1)), tensor.shape)
            for result, lost in _results(call, operand, outside).items():
                call.lost[result] = call.lost[result] | lost if result in call.lost else lost


def _touches(call: CarefulCall) -> tuple[Array | None, ...]:
    """Return the lanes of each operand that the instruction reads or writes; None: all of them."""
    plan, everything = call.meaning, (None,) * len(call.tensors)
    if plan.chooses is None:
        return plan.touches or everything
    unready = [tensor for tensor, role in call.tensors if role not in WRITTEN and not tensor.storage.full]
    if not unready and not plan.touches:
        return everything
    for tensor in unready:
        tensor.storage.poison_unwritten()  # a fixed pattern: the choice of lanes is the same in every run
    if call.full is not None:
        call.full.renew()
    values = [seen.read() if isinstance(seen, NkiTensor) else seen for _, seen, _ in call.data]
    chosen: tuple[Array | None, ...] = plan.chooses(*values)
    if not unready:
        return chosen
    # An element of a predicate that was never written may choose its lane or not: with 0 for its poison as well.
    others = [_with_zeros(tensor, each) for (tensor, _, _), each in zip(call.data, values, strict=True)]
    pairs = zip(chosen, plan.chooses(*others), strict=True)
    return tuple(None if one is None or other is None else one | other for one, other in pairs)


def _with_zeros(tensor: Any, values: Any) -> Any:
    """Return the values of an operand with 0 for unwritten elements."""
    missing = tensor.unwritten() if isinstance(tensor, NkiTensor) else None
    return values if missing is None else np.where(missing, np.zeros((), values.dtype), values)


def _find_undefined_lanes(call: CarefulCall) -> None:
    """Find the elements of results that depend on unwritten elements; NK401 if the instruction may not use these."""
    plan = call.plan
    if plan.names_only:
        return
    if _is_fence(call):
        missing = call.tensors[0][0].unwritten()
        call.undefined = NOTHING_UNDEFINED if missing is None else Undefined({plan.operands[0]: missing})
        return
    reported: list[Storage] = []  # one finding for a tensor that is two operands
    for number, ((tensor, role), touched) in enumerate(zip(call.tensors, call.touches, strict=True)):
        if isinstance(tensor, DynamicTensor) and tensor.lost is not None:
            _lose(call, tensor.lost)
            continue
        missing = None if role in WRITTEN else _missing(call, tensor, touched)
        if missing is None:
            continue
        from nkitools.issue.unwritten import leaves, report_read  # few kernels get here

        is_result = plan.lanes == "leave" or _goes_out(call)
        missing = _kept(call, missing) if is_result else missing
        if not missing.any():
            continue
        reached = None if is_result else _reached(call, plan.operands[number], missing)
        if is_result and leaves(call.core, plan, tensor, missing):
            tensor.storage.poison_unwritten()
            continue
        if reached is None:
            if tensor.storage not in reported:
                reported.append(tensor.storage)
                tensor.storage.poison_unwritten()
                if report_read(call, tensor, missing) and plan.operands[number] in plan.addresses:
                    raise StopRun  # no rule about its values says more
            continue
        mixes = _mixes(call, plan.operands[number], missing, touched, reached)
        call.undefined = call.undefined.joined(Undefined(reached, ((tensor, missing, mixes),)))


def _lose(call: CarefulCall, index: NkiTensor) -> None:
    """Mark all results as undefined, since the index of an input was never written; NK401 if one leaves the chip."""
    missing = index.unwritten()
    if missing is None:
        return
    from nkitools.issue.unwritten import report_read

    if call.plan.lanes == "leave" or _goes_out(call):
        report_read(call, index, missing)
        return
    names = [name for name, (_, role) in zip(call.plan.operands, call.tensors, strict=True) if role in WRITTEN]
    pairs = zip(names, call.outputs, strict=True)
    reached = {name: np.ones(tensor.shape, np.bool_) for name, (tensor, _) in pairs}
    call.undefined = call.undefined.joined(Undefined(reached, ((index, missing, True),)))


def _kept(call: CarefulCall, missing: Array) -> Array:
    """Return the missing elements of a copy's source without those of rows that the copy skips."""
    dst = call.outputs[0][0]
    if not isinstance(dst, VectorTensor) or missing.size != dst.size:
        return missing
    valid = dst.chosen()[1].reshape(-1, *[1] * (dst.ndim - 1))
    return (missing.reshape(dst.shape) & valid).reshape(missing.shape)


def _goes_out(call: CarefulCall) -> bool:
    """Return whether a copy writes into an argument of the kernel, which is a result."""
    return call.plan.lanes == "copy" and call.outputs[0][0].storage.id in call.core.input_ids


def _is_fence(call: CarefulCall) -> bool:
    """Return whether a DMA copies a view onto itself, which changes no element and waits for earlier transfers."""
    if call.plan.name != "dma_copy":
        return False
    (dst, _), (src, _) = call.tensors[:2]
    return dst.storage is src.storage and (dst.layout, dst.byte_offset) == (src.layout, src.byte_offset)


def _missing(call: CarefulCall, tensor: NkiTensor, touched: Array | None) -> Array | None:
    """Return the elements of an input that are read and were never written; None if there are none.

    Elements that another tensor has overwritten are reported here (NK204); then the others are not.
    """
    missing = tensor.unwritten()
    if missing is not None and touched is not None:
        missing = missing & touched
    if missing is None or not missing.any():
        return None
    from nkitools.issue.concurrency import after_others
    from nkitools.issue.overwritten import report_lost

    missing = after_others(call.core, tensor, missing, touched)
    if missing is None or not missing.any():
        return None
    return None if tensor.storage.losses and report_lost(call.plan.name, tensor, missing) else missing


def _reached(call: CarefulCall, operand: str, missing: Array) -> dict[str, Array] | None:
    """Return the elements of each result that undefined elements of an operand make undefined; None for a use."""
    plan = call.plan
    if plan.lanes in ("use", "leave") or operand in plan.addresses:
        return None
    if plan.lanes == "exchange" and missing.all():
        return None
    return _results(call, operand, missing)


def _results(call: CarefulCall, operand: str, marked: Array) -> dict[str, Array]:
    """Return the elements of each result that are computed from marked elements of an operand."""
    plan = call.plan
    values = {
        name: tensor.read()
        for name, (tensor, _) in zip(plan.operands, call.tensors, strict=True)
        if name in plan.addresses
    }
    return {
        name: _made_of(_rules(call, name, operand), marked, tensor.shape, values)
        for name, (tensor, role) in zip(plan.operands, call.tensors, strict=True)
        if role in WRITTEN
    }


def _rules(call: CarefulCall, result: str, operand: str) -> list[Rule]:
    return [rule for source, rule in call.plan.elements.of(result) if source.operand == operand]


def _mixes(call: CarefulCall, operand: str, missing: Array, touched: Array | None, reached: dict[str, Array]) -> bool:
    """Return whether a result is computed from both defined and undefined elements of an operand, or a whole product is
    undefined.
    """
    if call.plan.lanes == "product":
        return all(undefined.all() for undefined in reached.values()) and not _is_masked_out(call, operand, missing)
    if call.plan.lanes != "apart" or missing.all():
        return call.plan.lanes == "apart"
    defined = ~missing if touched is None else touched & ~missing
    shapes = dict(zip(call.plan.operands, (tensor.shape for tensor, _ in call.tensors), strict=True))
    made = {name: _made_of(_rules(call, name, operand), defined, shapes[name], {}) for name in reached}
    return any(bool((made[name] & undefined).any()) for name, undefined in reached.items())


def _is_masked_out(call: CarefulCall, operand: str, missing: Array) -> bool:
    """Return whether masks have left out all of an operand, so that no defined element is added to an undefined one."""
    from nkitools.chip.masked_out import MASK, cause_of

    tensor = call.tensors[call.plan.operands.index(operand)][0]
    return bool(missing.all()) and cause_of(tensor, missing, MASK) is not None


def _made_of(rules: Sequence[Rule], marked: Array, shape: tuple[int, ...], values: Values) -> Array:
    """Return the elements of a result that these rules compute from marked elements of an operand."""
    found: Array = np.zeros(shape, np.bool_)
    for rule in rules:
        found |= rule.results(marked, shape, values)
    return found


def _fresh(call: CarefulCall, tensor: NkiTensor) -> Any:
    """Return the elements of the destination that were never written: True for all, False for none, else a mask.

    Elements that became undefined later are not among them, and stay undefined.
    """
    from nkitools.chip.masked_out import travelled
    from nkitools.issue.accumulation import check_addition
    from nkitools.issue.overwritten import report_lost
    from nkitools.issue.scatter_order import check_columns

    plan, unwritten = call.plan, tensor.unwritten()
    missing = unwritten
    if isinstance(tensor, ColumnTensor):
        check_columns(plan, tensor, missing)
    undefined = None if missing is None or plan.overwrites else travelled(tensor, missing)
    if missing is not None and undefined is not None:
        source = (tensor, undefined, False)
        call.undefined = call.undefined.joined(Undefined({plan.operands[0]: undefined}, (source,)))
        missing = missing & ~undefined
    if missing is None or not missing.any():
        check_addition(plan, tensor, unwritten)
        return False
    if plan.adds_always and not report_lost(plan.name, tensor, missing):
        message = (
            f"{plan.name}: accumulate=True adds to elements of {describe(tensor)} that were never written; the first "
            "matmul into a PSUM tile must overwrite"
        )
        remedy = "Pass accumulate=(i > 0), or leave accumulate out."
        report("NK503", message, about=(tensor,), remedy=remedy, facts={"instruction": plan.name})
    elif not missing.all():
        check_addition(plan, tensor, unwritten)
    return True if missing.all() else missing
