"""Element-wise functions of tiles, as instructions of the engines; each is also an operator token."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from nkitools.chip.dtypes import DTypeLike, float32
from nkitools.chip.tensor import NkiTensor, TileOrNumber
from nkitools.chip.view_checks import describe
from nkitools.engines.enums import engine
from nkitools.engines.operators import ACTIVATIONS, OPERATORS, Function, Operator, token
from nkitools.isa.elementwise import reciprocal as _reciprocal
from nkitools.isa.elementwise import tensor_scalar, tensor_tensor
from nkitools.language.assertion import assertable
from nkitools.language.creation import ndarray, sbuf
from nkitools.language.promotion import result_dtype
from nkitools.rules.finding import refuse, report

if TYPE_CHECKING:
    from nkitools.issue.instruction import Instruction

_NUMBERS = (int, float, np.generic)
# No tokens: the reference names them as functions only (see nkitools.language.modulo).
REMAINDERS = {name: Operator(name, "arithmetic", getattr(np, name)) for name in ("mod", "fmod")}
_BINARY = {**OPERATORS, **REMAINDERS}


class OfTwo(Protocol):
    """A function of two tiles, or of a tile and a number."""

    def __call__(self, x: TileOrNumber, y: TileOrNumber, dtype: DTypeLike | None = None) -> NkiTensor: ...


class OfOne(Protocol):
    """A function of one tile."""

    def __call__(self, x: NkiTensor, dtype: DTypeLike | None = None) -> NkiTensor: ...


def is_number(value: Any) -> bool:
    """Return whether a value is an immediate rather than a tile."""
    return isinstance(value, _NUMBERS)


def _operands(what: str, *values: TileOrNumber) -> None:
    for value in values:
        if not isinstance(value, NkiTensor) and not is_number(value):
            refuse("NK609", f"nl.{what} takes tiles and numbers, it is given {type(value).__name__}")
    if not any(isinstance(value, NkiTensor) for value in values):
        refuse("NK609", f"nl.{what} needs at least one tile, it is given numbers only")


def broadcast_shape(what: str, x: NkiTensor, y: NkiTensor) -> tuple[int, ...]:
    """Return the shape of two tiles: free dimensions broadcast (NK109), partitions are equal (NK102, NK111)."""
    if x.ndim != y.ndim:
        refuse(
            "NK109", f"nl.{what}: {describe(x)} and {describe(y)} have different numbers of dimensions", about=(x, y)
        )
    if x.shape[0] != y.shape[0]:
        rule = "NK111" if 1 in (x.shape[0], y.shape[0]) else "NK102"
        from nkitools.issue.shape_remedies import to_fit

        remedy = "" if rule == "NK111" else to_fit({}, ("x", x), ("y", y)).remedy
        message = f"nl.{what}: {describe(x)} and {describe(y)} have different numbers of partitions"
        refuse(rule, message, about=(x, y), remedy=remedy)
    try:
        return np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        from nkitools.issue.shape_remedies import to_fit

        change = to_fit({}, ("x", x), ("y", y))
        about = (change.tensor, x if change.tensor is y else y)
        message = f"nl.{what}: the shapes of {describe(x)} and {describe(y)} do not broadcast"
        refuse("NK109", message, about=about, remedy=change.remedy, facts=change.facts)


def spread(x: NkiTensor, shape: tuple[int, ...]) -> NkiTensor:
    """``x`` with its free dimensions of size 1 broadcast to ``shape``; no data is copied."""
    for dim, (size, wanted) in enumerate(zip(x.shape, shape, strict=True)):
        if size != wanted:
            x = x.broadcast(dim, wanted)
    return x


def _is_vector(x: NkiTensor) -> bool:
    return x.dtype is float32 and x.layout.free_elements == 1


def binary_into(dst: NkiTensor, what: str, x: TileOrNumber, y: TileOrNumber) -> None:
    """``dst = x <what> y`` by the instruction that fits: tensor_scalar for a number or vector, else tensor_tensor."""
    operator = _BINARY[what]
    if isinstance(x, _NUMBERS):
        assert isinstance(y, NkiTensor)  # two numbers are refused before a result is allocated
        tensor_scalar.inner(dst=dst, data=y, op0=operator, operand0=x, reverse0=True)
    elif isinstance(y, _NUMBERS):
        tensor_scalar.inner(dst=dst, data=x, op0=operator, operand0=y)
    elif x.shape == y.shape:
        tensor_tensor.inner(dst=dst, data1=x, data2=y, op=operator)
    elif operator.kind == "arithmetic" and _is_vector(y) and x.shape == dst.shape:
        tensor_scalar.inner(dst=dst, data=x, op0=operator, operand0=y)
    elif operator.kind == "arithmetic" and _is_vector(x) and y.shape == dst.shape:
        tensor_scalar.inner(dst=dst, data=y, op0=operator, operand0=x, reverse0=True)
    else:
        tensor_tensor.inner(dst=dst, data1=spread(x, dst.shape), data2=spread(y, dst.shape), op=operator)


def _simulated_broadcast(what: str, x: NkiTensor, y: NkiTensor) -> None:
    """NK615: release notes since NKI 0.3 have the broadcasting of nl's functions of two tiles as not supported."""
    sentence = f"nl.{what} of {describe(x)} and {describe(y)} works in simulation only: compilers do not broadcast here"
    remedy = (
        "Give the instruction a column as its operand: nisa.tensor_scalar(dst, x, op0, operand0=column); "
        "or a view of the whole shape: column.broadcast(1, n)."
    )
    report("NK615", sentence, about=(x, y), remedy=remedy)


