"""``nki.compiler``: compiler switches, which change no result here; direct allocation is not modelled yet."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NoReturn

from nkitools.chip.memory import MemoryRegion
from nkitools.dialects.absent import missing
from nkitools.rules.finding import not_modelled


def _switch(name: str, doc: str) -> Callable[..., Any]:
    def decorator(func: Any = None, log_level: int = 50) -> Any:
        return func if func is not None else lambda function: function

    decorator.__name__ = decorator.__qualname__ = name
    decorator.__doc__ = f"{doc} A decorator for kernels, with or without brackets; it changes no result."
    return decorator


enable_stack_allocator = _switch("enable_stack_allocator", "Let the compiler allocate on chip like a stack.")
force_auto_alloc = _switch("force_auto_alloc", "Let the compiler allocate on chip.")
skip_middle_end_transformations = _switch("skip_middle_end_transformations", "Leave out the compiler's middle end.")


def no_reorder() -> contextlib.AbstractContextManager[None]:
    """Keep the order of the instructions inside of the ``with``; they run in program order here anyway."""
    return contextlib.nullcontext()


class _Allocator:
    """``nki.compiler.sbuf`` and ``nki.compiler.psum``."""

    def __init__(self, memory: MemoryRegion) -> None:
        self.memory = memory

    def auto_alloc(self) -> MemoryRegion:
        """The memory, for ``buffer=``: the compiler chooses addresses."""
        return self.memory

    def alloc(self, func: Any) -> NoReturn:
        """Not modelled yet (NK607)."""
        self._not_modelled("alloc")

    def mod_alloc(self, **kwargs: Any) -> NoReturn:
        """Not modelled yet (NK607)."""
        self._not_modelled("mod_alloc")

    def _not_modelled(self, what: str) -> NoReturn:
        name = f"nki.compiler.{self.memory.value}"
        not_modelled(f"{name}.{what} (direct allocation) is not modelled yet", remedy=f"Pass {name}.auto_alloc().")


psum = _Allocator(MemoryRegion.psum)
sbuf = _Allocator(MemoryRegion.sbuf)

DOCUMENTED = frozenset({"allocation_scope", "multi_buffer"})

__all__ = [
    "enable_stack_allocator",
    "force_auto_alloc",
    "no_reorder",
    "psum",
    "sbuf",
    "skip_middle_end_transformations",
]


def __getattr__(name: str) -> Any:
    return missing("neuronxcc.nki.compiler", name, DOCUMENTED)
