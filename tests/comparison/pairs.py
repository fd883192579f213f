"""Pairs of arrays, the tolerance that is stated for them, and whether they agree: by hand, from NumPy's definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

F32, F16, BF16, F8, F8E5 = (
    np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
)  # fmt: skip
NAN, INF = np.nan, np.inf


@dataclass(frozen=True, eq=False)
class Pair:
    """Two arrays; ``agree``: whether the first is the second within ``atol + rtol * abs(second)``, else by dtype."""

    name: str
    actual: Any
    expected: Any
    agree: bool
    rtol: float | None = None
    atol: float | None = None

    @property
    def is_stated(self) -> bool:
        return self.rtol is not None or self.atol is not None


def tile(value: float, dtype: Any = F32, shape: tuple[int, ...] = (2, 4)) -> Any:
    """An array of one value."""
    return np.full(shape, value, dtype)


def with_one(other: float, value: float = 1.0, dtype: Any = F32) -> Any:
    """An array of one value, but for an element in its midst."""
    made = tile(value, dtype)
    made[1, 2] = other
    return made


PAIRS = [
    # stated: the tolerance is relative to the second, and both parts add up
    Pair("the case of four doors", tile(1.15), tile(1.0), True, 0.1, 0.1),
    Pair("just within both", tile(1.19), tile(1.0), True, 0.1, 0.1),
    Pair("just beyond both", with_one(1.21), tile(1.0), False, 0.1, 0.1),
    Pair("relative to the second, not the larger", tile(10.0), tile(1.0), False, 0.95),
    Pair("relative to the second, which is larger", tile(1.0), tile(10.0), True, 0.95),
    Pair("absolute alone", tile(1.0625), tile(1.0), True, None, 0.0625),
    Pair("absolute alone, beyond", tile(1.125), tile(1.0), False, None, 0.0625),
    Pair("relative alone allows nothing at 0", with_one(1e-30, 0.0), tile(0.0), False, 0.5),
    Pair("absolute allows some at 0", with_one(1e-30, 0.0), tile(0.0), True, None, 1e-20),
    Pair("a stated 0 is exact", with_one(np.nextafter(F32(1), F32(2))), tile(1.0), False, 0.0, 0.0),
    Pair("a stated 0, equal", tile(3.0), tile(3.0), True, 0.0, 0.0),
    Pair("zeros of both signs", tile(-0.0), tile(0.0), True, 0.0, 0.0),
    Pair("integers within a stated one", tile(7, np.int32), tile(8, np.int32), True, None, 1.0),
    Pair("integers beyond a stated one", tile(7, np.int32), tile(9, np.int32), False, None, 1.0),
    # NaN and infinities, whatever is allowed
    Pair("NaN where NaN belongs", with_one(NAN), with_one(NAN), True, 0.1),
    Pair("NaN for a number", with_one(NAN), tile(1.0), False, 0.1, 9.0),
    Pair("a number for NaN", tile(1.0), with_one(NAN), False, 0.1, 9.0),
    Pair("an infinity and itself", with_one(INF), with_one(INF), True, 0.1),
    Pair("infinities of both signs", with_one(INF), with_one(-INF), False, 0.1, 9.0),
    Pair("an infinity for a number", with_one(INF), tile(1.0), False, 0.1, 9.0),
    Pair("a number for an infinity", tile(1.0), with_one(INF), False, 0.1, 9.0),
    Pair("NaN for an infinity", with_one(NAN), with_one(INF), False, 0.1, 9.0),
    # by dtype
    Pair("float32, a step", with_one(1 + 2.0**-23), tile(1.0), True),
    Pair("float32, a thousandth", with_one(1.001), tile(1.0), False),
    Pair("float32 and float64", tile(1 / 3), tile(1 / 3, np.float64), True),
    Pair("float32, both flushed", with_one(1e-39, 0.0), tile(0.0), True),
    Pair("bfloat16, a step", with_one(1 + 2.0**-7, dtype=BF16), tile(1.0, BF16), True),
    Pair("bfloat16, eight steps", with_one(1 + 2.0**-4, dtype=BF16), tile(1.0, BF16), False),
    Pair("bfloat16 for float64", tile(1 / 3, BF16), tile(1 / 3, np.float64), True),
    Pair("float16, a step", with_one(1 + 2.0**-10, dtype=F16), tile(1.0, F16), True),
    Pair("float16, ten steps", with_one(1 + 10 * 2.0**-10, dtype=F16), tile(1.0, F16), False),
    Pair("float16, NaN for a number", with_one(NAN, dtype=F16), tile(1.0, F16), False),
    Pair("float8, the same", tile(1.125, F8), tile(1.125, F8), True),
    Pair("float8, a rounding away", tile(1.125, F8), tile(1.1, np.float64), True),
    Pair("float8, twice as much", with_one(2.0, dtype=F8), tile(1.0, F8), False),
    Pair("float8_e5m2, twice as much", with_one(2.0, dtype=F8E5), tile(1.0, F8E5), False),
    Pair("int32, the same", tile(2**24 + 1, np.int32), tile(2**24 + 1, np.int32), True),
    Pair("int32, one more", with_one(2**24 + 2, 2**24 + 1, np.int32), tile(2**24 + 1, np.int32), False),
    Pair("uint8, one more", with_one(2, 1, np.uint8), tile(1, np.uint8), False),
    Pair("int8, the same", tile(-3, np.int8), tile(-3, np.int8), True),
    Pair("int64, beyond what float64 holds", with_one(2**53 + 1, 2**53, np.int64), tile(2**53, np.int64), False),
    Pair("bool, the same", tile(True, np.bool_), tile(True, np.bool_), True),
    Pair("bool, another", with_one(False, True, np.bool_), tile(True, np.bool_), False),
    # shapes
    Pair("no elements", tile(0, shape=(0, 3)), tile(0, shape=(0, 3)), True),
    Pair("no elements, another shape", tile(0, shape=(0, 3)), tile(0, shape=(3, 0)), False),
    Pair("another shape", tile(1.0), tile(1.0, shape=(4, 2)), False),
    Pair("a row for a tile", tile(1.0), tile(1.0, shape=(4,)), False),
    Pair("a scalar for a tile", tile(1.0), np.float32(1.0), False),
    Pair("a scalar for a tile, much allowed", tile(1.0), np.float32(1.0), False, None, 9.0),
    Pair("one more dimension", tile(1.0), tile(1.0, shape=(1, 2, 4)), False, 0.1),
    Pair("the last of many elements", np.append(np.ones(999, F32), F32(2)), np.ones(1000, F32), False, 0.5),
]  # fmt: skip
