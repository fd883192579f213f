"""Math operators and activation functions: what a token such as ``nl.add`` means to an engine.

Source: NKI ISA API common fields, tables "Supported Math Operators" and "Supported Activation Functions" (NKI 0.6).
``divide`` is in neither table, but ``nl.divide`` is documented, so the Vector Engine must have it; it is accepted wherever an
arithmetic operator is. Arithmetic operators compute in float32 and comparisons give 1.0 or 0.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special

from nkitools.chip.numerics import Array

Compute = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Operator:
    """A math operator of the Vector, Scalar or GpSimd Engine. ``compute(x[, y], out=)`` is NumPy-like."""

    name: str
    kind: Literal["arithmetic", "bitvec"]
    compute: Compute
    unary: bool = False
    reduce: Compute | None = None

    def __repr__(self) -> str:
        return f"nl.{self.name}"


@dataclass(frozen=True, eq=False)
class Activation:
    """An activation function of the Scalar Engine in float32: ``compute(x, out=)`` with ``x`` and ``out`` possibly the same."""

    name: str
    compute: Compute

    def __repr__(self) -> str:
        return f"nl.{self.name}"


def _logical(function: Compute) -> Compute:
    def compute(x: Array, y: Array, out: Array) -> Array:
        np.copyto(out, function(np.not_equal(x, 0), np.not_equal(y, 0)))
        return out

    return compute


def _logical_reduce(function: Any) -> Compute:
    def reduce(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
        return np.asarray(function.reduce(np.not_equal(x, 0), axis=axis, keepdims=keepdims), np.float32)

    return reduce


def _absolute(function: Any) -> Compute:
    def compute(x: Array, y: Array, out: Array) -> Array:
        return np.asarray(function(np.abs(x), np.abs(y), out=out))

    return compute


def _left_shift(x: Array, y: Any, out: Array) -> Array:
    """Logical shift; a shift by the width or more leaves 0 (NumPy leaves it undefined)."""
    return np.where(np.less(y, out.dtype.itemsize * 8), np.left_shift(x, y), 0).astype(out.dtype)


def _right_shift(x: Array, y: Any, out: Array) -> Array:
    """Logical (zero-filling) shift, also of signed integers."""
    unsigned = np.dtype(f"u{out.dtype.itemsize}")
    bits = np.asarray(x).view(unsigned) if isinstance(x, np.ndarray) else np.asarray(x).astype(unsigned)
    amount = np.asarray(y).astype(unsigned)
    shifted = np.where(amount < out.dtype.itemsize * 8, np.right_shift(bits, amount), unsigned.type(0))
    return np.asarray(shifted).view(out.dtype)


def _shift(function: Compute) -> Compute:
    def compute(x: Array, y: Array, out: Array) -> Array:
        np.copyto(out, function(x, y, out))
        return out

    return compute


def _reducer(ufunc: Any) -> Compute:
    def reduce(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
        return np.asarray(ufunc.reduce(x, axis=axis, keepdims=keepdims))

    return reduce


def _subtract_reduce(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    """First element minus all the others, in order."""
    flat = x.reshape(*x.shape[: axis[0]], -1)
    result = np.subtract.reduce(flat, axis=-1, keepdims=keepdims)
    return result.reshape(*x.shape[: axis[0]], *([1] * len(axis) if keepdims else []))


def _rsqrt(x: Array, out: Array) -> Array:
    np.sqrt(x, out=out)
    return np.asarray(np.divide(np.float32(1), out, out=out))


def _reciprocal(x: Array, out: Array) -> Array:
    return np.asarray(np.divide(np.float32(1), x, out=out))


def _relu(x: Array, out: Array) -> Array:
    return np.asarray(np.maximum(x, np.float32(0), out=out))


def _bypass(x: Array, y: Any, out: Array) -> Array:
    np.copyto(out, x)
    return out


_ARITHMETIC: dict[str, tuple[Compute, Compute | None]] = {
    "add": (np.add, _reducer(np.add)),
    "subtract": (np.subtract, _subtract_reduce),
    "multiply": (np.multiply, _reducer(np.multiply)),
    "divide": (np.divide, None),
    "maximum": (np.maximum, _reducer(np.maximum)),
    "minimum": (np.minimum, _reducer(np.minimum)),
    "equal": (np.equal, None),
    "not_equal": (np.not_equal, None),
    "greater_equal": (np.greater_equal, None),
    "greater": (np.greater, None),
    "less_equal": (np.less_equal, None),
    "less": (np.less, None),
    "logical_and": (_logical(np.logical_and), _logical_reduce(np.logical_and)),
    "logical_or": (_logical(np.logical_or), _logical_reduce(np.logical_or)),
    "logical_xor": (_logical(np.logical_xor), _logical_reduce(np.logical_xor)),
    "power": (np.power, None),
    "abs_max": (_absolute(np.maximum), None),
    "abs_min": (_absolute(np.minimum), None),
    "bypass": (_bypass, None),
}
_ARITHMETIC_UNARY: dict[str, Compute] = {
    "abs": np.abs,
    "square": np.square,
    "relu": _relu,
    "rsqrt": _rsqrt,
    "reciprocal": _reciprocal,
}
_BITVEC: dict[str, tuple[Compute, Compute | None]] = {
    "bitwise_and": (np.bitwise_and, _reducer(np.bitwise_and)),
    "bitwise_or": (np.bitwise_or, _reducer(np.bitwise_or)),
    "bitwise_xor": (np.bitwise_xor, _reducer(np.bitwise_xor)),
    "left_shift": (_shift(_left_shift), None),
    "right_shift": (_shift(_right_shift), None),
}

OPERATORS: dict[str, Operator] = {
    **{name: Operator(name, "arithmetic", compute, reduce=reduce) for name, (compute, reduce) in _ARITHMETIC.items()},
    **{name: Operator(name, "arithmetic", compute, unary=True) for name, compute in _ARITHMETIC_UNARY.items()},
    **{name: Operator(name, "bitvec", compute, reduce=reduce) for name, (compute, reduce) in _BITVEC.items()},
    "invert": Operator("invert", "bitvec", np.invert, unary=True),
}


# --- activation functions --------------------------------------------------------------------------------------------
# Evaluated in float64 where a float32 formula would lose more than a few units in the last place, then rounded once.


def _in_double(function: Callable[[Array], Array]) -> Compute:
    def compute(x: Array, out: Array) -> Array:
        np.copyto(out, function(np.asarray(x, np.float64)), casting="same_kind")
        return out

    return compute


_SQRT_2_OVER_PI = float(np.sqrt(2 / np.pi))


def _gelu(x: Array) -> Array:
    return x * special.ndtr(x)


def _gelu_dx(x: Array) -> Array:
    return special.ndtr(x) + x * np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)


def _gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(_SQRT_2_OVER_PI * (x + 0.044715 * x**3)))


def _gelu_sigmoid(x: Array) -> Array:
    return x * special.expit(1.702 * x)


def _gelu_sigmoid_dx(x: Array) -> Array:
    s = special.expit(1.702 * x)
    return s + 1.702 * x * s * (1 - s)


def _silu_dx(x: Array) -> Array:
    s = special.expit(x)
    return s * (1 + x * (1 - s))


def _mish(x: Array) -> Array:
    return x * np.tanh(np.logaddexp(0, x))


def _sine(x: Array) -> Array:
    """The sine on [-pi, pi]. Outside, the engine extrapolates a polynomial that is not published: NaN marks it invalid."""
    return np.where(np.abs(x) <= np.float32(np.pi), np.sin(x), np.nan)


def _copy(x: Array, out: Array) -> Array:
    if out is not x:
        np.copyto(out, x)
    return out


ACTIVATIONS: dict[str, Activation] = {
    name: Activation(name, compute)
    for name, compute in {
        "copy": _copy,
        "square": np.square,
        "sigmoid": _in_double(special.expit),
        "relu": _relu,
        "gelu": _in_double(_gelu),
        "gelu_dx": _in_double(_gelu_dx),
        "gelu_apprx_tanh": _in_double(_gelu_tanh),
        "gelu_apprx_sigmoid": _in_double(_gelu_sigmoid),
        "gelu_apprx_sigmoid_dx": _in_double(_gelu_sigmoid_dx),
        "silu": _in_double(lambda x: x * special.expit(x)),
        "silu_dx": _in_double(_silu_dx),
        "tanh": np.tanh,
        "softplus": _in_double(lambda x: np.logaddexp(0, x)),
        "mish": _in_double(_mish),
        "erf": _in_double(special.erf),
        "erf_dx": _in_double(lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x)),
        "exp": np.exp,
        "log": np.log,
        "sin": _in_double(_sine),
        "arctan": np.arctan,
        "sqrt": np.sqrt,
        "rsqrt": _rsqrt,
        "reciprocal": _reciprocal,
        "sign": np.sign,
        "abs": np.abs,
    }.items()
}


# --- tokens ----------------------------------------------------------------------------------------------------------

_TOKEN = "__nki_operator__"
_NUMPY_TOKENS: dict[Any, str] = {
    np.add: "add",
    np.subtract: "subtract",
    np.multiply: "multiply",
    np.divide: "divide",
    np.maximum: "maximum",
    np.minimum: "minimum",
    np.max: "maximum",
    np.min: "minimum",
    np.equal: "equal",
    np.not_equal: "not_equal",
    np.greater: "greater",
    np.greater_equal: "greater_equal",
    np.less: "less",
    np.less_equal: "less_equal",
    np.logical_and: "logical_and",
    np.logical_or: "logical_or",
    np.logical_xor: "logical_xor",
    np.bitwise_and: "bitwise_and",
    np.bitwise_or: "bitwise_or",
    np.bitwise_xor: "bitwise_xor",
    np.invert: "invert",
    np.left_shift: "left_shift",
    np.right_shift: "right_shift",
    np.power: "power",
    np.abs: "abs",
    np.square: "square",
    np.reciprocal: "reciprocal",
    np.exp: "exp",
    np.log: "log",
    np.sqrt: "sqrt",
    np.tanh: "tanh",
    np.sin: "sin",
    np.arctan: "arctan",
    np.sign: "sign",
    np.copy: "copy",
    np.sum: "add",
}


def token(name: str) -> Callable[[Any], Any]:
    """Make a function also the token of the operator or activation ``name`` (``nl.add``, ``nl.exp``)."""

    def mark(function: Any) -> Any:
        setattr(function, _TOKEN, name)
        return function

    return mark


def token_name(value: Any) -> str | None:
    """The operator's name that a token stands for, or None. The legacy dialect's NumPy functions count."""
    name = getattr(value, _TOKEN, None)
    if isinstance(name, str):
        return name
    try:
        return _NUMPY_TOKENS.get(value)
    except TypeError:
        return None
