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


def _binary(name: str, sentence: str) -> OfTwo:
    def function(x: TileOrNumber, y: TileOrNumber, dtype: DTypeLike | None = None) -> NkiTensor:
        return binary(name, x, y, dtype)

    return _described(function, name, sentence)


def _comparison(name: str, sentence: str) -> OfTwo:
    def function(x: TileOrNumber, y: TileOrNumber, dtype: DTypeLike | None = None) -> NkiTensor:
        result = binary(name, x, y, dtype)
        assertable(result)
        return result

    return _described(function, name, f"{sentence} ``assert`` takes the result as true where no element is 0.")


def _described(function: Function, name: str, sentence: str) -> Function:
    function.__name__ = function.__qualname__ = name
    is_of_bits = name.startswith("bitwise") or name.endswith("shift")
    narrow = "" if is_of_bits else "With a number, integers are computed in float32: beyond 2**24 inexactly (NK307). "
    function.__doc__ = (
        f"{sentence} Also an operator token. Tiles or numbers, at least one tile; partitions are equal, and free "
        f"dimensions broadcast in simulation only (NK615). {narrow}The result is in SBUF, of the tiles' dtype "
        "(promoted where they differ) unless ``dtype`` is given. Errors: NK101, NK102, NK107 to NK111, NK201, NK206, "
        f"NK301, NK606, NK609, NK615. Source: nki.language.{name} (NKI 0.6)."
    )
    return token(name)(function)


def _power(x: TileOrNumber, y: TileOrNumber, dtype: DTypeLike | None = None) -> NkiTensor:
    result = binary("power", x, y, dtype)
    if is_number(y):
        remedy = "Pass the exponent as a tile of the same shape (nl.full), or multiply: nl.multiply(x, x)."
        report("NK615", f"nl.power with the number {y} as exponent works in simulation only", remedy=remedy)
    return result


power = _described(
    _power, "power", "``x ** y``, in SBUF on the GpSimd Engine; a PSUM tile takes a number only (NK206)."
)
add = _binary("add", "``x + y``.")
subtract = _binary("subtract", "``x - y``.")
multiply = _binary("multiply", "``x * y``.")
divide = _binary("divide", "``x / y``; no chip divides, so that a call is an error (NK615).")
maximum = _binary("maximum", "The larger of ``x`` and ``y``.")
minimum = _binary("minimum", "The smaller of ``x`` and ``y``.")
abs_max = _binary("abs_max", "``x`` where ``|x| > |y|``, else ``y``, with its sign (NeuronCore-v4 on).")
abs_min = _binary("abs_min", "``x`` where ``|x| < |y|``, else ``y``, with its sign (NeuronCore-v4 on).")
equal = _comparison("equal", "1 where ``x == y``, else 0.")
not_equal = _comparison("not_equal", "1 where ``x != y``, else 0.")
less = _comparison("less", "1 where ``x < y``, else 0.")
less_equal = _comparison("less_equal", "1 where ``x <= y``, else 0.")
greater = _comparison("greater", "1 where ``x > y``, else 0.")
greater_equal = _comparison("greater_equal", "1 where ``x >= y``, else 0.")
logical_and = _binary("logical_and", "1 where both are not 0, else 0; NaN is not 0.")
logical_or = _binary("logical_or", "1 where at least one is not 0, else 0; NaN is not 0.")
logical_xor = _binary("logical_xor", "1 where exactly one is not 0, else 0; NaN is not 0.")
bitwise_and = _binary("bitwise_and", "``x & y`` of integers.")
bitwise_or = _binary("bitwise_or", "``x | y`` of integers.")
bitwise_xor = _binary("bitwise_xor", "``x ^ y`` of integers.")
left_shift = _binary("left_shift", "``x << y`` of integers.")
right_shift = _binary("right_shift", "``x >> y`` of integers, filling with zeros.")


def tile_function(name: str, sentence: str, into: Callable[[NkiTensor, NkiTensor], Any]) -> OfOne:
    """``nl.<name>(x, dtype=None)``: a new SBUF tile of the shape of ``x`` that ``into(dst, x)`` fills."""

    def function(x: NkiTensor, dtype: DTypeLike | None = None) -> NkiTensor:
        _operands(name, x)
        dst = ndarray(x.shape, result_dtype(dtype, x), sbuf)
        into(dst, x)
        return dst

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{sentence} The result is in SBUF, of the tile's shape and dtype unless ``dtype`` is given. Errors: NK101, "
        f"NK107, NK108, NK110, NK201, NK301, NK609. Source: nki.language.{name} (NKI 0.6)."
    )
    return function


