"""The tiles of a program, views of them, and how values are written: in float32, then cast once.

An operand of a step is a view of a tile, ``{"tile", "rows", "columns"}``, in more dimensions as `forms` has it; an
array that the program brings, ``{"array", "dtype"}``; or a result of its own, ``{"new": dtype, "shape", "name"}``,
which is compared at the end. ``dims``: the free dimensions of the latter two, where they are several.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

from tests.oracle.forms import is_plain, places

# dtype: the largest magnitude that a program writes to it
LIMITS = {
    "float32": 2.0**33,
    "bfloat16": 4096.0,
    "float16": 4096.0,
    "float8_e5m2": 4096.0,
    "float8_e4m3": 224.0,
    "float8_e4m3fn": 224.0,
    "int32": 1e30,  # saturates, as all integers
    "int16": 1e30,
    "int8": 1e30,
    "uint32": 1e30,
    "uint16": 1e30,
    "uint8": 1e30,
}
INTEGERS = frozenset(("int32", "int16", "int8", "uint8", "uint16", "uint32"))
FLOATS = tuple(name for name in LIMITS if name not in INTEGERS)
EXACT_SUM = 2.0**23  # below it sums of whole numbers are exact in float32, in any order
PARTITIONS = 128
# Four elements in one: the elements' dtype, and the word that holds them.
PACKED = {
    "float8_e4m3fn_x4": (ml_dtypes.float8_e4m3fn, "<u4"),
    "float8_e5m2_x4": (ml_dtypes.float8_e5m2, "<u4"),
    "float4_e2m1fn_x4": (ml_dtypes.float4_e2m1fn, "<u2"),
}

Step = dict[str, Any]


class Unfit(Exception):
    """A step that does not belong into a program: a value is too large, or its result is not decided."""


def numpy_dtype(name: str) -> Any:
    """Return the dtype of NumPy."""
    return np.dtype(getattr(ml_dtypes, name, name))


def cast(values: Any, dtype: str) -> Any:
    """Round to float32, and cast: nearest even, integers saturate."""
    single = np.asarray(values, np.float64).astype(np.float32)
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        single = np.clip(np.rint(single.astype(np.float64)), limits.min, limits.max)
    return single.astype(numpy_dtype(dtype))


def brought(part: Step) -> Any:
    """Return an array that a program brings, as a kernel gets it; a packed one from four times as many columns."""
    if part["dtype"] not in PACKED:
        return np.array(part["array"], numpy_dtype(part["dtype"]))
    element, word = PACKED[part["dtype"]]
    codes = np.array(part["array"], np.float32).astype(element).view(np.uint8)
    if word == "<u2":
        codes = codes[:, 0::2] | codes[:, 1::2] << 4
    return np.ascontiguousarray(codes).view([(part["dtype"], word)])


@dataclass
class State:
    """The tiles by name, two-dimensional; ``exact``: whether a tile's values are known to the bit.

    ``sum_order``: that of float32 sums along the columns, ``chip`` (one element after the other) or ``fast``.
    ``member``: the number of the core or rank. ``results``: what steps leave beside the tiles, by name. ``lanes``: the
    registers in which an engine reduces, one a partition, NaN where the documents do not say what they hold.
    """

    tiles: dict[str, Any]
    dtypes: dict[str, str]
    chip: str
    exact: dict[str, bool] = field(default_factory=dict)
    version: str = "0.7"
    member: int = 0
    results: dict[str, tuple[Any, bool]] = field(default_factory=dict)
    lanes: dict[str, Any] = field(
        default_factory=lambda: {engine: np.full((PARTITIONS, 1), np.nan) for engine in ("vector", "scalar")}
    )
    sum_order: str = "fast"

    def copied(self) -> State:
        """Return the same in tiles of their own."""
        tiles = {name: tile.copy() for name, tile in self.tiles.items()}
        lanes = {engine: values.copy() for engine, values in self.lanes.items()}
        return replace(self, tiles=tiles, exact=dict(self.exact), results=dict(self.results), lanes=lanes)

    def needs(self, *chips: str) -> None:
        """Raise Unfit on every other chip."""
        if self.chip not in chips:
            raise Unfit(f"{self.chip} does not have it")

    def read(self, view: Step) -> Any:
        """Return the values of a view as an engine takes them: in float32, which rounds integers beyond 2**24."""
        return self.bits(view).astype(np.float32).astype(np.float64)

    def dtype(self, view: Step) -> str:
        """Return the dtype of a view, an array or a result."""
        return str(view.get("new") or view.get("dtype") or self.dtypes[view["tile"]])

    def move(self, view: Step, bits: Any) -> None:
        """Write bits of the view's dtype as they are, and others by way of float32."""
        if bits.dtype != numpy_dtype(self.dtype(view)):
            self.write(view, bits.astype(np.float32))
        elif "new" in view:
            self.keep(view, np.broadcast_to(bits, view["shape"]))
        else:
            self._put(view, bits, exact=True)

    def bits(self, view: Step) -> Any:
        """Return the values of a view as they are."""
        if "array" in view:
            return brought(view)
        if not self.exact[view["tile"]]:
            raise Unfit(f"{view['tile']} is not exact")
        return self._elements(view).copy()

    def keep(self, view: Step, values: Any, *, exact: bool = True) -> None:
        """Leave a result beside the tiles, as it is."""
        self.results[view["name"]] = (np.asarray(values), exact)

    def write(self, view: Step, values: Any, *, exact: bool = True) -> None:
        """Cast to the view's dtype; Unfit where a document does not decide the result."""
        if "new" in view:
            self.keep(view, np.broadcast_to(cast(values, view["new"]), view["shape"]), exact=exact)
            return
        dtype = self.dtypes[view["tile"]]
        single = np.asarray(values, np.float64).astype(np.float32)
        if not np.isfinite(single).all() or np.abs(single).max(initial=0) > LIMITS[dtype]:
            raise Unfit("a value is too large")
        if dtype in INTEGERS and not exact:
            raise Unfit("which way a value is rounded is not decided")
        self._put(view, cast(single, dtype), exact=exact)

    def _put(self, view: Step, values: Any, *, exact: bool) -> None:
        target = self._elements(view)
        target[...] = np.broadcast_to(values, target.shape)
        if not is_plain(view):
            self.tiles[view["tile"]][slice(*view["rows"]), self._places(view)] = target
        if target.size == self.tiles[view["tile"]].size:
            self.exact[view["tile"]] = exact
        elif not exact or not self.exact[view["tile"]]:
            raise Unfit("a part of a tile would be exact, and a part not")

    def _elements(self, view: Step) -> Any:
        """Return the elements, a row a partition; of a view without a form in the tile itself."""
        rows = self.tiles[view["tile"]][slice(*view["rows"])]
        return rows[:, slice(*view["columns"])] if is_plain(view) else rows[:, self._places(view)]

    def _places(self, view: Step) -> Any:
        return places(view, self.tiles[view["tile"]].shape[1]).reshape(-1)


def whole(values: Any) -> Any:
    """Return the values, which are whole numbers, so that their sums are exact; else Unfit."""
    if (values != np.rint(values)).any():
        raise Unfit("sums of fractions depend on their order")
    return values


def summed(values: Any, axis: int) -> Any:
    """Return an exact sum."""
    if np.abs(whole(values)).sum() > EXACT_SUM:
        raise Unfit("the sum may be rounded")
    return values.sum(axis=axis, keepdims=True)
