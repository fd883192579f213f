"""The way of a call whose form is known, with views that registers, scalars or an index move, or touched in part.

The fast path takes plain views alone, and no lists, which no key has. Here each view is moved to where it lies now, and
what is left of the careful way is what such a call can need: its plan, whether its inputs have values, and what stands
beside its row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.chip.core import Core
from nkitools.chip.masked_out import UNMODIFIED, leave_out
from nkitools.chip.numerics import Array
from nkitools.chip.runtime_views import DynamicTensor, OutOfBounds, VectorTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.issue.accumulation import note_accesses
from nkitools.issue.form import InstructionForm
from nkitools.issue.instruction_names import label
from nkitools.issue.plan import DATA, SOURCES, WRITTEN, Plan
from nkitools.issue.touched_elements import keep_touched
from nkitools.issue.value_rules import judge_call
from nkitools.record.rows import words_of

Tensors = list[tuple[NkiTensor, int]]


def issue_warm(form: InstructionForm, core: Core, values: tuple[Any, ...]) -> bool:
    """Carry out a call; False, with nothing done, where the careful way is to look at it."""
    if core.careful or core.undone or core.full_plans is not None or form.exchanges or SOURCES in form.roles:
        return False
    given, values = values, form.frozen(values)
    pairs = zip(values, form.roles, strict=True)
    tensors = [(value, role) for value, role in pairs if role in DATA and isinstance(value, NkiTensor)]
    if not _are_settled(form, tensors):
        return False
    plan = _plan(core, form.key(values))
    if plan is None or not _are_ready(tensors):
        return False
    touches = plan.touches or (None,) * len(tensors)
    is_listed = any(one is not other for one, other in zip(given, values, strict=True))
    is_plain = not (plan.touches or is_listed) and all(tensor.__class__ is NkiTensor for tensor, _ in tensors)
    if is_plain:
        return False
    data = [value for value, role in zip(values, form.roles, strict=True) if role in DATA]
    plan.compute(*(value.read() if isinstance(value, NkiTensor) else value for value in data))
    if core.evidence:
        judge_call(core, plan, form.roles, values)
    _mark(core, tensors, touches)
    if plan.in_psum:
        note_accesses(plan, data)
    keep_touched(core, plan, tensors, touches, lambda _, __: None)
    core.record.commit(plan, core.record.site(), words_of(tensor for tensor, _ in tensors))
    name = form.argument("name", values)
    if name is not None:
        label(core, form, name, core.record.latest)
    return True


def _are_settled(form: InstructionForm, tensors: Tensors) -> bool:
    """Move views to their current places; return False if one has another type, lies outside, or cannot move."""
    for tensor, role in tensors:
        if tensor.__class__ is DynamicTensor:
            try:
                tensor.settle(f"nisa.{form.name}", is_read=role not in WRITTEN)
            except OutOfBounds:
                return False
            if tensor.lost is not None:
                return False
        elif not (tensor.__class__ is NkiTensor or (role not in WRITTEN and _is_gathered(tensor))):
            return False
    return True


def _is_gathered(tensor: NkiTensor) -> bool:
    """Return whether an index has values that all name rows of a tensor."""
    return tensor.__class__ is VectorTensor and tensor.index.unwritten() is None and tensor.first_invalid() is None


def _plan(core: Core, key: tuple[Any, ...]) -> Plan | None:
    """Return the plan of a call; None if it is unknown, or depends on the operands' values."""
    try:
        plan: Plan | None = core.plans.get(key)
    except TypeError:  # an argument that no key has
        return None
    asks = plan is None or plan.wants_fresh or plan.names_only or plan.chooses is not None or plan.unique_rows
    return None if asks else plan


def _are_ready(tensors: Tensors) -> bool:
    """Return whether all inputs have values, and no output is an argument that is kept."""
    for tensor, role in tensors:
        storage = tensor.storage
        if storage.guard is not None if role in WRITTEN else not storage.full and tensor.unwritten() is not None:
            return False
    return True


def _mark(core: Core, tensors: Tensors, touches: tuple[Array | None, ...]) -> None:
    """Remember what the outputs hold."""
    for (tensor, role), touched in zip(tensors, touches, strict=True):
        storage = tensor.storage
        if role not in WRITTEN or storage.full:
            continue
        where = None if touched is None else np.broadcast_to(touched, tensor.shape)
        storage.mark_written(tensor.layout, tensor.byte_offset, where)
        if where is not None:
            leave_out(storage, core.record.site(), tensor, UNMODIFIED)
