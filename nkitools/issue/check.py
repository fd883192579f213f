"""Check what depends on the values of operands: indices out of bounds, elements that were never written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from nkitools.chip.column_gather import ColumnTensor
from nkitools.chip.core import Core
from nkitools.chip.masked_out import MASK, UNMODIFIED, cause_of, travelled
from nkitools.chip.masked_out import UNWRITTEN as NEVER_WRITTEN
from nkitools.chip.memory import Storage
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.own_indices import own_boxes
from nkitools.chip.pictures import LEFT_OUT, OUTSIDE, UNWRITTEN, picture_of
from nkitools.chip.runtime_views import VectorTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.issue.accumulation import check_addition
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.concurrency import after_others
from nkitools.issue.element_rules import Rule, Values
from nkitools.issue.overwritten import report_lost
from nkitools.issue.plan import WRITTEN, Plan
from nkitools.issue.scatter_order import check_columns, check_unique
from nkitools.issue.undefined import NOTHING_UNDEFINED, Undefined
from nkitools.rules.finding import report


def check(call: CarefulCall) -> None:
    """Find which lanes a call reads and writes, and report what it may not read."""
    _find_valid_lanes(call)
    call.touches = _touches(call)
    _find_undefined_lanes(call)
    if call.plan.wants_fresh:
        call.fresh = _fresh(call, call.outputs[0][0])


def _find_valid_lanes(call: CarefulCall) -> None:
    """Find the partitions of gathered inputs that are in bounds; NK402 where not all are, unless they are skipped."""
    plan = call.plan
    for tensor, role in call.tensors:
        if not isinstance(tensor, VectorTensor):
            continue
        if plan.unique_rows and role in WRITTEN:
            check_unique(plan, tensor)
        invalid = tensor.first_invalid()
        if invalid is None:
            continue
        _, valid = tensor.chosen()
        if not call.skip:
            report(
                "NK402",
                f"{plan.name}: partition {invalid[0]} of {describe(tensor.index)} is {invalid[1]}, out of bounds for "
                f"the {tensor.rows.shape[0]} rows of {describe(tensor.rows)}",
                about=(tensor.rows,),
                remedy="Mend the index, or pass oob_mode=nisa.oob_mode.skip to leave such rows out.",
                picture=partial(picture_of, ~valid, OUTSIDE, "entries of the index"),
                facts={"instruction": plan.name, "first_index": int(invalid[1]), "extent": tensor.rows.shape[0]},
            )
            call.beyond = ~valid
        if role not in WRITTEN:
            call.lanes = valid if call.lanes is None else call.lanes & valid


def _touches(call: CarefulCall) -> tuple[Array | None, ...]:
    """Return the lanes of each operand that the instruction reads or writes; None: all of them."""
    plan, everything = call.meaning, (None,) * len(call.tensors)
    if plan.chooses is None:
        return plan.touches or everything
    unready = [tensor for tensor, role in call.tensors if role not in WRITTEN and not tensor.storage.full]
    if not unready and not plan.touches:
        return everything
    for tensor in unready:
        tensor.storage.poison_unwritten()  # what was never written chooses the same lanes in every run
    if call.full is not None:
        call.full.renew()
    values = (seen.read() if isinstance(seen, NkiTensor) else seen for _, seen, _ in call.data)
    chosen: tuple[Array | None, ...] = plan.chooses(*values)
    return chosen


def _find_undefined_lanes(call: CarefulCall) -> None:
    """Find the lanes of the result that depend on unwritten elements; where they may not travel, that is NK401."""
    plan = call.plan
    if plan.names_only:
        return
    if _is_fence(call):
        missing = call.tensors[0][0].unwritten()
        call.undefined = NOTHING_UNDEFINED if missing is None else Undefined({plan.operands[0]: missing})
        return
    told: list[Storage] = []  # one finding for a tensor that is two operands
    for number, ((tensor, role), touched) in enumerate(zip(call.tensors, call.touches, strict=True)):
        missing = None if role in WRITTEN else _missing(call, tensor, touched)
        if missing is None:
            continue
        reached = _reached(call, plan.operands[number], missing, touched)
        if reached is None and plan.lanes == "leave" and _leaves(call.core, plan, tensor, missing):
            tensor.storage.poison_unwritten()
            continue
        if reached is None:
            if tensor.storage not in told:
                told.append(tensor.storage)
                tensor.storage.poison_unwritten()
                _report_unwritten(call, tensor, missing)
            continue
        call.undefined = call.undefined.joined(Undefined(reached, ((tensor, missing),)))


def _is_fence(call: CarefulCall) -> bool:
    """Return whether a DMA copies a view onto itself, which changes no element and waits for earlier transfers."""
    if call.plan.name != "dma_copy":
        return False
    (dst, _), (src, _) = call.tensors[:2]
    return dst.storage is src.storage and (dst.layout, dst.byte_offset) == (src.layout, src.byte_offset)


def _missing(call: CarefulCall, tensor: NkiTensor, touched: Array | None) -> Array | None:
    """Return the elements of an input that are read and were never written; None where there are none.

    Elements that were written and lost since are reported here (NK204), and no others then.
    """
    missing = tensor.unwritten()
    if missing is not None and touched is not None:
        missing = missing & touched
    if missing is None or not missing.any():
        return None
    missing = after_others(call.core, tensor, missing, touched)
    if missing is None or not missing.any():
        return None
    return None if tensor.storage.losses and report_lost(call.plan.name, tensor, missing) else missing


def _reached(call: CarefulCall, operand: str, missing: Array, touched: Array | None) -> dict[str, Array] | None:
    """Return the elements of each result that are undefined since those of an operand are; None for a use."""
    plan = call.plan
    if plan.lanes in ("use", "leave") or operand in plan.addresses:
        return None
    if plan.lanes in ("apart", "exchange") and missing.all():
        return None
    values = {
        name: tensor.read()
        for name, (tensor, _) in zip(plan.operands, call.tensors, strict=True)
        if name in plan.addresses
    }
    defined = ~missing if touched is None else touched & ~missing
    found: dict[str, Array] = {}
    for name, (tensor, role) in zip(plan.operands, call.tensors, strict=True):
        if role not in WRITTEN:
            continue
        rules = [rule for source, rule in plan.elements.of(name) if source.operand == operand]
        undefined = _made_of(rules, missing, tensor.shape, values)
        if plan.lanes == "apart" and (undefined & _made_of(rules, defined, tensor.shape, values)).any():
            return None
        if plan.lanes == "product" and undefined.all() and not _is_masked_out(call, operand, missing):
            return None
        found[name] = undefined
    return found


def _is_masked_out(call: CarefulCall, operand: str, missing: Array) -> bool:
    """Return whether masks have left out all of an operand, so that no defined element is added to an undefined one."""
    tensor = call.tensors[call.plan.operands.index(operand)][0]
    return bool(missing.all()) and cause_of(tensor, missing, MASK) is not None


def _made_of(rules: Sequence[Rule], marked: Array, shape: tuple[int, ...], values: Values) -> Array:
    """Return which elements of a result of this shape are made of marked elements of an operand, by some rules."""
    found: Array = np.zeros(shape, np.bool_)
    for rule in rules:
        found |= rule.results(marked, shape, values)
    return found


def _report_unwritten(call: CarefulCall, tensor: NkiTensor, missing: Array) -> None:
    core, plan = call.core, call.plan
    first = [int(axis[0]) for axis in np.nonzero(missing)]
    what = f"{plan.name}: {np.count_nonzero(missing)} of {missing.size} elements of {describe(tensor)}"
    mask = cause_of(tensor, missing, MASK)
    if mask is not None:
        place = _place(core, mask.site)
        message = f"{what} are used here, which the mask {place} left out; the first is at index {first}"
        facts = {"instruction": plan.name, "unwritten": int(np.count_nonzero(missing)), "elements": missing.size}
        report("NK405", message, about=(tensor,), picture=lambda: picture_of(missing, LEFT_OUT), facts=facts)
        return
    came = _origin(core, tensor, missing)
    boxes = own_boxes(tensor, missing)
    where = f"these are{boxes}" if boxes else f"the first is at index {first}"
    message = f"{what} are read but were never written; {where}{came}"
    remedy = _remedy_of_swapped(call, tensor) or _remedy_of_unwritten(core, tensor, missing)
    facts = {"instruction": plan.name, "unwritten": int(np.count_nonzero(missing)), "elements": missing.size}
    picture = partial(picture_of, missing, UNWRITTEN)
    report("NK401", message, about=(tensor,), remedy=remedy, picture=picture, facts=facts)


def _remedy_of_swapped(call: CarefulCall, tensor: NkiTensor) -> str:
    """Return that the operands of a copy are swapped, where nothing was written yet into its source; else ''.

    Only where the destination is an argument, which is there to be read.
    """
    if not call.plan.name.startswith(("dma_", "tensor_copy")) or tensor.storage.holds_anything:
        return ""
    if not any(written.storage.id in call.core.input_ids for written, _ in call.outputs):
        return ""
    return f"The operands are swapped: {call.plan.name}(dst, src). The destination comes first."


def _remedy_of_unwritten(core: Core, tensor: NkiTensor, missing: Array) -> str:
    """Return what to do where more is known than that elements were never written; '' for the rule's own remedy."""
    if tensor.buffer is MemoryRegion.private_hbm and len(core.team) > 1:
        return (
            "private_hbm is of one core, and the other core writes another tensor: exchange through nl.shared_hbm with "
            "nisa.core_barrier between, or by nisa.sendrecv."
        )
    written = tensor.storage.written_bytes > 0 or tensor.storage.written is not None or tensor.storage.full
    if missing.all() and written:
        return (
            "Other elements of the tensor are written: look at the index of this access and at the order of the turns "
            "(is a ring read one slot ahead?)."
        )
    return ""