def binary(what: str, x: TileOrNumber, y: TileOrNumber, dtype: DTypeLike | None) -> NkiTensor:
    """Return a new SBUF tile of ``x <what> y``."""
    _operands(what, x, y)
    tiles = [each for each in (x, y) if isinstance(each, NkiTensor)]
    shape = tiles[0].shape if tiles[0].shape == tiles[-1].shape else broadcast_shape(what, *tiles)
    if tiles[0].shape != tiles[-1].shape:
        _simulated_broadcast(what, *tiles)
    dst = ndarray(shape, result_dtype(dtype, x, y), sbuf)
    binary_into(dst, what, x, y)
    return dst


def _binary(name: str, sentence: str, values: str = "") -> OfTwo:
    def function(x: TileOrNumber, y: TileOrNumber, dtype: DTypeLike | None = None) -> NkiTensor:
        return binary(name, x, y, dtype)

    return _described(function, name, sentence, values or ARITHMETIC)


def _comparison(name: str, sign: str) -> OfTwo:
    def function(x: TileOrNumber, y: TileOrNumber, dtype: DTypeLike | None = None) -> NkiTensor:
        result = binary(name, x, y, dtype)
        assertable(result)
        return result

    asserted = "An ``assert`` of the result passes if no element is 0; any other use of its truth value is NK602."
    return _described(function, name, f"Return 1 where ``x {sign} y``, else 0. {asserted}", EXACT)


_SIZES = (
    "``x``, ``y``: two tiles, or a tile and a number. Tiles are in SBUF or PSUM; of two tiles at least one is in SBUF. "
    "Two tiles have equally many dimensions and partitions; free dimensions of size 1 broadcast, in simulation only "
    "(NK615, a warning)."
)
_FLOAT32 = "Computed in float32, in which integers beyond 2**24 lose low bits"
_CAST = (
    "integer result is rounded to the nearest integer, halves to the even one, and saturates (NK304). A bool result is "
    "True where the value is not 0."
)
EXACT = (
    f"{_FLOAT32} (NK307 where all inputs are integers and none saturates), but exactly if both are int32 or uint32 "
    "tiles in SBUF and the result is int32 or uint32."
)
ARITHMETIC = f"{EXACT} An exact result wraps around. Any other {_CAST}"
_PROMOTED = (
    "The result is a new tile in SBUF. ``dtype``: of the result, by default that of the tile. By default two different "
    "dtypes give the float of a float and an integer, else one that holds the values of both, at most float32 "
    "(float8_e4m3fn and float8_e8m0fnu give way to other floats)."
)


def _described(function: Function, name: str, sentence: str, values: str) -> Function:
    function.__name__ = function.__qualname__ = name
    more = {"power": "NK206, ", "abs_max": "NK606, ", "abs_min": "NK606, "}.get(name, "")
    function.__doc__ = (
        f"{sentence}\n\n{_SIZES}\n{values}\n{_PROMOTED}\nInstructions such as nisa.tensor_tensor take "
        f"``op=nl.{name}``.\nErrors: NK101, NK102, NK107 to NK111, NK201, {more}NK301, NK609, NK611, NK615. Source: "
        f"nki.language.{name} (NKI 0.6)."
    )
    return token(name)(function)


def _power(x: TileOrNumber, y: TileOrNumber, dtype: DTypeLike | None = None) -> NkiTensor:
    result = binary("power", x, y, dtype)
    if is_number(y):
        remedy = "Pass the exponent as a tile of the same shape (nl.full), or multiply: nl.multiply(x, x)."
        report("NK615", f"nl.power with the number {y} as exponent works in simulation only", remedy=remedy)
    return result


