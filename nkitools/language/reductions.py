"""Reductions of tiles along their last free dimensions, and what is made of them: mean, variance, softmax."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from nkitools.chip.argument_types import Axes
from nkitools.chip.core import current_core
from nkitools.chip.dtypes import DTypeLike, float32
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines.enums import reduce_cmd
from nkitools.engines.operators import ACTIVATIONS, OPERATORS, token
from nkitools.isa.activation import activation
from nkitools.isa.elementwise import reciprocal, tensor_scalar, tensor_tensor
from nkitools.isa.reduce import tensor_reduce
from nkitools.issue.plan import DST
from nkitools.language.creation import ndarray, sbuf
from nkitools.language.math import binary_into, check_tile, flag, spread
from nkitools.language.promotion import result_dtype
from nkitools.rules.finding import refuse, report

_WHOLE = (int, np.integer)
_ADD, _EXP = OPERATORS["add"], ACTIVATIONS["exp"]


class Reduction(Protocol):
    """A function that reduces a tile along its last free dimensions."""

    def __call__(
        self, x: NkiTensor, axis: Axes, dtype: DTypeLike | None = None, keepdims: bool = False
    ) -> NkiTensor: ...


def reduction_axes(what: str, x: NkiTensor, axis: Axes) -> tuple[int, ...]:
    """NK609: the axes, those from the end counted from the start; nisa.tensor_reduce refuses what ``x`` has not."""
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    if not given or any(not isinstance(each, _WHOLE) or isinstance(each, bool) for each in given):
        refuse("NK609", f"nl.{what}: `axis` must be an integer or a list of integers, it is {axis!r}")
    return tuple(int(each) % x.ndim if -x.ndim <= each < x.ndim else int(each) for each in given)


def _reduced_shape(x: NkiTensor, axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    kept = tuple(1 if dim in axes else size for dim, size in enumerate(x.shape) if keepdims or dim not in axes)
    return (*kept, *[1] * (2 - len(kept)))


def _result_shape(what: str, x: NkiTensor, axes: tuple[int, ...], keepdims: bool) -> tuple[int, ...]:
    """Return the shape of a function's result; NK110 if it has only the partition dimension.

    AWS's simulator (nki 0.6.0): "SBUF and PSUM tensors must have at least 2 dimensions".
    """
    if not keepdims and set(axes) == set(range(1, x.ndim)):  # other axes are NK112
        message = (
            f"nl.{what} of {describe(x)} over all free dimensions leaves the partition dimension alone; a tile has at "
            "least two dimensions"
        )
        report("NK110", message, about=(x,), remedy="Pass keepdims=True.", facts={"extent": 1, "limit": 2})
    return _reduced_shape(x, axes, keepdims)


def is_refused(part: NkiTensor, dst: NkiTensor, x: NkiTensor) -> bool:
    """Return True if the step of a function of ``x`` that makes ``part`` was refused.

    The result ``dst`` is undefined then, too, and further steps would only report what follows from the refusal.
    """
    undone = current_core("nki.language").undone
    if part.storage.id not in undone or x.storage.id in undone:
        return False
    from nkitools.issue.refused_instructions import leave_undone  # for kernels that break a rule

    leave_undone(current_core("nki.language"), (dst,), (DST,), waits=False)
    return True


def reduced(
    what: str, operator: str, x: NkiTensor, axis: Axes, dtype: DTypeLike | None, keepdims: bool, *, negate: bool = False
) -> NkiTensor:
    """Return a new SBUF tile of ``x`` reduced along its last free dimensions, at least 2-D, of its dtype or of
    ``dtype``.

    ``axis``: an int or ints, the last dimensions without dimension 0; ``keepdims`` leaves them with size 1. ``x`` is a
    tile.
    Errors: NK101, NK107, NK108, NK110, NK112, NK201, NK301, NK609.
    """
    axes, keepdims = reduction_axes(what, x, axis), flag(what, "keepdims", keepdims)
    dst = ndarray(_reduced_shape(x, axes, keepdims), result_dtype(dtype, x), sbuf)
    tensor_reduce(dst=dst, op=OPERATORS[operator], data=x, axis=axes, negate=negate, keepdims=keepdims)
    return dst


def _reduction(name: str, operator: str, sentence: str) -> Reduction:
    def function(x: NkiTensor, axis: Axes, dtype: DTypeLike | None = None, keepdims: bool = False) -> NkiTensor:
        """{sentence}, computed in float32, in which integers beyond 2**24 lose low bits (NK307).

        ``x``: a tile in SBUF or PSUM. ``axis``: an int or ints, the last dimension(s) without dimension 0 (else NK112).
        They are left out of the result's shape, and stay with size 1 if ``keepdims`` is True. If no free dimension
        would remain, ``keepdims`` must be True (NK110).
        The result is a new SBUF tile. ``dtype``: of the result, by default that of ``x``; an integer dtype rounds to
        the nearest, halves to even, and saturates (NK304); a bool result is True where the value is not 0.
        Instructions take nl.{name} as the operator nl.{operator}.
        Errors: NK101, NK107, NK108, NK110, NK112, NK201, NK301, NK609, NK611. Source: nki.language.{name} (NKI 0.6).
        """
        check_tile(name, "x", x)
        _result_shape(name, x, reduction_axes(name, x, axis), flag(name, "keepdims", keepdims))
        return reduced(name, operator, x, axis, dtype, keepdims)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (function.__doc__ or "").format(sentence=sentence, name=name, operator=operator)
    return token(operator)(function)


sum = _reduction("sum", "add", "Return the sum along ``axis``")
max = _reduction("max", "maximum", "Return the largest element along ``axis`` (NaN if one is NaN)")
min = _reduction("min", "minimum", "Return the smallest element along ``axis`` (NaN if one is NaN)")
prod = _reduction("prod", "multiply", "Return the product along ``axis``")


def all(x: NkiTensor, axis: Axes, dtype: DTypeLike | None = None) -> NkiTensor:
    """Return 1 where no element along ``axis`` is 0, else 0; NaN is not 0.

    ``x``: a tile in SBUF or PSUM. ``axis``: an int or ints, the last dimension(s) without dimension 0 (others:
    NK112). They are left out of the result's shape, but two dimensions remain: [P, F] gives [P, 1]. The result is a
    new SBUF tile. ``dtype``: of the result, by default that of ``x``.
    Errors: NK101, NK107, NK108, NK110, NK112, NK201, NK301, NK609, NK611. Source: nki.language.all (NKI 0.6).
    """
    check_tile("all", "x", x)
    return reduced("all", "logical_and", x, axis, dtype, False)


@token("mean")
def mean(x: NkiTensor, axis: Axes, dtype: DTypeLike | None = None, keepdims: bool = False) -> NkiTensor:
    """Return the mean along ``axis``, computed as a float32 sum times 1 / n.

    ``x``: a tile in SBUF or PSUM. ``axis``: an int or ints, the last dimension(s) without dimension 0 (others:
    NK112). They are left out of the result's shape, and stay with size 1 if ``keepdims`` is True; it must be if no
    free dimension would remain (NK110). The result is a new SBUF tile. ``dtype``: of the result, by default that of
    ``x``; an integer dtype rounds to the nearest, halves to even. From NKI 0.7 on nisa.tensor_partition_reduce takes
    ``op=nl.mean``.
    Errors: NK101, NK107, NK108, NK110, NK112, NK201, NK301, NK609, NK611. Source: nki.language.mean (NKI 0.6).
    """
    check_tile("mean", "x", x)
    axes = reduction_axes("mean", x, axis)
    dst = ndarray(_result_shape("mean", x, axes, flag("mean", "keepdims", keepdims)), result_dtype(dtype, x), sbuf)
    mean_into(dst, x, axes)
    return dst


def mean_into(dst: NkiTensor, x: NkiTensor, axes: tuple[int, ...]) -> None:
    """``dst`` = the mean of ``x`` along its last free dimension(s)."""
    total = reduced("mean", "add", x, axes, float32, False)
    if is_refused(total, dst, x):
        return
    tensor_scalar(dst=dst, data=total, op0=OPERATORS["multiply"], operand0=total.size / x.size)


def var(x: NkiTensor, axis: Axes, dtype: DTypeLike | None = None, keepdims: bool = False) -> NkiTensor:
    """Return the variance along ``axis``, with the divisor n: the mean of ``(x - mean(x)) ** 2``, in float32.

    ``x``: a tile in SBUF or PSUM. ``axis``: an int or ints, the last dimension(s) without dimension 0 (others:
    NK112). They stay with size 1 whatever ``keepdims`` is: the reference ignores it at present. The result is a new
    SBUF tile. ``dtype``: of the result, by default that of ``x``; an integer dtype rounds and saturates (NK304).
    How AWS composes it is not published; here two means, a subtraction and a product on the Vector Engine.
    Errors: NK101, NK107, NK108, NK110, NK112, NK201, NK301, NK609, NK611. Source: nki.language.var (NKI 0.6).
    """
    check_tile("var", "x", x)
    flag("var", "keepdims", keepdims)
    axes = reduction_axes("var", x, axis)
    dst = ndarray(_reduced_shape(x, axes, True), result_dtype(dtype, x), sbuf)
    var_into(dst, x, axes)
    return dst


def var_into(dst: NkiTensor, x: NkiTensor, axes: tuple[int, ...]) -> None:
    """``dst`` = the variance of ``x`` along its last free dimension(s)."""
    mean = ndarray(_reduced_shape(x, axes, True), float32, sbuf)
    mean_into(mean, x, axes)
    if is_refused(mean, dst, x):
        return
    distances = ndarray(x.shape, float32, sbuf)
    binary_into(distances, "subtract", x, mean)
    binary_into(distances, "multiply", distances, distances)
    mean_into(dst, distances, axes)


def softmax(x: NkiTensor, axis: Axes = -1, dtype: DTypeLike | None = None) -> NkiTensor:
    """Return ``exp(x - max) / sum(exp(x - max))``, computed in float32; maximum and sum go along ``axis``.

    ``x``: a tile in SBUF or PSUM. ``axis``: an int or ints, the last dimension(s) without dimension 0 (others:
    NK112). The result is a new SBUF tile of the shape of ``x``. ``dtype``: of the result, by default that of ``x``.
    Errors: NK101, NK107, NK108, NK110, NK112, NK201, NK301, NK609, NK611. Source: nki.language.softmax (NKI 0.6).
    """
    check_tile("softmax", "x", x)
    axes = reduction_axes("softmax", x, axis)
    dst = ndarray(x.shape, result_dtype(dtype, x), sbuf)
    softmax_into(dst, x, axes)
    return dst


def softmax_into(dst: NkiTensor, x: NkiTensor, axes: tuple[int, ...]) -> None:
    """``dst`` = the softmax of ``x`` along its last free dimension(s)."""
    lowest = reduced("softmax", "maximum", x, axes, float32, True, negate=True)
    if is_refused(lowest, dst, x):
        return
    shifted = ndarray(x.shape, float32, sbuf)
    if lowest.layout.free_elements == 1:
        total = ndarray((x.shape[0], 1), float32, sbuf)
        activation(
            dst=shifted,
            op=_EXP,
            data=x,
            bias=lowest,
            reduce_op=_ADD,
            reduce_res=total,
            reduce_cmd=reduce_cmd.reset_reduce,
        )
        reciprocal(dst=total, data=total)
        tensor_scalar(dst=dst, data=shifted, op0=OPERATORS["multiply"], operand0=total)
        return
    tensor_tensor(dst=shifted, data1=x, data2=spread(lowest, x.shape), op=_ADD)
    activation(dst=shifted, op=_EXP, data=shifted)
    total = reduced("softmax", "add", shifted, axes, float32, True)
    reciprocal(dst=total, data=total)
    tensor_tensor(dst=dst, data1=shifted, data2=spread(total, x.shape), op=OPERATORS["multiply"])
