"""The computation of element-wise operators: in float32, in exact 32-bit integers, or on bits.

Each function here makes the ``compute(destination, data, *operands)`` of a plan. Full-size operands may have other free
dimensions than the first (equally many elements per partition); they are brought into its shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType, float32
from nkitools.chip.numerics import Array, to_float32, working
from nkitools.engines.cast_on_write import like, put, widened
from nkitools.engines.operators import Operator
from nkitools.facts.kept import Kept

# Native integer arithmetic has no such operator: these are computed in float64, which holds every 32-bit integer.
_NOT_INTEGER = frozenset({"divide", "power", "rsqrt", "reciprocal"})

# NumPy has vector instructions for these beside an array, but none beside a number: a row of numbers is 2 times faster.
_QUICK_ROWS = (np.maximum, np.minimum)
_WIDE = 64  # elements


Step = Callable[[Any, Any, Array], Any]
Operand = Array | float | None  # a tile, a vector or a number; None beside an operator of one operand


def negate(values: Array) -> None:
    """Negate the elements of an array in place, whatever its strides.

    ``np.negative(x, out=x)`` of NumPy 2.4 leaves wrong elements where two elements of ``x`` are 16 bytes apart (64 for
    elements of 8 bytes) and ``out`` is not dense. Its result in memory of its own is right.
    """
    if values.flags.c_contiguous:
        np.negative(values, out=values)
    else:
        np.copyto(values, np.negative(values))


def direct(operator: Operator) -> Callable[..., None]:
    """All operands float32 and of one shape: straight into the destination."""
    function = operator.compute

    def compute(destination: Array, first: Array, second: Array) -> None:
        function(first, second, out=destination)

    return compute


def converted(operator: Operator, dtype: DType, shape: tuple[int, ...]) -> Callable[..., None]:
    """In float32, cast once on write."""
    return _aligned(widened(operator.compute, dtype, shape), shape)


def exact(operator: Operator, dtype: DType, shape: tuple[int, ...]) -> Callable[..., None]:
    """int32 and uint32 in native integer arithmetic: results wrap, comparisons and logical operators give 0 or 1."""
    function = operator.compute
    working = working_dtype((operator,), ())

    def natively(destination: Array, first: Array, second: Array) -> None:
        out = np.empty(shape, dtype.dtype)
        function(first, second, out=out, casting="unsafe")
        np.copyto(destination, out.reshape(destination.shape))

    def widely(destination: Array, first: Array, second: Array) -> None:
        out = np.empty(shape, working)
        function(first.astype(working), second.astype(working), out=out)
        _put_wrapped(destination, out, dtype)

    is_native = isinstance(function, np.ufunc) and working is np.int64
    return _aligned(natively if is_native else widely, shape)


def bitvec(operator: Operator, dtype: DType, shape: tuple[int, ...]) -> Callable[..., None]:
    """On the bits of both tiles."""

    def compute(destination: Array, first: Array, second: Array) -> None:
        left = bits(first, dtype)
        out = np.empty(shape, left.dtype)
        operator.compute(left, bits(second, dtype), out=out)
        put_bits(destination, out, dtype)

    return _aligned(compute, shape)


def _aligned(compute: Callable[..., None], shape: tuple[int, ...]) -> Callable[..., None]:
    def aligned(destination: Array, first: Array, second: Array) -> None:
        compute(destination, like(first, shape), like(second, shape))

    return aligned


def _put_wrapped(destination: Array, values: Array, dtype: DType) -> None:
    """Write integers modulo the destination's width (from float64: rounded and saturated)."""
    if values.dtype == np.float64:
        put(destination, values, dtype)
    else:
        np.copyto(destination, values.astype(dtype.dtype).reshape(destination.shape))


def bits(value: Array | int, dtype: DType) -> Array:
    """Return the bits of a tile or an integer as unsigned integers of ``dtype``'s width, extended where narrower."""
    width = dtype.itemsize
    holder = np.dtype(f"u{width}")
    if isinstance(value, np.ndarray):
        return value.astype(dtype.dtype, copy=False).view(holder)
    return np.asarray(int(value) & ((1 << 8 * width) - 1), holder)


def put_bits(destination: Array, values: Array, dtype: DType) -> None:
    """Write unsigned integers of ``dtype``'s width as they are; a bool is true where any bit is set."""
    result = values != 0 if dtype.kind == "bool" else values.view(dtype.dtype)
    np.copyto(destination, result.reshape(destination.shape))


def steps_of(first: Operator, second: Operator | None, reverse0: bool, reverse1: bool) -> tuple[Step, ...]:
    """One function (value, operand, out) for each operator."""
    pairs = ((first, reverse0), (second, reverse1))
    return tuple(_step(operator, reverse) for operator, reverse in pairs if operator is not None)


def _step(operator: Operator, reverse: bool) -> Step:
    function = operator.compute
    if function in _QUICK_ROWS:
        function = partial(_beside_a_row, function)
    if operator.unary:
        return lambda value, operand, out: function(value, out=out)
    if reverse and operator.name != "bypass":
        return lambda value, operand, out: function(operand, value, out=out)
    if isinstance(function, np.ufunc):
        return function  # which takes them in this order
    return lambda value, operand, out: function(value, operand, out=out)


def _beside_a_row(function: np.ufunc, first: Any, second: Any, out: Array) -> None:
    """Compute ``function``; a number beside a wide array becomes a row, with the same results."""
    if out.ndim and out.shape[-1] >= _WIDE:
        first, second = (np.full(out.shape[-1], x) if x.__class__ is np.float32 else x for x in (first, second))
    function(first, second, out=out)


