"""``nki.compiler.kernel_builder``: the language guide shows ``compile_kernel``, nothing documents it."""

from __future__ import annotations

__all__: list[str] = []

DOCUMENTED = frozenset({"compile_kernel"})
