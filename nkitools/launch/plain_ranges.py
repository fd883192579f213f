"""Records the iterations of loops over Python's ``range`` in a kernel's source, as those of nl's ranges.

While a kernel runs, the name ``range`` in the author's modules is `_Range`, which makes Python's own ranges and is
equal to ``range``, though not identical.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from threading import Lock
from types import FrameType, FunctionType, ModuleType
from typing import Any, SupportsIndex
from weakref import WeakKeyDictionary, ref

from nkitools.authors_code.called_functions import named_functions, plain_function
from nkitools.authors_code.instructions import begins_loop
from nkitools.authors_code.named_values import attributes_named, globals_named, names_in
from nkitools.authors_code.source_text import text_of
from nkitools.chip.core import CORE

_RANGE = re.compile(r"(?<!\w)range\b")
_changing = Lock()
_users: dict[int, int] = {}
"""How many runs, in all threads, count the loops of a module, by the identity of its variables, which the runs hold."""
_named: WeakKeyDictionary[FunctionType, list[ref[FunctionType]]] = WeakKeyDictionary()
"""By kernel: a function of each module whose variables are meant. They name the kernel, so they are not held here."""


class _Counting(type):
    """The type of `_Range`: a call of the class makes a ``range``, and its instances are those of ``range``."""

    def __call__(cls, *bounds: SupportsIndex) -> Any:
        """Return the range, or a recorded iterator if only a ``for`` statement of a kernel uses it."""
        numbers = range(*bounds)
        core = CORE.get()
        if core is None:
            return numbers
        frame = sys._getframe(1)
        return core.record.iterations(numbers) if begins_loop(frame.f_code, frame.f_lasti) else numbers

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, range)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is range

    def __hash__(cls) -> int:
        return hash(range)

    def __repr__(cls) -> str:
        return repr(range)


class _Range(metaclass=_Counting):
    """``range`` as an author's module has it while a kernel runs."""


def is_range_call(frame: FrameType) -> bool:
    """Return whether ``frame`` is a call of ``range`` in an author's module, which asks for integers."""
    return frame.f_code is _Counting.__call__.__code__


class counted_ranges:  # noqa: N801 - it is used as a function
    """``with counted_ranges(kernel):`` Count loops over ``range`` in a kernel and in the functions that it names.

    A module with a ``range`` of its own keeps it.
    """

    def __init__(self, function: Callable[..., Any] | None) -> None:
        self._spaces = _author_namespaces(function)

    def __enter__(self) -> None:
        spaces, self._spaces = self._spaces, []
        if not spaces:
            return
        with _changing:
            for each in spaces:
                if each.setdefault("range", _Range) is _Range:
                    self._spaces.append(each)
                    _users[id(each)] = _users.get(id(each), 0) + 1

    def __exit__(self, *error: object) -> None:
        if not self._spaces:
            return
        with _changing:
            for each in self._spaces:
                _users[id(each)] -= 1
                if not _users[id(each)]:
                    del _users[id(each)]
                    if each.get("range") is _Range:
                        del each["range"]


def _author_namespaces(function: Callable[..., Any] | None) -> list[dict[str, Any]]:
    """Return the variables of the modules of a kernel and of the author's functions that it names.

    Not of a module whose source has no ``range``: a change of its variables costs each look-up of them.
    """
    plain = plain_function(function)
    if plain is None:
        return []
    known = _named.get(plain)
    if known is not None:
        spaces = [found.__globals__ for each in known if (found := each()) is not None]
        if len(spaces) == len(known):
            return spaces
    functions = [each for each in _found_functions(plain) if _may_count(each)]
    _named[plain] = [ref(each) for each in functions]
    return [each.__globals__ for each in functions]


def _may_count(function: FunctionType) -> bool:
    """Return whether the module of a function may have a loop over ``range``."""
    text = text_of(function.__code__)
    return not text or _RANGE.search(text) is not None


def _found_functions(function: FunctionType) -> list[FunctionType]:
    """Return a function of each of these modules; functions are also named as attributes of modules."""
    found: dict[int, FunctionType] = {}
    waiting: list[Any] = [function]
    seen: set[int] = set()
    while waiting:
        for named in named_functions(waiting.pop()):
            if id(named) in seen:
                continue
            seen.add(id(named))
            found.setdefault(id(named.__globals__), named)
            modules = [value for value in globals_named(named).values() if isinstance(value, ModuleType)]
            names = names_in(named.__code__)
            waiting += [value for module in modules for value in attributes_named(module, names).values()]
    return list(found.values())
