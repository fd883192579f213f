"""Reductions along the free dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nkitools.chip.dtypes import DType
from nkitools.chip.numerics import Array, to_float32
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines import lost_integers
from nkitools.engines.arithmetic import bits, negate, put_bits
from nkitools.engines.cast_on_write import in_float32, put
from nkitools.engines.costs import is_bfloat16, streaming
from nkitools.engines.operators import OPERATORS, Operator, OperatorToken
from nkitools.issue import guards
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import Axes
from nkitools.issue.instruction import Check, Dst, Plan, Src, instruction

_REORDERABLE = frozenset(
    OPERATORS[name] for name in ("add", "multiply", "maximum", "minimum")
)  # NumPy's reductions over several axes at once


def last_axis(ndim: int) -> str:
    """Return what to write in the place of an axis that a tile of ``ndim`` dimensions does not have."""
    free = ", ".join(map(str, range(1, ndim)))
    return f"Write axis={ndim - 1}, the last dimension; the free dimensions are {free}."


def reduction_axes(check: Check, data: NkiTensor, axis: int | tuple[int, ...]) -> tuple[int, ...]:
    """NK112: the axes are the last dimensions up to the final one, without the partition dimension."""
    given = axis if isinstance(axis, tuple) else (axis,)
    if not given or not all(isinstance(each, (int, np.integer)) and not isinstance(each, bool) for each in given):
        check.refuse("NK609", f"`axis` must be an integer or a list of integers, it is {axis!r}")
    ndim = data.ndim
    if not all(-ndim <= each < ndim for each in given):
        message = f"`axis`={axis} names a dimension that {describe(data)} does not have"
        check.refuse("NK112", message, data, argument="axis", remedy=last_axis(ndim))
    axes = tuple(sorted({int(each) % ndim for each in given}))
    if 0 in axes:
        check.refuse(
            "NK112",
            f"`axis`={axis} includes the partition dimension of {describe(data)}, which is not reduced",
            data,
            argument="axis",
            axis=0,
            remedy=f"To reduce along the free dimension write axis={ndim - 1}; to reduce over partitions transpose "
            "first with nisa.nc_transpose, or multiply by a column of ones with nisa.nc_matmul.",
        )
    if axes != tuple(range(ndim - len(axes), ndim)):
        message = (
            f"`axis`={axis} of {describe(data)} must be the last dimensions, ending at the final one: "
            f"{tuple(range(ndim - len(axes), ndim))}"
        )
        remedy = f"Permute the free dimensions so that the reduced ones come last, or write axis={ndim - 1}."
        check.fail("NK112", message, data, argument="axis", axis=axes[-1], remedy=remedy)
    return axes


@instruction
def tensor_reduce(
    check: Check,
    dst: Dst,
    op: OperatorToken,
    data: Src,
    axis: int | tuple[int, ...],
    negate: bool = False,
    keepdims: bool = False,
    name: str | None = None,
) -> Plan:
    """Reduce ``data`` along its last free dimensions on the Vector Engine; ``negate`` multiplies the result by -1.

    ``op``: add, subtract (the first element minus all others), multiply, maximum, minimum, logical_and, logical_or,
    logical_xor (in float32, cast once), or bitwise_and, bitwise_or, bitwise_xor (on integers, without ``negate``).
    ``axis``: an int or ints, the last contiguous dimensions ending at the final one (-1), never 0. ``dst`` has as many
    elements per partition as remain; with or without the reduced dimensions as 1, whatever ``keepdims`` says. Memory:
    SBUF or PSUM.
    Errors: NK101, NK102, NK107 to NK110, NK112, NK201, NK301, NK306, NK609. Source: nki.isa.tensor_reduce (NKI 0.6).
    """
    operator = guards.reduction_operator(check, "op", op)
    guards.tiles(check, dst=dst, data=data)
    guards.not_packed(check, dst=dst, data=data)
    axes = reduction_axes(check, data, axis)
    guards.same_partitions(check, ("dst", dst), ("data", data))
    with_ones = tuple(1 if dim in axes else size for dim, size in enumerate(data.shape))
    kept = tuple(size for dim, size in enumerate(data.shape) if dim not in axes)
    if dst.layout.free_elements != math.prod(kept[1:]):
        message = (
            f"`dst`, {describe(dst)}, must hold {math.prod(kept[1:])} elements per partition to take `data`, "
            f"{describe(data)}, reduced along {axes}"
        )
        from nkitools.issue.shape_remedies import resized

        change = resized(dst, with_ones)
        check.refuse("NK109", message, dst, data, remedy=change.remedy, **change.facts)
    bitvec = operator.kind == "bitvec"
    if bitvec:
        guards.integers(check, dst=dst, data=data)
        if negate:
            check.refuse("NK609", f"`negate` goes with arithmetic operators, not with {operator}")

    plain = operator in _REORDERABLE and dst.shape in (kept, with_ones)
    if plain and in_float32(dst.dtype, data.dtype):
        compute = _reducing_directly(operator.compute, axes, dst.shape == with_ones, negated=bool(negate))
    else:
        compute = reducing(operator, axes, dst.dtype, data.dtype, np.negative if negate else None)

    factor = 0.5 if is_bfloat16(dst, data) and operator.name in ("add", "maximum") else 1
    elements = made(dst={"data": Axes(axes)})
    return Plan("vector", streaming(check.chip, data, factor), compute, elements, lanes="apart")


def _reducing_directly(function: Any, axes: tuple[int, ...], keepdims: bool, *, negated: bool) -> Callable[..., None]:
    """All in float32 by a NumPy function: straight into the destination."""
    reduce = function.reduce

    def compute(destination: Array, values: Array) -> None:
        reduce(values, axis=axes, keepdims=keepdims, out=destination)
        if negated:
            negate(destination)

    return compute


def reducing(
    operator: Operator,
    axes: tuple[int, ...],
    dtype: DType,
    given: DType,
    finish: Callable[[Array], Array] | None = None,
) -> Callable[[Array, Array], None]:
    """Return a reduction on bits, or in float32 and then by way of ``finish``, cast once into ``dtype``."""
    reduce, bitvec = operator.reduce, operator.kind == "bitvec"
    assert reduce is not None

    def on_bits(destination: Array, values: Array) -> None:
        put_bits(destination, reduce(bits(values, dtype), axes, False), dtype)

    def in_float32(destination: Array, values: Array) -> None:
        result = reduce(to_float32(values), axes, False)
        put(destination, result if finish is None else finish(result), dtype)

    def exactly(values: Array) -> Array:
        result = reduce(values.astype(np.float64), axes, False)
        return np.asarray(result if finish is None else finish(result))

    return on_bits if bitvec else lost_integers.watched(in_float32, exactly, dtype, (given,))
