"""Mistakes made on purpose: a kernel's module with one piece of its source replaced."""

from __future__ import annotations

import linecache
from pathlib import Path
from types import ModuleType


def mutant(module: ModuleType, old: str, new: str) -> ModuleType:
    """``module`` with the one place that says ``old`` saying ``new`` instead."""
    path = Path(str(module.__file__))
    source = path.read_text()
    assert source.count(old) == 1, f"{path.name} no longer says {old!r} once"
    name = f"<mutant of {path.name}>"
    text = source.replace(old, new)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    mutated = ModuleType(f"{module.__name__}_mutant")
    exec(compile(text, name, "exec"), vars(mutated))
    return mutated
