"""Element-wise computations of tiles: shapes and dtypes of results, broadcasting, and the instruction that fits."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any, NoReturn

import numpy as np

from nkitools.chip.dtypes import DType, float32
from nkitools.chip.masked_tensor import MaskedTensor
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe, name_of
from nkitools.dialects.legacy.indexing.masks import Lanes, MaskLike, lanes_of
from nkitools.dialects.legacy.indexing.runtime_indices import DynamicIndex
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, is_number, result_type
from nkitools.dialects.legacy.tiles.result_tiles import (
    Part,
    Tile,
    TileOrNumber,
    new_tile,
    value_tile,
    view_of,
    write_lanes,
)
from nkitools.engines.operators import ACTIVATIONS, OPERATORS
from nkitools.isa.activation import activation
from nkitools.isa.elementwise import reciprocal, tensor_scalar
from nkitools.isa.move import tensor_copy
from nkitools.issue.guards import MAX_DIMENSIONS
from nkitools.issue.known_forms import report_known
from nkitools.language.broadcast import spread_partitions
from nkitools.language.math import binary_into
from nkitools.language.rounding import ceil_into, floor_into, trunc_into
from nkitools.language.trigonometry import cos_into, sin_into, tan_into
from nkitools.rules.finding import refuse, report


def not_a_tile(what: str, role: str, value: Any) -> NoReturn:
    """Refuse an operand that is neither a tile nor, where that is possible, a number."""
    if isinstance(value, np.ndarray):
        hint = "Make tiles with nl.ndarray(...). NumPy arrays can only be passed in as arguments."
    elif hasattr(value, "coefficients"):
        hint = "An index becomes a tile with nisa.iota(index, dtype=nl.int32)."
    elif isinstance(value, DynamicIndex):
        hint = "The sum of a tile and an index is an address. As numbers: nl.add(tile, nisa.iota(index, nl.int32))."
    else:
        hint = "Load tensors with nl.load first."
    refuse("NK609", f"{what}: `{role}` must be a tile, it is {type(value).__name__}", remedy=hint)


def check_tile(what: str, role: str, value: Any) -> None:
    """NK609: an operand is a tensor of this dialect."""
    if not hasattr(value, "element"):
        not_a_tile(what, role, value)


def common_shape(what: str, x: TileOrNumber, y: TileOrNumber, *, partitions: bool) -> tuple[int, ...]:
    """Return the shape of a result, broadcast as NumPy does; partitions only under ``partitions`` (NK111)."""
    tiles: list[Any] = [value for value in (x, y) if not is_number(value)]
    for role, value in (("x", x), ("y", y)):
        if not is_number(value):
            check_tile(what, role, value)
    if not tiles:
        refuse("NK609", f"{what} needs at least one tile, it is given numbers only")
    shape: tuple[int, ...] = tiles[0].shape
    other: tuple[int, ...] = tiles[-1].shape
    if shape == other:
        return shape
    first, second = (tile.resolved() for tile in tiles)
    pairs = list(zip(shape, other, strict=False))
    if len(shape) != len(other) or any(a != b and 1 not in (a, b) for a, b in pairs[1:]):
        sentence = f"{what}: the shapes of {describe(first)} and {describe(second)} do not broadcast"
        refuse("NK109", sentence, about=(first, second))
    if shape[0] != other[0]:
        _check_partitions(what, first, second, partitions)
    return tuple(max(pair) for pair in pairs)


def _check_partitions(what: str, x: NkiTensor, y: NkiTensor, partitions: bool) -> None:
    counts = (x.shape[0], y.shape[0])
    if 1 not in counts:
        message = f"{what}: {describe(x)} and {describe(y)} have different numbers of partitions"
        there = next((each for each in (x, y) if not each.on_chip), None)
        remedy = "" if there is None else f"Load{name_of(there)} first: it lies in HBM, and engines compute on chip."
        refuse("NK102", message, about=(x, y), remedy=remedy)
    if not partitions:
        refuse(
            "NK111",
            f"{what}: {describe(x)} and {describe(y)} have different numbers of partitions, which operators do not "
            "broadcast",
            about=(x, y),
            remedy="Call nl.add, nl.multiply, … or broadcast first: tile.broadcast_to(shape).",
        )


@cache
def binary_instructions(what: str) -> Callable[..., None]:
    """``dst = x <what> y``; an operand of one partition is broadcast to those of ``dst``."""

    def into(dst: NkiTensor, x: TileOrNumber, y: TileOrNumber) -> None:
        binary_into(dst, what, spread(x, dst), spread(beside(x, y), dst))

    return into


def are_both_in_psum(first: Part, second: Part) -> bool:
    """Return whether two operands are views of PSUM: the Vector Engine reads one of its two inputs from there."""
    return (
        isinstance(first, NkiTensor)
        and isinstance(second, NkiTensor)
        and first.storage.memory is second.storage.memory is MemoryRegion.psum
    )


def beside(first: Part, second: Any) -> Any:
    """Return the second operand as it is, or a copy of it in SBUF where both lie in PSUM."""
    if first.__class__ is NkiTensor and first.storage.memory is MemoryRegion.sbuf:  # a look for nearly all
        return second
    if not are_both_in_psum(first, second):
        return second
    copied = new_tile(second.shape, second.dtype)
    tensor_copy(dst=copied, src=second)
    return copied


def report_product(what: str, operator: str | None, first: Any, second: Any, *, columns: bool = False) -> None:
    """NK623: a product of three dimensions or more that broadcasts a factor along a free dimension.

    A number is no such factor, nor is a column (one number for each partition) without ``columns``: tensor_scalar
    takes them.
    """
    if operator != "multiply" or is_number(first) or is_number(second):
        return
    fewer, more = sorted(prod(tile.shape[1:]) for tile in (first, second))
    if max(first.ndim, second.ndim) < 3 or fewer == more or (fewer == 1 and not columns):
        return
    report_known(what, "legacy-broadcast-product", f"a product of tiles of the shapes {first.shape} and {second.shape}")


def spread(operand: Part, dst: NkiTensor) -> Any:
    """Return an operand of one partition copied to as many as ``dst`` has; all else as it is."""
    if isinstance(operand, NkiTensor) and operand.shape[0] == 1 < dst.shape[0]:
        return spread_partitions(operand, dst.shape[0])
    return operand


def binary(
    what: str,
    x: TileOrNumber,
    y: TileOrNumber,
    *,
    dtype: ResultDType = None,
    mask: MaskLike = None,
    partitions: bool = True,
    name: str = "",
) -> tuple[NkiTensor, Lanes | None]:
    """Return a new SBUF tile of ``x <what> y`` and the lanes that were computed."""
    plain = _shape_of_both(x, y) if mask is None else None
    if plain is not None:
        first, second = view_of(x), view_of(y)
        dst = value_tile(plain, _binary_type(what, dtype, name, x, y))
        binary_into(dst, what, first, beside(first, second))
        return dst, None
    called = name or f"nl.{what}"
    shape = common_shape(called, x, y, partitions=partitions)
    lanes = lanes_of(mask, shape, called)
    report_product(called, what, x, y)
    dst = value_tile(shape, _binary_type(what, dtype, called, x, y))
    write_lanes(binary_instructions(what), dst, (x, y), lanes)
    return dst, lanes


def _shape_of_both(x: Any, y: Any) -> tuple[int, ...] | None:
    """Return the shape of two tiles, or of a tile beside a number, where one instruction takes them; else None."""
    if x.__class__ is y.__class__:
        tile, fits = x, hasattr(x, "element") and x.shape == y.shape
    else:
        tile, number = (y, x) if is_number(x) else (x, y)
        fits = hasattr(tile, "element") and is_number(number)
    return tile.shape if fits and len(tile.shape) <= MAX_DIMENSIONS else None


def _binary_type(what: str, dtype: ResultDType, called: str, x: TileOrNumber, y: TileOrNumber) -> DType:
    """Return the dtype of ``x <what> y``.

    A quotient of integers is float32, as NumPy's is a float. The table of type promotion would have it an integer, but
    AWS's resize_nearest, which is tested on the chip, rounds it with nl.floor.
    """
    element, other = getattr(x, "element", None), getattr(y, "element", None)
    if dtype is None and element is other and isinstance(element, DType) and element.is_float:
        return element
    found = result_type(dtype, called, x, y)
    return float32 if what == "divide" and dtype is None and not found.is_float else found


def in_place(what: str, dst: Tile, other: Any, name: str, where: Array | None = None) -> None:
    """``dst <what>= other``, or only where a mask of the tiles' shape is true; the dtype stays."""
    shape = common_shape(name, dst, other, partitions=False)
    target = dst.resolved()
    if shape != target.shape:
        tensor = other.resolved()
        refuse(
            "NK109",
            f"{name}: {describe(tensor)} is larger than {describe(target)}, to which it is applied "
            "(err_store_dst_shape_smaller_than_other_shape)",
            about=(target, tensor),
            facts={"code": "err_store_dst_shape_smaller_than_other_shape"},
        )
    value = beside(target, view_of(other))
    report_product(name, what, dst, other)
    binary_into(target if where is None else MaskedTensor.of(target, where), what, target, value)


