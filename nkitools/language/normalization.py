"""Normalising tiles."""

from __future__ import annotations

from nkitools.chip.argument_types import Axes, Number
from nkitools.chip.core import current_core
from nkitools.chip.dtypes import DType, DTypeLike, float32
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines.enums import engine
from nkitools.engines.operators import ACTIVATIONS, OPERATORS
from nkitools.isa.activation import activation
from nkitools.isa.elementwise import tensor_scalar
from nkitools.language.creation import ndarray, sbuf
from nkitools.language.math import binary_into, broadcast_shape, check_tile, is_number
from nkitools.language.promotion import known_dtype, result_dtype
from nkitools.language.reductions import is_refused, reduced, reduction_axes
from nkitools.rules.finding import refuse, report

_ADD, _MULTIPLY, _RSQRT = (OPERATORS[name] for name in ("add", "multiply", "rsqrt"))
_SQUARE = ACTIVATIONS["square"]


def rms_norm(
    x: NkiTensor,
    w: NkiTensor,
    axis: Axes,
    n: Number,
    epsilon: Number = 1e-06,
    dtype: DTypeLike | None = None,
    compute_dtype: DTypeLike | None = None,
) -> NkiTensor:
    """Return ``x / sqrt(sum(x ** 2) / n + epsilon) * w`` as a new SBUF tile of the shape of ``x``.

    ``axis``: an int or ints, the last free dimension(s) of ``x``, along which the sum goes. ``n``: a number above 0,
    usually the number of summed elements. ``epsilon``: a number, at least 0. ``w``: a tile of as many dimensions and
    partitions as ``x``; its free dimensions are those of ``x`` or 1. ``dtype``: of the result, by default that of
    ``x``. ``compute_dtype``: of all tiles in between, by default float32; the reference names no default.
    Under NKI 0.6 a call is an error (NK615): the compiler of nki 0.6.0 refuses nl.rms_norm, as its own form multiplies
    the tile by a column with nisa.tensor_tensor. How AWS composes it is not published: here a square on the Scalar
    Engine, a sum, ``* 1/n + epsilon``, a reciprocal square root on the GpSimd Engine, and two products.
    Errors: NK101, NK102, NK107 to NK112, NK201, NK301, NK609, NK611, NK615. Source: nki.language.rms_norm (NKI 0.6).
    """
    check_tile("rms_norm", "x", x)
    check_tile("rms_norm", "w", w)
    _check_numbers(n, epsilon)
    _check_version(x)
    if broadcast_shape("rms_norm", x, w) != x.shape:
        refuse("NK109", f"nl.rms_norm: w {list(w.shape)} does not broadcast to x {list(x.shape)}", about=(x, w))
    working = float32 if compute_dtype is None else known_dtype(compute_dtype)
    dst = ndarray(x.shape, result_dtype(dtype, x), sbuf)
    rms_norm_into(dst, x, w, reduction_axes("rms_norm", x, axis), n, epsilon, working)
    return dst


def _check_version(x: NkiTensor) -> None:
    """NK615: "'nisa.tensor_tensor_arith' op 'dst' free total elements 5120 != 'rhs' free total elements 1"."""
    if not current_core("nl.rms_norm").language.whole_rms_norm:
        message = f"nl.rms_norm of {describe(x)} does not compile: nki 0.6.0 multiplies the tile by a column there"
        remedy = (
            "Write it out: nisa.activation(op=nl.square, reduce_op=nl.add), nl.rsqrt, and nisa.tensor_scalar for the "
            "column."
        )
        report("NK615", message, about=(x,), remedy=remedy, severity="error")


def rms_norm_into(
    dst: NkiTensor, x: NkiTensor, w: NkiTensor, axes: tuple[int, ...], n: Number, epsilon: Number, working: DType
) -> None:
    """``dst`` = ``x / RMS(x) * w``, along the last free dimension(s), by way of tiles of the dtype ``working``."""
    values = ndarray(x.shape, working, sbuf)
    activation(dst=values, op=_SQUARE, data=x)
    scale = reduced("rms_norm", "add", values, axes, working, True)
    if is_refused(scale, dst, values):
        return
    tensor_scalar(dst=scale, data=scale, op0=_MULTIPLY, operand0=1 / n, reverse0=False, op1=_ADD, operand1=epsilon)
    tensor_scalar(dst=scale, data=scale, op0=_RSQRT, operand0=None, engine=engine.gpsimd)
    binary_into(values, "multiply", x, scale)
    binary_into(dst, "multiply", values, w)


def _check_numbers(n: Number, epsilon: Number) -> None:
    for role, number, least in (("n", n, "more than 0"), ("epsilon", epsilon, "at least 0")):
        if not is_number(number) or isinstance(number, bool) or not (number > 0 or (role == "epsilon" and number == 0)):
            refuse("NK609", f"nl.rms_norm: {role} must be a number, {least}; it is {number!r}")
