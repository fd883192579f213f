"""The path of nearly every call: look up the plan, compute, record.

It is written out for each instruction's own signature, as the function that authors call, so that a call binds no
arguments twice and runs no loop over parameters. The last instruction of each line of the author's is kept for its next
turn: operands of the same layouts then need no look-up of a plan. The function passes on to the careful path
(`Instruction.take`) every call that is not plain: a combination met for the first time, an operand with unwritten
elements, a masked or indirect view, a wrong argument.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Sequence
from inspect import Parameter
from itertools import count
from types import FunctionType
from typing import Any

from nkitools.chip.core import CORE
from nkitools.chip.tensor import NkiTensor
from nkitools.issue.commit import COMMITTING, quick_commit_lines
from nkitools.issue.form import is_classed, may_be_sequence
from nkitools.issue.plan import DATA, DST, LABEL, OPTIONAL_DST, SOURCES, SRC, STATIC, WRITTEN
from nkitools.record.source_sites import known_internal
from nkitools.rules.finding import StopRun

Named = list[tuple[Parameter, int]]
"""The parameters of an instruction, and their roles."""

_NUMBERS = count()


_EARLY = 2
"""Calls of an instruction that take the careful way before its function is generated, which takes as long as ten."""


class Missing:
    """The value of a required argument that a call does not give."""

    def __repr__(self) -> str:
        return "<missing>"


MISSING = Missing()


def compiled(source: str, name: str, namespace: dict[str, Any], title: str) -> Any:
    """Return the function ``name`` of generated source, which tracebacks and debuggers show under ``title``."""
    filename = f"<nkitools generated {next(_NUMBERS)}: {title}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), namespace)
    return namespace[name]


def binder(title: str, parameters: Sequence[Parameter]) -> Callable[..., tuple[Any, ...]]:
    """Return a function of the instruction's signature that returns its arguments as a tuple, at Python's speed."""
    form = [p.name if p.default is p.empty else f"{p.name}=_{p.name}" for p in parameters]
    names = "".join(f"{parameter.name}, " for parameter in parameters)
    source = f"def _bound({', '.join(form)}):\n    return ({names})\n"
    bound: Callable[..., tuple[Any, ...]] = compiled(source, "_bound", _defaults(parameters), f"arguments of {title}")
    return bound


def _defaults(parameters: Sequence[Parameter]) -> dict[str, Any]:
    return {f"_{p.name}": p.default for p in parameters if p.default is not p.empty}


def caller(
    instruction: Any, parameters: Sequence[Parameter], roles: Sequence[int], *, depth: int | None = 1
) -> FunctionType:
    """Return the function that authors call. Its source is generated at the third call, which most never see.

    ``depth``: the number of frames from the function out to the author's; None for calls out of our own functions.

    A list of operands has no fast path, as it may have any length; nor has an exchange, in which undefined elements may
    come from the other core.
    """
    named = list(zip(parameters, roles, strict=True))
    namespace = {"__name__": __name__, "T": NkiTensor, "SELF": instruction, "take": instruction.take, "M": MISSING}
    namespace |= {"HANDLE": instruction.usual_handle}
    namespace |= {"running": CORE.get, "getframe": sys._getframe, "internal": known_internal, "StopRun": StopRun}
    namespace |= COMMITTING | _defaults(parameters)

    def complete() -> None:
        from nkitools.issue.accumulation import note_accesses
        from nkitools.issue.value_rules import judge_call

        namespace.update(judge_call=judge_call, note_accesses=note_accesses)
        whole = compiled(
            _call_source(instruction, named, depth), instruction.name, namespace, f"call of {instruction.name}"
        )
        call.__code__, call.__defaults__ = whole.__code__, whole.__defaults__

    early = {
        "complete": complete,
        "EARLY": iter(range(_EARLY)),
        "GIVEN": [(p.name, MISSING if p.default is p.empty else p.default) for p in parameters],
    }
    call = FunctionType(_early_call.__code__, namespace | early, instruction.name)
    namespace = call.__globals__
    namespace["CALL"] = call
    call.__qualname__, call.__module__ = instruction.name, instruction.function.__module__
    return call


def _early_call(*args: Any, **kwargs: Any) -> Any:  # the globals are the generated function's
    left = dict(kwargs)
    values = (*args, *(left.pop(name, default) for name, default in GIVEN[len(args) :]))  # type: ignore[name-defined]  # noqa: F821
    if not left and len(values) == len(GIVEN) and next(EARLY, None) is not None:  # type: ignore[name-defined]  # noqa: F821
        return take(running(), values, (), {})  # type: ignore[name-defined]  # noqa: F821
    complete()  # type: ignore[name-defined]  # noqa: F821
    try:
        return CALL(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821
    except TypeError as error:  # an argument that is given twice: CALL refuses all other wrong calls
        if error.__traceback__ is None or error.__traceback__.tb_next is not None:
            raise
        wrong = error.with_traceback(None)
    return SELF.refuse_call(wrong)  # type: ignore[name-defined]  # noqa: F821


def _place_lines(depth: int | None) -> list[str]:
    """Return the source of the author's frame and of the place in his code; of our own functions, theirs is a part."""
    if depth is not None:
        # A code object holds its instructions: no two have the same place.
        return [f"frame = getframe({depth})", "at = id(frame.f_code) + frame.f_lasti"]
    return [
        "frame, at = getframe(2), None",  # which has called the instruction's `__call__`
        "if record.only_adds:",  # else no row is added here
        "    ours = frame",
        "    while internal(frame.f_code.co_filename) and frame.f_back is not None: frame = frame.f_back",
        "    at = id(frame.f_code), frame.f_lasti, id(ours.f_code), ours.f_lasti",
    ]


