"""Reductions over the iterations of a loop, and over the programs of a launch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from nkitools.authors_code.instructions import bound_name
from nkitools.authors_code.positions import line_of
from nkitools.chip.core import current_core
from nkitools.chip.dtypes import DType, float32
from nkitools.chip.full_precision_shadow import digits_of
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.indexing.indices import Index, whole
from nkitools.dialects.legacy.indexing.masks import MaskLike, lanes_of
from nkitools.dialects.legacy.kernels.keywords import Keyword
from nkitools.dialects.legacy.kernels.loop_dependences import note_update
from nkitools.dialects.legacy.nisa.value_calls import checked
from nkitools.dialects.legacy.nl.programs import ProgramId, num_programs
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, result_type
from nkitools.dialects.legacy.tiles.result_tiles import copy_tile, new_tile, value_tile, write_lanes
from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.engines.operators import OPERATORS, OperatorToken, token_name
from nkitools.isa.move import tensor_copy
from nkitools.language.math import binary_into
from nkitools.record.source_sites import author_frame
from nkitools.rules.finding import not_modelled, refuse


def loop_reduce(
    x: Tensor,
    op: OperatorToken,
    loop_indices: Sequence[Index],
    *,
    dtype: ResultDType = None,
    mask: MaskLike = None,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``x`` for an assignment that combines: ``b[...] = nl.loop_reduce(x, op, [k])`` makes ``b`` ``op(b, x)``.

    Where the variable ``b`` holds a tile of the shape of ``x`` already, ``b = nl.loop_reduce(x, ...)`` gives it a new
    SBUF tile with ``op(b, x)``. If ``b[...]`` was never written, it becomes ``x``. ``op``: an operator of two operands,
    such as np.add. ``loop_indices``: one or several loop counters; they change nothing. ``dtype``: of the combined
    values, before they are cast to that of ``b``. Elements that ``mask`` leaves out stay as they are.
    Errors: NK101, NK109, NK201, NK301, NK306, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nl.loop_reduce"
    checked(what, kwargs, x=x)
    operator = _operator(what, op)
    given = loop_indices if isinstance(loop_indices, (list, tuple)) else (loop_indices,)
    if not given or any(whole(each) is None for each in given):
        refuse("NK609", f"{what}: `loop_indices` must be loop counters, it is {loop_indices!r}")
    reduction = LoopReduction(x, operator, None if dtype is None else result_type(dtype, what), mask)
    before = _rebound()
    if before is None or before.shape != x.shape:
        return reduction
    dst = new_tile(before.shape, reduction.kind or before.element)
    if mask is None:
        write_lanes(lambda target, *pair: binary_into(target, operator, *pair), dst, (before, x), None)
    else:
        copy_tile(dst, before, None)
        reduction.reduce_into(Tensor(dst))
    return Tensor(dst)


def _operator(what: str, op: OperatorToken) -> str:
    name = token_name(op)
    if name not in OPERATORS or OPERATORS[name].unary:
        refuse("NK306", f"{what}: `op` must be an operator of two operands, it is {op!r}")
    return name


def _rebound() -> Tensor | None:
    """Return the tile that the variable holds to which the author assigns the value of the running call."""
    frame = author_frame(2)
    name = "" if frame is None else bound_name(frame.f_code, frame.f_lasti)
    before = frame.f_locals.get(name) if frame is not None and name else None
    return before if isinstance(before, Tensor) and not isinstance(before, LoopReduction) else None


class LoopReduction(Tensor):
    """A tile on its way to the destination that it is combined with."""

    __slots__ = ("kind", "mask", "operator")
    is_plain = False

    def __init__(self, tile: Tensor, operator: str, kind: DType | None, mask: MaskLike) -> None:
        super().__init__(tile.base)
        self.access, self.shape = tile.access, tile.shape
        self.operator = operator
        self.kind = kind
        self.mask = mask

    def reduce_into(self, dst: Tensor) -> None:
        """``dst[...] = op(dst, x)``. Errors: NK109, NK604."""
        what = "nl.loop_reduce"
        if dst.shape != self.shape:
            about = (self.base, dst.base)
            refuse("NK109", f"{what}: {describe(self.base)} is combined with {describe(dst.base)}", about=about)
        lanes = lanes_of(self.mask, self.shape, what)
        before = current_core(what).record.count
        write_lanes(self._combine, dst, (self,), lanes)
        note_update(self.operator, before)

    def _combine(self, target: NkiTensor, tile: NkiTensor) -> None:
        if tile.buffer is target.buffer is MemoryRegion.psum:
            copied = new_tile(tile.shape, tile.dtype)  # the Vector Engine reads one of its two inputs from PSUM
            tensor_copy(dst=copied, src=tile)
            tile = copied
        missing = target.unwritten()
        if missing is not None and missing.all():
            tensor_copy(dst=target, src=tile)  # kernels of AWS's compiler leave the start value to it
            return
        if self.kind in (None, target.dtype):
            binary_into(target, self.operator, target, tile)
            return
        combined = new_tile(target.shape, self.kind)
        binary_into(combined, self.operator, target, tile)
        tensor_copy(dst=target, src=combined)


def all_reduce(
    x: Tensor,
    op: OperatorToken,
    program_axes: int | Sequence[int],
    *,
    dtype: ResultDType = None,
    mask: MaskLike = None,
    parallel_reduce: bool = True,
    asynchronous: bool = False,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``x`` reduced by ``op`` over the programs along axes of the launch grid: in each of them a new SBUF tile.

    ``op``: an operator of two operands, such as np.add. ``program_axes``: one or several axes of the grid, or values
    of nl.program_id for them, as in AWS's kernels. The tiles are combined in the order of the programs, those of floats
    in float32; a program waits for the others (NK504 if one never comes). ``dtype``: of the result, by default that of
    ``x``. Elements that ``mask`` leaves out are undefined. ``parallel_reduce`` changes nothing.
    ``asynchronous=True`` is refused (NK607), since nki.sync_thread, which would wait, is documented nowhere.
    Errors: NK101, NK107, NK108, NK201, NK301, NK306, NK402, NK504, NK603, NK604, NK607, NK609, NK611, NK612.
    """
    what = "nl.all_reduce"
    checked(what, kwargs, x=x)
    operator = _operator(what, op)
    for role, value in (("parallel_reduce", parallel_reduce), ("asynchronous", asynchronous)):
        if not isinstance(value, (bool, np.bool_)):
            refuse("NK609", f"{what}: `{role}` must be True or False, it is {value!r}")
    if asynchronous:
        not_modelled(f"{what}(asynchronous=True) is not modelled", remedy="Leave asynchronous out.")
    if not x.base.on_chip:
        refuse("NK201", f"{what}: `x` must be in SBUF or PSUM, it is {describe(x.base)}", about=(x.base,))
    given = program_axes if isinstance(program_axes, (list, tuple)) else (program_axes,)
    axes = [each.axis if isinstance(each, ProgramId) else each for each in given]
    for axis in axes:
        num_programs(axis)  # refuses what is no axis of the grid
    lanes = lanes_of(mask, x.shape, what)
    dst = value_tile(x.shape, result_type(dtype, what, x))

    def into(target: NkiTensor, tile: NkiTensor) -> None:
        others = _exchanged(tile, operator, axes)
        total = new_tile(tile.shape, float32 if tile.dtype.is_float else tile.dtype)
        tensor_copy(dst=total, src=others[0])
        for other in others[1:]:
            binary_into(total, operator, total, other)
        current_core(what).record.begin_value(target.storage)  # others had a turn since
        tensor_copy(dst=target, src=total)

    write_lanes(into, dst, (x,), lanes)
    return Tensor.made(dst, lanes)


