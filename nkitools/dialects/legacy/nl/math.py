"""``nl.*``: element-wise functions and reductions; each is also the token of its operator, as in ``op=nl.exp``."""

from __future__ import annotations

import builtins
import re
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
from nkitools.language import math as tiles
from nkitools.language import rounding, trigonometry
from nkitools.language.reductions import mean_into
from nkitools.language.select import where_into

Function = Callable[..., Tensor]
Modern = Callable[..., NkiTensor]  # a function of NKI 0.6
_COMMON = (
    "the float of a float and an integer, else one with the range of both; an int counts as int32, a float as float32"
)


def _named(function: Function, name: str, operator: str, **words: str) -> Function:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (function.__doc__ or "").format(name=name, **words)
    marked: Function = token(operator)(function) if operator in OPERATORS or operator in ACTIVATIONS else function
    return marked


def _sentence(function: Modern) -> str:
    """Return the first sentence about a function of NKI 0.6, which computes the same."""
    return re.split(r"(?<=[.])\s", str(function.__doc__))[0]


def _binary(
    like: Modern, sentence: str = "", values: str = tiles.ARITHMETIC, default: ResultDType = None, of: str = _COMMON
) -> Function:
    name = like.__name__

    def function(
        x: Operand, y: Operand, *, dtype: ResultDType = default, mask: MaskLike = None, **kwargs: Keyword
    ) -> Tensor:
        """{sentence}

        ``x``, ``y``: two tiles in SBUF or PSUM, or a tile and a number. Shapes broadcast, partitions too. {values}
        The result is a new SBUF tile. ``dtype``: of the result, by default {of}. Elements that ``mask`` leaves out are
        undefined.
        Errors: NK101, NK102, NK107 to NK110, NK201,{more} NK301, NK402, NK603, NK604, NK609, NK611, NK612.
        """
        check_keywords(f"nl.{name}", kwargs)
        return Tensor.made(*elementwise.binary(name, x, y, dtype=dtype, mask=mask))

    more = " NK206," if "NK206" in values else ""
    return _named(function, name, name, sentence=sentence or _sentence(like), values=values, of=of, more=more)


def _remainder(name: str, sign: str) -> Function:
    def function(x: Operand, y: Operand, dtype: ResultDType = None, mask: MaskLike = None, **kwargs: Keyword) -> Tensor:
        """Return the remainder of ``x / y`` with the sign of ``{sign}``; a remainder by zero is NaN, in integers 0.

        ``x``, ``y``, ``dtype``, ``mask``, the result and errors are as for nl.add. NKI 0.6 says that no chip has such
        an operator; SDK 2.26 does not, and here it is computed without a finding.
        """
        check_keywords(f"nl.{name}", kwargs)
        return Tensor.made(*elementwise.binary(name, x, y, dtype=dtype, mask=mask))

    return _named(function, name, name, sign=sign)


_comparison = partial(_binary, values=tiles.EXACT, default=bool, of="bool")
_logical = partial(_comparison, values=tiles.NAN_IS_TRUE)


def _unary(like: Modern, sentence: str = "", values: str = tiles.CAST, default: ResultDType = None) -> Function:
    name = like.__name__

    def function(x: Tensor, *, dtype: ResultDType = default, mask: MaskLike = None, **kwargs: Keyword) -> Tensor:
        """{sentence}

        ``x``: a tile in SBUF or PSUM. {values}
        The result is a new SBUF tile of the shape of ``x``. ``dtype``: of the result, by default {of}. Elements that
        ``mask`` leaves out are undefined.
        Errors: NK101, NK107, NK108, NK110, NK201, NK301, NK402, NK603, NK604, NK609, NK611, NK612.
        """
        check_keywords(f"nl.{name}", kwargs)
        return Tensor.made(*elementwise.unary(name, x, dtype=dtype, mask=mask))

    of = "that of ``x``" if default is None else "bool"
    return _named(function, name, name, sentence=sentence or _sentence(like), values=values, of=of)


add = _binary(tiles.add)
subtract = _binary(tiles.subtract)
multiply = _binary(tiles.multiply)
divide = _binary(tiles.divide, "Return ``x / y``.", tiles.CAST, of="float32 for two integers, else as for nl.add")
maximum = _binary(tiles.maximum)
minimum = _binary(tiles.minimum)
_IN_SBUF = "Two tiles must both be in SBUF (NK206), unless one is a float32 column (partitions, 1)."
power = _binary(tiles.power, "Return ``x ** y``.", f"{_IN_SBUF} {tiles.ARITHMETIC}")
mod = _remainder("mod", "y")
fmod = _remainder("fmod", "x")
bitwise_and = _binary(tiles.bitwise_and, values=tiles.BITS)
bitwise_or = _binary(tiles.bitwise_or, values=tiles.BITS)
bitwise_xor = _binary(tiles.bitwise_xor, values=tiles.BITS)
left_shift = _binary(tiles.left_shift, values=tiles.SHIFTED)
right_shift = _binary(tiles.right_shift, values=tiles.SHIFTED)

equal = _comparison(tiles.equal)
not_equal = _comparison(tiles.not_equal)
less = _comparison(tiles.less)
less_equal = _comparison(tiles.less_equal)
greater = _comparison(tiles.greater)
greater_equal = _comparison(tiles.greater_equal)
logical_and = _logical(tiles.logical_and)
logical_or = _logical(tiles.logical_or)
logical_xor = _logical(tiles.logical_xor)