def _call_source(instruction: Any, named: Named, depth: int | None) -> str:
    """Return the source of the function that authors call."""
    form = [f"{p.name}={'M' if p.default is p.empty else f'_{p.name}'}" for p, _ in named]
    values = "".join(f"{p.name}, " for p, _ in named)
    taken = f"return take(core, ({values}), more, unknown)"
    tensors = [p.name for p, role in named if role in (DST, SRC)]
    maybe = [p.name for p, role in named if role in DATA and role not in (DST, SRC)]
    outputs = [p.name for p, role in named if role in WRITTEN]
    data = "".join(f"{p.name}, " for p, role in named if role in DATA)
    others = "".join(f" or {name}.__class__ is not T" for name in tensors)
    lines = ["core = running()"]
    if SOURCES in [role for _, role in named] or instruction.exchanges:
        lines += [taken]
    else:
        lines += [
            f"if core is None or core.careful or more or unknown{others}: {taken}",
            "record = core.record",
            *[line for name in tensors for line in _operand(name)],
            *[line for name in maybe for line in _optional(name)],
            *_place_lines(depth),
            *_plan_lines(named),
            f"if plan is None{_unready(named)}{_partly(outputs)}: {taken}",
            "if record.open is not None: record.begin_instruction()",
            "try:",
            *[f"    {line}" for line in _computation(named, taken)],
            f"    if core.evidence: judge_call(core, plan, SELF.roles, ({values}))",
            *[f"    {line}" for line in _written(outputs)],
            f"    if plan.in_psum: note_accesses(plan, ({data}))",
            *[f"    {line}" for line in quick_commit_lines(_operands(named), _known(named), _labels(named))],
            f"except (StopRun, ValueError) as error: SELF.break_off(core, ({values}), error)",
            "return HANDLE if core.device_loop is None else SELF.handle(core)",
        ]
    body = "".join(f"    {line}\n" for line in lines)
    return f"def {instruction.name}({', '.join(form)}, *more, **unknown):\n{body}"


def _operand(name: str) -> list[str]:
    return [f"k_{name} = {name}._layout or {name}.layout", f"s_{name} = {name}.storage"]


def _optional(name: str) -> list[str]:
    """Return a tensor, or something else that is data: its class is part of the key, its value is not."""
    return [
        f"if {name}.__class__ is T:",
        *[f"    {line}" for line in _operand(name)],
        f"    a_{name} = {name}.array",
        "else:",
        f"    k_{name} = {name}.__class__",
        f"    s_{name} = None",
        f"    a_{name} = {name}",
    ]


