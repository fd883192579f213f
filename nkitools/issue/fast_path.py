"""The way that nearly every call takes: look the plan up, compute, record.

It is written out for each instruction's own signature when the instruction is defined, so that a call runs no loop over
parameters. It hands over to the careful way (`Instruction.issue_carefully`) whatever is not plain: a combination met
for the first time, an operand with unwritten elements, a masked or indirect view.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Sequence
from inspect import Parameter
from itertools import count
from typing import Any

from nkitools.chip.tensor import NkiTensor
from nkitools.issue.accumulation import note_accesses
from nkitools.issue.commit import commit_lines
from nkitools.issue.form import is_classed, may_be_sequence
from nkitools.issue.instruction_names import label
from nkitools.issue.plan import DATA, DST, LABEL, OPTIONAL_DST, SOURCES, SRC, STATIC, WRITTEN
from nkitools.issue.value_rules import judge_call

Issue = Callable[[Any, tuple[Any, ...]], None]


_NUMBERS = count()


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
    defaults = {f"_{p.name}": p.default for p in parameters if p.default is not p.empty}
    bound: Callable[..., tuple[Any, ...]] = compiled(source, "_bound", defaults, f"arguments of {title}")
    return bound


def issuer(instruction: Any, parameters: Sequence[Parameter], roles: Sequence[int], *, records: bool = False) -> Issue:
    """Return the fast path of one instruction; ``records``: that of a run whose computations are recorded.

    A list of operands has none, as it may hold any number of them; nor has an exchange, in which undefined elements may
    come from the other core.
    """
    careful: Issue = instruction.issue_unplanned if records else instruction.issue_carefully
    if SOURCES in roles or instruction.exchanges:
        return careful
    named = [(parameter, role) for parameter, role in zip(parameters, roles, strict=True)]
    tensors = [p.name for p, role in named if role in (DST, SRC)]
    maybe = [p.name for p, role in named if role in DATA and role not in (DST, SRC)]
    outputs = [p.name for p, role in named if role in WRITTEN]
    lines = [
        "if core.careful: return careful(core, values)",
        f"{''.join(f'{p.name}, ' for p, _ in named)}= values",
        *[f"if {name}.__class__ is not T: return careful(core, values)" for name in tensors],
        *[line for name in tensors for line in _operand(name)],
        *[line for name in maybe for line in _optional(name)],
        "try:",
        f"    plan = core.plans{'.plans' if records else ''}.get(({', '.join(_key(named))},))",
        "except TypeError:",  # and not in here, where each finding would drag the TypeError along
        "    plan = None",
        f"if plan is None{_unready(named)}{_partly(outputs)}:",
        "    return careful(core, values)",
        *_computation([p.name for p, role in named if role in DATA], records=records),
        *(["core.recording.computed(core)"] if records else []),
        "if core.evidence: judge_call(core, plan, SELF.roles, values)",
        *[
            f"if s_{name} is not None and not s_{name}.full: s_{name}.mark_written(k_{name}, {name}.byte_offset)"
            for name in outputs
        ],
        f"if plan.in_psum: note_accesses(plan, ({''.join(f'{p.name}, ' for p, role in named if role in DATA)}))",
        *commit_lines(
            [(p.name, p.name in tensors) for p, role in named if role in DATA],
            [p.name for p, role in named if role == LABEL],
        ),
    ]
    source = "def issue(core, values):\n" + "".join(f"    {line}\n" for line in lines)
    namespace = {"T": NkiTensor, "SELF": instruction, "careful": careful, "label": label}
    namespace |= {"judge_call": judge_call, "note_accesses": note_accesses, "getframe": sys._getframe}
    title = f"fast path of {instruction.name}{', recorded' if records else ''}"
    issue: Issue = compiled(source, "issue", namespace, title)
    return issue


def _operand(name: str) -> list[str]:
    return [f"k_{name} = {name}._layout or {name}.layout", f"s_{name} = {name}.storage", f"a_{name} = {name}.array"]


def _optional(name: str) -> list[str]:
    """Return a tensor, or something else that is data: its class is part of the key, its value is not."""
    return [
        f"if {name}.__class__ is T:",
        *[f"    {line}" for line in _operand(name)],
        "else:",
        f"    k_{name} = {name}.__class__",
        f"    s_{name} = None",
        f"    a_{name} = {name}",
    ]


def _key(named: list[tuple[Parameter, int]]) -> list[str]:
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


def _unready(named: list[tuple[Parameter, int]]) -> str:
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
    """Return whether some output is written in part only, so that not all of it is written afterwards."""
    full = [f"(s_{name} is None or s_{name}.full)" for name in outputs]
    return f" or plan.touches and not ({' and '.join(full)})" if full else ""


def _computation(data: list[str], *, records: bool) -> list[str]:
    destination = data[0]
    arrays = ", ".join(f"a_{name}" for name in data)
    keep = f"core.recording.computing(core, plan, ({', '.join(data)},), "
    kept_fresh, kept = ([f"    {keep}{each})"] if records else [] for each in ("{'fresh': not holds}", "{}"))
    return [
        "if plan.wants_fresh:",
        f"    if plan.adds_to_matmuls_only and s_{destination}.foreign: return careful(core, values)",
        f"    holds = s_{destination}.full or s_{destination}.holds(k_{destination}, {destination}.byte_offset)",
        f"    if holds is None or not holds and (plan.adds_always or s_{destination}.left_out):",
        "        return careful(core, values)",
        *kept_fresh,
        f"    plan.compute({arrays}, fresh=not holds)",
        "else:",
        *kept,
        f"    plan.compute({arrays})",
    ]
