"""``nki.compiler``: what drives AWS's compiler, for which nkitools does not stand in; every name of it is refused."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.absent import missing

__all__: list[str] = []

_LEGACY = (
    "Import it from neuronxcc.nki.compiler for a kernel of the legacy dialect; in the modern one place tensors with "
    "nl.ndarray(..., address=(partition, byte))."
)
REMOVED = {
    "allocated": _LEGACY,
    "enable_stack_allocator": _LEGACY,
    "force_auto_alloc": _LEGACY,
    "multi_buffer": _LEGACY,
    "no_reorder": "Use nl.no_reorder.",
    "psum": _LEGACY,
    "sbuf": _LEGACY,
    "skip_middle_end_transformations": _LEGACY,
}


def __getattr__(name: str) -> Any:
    return missing("nki.compiler", name, frozenset(), REMOVED)