def _exchanged(tile: NkiTensor, operator: str, axes: list[Any]) -> list[NkiTensor]:
    """Return the tiles of all programs that differ from this one along the axes, in the order of the programs."""
    core = current_core("nl.all_reduce")
    members = _members(core.grid, core.program, axes)
    if len(members) == 1:
        return [tile]
    place = author_frame()
    where = "" if place is None else f" at {place.f_code.co_filename}:{line_of(place)}"
    offered = core.baton.meet(
        ("nl.all_reduce", operator, tile.shape, tile.dtype.name),
        [core.team[number] for number in members],
        (np.array(digits_of(tile)), tile.unwritten()),
        lambda: f"waits in nl.all_reduce of {describe(tile)}{where}",
    )
    return [_received(tile, *offered[core.team[number]]) for number in members]


def _members(grid: tuple[int, ...], program: tuple[int, ...], axes: list[Any]) -> list[int]:
    ranges = [range(size) if axis in axes else (program[axis],) for axis, size in enumerate(grid)]
    return [int(np.ravel_multi_index(each, grid)) for each in itertools.product(*ranges)] if grid else [0]


def _received(tile: NkiTensor, values: Array, missing: Array | None) -> NkiTensor:
    """Return a tile in SBUF with the data that a program has sent; in full precision they are float32."""
    received = new_tile(tile.shape, float32 if values.dtype == np.float32 else tile.dtype)
    np.copyto(received.array, values)
    received.storage.mark_written(received.layout, 0, None if missing is None else ~missing)
    return received
