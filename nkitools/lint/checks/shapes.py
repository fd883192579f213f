"""NK101, NK103, NK104, NK112, NK609: sizes and axes that are written as numbers."""

from __future__ import annotations

import ast

from nkitools.lint.abstract_values import Api, ParDim, Piece, Sequence, Span, Tensor, Value, whole
from nkitools.lint.context import Context
from nkitools.lint.return_types import CREATING, REDUCING, Arguments, called, parts

PARTITIONS = 128  # of every chip so far
_STATIONARY = 128  # elements of a partition of the stationary tile, on every chip so far
_AXIS_AT = {("isa", False): 3, ("isa", True): 2, ("language", False): 1, ("language", True): 1}
_ALONG = {"softmax": 1, "rms_norm": 2}  # not reductions themselves, but they reduce; where their axis stands
_RANGES = ("affine_range", "sequential_range", "static_range")


def partitions(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """Tiles of more than 128 partitions, made by nl.ndarray and its kin or loaded from so many rows."""
    _, module, member = parts(function.name)
    if module != "language" or not (member in CREATING or member == "load"):
        return
    rows = _rows(function, member, given)
    if rows is None or rows <= PARTITIONS:
        return
    what = f"loads {rows} rows, one a partition" if member == "load" else f"makes a tile of {rows} partitions"
    message = f"{function.short} {what}; a NeuronCore has {PARTITIONS}"
    context.find("NK101", node, message, instruction=member, partitions=rows, limit=PARTITIONS)


def _rows(function: Api, member: str, given: Arguments) -> int | None:
    src = given.get("src", 0) if member == "load" else None
    if isinstance(src, Piece):
        first = src.keys[0]
        return first.size if isinstance(first, Span) else None
    made = called(function.name, given)
    if not isinstance(made, Tensor) or not made.shape or not made.on_chip:
        return None
    if member == "load" and not (isinstance(src, Tensor) and src.shape and not src.on_chip):
        return None
    return made.shape[0]


def contracted(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """Check a matmul's tiles: the rows of a tile of the array, and at most 128 columns of the stationary one."""
    legacy, module, member = parts(function.name)
    if (module, member) != ("isa", "nc_matmul") or "perf_mode" in given.named:
        return
    first = 0 if legacy else 1
    operands = (given.get("stationary", first), given.get("moving", first + 1))
    limit = next(iter(_numbers(given.named["tile_size"])), PARTITIONS) if "tile_size" in given.named else PARTITIONS
    for each in operands:
        rows = each.shape[0] if isinstance(each, Tensor) and each.shape else None
        if rows is not None and limit < rows <= PARTITIONS:
            message = f"nisa.nc_matmul contracts {rows} partitions; a tile of the array contracts {limit}"
            context.find("NK103", node, message, instruction=member, partitions=rows, limit=limit)
    tile = operands[0]
    if isinstance(tile, Tensor) and tile.shape is not None and len(tile.shape) == 2:
        columns = tile.shape[1]
        if columns is not None and columns > _STATIONARY:
            message = f"nisa.nc_matmul: the stationary tile has {columns} columns; the array has {_STATIONARY}"
            context.find("NK104", node, message, instruction=member, extent=columns, limit=_STATIONARY)


def axes(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """Report a reduction along dimension 0."""
    legacy, module, member = parts(function.name)
    along = module == "language" and (member in REDUCING or member in _ALONG)
    reduces = along or (module, member) == ("isa", "tensor_reduce")
    at = _ALONG.get(member) or _AXIS_AT[module, legacy] if reduces else 0
    axis = given.get("axis", at) if reduces else None
    if axis is not None and 0 in _numbers(axis):
        message = f"{function.short}: axis 0 is the partition dimension, which the Vector Engine cannot reduce"
        context.find("NK112", node, message, instruction=member, argument="axis", axis=0)


def _numbers(axis: Value) -> list[int]:
    items = (axis.items or ()) if isinstance(axis, Sequence) else (axis,)
    return [number for each in items if (number := whole(each)) is not None]


def trip_count(context: Context, node: ast.Call, function: Api, given: Arguments) -> None:
    """``nl.affine_range(nl.par_dim(4))``: par_dim marks a dimension of a shape."""
    _, module, member = parts(function.name)
    if module == "language" and member in _RANGES and any(isinstance(each, ParDim) for each in given.positional):
        message = (
            f"{function.short} takes a number of iterations, it is given nl.par_dim(...), which marks the partition "
            "dimension of a shape"
        )
        context.find("NK609", node, message, f"Write the number itself: {function.short}(4).")


LISTENS = {"call": (partitions, contracted, axes, trip_count)}
