"""The errors of an instruction in a shadow run that is to show how far errors spread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.chip.rounding_noise import RoundingNoise
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.plan import WRITTEN

_EXACT = ("dma", "tensor_copy", "nc_transpose", "load", "store", "memset", "iota")
"""The beginnings of the names of instructions that keep values as they are, where dtypes are equal."""


def with_sum_errors(noise: RoundingNoise, call: CarefulCall, arrays: list[Any]) -> list[Any]:
    """Return the operands of an instruction with the errors that its sums have."""
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
    """Return how many elements of an operand are summed into one: of a matmul its partitions."""
    if call.plan.name.startswith("nc_matmul"):
        return float(seen.shape[0])
    return seen.array.size / made if made else 1.0


def _is_exact(call: CarefulCall, written: Any) -> bool:
    dtypes = {value.dtype for value, _, role in call.data if role not in WRITTEN and hasattr(value, "dtype")}
    return call.plan.name.startswith(_EXACT) and dtypes <= {written.dtype}


def _is_float64(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype == np.float64