power = _described(
    _power,
    "power",
    "Return ``x ** y``. A number as ``y`` works in simulation only (NK615, a warning).",
    f"Two tiles are both in SBUF (NK206), unless one is a float32 column (partitions, 1). {EXACT} An {_CAST}",
)
add = _binary("add", "Return ``x + y``.")
subtract = _binary("subtract", "Return ``x - y``.")
multiply = _binary("multiply", "Return ``x * y``.")
divide = _binary(
    "divide",
    "Return ``x / y`` under the rule levels ``report`` and ``off``. No chip divides: a call is an error (NK615).",
    f"An {_CAST}",
)
maximum = _binary("maximum", "Return the larger of ``x`` and ``y``; NaN if one of them is NaN.")
minimum = _binary("minimum", "Return the smaller of ``x`` and ``y``; NaN if one of them is NaN.")
_MAGNITUDE = (
    "magnitude, with its sign; ``y`` if the magnitudes are equal or one is NaN. From NeuronCore-v4 on (before: NK606)."
)
abs_max = _binary("abs_max", f"Return the one of ``x`` and ``y`` with the larger {_MAGNITUDE}")
abs_min = _binary("abs_min", f"Return the one of ``x`` and ``y`` with the smaller {_MAGNITUDE}")
equal = _comparison("equal", "==")
not_equal = _comparison("not_equal", "!=")
less = _comparison("less", "<")
less_equal = _comparison("less_equal", "<=")
greater = _comparison("greater", ">")
greater_equal = _comparison("greater_equal", ">=")
NAN_IS_TRUE = "NaN is not 0."
logical_and = _binary("logical_and", "Return 1 where both ``x`` and ``y`` are not 0, else 0.", NAN_IS_TRUE)
logical_or = _binary("logical_or", "Return 1 where ``x`` or ``y`` or both are not 0, else 0.", NAN_IS_TRUE)
logical_xor = _binary("logical_xor", "Return 1 where exactly one of ``x`` and ``y`` is not 0, else 0.", NAN_IS_TRUE)
BITS = (
    "Operands and result are integers or bools (NK301); uint32 with a signed dtype needs ``dtype``. Operands, also a "
    "number, get the width of the result's dtype: narrower ones are extended, signed ones by their sign; wider ones "
    "lose the upper bits. For a bool result the elements of tiles become 0 or 1 first; it is True where a bit is set."
)
SHIFTED = f"{BITS} A shift by that width or more, also by a negative number, gives 0."
bitwise_and = _binary("bitwise_and", "Return ``x & y``.", BITS)
bitwise_or = _binary("bitwise_or", "Return ``x | y``.", BITS)
bitwise_xor = _binary("bitwise_xor", "Return ``x ^ y``.", BITS)
left_shift = _binary("left_shift", "Return ``x << y``; bits beyond the width are lost.", SHIFTED)
right_shift = _binary("right_shift", "Return ``x >> y``, filled with zeros, also of negative ``x``.", SHIFTED)


def tile_function(
    name: str, sentence: str, into: Callable[[NkiTensor, NkiTensor], Any], memory: str = "SBUF or PSUM"
) -> OfOne:
    """``nl.<name>(x, dtype=None)``: a new SBUF tile of the shape of ``x`` that ``into(dst, x)`` fills."""

    def function(x: NkiTensor, dtype: DTypeLike | None = None) -> NkiTensor:
        _operands(name, x)
        dst = ndarray(x.shape, result_dtype(dtype, x), sbuf)
        into(dst, x)
        return dst

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{sentence}\n\n``x``: a tile in {memory}. The result is a new SBUF tile of its shape. ``dtype``: of the "
        "result, by default that of ``x``.\nErrors: NK101, NK107, NK108, NK110, NK201, NK301, NK609, NK611. Source: "
        f"nki.language.{name} (NKI 0.6)."
    )
    return function


CAST = f"{_FLOAT32}. An {_CAST}"
_NOTED = " A wrong integer in the result is NK307, unless another one saturates."


def _scalar(name: str, sentence: str, operand: float | None = None, operator: str = "") -> OfOne:
    """Return a function by nisa.tensor_scalar: with the operator of its own name, or with another and a number."""
    op0 = OPERATORS[operator or name]
    return tile_function(name, sentence, lambda dst, x: tensor_scalar(dst=dst, data=x, op0=op0, operand0=operand))


@cache
def _activation() -> Instruction[...]:
    from nkitools.isa.activation import activation  # for kernels that activate

    return activation


def _activated(name: str, sentence: str, noted: str = "") -> OfOne:
    function = ACTIVATIONS[name]
    described = f"{sentence}\n\n{CAST}{noted} nisa.activation takes ``op=nl.{name}``."
    return token(name)(tile_function(name, described, lambda dst, x: _activation()(dst=dst, op=function, data=x)))


