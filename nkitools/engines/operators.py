"""Math operators and activation functions: what a token such as ``nl.add`` means to an engine.

Source: NKI ISA API common fields, tables "Supported Math Operators" and "Supported Activation Functions" (NKI 0.6).
``divide`` is in neither table, though ``nl.divide`` has a page: the release notes call it unsupported (NK615). It is
computed wherever an arithmetic operator is. Arithmetic operators compute in float32 and comparisons give 1.0 or 0.0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.facts.light_classes import dataclass, replace

Compute = Callable[..., Any]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Operator:
    """A math operator of the Vector, Scalar or GpSimd Engine. ``compute(x[, y], out=)`` is NumPy-like.

    Arithmetic ones get float32 (32-bit integers in the exact form), bitvec ones unsigned integers of one width.
    ``reduce(x, axes, keepdims)``: None if it may not reduce. ``needs``: the field of
    `Generation` that is true for chips with the operator, '' if all have it.
    """

    name: str
    kind: Literal["arithmetic", "bitvec"]
    compute: Compute
    unary: bool = False
    reduce: Compute | None = None
    needs: str = ""

    def __repr__(self) -> str:
        return f"nl.{self.name}"


@dataclass(frozen=True, eq=False)
class Activation:
    """An activation function of the Scalar Engine in float32: ``compute(x, out=)``; ``x`` may be ``out``.

    ``valid`` bounds the magnitudes of the inputs for which the engine's approximation holds (table "Supported
    Activation Functions"); ``signed``: negative inputs of those magnitudes are among them.
    """

    name: str
    compute: Compute
    valid: tuple[float, float] = (0.0, math.inf)
    signed: bool = True

    @property
    def is_limited(self) -> bool:
        """Return whether there are inputs for which the approximation does not hold."""
        return self.valid != (0.0, math.inf)

    def __repr__(self) -> str:
        return f"nl.{self.name}"


def _logical(function: Compute) -> Compute:
    def compute(x: Array, y: Array, out: Array) -> Array:
        np.copyto(out, function(np.not_equal(x, 0), np.not_equal(y, 0)))
        return out

    return compute


def _logical_reduce(function: np.ufunc) -> Compute:
    def reduce(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
        return np.asarray(function.reduce(np.not_equal(x, 0), axis=axis, keepdims=keepdims), np.float32)

    return reduce


def _by_magnitude(closer: Compute) -> Compute:
    """``x`` where its magnitude wins, else ``y``, with their signs (nl.abs_max and nl.abs_min; a tie gives ``y``)."""

    def compute(x: Array, y: Array, out: Array) -> Array:
        np.copyto(out, np.where(closer(np.abs(x), np.abs(y)), x, y))
        return out

    return compute


def _reducer(ufunc: np.ufunc) -> Compute:
    def reduce(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
        return np.asarray(ufunc.reduce(x, axis=axis, keepdims=keepdims))

    return reduce


def _in_order(function: Callable[[Array], Array]) -> Compute:
    """Return a reduction whose ``function`` gets the elements along a new last axis, in the order of the view."""

    def reduce(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
        kept = [dim for dim in range(x.ndim) if dim not in axis]
        result = function(x.transpose(*kept, *axis).reshape(*(x.shape[dim] for dim in kept), -1))
        return np.expand_dims(result, axis) if keepdims else result

    return reduce


def _rsqrt(x: Array, out: Array) -> Array:
    np.sqrt(x, out=out)
    return np.asarray(np.divide(np.float32(1), out, out=out))


def _reciprocal(x: Array, out: Array) -> Array:
    return np.asarray(np.divide(np.float32(1), x, out=out))


def _relu(x: Array, out: Array) -> Array:
    return np.asarray(np.maximum(x, 0, out=out))


def _bypass(x: Array, y: Array, out: Array) -> Array:
    np.copyto(out, x)
    return out


def _shifted(shift: Compute, x: Array, y: Array, out: Array) -> Array:
    """Shift logically, filling with zeros (the table has no arithmetic shift).

    A shift by the width or more leaves 0, where NumPy leaves that undefined.
    """
    inside = np.less(y, out.dtype.itemsize * 8)
    np.copyto(out, shift(x, np.where(inside, y, 0).astype(out.dtype)))
    np.copyto(out, 0, where=~inside)
    return out


COMPARISONS = ("equal", "not_equal", "greater_equal", "greater", "less_equal", "less")
_ARITHMETIC: dict[str, tuple[Compute, Compute | None]] = {
    "add": (np.add, _reducer(np.add)),
    "subtract": (np.subtract, _in_order(lambda flat: np.subtract.reduce(flat, axis=-1))),  # first minus all others
    "multiply": (np.multiply, _reducer(np.multiply)),
    "divide": (np.divide, None),
    "maximum": (np.maximum, _reducer(np.maximum)),
    "minimum": (np.minimum, _reducer(np.minimum)),
    **{name: (getattr(np, name), None) for name in COMPARISONS},
    "logical_and": (_logical(np.logical_and), _logical_reduce(np.logical_and)),
    "logical_or": (_logical(np.logical_or), _logical_reduce(np.logical_or)),
    "logical_xor": (_logical(np.logical_xor), _logical_reduce(np.logical_xor)),
    "power": (np.power, None),
    "abs_max": (_by_magnitude(np.greater), None),
    "abs_min": (_by_magnitude(np.less), None),
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
    "left_shift": (partial(_shifted, np.left_shift), None),
    "right_shift": (partial(_shifted, np.right_shift), None),
}
_NEEDS = {"abs_max": "absolute_extremes", "abs_min": "absolute_extremes", "square": "squares", "relu": "squares"}

OPERATORS: dict[str, Operator] = {
    **{
        name: Operator(name, "arithmetic", compute, reduce=reduce, needs=_NEEDS.get(name, ""))
        for name, (compute, reduce) in _ARITHMETIC.items()
    },
    **{
        name: Operator(name, "arithmetic", compute, unary=True, needs=_NEEDS.get(name, ""))
        for name, compute in _ARITHMETIC_UNARY.items()
    },
    **{name: Operator(name, "bitvec", compute, reduce=reduce) for name, (compute, reduce) in _BITVEC.items()},
    "invert": Operator("invert", "bitvec", np.invert, unary=True),
}


sum_in_order = _in_order(lambda flat: np.add.accumulate(flat, axis=-1)[..., -1])
ADD_IN_ORDER = replace(OPERATORS["add"], reduce=sum_in_order)
"""nl.add where sums have the order of a chip; NumPy's own are pairwise, and many times as fast."""


