"""Microscaling (MX) numbers in packed x4 elements and scales: decoded for a matmul, and made of 16-bit floats.

A group is 8 partitions x 4 elements of each, which lie in one packed element, and has one E8M0 scale: code ``s`` stands
for 2**(s - 127), 255 for NaN. Source: OCP Microscaling Formats (MX) v1.0; nki.isa.quantize_mx (NKI 0.6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from nkitools.chip.dtypes import DType, float4_e2m1fn_x4, float8_e4m3fn_x4, float8_e5m2_x4
from nkitools.chip.narrow_floats import upper_halves
from nkitools.chip.numerics import Array, to_float32

GROUP_PARTITIONS = 8
GROUP_ELEMENTS = 4  # of each partition: those of one packed element
_NAN_SCALE = 255
_BIAS = 127


@dataclass(frozen=True)
class Format:
    """An element format: its dtype, and the exponent and value of its largest number."""

    element: type[np.generic]
    largest_exponent: int
    largest: float

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return 4 if self.element is ml_dtypes.float4_e2m1fn else 8

    @property
    def first_wide_scale(self) -> int:
        """The first scale with which the largest element passes float32's largest number."""
        return _BIAS + 128 - self.largest_exponent


FORMATS: dict[DType, Format] = {
    float8_e5m2_x4: Format(ml_dtypes.float8_e5m2, 15, 57344.0),
    float8_e4m3fn_x4: Format(ml_dtypes.float8_e4m3fn, 8, 448.0),
    float4_e2m1fn_x4: Format(ml_dtypes.float4_e2m1fn, 2, 6.0),
}


def _value_table(form: Format) -> Array:
    codes = np.arange(2**form.bits, dtype=np.uint8)
    return codes.view(form.element).astype(np.float64)


def _code_table(form: Format) -> Array:
    """Return the code of each float32 whose lower 16 bits are zero: nearest even, saturated; NaN stays NaN."""
    upper = np.arange(2**16, dtype=np.uint16).view(ml_dtypes.bfloat16).astype(np.float32)
    with np.errstate(invalid="ignore"):
        codes: Array = np.clip(upper, -form.largest, form.largest).astype(form.element).view(np.uint8)
    return codes


_VALUES = {
    precision: {form: _value_table(form).astype(precision) for form in FORMATS.values()}
    for precision in (np.float32, np.float64)
}
_SCALES = {
    precision: np.append(np.ldexp(precision(1), np.arange(_NAN_SCALE) - _BIAS), precision(np.nan)).astype(precision)
    for precision in (np.float32, np.float64)
}
_CODES = {form: _code_table(form) for form in FORMATS.values() if form.bits == 8}


def is_wide(form: Format, scales: Array) -> bool:
    """Return whether some element, times its scale, may lie beyond float32 (which the product of two need not do)."""
    first = form.first_wide_scale
    return bool(scales.max() >= first and ((scales >= first) & (scales != _NAN_SCALE)).any())


def decoded(form: Format, values: Array, scales: Array, precision: type[np.floating[Any]]) -> Array:
    """Packed elements (partitions, F) times their scales (partitions // 8, F): (4 * partitions, F), exact.

    Row ``4 * p + i`` has element ``i`` of partition ``p``.
    """
    partitions, free = values.shape[0], scales.shape[1]
    numbers = np.empty((partitions, GROUP_ELEMENTS, free), precision)
    # Tables are eight times as fast as the casts of ml_dtypes; the mode saves a look at bounds that all codes keep.
    np.take(_VALUES[precision][form], _codes(form, values, free), out=numbers, mode="clip")
    groups = numbers.reshape(partitions // GROUP_PARTITIONS, -1, free)
    groups *= np.take(_SCALES[precision], scales)[:, None]
    return numbers.reshape(-1, free)


def _codes(form: Format, values: Array, free: int) -> Array:
    """Return the codes of packed elements as uint8 (partitions, 4, F); element 0 has the lowest bits."""
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(values.shape[0], free, -1).transpose(0, 2, 1)
    if form.bits == 8:
        return raw
    codes = np.empty((raw.shape[0], GROUP_ELEMENTS, free), np.uint8)
    np.bitwise_and(raw, 15, out=codes[:, 0::2])
    np.right_shift(raw, 4, out=codes[:, 1::2])
    return codes


def quantized(form: Format, values: Array) -> tuple[Array, Array]:
    """Return the codes of elements, uint8 (partitions, F), and of their scales, (partitions // 8, F // 4).

    ``values``: float16 or bfloat16 (partitions, F).
    """
    partitions, free = values.shape
    groups = values.reshape(partitions // GROUP_PARTITIONS, GROUP_PARTITIONS, free)
    scales = np.maximum(_largest_exponents(groups) - (form.largest_exponent - 1), 0)
    inverse = ((2 * _BIAS - scales) << 23).view(np.float32)
    scaled = to_float32(groups)
    scaled *= np.repeat(inverse, GROUP_ELEMENTS, axis=1)[:, None]

    codes = np.take(_CODES[form], upper_halves(scaled), mode="clip").reshape(partitions, free)
    return codes, scales.astype(np.uint8)


def _largest_exponents(groups: Array) -> Array:
    """Return the largest exponent field in float32 of each group, of (groups, 8, F): (groups, F // 4) of int32.

    That of an infinity or NaN is 255, as if it were 2**128; that of zeros and float32's subnormals is 0.
    """
    # The largest int16 is the largest positive number, the largest uint16 the negative one of the largest magnitude.
    positive, negative = groups.view(np.int16).max(axis=1), groups.view(np.uint16).max(axis=1)
    columns = np.maximum(positive, (negative & np.uint16(0x7FFF)).view(np.int16))
    largest = np.maximum.reduce([columns[:, first::GROUP_ELEMENTS] for first in range(GROUP_ELEMENTS)])
    fields = to_float32(largest.view(groups.dtype)).view(np.uint32) >> np.uint32(23)
    return fields.astype(np.int32)