def _unary(name: str, sentence: str, into: Callable[[NkiTensor, NkiTensor], Any]) -> OfOne:
    return token(name)(tile_function(name, f"{sentence} Also an operator token.", into))


@cache
def _activation() -> Instruction[...]:
    from nkitools.isa.activation import activation  # for kernels that activate

    return activation


def _activated(name: str, sentence: str) -> OfOne:
    function = ACTIVATIONS[name]
    return _unary(name, sentence, lambda dst, x: _activation()(dst=dst, op=function, data=x))


exp = _activated("exp", "``e ** x``.")
log = _activated("log", "The natural logarithm.")
sqrt = _activated("sqrt", "The square root.")
# On the GpSimd Engine, for its precision, and so not out of PSUM: release notes of NKI 0.5.
rsqrt = _unary(
    "rsqrt",
    "``1 / sqrt(x)`` on the GpSimd Engine, of a tile in SBUF (else NK206).",
    lambda dst, x: tensor_scalar(dst=dst, data=x, op0=OPERATORS["rsqrt"], operand0=None, engine=engine.gpsimd),
)
tanh = _activated("tanh", "The hyperbolic tangent.")
sigmoid = _activated("sigmoid", "``1 / (1 + exp(-x))``.")
relu = _activated("relu", "``max(x, 0)``.")
gelu = _activated("gelu", "``x * Phi(x)`` with the normal distribution function.")
gelu_dx = _activated("gelu_dx", "The derivative of gelu.")
gelu_apprx_tanh = _activated("gelu_apprx_tanh", "Gelu with the tanh approximation.")
gelu_apprx_sigmoid = _activated("gelu_apprx_sigmoid", "Gelu as ``x * sigmoid(1.702 x)``.")
gelu_apprx_sigmoid_dx = _activated("gelu_apprx_sigmoid_dx", "The derivative of gelu_apprx_sigmoid.")
silu = _activated("silu", "``x * sigmoid(x)``.")
silu_dx = _activated("silu_dx", "The derivative of silu.")
softplus = _activated("softplus", "``log(1 + exp(x))``.")
mish = _activated("mish", "``x * tanh(softplus(x))``.")
erf = _activated("erf", "The error function.")
erf_dx = _activated("erf_dx", "The derivative of the error function.")
# The reference mentions a range reduction for nl.sin only.
arctan = _activated("arctan", "The inverse tangent, valid for inputs from -pi/2 to pi/2 only (others: NK305).")
square = _activated("square", "``x * x``.")
sign = _activated("sign", "-1, 0 or 1.")
abs = _unary(
    "abs",
    "``|x|``, in float32: integers beyond 2**24 inexactly (NK307).",
    lambda dst, x: tensor_scalar(dst=dst, data=x, op0=OPERATORS["abs"], operand0=None),
)
reciprocal = _unary("reciprocal", "``1 / x`` on the Vector Engine.", lambda dst, x: _reciprocal(dst=dst, data=x))
invert = _unary(
    "invert",
    "``~x`` of integers.",
    lambda dst, x: tensor_scalar(dst=dst, data=x, op0=OPERATORS["invert"], operand0=None),
)
negative = _unary(
    "negative", "``-x``.", lambda dst, x: tensor_scalar(dst=dst, data=x, op0=OPERATORS["multiply"], operand0=-1.0)
)
logical_not = _unary(
    "logical_not",
    "1 where ``x`` is 0, else 0.",
    lambda dst, x: tensor_scalar(dst=dst, data=x, op0=OPERATORS["logical_xor"], operand0=1.0),
)


def flag(what: str, role: str, value: bool) -> bool:
    """NK609: True or False, or the number that stands for it."""
    if not isinstance(value, (bool, np.bool_, int)):
        refuse("NK609", f"nl.{what}: {role} must be True or False, it is {value!r}")
    return bool(value)


def check_tile(what: str, role: str, value: NkiTensor) -> None:
    """NK609: an operand is a tensor."""
    if not isinstance(value, NkiTensor):
        refuse("NK609", f"nl.{what}: {role} must be a tile, it is {type(value).__name__}")