def _in_double(function: Callable[[Array], Array]) -> Compute:
    """Evaluate in float64, where a float32 formula would lose more than a few units in the last place; round once."""

    def compute(x: Array, out: Array) -> Array:
        np.copyto(out, function(np.asarray(x, np.float64)), casting="same_kind")
        return out

    return compute


@cache
def _special(name: str) -> Callable[[Array], Array]:
    """Return a function of scipy.special, whose import takes as long as that of all of nkitools."""
    from scipy import special

    function: Callable[[Array], Array] = getattr(special, name)
    return function


_SQRT_2_OVER_PI = math.sqrt(2 / math.pi)


def _gated(x: Array, gate: Array) -> Array:
    """``x * gate`` where the gate vanishes faster than x grows: infinity times a closed gate is 0, not NaN."""
    return np.where(gate == 0, 0.0, x * gate)


def _density(x: Array) -> Array:
    """Return the standard normal density."""
    density: Array = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return density


def _gelu_dx(x: Array) -> Array:
    derivative: Array = _special("ndtr")(x) + _gated(x, _density(x))
    return derivative


def _gelu_tanh(x: Array) -> Array:
    # (1 + tanh(u)) / 2 is the logistic function of 2u, without the cancellation at negative u.
    return _gated(x, _special("expit")(2 * _SQRT_2_OVER_PI * (x + 0.044715 * x**3)))


def _sigmoid_gated(slope: float) -> Callable[[Array], Array]:
    """``x * sigmoid(slope * x)``: silu and the sigmoid approximation of gelu."""
    return lambda x: _gated(x, _special("expit")(slope * x))


def _sigmoid_gated_dx(slope: float) -> Callable[[Array], Array]:
    def derivative(x: Array) -> Array:
        s = _special("expit")(slope * x)
        total: Array = s + _gated(slope * x, s * _special("expit")(-slope * x))
        return total

    return derivative