def _leaves(core: Core, plan: Plan, tensor: NkiTensor, missing: Array) -> bool:
    """Return whether all missing elements are such as an instruction documents as not modified (NK621)."""
    cause = cause_of(tensor, missing, UNMODIFIED)
    if cause is None:
        return False
    message = (
        f"{plan.name}: {np.count_nonzero(missing)} of {missing.size} elements of {describe(tensor)} leave in a result "
        f"without ever being written, since the instruction {_place(core, cause.site)} documents them as not modified; "
        "AWS's own examples copy such elements out with the others, and the values are undefined"
    )
    remedy = "Copy the modified elements alone, or fill the tile with nisa.memset before that instruction."
    if core.rank is not None:
        remedy = (
            f"Rank {core.rank} may have received nothing: let a pair of source_target_pairs have it as a target, or "
            "fill the tensor before the collective."
        )
    report("NK621", message, about=(tensor,), remedy=remedy, picture=lambda: picture_of(missing, UNWRITTEN))
    return True


def _origin(core: Core, tensor: NkiTensor, missing: Array) -> str:
    """Return the tensor in which elements that have travelled were never written, as a part of a sentence."""
    cause = cause_of(tensor, missing, NEVER_WRITTEN)
    if cause is None or cause.source == tensor.storage.id:
        return ""
    name = core.record.name_of(cause.source)
    return f"; undefined elements came from {f'`{name}`' if name else 'the tensor'} made {_place(core, cause.site)}"


def _place(core: Core, site: int) -> str:
    """Return a line of the author's as text, relative to the line of the finding."""
    sites = core.record.sites
    there, here = sites[site], sites[core.record.site()]
    return f"at line {there.line}" if there.file == here.file else f"at {there.file}:{there.line}"


def _fresh(call: CarefulCall, tensor: NkiTensor) -> Any:
    """Return which lanes of the destination were never written: True for all, False for none, else a mask.

    What has become undefined on the way is not among them, and stays undefined.
    """
    plan, unwritten = call.plan, tensor.unwritten()
    missing = unwritten
    if isinstance(tensor, ColumnTensor):
        check_columns(plan, tensor, missing)
    undefined = None if missing is None or plan.overwrites else travelled(tensor, missing)
    if missing is not None and undefined is not None:
        call.undefined = call.undefined.joined(Undefined({plan.operands[0]: undefined}, ((tensor, undefined),)))
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
