"""Microscaling formats digit by digit, in Python's integers and fractions: slow, and written from the tables alone.

OCP Microscaling Formats (MX) v1.0, tables 2 to 5, and the scale of nki.isa.quantize_mx (NKI 0.6).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import ml_dtypes

import nkitools.dialects.modern.language as nl

Number = Fraction | float  # a float is an infinity or NaN


@dataclass(frozen=True)
class Scalar:
    """An element format: a sign, exponent bits, mantissa bits, and what its largest codes stand for."""

    packed: Any
    element: Any
    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest_exponent: int
    has_infinity: bool = False
    has_nan: bool = False

    @property
    def width(self) -> int:
        """Bits of an element."""
        return 1 + self.exponent_bits + self.mantissa_bits

    def value(self, code: int) -> Number:
        """What a code stands for."""
        fraction = code & (2**self.mantissa_bits - 1)
        exponent = code >> self.mantissa_bits & (2**self.exponent_bits - 1)
        sign = -1 if code >> (self.width - 1) else 1
        all_ones = exponent == 2**self.exponent_bits - 1
        if self.has_infinity and all_ones:
            return math.nan if fraction else sign * math.inf
        if self.has_nan and all_ones and fraction == 2**self.mantissa_bits - 1:
            return math.nan
        digits = fraction if exponent == 0 else fraction + 2**self.mantissa_bits
        return sign * digits * Fraction(2) ** (max(exponent, 1) - self.bias - self.mantissa_bits)

    @cached_property
    def magnitudes(self) -> list[Fraction]:
        """The finite numbers from 0 up; their codes are their places."""
        found = [self.value(code) for code in range(2 ** (self.width - 1))]
        return [each for each in found if isinstance(each, Fraction)]

    @cached_property
    def middles(self) -> list[float]:
        """The numbers half-way from each finite number to the next, exactly: they have one bit more than an element."""
        return [float((low + high) / 2) for low, high in pairwise(self.magnitudes)]

    def nearest(self, value: Fraction | float, *, negative: bool) -> int:
        """The code of the nearest finite number, of two the one whose last bit is 0."""
        code = bisect_left(self.middles, abs(value))
        is_tie = code < len(self.middles) and self.middles[code] == abs(value)
        return (code + (is_tie and code % 2)) | (negative << (self.width - 1))


E5M2 = Scalar(nl.float8_e5m2_x4, ml_dtypes.float8_e5m2, 5, 2, 15, 15, has_infinity=True)
E4M3 = Scalar(nl.float8_e4m3fn_x4, ml_dtypes.float8_e4m3fn, 4, 3, 7, 8, has_nan=True)
E2M1 = Scalar(nl.float4_e2m1fn_x4, ml_dtypes.float4_e2m1fn, 2, 1, 1, 2)
FORMATS = (E5M2, E4M3, E2M1)


def exponent_of(value: Fraction) -> int:
    """floor(log2(value)) of a positive number."""
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= value else exponent - 1


def scale_of(values: Sequence[float], form: Scalar, headroom: int) -> int:
    """The code of a group's scale: headroom 0 is OCP's conversion, 1 that of nisa.quantize_mx."""
    largest = Fraction(max(abs(value) for value in values))
    if not largest:
        return 0
    return min(max(exponent_of(largest) - (form.largest_exponent - headroom), -127), 127) + 127


def quantized(values: Sequence[float], form: Scalar, headroom: int) -> tuple[list[int], int]:
    """The codes of one group of 32 numbers and of its scale."""
    scale = scale_of(values, form, headroom)
    # Exact: a number of float32 times a power of two within 2**127 is one of float64.
    scaled = [math.ldexp(each, 127 - scale) for each in values]
    codes = [form.nearest(each, negative=math.copysign(1, each) < 0) for each in scaled]
    return codes, scale
