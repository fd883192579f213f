"""The names that a function's code reads from outside of itself, each with its value."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dis import Instruction
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from nkitools.authors_code.instructions import instructions_of
from nkitools.authors_code.known_modules import BUILTINS, FRAMES, is_of_python, is_outside, is_trusted
from nkitools.authors_code.source_text import nested_codes

_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_SHOWN = ("_should_repr_global_name", "_saferepr")  # functions of pytest's module below, called with one value
_OF_PYTEST = "@pytest_ar"  # its name in a rewritten assertion; no source can spell it
MISSING = object()


class Read(NamedTuple):
    """A name that code reads, with its value.

    ``unknown``: why the value does not decide all that the code does with the name; '' if it does.
    """

    name: str
    value: Any
    unknown: str = ""


def reads_of(function: FunctionType) -> Iterator[Read]:
    """Yield the global names that a function and the functions inside of it read, each once."""
    seen: set[str] = set()
    for code in nested_codes(function.__code__):
        for each in _reads(code, function):
            if each.name not in seen:
                seen.add(each.name)
                yield each


def _reads(code: CodeType, function: FunctionType) -> Iterator[Read]:
    instructions = [each for each in instructions_of(code)[1] if each.opname != "PUSH_NULL"]
    stored = {each.argval for each in instructions if each.opname == "STORE_NAME"}
    for at, each in enumerate(instructions):
        name = str(each.argval)
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME") and name not in stored:
            if not name.startswith("@") and not _is_shown(instructions[max(0, at - 2) : at]):
                yield _global(name, function, instructions[at + 1 :])
        elif each.opname == "IMPORT_NAME":
            yield _late_import(name, code, function)
        elif each.opname in _ATTRIBUTES and name in FRAMES:
            yield Read(name, None, f"{function.__qualname__} reads `{name}` of an object")


def _global(name: str, function: FunctionType, following: list[Instruction]) -> Read:
    """Return a global variable or builtin; for a module, the attribute that the next instructions read of it."""
    own, others = function.__globals__, vars(builtins)
    value = own.get(name, others.get(name, MISSING))
    if name not in own and value is not MISSING:
        known = name in BUILTINS or (isinstance(value, type) and issubclass(value, BaseException))
        return Read(name, value, "" if known or isinstance(value, FunctionType) else f"{_says(function)} calls {name}")
    for each in following:
        if each.opname not in _ATTRIBUTES or not isinstance(value, ModuleType):
            break
        module, attribute = value.__name__, str(each.argval)
        name = f"{name}.{attribute}"
        if is_outside(module, attribute) or (is_of_python(module) and not is_trusted(module)):
            return Read(name, None, f"{_says(function)} uses {name}")
        value = getattr(value, attribute, MISSING)
    return Read(name, value)


def _late_import(name: str, code: CodeType, function: FunctionType) -> Read:
    """Return an import within a function; its effects are known for a trusted module alone."""
    uses_outside = any(is_outside(name, each) for each in code.co_names)
    if is_trusted(name) and not uses_outside:
        return Read(f"import {name}", None)
    return Read(f"import {name}", None, f"{_says(function)} imports {name} while it runs")


def _says(function: FunctionType) -> str:
    return f"`{function.__qualname__}`"


def _is_shown(before: list[Instruction]) -> bool:
    """Return True if pytest alone reads a name, to show it in a failed assertion, by the two instructions before it."""
    return len(before) == 2 and before[0].argval == _OF_PYTEST and before[1].argval in _SHOWN