exp = _activated("exp", "Return ``e ** x``.")
_OTHERS = "others give NK305, a warning, or NK404 if the result is not finite; +inf and NaN give none."
log = _activated("log", f"Return the natural logarithm, valid for ``x`` from 2**-64 to 2**64; {_OTHERS}")
sqrt = _activated("sqrt", f"Return the square root, valid for 0 and for ``x`` from 2**-116 to 2**118; {_OTHERS}")
# On the GpSimd Engine, for its precision, and so not out of PSUM: release notes of NKI 0.5.
rsqrt = token("rsqrt")(
    tile_function(
        "rsqrt",
        f"Return ``1 / sqrt(x)``, computed on the GpSimd Engine.\n\n{CAST} nisa.tensor_scalar takes ``op0=nl.rsqrt``, "
        "nisa.activation ``op=nl.rsqrt``.",
        lambda dst, x: tensor_scalar(dst=dst, data=x, op0=OPERATORS["rsqrt"], operand0=None, engine=engine.gpsimd),
        "SBUF (NK206 in PSUM)",
    )
)
tanh = _activated("tanh", "Return the hyperbolic tangent.")
sigmoid = _activated("sigmoid", "Return ``1 / (1 + exp(-x))``.")
relu = _activated("relu", "Return ``max(x, 0)``; NaN stays.", _NOTED)
gelu = _activated("gelu", "Return ``x * Phi(x)``; ``Phi`` is the cumulative standard normal distribution. At -inf 0.")
gelu_dx = _activated("gelu_dx", "Return the derivative of nl.gelu at ``x``.")
gelu_apprx_tanh = _activated(
    "gelu_apprx_tanh",
    "Return ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))``, about nl.gelu; at -inf 0.",
)
gelu_apprx_sigmoid = _activated(
    "gelu_apprx_sigmoid", "Return ``x * sigmoid(1.702 * x)``, about nl.gelu; at -inf its limit 0."
)
gelu_apprx_sigmoid_dx = _activated("gelu_apprx_sigmoid_dx", "Return the derivative of nl.gelu_apprx_sigmoid at ``x``.")
silu = _activated("silu", "Return ``x * sigmoid(x)``, at -inf its limit 0.")
silu_dx = _activated("silu_dx", "Return the derivative of nl.silu at ``x``.")
softplus = _activated("softplus", "Return ``log(1 + exp(x))``.")
mish = _activated("mish", "Return ``x * tanh(log(1 + exp(x)))``, at -inf its limit 0.")
erf = _activated("erf", "Return the error function.")
erf_dx = _activated("erf_dx", "Return the derivative of the error function, ``2 / sqrt(pi) * exp(-x * x)``.")
# The reference mentions a range reduction for nl.sin only.
arctan = _activated(
    "arctan", "Return the inverse tangent, valid for ``x`` from -pi/2 to pi/2 (others give NK305, a warning)."
)
square = _activated("square", "Return ``x * x``.", _NOTED)
sign = _activated("sign", "Return -1, 0 or 1, the sign of ``x``; NaN stays.")
abs = token("abs")(
    _scalar(
        "abs",
        f"Return ``|x|``.\n\n{CAST}{_NOTED} nisa.tensor_scalar takes ``op0=nl.abs``, nisa.activation ``op=nl.abs``.",
    )
)
reciprocal = token("reciprocal")(
    tile_function(
        "reciprocal",
        f"Return ``1 / x``, computed on the Vector Engine.\n\n{CAST} nisa.activation takes ``op=nl.reciprocal``, from "
        "NKI 0.7 on nisa.tensor_scalar ``op0=nl.reciprocal``.",
        lambda dst, x: _reciprocal(dst=dst, data=x),
    )
)
INVERTED = (
    "``x`` and the result are integers or bools (NK301). ``x`` gets the width of the result's dtype first: a narrower "
    "``x`` is extended, a signed one by its sign. A bool result is always True, since all bits of its byte are "
    "inverted; nl.logical_not negates bools."
)
invert = token("invert")(
    _scalar("invert", f"Return ``~x``, all bits inverted.\n\n{INVERTED} nisa.tensor_scalar takes ``op0=nl.invert``.")
)
negative = _scalar("negative", f"Return ``-x``.\n\n{CAST}{_NOTED}", -1.0, "multiply")
logical_not = _scalar("logical_not", "Return 1 where ``x`` is 0, else 0; NaN is not 0.", 1.0, "logical_xor")


def flag(what: str, role: str, value: bool) -> bool:
    """NK609: True or False, or the number that stands for it."""
    if not isinstance(value, (bool, np.bool_, int)):
        refuse("NK609", f"nl.{what}: {role} must be True or False, it is {value!r}")
    return bool(value)


def check_tile(what: str, role: str, value: NkiTensor) -> None:
    """NK609: an operand is a tensor."""
    if not isinstance(value, NkiTensor):
        refuse("NK609", f"nl.{what}: {role} must be a tile, it is {type(value).__name__}")
