"""Calls that return a value, made again with operands of the same form: nothing is looked at twice.

The first call with operands of some form goes the usual way: shapes, dtypes, guards, a plan. What follows from the form
alone is kept: the tile that the call returns, and the plan of its instruction. A call of that form is then an
allocation and the plan's computation, where all elements of the operands are written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, cast

from nkitools.chip.core import CORE, Core
from nkitools.chip.layout import Layout
from nkitools.chip.memory import Storage
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.legacy.kernels.kernel_state import TENSOR_MADE
from nkitools.issue.accumulation import note_accesses
from nkitools.issue.fast_path import compiled
from nkitools.issue.instruction import Instruction
from nkitools.issue.plan import Plan
from nkitools.issue.value_rules import judge_call
from nkitools.record.record import Record, StorageRecord
from nkitools.record.rows import operand_text, words_of

_TILES: set[type[Any]] = set()  # the dialect's tensors, which this file stands below, once a form has been met


@dataclass(slots=True, eq=False)
class CallForm:
    """An instruction with operands of some form, and the tile that it writes to."""

    instruction: Instruction[...]
    plan: Plan
    compute: Callable[..., Any]  # the plan's, which knows that the tile is new
    names: tuple[str, ...]  # the instruction's parameters that the operands are, in the order of its signature
    static: dict[str, Any]  # its other arguments
    absent: tuple[None, ...]  # what the computation gets behind the operands
    is_swapped: bool  # the second operand of the call is the first of the instruction
    layout: Layout
    kind: type[Any]  # of the value
    storages: dict[int, StorageRecord] = field(default_factory=dict)  # what records keep of the tile, by its site


# A call of a form at a place: the site, the one that names the tile, and what the record keeps of the tile.
KnownCall: TypeAlias = tuple[CallForm, int, int, StorageRecord]


@dataclass(slots=True, eq=False)
class BroughtForm:
    """The way of an open instruction's value to its assigned place."""

    plan: Plan  # of the instruction that brings it
    issued: Plan  # of the instruction that the record shows
    adds: bool  # to a destination that is written whole


# A call with operands of a known form, as generated source for a number of operands: {0} stands for each of them.
_OPERAND = """\
    if {0}.__class__ in TILES:
        v_{0} = {0}.base
        s_{0} = v_{0}.storage
        if {0}.access is not None or v_{0}.__class__ is not T or not s_{0}.full:
            return None
        k_{0} = v_{0}._layout or v_{0}.layout
        a_{0} = v_{0}.array
    else:
        s_{0} = None
        k_{0} = {0}.__class__
        a_{0} = {0}
"""
_LOOK_UP = """\
    record = core.record
    code, at = (frame := _getframe(depth)).f_code, frame.f_lasti
    try:
        call = record.calls.get((what, id(code), at, {keys}))
    except TypeError:  # an argument that the usual way refuses
        return None
    if call is None:
        call = known_call(core, what, ({keys}), depth)
        if call is None:
            return None
    form, site, naming, known = call
    layout, plan = form.layout, form.plan
    if record.open is not None:
        record.begin_instruction()
    storage = of_layout(layout, naming)
    storage.placed_to_fit = core.dialect.places_tiles
    record.storages[storage.id] = known
    if record.observers:
        record.allocated(storage, known)
    dst = new(T)
    dst.storage = storage
    dst.array = array = storage.array
    dst.dtype = layout.dtype
    dst.shape = layout.shape
    dst.byte_offset = 0
    dst._layout = layout
"""
_COMPUTE = """\
    if form.is_swapped:
        form.compute(array, {backwards}, *form.absent)
    else:
        form.compute(array, {arrays}, *form.absent)
    if core.evidence:
        judge(core, form, dst, operands)
    storage.full = True
    if plan.in_psum:
        note_accesses(plan, (dst, *[each.base for each in operands if each.__class__ in TILES]))
    value = new(form.kind)
    value.base = dst
    value.access = value.lanes = None
    value.element = layout.dtype
    value.shape = layout.shape
    value.opened = record.open_instruction(plan, site, words, storage)
    tell = TENSOR_MADE.get()
    if tell is not None:
        tell()
    return value
"""


def _calls_of(count: int) -> Callable[[Any, tuple[Any, ...], int], Any]:
    """Return the function of calls with so many operands; see `value_of_two`."""
    names = "xyz"[:count]
    operands = [operand_text(f"s_{name}", f"k_{name}", f"v_{name}") for name in names]
    words = [operand_text("storage", "layout", "dst"), *operands]
    arrays = [f"a_{name}" for name in names]
    source = [
        "def value(what, operands, depth):\n",
        "    core = CORE.get()\n",
        f"    if core is None or core.careful or len(operands) != {count}: return None\n",
        f"    {', '.join(names)}, = operands\n",
        *[_OPERAND.format(name) for name in names],
        _LOOK_UP.format(keys="".join(f"k_{name}, " for name in names)),
        f"    if {' is not None and '.join(f's_{name}' for name in names)} is not None:\n",
        f"        words = [{', '.join(words)}]\n",
        "    else:\n",
        f"        words = [{words[0]}]\n",
        *[f"        if s_{name} is not None: words += ({text})\n" for name, text in zip(names, operands, strict=True)],
        _COMPUTE.format(arrays=", ".join(arrays), backwards=", ".join(arrays[::-1])),
    ]
    namespace = {"CORE": CORE, "TENSOR_MADE": TENSOR_MADE, "TILES": _TILES, "T": NkiTensor, "new": object.__new__}
    namespace |= {"_getframe": sys._getframe, "known_call": _known_call, "of_layout": Storage.of_layout}
    namespace |= {"judge": _judge, "note_accesses": note_accesses}
    found: Callable[[Any, tuple[Any, ...], int], Any] = compiled("".join(source), "value", namespace, "known calls")
    return found


