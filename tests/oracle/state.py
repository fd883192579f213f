"""The tiles of a program, views of them, and how values are written: in float32, then cast once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

# dtype: the largest magnitude that a program writes to it
LIMITS = {
    "float32": 4096.0,
    "bfloat16": 4096.0,
    "float16": 4096.0,
    "float8_e5m2": 4096.0,
    "float8_e4m3": 224.0,
    "int32": 4096.0,
    "int16": 4096.0,
    "int8": 1e30,  # saturates
    "uint8": 1e30,
}
INTEGERS = frozenset(("int32", "int16", "int8", "uint8"))
FLOATS = tuple(name for name in LIMITS if name not in INTEGERS)
EXACT_SUM = 2.0**23  # below it sums of whole numbers are exact in float32, in any order

Step = dict[str, Any]


class Unfit(Exception):
    """A step that does not belong into a program: a value is too large, or its result is not decided."""


def numpy_dtype(name: str) -> Any:
    """The dtype of NumPy."""
    return np.dtype(getattr(ml_dtypes, name, name))


@dataclass
class State:
    """The tiles by name, two-dimensional; ``exact``: whether a tile's values are known to the bit."""

    tiles: dict[str, Any]
    dtypes: dict[str, str]
    chip: str
    exact: dict[str, bool] = field(default_factory=dict)

    def copied(self) -> State:
        """The same in tiles of their own."""
        tiles = {name: tile.copy() for name, tile in self.tiles.items()}
        return State(tiles, self.dtypes, self.chip, dict(self.exact))

    def read(self, view: Step) -> Any:
        """The values of a view in float64."""
        if not self.exact[view["tile"]]:
            raise Unfit(f"{view['tile']} is not exact")
        return self._elements(view).astype(np.float64)

    def bits(self, view: Step) -> Any:
        """The values of a view as they are."""
        if not self.exact[view["tile"]]:
            raise Unfit(f"{view['tile']} is not exact")
        return self._elements(view).copy()

    def write(self, view: Step, values: Any, *, exact: bool = True) -> None:
        """Round to float32, and cast to the view's dtype: nearest even, integers saturate."""
        dtype = self.dtypes[view["tile"]]
        single = np.asarray(values, np.float64).astype(np.float32)
        if not np.isfinite(single).all() or np.abs(single).max(initial=0) > LIMITS[dtype]:
            raise Unfit("a value is too large")
        if dtype in INTEGERS:
            if not exact:
                raise Unfit("which way a value is rounded is not decided")
            limits = np.iinfo(dtype)
            single = np.clip(np.rint(single.astype(np.float64)), limits.min, limits.max)
        target = self._elements(view)
        target[...] = np.broadcast_to(single, target.shape).astype(numpy_dtype(dtype))
        if not exact and target.size != self.tiles[view["tile"]].size:
            raise Unfit("a part of a tile would be exact, and a part not")
        if target.size == self.tiles[view["tile"]].size:
            self.exact[view["tile"]] = exact
        elif not self.exact[view["tile"]]:
            raise Unfit("a part of a tile would be exact, and a part not")

    def _elements(self, view: Step) -> Any:
        (top, bottom), (left, right, step) = view["rows"], view["columns"]
        return self.tiles[view["tile"]][top:bottom, left:right:step]


def whole(values: Any) -> Any:
    """The values, which are whole numbers, so that their sums are exact; else Unfit."""
    if (values != np.rint(values)).any():
        raise Unfit("sums of fractions depend on their order")
    return values


def summed(values: Any, axis: int) -> Any:
    """An exact sum."""
    if np.abs(whole(values)).sum() > EXACT_SUM:
        raise Unfit("the sum may be rounded")
    return values.sum(axis=axis, keepdims=True)
