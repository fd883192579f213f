"""The author's functions that a function may call: those that its code names."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any

from nkitools.authors_code.known_modules import is_installed
from nkitools.authors_code.named_values import globals_named, names_in, variables_around
from nkitools.authors_code.source_text import nested_codes

_OURS = __name__.partition(".")[0]


def named_functions(function: FunctionType) -> Iterator[FunctionType]:
    """Yield a function, and all of the author's functions that it names, directly or through others, each once.

    Of a class: its constructor, and the methods whose names appear in the function.
    """
    waiting: list[Any] = [function]
    seen: set[int] = set()  # of code objects, which are equal where only their files differ
    while waiting:
        each = plain_function(waiting.pop())
        if each is None or id(each.__code__) in seen or _is_foreign(each):
            continue
        seen.update(id(code) for code in nested_codes(each.__code__))
        yield each
        names = names_in(each.__code__)
        values = [*globals_named(each).values(), *variables_around(each).values()]
        waiting += [value for value in values if not isinstance(value, type)]
        for made in (value for value in values if isinstance(value, type)):
            waiting += [
                value for name, value in vars(made).items() if name in names or name in ("__init__", "__post_init__")
            ]


def plain_function(value: Any) -> FunctionType | None:
    """Return the function in a kernel, a method, a partial, or a decorated function; None for other values.

    None for an instruction, too.
    """
    if value.__class__ is FunctionType and not value.__dict__:
        return value
    for _ in range(16):
        if isinstance(value, FunctionType) and "instruction" in value.__dict__ and _is_ours(value):
            return None
        if isinstance(value, (MethodType, classmethod, staticmethod)):
            value = value.__func__
        elif isinstance(value, functools.partial):
            value = value.func
        elif "__wrapped__" in getattr(value, "__dict__", ()):
            value = value.__dict__["__wrapped__"]
        else:
            break
    return value if isinstance(value, FunctionType) else None


def function_called(value: Any) -> FunctionType | None:
    """Return the author's function that a call of ``value`` runs: for an object the ``__call__`` of its class."""
    return plain_function(value) or plain_function(vars(type(value)).get("__call__"))


def _is_foreign(function: FunctionType) -> bool:
    return _is_ours(function) or is_installed(function.__code__.co_filename)


def _is_ours(function: FunctionType) -> bool:
    return str(function.__globals__.get("__name__", "")).partition(".")[0] == _OURS
