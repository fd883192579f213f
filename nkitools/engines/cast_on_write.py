"""From a float32 (or integer) result to its destination: straight into it where dtypes allow, else through one cast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.argument_types import Number
from nkitools.chip.dtypes import DType, float32, tfloat32
from nkitools.chip.numeric_flags import EVIDENCE, Unfit
from nkitools.chip.numerics import FLOAT32_MAX, Array, cast, put_floats, to_float32, working


def put(destination: Array, values: Array, dtype: DType) -> None:
    """Write ``values`` (of the destination's number of elements per partition) as ``dtype``."""
    values = values.reshape(destination.shape)
    if dtype.is_float and dtype is not tfloat32:
        put_floats(destination, values, dtype)
    else:
        np.copyto(destination, cast(values, dtype))


def in_float32(*dtypes: DType) -> bool:
    """Return whether every operand already is what the engine computes in."""
    return all(dtype is float32 for dtype in dtypes)


def widened(function: Callable[..., Any], dtype: DType, shape: tuple[int, ...]) -> Callable[..., None]:
    """``function(*operands, out=)`` on float32 copies of the operands, its result cast once into ``dtype``.

    ``shape`` is the shape in which the operation is computed (the first operand's).
    """

    def compute(destination: Array, *operands: Array | float) -> None:
        direct = dtype is float32 and destination.shape == shape
        out = destination if direct else np.empty(shape, working(destination, *operands))
        function(*(to_float32(each) if isinstance(each, np.ndarray) else each for each in operands), out=out)
        if not direct:
            put(destination, out, dtype)

    return compute


def like(array: Array, shape: tuple[int, ...]) -> Array:
    """``array`` in another shape of the same partitions: a view where possible, else a copy."""
    return array if array.shape == shape else array.reshape(shape)


def constant(number: Number, dtype: DType) -> Any:
    """Return a number as an element of ``dtype``: integers exactly, the rest by way of float32."""
    if dtype.kind == "packed":
        return np.zeros((), dtype.dtype)
    if dtype.is_integer and isinstance(number, (int, np.integer)):
        limits = np.iinfo(dtype.dtype)
        return min(max(int(number), int(limits.min)), int(limits.max))
    return cast(np.asarray(number, np.float32), dtype)


def note_unfit(number: Number, became: float, dtype: DType) -> bool:
    """Note a number that is written into elements of ``dtype`` which do not hold it (NK304); True if they hold it.

    Rounding is no matter; an infinity, and the largest float32, which stands for one, may become an infinity.
    """
    evidence = EVIDENCE.get()
    if dtype.kind in ("packed", "bool"):
        return True
    if dtype.is_integer:
        unfit = not abs(float(number) - float(became)) < 1  # a NaN is nowhere near
    elif np.isinf(became):
        unfit = bool(np.isfinite(number)) and abs(np.float32(number)) != FLOAT32_MAX
    else:
        unfit = bool(np.isnan(became)) and number == number
    if unfit and evidence is not None:
        evidence.append(Unfit(number, became))
    return not unfit
