"""Arithmetic written independently of the simulator: casts and activation functions in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import nkitools.dialects.modern.language as nl

FLOATS = (nl.float32, nl.bfloat16, nl.float16, nl.tfloat32, nl.float8_e4m3, nl.float8_e5m2, nl.float8_e4m3fn)
INTEGERS = (nl.int8, nl.int16, nl.int32, nl.uint8, nl.uint16, nl.uint32)
# The operators of two operands, by their names in nl.
ARITHMETIC: dict[str, Any] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater_equal": np.greater_equal,
    "greater": np.greater,
    "less_equal": np.less_equal,
    "less": np.less,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
MAGNITUDE: dict[str, Any] = {
    "abs_max": lambda x, y: np.where(np.abs(x) > np.abs(y), x, y),
    "abs_min": lambda x, y: np.where(np.abs(x) < np.abs(y), x, y),
}
BITWISE: dict[str, Any] = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}


def held(values: Any, dtype: Any) -> np.ndarray:
    """``values``, computed in float32, as a tile of ``dtype`` holds them: nearest even, integers saturated."""
    single = np.asarray(values).astype(np.float32)
    if dtype == nl.tfloat32:
        mantissa, exponent = np.frexp(single.astype(np.float64))
        return np.ldexp(np.rint(mantissa * 2**11) / 2**11, exponent).astype(np.float32)
    if dtype in INTEGERS:
        limits = np.iinfo(dtype.dtype)
        return np.clip(np.rint(single.astype(np.float64)), limits.min, limits.max).astype(dtype.dtype)
    return single.astype(dtype.dtype)


def sample(
    shape: tuple[int, ...], dtype: Any = nl.float32, seed: int = 0, low: float = -4, high: float = 4
) -> np.ndarray:
    """Random values that ``dtype`` holds."""
    values = np.random.default_rng(seed).uniform(low, high, shape)
    if dtype in INTEGERS and np.iinfo(dtype.dtype).min == 0:
        values = np.abs(values)
    return held(values, dtype)


def small_integers(shape: tuple[int, ...], seed: int, high: int = 5) -> np.ndarray:
    """Small integers in float32: their products and sums are exact, in any order."""
    return np.random.default_rng(seed).integers(-high, high + 1, shape).astype(np.float32)


def words(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """Random integers over the whole range of ``dtype``."""
    limits = np.iinfo(dtype.dtype)
    generator = np.random.default_rng(seed)
    return generator.integers(limits.min, limits.max, shape, dtype=dtype.dtype, endpoint=True)


def float64(values: np.ndarray) -> np.ndarray:
    """Exactly the same values in float64."""
    return values.astype(np.float64)


def _each(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    return np.vectorize(function, otypes=[np.float64])


def _logistic(x: float) -> float:
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    return math.exp(x) / (1 + math.exp(x)) if x > -700 else 0.0


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _softplus(x: float) -> float:
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


def _gelu_tanh(x: float) -> float:
    # (1 + tanh(u)) / 2 loses everything at negative u; exp(2u) / (1 + exp(2u)) is the same
    return x * _logistic(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def _swish_dx(x: float, slope: float) -> float:
    s = _logistic(slope * x)
    return s + slope * x * s * _logistic(-slope * x)


# Smooth functions: the reference and an interval on which float32 results can be compared to a few units.
ACTIVATIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float, float]] = {
    "copy": (lambda x: x, -100, 100),
    "square": (lambda x: x * x, -100, 100),
    "sigmoid": (_each(_logistic), -80, 80),
    "relu": (lambda x: np.where(x > 0, x, 0.0), -100, 100),
    "gelu": (_each(lambda x: x * _normal(x)), -12, 50),
    "gelu_dx": (_each(lambda x: _normal(x) + x * _density(x)), -12, 50),
    "gelu_apprx_tanh": (_each(_gelu_tanh), -8, 50),
    "gelu_apprx_sigmoid": (_each(lambda x: x * _logistic(1.702 * x)), -45, 50),
    "gelu_apprx_sigmoid_dx": (_each(lambda x: _swish_dx(x, 1.702)), -45, 50),
    "silu": (_each(lambda x: x * _logistic(x)), -80, 80),
    "silu_dx": (_each(lambda x: _swish_dx(x, 1.0)), -80, 80),
    "tanh": (_each(math.tanh), -20, 20),
    "softplus": (_each(_softplus), -80, 80),
    "mish": (_each(lambda x: x * math.tanh(_softplus(x))), -80, 80),
    "erf": (_each(math.erf), -6, 6),
    "erf_dx": (_each(lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x)), -9, 9),
    "exp": (_each(math.exp), -80, 80),
    "log": (_each(math.log), 2.0**-64, 2.0**20),
    "sin": (_each(math.sin), -math.pi, math.pi),
    "arctan": (_each(math.atan), -math.pi / 2, math.pi / 2),
    "sqrt": (np.sqrt, 2.0**-116, 2.0**20),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 2.0**-87, 2.0**20),
    "reciprocal": (lambda x: 1 / x, 2.0**-42, 2.0**20),
    "sign": (np.sign, -5, 5),
    "abs": (np.abs, -100, 100),
}
