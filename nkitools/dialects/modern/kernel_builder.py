"""``nki.compiler.kernel_builder``: the language guide shows ``compile_kernel``, nothing documents it."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.absent import missing

__all__: list[str] = []

DOCUMENTED = frozenset({"compile_kernel"})


def __getattr__(name: str) -> Any:
    return missing("nki.compiler.kernel_builder", name, __all__, DOCUMENTED)