def _known_call(core: Core, what: Any, of: tuple[Any, ...], depth: int) -> KnownCall | None:
    """Return a call of a known form as this run makes it here; None where the form is not known.

    ``of``: the layouts of the operands, or their classes.
    """
    form: CallForm | None = core.plans.get((what, *of))
    if form is None:
        return None
    record: Record = core.record
    site, naming = record.sites.current_and_naming(depth + 1)
    known = form.storages.get(naming)
    if known is None:
        known = form.storages[naming] = StorageRecord.of_tile(form.layout, naming)
    call = form, site, naming, known
    place = record.sites.place(depth + 1)
    if place is not None:
        record.calls[what, *place, *of] = call
    return call


def keep_form(
    what: Any,
    operands: tuple[Any, ...],
    value: Any,
    call: partial[Any],
    names: tuple[str, ...],
    *,
    absent: tuple[None, ...] = (),
    is_swapped: bool = False,
) -> None:
    """Keep the form of a call that has just returned ``value``, where one instruction has made it of the operands.

    ``call`` is that instruction with its other arguments; ``names`` are the parameters that the operands are.
    """
    instruction, static = _instruction_of(call), call.keywords
    core, opened = CORE.get(), value.opened
    if core is None or opened is None or not opened.is_only_writer or core.full_plans is not None:
        return
    views = [each.base if getattr(each, "is_plain", False) else each for each in operands]
    named = dict(zip(names, reversed(views) if is_swapped else views, strict=True))
    plan = instruction.kept_plan(core, instruction.bound(dst=value.base, **named, **static))
    if plan is None or plan is not opened.plan or plan.adds_always or plan.touches or plan.chooses:
        return
    key = (what, *[each.layout if isinstance(each, NkiTensor) else each.__class__ for each in views])
    dst: NkiTensor = value.base
    _TILES.update(each.__class__ for each in operands if getattr(each, "is_plain", False))
    core.plans[key] = CallForm(
        instruction,
        plan,
        partial(plan.compute, fresh=True) if plan.wants_fresh else plan.compute,
        names,
        static,
        absent,
        is_swapped,
        dst.layout,
        value.__class__,
    )


def brought_again(by: partial[Any], dst: Any, value: Any) -> bool:
    """Return whether the value of an open instruction was brought to ``dst`` as once before, by the instruction ``by``.

    That is a copy, or an addition. The open instruction has then written there.
    """
    core, opened = CORE.get(), value.opened
    if core is None or core.careful or opened is None or opened.is_closed or core.record.open is not opened:
        return False
    target: NkiTensor = dst.base
    source: NkiTensor = value.base
    layout, made_in = target._layout or target.layout, source.storage
    form = core.plans.get((by.func, opened.plan.id, layout, source._layout or source.layout))
    if form is None or value.lanes is not None or not opened.is_only_writer or opened.tile is not made_in:
        return False
    storage = target.storage
    is_plain = dst.access is None and target.__class__ is NkiTensor and storage is not made_in and made_in.full
    if not is_plain or (form.adds and not storage.full):
        return False
    plan = form.plan
    plan.compute(target.array, source.array)
    if core.evidence:
        judge_call(core, plan, _instruction_of(by).roles, _instruction_of(by).bound(target, source))
    if not storage.full:
        storage.mark_written(layout, target.byte_offset)
    if plan.in_psum:
        note_accesses(plan, (target, source))
    opened.plan = form.issued
    core.record.write_to(opened, words_of((target,)))
    return True


def keep_bringing(by: partial[Any], made_by: Plan, issued: Plan, dst: NkiTensor, source: NkiTensor) -> None:
    """Keep how the instruction ``by`` has brought a value to where it was assigned.

    ``made_by``: the plan that has made the value; ``issued``: the one that the record says has written there.
    """
    core = CORE.get()
    if core is None or core.full_plans is not None or dst.__class__ is not NkiTensor:
        return
    instruction = _instruction_of(by)
    plan = instruction.kept_plan(core, instruction.bound(dst, source))
    if plan is not None and not (plan.wants_fresh or plan.touches or plan.chooses):
        form = BroughtForm(plan, issued, adds=issued is not made_by)
        core.plans[by.func, made_by.id, dst.layout, source.layout] = form


def _instruction_of(call: partial[Any]) -> Instruction[...]:
    """Return the instruction that a call with some of its arguments is made of."""
    return cast("Instruction[...]", call.func)


def _judge(core: Core, form: CallForm, dst: NkiTensor, operands: tuple[Any, ...]) -> None:
    """Judge what the computation has left as evidence."""
    views = [getattr(each, "base", each) for each in operands]
    named = dict(zip(form.names, reversed(views) if form.is_swapped else views, strict=True))
    judge_call(core, form.plan, form.instruction.roles, form.instruction.bound(dst=dst, **named, **form.static))


# The value of a call of a form that is known; None where it goes the usual way. The first argument is all of the call
# but its operands, which are tiles and numbers, the second the operands, the third how many frames outside of this
# function the author's lies, where the author makes the call.
value_of_one = _calls_of(1)
value_of_two = _calls_of(2)
