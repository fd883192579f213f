"""The second pair of examples of each rule, a module a family.

Where a rule has a limit they stand on its two sides, one element apart; otherwise they show it in the legacy dialect,
in another instruction, or in code that looks alike and is right. The constants are named as those of the first pair.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module


@cache
def edge_examples() -> dict[str, str]:
    """Every constant of the modules beside this one: ``NK101_BAD`` and so on."""
    found: dict[str, str] = {}
    for module in pkgutil.iter_modules(__path__):
        names = vars(import_module(f"{__name__}.{module.name}"))
        found |= {name: text for name, text in names.items() if name.endswith(("_BAD", "_GOOD"))}
    return found
