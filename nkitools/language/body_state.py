"""The Python objects that the body of a loop on the device can reach, and whether its first turn has changed one.

The source shows most changes (NK622 of lint); this looks where the source shows none or is not at hand. Compared are
the variables of closures, the global names and the objects that a body's code names, and what those hold: attributes,
items, elements of small arrays. Tensors, registers and the objects of installed packages are compared by identity.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from nkitools.authors_code.called_functions import function_called
from nkitools.authors_code.known_modules import is_installed
from nkitools.authors_code.named_values import attributes_named, globals_named, names_in, variables_around
from nkitools.chip.core import Core
from nkitools.record.source_sites import is_internal

_DEEPEST = 4  # attributes and items inside of each other that are compared, and calls that are followed
_MOST = 2000  # objects that are compared
_LARGEST = 4096  # bytes of the arrays whose elements are compared
_EQUAL = (int, float, complex, str, bytes, bool, type(None), np.generic)
_OTHERS = ("builtins", "neuronxcc", "nki", "nkitools")


@dataclass
class ChangedBody:
    """A body whose first turn has changed an object outside of it."""

    body: Callable[..., Any]
    code: CodeType
    loop: str  # fori_loop or while_loop
    name: str  # the object, as the body reaches it


class FirstTurn:
    """The objects that a body can reach, as they are before its first turn."""

    @classmethod
    def of(cls, core: Core, loop: str, body: Callable[..., Any]) -> FirstTurn | None:
        """Return the state before a body's first turn; None if the body was compared before, or need not be."""
        record, function = core.record, function_called(body)
        if not record.compares_bodies or function is None or id(code := function.__code__) in record.compared_bodies:
            return None
        record.compared_bodies[id(code)] = code
        return cls(core, loop, body, code)

    def __init__(self, core: Core, loop: str, body: Callable[..., Any], code: CodeType) -> None:
        self.core = core
        self.loop = loop
        self.body = body
        self.code = code
        self.turns = len(core.record.programs)
        self.known = len(core.record.changed_bodies)
        self.before = dict(_reached(body))

    def compare(self) -> None:
        """Note the body in the record where its first turn has changed something.

        Nothing is noted where another program had a turn meanwhile, and what a loop inside has changed is that loop's.
        """
        record = self.core.record
        if len(record.programs) != self.turns:
            return
        inside = {each.name for each in record.changed_bodies[self.known :]}
        after = dict(_reached(self.body))
        for name in (*self.before, *after):
            if name not in inside and _differs(name, self.before, after):
                record.changed_bodies.append(ChangedBody(self.body, self.code, self.loop, name))
                return


def _differs(name: str, before: dict[str, Any], after: dict[str, Any]) -> bool:
    if name not in before or name not in after:
        return True
    first, second = before[name], after[name]
    if first is second:
        return False
    if type(first) is not type(second) or not isinstance(first, _EQUAL):
        return True
    return bool(first != second) and not (first != first and second != second)


def _reached(body: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """Yield names and what they stand for: an object to compare, or of a container its kind."""
    waiting = deque((name, value, 0) for name, value in _named(body))
    seen: set[int] = set()
    for _ in range(_MOST):
        if not waiting:
            return
        name, value, depth = waiting.popleft()
        held = _held(value)
        yield name, (type(value) if isinstance(value, (dict, list, set, tuple)) else value)
        if isinstance(value, np.ndarray) and value.nbytes <= _LARGEST:
            yield f"{name}[...]", value.tobytes()
        if held is None or id(value) in seen or depth >= _DEEPEST:
            continue
        seen.add(id(value))
        waiting += ((f"{name}{part}", inner, depth + 1) for part, inner in held)


def _named(body: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a function names outside of itself, its bound object and its default values."""
    if isinstance(body, functools.partial):
        yield from ((f"argument {number}", value) for number, value in enumerate(body.args))
        yield from body.keywords.items()
        yield from _named(body.func)
    elif isinstance(body, MethodType):
        yield next(iter(body.__func__.__code__.co_varnames), "self"), body.__self__
        yield from _named(body.__func__)
    elif isinstance(body, FunctionType):
        yield from _named_by_code(body)
    else:
        yield "self", body
        yield from _named(vars(type(body)).get("__call__")) if _is_authors(type(body)) else ()


def _named_by_code(function: FunctionType) -> Iterator[tuple[str, Any]]:
    code = function.__code__
    yield from variables_around(function).items()
    names = names_in(code)
    for name, value in globals_named(function).items():
        yield name, value
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] not in _OTHERS:
            yield from ((f"{name}.{each}", inner) for each, inner in attributes_named(value, names).items())
    given = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    yield from zip(given[len(given) - len(defaults) :], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()


def _held(value: Any) -> Iterator[tuple[str, Any]] | None:
    """Return the parts of an object that a program can change, and how they are written; None for all others."""
    kind = type(value)
    if isinstance(value, (list, tuple, deque)):
        return ((f"[{number}]", each) for number, each in enumerate(list(value)))
    if isinstance(value, dict):
        return (
            (f"[{key!r}]" if isinstance(key, _EQUAL) else f"[{id(key)}]", each) for key, each in list(value.items())
        )
    if isinstance(value, (set, frozenset)):
        return ((f" with {_shown(each)}", each) for each in list(value))
    if isinstance(value, FunctionType):
        return ((f"'s {name}", each) for name, each in _named_by_code(value)) if _is_authors(value) else None
    if isinstance(value, (ModuleType, MethodType)) or not _is_authors(value if isinstance(value, type) else kind):
        return None
    return _attributes(value)


def _shown(key: Any) -> str:
    return repr(key) if isinstance(key, _EQUAL) else f"{type(key).__name__} at {id(key)}"


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an author's object or class, without those that are kept when they are first read."""
    kind = type(value)
    for name, each in list(getattr(value, "__dict__", {}).items()):
        made_by = getattr(kind, name, None)
        special = isinstance(value, type) and (name.startswith("__") or callable(each))
        if not special and not isinstance(made_by, functools.cached_property):
            yield f".{name}", each
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(value, name):
                yield f".{name}", getattr(value, name)


def _is_authors(value: FunctionType | type) -> bool:
    """Return whether a function or a class is the author's, not of Python, of a package or of nkitools."""
    module = value.__module__ or ""
    if module.partition(".")[0] in _OTHERS:
        return False
    try:
        file = inspect.getfile(value)
    except (OSError, TypeError):  # a class of no file
        file = ""
    builtin = module in sys.builtin_module_names
    return not (builtin or is_internal(file) or is_installed(file))
