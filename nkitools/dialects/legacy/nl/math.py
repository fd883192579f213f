"""``nl.*``: element-wise functions and reductions; each is also the token of its operator, as in ``op=nl.exp``."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from functools import partial

import numpy as np

from nkitools.chip.argument_types import Axes
from nkitools.chip.dtypes import DTypeLike, float32
from nkitools.chip.tensor import NkiTensor
from nkitools.dialects.legacy.indexing.masks import MaskLike, lanes_of
from nkitools.dialects.legacy.kernels.keywords import Keyword, check_keywords
from nkitools.dialects.legacy.nisa.value_calls import checked
from nkitools.dialects.legacy.tiles import elementwise
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, result_type
from nkitools.dialects.legacy.tiles.reductions import arranged, reduce, reduce_into
from nkitools.dialects.legacy.tiles.result_tiles import value_tile, write_lanes
from nkitools.dialects.legacy.tiles.tensor import Operand, Tensor
from nkitools.engines.operators import ACTIVATIONS, OPERATORS, token
from nkitools.language.reductions import mean_into
from nkitools.language.select import where_into

Function = Callable[..., Tensor]


def _named(function: Function, name: str, doc: str) -> Function:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc} Errors: NK101, NK109, NK201, NK301, NK602 to NK604, NK609."
    marked: Function = token(name)(function) if name in OPERATORS or name in ACTIVATIONS else function
    return marked


def _binary(name: str, doc: str, default: ResultDType = None, of: str = "of the promoted dtype") -> Function:
    def function(
        x: Operand, y: Operand, *, dtype: ResultDType = default, mask: MaskLike = None, **kwargs: Keyword
    ) -> Tensor:
        check_keywords(f"nl.{name}", kwargs)
        return Tensor.made(*elementwise.binary(name, x, y, dtype=dtype, mask=mask))

    return _named(function, name, f"{doc} Shapes broadcast, partitions too; the result is in SBUF, {of}.")


def _remainder(name: str, doc: str) -> Function:
    def function(x: Operand, y: Operand, dtype: ResultDType = None, mask: MaskLike = None, **kwargs: Keyword) -> Tensor:
        check_keywords(f"nl.{name}", kwargs)
        return Tensor.made(*elementwise.binary(name, x, y, dtype=dtype, mask=mask))

    sentence = "Shapes broadcast, partitions too; the result is in SBUF, of the promoted dtype."
    return _named(function, name, f"{doc} {sentence} Only NKI 0.6 says that chips lack it (nkitools.language.modulo).")


_comparison = partial(_binary, default=bool, of="of dtype bool")


def _unary(name: str, doc: str, default: ResultDType = None) -> Function:
    def function(x: Tensor, *, dtype: ResultDType = default, mask: MaskLike = None, **kwargs: Keyword) -> Tensor:
        check_keywords(f"nl.{name}", kwargs)
        return Tensor.made(*elementwise.unary(name, x, dtype=dtype, mask=mask))

    return _named(function, name, f"{doc} The result is in SBUF, of the input's dtype unless ``dtype`` is given.")


add = _binary("add", "``x + y``.")
subtract = _binary("subtract", "``x - y``.")
multiply = _binary("multiply", "``x * y``.")
divide = _binary("divide", "``x / y``, of integers float32.")
maximum = _binary("maximum", "The larger of ``x`` and ``y``.")
minimum = _binary("minimum", "The smaller of ``x`` and ``y``.")
power = _binary("power", "``x ** y``.")
mod = _remainder("mod", "The remainder of ``x / y`` with the sign of ``y``, as Python's ``%`` has it.")
fmod = _remainder("fmod", "The remainder of ``x / y`` with the sign of ``x``.")
bitwise_and = _binary("bitwise_and", "``x & y`` of integers.")
bitwise_or = _binary("bitwise_or", "``x | y`` of integers.")
bitwise_xor = _binary("bitwise_xor", "``x ^ y`` of integers.")
left_shift = _binary("left_shift", "``x << y`` of integers.")
right_shift = _binary("right_shift", "``x >> y`` of integers, filling with zeros.")

equal = _comparison("equal", "Whether ``x == y``.")
not_equal = _comparison("not_equal", "Whether ``x != y``.")
less = _comparison("less", "Whether ``x < y``.")
less_equal = _comparison("less_equal", "Whether ``x <= y``.")
greater = _comparison("greater", "Whether ``x > y``.")
greater_equal = _comparison("greater_equal", "Whether ``x >= y``.")
logical_and = _comparison("logical_and", "Whether both are not 0.")
logical_or = _comparison("logical_or", "Whether one is not 0.")
logical_xor = _comparison("logical_xor", "Whether exactly one is not 0.")

exp = _unary("exp", "``e ** x``.")
log = _unary("log", "The natural logarithm.")
sqrt = _unary("sqrt", "The square root.")
rsqrt = _unary("rsqrt", "``1 / sqrt(x)``.")
tanh = _unary("tanh", "The hyperbolic tangent.")
sigmoid = _unary("sigmoid", "``1 / (1 + exp(-x))``.")
relu = _unary("relu", "``max(x, 0)``.")
gelu = _unary("gelu", "``x * Phi(x)`` with the normal distribution function.")
gelu_dx = _unary("gelu_dx", "The derivative of gelu.")
gelu_apprx_tanh = _unary("gelu_apprx_tanh", "Gelu with the tanh approximation.")
gelu_apprx_sigmoid = _unary("gelu_apprx_sigmoid", "Gelu as ``x * sigmoid(1.702 x)``.")
silu = _unary("silu", "``x * sigmoid(x)``.")
silu_dx = _unary("silu_dx", "The derivative of silu.")
softplus = _unary("softplus", "``log(1 + exp(x))``.")
mish = _unary("mish", "``x * tanh(softplus(x))``.")
erf = _unary("erf", "The error function.")
erf_dx = _unary("erf_dx", "The derivative of the error function.")
square = _unary("square", "``x * x``.")
sign = _unary("sign", "-1, 0 or 1.")
sin = _unary("sin", "The sine.")
cos = _unary("cos", "The cosine.")
tan = _unary("tan", "The tangent.")
arctan = _unary("arctan", "The inverse tangent.")
floor = _unary("floor", "The largest integer that is not above ``x``.")
ceil = _unary("ceil", "The smallest integer that is not below ``x``.")
trunc = _unary("trunc", "``x`` rounded towards zero.")
abs = _unary("abs", "``|x|``.")
reciprocal = _unary("reciprocal", "``1 / x``.")
invert = _unary("invert", "``~x`` of integers.")
negative = _unary("negative", "``-x``.")
logical_not = _unary("logical_not", "Whether ``x`` is 0; of dtype bool.", default=bool)


def where(
    condition: Tensor, x: Operand, y: Operand, *, dtype: ResultDType = None, mask: MaskLike = None, **kwargs: Keyword
) -> Tensor:
    """``x`` where ``condition`` is not 0, else ``y``: tiles or numbers, at least one of the two a tile.

    Shapes broadcast, partitions too; the result is in SBUF, of the promoted dtype. Errors: NK101, NK109, NK201, NK301,
    NK604, NK609.
    """
    what = "nl.where"
    checked(what, kwargs, condition=condition)
    shapes = [elementwise.common_shape(what, condition, each, partitions=True) for each in (x, y)]
    elementwise.common_shape(what, x, y, partitions=True)
    shape = tuple(builtins.max(sizes) for sizes in zip(*shapes, strict=True))
    lanes = lanes_of(mask, shape, what)
    dst = value_tile(shape, result_type(dtype, what, x, y))

    def into(target: NkiTensor, *operands: NkiTensor | float) -> None:
        where_into(target, *(elementwise.spread(each, target) for each in operands))

    write_lanes(into, dst, (condition, x, y), lanes)
    return Tensor.made(dst, lanes)


def _reduction(name: str, operator: str, doc: str) -> Function:
    def function(
        x: Tensor,
        axis: Axes,
        *,
        dtype: ResultDType = None,
        mask: MaskLike = None,
        keepdims: bool = False,
        **kwargs: Keyword,
    ) -> Tensor:
        checked(f"nl.{name}", kwargs, x=x)
        kind = result_type(dtype, f"nl.{name}", x)
        return reduce(f"nl.{name}", partial(reduce_into, operator=operator), x, axis, kind, mask, keepdims)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc} along free dimensions. Errors: NK112, NK201, NK301, NK604, NK609."
    marked: Function = token(operator)(function)
    return marked


sum = _reduction("sum", "add", "The sum")
max = _reduction("max", "maximum", "The maximum")
min = _reduction("min", "minimum", "The minimum")
prod = _reduction("prod", "multiply", "The product")


def all(x: Tensor, axis: Axes, *, dtype: DTypeLike = bool, mask: MaskLike = None, **kwargs: Keyword) -> Tensor:
    """Return whether all elements are not 0 along free dimensions. Errors: NK112, NK201, NK604, NK609."""
    checked("nl.all", kwargs, x=x)
    into = partial(reduce_into, operator="logical_and")
    return reduce("nl.all", into, x, axis, result_type(dtype, "nl.all", x), mask, False)


def mean(
    x: Tensor,
    axis: Axes,
    *,
    dtype: ResultDType = None,
    mask: MaskLike = None,
    keepdims: bool = False,
    **kwargs: Keyword,
) -> Tensor:
    """Return the mean along free dimensions; float32 for integers. Errors: NK112, NK201, NK301, NK604, NK609."""
    checked("nl.mean", kwargs, x=x)
    kind = float32 if dtype is None and not x.element.is_float else result_type(dtype, "nl.mean", x)

    def into(dst: NkiTensor, tile: NkiTensor, axes: tuple[int, ...]) -> None:
        mean_into(*arranged(dst, tile, axes))

    return reduce("nl.mean", into, x, axis, kind, mask, keepdims)


def var(x: Tensor, axis: Axes, *, dtype: ResultDType = None, mask: MaskLike = None, **kwargs: Keyword) -> Tensor:
    """Return the variance along free dimensions: the mean squared distance from the mean. Errors: as nl.mean."""
    check_keywords("nl.var", kwargs)
    centred = subtract(x, mean(x, axis, dtype=np.float32, mask=mask, keepdims=True), dtype=np.float32, mask=mask)
    kind = float32 if dtype is None and not x.element.is_float else result_type(dtype, "nl.var", x)
    return mean(square(centred, mask=mask), axis, dtype=kind, mask=mask)
