"""Attributes that an author's line asks for in vain (a tensor's of a list, NumPy's of a tensor), arguments given twice.

Python says only that a list has no ``shape``, and that a tensor has no ``sum``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from difflib import get_close_matches
from types import FrameType, ModuleType, TracebackType
from typing import Any, cast

import numpy as np

from nkitools.authors_code.instructions import variable_before
from nkitools.chip.argument_types import Argument
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.facts import versions
from nkitools.facts.invented_names import attribute_remedy
from nkitools.launch.nested_arguments import parts_of
from nkitools.launch.object_misuse import attribute_misuse, misuse_at
from nkitools.launch.signatures import bind, signature_of
from nkitools.record.reporter import Reporter
from nkitools.record.source_sites import entries_of, is_internal, site_at
from nkitools.rules.finding import refuse


def _placed(reporter: Reporter, entry: TracebackType) -> AbstractContextManager[None]:
    """Place the reports inside the block where an error has passed."""
    frame = entry.tb_frame
    return reporter.placed(site_at(frame.f_code, entry.tb_lineno, entry.tb_lasti), frame)


def check_use(
    error: AttributeError,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    reporter: Reporter,
) -> None:
    """Refuse, at the author's line, an attribute that ``error`` did not find: a tensor's on an argument that is none
    (NK609).

    An attribute of NumPy's arrays that a tensor lacks is NK601. Other AttributeErrors of the author's pass through.
    """
    entry = entries_of(error)[-1] if error.__traceback__ is not None else None
    if entry is None or is_internal(entry.tb_frame.f_code.co_filename):
        return
    name = error.name or ""
    known = hasattr(np.ndarray, name) or _in_place_of(name)
    if isinstance(error.obj, NkiTensor) and not hasattr(error.obj, name) and known:
        with _placed(reporter, entry):
            message = f"{describe(error.obj)} has no attribute `{name}`"
            refuse("NK601", message, about=(error.obj,), remedy=_in_place_of(name))
    wrong = attribute_misuse(error.obj, name)
    if wrong is not None:
        with _placed(reporter, entry):
            refuse(wrong.rule, wrong.message, remedy=wrong.remedy)
    if not hasattr(NkiTensor, name):
        return
    if isinstance(error.obj, type) or type(error.obj).__module__ not in ("builtins", "array"):
        return
    loaded = variable_before(entry.tb_frame.f_code, entry.tb_lasti)
    argument = next(
        (
            place
            for place, value in _parts(function, args, kwargs)
            # None and small numbers are one object wherever they come from: there the name must be the same, too.
            if value is error.obj and (place == loaded or not isinstance(value, (int, float, str, type(None))))
        ),
        "",
    )
    if not argument:
        return
    kind = type(error.obj).__name__
    kind = "array.array" if kind == "array" else kind
    kind = "None" if error.obj is None else f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
    with _placed(reporter, entry):
        message = f"the kernel uses its argument `{argument}` as a tensor (.{name}), and it is called with {kind}"
        refuse("NK609", message, remedy=_remedy(argument, cast("Argument", error.obj)))


_TWICE = re.compile(r"(\w+)\(\) got multiple values for argument '\w+'$")


def check_call(error: TypeError, reporter: Reporter) -> None:
    """Refuse (NK609), at the author's line, the call of an instruction that gives an argument twice.

    Python detects it before the instruction's own function, which refuses all other wrong calls, begins. Calls of
    objects of NKI that are no functions are refused too (`object_misuse`).
    """
    twice = _TWICE.match(str(error))
    entries = entries_of(error) if error.__traceback__ is not None else []
    authors = [each for each in entries if not is_internal(each.tb_frame.f_code.co_filename)]
    if not authors:
        return
    entry = authors[-1]
    wrong = misuse_at(entry.tb_frame, entry.tb_lasti)
    if wrong is not None:
        with _placed(reporter, entry):
            refuse(wrong.rule, wrong.message, remedy=wrong.remedy)
    if twice is None or entry is not entries[-1]:
        return
    instruction = _instruction(entry.tb_frame, twice[1])
    if instruction is not None:
        plain = TypeError(str(error))  # without the frames of the other
        with _placed(reporter, entry):
            instruction.refuse_call(plain)


def _instruction(frame: FrameType, name: str) -> Any:
    """Return the instruction with this name that code can see, in a module or alone; None if there is none."""
    seen = [*frame.f_locals.values(), *frame.f_globals.values()]
    for value in (*seen, *(getattr(each, name, None) for each in seen if isinstance(each, ModuleType))):
        if getattr(value, "__name__", "") == name and hasattr(value, "instruction"):
            return value.instruction
    return None


def _in_place_of(name: str) -> str:
    """Return the remedy for an attribute that tensors do not have; '' for the rule's own remedy."""
    own = f"Call nl.{name}(x, ...)." if name in versions.names_of("nki.language") else ""
    near = get_close_matches(name, [each for each in dir(NkiTensor) if not each.startswith("_")], 1, 0.8)
    return attribute_remedy(name) or own or (f"Did you mean {near[0]}?" if near else "")


def _parts(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the arguments and their parts, each with its place."""
    for name, value in bind("", signature_of(function), args, kwargs).arguments.items():
        yield from parts_of(value, name)


def _remedy(name: str, value: Argument) -> str:
    if value is None:
        return f"Pass an array for `{name}`, or ask `if {name} is None` in the kernel."
    if not isinstance(value, (list, tuple, int, float, range, memoryview)) and type(value).__module__ == "builtins":
        return f"Pass a NumPy array for `{name}`."
    return f"Pass a NumPy array: np.array({name}, dtype=np.float32)."
