"""``nisa.*``: choosing between values, by an affine predicate, by a range of indices, by a predicate tile."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from nkitools.chip.dtypes import int32, uint32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.aws_names.enums import reduce_cmd as commands
from nkitools.dialects.legacy.aws_names.enums import translated
from nkitools.dialects.legacy.aws_names.limits import fp32
from nkitools.dialects.legacy.indexing.indices import Index, NonAffine
from nkitools.dialects.legacy.indexing.masks import Constraint, Mask, MaskLike, not_affine
from nkitools.dialects.legacy.kernels.keywords import Keyword
from nkitools.dialects.legacy.nisa.value_calls import (
    check_box,
    check_tiles,
    defined,
    first_in_row,
    in_place_lanes,
    new_result,
    spread,
    write_by,
)
from nkitools.dialects.legacy.tiles import reshaping
from nkitools.dialects.legacy.tiles.assignment import broadcasts
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, result_type
from nkitools.dialects.legacy.tiles.elementwise import check_tile
from nkitools.dialects.legacy.tiles.result_tiles import value_tile, write_lanes
from nkitools.dialects.legacy.tiles.tensor import Operand, Tensor
from nkitools.engines.operators import OPERATORS, OperatorToken
from nkitools.isa import select as _select
from nkitools.rules.finding import refuse, report


def affine_select(
    pred: Mask | Index | NonAffine | bool,
    on_true_tile: Tensor,
    on_false_value: float,
    *,
    mask: MaskLike = None,
    dtype: ResultDType = None,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``on_true_tile`` where ``pred`` holds, else the number ``on_false_value``, as a new SBUF tile.

    ``pred``: one comparison of affine expressions over the axes of the tile (NK604), or such an expression, which holds
    where it is above 0. ``on_true_tile``: in SBUF or PSUM, of any dtype but 32-bit integers (NK301). ``dtype``: of the
    result, by default ``on_true_tile``'s. Elements that ``mask`` leaves out are undefined.
    Errors: those of nkitools.isa.select.affine_select, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.affine_select"
    check_tile(what, "on_true_tile", on_true_tile)
    predicate = _predicate(what, pred, on_true_tile.shape)
    dst, lanes = new_result(what, on_true_tile, dtype, mask, kwargs)
    for role, tensor in (("on_true_tile", on_true_tile.base), ("dtype", dst)):
        if tensor.dtype in (int32, uint32):
            refuse("NK301", f"{what}: `{role}` cannot be of 32-bit integers, it is {describe(tensor)}", about=(tensor,))
    expression = predicate.expression
    comparison = OPERATORS["equal" if predicate.equality else "greater_equal"]
    firsts = [0] * len(dst.shape) if lanes is None else [first for first, _ in lanes.box]
    across, *slopes = expression.coefficients
    start = expression.constant + sum(slope * first for slope, first in zip((across, *slopes), firsts, strict=True))
    call = partial(_select.affine_select, channel_multiplier=across, on_false_value=on_false_value, cmp_op=comparison)

    def into(target: NkiTensor, tile: NkiTensor) -> None:
        pattern = tuple(zip(slopes, target.shape[1:], strict=True))
        if tile.buffer is MemoryRegion.psum:
            tile = reshaping.converted(tile, tile.dtype)
        call(dst=target, pattern=pattern, on_true_tile=tile, offset=start)

    write_lanes(into, dst, (on_true_tile,), lanes)
    return Tensor.made(dst, lanes)


def _predicate(what: str, pred: Mask | Index | NonAffine | bool, shape: tuple[int, ...]) -> Constraint:
    """Return the one comparison of a predicate, over the axes of the tile (NK604)."""
    if isinstance(pred, NonAffine):
        not_affine(f"{what}: `pred` holds {pred.reason}")
    if isinstance(pred, Index):
        pred = pred > 0
    if isinstance(pred, (bool, np.bool_)):
        return Constraint(Index(0 if pred else -1, (0,) * len(shape), shape), False)
    if not isinstance(pred, Mask):
        not_affine(f"{what}: `pred` is {type(pred).__name__}")
    if len(pred.constraints) != 1 or pred.never:
        not_affine(
            f"{what}: `pred` joins {len(pred.constraints)} comparisons with &; it takes one, nl.where takes more"
        )
    pred.lanes(shape, what)  # its axes are those of the tile
    found: Constraint = pred.constraints[0]
    expression = found.expression
    slopes = expression.coefficients if expression.ndim == len(shape) else (0,) * len(shape)
    return Constraint(Index(expression.constant, slopes, shape), found.equality)


def range_select(
    *,
    on_true_tile: Tensor,
    comp_op0: OperatorToken,
    comp_op1: OperatorToken,
    bound0: Operand,
    bound1: Operand,
    reduce_cmd: commands = commands.idle,
    reduce_res: Tensor | None = None,
    reduce_op: OperatorToken = np.amax,
    range_start: float = 0,
    on_false_value: float = fp32.min,
    mask: MaskLike = None,
    dtype: ResultDType = None,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``on_true_tile`` where an index is in a range, else FP32_MIN, as a new tile; NeuronCore-v3 on.

    Element i of a partition is selected where ``comp_op0(range_start + i, bound0)`` and ``comp_op1(range_start + i,
    bound1)`` hold; the bounds are float32 (partitions, 1) tiles. ``on_false_value``: -3.4028235e+38 and no other.
    ``reduce_res``, a (partitions, 1) tile, receives the maximum of the result, with ``reduce_cmd=idle`` that of this
    call alone. ``mask`` must leave a box, without gaps in a partition (NK604); it changes no index. ``dtype`` and
    memory of the result: as for nisa.activation.
    Errors: those of nkitools.isa.select.range_select, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.range_select"
    check_tiles(what, on_true_tile=on_true_tile, bound0=bound0, bound1=bound1)
    dst, lanes = new_result(what, on_true_tile, dtype, mask, kwargs)
    check_box(what, lanes)
    first = first_in_row(what, lanes, dst.shape)
    start = range_start + first if first else range_start
    command = commands.reset_reduce if reduce_cmd is commands.idle and reduce_res is not None else reduce_cmd
    call = partial(_select.range_select, comp_op0=comp_op0, comp_op1=comp_op1, reduce_cmd=translated(command))
    call = partial(call, reduce_op=reduce_op, range_start=start, on_false_value=on_false_value)
    tiles = {"on_true_tile": on_true_tile, "bound0": bound0, "bound1": bound1}
    write_by(call, dst, defined(lanes, *tiles.values()), **tiles, reduce_res=reduce_res)
    return Tensor.made(dst, lanes)


def select_reduce(
    *,
    dst: Tensor,
    predicate: Tensor,
    on_true: Tensor,
    on_false: Operand,
    reduce_res: Tensor | None = None,
    reduce_cmd: commands = commands.idle,
    reduce_op: OperatorToken = np.amax,
    reverse_pred: bool = False,
    mask: MaskLike = None,
    dtype: ResultDType = None,
    **kwargs: Keyword,
) -> None:
    """Write to ``dst`` ``on_true`` where ``predicate`` is not 0 (``reverse_pred``: is 0), else ``on_false``.

    ``on_true``: a tile; ``on_false``: a number or a (partitions, 1) vector. ``reduce_res``, a float (partitions, 1)
    tile, receives the engine's registers: with ``reduce_cmd=reset_reduce`` the maximum of the written values.
    ``predicate``: as many elements as ``dst``, or one for all of its last dimensions (NK621). ``dtype``: None or that
    of ``dst`` (NK301). Elements of ``dst`` that ``mask`` leaves out stay as they were.
    Errors: those of nkitools.isa.select.select_reduce, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.select_reduce"
    lanes = in_place_lanes(what, dst, mask, dtype, kwargs, predicate=predicate, on_true=on_true)
    predicate = _beside(what, predicate, dst)
    command = translated(reduce_cmd)
    reduces = command is not translated(commands.idle) or reduce_res is not None
    if reduces:
        check_box(what, lanes)
    issued = defined(lanes, predicate, on_true) if reduces else lanes
    call = partial(_select.select_reduce, reduce_cmd=command, reduce_op=reduce_op, reverse_pred=bool(reverse_pred))
    write_by(call, dst, issued, predicate=predicate, on_true=on_true, on_false=on_false, reduce_res=reduce_res)


