"""Rules about values: what the evidence that an instruction has left behind means (NK304, NK305, NK307, NK404)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from nkitools.chip.argument_types import Number
from nkitools.chip.core import Core
from nkitools.chip.numeric_flags import LostInteger, OutsideRange, Product, Saturated, Unfit
from nkitools.chip.numerics import Array
from nkitools.chip.pictures import BEYOND, INEXACT, LOST, picture_of
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.facts.light_classes import NamedTuple
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.plan import DATA, WRITTEN, Plan
from nkitools.issue.value_operands import Operand, first_of
from nkitools.record.run_session import current_findings
from nkitools.rules.finding import report


class Call(NamedTuple):
    """An instruction that has just been computed: its operands, and the rest of its arguments by their names."""

    plan: Plan
    operands: Sequence[Operand]
    settings: dict[str, Any]

    @property
    def outputs(self) -> list[Operand]:
        """Return the written operands."""
        return [each for each in self.operands if each.written]


def judge_call(core: Core, plan: Plan, roles: tuple[int, ...], values: tuple[Any, ...]) -> None:
    """Judge the evidence of an instruction whose operands are plain views, or have been moved to where they lie."""
    operands, settings = [], {}
    for name, value, role in zip(plan.arguments, values, roles, strict=True):
        if role in DATA:
            array = value.read() if isinstance(value, NkiTensor) else value
            operands.append(Operand(name, value, array, role in WRITTEN and isinstance(value, NkiTensor)))
        else:
            settings[name] = value
    judge(core, plan, operands, settings)


def judge_carefully(call: CarefulCall, results: dict[int, Array]) -> None:
    """Judge the evidence of an instruction on the careful path; ``results``: what it has computed."""
    judge(call.core, call.plan, *_judged(call, results))


def _judged(call: CarefulCall, results: dict[int, Array]) -> tuple[list[Operand], dict[str, Any]]:
    """Return the operands as they were computed with, and the other arguments by name."""
    operands, settings, masks = [], {}, iter(call.touches)
    for name, value, seen, role in zip(call.plan.arguments, call.values, call.shown, call.roles, strict=True):
        if role not in DATA:
            settings[name] = value
        elif not isinstance(value, NkiTensor):
            operands.append(Operand(name, value, value, written=False))
        elif role in WRITTEN:
            where = _defined(call, value, name, next(masks))
            operands.append(Operand(name, value, results[id(seen)], written=True, where=where))
        else:
            next(masks)
            operands.append(Operand(name, value, seen.read(), written=False))
    return operands, settings


def _defined(call: CarefulCall, tensor: NkiTensor, name: str, touched: Array | None) -> Array | None:
    """Return the elements of an output that get a defined value; None for all."""
    where = call.kept(name, tensor)
    undefined = call.undefined.elements.get(name)
    for mask in (touched, None if undefined is None else ~undefined):
        if mask is not None:
            spread = np.broadcast_to(mask, tensor.shape)
            where = spread if where is None else where & spread
    return where


def judge(core: Core, plan: Plan, operands: Sequence[Operand], settings: dict[str, Any]) -> None:
    """Say what the evidence means, and forget it. One cause gives one finding: what a cast lost is no origin."""
    from nkitools.issue.refused_instructions import depends_on_undone

    evidence = core.evidence[:]
    core.evidence.clear()
    if core.undone and depends_on_undone(core, [each.value for each in operands if not each.written]):
        return  # the refusal has been reported, and its outputs are no numbers of the kernel's
    call = Call(plan, operands, settings)
    flags = {each for each in evidence if isinstance(each, str)}
    unfit = [each for each in evidence if isinstance(each, Unfit)]
    casts = [] if unfit else [each for each in evidence if isinstance(each, Saturated)]
    for number in unfit:
        _report_number(call, number)
    told = [_report_cast(call, each) for each in casts]
    for each in evidence:
        if isinstance(each, OutsideRange):
            _report_range(call, each)
        elif isinstance(each, LostInteger) and not any(told):
            _report_integers(call, each)
    if any(told) or unfit:
        # Infinities among them have been reported, and so have their consequences.
        core.has_infinities = core.has_infinities or call.outputs[0].value.dtype.is_float
    product = next((each.values for each in evidence if isinstance(each, Product)), None)
    if (flags or product is not None) and not (unfit or any(told)):
        from nkitools.issue.nan_origin import report_origin  # for kernels that may make such numbers

        report_origin(core, plan, operands, settings, flags, product)


def _report_number(call: Call, unfit: Unfit) -> None:
    """NK304: a number is none of the destination's."""
    for output in call.outputs[:1]:
        message = (
            f"{call.plan.name}: the value {unfit.number} becomes {_shown(unfit.became)} in {describe(output.value)}"
            f"{_limits(output.value)}"
        )
        remedy = "Write a number that the dtype holds, or choose a wider dtype."
        report("NK304", message, about=(output.value,), remedy=remedy)


