"""Calls that return a value, made again with operands of the same form: nothing is looked at twice.

The first call with operands of some form goes the usual way: shapes, dtypes, guards, a plan. What follows from the form
alone is kept: the tile that the call returns, and the plan of its instruction. A call of that form is then an
allocation and the plan's computation, where all elements of the operands are written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nkitools.chip.core import CORE, Core
from nkitools.chip.dtypes import DType
from nkitools.chip.layout import Layout
from nkitools.chip.memory import MemoryRegion, Storage
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.legacy.kernels.kernel_state import TENSOR_MADE
from nkitools.issue.accumulation import note_accesses
from nkitools.issue.commit import leave_open
from nkitools.issue.instruction import Instruction
from nkitools.issue.plan import Plan
from nkitools.issue.value_rules import judge_call

_new = object.__new__


@dataclass(slots=True, eq=False)
class CallForm:
    """An instruction with operands of some form, and the tile that it writes to."""

    instruction: Instruction[...]
    plan: Plan
    names: tuple[str, ...]  # the instruction's parameters that the operands are, in the order of its signature
    static: dict[str, Any]  # its other arguments
    absent: tuple[None, ...]  # what the computation gets behind the operands
    is_swapped: bool  # the second operand of the call is the first of the instruction
    shape: tuple[int, ...]
    dtype: DType
    memory: MemoryRegion
    layout: Layout


def value_again(what: Any, operands: tuple[Any, ...], depth: int) -> Any:
    """Return the value of a call of a form that is known; None where it goes the usual way.

    ``what`` is all of the call but its operands, which are tiles and numbers. ``depth``: how many frames outside of
    this one the author's lies, where the author makes the call.
    """
    core = CORE.get()
    if core is None or core.careful:
        return None
    key, arrays, views = [what], [], []
    kind: Any = None
    for each in operands:
        if getattr(each, "is_plain", False):
            kind, view = each.__class__, each.base
            if each.access is not None or view.__class__ is not NkiTensor or not view.storage.full:
                return None
            key.append(view._layout or view.layout)
            arrays.append(view.array)
            views.append(view)
        else:
            key.append(each.__class__)
            arrays.append(each)
    form = core.plans.get(tuple(key))
    if form is None:
        return None
    if form.is_swapped:
        arrays.reverse()
    record = core.record
    if record.open is not None:
        record.begin_instruction()
    site, naming = record.sites.current_and_naming(depth)
    storage = Storage(form.shape, form.dtype, form.memory, site=naming)
    storage.placed_to_fit = core.dialect.places_tiles
    record.allocated(storage)
    dst = _new(NkiTensor)
    dst.storage, dst.array, dst.dtype, dst.shape = storage, storage.array, form.dtype, form.shape
    dst.byte_offset, dst._layout = 0, form.layout
    plan = form.plan
    plan.compute(dst.array, *arrays, *form.absent)
    if core.evidence:
        _judge(core, form, dst, operands)
    storage.full = True
    if plan.in_psum:
        note_accesses(plan, (dst, *views))
    value = _new(kind)
    value.base, value.access, value.element, value.shape, value.lanes = dst, None, form.dtype, form.shape, None
    value.opened = leave_open(core, plan, site, dst, views)
    tell = TENSOR_MADE.get()
    if tell is not None:
        tell()
    return value


def keep_form(
    what: Any,
    operands: tuple[Any, ...],
    value: Any,
    instruction: Instruction[...],
    names: tuple[str, ...],
    *,
    absent: tuple[None, ...] = (),
    is_swapped: bool = False,
    **static: Any,
) -> None:
    """Keep the form of a call that has just returned ``value``, where one instruction has made it of the operands."""
    core, opened = CORE.get(), value.opened
    if core is None or opened is None or not opened.is_only_writer or core.full_plans is not None:
        return
    views = [each.base if getattr(each, "is_plain", False) else each for each in operands]
    named = dict(zip(names, reversed(views) if is_swapped else views, strict=True))
    plan = instruction.kept_plan(core, instruction.bound(dst=value.base, **named, **static))
    if plan is not opened.plan or plan.wants_fresh or plan.touches or plan.chooses:
        return
    key = (what, *[each.layout if isinstance(each, NkiTensor) else each.__class__ for each in views])
    dst: NkiTensor = value.base
    core.plans[key] = CallForm(
        instruction, plan, names, static, absent, is_swapped, dst.shape, dst.dtype, dst.buffer, dst.layout
    )


def _judge(core: Core, form: CallForm, dst: NkiTensor, operands: tuple[Any, ...]) -> None:
    """Judge what the computation has left as evidence."""
    views = [getattr(each, "base", each) for each in operands]
    named = dict(zip(form.names, reversed(views) if form.is_swapped else views, strict=True))
    judge_call(core, form.plan, form.instruction.roles, form.instruction.bound(dst=dst, **named, **form.static))
