"""Memos that a process keeps for the runs to come: each says what it keeps, at most how much, and why that much.

Nothing here decides an answer: what is not kept is worked out again. `forget` empties all of it, for a test, and for a
server that has come to an end of its work on some kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import islice
from types import ModuleType
from typing import TypeVar
from weakref import WeakValueDictionary

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_all: WeakValueDictionary[int, Kept[object, object]] = WeakValueDictionary()
_others: list[Callable[[], object]] = []


class Kept(dict[_Key, _Value]):
    """A memo of at most ``most`` entries; where one more comes, it forgets the older half.

    ``what`` says what it keeps, ``why`` why that many. A look-up is that of a dict; ``kept[key] = value`` adds.
    """

    def __init__(self, what: str, most: int, why: str) -> None:
        super().__init__()
        self.what, self.most, self.why = what, most, why
        _all[id(self)] = self  # type: ignore[assignment]

    def __setitem__(self, key: _Key, value: _Value) -> None:
        """Keep a value, and half of the earlier ones where they were as many as may be."""
        if len(self) >= self.most and key not in self:
            for older in list(islice(self, (self.most + 1) // 2)):
                self.pop(older, None)
        super().__setitem__(key, value)


def on_forget(forget_other: Callable[[], object]) -> None:
    """Let `forget` call a function too, of a table that is more than a memo."""
    _others.append(forget_other)


def all_kept() -> list[Kept[object, object]]:
    """Return the memos of this process."""
    return list(_all.values())


def forget_many(most: int = 20_000) -> bool:
    """Call `forget` where the memos hold more than ``most`` entries in all, and return whether they did.

    For servers, between two requests: each memo has a limit of its own, and there are many memos.
    """
    is_full = sum(map(len, all_kept())) > most
    if is_full:
        forget()
    return is_full


def forget() -> None:
    """Empty all memos of this process: each `Kept`, and each function of nkitools with a limited ``lru_cache``.

    While no kernel runs.
    """
    for kept in all_kept():
        kept.clear()
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "nkitools"]
    for value in [each for module in modules for each in list(vars(module).values())]:
        if (
            not isinstance(value, ModuleType)
            and hasattr(value, "cache_parameters")
            and value.cache_parameters()["maxsize"] is not None
        ):
            value.cache_clear()
    for forget_other in _others:
        forget_other()