_arrays = Kept[float, Array]("numbers that instructions were given, as arrays", 1024, "a kernel has a few")


def _array_of(number: float) -> Any:
    """Return a number as float32: an array without dimensions, which takes a ufunc half of the time of a scalar.

    Zeros, as two of them are equal, and what float32 does not hold (which is to be noticed each time) are scalars.
    """
    known = _arrays.get(number)
    if known is not None:
        return known
    found = np.float32(number)
    if found and np.isfinite(found):
        _arrays[number] = np.array(found)
    return found


def steps_in_place(steps: tuple[Step, ...], ndim: int) -> Callable[..., None]:
    """All in float32: the first step writes the destination, the second works on it.

    NumPy takes care of a destination that overlaps what a step reads; only the second operand must be put aside.
    """
    given = [broadcast_for(step, ndim) for step in steps]
    if len(steps) == 1:
        (only,), (given0,) = steps, given

        def single(destination: Array, data: Array, operand0: Operand, operand1: Operand = None) -> None:
            only(data, given0(operand0), destination)

        return single
    (first, second), (given0, given1) = steps, given

    def double(destination: Array, data: Array, operand0: Operand, operand1: Operand) -> None:
        later = given1(operand1)
        if isinstance(operand1, np.ndarray):
            later = later.copy()  # it may lie in the destination
        first(data, given0(operand0), destination)
        second(destination, later, destination)

    return double


def steps_in_float32(steps: tuple[Step, ...], dtype: DType, shape: tuple[int, ...]) -> Callable[..., None]:
    """Return the steps in float32, the result cast once."""

    in_one = steps_in_place(steps, len(shape))

    def compute(destination: Array, data: Array, *operands: Any) -> None:
        if dtype is float32 and destination.shape == shape:
            in_one(destination, to_float32(data), *operands)
            return
        out = np.empty(shape, working(destination, data))
        in_one(out, to_float32(data), *operands)
        put(destination, out, dtype)

    return compute


def steps_in_integers(
    steps: tuple[Step, ...], dtype: DType, shape: tuple[int, ...], working: type[np.generic]
) -> Callable[..., None]:
    """Return the steps in 64 bits, the result cut to the 32 of ``dtype`` as native arithmetic does it."""

    def compute(destination: Array, data: Array, *operands: Any) -> None:
        value: Array = data.astype(working)
        out = np.empty(shape, working)
        for step, operand in zip(steps, operands, strict=False):
            step(value, None if operand is None else column(np.asarray(operand, working), len(shape)), out)
            value = out
        _put_wrapped(destination, out, dtype)

    return compute


def working_dtype(operators: tuple[Operator, ...], operands: tuple[Any, ...]) -> Any:
    """int64, or float64 where an operator or a number among the operands is not one of integers."""
    fractional = any(isinstance(operand, (float, np.floating)) for operand in operands)
    return np.float64 if fractional or any(each.name in _NOT_INTEGER for each in operators) else np.int64


def steps_in_float64(steps: tuple[Step, ...], shape: tuple[int, ...]) -> Callable[..., Array]:
    """Return the steps in float64, which holds every 32-bit integer; the function returns the results."""

    def compute(data: Array, *operands: Operand) -> Array:
        value: Array = data.astype(np.float64)
        out = np.empty(shape, np.float64)
        for step, operand in zip(steps, operands, strict=False):
            # A float is what float32 makes of it; an integer is meant as it stands.
            given = np.float32(operand) if isinstance(operand, (float, np.floating)) else operand
            step(value, None if given is None else _beside(np.asarray(given, np.float64), shape), out)
            value = out
        return out

    return compute


def _beside(operand: Array, shape: tuple[int, ...]) -> Array:
    """Return a tile of as many elements in the shape; a number or vector so that it broadcasts."""
    tile: Array = operand.reshape(shape) if operand.size == math.prod(shape) else column(operand, len(shape))
    return tile


def in_float64(function: Callable[..., Any], shape: tuple[int, ...]) -> Callable[..., Array]:
    """Return ``function(*operands, out=)`` in float64."""

    def compute(*operands: Array) -> Array:
        out = np.empty(shape, np.float64)
        function(*(like(each, shape).astype(np.float64) for each in operands), out=out)
        return out

    return compute


def steps_on_bits(steps: tuple[Step, ...], dtype: DType, shape: tuple[int, ...]) -> Callable[..., None]:
    """Return the steps on bits."""

    def compute(destination: Array, data: Array, *operands: Any) -> None:
        value = bits(data, dtype)
        out = np.empty(shape, value.dtype)
        for step, operand in zip(steps, operands, strict=False):
            step(value, None if operand is None else column(bits(operand, dtype), len(shape)), out)
            value = out
        put_bits(destination, out, dtype)

    return compute


def broadcast(operand: Any, ndim: int) -> Any:
    """Return a number or vector in float32, so that it broadcasts over the free dimensions."""
    if isinstance(operand, np.ndarray):
        return column(to_float32(operand), ndim)
    return None if operand is None else np.float32(operand)


def broadcast_for(step: Step, ndim: int) -> Callable[[Any], Any]:
    """Return `broadcast` for the operands of a step, which gives them numbers in the form that it takes soonest."""
    if not isinstance(step, np.ufunc):
        return partial(broadcast, ndim=ndim)
    return lambda operand: _array_of(operand) if operand.__class__ is float else broadcast(operand, ndim)


def column(operand: Array, ndim: int) -> Any:
    """Return a (partitions, 1) vector so that it broadcasts over all free dimensions; numbers as they are."""
    if operand.ndim in (0, ndim):
        return operand
    return operand.reshape(operand.shape[0], *[1] * (ndim - 1))
