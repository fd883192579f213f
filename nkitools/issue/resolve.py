"""Resolve a call: its operands are brought to where they lie now, and its plan is found or made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nkitools.chip.core import Core
from nkitools.chip.device_numbers import DeviceNumber
from nkitools.chip.runtime_views import COMPUTED, DynamicTensor, OutOfBounds
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines.enums import oob_mode
from nkitools.issue import indirection
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.form import InstructionForm
from nkitools.issue.plan import DATA, WRITTEN, Check, Plan
from nkitools.record.reporter import Reporter
from nkitools.rules.finding import REPORTER, refuse

Use = Callable[[Plan], Callable[[], None]]


def resolve(form: InstructionForm, core: Core, values: tuple[Any, ...]) -> CarefulCall | None:
    """Return a call of an instruction; None if a view is out of bounds and skipped.

    The instruction's guards check each new combination.
    """
    operands, roles = form.flat(values)
    skip = form.argument("oob_mode", values) is oob_mode.skip
    if core.undone:
        from nkitools.issue.refused_instructions import refuse_undefined_places

        refuse_undefined_places(core, values, form.parameters)
    if not _settled(form.name, operands, roles, skip=skip):
        return None
    use = _indirect(form, core, operands, values)
    key = form.key(values)
    plan, check = _planned(form, core, key, values)
    release = None if use is None else use(plan)
    full = None
    if core.full_plans is not None:
        from nkitools.issue.full_precision import in_full_precision  # for runs in that precision

        full = in_full_precision(form, core, key, values, plan, check)
    return CarefulCall(core, plan, roles, operands, plan, skip, full, release)


def plan_of(core: Core, key: tuple[Any, ...], make: Callable[[], Plan], *operands: tuple[str, bool]) -> Plan:
    """Return the plan of a call whose guards look at every call; ``operands``: their names, and which are written."""
    plan: Plan | None = core.plans.get(key)
    if plan is None:
        plan = core.plans[key] = make()
        plan.operands = plan.arguments = tuple(name for name, _ in operands)
        plan.written = tuple(is_written for _, is_written in operands)
        plan.number()
    return plan


def _settled(name: str, values: tuple[Any, ...], roles: tuple[int, ...], *, skip: bool) -> bool:
    """Move views to their current run-time addresses; return False if one is out of bounds and skipped."""
    for value, role in zip(values, roles, strict=True):
        if isinstance(value, DynamicTensor):
            try:
                value.settle(f"nisa.{name}", is_read=role not in WRITTEN)
            except OutOfBounds as error:
                if skip:
                    return False
                refuse("NK402", f"{name}: {error}", about=(value,), remedy=COMPUTED)
    return True


def _indirect(form: InstructionForm, core: Core, operands: tuple[Any, ...], values: tuple[Any, ...]) -> Use | None:
    """Check operands with tensor indirection; return what aligns them for a plan, None if there are none."""
    if not indirection.used_in(operands):
        return None
    check = form.check(core, Check)
    arguments = dict(zip(form.parameters, values, strict=True))
    indirection.check_operands(check, arguments)

    def use(plan: Plan) -> Callable[[], None]:
        indirection.use(check, arguments, plan)
        return partial(indirection.done, arguments)

    return use


def _planned(
    form: InstructionForm, core: Core, key: tuple[Any, ...], values: tuple[Any, ...]
) -> tuple[Plan, Check | None]:
    """Return the plan of a combination, and what its guards have talked to where it is new."""
    plans = core.plans if core.full_plans is None else core.full_plans
    if key in plans:
        return plans[key], None
    check, reporter = form.check(core, Check), REPORTER.get()
    before = reporter.reports if isinstance(reporter, Reporter) else 0
    _check_elements(check, form, values)
    if not form.takes_64_bits:
        _check_widths(check, form, values)
    plan = form.function(check, *values)
    plan.name = form.name
    form.touches_in_part = form.touches_in_part or bool(plan.touches)
    plan.arguments = form.names(values)
    named = list(zip(plan.arguments, *form.flat(values), strict=True))
    tensors = [(name, role) for name, value, role in named if role in DATA and isinstance(value, NkiTensor)]
    plan.operands = tuple(name for name, _ in tensors)
    plan.registers = tuple(name for name, value, _ in named if isinstance(value, DeviceNumber))
    plan.written = tuple(role in WRITTEN for _, role in tensors)
    _find_psum(plan, [(value, role) for _, value, role in named if role in DATA])
    plan.number()
    if check.keeps_plan:
        plans[key] = plan
    elif core.full_plans is None and isinstance(reporter, Reporter) and reporter.reports == before + len(check.reports):
        from nkitools.issue import broken_plans  # for calls that break a rule

        broken_plans.keep(form, core, values, plan, check)
    return plan, check


def _check_elements(check: Check, form: InstructionForm, values: tuple[Any, ...]) -> None:
    """NK109: an operand has elements. A view of none, ``t[nl.ds(i, 0)]``, may be made, but nothing moves it."""
    for role, value in zip(form.names(values), form.flat(values)[0], strict=True):
        if isinstance(value, NkiTensor) and 0 in value.shape:
            remedy = "Call the instruction only where there is something to do: if size > 0."
            check.refuse("NK109", f"`{role}`, {describe(value)}, holds no element", value, remedy=remedy)


def _check_widths(check: Check, form: InstructionForm, values: tuple[Any, ...]) -> None:
    """NK301: the engines compute on at most 32 bits."""
    for role, value in zip(form.names(values), form.flat(values)[0], strict=True):
        if isinstance(value, NkiTensor) and value.dtype.is_wide:
            remedy = "Scalars of 64 bits are read by nisa.scalar_load; compute on nl.int32."
            check.refuse("NK301", f"`{role}` holds integers of 64 bits, it is {describe(value)}", value, remedy=remedy)


def _find_psum(plan: Plan, data: list[tuple[Any, int]]) -> None:
    """Note which operands lie in PSUM, unless the instruction only names them."""
    there = [
        (number, role in WRITTEN)
        for number, (value, role) in enumerate(data)
        if isinstance(value, NkiTensor) and value.storage.sums is not None and not plan.names_only
    ]
    plan.psum_reads = tuple(number for number, written in there if not written)
    plan.psum_writes = tuple(number for number, written in there if written)
    plan.in_psum = bool(there)
