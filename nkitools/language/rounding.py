"""Rounding to whole numbers: down, up and towards zero.

No operator does this, but every engine rounds a float32 to the nearest integer when it writes one. From there it is one
step. How AWS composes these functions is not published.
"""

from __future__ import annotations

from nkitools.chip.dtypes import float32, int32
from nkitools.chip.tensor import NkiTensor
from nkitools.engines.operators import ACTIVATIONS, OPERATORS
from nkitools.isa.activation import activation
from nkitools.isa.elementwise import tensor_scalar, tensor_tensor
from nkitools.isa.fused import scalar_tensor_tensor
from nkitools.isa.move import tensor_copy
from nkitools.language.creation import ndarray, sbuf
from nkitools.language.math import tile_function

_WHOLE = 2.0**23  # from here on float32 holds integers only, which int32 need not hold as well
_ADD, _SUBTRACT, _MULTIPLY = (OPERATORS[name] for name in ("add", "subtract", "multiply"))
_LESS, _GREATER, _ABS = (OPERATORS[name] for name in ("less", "greater", "abs"))
_MAXIMUM, _MINIMUM = OPERATORS["maximum"], OPERATORS["minimum"]


def floor_into(dst: NkiTensor, x: NkiTensor) -> None:
    """``dst`` = the largest whole number that is not above ``x``: ``x`` less what it is above that."""
    if not x.dtype.is_float:
        tensor_copy(dst=dst, src=x)
        return
    excess = ndarray(x.shape, float32, sbuf)
    tensor_scalar(dst=excess, data=x, op0=_MAXIMUM, operand0=-_WHOLE, reverse0=False, op1=_MINIMUM, operand1=_WHOLE)
    _above_floor(excess)
    tensor_tensor(dst=dst, data1=x, data2=excess, op=_SUBTRACT)


def ceil_into(dst: NkiTensor, x: NkiTensor) -> None:
    """``dst`` = the smallest whole number that is not below ``x``: ``x`` plus what it is below that."""
    if not x.dtype.is_float:
        tensor_copy(dst=dst, src=x)
        return
    short = ndarray(x.shape, float32, sbuf)
    tensor_scalar(dst=short, data=x, op0=_MAXIMUM, operand0=-_WHOLE, reverse0=False, op1=_MINIMUM, operand1=_WHOLE)
    _above_nearest(short)
    scalar_tensor_tensor(dst=short, data=short, op0=_GREATER, operand0=0.0, op1=_SUBTRACT, operand1=short)
    tensor_tensor(dst=dst, data1=x, data2=short, op=_ADD)


def trunc_into(dst: NkiTensor, x: NkiTensor) -> None:
    """``dst`` = ``x`` without its fraction, which is what ``|x|`` is above its floor, with the sign of ``x``."""
    if not x.dtype.is_float:
        tensor_copy(dst=dst, src=x)
        return
    fraction, sign = (ndarray(x.shape, float32, sbuf) for _ in range(2))
    tensor_scalar(dst=fraction, data=x, op0=_ABS, operand0=None, reverse0=False, op1=_MINIMUM, operand1=_WHOLE)
    _above_floor(fraction)
    activation(dst=sign, op=ACTIVATIONS["sign"], data=x)
    tensor_tensor(dst=fraction, data1=fraction, data2=sign, op=_MULTIPLY)
    tensor_tensor(dst=dst, data1=x, data2=fraction, op=_SUBTRACT)


def _above_nearest(x: NkiTensor) -> None:
    """``x`` (float32, at most 2**23 in magnitude) becomes ``x`` less the integer nearest to it, exactly."""
    nearest = ndarray(x.shape, int32, sbuf)
    nearest.storage.excused |= {"NK304"}  # NaN alone saturates, and stays NaN in the difference
    tensor_copy(dst=nearest, src=x)
    tensor_tensor(dst=x, data1=x, data2=nearest, op=_SUBTRACT)


def _above_floor(x: NkiTensor) -> None:
    """``x`` (float32, at most 2**23 in magnitude) becomes ``x`` less its floor."""
    _above_nearest(x)
    scalar_tensor_tensor(dst=x, data=x, op0=_LESS, operand0=0.0, op1=_ADD, operand1=x)


WHOLE = (
    "Infinities and NaN stay; the sign of a zero may be lost. A tile of integers is copied. An integer ``dtype`` "
    "saturates (NK304)."
)
floor = tile_function("floor", f"Return the largest whole number that is not above ``x``.\n\n{WHOLE}", floor_into)
ceil = tile_function("ceil", f"Return the smallest whole number that is not below ``x``.\n\n{WHOLE}", ceil_into)
trunc = tile_function("trunc", f"Return ``x`` without its fraction: rounded towards zero.\n\n{WHOLE}", trunc_into)