def _activated(what: str) -> Callable[..., Any]:
    return lambda dst, x: activation(dst=dst, op=ACTIVATIONS[what], data=x)


def _with_scalar(operator: str, number: float | None) -> Callable[..., Any]:
    return lambda dst, x: tensor_scalar(dst=dst, data=x, op0=OPERATORS[operator], operand0=number)


def _sine(dst: NkiTensor, x: NkiTensor) -> None:
    """``dst`` = the sine of ``x``; NK305 beyond pi, for which SDK 2.26 does not document it.

    The range reduction is that of NKI 0.6, since public kernels take angles of many turns.
    """
    outside = np.abs(x.read().astype(np.float32)) > np.float32(np.pi)
    if outside.any():
        message = (
            f"nl.sin: {np.count_nonzero(outside)} of {x.size} elements of {describe(x)} lie outside of -pi to pi, the "
            "range that SDK 2.26 documents; they are computed here as by NKI 0.6, which brings them into the range"
        )
        report("NK305", message, about=(x,), remedy="Subtract the nearest multiple of 2*pi from the angle first.")
    sin_into(dst, x)


UNARY: dict[str, Callable[..., Any]] = {
    **{name: _activated(name) for name in ACTIVATIONS if name not in ("copy", "reciprocal", "abs", "sin")},
    "sin": _sine,
    "cos": cos_into,
    "tan": tan_into,
    "floor": floor_into,
    "ceil": ceil_into,
    "trunc": trunc_into,
    "abs": _with_scalar("abs", None),
    "reciprocal": lambda dst, x: reciprocal(dst=dst, data=x),
    "invert": _with_scalar("invert", None),
    "negative": _with_scalar("multiply", -1.0),
    "logical_not": _with_scalar("logical_xor", 1.0),
}


def unary(what: str, x: Tile, *, dtype: ResultDType = None, mask: MaskLike = None) -> tuple[NkiTensor, Lanes | None]:
    """Return a new SBUF tile of a function of ``x`` and the lanes that were computed."""
    check_tile(f"nl.{what}", "x", x)
    lanes = lanes_of(mask, x.shape, f"nl.{what}")
    dst = value_tile(x.shape, result_type(dtype, f"nl.{what}", x))
    write_lanes(UNARY[what], dst, (x,), lanes)
    return dst, lanes