def _sine(x: Array) -> Array:
    """Return the sine on [-pi, pi]; beyond, the cubic that the engine extrapolates: "sin(9.0) returns ~27.65".

    The cubic itself is not published. That of the Taylor series about +-pi gives 27.65 at 9, and joins smoothly.
    """
    result: Array = np.sin(x)
    beyond = np.abs(x) - math.pi
    outside = beyond > 1e-6
    if outside.any():
        excess = beyond[outside]
        result[outside] = np.copysign(1, x[outside]) * (excess * excess * excess / 6 - excess)
    return result


def _copy(x: Array, out: Array) -> Array:
    if out is not x:
        np.copyto(out, x)
    return out


_FUNCTIONS: dict[str, Compute] = {
    "copy": _copy,
    "square": np.square,
    "sigmoid": _in_double(lambda x: _special("expit")(x)),
    "relu": _relu,
    "gelu": _in_double(lambda x: _gated(x, _special("ndtr")(x))),
    "gelu_dx": _in_double(_gelu_dx),
    "gelu_apprx_tanh": _in_double(_gelu_tanh),
    "gelu_apprx_sigmoid": _in_double(_sigmoid_gated(1.702)),
    "gelu_apprx_sigmoid_dx": _in_double(_sigmoid_gated_dx(1.702)),
    "silu": _in_double(_sigmoid_gated(1.0)),
    "silu_dx": _in_double(_sigmoid_gated_dx(1.0)),
    "tanh": np.tanh,
    "softplus": _in_double(lambda x: np.logaddexp(0, x)),
    "mish": _in_double(lambda x: _gated(x, np.tanh(np.logaddexp(0, x)))),
    "erf": _in_double(lambda x: _special("erf")(x)),
    "erf_dx": _in_double(lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x)),
    "exp": np.exp,
    "log": np.log,
    "sin": _in_double(_sine),
    "arctan": np.arctan,
    "sqrt": np.sqrt,
    "rsqrt": _rsqrt,
    "reciprocal": _reciprocal,
    "sign": np.sign,
    "abs": np.abs,
}
# Name: the magnitudes of valid inputs, and whether both signs are valid (table "Supported Activation Functions").
_VALID: dict[str, tuple[tuple[float, float], bool]] = {
    "log": ((2.0**-64, 2.0**64), False),
    "sin": ((0.0, math.pi), True),
    "arctan": ((0.0, math.pi / 2), True),
    "sqrt": ((2.0**-116, 2.0**118), False),
    "rsqrt": ((2.0**-87, 2.0**97), False),
    "reciprocal": ((2.0**-42, 2.0**42), True),
}
ACTIVATIONS: dict[str, Activation] = {
    name: Activation(name, compute, *_VALID.get(name, ((0.0, math.inf), True))) for name, compute in _FUNCTIONS.items()
}


_TOKEN = "__nki_operator__"
_NUMPY_TOKENS: dict[Any, str] = {
    **{getattr(np, name): name for name in (*OPERATORS, *ACTIVATIONS) if hasattr(np, name)},
    np.max: "maximum",
    np.amax: "maximum",
    np.min: "minimum",
    np.amin: "minimum",
    np.sum: "add",
}


# What kernels pass as an operator: nl.add, and in the legacy dialect np.add.
OperatorToken: TypeAlias = Operator | Activation | Callable[..., Any]


def token(name: str) -> Callable[[Function], Function]:
    """Make a function also the token of the operator or activation ``name`` (``nl.add``, ``nl.exp``)."""

    def mark(function: Function) -> Function:
        setattr(function, _TOKEN, name)
        return function

    return mark


def is_operator_name(parameter: str) -> bool:
    """Return whether a parameter of an instruction takes an operator: op, op0, reduce_op, cmp_op, comp_op1."""
    return parameter.rstrip("0123456789").rpartition("_")[2] == "op"


def is_token(value: Any) -> bool:
    """Return whether a value stands for an operator or an activation function."""
    return isinstance(value, (Operator, Activation)) or token_name(value) is not None


def token_name(value: Any) -> str | None:
    """Return the operator's name that a token stands for, or None. The legacy dialect's NumPy functions count."""
    name = getattr(value, _TOKEN, None)
    if isinstance(name, str):
        return name
    try:
        return _NUMPY_TOKENS.get(value)
    except TypeError:
        return None
