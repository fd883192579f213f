"""The author's functions that a function may call: those that its code names."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from operator import is_
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
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


class NamedFunctions:
    """`named_functions` of a function, looked for again when one of them has other code or names another value."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self._functions: tuple[FunctionType, ...] = ()
        self._codes: list[CodeType] = []
        self._named: list[tuple[FunctionType, CodeType, tuple[str, ...], list[Any]]] | None = None
        self._cells: list[CellType] = []  # the variables around the functions
        self._contents: list[Any] = []
        self._holders: list[Any] = []  # values that may hold a function, and the functions in them
        self._inner: list[FunctionType | None] = []

    def now(self) -> tuple[FunctionType, ...]:
        """Return the functions; the same tuple as before if nothing has changed."""
        if not self._holds():
            functions = tuple(named_functions(self._function))
            codes = [each.__code__ for each in functions]
            if len(codes) != len(self._codes) or not all(
                map(is_, (*functions, *codes), (*self._functions, *self._codes))
            ):
                self._functions, self._codes = functions, codes
            self._named = self._look()
        return self._functions

    def _holds(self) -> bool:
        if self._named is None:
            return False
        for function, code, names, values in self._named:
            if function.__code__ is not code or not all(map(is_, map(function.__globals__.get, names), values)):
                return False
        if not all(map(is_, map(_content, self._cells), self._contents)):
            return False
        return all(map(is_, map(plain_function, self._holders), self._inner))

    def _look(self) -> list[tuple[FunctionType, CodeType, tuple[str, ...], list[Any]]] | None:
        """Return the functions with the values that they name; None with a class, whose methods may change."""
        named: list[tuple[FunctionType, CodeType, tuple[str, ...], list[Any]]] = []
        self._cells = [cell for function in self._functions for cell in function.__closure__ or ()]
        self._contents = list(map(_content, self._cells))
        values_of_all = list(self._contents)
        for function in self._functions:
            names = tuple(names_in(function.__code__))
            values = list(map(function.__globals__.get, names))
            named.append((function, function.__code__, names, values))
            values_of_all += values
        if any(isinstance(value, type) for value in values_of_all):
            return None
        self._holders = list(filter(_may_hold_a_function, values_of_all))
        self._inner = list(map(plain_function, self._holders))
        return named


def _content(cell: CellType) -> Any:
    """Return the value of a variable around a function; the cell itself while it has none."""
    try:
        return cell.cell_contents
    except ValueError:
        return cell


def _may_hold_a_function(value: Any) -> bool:
    is_method = isinstance(value, (MethodType, classmethod, staticmethod, functools.partial))
    return is_method or (hasattr(value, "__dict__") and not isinstance(value, ModuleType))


def plain_function(value: Any) -> FunctionType | None:
    """Return the function in a kernel, a method, a partial, or a decorated function; None for other values.

    None for an instruction, too.
    """
    for _ in range(16):
        if value.__class__ is FunctionType:  # most are, alone or with what `functools.wraps` has set
            attributes = value.__dict__
            if not attributes:
                return value
            if "instruction" not in attributes and "__wrapped__" in attributes:
                value = attributes["__wrapped__"]
                continue
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
