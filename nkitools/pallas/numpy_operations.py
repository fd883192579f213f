"""The operations of JAX by NumPy, of values that are NumPy's: each takes the operands and the parameters of JAX's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nkitools.pallas.jax_types import Array

Values = Sequence[Any]


def dot_general(values: Values, dimension_numbers: Any, **_: Any) -> Array:
    """Return products of matrices, narrow floats summed in float32."""
    (left_summed, right_summed), (left_batch, right_batch) = dimension_numbers
    left, right = (each.astype(np.float32) if each.dtype.kind == "V" or each.itemsize == 2 else each for each in values)
    left, rows = _as_matrices(left, left_batch, left_summed)
    right, columns = _as_matrices(right, right_batch, right_summed)
    batch = tuple(values[0].shape[each] for each in left_batch)
    return np.asarray(np.matmul(left, np.swapaxes(right, 1, 2))).reshape(*batch, *rows, *columns)


def _as_matrices(array: Array, batch: Sequence[int], summed: Sequence[int]) -> tuple[Array, tuple[int, ...]]:
    """Return an array as [batch, own, summed], and the sizes of its own dimensions."""
    own = [each for each in range(array.ndim) if each not in (*batch, *summed)]
    sizes = [tuple(array.shape[each] for each in axes) for axes in (batch, own, summed)]
    return array.transpose(*batch, *own, *summed).reshape([math.prod(each) for each in sizes]), sizes[1]


def gather(values: Values, dimension_numbers: Any, slice_sizes: Sequence[int], **_: Any) -> Array:
    """Return slices of an array that begin at given indices, which are kept inside of it."""
    array, starts = values
    numbers = dimension_numbers
    rank = starts.ndim - 1 + len(numbers.offset_dims)
    batch = [each for each in range(rank) if each not in numbers.offset_dims]
    offsets, index = iter(numbers.offset_dims), []
    for axis, size in enumerate(slice_sizes):
        place: Any = 0
        if axis in numbers.start_index_map:
            first = starts[..., numbers.start_index_map.index(axis)]
            place = _along(np.clip(first, 0, array.shape[axis] - size), batch, rank)
        if axis in numbers.operand_batching_dims:
            own = numbers.start_indices_batching_dims[numbers.operand_batching_dims.index(axis)]
            place = _along(np.arange(array.shape[axis]), [batch[own]], rank)
        elif axis not in numbers.collapsed_slice_dims:
            place = place + _along(np.arange(size), [next(offsets)], rank)
        index.append(place)
    return np.asarray(array[tuple(index)])


def _along(array: Array, axes: Sequence[int], rank: int) -> Array:
    """Return an array of some rank with its own dimensions along some axes."""
    sizes = [1] * rank
    for axis, size in zip(axes, array.shape, strict=True):
        sizes[axis] = size
    return array.reshape(sizes)


def start_inside(starts: Values, sizes: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    """Return a slice that begins so early that it ends inside of an array."""
    firsts = [min(max(int(each), 0), most - size) for each, size, most in zip(starts, sizes, shape, strict=True)]
    return tuple(slice(first, first + size) for first, size in zip(firsts, sizes, strict=True))


def dynamic_slice(values: Values, slice_sizes: Sequence[int], **_: Any) -> Array:
    """Return a part of an array."""
    array, *starts = values
    return np.asarray(array[start_inside(starts, slice_sizes, array.shape)])


def dynamic_update_slice(values: Values, **_: Any) -> Array:
    """Return an array with another part."""
    array, part, *starts = values
    found = np.array(array)
    found[start_inside(starts, part.shape, array.shape)] = part
    return found


def broadcast_in_dim(values: Values, shape: Sequence[int], broadcast_dimensions: Sequence[int], **_: Any) -> Array:
    """Return an array of more, or longer, dimensions."""
    return np.broadcast_to(_along(np.asarray(values[0]), broadcast_dimensions, len(shape)), shape)


def pad(values: Values, padding_config: Sequence[tuple[int, int, int]], **_: Any) -> Array:
    """Return an array with more, or fewer, elements at its ends, and with others between its own."""
    array, value = values
    spread = [size + max(size - 1, 0) * inner for size, (_, _, inner) in zip(array.shape, padding_config, strict=True)]
    before, after = ([max(each[side], 0) for each in padding_config] for side in (0, 1))
    sizes = [first + size + last for first, size, last in zip(before, spread, after, strict=True)]
    found = np.full(sizes, value, array.dtype)
    places = zip(before, spread, padding_config, strict=True)
    found[tuple(slice(first, first + size, inner + 1) for first, size, (_, _, inner) in places)] = array
    ends = zip(sizes, padding_config, strict=True)
    return found[tuple(slice(max(-low, 0), size - max(-high, 0)) for size, (low, high, _) in ends)]


def select_n(values: Values, **_: Any) -> Any:
    """Return elements of one of several arrays."""
    which, *cases = values
    return np.where(which, cases[1], cases[0]) if len(cases) == 2 else np.choose(which, cases)


def sort(values: Values, dimension: int, num_keys: int, **_: Any) -> list[Array]:
    """Return arrays in the order of the first of them."""
    if num_keys != 1:
        raise NotImplementedError("sort by several keys")
    order = np.argsort(values[0], axis=dimension, kind="stable")
    return [np.take_along_axis(each, order, dimension) for each in values]


def split(values: Values, sizes: Sequence[int], axis: int, **_: Any) -> list[Array]:
    """Return the parts of an array."""
    return list(np.split(values[0], np.cumsum(sizes)[:-1], axis))


def quotient(values: Values, **_: Any) -> Any:
    """Return a quotient; of integers the one that is rounded towards zero."""
    first, second = values
    if first.dtype.kind not in "iu":
        return first / second
    return (first - np.fmod(first, second)) // np.where(second == 0, 1, second)


def shift_right_logical(values: Values, **_: Any) -> Any:
    """Return integers moved to the right, zeros in front."""
    first, second = values
    unsigned = f"u{first.dtype.itemsize}"
    return (first.view(unsigned) >> second.view(unsigned)).view(first.dtype)


def bitcast_convert_type(values: Values, new_dtype: Any, **_: Any) -> Array:
    """Return the bits of an array as another dtype of the same size."""
    array = np.ascontiguousarray(values[0])
    if array.itemsize != np.dtype(new_dtype).itemsize:
        raise NotImplementedError("bits as a dtype of another size")
    return np.asarray(array.view(new_dtype)).reshape(np.shape(values[0]))


def reduce_precision(values: Values, exponent_bits: int, mantissa_bits: int, **_: Any) -> Array:
    """Return numbers rounded to bfloat16 or float16."""
    from ml_dtypes import bfloat16

    narrow: Any = {(8, 7): bfloat16, (5, 10): np.float16, (8, 23): np.float32}[exponent_bits, mantissa_bits]
    return np.asarray(values[0]).astype(narrow).astype(values[0].dtype)


def _elementwise(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda values, **_: function(*values)


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda values, axes, **_: function(values[0], axis=tuple(axes))


def _summed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a sum from the start, or from the end, along an axis."""

    def operation(values: Values, axis: int, reverse: bool, **_: Any) -> Any:
        array = np.flip(values[0], axis) if reverse else values[0]
        found = function(array, axis=axis)
        return np.flip(found, axis) if reverse else found

    return operation


