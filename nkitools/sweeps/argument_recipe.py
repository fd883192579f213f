"""Arrays from a recipe in TOML: the table ``arguments`` of a space, in the order of the kernel's parameters.

Each entry is a table, or a value that the kernel is given as it is. Numbers may be the names of axes of the space::

    [arguments.x]
    shape = ["rows", 512]
    dtype = "dtype"        # an axis, or a dtype
    fill = "normal"        # normal, uniform, integers, arange, zeros, ones, or a number
    seed = "seed"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

_FIELDS = {"shape", "dtype", "fill", "seed"}
_FILLS = ("normal", "uniform", "integers", "arange", "zeros", "ones")


@dataclass(frozen=True)
class ArgumentRecipe:
    """The table ``arguments``; called with a case it returns the arguments by name."""

    table: Mapping[str, Any]

    def __post_init__(self) -> None:
        for name, entry in self.table.items():
            if isinstance(entry, Mapping) and ("shape" not in entry or set(entry) - _FIELDS):
                raise ValueError(
                    f"arguments.{name} has shape, and may have dtype, fill and seed; it has {dict(entry)!r}"
                )

    def axes(self) -> set[str]:
        """Return the texts of the recipe, which may name axes of the space."""
        texts: set[str] = set()
        for entry in self.table.values():
            parts = [entry] if not isinstance(entry, Mapping) else [*entry.get("shape", ()), *entry.values()]
            texts |= {part for part in parts if isinstance(part, str)}
        return texts

    def __call__(self, **case: Any) -> dict[str, Any]:
        """Return the arguments of a case, by name."""
        made: dict[str, Any] = {}
        for number, (name, entry) in enumerate(self.table.items()):
            made[name] = _array(name, entry, number, case) if isinstance(entry, Mapping) else _value(entry, case)
        return made


def _value(entry: Any, case: Mapping[str, Any]) -> Any:
    return case.get(entry, entry) if isinstance(entry, str) else entry


def _array(name: str, entry: Mapping[str, Any], number: int, case: Mapping[str, Any]) -> Any:
    sizes = entry["shape"]
    shape = [_value(size, case) for size in (sizes if isinstance(sizes, list) else [sizes])]
    if not all(isinstance(size, (int, np.integer)) for size in shape):
        raise ValueError(f"arguments.{name}: shape is {shape}; each size is a number or the name of an axis")
    dtype, fill = _value(entry.get("dtype", "float32"), case), _value(entry.get("fill", "normal"), case)
    kind = np.dtype(getattr(ml_dtypes, str(dtype), dtype))
    # Each argument has numbers of its own, also where two share a seed.
    random = np.random.default_rng([int(_value(entry.get("seed", 0), case)), number])
    if isinstance(fill, (int, float)):
        return np.full(shape, fill, kind)
    if fill not in _FILLS:
        raise ValueError(f"arguments.{name}: fill is {fill!r}; choose a number or one of {', '.join(_FILLS)}")
    values: Any
    match fill:
        case "normal":
            values = random.standard_normal(shape, np.float32)
        case "uniform":
            values = random.random(shape, np.float32)
        case "integers":
            values = random.integers(0, 128, shape)
        case "arange":
            values = np.arange(np.prod(shape)).reshape(shape)
        case _:
            values = np.full(shape, fill == "ones")
    return values.astype(kind)
