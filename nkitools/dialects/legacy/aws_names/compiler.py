"""``nki.compiler``: direct allocation, and switches of AWS's compiler."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nkitools.dialects.legacy.aws_names.allocation import psum, sbuf
from nkitools.dialects.legacy.indexing.indices import whole
from nkitools.dialects.legacy.kernels.kernel_state import FORCE_AUTO_ALLOC, SKIP_MIDDLE_END, STACK_ALLOCATOR, switched
from nkitools.dialects.public import find
from nkitools.rules.finding import refuse


def _decorated(name: str, function: Callable[..., Any] | None) -> Any:
    """Return ``function`` marked, or a decorator that marks if it is None. Errors: NK609."""
    if function is None:
        return lambda found: _decorated(name, found)
    if not callable(function):
        refuse("NK609", f"nki.compiler.{name} decorates a kernel, it is given {type(function).__name__}")
    return switched(function, name)


def enable_stack_allocator(func: Callable[..., Any] | None = None, log_level: int = 50) -> Any:
    """Let the compiler allocate on chip like a stack; together with skip_middle_end_transformations only (NK614).

    A decorator for kernels, with or without brackets; it changes no result. ``log_level``: an integer, how much the
    compiler says about it. Errors: NK609.
    """
    if whole(log_level) is None:
        refuse("NK609", f"nki.compiler.enable_stack_allocator: `log_level` must be an integer, it is {log_level!r}")
    return _decorated(STACK_ALLOCATOR, func)


def force_auto_alloc(func: Callable[..., Any] | None = None) -> Any:
    """Ignore direct allocation in the kernel: every tensor has bytes of its own. A decorator for kernels.

    AWS's guide recommends it to find out whether wrong numbers come from overlapping lifetimes. Errors: NK609.
    """
    return _decorated(FORCE_AUTO_ALLOC, func)


def skip_middle_end_transformations(func: Callable[..., Any] | None = None) -> Any:
    """Leave out the compiler's middle end, which reorders and fuses. A decorator for kernels; it changes no result.

    Errors: NK609.
    """
    return _decorated(SKIP_MIDDLE_END, func)


def no_reorder() -> contextlib.AbstractContextManager[None]:
    """Keep the order of the instructions inside of the ``with``; they run in program order here anyway."""
    return contextlib.nullcontext()


@dataclass(frozen=True)
class MultiBuffer:
    """``directives=`` of nl.sequential_range: how many buffers the compiler may give to each tensor of the loop."""

    factor: int


def multi_buffer(factor: int = 2) -> MultiBuffer:
    """Return a directive for a loop, which changes no result. Errors: NK609."""
    number = whole(factor)
    if number is None or number < 1:
        refuse("NK609", f"nki.compiler.multi_buffer: `factor` must be a number of buffers, it is {factor!r}")
    return MultiBuffer(number)


__all__ = [
    "enable_stack_allocator", "force_auto_alloc", "multi_buffer", "no_reorder", "psum", "sbuf",
    "skip_middle_end_transformations",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    return find(globals(), "neuronxcc.nki.compiler", name)
