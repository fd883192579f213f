"""Operands that share bytes by their addresses: each is read as it was before the instruction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import inside
from tests.isa.oracles import sample

X = sample((32, 8), seed=1)

# The call, and the bytes at which its destination, data and vectors begin (apart: no two overlap).
CALLS: dict[str, tuple[Callable[..., Any], tuple[int, int, int, int]]] = {
    "tensor_scalar": (
        lambda dst, x, a, b: nisa.tensor_scalar(dst, x, nl.multiply, a, op1=nl.add, operand1=b),
        (0, 64, 4, 28),
    ),
    "tensor_scalar, shifted": (
        lambda dst, x, a, b: nisa.tensor_scalar(dst, x, nl.subtract, a, True, nl.add, b),
        (4, 0, 64, 12),
    ),
    "activation": (lambda dst, x, a, b: nisa.activation(dst, nl.square, x, b, a), (0, 64, 4, 28)),
    "activation, shifted": (lambda dst, x, a, b: nisa.activation(dst, nl.tanh, x, b, a), (4, 0, 4, 16)),
    "tensor_tensor": (lambda dst, x, a, b: nisa.tensor_tensor(dst, x, x, nl.add), (4, 0, 64, 68)),
    "tensor_tensor of functions": (lambda dst, x, a, b: nisa.tensor_tensor(dst, x, x, nl.logical_xor), (4, 0, 64, 68)),
    "tensor_copy": (lambda dst, x, a, b: nisa.tensor_copy(dst, x), (8, 0, 64, 68)),
    "reciprocal": (lambda dst, x, a, b: nisa.reciprocal(dst, x), (4, 0, 64, 68)),
}


def computed(call: Callable[..., Any], places: tuple[int, int, int, int]) -> np.ndarray:
    """The destination after the call, with operands at these bytes of each partition, all from one memory image."""

    def body() -> np.ndarray:
        dst, x = (nl.ndarray((32, 8), nl.float32, address=(0, byte)) for byte in places[:2])
        vectors = [nl.ndarray((32, 1), nl.float32, address=(0, byte)) for byte in places[2:]]
        everything = nl.ndarray((32, 64), nl.float32, address=(0, 0))
        nisa.memset(everything, 0.5)
        x.array[...] = X
        for tensor in (dst, x, *vectors):
            tensor.storage.full = True  # as if one instruction had written them all: no lifetime ends (NK204)
        operands = [np.array(tensor.array) for tensor in (x, *vectors)]
        call(dst, x, *vectors)
        result = np.array(dst.array)
        apart = [nl.ndarray(each.shape, nl.float32) for each in (result, *operands)]
        for tensor, values in zip(apart, (result, *operands), strict=True):
            tensor.array[...] = values
            tensor.storage.mark_written(tensor.layout, tensor.byte_offset)
        call(*apart)
        np.testing.assert_array_equal(result, apart[0].array)
        return result

    values: np.ndarray = inside(body)
    return values


@pytest.mark.parametrize("name", CALLS)
def test_operands_in_the_destination_are_read_before_they_are_overwritten(name: str) -> None:
    """The result is that of operands which share nothing."""
    call, places = CALLS[name]
    assert np.isfinite(computed(call, places)).any()
