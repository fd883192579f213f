"""Sine, cosine, tangent: the Scalar Engine has a sine, which is one on [-pi, pi] only.

"nki.language.sin applies additional instructions to perform range reduction before the activation" (NKI ISA API common
fields, NKI 0.6); which ones is not published. Here the nearest multiple of the period is subtracted from ``x`` in parts
that are short enough for their products to be exact: what the sine gets differs from the exact remainder by less than
1e-6 where ``|x|`` is below 2**20, by up to the distance of ``x`` to the next float32 where it is larger.
"""

from __future__ import annotations

import math

import numpy as np

from nkitools.chip.dtypes import float32
from nkitools.chip.tensor import NkiTensor
from nkitools.engines.operators import ACTIVATIONS, OPERATORS, token
from nkitools.isa.activation import activation
from nkitools.isa.elementwise import reciprocal, tensor_scalar, tensor_tensor
from nkitools.isa.fused import scalar_tensor_tensor
from nkitools.language.creation import ndarray, sbuf
from nkitools.language.math import CAST, tile_function

_ADD, _SUBTRACT, _MULTIPLY = (OPERATORS[name] for name in ("add", "subtract", "multiply"))
_MAXIMUM, _MINIMUM = OPERATORS["maximum"], OPERATORS["minimum"]
_SINE = ACTIVATIONS["sin"]
_ROUND = 1.5 * 2.0**23  # a float32 has no digits behind the point after this was added to it
_PI = float(np.nextafter(np.float32(math.pi), np.float32(0)))  # the largest float32 in the sine's range


def _parts(period: float) -> tuple[float, ...]:
    """Return the period in four parts of 5 bits, exact times a number of periods below 2**19, and the rest."""
    parts = []
    for _ in range(4):
        mantissa, exponent = math.frexp(period)
        parts.append(math.ldexp(math.floor(math.ldexp(mantissa, 5)), exponent - 5))
        period -= parts[-1]
    return (*parts, float(np.float32(period)))


_TURN, _HALF_TURN = _parts(2 * math.pi), _parts(math.pi)


def sin_into(dst: NkiTensor, x: NkiTensor) -> None:
    """``dst`` = the sine of ``x``."""
    angle = _reduced(x, _TURN, 0.0)
    _sine(dst, angle)


def cos_into(dst: NkiTensor, x: NkiTensor) -> None:
    """``dst`` = the cosine of ``x``, which is the sine a quarter of a turn later."""
    angle = _reduced(x, _TURN, 0.25)
    tensor_scalar(dst=angle, data=angle, op0=_ADD, operand0=math.pi / 2)
    _sine(dst, angle)


def tan_into(dst: NkiTensor, x: NkiTensor) -> None:
    """Write the tangent of ``x`` into ``dst``: sine by cosine of the remainder of ``x`` beyond a multiple of pi."""
    angle = _reduced(x, _HALF_TURN, 0.0)
    sine, cosine = (ndarray(x.shape, float32, sbuf) for _ in range(2))
    _sine(sine, angle)
    tensor_scalar(dst=angle, data=angle, op0=_ADD, operand0=math.pi / 2)
    _sine(cosine, angle)
    reciprocal(dst=cosine, data=cosine)
    tensor_tensor(dst=dst, data1=sine, data2=cosine, op=_MULTIPLY)


def _reduced(x: NkiTensor, period: tuple[float, ...], phase: float) -> NkiTensor:
    """``x`` less the multiple of the period for which ``x / period + phase`` lies between -1/2 and 1/2."""
    turns, angle = (ndarray(x.shape, float32, sbuf) for _ in range(2))
    tensor_scalar(
        dst=turns, data=x, op0=_MULTIPLY, operand0=1 / math.fsum(period), reverse0=False, op1=_ADD, operand1=phase
    )
    tensor_scalar(dst=turns, data=turns, op0=_ADD, operand0=_ROUND, reverse0=False, op1=_SUBTRACT, operand1=_ROUND)
    scalar_tensor_tensor(dst=angle, data=turns, op0=_MULTIPLY, operand0=-period[0], op1=_ADD, operand1=x)
    for part in period[1:]:
        scalar_tensor_tensor(dst=angle, data=turns, op0=_MULTIPLY, operand0=-part, op1=_ADD, operand1=angle)
    return angle


def _sine(dst: NkiTensor, angle: NkiTensor) -> None:
    """``dst`` = the sine of angles up to 3/2 pi, folded onto pi/2 first: the nearest multiple may be one too far.

    Whatever is left beyond pi comes of an ``x`` whose neighbours are whole turns away.
    """
    folded = ndarray(angle.shape, float32, sbuf)
    tensor_scalar(
        dst=folded, data=angle, op0=_MAXIMUM, operand0=-math.pi / 2, reverse0=False, op1=_MINIMUM, operand1=math.pi / 2
    )
    scalar_tensor_tensor(dst=folded, data=folded, op0=_MULTIPLY, operand0=2.0, op1=_SUBTRACT, operand1=angle)
    tensor_scalar(dst=folded, data=folded, op0=_MAXIMUM, operand0=-_PI, reverse0=False, op1=_MINIMUM, operand1=_PI)
    activation(dst=dst, op=_SINE, data=folded)


_RANGE = (
    "Every finite ``x`` is valid: it is brought into the range of the Scalar Engine's sine first. Before the cast the "
    "result is off by less than 1e-6 where ``|x|`` is below 2**20, by up to the distance of ``x`` to the next float32 "
    f"where ``|x|`` is larger. {CAST}"
)
_TOKEN = "nisa.activation takes ``op=nl.sin``, the Scalar Engine's own sine, valid for ``x`` from -pi to pi (NK305)."
sin = token("sin")(tile_function("sin", f"Return the sine of ``x`` in radians.\n\n{_RANGE} {_TOKEN}", sin_into))
cos = tile_function("cos", f"Return the cosine of ``x`` in radians.\n\n{_RANGE}", cos_into)
_POLES = (
    "It is the sine divided by the cosine, with the errors of nl.sin; near a pole they grow by ``1 + tan(x) ** 2``."
)
tan = tile_function("tan", f"Return the tangent of ``x`` in radians.\n\n{_POLES} {CAST}", tan_into)