def _place(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda values, axes, **_: function(values[0], axis=axes[0])


_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "sign": np.sign, "nextafter": np.nextafter, "floor": np.floor, "ceil": np.ceil,
    "is_finite": np.isfinite, "exp": np.exp, "exp2": np.exp2, "log": np.log, "expm1": np.expm1, "log1p": np.log1p,
    "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "abs": np.abs, "sqrt": np.sqrt, "cbrt": np.cbrt, "square": np.square, "pow": np.power,
    "not": np.invert, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "add": np.add,
    "sub": np.subtract, "mul": np.multiply, "rem": np.fmod, "max": np.maximum, "min": np.minimum,
    "add_any": np.add, "shift_left": np.left_shift, "shift_right_arithmetic": np.right_shift, "eq": np.equal,
    "ne": np.not_equal, "ge": np.greater_equal, "gt": np.greater, "le": np.less_equal, "lt": np.less,
    "logistic": lambda x: 1 / (1 + np.exp(-x)), "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": np.reciprocal,
    "erf": np.vectorize(math.erf, otypes=[np.float64]), "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
}  # fmt: skip
_REDUCED = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "or": np.bitwise_or,
    "and": np.bitwise_and, "xor": np.bitwise_xor,
}  # fmt: skip
_SUMMED = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum}
_AS_IT_IS = (
    "copy", "copy_p", "device_put", "multiple_of", "stop_gradient", "add_dependency", "sharding_constraint",
    "with_memory_space_constraint", "optimization_barrier", "remove_memory_space", "pvary",
)  # fmt: skip

OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: _elementwise(function) for name, function in _ELEMENTWISE.items()},
    **{f"reduce_{name}": _reduced(function.reduce) for name, function in _REDUCED.items()},
    **{name: _summed(function.accumulate) for name, function in _SUMMED.items()},
    **{name: lambda values, **_: values[0] for name in _AS_IT_IS},
    "argmax": _place(np.argmax),
    "argmin": _place(np.argmin),
    "bitcast_convert_type": bitcast_convert_type,
    "broadcast_in_dim": broadcast_in_dim,
    "broadcast_to": lambda values, shape, **_: np.broadcast_to(values[0], shape),
    "concatenate": lambda values, dimension, **_: np.concatenate(values, dimension),
    "div": quotient,
    "dot_general": dot_general,
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
    "gather": gather,
    "integer_pow": lambda values, y, **_: values[0] ** y if y >= 0 else 1 / values[0] ** -y,
    "iota": lambda values, shape, dimension, **_: np.broadcast_to(
        _along(np.arange(shape[dimension]), [dimension], len(shape)), shape
    ),
    "pad": pad,
    "reduce_precision": reduce_precision,
    "reshape": lambda values, new_sizes, **_: np.reshape(values[0], new_sizes),
    "rev": lambda values, dimensions, **_: np.flip(values[0], dimensions),
    "roll": lambda values, axis, **_: np.roll(values[0], int(values[1]), axis),
    "round": lambda values, rounding_method, **_: (
        np.rint(values[0]) if int(rounding_method) else np.trunc(values[0] + np.copysign(0.5, values[0]))
    ),
    "select_n": select_n,
    "shift_right_logical": shift_right_logical,
    "slice": lambda values, start_indices, limit_indices, strides, **_: values[0][
        tuple(map(slice, start_indices, limit_indices, strides or [None] * len(start_indices)))
    ],
    "sort": sort,
    "split": split,
    "squeeze": lambda values, dimensions, **_: np.squeeze(values[0], tuple(dimensions)),
    "tile": lambda values, reps, **_: np.tile(values[0], reps),
    "transpose": lambda values, permutation, **_: np.transpose(values[0], permutation),
}
"""By the names of JAX's primitives. Results may have a dtype of NumPy's choice."""
