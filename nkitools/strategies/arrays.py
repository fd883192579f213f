"""Arrays whose values are awkward: not-a-number, infinities, extremes, denormals, ties of rounding, negative zeros."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from nkitools.chip.argument_types import Shape
from nkitools.chip.dtypes import DType, DTypeLike, as_dtype, float8_e8m0fnu, tfloat32

Array = npt.NDArray[Any]

STREWN = 8
# Half-way between two neighbours in float8_e4m3, bfloat16, float16 and the integers; each way up and down.
_TIES = [1 + 2**-4, 1 + 3 * 2**-4, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-11, 1 + 3 * 2**-11, 0.5, 1.5, 2.5, -0.5, -1.5]
_INTEGERS = [0, 1, -1, 127, 128, 255, 256, 1 << 24, (1 << 24) + 1]  # the last is none of float32's


def awkward_values(dtype: DTypeLike) -> Array:
    """Return the values of ``dtype`` that kernels get wrong, each once, as an array of one dimension; those that the
    dtype lacks are left out.

    Floats: zeros and ones of both signs, ties of rounding to narrower dtypes and to integers; of both signs the
    largest, the smallest normal and denormal, and infinity; and not-a-number. Integers: the extremes, 0, 1, -1, and the
    values around 2**7, 2**8 and 2**24, beyond which float32 loses low bits. Packed dtypes: no bits and all bits set.
    UnknownDType (a ValueError) for what is no dtype of NKI.
    """
    found = as_dtype(dtype)
    if found.kind == "bool":
        return np.array([False, True])
    if found.kind == "packed":
        return np.array([0, -1], f"i{found.itemsize}").view(found.dtype)
    if found.is_integer:
        limits = np.iinfo(found.dtype)
        kept = [each for each in _INTEGERS if limits.min <= each <= limits.max]
        return np.array(sorted({limits.min, *kept, limits.max}, key=abs), found.dtype)
    return _of_floats(found)


def _of_floats(dtype: DType) -> Array:
    limits: Any = ml_dtypes.finfo(dtype.dtype)  # type: ignore[no-untyped-call]
    extremes = [float(limits.max), float(limits.tiny), float(limits.smallest_subnormal)]
    wanted = [0.0, -0.0, 1.0, -1.0, *_TIES, *extremes, *(-each for each in extremes), math.inf, -math.inf, math.nan]
    with np.errstate(all="ignore"):
        cast = np.array(wanted).astype(dtype.dtype)
    same = [_is_same(value, float(there)) for value, there in zip(wanted, cast.astype(np.float64), strict=True)]
    kept = cast[same]
    bits = kept.view(f"u{dtype.itemsize}")
    if dtype is tfloat32:  # 10 of float32's 23 bits of mantissa
        kept, bits = (each[bits & 0x1FFF == 0] for each in (kept, bits))
    _, first = np.unique(bits, return_index=True)
    return np.asarray(kept[np.sort(first)])


def _is_same(value: float, there: float) -> bool:
    if math.isnan(value):
        return math.isnan(there)
    return value == there and math.copysign(1, value) == math.copysign(1, there)


def arrays(
    shape: Shape | st.SearchStrategy[Shape],
    dtype: DTypeLike | st.SearchStrategy[DTypeLike] = "float32",
    *,
    awkward: bool = True,
    low: float | None = None,
    high: float | None = None,
    allow_nan: bool = True,
    allow_infinity: bool = True,
) -> st.SearchStrategy[Array]:
    """Draw NumPy arrays of a ``shape`` and ``dtype`` (each a value or a strategy; a shape may be one number).

    An array is zeros, ones, a ramp, equal values, one-hot rows or random numbers, with ``awkward`` also nothing but
    awkward values (`awkward_values`), or a few of them strewn in. All finite values lie in ``low`` .. ``high``, but
    for bool and packed dtypes, which have no bounds; without bounds random floats have a normal distribution of mean 0
    and deviation 1, random integers any bits. ``allow_nan`` and ``allow_infinity``: whether such awkward values may
    come. float8_e8m0fnu has powers of two only, with 1 for zero. Drawing costs the same for large arrays as for small
    ones: what is drawn is a pattern and a seed. Shrinks to the smallest shape, then to zeros (or the value nearest to 0
    within the bounds).

    UnknownDType (a ValueError) for what is no dtype of NKI. ValueError if ``low`` exceeds ``high``, and at the draw if
    the dtype has no value near a bound.
    """
    if low is not None and high is not None and low > high:
        raise ValueError(f"low: must not be more than high, they are {low} and {high}")
    if not isinstance(dtype, st.SearchStrategy):
        as_dtype(dtype)  # a mistake is reported where it is made
    bounds = (low, high)

    @st.composite
    def drawn(draw: st.DrawFn) -> Array:
        sizes = drawn_shape(draw, shape)
        found = as_dtype(draw(dtype) if isinstance(dtype, st.SearchStrategy) else dtype)
        special = _kept(awkward_values(found), bounds, nan=allow_nan, infinity=allow_infinity) if awkward else None
        names = [*_PATTERNS, *(["awkward"] if special is not None and special.size else [])]
        pattern = draw(st.sampled_from(names))
        if special is None or pattern != "awkward":
            random = np.random.default_rng(draw(st.integers(0, 2**16)) if pattern == "random" else 0)
            array = _in_bounds(_PATTERNS[pattern](random, sizes, found), found, bounds)
        else:
            # One after the other and no dice: what fails shrinks to one element, the value that does it.
            first = draw(st.integers(0, special.size - 1))
            array = special[(first + np.arange(math.prod(sizes))) % special.size].reshape(sizes)
        if special is not None and special.size and array.size:
            strew(draw, array, special)
        return array

    return drawn()


def drawn_shape(draw: st.DrawFn, shape: Any) -> tuple[int, ...]:
    """Return the sizes of a shape: a value, a strategy, or one number."""
    sizes = draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    return (sizes,) if isinstance(sizes, int) else tuple(sizes)


def strew(draw: st.DrawFn, array: Array, values: Array) -> None:
    """Put a few of ``values``, which are numbers or rows, anywhere."""
    flat = array.reshape(-1, *values.shape[1:])
    places = st.tuples(st.integers(0, len(flat) - 1), st.integers(0, len(values) - 1))
    for place, value in draw(st.lists(places, max_size=STREWN)):
        flat[place] = values[value]


def _cast(numbers: Array, dtype: DType) -> Array:
    """Numbers as elements of ``dtype``: of packed ones their bits, of others the nearest value."""
    if dtype.kind == "packed":
        return np.asarray(numbers).astype(f"i{dtype.itemsize}").view(dtype.dtype)
    if dtype is float8_e8m0fnu:  # powers of two only: the number is the exponent
        numbers = np.exp2(np.clip(np.round(numbers), -126, 126))
    return _rounded(numbers, dtype)


def _rounded(numbers: npt.ArrayLike, dtype: DType) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(numbers).astype(dtype.dtype)


def _one_hot(_: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    hot: Array = np.zeros((math.prod(shape[:-1]), shape[-1] if shape else 1))
    rows = np.arange(len(hot))
    if hot.size:
        hot[rows, rows % hot.shape[1]] = 1
    return _cast(hot.reshape(shape), dtype)


def _random(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    if dtype.is_float:
        return _cast(random.standard_normal(shape), dtype)
    if dtype.kind == "bool":
        return random.random(shape) < 0.5
    size = dtype.itemsize
    return np.frombuffer(random.bytes(math.prod(shape) * size), dtype.dtype).reshape(shape).copy()


_PATTERNS: dict[str, Callable[[Any, tuple[int, ...], DType], Array]] = {
    "zeros": lambda _, shape, dtype: _cast(np.zeros(shape), dtype),
    "ones": lambda _, shape, dtype: _cast(np.ones(shape), dtype),
    "ramp": lambda _, shape, dtype: _cast((np.arange(math.prod(shape)) % 100).reshape(shape), dtype),
    "equal": lambda _, shape, dtype: _cast(np.full(shape, 3), dtype),
    "one-hot": _one_hot,
    "random": _random,
}


def _kept(values: Array, bounds: tuple[float | None, float | None], *, nan: bool, infinity: bool) -> Array:
    """Return the values that the caller can do with."""
    if values.dtype.names or values.dtype == np.bool_:
        return values
    numbers = values.astype(np.float64)
    keep = np.isnan(numbers) & nan | np.isinf(numbers) & infinity | np.isfinite(numbers)
    low, high = bounds
    finite = np.isfinite(numbers)
    keep &= ~finite | (numbers >= (-np.inf if low is None else low)) & (numbers <= (np.inf if high is None else high))
    return np.asarray(values[keep])


def _in_bounds(array: Array, dtype: DType, bounds: tuple[float | None, float | None]) -> Array:
    """Every value in its bounds."""
    low, high = bounds
    if (low is None and high is None) or dtype.kind in ("packed", "bool"):
        return array
    cast = _rounded(np.clip(array.astype(np.float64), low, high), dtype)
    inside = _kept(cast.ravel(), bounds, nan=False, infinity=False)
    if inside.size != cast.size:
        raise ValueError(f"{dtype} has no value near a bound of {low} .. {high}; choose bounds that it has")
    return cast