def _operands(named: Named) -> list[tuple[str, bool]]:
    """Return the operands, and whether each is always a tensor."""
    return [(p.name, role in (DST, SRC)) for p, role in named if role in DATA]


def _labels(named: Named) -> list[str]:
    return [p.name for p, role in named if role == LABEL]


def _known(named: Named) -> list[str]:
    """Return the parts of a call that decide its plan, as expressions."""
    return [f"k_{p.name}" if role in DATA else p.name for p, role in named if role in DATA or role == STATIC]


def _plan_lines(named: Named) -> list[str]:
    """Return the source of the look-up of the plan: first the last instruction of the same place in the author's code.

    It is compared by identity, so that only values that can be part of a key are kept, and equal values of another
    class do not match.
    """
    parts = _known(named)
    names = [f"c{number}" for number in range(len(parts))]
    differ = " or ".join(f"{name} is not {part}" for name, part in zip(names, parts, strict=True))
    return [
        "known = record.issued.get(at)",
        f"if known is None and record.only_adds: known = record.issued_before(at, SELF, {', '.join(parts)})",
        "if known is not None:",
        "    if known[0] is not SELF: known = None",
        "    else:",
        f"        _, {', '.join(names)}, plan, head = known",
        f"        if {differ}: known = None",
        "if known is None:",
        "    try:",
        f"        plan = core.plans.get(({', '.join(_key(named))},))",
        "    except TypeError:",  # and not in here, where each finding would drag the TypeError along
        "        plan = None",
    ]


def _key(named: Named) -> list[str]:
    key = ["SELF"]
    for parameter, role in named:
        if role in DATA:
            key.append(f"k_{parameter.name}")
        elif role == STATIC:
            if is_classed(parameter):
                key.append(f"{parameter.name}.__class__")
            key.append(parameter.name)
            if may_be_sequence(parameter):
                key.append(
                    f"repr({parameter.name}) if {parameter.name}.__class__ is tuple and {parameter.name} else None"
                )
        else:
            assert role == LABEL
    return key


def _unready(named: Named) -> str:
    """Return whether some input has elements that were never written, or some operand is of another kind of view."""
    conditions = []
    for parameter, role in named:
        name = parameter.name
        if role == SRC:
            conditions.append(f"not s_{name}.full and {_lacks(name)}")
        elif role in DATA and role not in WRITTEN:
            conditions.append(
                f"(not s_{name}.full and {_lacks(name)} if s_{name} is not None else isinstance({name}, T))"
            )
        elif role == OPTIONAL_DST:
            conditions.append(f"isinstance({name}, T) and s_{name} is None")
    return "".join(f" or {condition}" for condition in conditions)


def _lacks(name: str) -> str:
    """Return whether some element of an operand was never written."""
    return f"s_{name}.lacks(k_{name}, {name}.byte_offset)"


def _partly(outputs: list[str]) -> str:
    """Return a source expression: whether some output is written only in part and is not full afterwards."""
    full = [f"(s_{name} is None or s_{name}.full)" for name in outputs]
    return f" or plan.touches and not ({' and '.join(full)})" if full else ""


def _written(outputs: list[str]) -> list[str]:
    return [
        f"if s_{name} is not None and not s_{name}.full: s_{name}.mark_written(k_{name}, {name}.byte_offset)"
        for name in outputs
    ]


def _computation(named: Named, taken: str) -> list[str]:
    destination = next(p.name for p, role in named if role in DATA)
    arrays = ", ".join(f"{p.name}.array" if role in (DST, SRC) else f"a_{p.name}" for p, role in named if role in DATA)
    return [
        "if plan.wants_fresh:",
        f"    holds = s_{destination}.full or s_{destination}.holds(k_{destination}, {destination}.byte_offset)",
        f"    if holds is None or plan.adds_to_matmuls_only and s_{destination}.foreign or not holds"
        f" and (plan.adds_always or s_{destination}.left_out): {taken}",
        f"    plan.compute({arrays}, fresh=not holds)",
        "else:",
        f"    plan.compute({arrays})",
    ]