def _beside(what: str, predicate: Tensor, dst: Tensor) -> Tensor:
    """Return a predicate as wide as ``dst`` that lacks its last dimensions, or has 1 for some (NK621); others as they
    are.
    """
    shape = (*predicate.shape, *(1,) * (dst.ndim - predicate.ndim))
    wide = len(shape) != dst.ndim or math.prod(shape) == math.prod(dst.shape)
    if wide or shape[0] != dst.shape[0] or not broadcasts(shape, dst.shape):
        return predicate
    view = predicate.resolved()
    message = (
        f"{what}: `predicate`, {describe(view)}, has {math.prod(shape[1:])} elements per partition and `dst`, "
        f"{describe(dst.base)}, has {math.prod(dst.shape[1:])}; the documents ask for as many, and compilers have "
        "taken it for all elements of its last dimensions"
    )
    report(
        "NK621", message, about=(view,), remedy=f"Broadcast it: reshape it to {shape}, then .broadcast_to(dst.shape)."
    )
    return Tensor(spread(view.reshape(shape), dst.shape))


def tensor_copy_predicated(
    *,
    src: Tensor,
    dst: Tensor,
    predicate: Tensor,
    reverse_pred: bool = False,
    mask: MaskLike = None,
    dtype: ResultDType = None,
    **kwargs: Keyword,
) -> None:
    """Copy ``src``, a tile or a number, to ``dst`` where ``predicate`` is not 0; with ``reverse_pred`` where it is 0.

    All other elements of ``dst`` stay as they were, and so do those that ``mask`` leaves out. ``predicate``: as many
    elements as ``dst``, or one for all of its last dimensions (NK621). ``dtype``: None or that of ``dst`` (NK301).
    Errors: those of nkitools.isa.select.tensor_copy_predicated, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.tensor_copy_predicated"
    lanes = in_place_lanes(what, dst, mask, dtype, kwargs, predicate=predicate)
    predicate = _beside(what, predicate, dst)
    call = partial(_select.tensor_copy_predicated, reverse_pred=bool(reverse_pred))
    write_by(call, dst, lanes, src=src, predicate=predicate)


def sequence_bounds(*, segment_ids: Tensor, dtype: ResultDType = None) -> Tensor:
    """Return where the segment of each of n ids begins and where it ends (exclusive), as a new (1, 2, n) SBUF tile.

    ``segment_ids``: a (1, n) tile of float32 or int32 in SBUF; a segment is a run of equal ids. An id of 0 is padding
    and gives n and -1. ``dtype``: float32 or int32, by default that of the ids.
    Errors: those of nkitools.isa.select.sequence_bounds, NK402, NK603, NK612.
    """
    what = "nisa.sequence_bounds"
    check_tile(what, "segment_ids", segment_ids)
    ids = segment_ids.resolved()
    dst = value_tile((ids.shape[0], 2, ids.layout.free_elements), result_type(dtype, what, segment_ids))
    _select.sequence_bounds(dst=dst, segment_ids=ids)
    return Tensor.made(dst)
