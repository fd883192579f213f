"""Full precision: an instruction is checked on its operands as declared, and computed on float32 copies of them.

Its function is called twice for a combination: with the operands, for the guards' findings, the engine and the cost,
and with float32 copies on shadow storages (`nkitools.chip.full_precision_shadow`), for the computation. The second call
reports nothing. An instruction that works on packed elements or on the bits of a dtype is computed as declared, and its
results have no more digits than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from nkitools.chip.core import Core
from nkitools.chip.full_precision_shadow import forget, renew, round_off, wide_of
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.twin_storage import is_reinterpreting, is_widened
from nkitools.issue.form import InstructionForm
from nkitools.issue.plan import SOURCES, Check, Plan
from nkitools.rules.catalogue import Rule
from nkitools.rules.finding import REPORTER


class FullPrecision:
    """One call in full precision: ``plan`` computes on ``shown``, which are the operands or their likes."""

    def __init__(self, plan: Plan, shown: tuple[Any, ...], wide: dict[int, NkiTensor], operands: Sequence[Any]) -> None:
        self.plan = plan
        self.shown = shown
        self._wide = wide
        self._pairs = [(each, wide[id(each)]) for each in operands if id(each) in wide]

    def renew(self) -> None:
        """Bring the likes up to date, before they are read."""
        for tensor, wide in self._pairs:
            renew(tensor, wide)

    def written(self, tensor: NkiTensor, lanes: Array | None) -> None:
        """Update the counterpart that the call did not write: the declared dtype, or the digits beyond it."""
        wide = self._wide.get(id(tensor))
        if wide is None:
            forget(tensor, lanes)
        else:
            round_off(tensor, wide)


def in_full_precision(
    instruction: InstructionForm,
    core: Core,
    key: tuple[Any, ...],
    values: tuple[Any, ...],
    plan: Plan,
    check: Check | None,
) -> FullPrecision | None:
    """Return the computation of a call whose declared operands have ``plan``; ``check``: of the guards, if they just
    ran.

    None if no operand has more digits than its dtype: such a call runs as in precise mode, from now on fast.
    """
    operands, _ = instruction.flat(values)
    tensors = [each for each in operands if isinstance(each, NkiTensor)]
    if not any(is_widened(each.dtype) or is_reinterpreting(each) for each in tensors):
        if check is None or check.keeps_plan:
            core.plans[key] = plan
        return None
    wide = _likes(tensors)
    if wide:
        shown = tuple(_shown(value, role, wide) for value, role in zip(values, instruction.roles, strict=True))
        found = _planned(instruction, core, (key, "wide"), shown, check)
        if found is not None:
            _count(instruction, core, filter(is_reinterpreting, tensors))
            return FullPrecision(found, instruction.flat(shown)[0], wide, operands)
    _count(instruction, core, tensors)
    return FullPrecision(plan, operands, {}, operands)


def _likes(tensors: Sequence[NkiTensor]) -> dict[int, NkiTensor]:
    """Return the float32 copies of operands by their ids; {} if packed elements take part."""
    if any(tensor.dtype.kind == "packed" for tensor in tensors):
        return {}
    found = {id(tensor): wide_of(tensor) for tensor in tensors}
    return {number: wide for number, wide in found.items() if wide is not None}


def _count(instruction: InstructionForm, core: Core, rounded: Iterable[NkiTensor]) -> None:
    """Remember an instruction that takes low-precision operands as rounded."""
    if any(is_widened(tensor.dtype) for tensor in rounded):
        core.record.rounded[instruction.name] += 1


def _shown(value: Any, role: int, wide: dict[int, NkiTensor]) -> Any:
    """Return an argument with the likes in the places of its tensors."""
    return [wide.get(id(each), each) for each in value] if role == SOURCES else wide.get(id(value), value)


def _planned(
    instruction: InstructionForm, core: Core, key: tuple[Any, ...], values: tuple[Any, ...], check: Check | None
) -> Plan | None:
    """Return the plan for the float32 copies, kept as others are; None if the instruction cannot take them."""
    plans = core.full_plans
    assert plans is not None
    if key in plans:
        found: Plan | None = plans[key]
        return found
    found = _built(instruction, core, values, check)
    if check is None or check.keeps_plan:
        plans[key] = found
    return found


def _built(instruction: InstructionForm, core: Core, values: tuple[Any, ...], check: Check | None) -> Plan | None:
    silent = instruction.check(core, _SilentCheck)
    token = REPORTER.set(_unheard)
    try:
        plan = instruction.function(silent, *values)
    except _CannotTake:
        return None
    finally:
        REPORTER.reset(token)
    silent.speak(check)
    plan.name = instruction.name
    return plan


class _CannotTake(Exception):
    """The instruction refuses operands of float32."""


def _unheard(rule: Rule, message: str, fatal: bool, *rest: Any) -> bool:
    if fatal:
        raise _CannotTake
    return False


class _SilentCheck(Check):
    """A check without reports: the declared operands were judged before, and only the computation may add findings."""

    silent = True

    def fail(self, rule: str, sentence: str, *about: NkiTensor, **more: Any) -> None:
        if not self.silent:
            super().fail(rule, sentence, *about, **more)

    def refuse(self, rule: str, sentence: str, *about: NkiTensor, **more: Any) -> NoReturn:
        if self.silent:
            raise _CannotTake
        super().refuse(rule, sentence, *about, **more)

    def speak(self, declared: Check | None) -> None:
        """Report from now on, in place of the check of the declared operands."""
        self.silent = False
        if declared is not None:
            self.broken, self.said = declared.broken, declared.said