exp = _unary(tiles.exp)
log = _unary(tiles.log)
sqrt = _unary(tiles.sqrt)
rsqrt = _unary(
    tiles.rsqrt, "Return ``1 / sqrt(x)``, valid for ``x`` from 2**-87 to 2**97 (others give NK305 or NK404, warnings)."
)
tanh = _unary(tiles.tanh)
sigmoid = _unary(tiles.sigmoid)
relu = _unary(tiles.relu)
gelu = _unary(tiles.gelu)
gelu_dx = _unary(tiles.gelu_dx)
gelu_apprx_tanh = _unary(tiles.gelu_apprx_tanh)
gelu_apprx_sigmoid = _unary(tiles.gelu_apprx_sigmoid)
silu = _unary(tiles.silu)
silu_dx = _unary(tiles.silu_dx)
softplus = _unary(tiles.softplus)
mish = _unary(tiles.mish)
erf = _unary(tiles.erf)
erf_dx = _unary(tiles.erf_dx)
square = _unary(tiles.square)
sign = _unary(tiles.sign)
sin = _unary(trigonometry.sin, "Return the sine of ``x`` in radians; beyond -pi to pi it gives NK305, a warning.")
cos = _unary(trigonometry.cos)
tan = _unary(trigonometry.tan)
arctan = _unary(tiles.arctan)
floor = _unary(rounding.floor, values=rounding.WHOLE)
ceil = _unary(rounding.ceil, values=rounding.WHOLE)
trunc = _unary(rounding.trunc, values=rounding.WHOLE)
abs = _unary(tiles.abs)
reciprocal = _unary(tiles.reciprocal)
invert = _unary(tiles.invert, values=tiles.INVERTED)
negative = _unary(tiles.negative)
logical_not = _unary(tiles.logical_not, "Return 1 where ``x`` is 0, else 0.", tiles.NAN_IS_TRUE, bool)


def where(
    condition: Tensor, x: Operand, y: Operand, *, dtype: ResultDType = None, mask: MaskLike = None, **kwargs: Keyword
) -> Tensor:
    """Return ``x`` where ``condition`` is not 0, else ``y``, as a new SBUF tile; NaN is not 0.

    ``condition``: a tile of any dtype. ``x``, ``y``: tiles or numbers, at least one a tile (NK609). The shapes of all
    three broadcast, partitions too. ``dtype``: of the result, by default as for nl.add. Elements that ``mask`` leaves
    out are undefined.
    Errors: NK101, NK102, NK107 to NK110, NK201, NK301, NK402, NK603, NK604, NK609, NK611, NK612.
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


def _reduction(name: str, operator: str, what: str) -> Function:
    def function(
        x: Tensor,
        axis: Axes,
        *,
        dtype: ResultDType = None,
        mask: MaskLike = None,
        keepdims: bool = False,
        **kwargs: Keyword,
    ) -> Tensor:
        """Return the {what} along ``axis`` as a new SBUF tile; an integer result saturates (NK304).

        ``x``: a tile in SBUF or PSUM. ``axis``: one or several free dimensions; dimension 0 is NK112. The result lacks
        them, or has size 1 there with ``keepdims=True``; without free dimensions it gets one of size 1. ``dtype``: of
        the result, by default that of ``x``. Elements that ``mask`` leaves out do not take part; it must leave a box
        of ``x`` (NK604).
        Errors: NK101, NK107, NK108, NK110, NK112, NK201, NK301, NK402, NK603, NK604, NK609, NK611, NK612.
        """
        checked(f"nl.{name}", kwargs, x=x)
        kind = result_type(dtype, f"nl.{name}", x)
        return reduce(f"nl.{name}", partial(reduce_into, operator=operator), x, axis, kind, mask, keepdims)

    return _named(function, name, operator, what=what)


sum = _reduction("sum", "add", "sum")
max = _reduction("max", "maximum", "largest element (NaN if one is NaN)")
min = _reduction("min", "minimum", "smallest element (NaN if one is NaN)")
prod = _reduction("prod", "multiply", "product")


def all(x: Tensor, axis: Axes, *, dtype: DTypeLike = bool, mask: MaskLike = None, **kwargs: Keyword) -> Tensor:
    """Return 1 where no element along ``axis`` is 0, else 0, as a new SBUF tile; NaN is not 0.

    ``axis``, ``mask`` and errors: as for nl.sum. ``dtype``: of the result, by default bool.
    """
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
    """Return the mean along ``axis`` as a new SBUF tile.

    ``dtype``: of the result, by default float32 for integers, else that of ``x``. ``axis``, ``keepdims``, ``mask`` and
    errors: as for nl.sum.
    """
    checked("nl.mean", kwargs, x=x)
    kind = float32 if dtype is None and not x.element.is_float else result_type(dtype, "nl.mean", x)

    def into(dst: NkiTensor, tile: NkiTensor, axes: tuple[int, ...]) -> None:
        mean_into(*arranged(dst, tile, axes))

    return reduce("nl.mean", into, x, axis, kind, mask, keepdims)


def var(x: Tensor, axis: Axes, *, dtype: ResultDType = None, mask: MaskLike = None, **kwargs: Keyword) -> Tensor:
    """Return the variance along ``axis``, with the divisor n, as a new SBUF tile.

    ``axis``, ``dtype``, ``mask`` and errors: as for nl.mean. The result lacks the dimensions of ``axis``.
    """
    check_keywords("nl.var", kwargs)
    centred = subtract(x, mean(x, axis, dtype=np.float32, mask=mask, keepdims=True), dtype=np.float32, mask=mask)
    kind = float32 if dtype is None and not x.element.is_float else result_type(dtype, "nl.var", x)
    return mean(square(centred, mask=mask), axis, dtype=kind, mask=mask)
