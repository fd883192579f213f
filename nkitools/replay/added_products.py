"""Products that BLAS itself adds to memory, where that has the bits of a product and a sum after it.

NumPy has no such call. Its own BLAS library is called for it: the same kernels compute the same product, and the sum
stays in the processor's registers.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CDLL, c_float, c_int, c_int64, c_void_p
from functools import cache, lru_cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from nkitools.chip.numerics import Array

_NAMES = ("scipy_cblas_sgemm64_", "cblas_sgemm64_")  # with integers of 64 bits
_ROWS, _AS_IT_LIES, _TRANSPOSED = 101, 111, 112  # cblas.h
_WIDTH = 4  # bytes of a float32

Layout = tuple[int, ...]  # the strides of an array in bytes


@cache
def _sgemm() -> Callable[..., None] | None:
    """Return the single precision product of NumPy's BLAS library; None where no such library is found."""
    for library in ThreadpoolController().select(user_api="blas").lib_controllers:
        if "numpy" not in library.filepath:
            continue
        loaded = CDLL(library.filepath)
        for name in _NAMES:
            found: Any = getattr(loaded, name, None)
            if found is not None:
                sizes, scale, operand = [c_int64] * 3, [c_float], [c_void_p, c_int64]
                found.argtypes = [c_int] * 3 + sizes + scale + operand + operand + scale + operand
                found.restype = None
                return found  # type: ignore[no-any-return]
    return None


def add_product(destination: Array, stationary: Array, moving: Array) -> None:
    """Add ``stationary.T @ moving`` to the destination, all float32 of a layout that `adds_exactly` has found good."""
    sgemm = _sgemm()
    assert sgemm is not None
    contraction, rows = stationary.shape
    # What BLAS multiplies is the transpose of the stationary operand.
    turned, first = _order(stationary.strides)
    order, second = _order(moving.strides)
    sgemm(
        _ROWS, _AS_IT_LIES if turned == _TRANSPOSED else _TRANSPOSED, order, rows, moving.shape[1], contraction,
        1.0, _address(stationary), first, _address(moving), second, 1.0, _address(destination),
        destination.strides[0] // _WIDTH,
    )  # fmt: skip


def _order(strides: Layout) -> tuple[int, int]:
    """Return whether a matrix lies in rows or is the transpose of one that does, and how far its rows are apart."""
    if strides[1] == _WIDTH:
        return _AS_IT_LIES, strides[0] // _WIDTH
    return _TRANSPOSED, strides[1] // _WIDTH


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


@lru_cache(maxsize=1024)
def adds_exactly(
    contraction: int, rows: int, columns: int, destination: Layout, stationary: Layout, moving: Layout
) -> bool:
    """Return whether BLAS adds a product of random operands with the bits of a product and a sum after it.

    ``destination``, ``stationary`` and ``moving``: the strides of the operands.
    """
    shapes = ((rows, columns), (contraction, rows), (contraction, columns))
    layouts = (destination, stationary, moving)
    if not all(_is_good(*each) for each in zip(shapes, layouts, strict=True)):
        return False
    if destination[1] != _WIDTH or _sgemm() is None:
        return False
    random = np.random.default_rng(contraction)
    total, left, right = (_drawn(random, *each) for each in zip(shapes, layouts, strict=True))
    expected = total + np.matmul(left.T, right)
    add_product(total, left, right)
    return np.array_equal(total, expected)


def _is_good(shape: tuple[int, int], strides: Layout) -> bool:
    """Return whether BLAS takes a matrix as it lies: one dimension is dense, and the other one does not overlap it."""
    dense, far = (1, 0) if strides[1] == _WIDTH else (0, 1)
    least = shape[dense] * _WIDTH
    return min(shape) > 1 and strides[dense] == _WIDTH and strides[far] >= least and strides[far] % _WIDTH == 0


def _drawn(random: np.random.Generator, shape: tuple[int, int], strides: Layout) -> Array:
    """Return random numbers in an array of these strides."""
    reach = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + _WIDTH
    array: Array = np.ndarray(shape, np.float32, np.empty(reach, np.uint8), 0, strides)
    array[...] = random.standard_normal(shape, np.float32)
    return array
