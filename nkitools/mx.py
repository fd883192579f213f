"""Microscaling (MX) data on the host, for arguments and results of kernels for NeuronCore-v4, and a reference.

A *tile* of values is [P, 4F]: the contraction dimension of a matmul runs along the P partitions and along each four
neighbouring columns. Its groups of 8 partitions x 4 columns have one scale each. Packed, it is a NumPy array [P, F] of
a packed dtype (``nl.float8_e5m2_x4``, ``nl.float8_e4m3fn_x4``, ``nl.float4_e2m1fn_x4``) with scales [P // 8, F] of
float8_e8m0fnu; in SBUF the scales are spread over the quadrants (``spread_scales``). All of these may be arguments of a
kernel; if a framework lacks the dtype, pass ``.view(np.uint32)`` (``np.uint16`` for float4) and reinterpret it in
the kernel with ``.view(nl.float8_e4m3fn_x4)``::

    weights, scales = nkitools.mx.quantize(nkitools.mx.interleave(w), nl.float4_e2m1fn_x4)

Everything is exact (float64) unless it rounds by definition. Wrong shapes, dtypes and values are ValueErrors.
Source: OCP Microscaling Formats (MX) v1.0; nki.isa.quantize_mx and nc_matmul_mx (NKI 0.6).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

from nkitools.chip.dtypes import (
    DType,
    DTypeLike,
    UnknownDType,
    as_dtype,
    float4_e2m1fn_x4,
    float8_e4m3fn_x4,
    float8_e5m2_x4,
)

__all__ = ["dequantize", "gather_scales", "interleave", "matmul", "pack", "quantize", "spread_scales", "unpack"]

Array = npt.NDArray[Any]
Wide = npt.NDArray[np.float64]


class _Element(NamedTuple):
    """An element format (OCP MX v1.0, tables 2 to 4)."""

    dtype: np.dtype[Any]
    largest: float
    largest_exponent: int
    least_exponent: int  # of a normal number
    mantissa_bits: int


_ELEMENTS = {
    float8_e5m2_x4: _Element(np.dtype(ml_dtypes.float8_e5m2), 57344.0, 15, -14, 2),
    float8_e4m3fn_x4: _Element(np.dtype(ml_dtypes.float8_e4m3fn), 448.0, 8, -6, 3),
    float4_e2m1fn_x4: _Element(np.dtype(ml_dtypes.float4_e2m1fn), 6.0, 2, 0, 1),
}
_PACKED = {element.dtype: packed for packed, element in _ELEMENTS.items()}
_SCALE = np.dtype(ml_dtypes.float8_e8m0fnu)
_LEAST, _MOST = -127, 127  # exponents of a scale
_QUADRANT, _SCALES_OF_QUADRANT = 32, 4


def interleave(values: npt.ArrayLike, partitions: int = 128) -> Array:
    """Return a matrix [K, F], contraction first, as a tile [K // 4, 4F]: rows that lie ``partitions`` apart become
    neighbours.

    Each ``4 * partitions`` rows are a tile of their own, and the tiles follow each other; the last one may be shorter.
    K must be a multiple of 4. This is how AWS's guide lays a matmul out; any other order that both operands share
    gives the same product.
    """
    matrix = np.asarray(values)
    if matrix.ndim != 2 or matrix.shape[0] % 4 or partitions < 1:
        raise ValueError(f"interleave takes a matrix whose rows are a multiple of 4, it is given {matrix.shape}")
    rows, columns = matrix.shape
    tiles = [matrix[start : start + 4 * partitions] for start in range(0, rows, 4 * partitions)]
    turned = [tile.reshape(4, -1, columns).transpose(1, 2, 0) for tile in tiles]
    return np.concatenate([tile.reshape(-1, 4 * columns) for tile in turned])


def spread_scales(scales: Array, offset: int = 0) -> Array:
    """Return scales [P // 8, F] as they lie in SBUF, [P, F]: 4 rows in each quadrant of 32, from row ``offset`` on.

    ``offset``: 0, 4, 8 or 12. P must be a multiple of 32. The other rows are ``2**-127`` and are never read.
    """
    codes = _codes_of_scales(scales)
    if codes.shape[0] % _SCALES_OF_QUADRANT:
        raise ValueError(f"scales come by 4 rows, those of 32 partitions; they are {codes.shape}")
    quadrants = codes.reshape(-1, _SCALES_OF_QUADRANT, codes.shape[1])
    spread = np.zeros((len(quadrants), _QUADRANT, codes.shape[1]), np.uint8)
    spread[:, _rows_at(offset)] = quadrants
    return spread.reshape(-1, codes.shape[1]).view(scales.dtype)


def gather_scales(scales: Array, offset: int = 0) -> Array:
    """Return the opposite of ``spread_scales``: [P, F] as it lies in SBUF becomes [P // 8, F]."""
    codes = _codes_of_scales(scales)
    if codes.shape[0] % _QUADRANT:
        raise ValueError(f"scales in SBUF come by quadrants of 32 rows; they are {codes.shape}")
    quadrants = codes.reshape(-1, _QUADRANT, codes.shape[1])[:, _rows_at(offset)]
    return np.ascontiguousarray(quadrants).reshape(-1, codes.shape[1]).view(scales.dtype)


def pack(elements: Array) -> Array:
    """Return elements (..., 4F) of an ml_dtypes float8_e5m2, float8_e4m3fn or float4_e2m1fn packed as (..., F).

    Element 0 of four has the lowest bits.
    """
    packed = _PACKED.get(elements.dtype)
    if packed is None or elements.ndim < 1 or elements.shape[-1] % 4:
        names = ", ".join(map(str, _PACKED))
        raise ValueError(f"pack takes (..., 4F) elements of {names}; it is given {elements.shape} of {elements.dtype}")
    width = 8 * packed.itemsize // 4
    codes = np.ascontiguousarray(elements).view(np.uint8).reshape(*elements.shape[:-1], -1, 4).astype(np.uint32)
    shifted = (codes & (2**width - 1)) << np.arange(0, 4 * width, width, dtype=np.uint32)
    words: Array = np.bitwise_or.reduce(shifted, axis=-1).astype(f"<u{packed.itemsize}")
    return words.view(packed.dtype)


def unpack(packed: Array) -> Array:
    """Return packed elements (..., F) as elements (..., 4F) of their ml_dtypes dtype."""
    dtype = _packed_dtype(packed.dtype)
    width = 8 * dtype.itemsize // 4
    words = np.ascontiguousarray(packed).view(f"<u{dtype.itemsize}").astype(np.uint32)
    codes = (words[..., None] >> np.arange(0, 4 * width, width, dtype=np.uint32)) & (2**width - 1)
    elements: Array = codes.astype(np.uint8).reshape(*packed.shape[:-1], -1)
    return elements.view(_ELEMENTS[dtype].dtype)


def quantize(
    values: npt.ArrayLike, dtype: DTypeLike, rule: Literal["ocp", "quantize_mx"] = "ocp"
) -> tuple[Array, Array]:
    """Return a tile of values [P, 4F] as packed elements [P, F] of ``dtype`` and their scales [P // 8, F].

    ``rule``: "ocp" is the standard's conversion, whose scale is ``2**(floor(log2(max|V|)) - Emax)``; "quantize_mx" is
    what ``nisa.quantize_mx`` does since NKI 0.5, with twice that scale (float8 only). Elements round to nearest even
    and saturate. Scales lie between ``2**-127``, which groups of zeros have, and ``2**127``. P must be a multiple of
    8, and the values must be finite.
    """
    packed = _packed_dtype(dtype)
    tile = _finite_tile(values)
    if rule not in ("ocp", "quantize_mx") or (rule == "quantize_mx" and packed is float4_e2m1fn_x4):
        raise ValueError(f"rule must be 'ocp', or 'quantize_mx' with a float8 dtype; it is {rule!r} with {packed}")
    element = _ELEMENTS[packed]
    groups = tile.reshape(tile.shape[0] // 8, 8, -1, 4)
    largest = np.abs(groups).max(axis=(1, 3))
    exponents = np.frexp(largest)[1] - 1 - element.largest_exponent + (rule == "quantize_mx")
    exponents = np.where(largest == 0, _LEAST, np.clip(exponents, _LEAST, _MOST))
    scaled = np.ldexp(groups, -exponents[:, None, :, None])
    rounded = _rounded(scaled, element.mantissa_bits, element.least_exponent)
    limited = np.clip(rounded, -element.largest, element.largest).astype(np.float32)
    elements = limited.astype(element.dtype).reshape(tile.shape)
    return pack(elements), (exponents - _LEAST).astype(np.uint8).view(_SCALE)


def dequantize(packed: Array, scales: Array) -> Wide:
    """Return the values [P, 4F], float64, of packed elements [P, F] and scales [P // 8, F] (float8_e8m0fnu, or uint8
    codes).

    A scale of 255 makes its group NaN.
    """
    elements = unpack(packed).astype(np.float64)
    codes = _codes_of_scales(scales)
    if packed.ndim != 2 or codes.shape != (packed.shape[0] // 8, packed.shape[1]) or packed.shape[0] % 8:
        raise ValueError(f"packed elements [P, F] have scales [P // 8, F]; they are {packed.shape} and {codes.shape}")
    powers = np.where(codes == 255, np.nan, np.ldexp(1.0, codes.astype(np.int32) + _LEAST))
    return elements * powers.repeat(8, axis=0).repeat(4, axis=1)


def matmul(stationary: Array, moving: Array, stationary_scales: Array, moving_scales: Array) -> Wide:
    """Return ``stationary.T @ moving`` [M, N] in float64, of packed [P, M] and [P, N] with scales [P // 8, ...]."""
    left, right = dequantize(stationary, stationary_scales), dequantize(moving, moving_scales)
    if left.shape[0] != right.shape[0]:
        raise ValueError(f"both operands must have one number of partitions; they are {left.shape} and {right.shape}")
    sides = [each.reshape(len(each), -1, 4).transpose(0, 2, 1).reshape(4 * len(each), -1) for each in (left, right)]
    return sides[0].T @ sides[1]


def _rounded(values: Wide, mantissa_bits: int, least_exponent: int) -> Wide:
    """To the nearest number of so many bits, ties to even; below the least exponent in steps of subnormals."""
    exponents = np.maximum(np.frexp(values)[1] - 1, least_exponent) - mantissa_bits
    rounded: Wide = np.ldexp(np.rint(np.ldexp(values, -exponents)), exponents)
    return rounded


def _packed_dtype(dtype: DTypeLike) -> DType:
    try:
        found = as_dtype(dtype)
    except UnknownDType:
        found = None
    if found not in _ELEMENTS:
        raise ValueError(f"a packed dtype is one of {', '.join(map(str, _ELEMENTS))}; it is {dtype}")
    return found


def _finite_tile(values: npt.ArrayLike) -> Wide:
    tile = np.asarray(values).astype(np.float64)
    if tile.ndim != 2 or tile.shape[0] % 8 or tile.shape[1] % 4 or not tile.size:
        raise ValueError(f"a tile has 8 n rows and 4 m columns; it is {list(tile.shape)}")
    if not np.isfinite(tile).all():
        row, column = (int(axis[0]) for axis in np.nonzero(~np.isfinite(tile)))
        raise ValueError(f"values[{row}, {column}] is {tile[row, column]}; MX has no conversion for it")
    return tile


def _codes_of_scales(scales: Array) -> npt.NDArray[np.uint8]:
    if scales.ndim != 2 or scales.dtype not in (_SCALE, np.dtype(np.uint8)):
        raise ValueError(f"scales are a matrix of float8_e8m0fnu or uint8; it is {scales.shape} of {scales.dtype}")
    return np.ascontiguousarray(scales).view(np.uint8)


def _rows_at(offset: int) -> slice:
    if offset not in (0, 4, 8, 12):
        raise ValueError(f"scales begin at row 0, 4, 8 or 12 of a quadrant, not at {offset}")
    return slice(offset, offset + _SCALES_OF_QUADRANT)
