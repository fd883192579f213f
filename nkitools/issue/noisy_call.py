"""The errors of an instruction in a shadow run that is to show how far errors spread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.chip.rounding_noise import RoundingNoise
from nkitools.engines.operators import is_operator_name, token_name
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.plan import WRITTEN

_MOVES = (
    "dma", "tensor_copy", "nc_transpose", "load", "store", "memset", "iota", "max8", "nc_find_index8",
    "nc_match_replace8", "topk", "nonzero", "affine_select", "range_select", "select_reduce", "sequence_bounds",
    "local_gather", "nc_n_gather", "nc_stream_shuffle",
)  # fmt: skip
"""The beginnings of the names of instructions that move or choose values, where their operators choose, too."""

_APPLIES = (
    "tensor_reduce", "tensor_tensor", "tensor_scalar", "scalar_tensor_tensor", "tensor_partition_reduce", "nc_vector",
)  # fmt: skip
"""The beginnings of the names of instructions that only apply operators."""

_TRUTH = frozenset({
    "equal", "not_equal", "greater_equal", "greater", "less_equal", "less", "logical_and", "logical_or", "logical_xor",
})  # fmt: skip
_CHOICES = _TRUTH | {
    "maximum", "minimum", "abs_max", "abs_min", "bypass", "abs", "relu", "bitwise_and", "bitwise_or", "bitwise_xor",
    "left_shift", "right_shift", "invert",
}  # fmt: skip
"""Operators that return 0 and 1, or one of their operands: nothing is rounded."""

_QUANTISED = 2.0**-4  # the relative error of a product of two operands that were rounded to 3 bits of mantissa


def with_sum_errors(noise: RoundingNoise, call: CarefulCall, arrays: list[Any]) -> list[Any]:
    """Return the operands of an instruction with the errors that its sums have."""
    if _chooses(call) or all(_is_whole(each) for each in arrays):
        return arrays
    made = max((seen.array.size for _, seen in call.outputs), default=0)
    found = []
    for array, (_, seen, role) in zip(arrays, call.data, strict=True):
        terms = _terms(call, seen, made) if role not in WRITTEN and _is_float64(array) else 1.0
        found.append(noise.summed(array, terms) if terms > 1 else array)
    return found


def add_rounding_errors(noise: RoundingNoise, call: CarefulCall, results: Mapping[int, Array]) -> None:
    """Add the errors of the casts of an instruction, and of its function, to its results."""
    is_function = call.plan.name.startswith("activation") or call.plan.name in ("exponential", "reciprocal")
    for tensor, seen in call.outputs:
        array = results[id(seen)]
        if _is_float64(array) and not _is_exact(call, tensor):
            noise.round(array, tensor.dtype, is_function=is_function)


def _terms(call: CarefulCall, seen: Any, made: int) -> float:
    """Return the number of an operand's elements that are summed into one: for a matmul its partitions."""
    if call.plan.name.startswith("nc_matmul"):
        return float(seen.shape[0])
    return seen.array.size / made if made else 1.0


def add_quantisation_errors(noise: RoundingNoise, call: CarefulCall, results: Mapping[int, Array]) -> None:
    """Add to products of microscaled operands the error that quantising these has made; no shadow holds more digits."""
    if call.plan.name == "nc_matmul_mx":
        for _, seen in call.outputs:
            noise.shift(results[id(seen)], _QUANTISED)


def _is_exact(call: CarefulCall, written: Any) -> bool:
    """Return whether an instruction writes values as they are, or 0 and 1, so that nothing is rounded."""
    if not _chooses(call):
        return False
    operators = _operators(call)
    if operators and operators[-1] in _TRUTH:
        return True
    read = [value.dtype for value, _, role in call.data if role not in WRITTEN and hasattr(value, "dtype")]
    return {dtype for dtype in read if dtype.is_float} <= {written.dtype}


def _chooses(call: CarefulCall) -> bool:
    """Return whether an instruction moves values or chooses among them, and computes none."""
    name, operators = call.plan.name, _operators(call)
    if name.startswith(_APPLIES):
        return bool(operators) and set(operators) <= _CHOICES
    return name.startswith(_MOVES) and set(operators) <= _CHOICES


def _operators(call: CarefulCall) -> list[str]:
    """Return the names of the operators that a call applies."""
    given = zip(call.plan.arguments, call.values, strict=False)
    return [token_name(value) or "" for name, value in given if is_operator_name(name) and value is not None]


def _is_whole(array: Any) -> bool:
    """Return whether an operand holds whole numbers alone, whose sums are exact."""
    with np.errstate(all="ignore"):
        return (
            not isinstance(array, np.ndarray) or array.dtype.names is not None or bool((np.rint(array) == array).all())
        )


def _is_float64(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype == np.float64