def _limits(tensor: NkiTensor) -> str:
    if not tensor.dtype.is_integer:
        return ""
    limits = np.iinfo(tensor.dtype.dtype)
    return f", which holds {limits.min} to {limits.max}"


def _report_cast(call: Call, cast: Saturated) -> bool:
    """NK304: elements of an output are not what was computed; whether that was said."""
    for output in call.outputs:
        result: Array = output.array
        if result.dtype != cast.became.dtype or result.size != cast.lost.size:
            continue
        if "NK304" in output.value.storage.excused:
            continue
        # Values computed and not written, as beside a predicate, are not lost; nor are undefined ones.
        lost = cast.lost.reshape(result.shape) & _same(cast.became.reshape(result.shape), result)
        if output.where is not None:
            lost = lost & output.where
        values = cast.values.reshape(result.shape)
        running = current_findings()
        if running is not None and running.has_error:
            lost = lost & (values == values)  # a NaN may stand for a refused result, which was reported
        if lost.any():
            first = first_of(lost)
            message = (
                f"{call.plan.name}: {_counted(lost)} of {describe(output.value)} saturate; the first at {list(first)}: "
                f"{_shown(values[first])} becomes {_shown(result[first])}"
            )
            report("NK304", message, about=(output.value,), picture=partial(picture_of, lost, LOST))
            return True
    return False


def _report_range(call: Call, range_: OutsideRange) -> None:
    """Report an activation function outside of its range (NK305); without a finite result NK404 reports it."""
    for output in call.outputs:
        result: Array = output.array
        if result.size != range_.outside.size:
            continue
        outside = range_.outside.reshape(result.shape)
        if result.dtype.kind not in "iub":
            outside = outside & np.isfinite(result)
        if output.where is not None:
            outside = outside & output.where
        if outside.any():
            first = first_of(outside)
            value = range_.values.reshape(result.shape)[first]
            message = (
                f"{call.plan.name}: {_counted(outside)} of the input of nl.{range_.function} lie outside of "
                f"{range_.valid}, where the Scalar Engine's approximation is valid; the first at {list(first)} is "
                f"{_shown(value)} (it writes {describe(output.value)})"
            )
            report("NK305", message, about=(output.value,), picture=partial(picture_of, outside, BEYOND))
        return


def _report_integers(call: Call, integers: LostInteger) -> None:
    """NK307: results that differ from those of integers, since float32 does not hold all of them."""
    for output in call.outputs:
        if output.array.size != integers.lost.size:
            continue
        lost = integers.lost.reshape(output.array.shape)
        lost = lost if output.where is None else lost & output.where
        if lost.any():
            first = first_of(lost)
            wanted, became = integers.wanted.reshape(lost.shape)[first], output.array[first]
            message = (
                f"{call.plan.name}: {_counted(lost)} of {describe(output.value)} lose their low bits in float32, which "
                f"holds integers up to 2**24; the first at {list(first)}: {int(wanted)} becomes {_shown(became)}"
            )
            report("NK307", message, about=(output.value,), picture=partial(picture_of, lost, INEXACT))
        return


def _counted(where: Array) -> str:
    return f"{np.count_nonzero(where)} of {where.size} elements"


def _same(left: Array, right: Array) -> Array:
    same: Array = left == right
    return same if left.dtype.kind in "iub" else same | (np.isnan(left) & np.isnan(right))


def _shown(number: Number) -> str:
    """Return a number as an author writes it: 300.0, 127, nan."""
    if isinstance(number, (bool, np.bool_)):
        return str(bool(number))
    return str(int(number)) if isinstance(number, (int, np.integer)) else str(np.float32(number))
