"""``tensor[...] = value`` and ``tensor += value``."""

from __future__ import annotations

from typing import Any

from nkitools.chip.core import current_core
from nkitools.chip.masked_out import leave_out, travelled
from nkitools.chip.masked_tensor import MaskedTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe, made_at, name_of
from nkitools.dialects.legacy.indexing.masks import Lanes
from nkitools.dialects.legacy.kernels.loop_dependences import note_update
from nkitools.dialects.legacy.tiles import copy_elision
from nkitools.dialects.legacy.tiles.dtypes import is_number
from nkitools.dialects.legacy.tiles.elementwise import check_tile, in_place
from nkitools.dialects.legacy.tiles.result_tiles import part
from nkitools.isa.move import fill
from nkitools.language.broadcast import spread_partitions
from nkitools.language.math import spread
from nkitools.record.open_instruction import OpenInstruction
from nkitools.rules.finding import refuse

_SYMBOLS = {"add": "+=", "subtract": "-=", "multiply": "*=", "divide": "/="}


def fitted(value: NkiTensor, dst: NkiTensor) -> NkiTensor:
    """Return ``value`` with as many elements as ``dst``, broadcast if necessary; NK109 if it is larger."""
    if value.shape == dst.shape or _core(value) == _core(dst):
        return value
    if not broadcasts(value.shape, dst.shape):
        refuse(
            "NK109",
            f"{describe(value)} does not fit into {describe(dst)}; the destination has the shape of the value or a "
            "larger one to which it broadcasts (err_store_dst_shape_smaller_than_other_shape)",
            about=(value, dst),
            remedy=f"Reduce or slice{name_of(value)}{made_at(value)} to {list(dst.shape)}, or make{name_of(dst)}"
            f"{made_at(dst)} as {list(value.shape)}.",
            facts={"code": "err_store_dst_shape_smaller_than_other_shape"},
        )
    if value.on_chip and value.shape[0] != dst.shape[0]:
        value = spread_partitions(value, dst.shape[0])
    return spread(value, dst.shape)


def broadcasts(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Return whether a shape broadcasts to another of as many dimensions."""
    pairs = zip(shape, wanted, strict=False)
    return len(shape) == len(wanted) and all(size in (1, other) for size, other in pairs)


def _core(tensor: NkiTensor) -> tuple[int, ...]:
    """Return the sizes that are not 1: a 1-D tensor in HBM is a column, (128, 1, 512) holds what (128, 512) holds."""
    return tuple(size for size in tensor.shape if size != 1)


def is_same_view(first: NkiTensor, second: NkiTensor) -> bool:
    """Return whether two views are of the very same elements."""
    same = first.storage is second.storage and first.byte_offset == second.byte_offset
    return same and first.layout is second.layout


def assign(dst: Any, value: Any) -> None:
    """``dst[...] = value``: a number fills, a tile is copied; of a call under a mask only what the mask left is.

    Errors: NK109, NK201, NK402, NK609.
    """
    combine = getattr(type(value), "reduce_into", None)  # the value of nl.loop_reduce: the destination is an operand
    if combine is not None:
        combine(value, dst)
        return
    if dst.access is not None and _is_masked(value) and dst.shape == value.shape and dst.base.on_chip:
        _assign_inside(dst, value, value.lanes)
        return
    target = dst.resolved()
    _on_chip(target, "is assigned to", "Write to HBM with nl.store or nisa.dma_copy.")
    if is_number(value):
        fill(target, value)
        return
    check_tile("assignment", "value", value)
    source = value.resolved()
    if source.on_chip and source.is_indirect():
        refuse(
            "NK603",
            f"{describe(source)} is assigned with an index that is known only when the kernel runs "
            "(err_copy_dynamic_indirect_indices_not_natively_supported)",
            about=(source,),
            remedy="Copy it by an instruction: tile[...] = nisa.tensor_copy_dynamic_src(source[...]).",
            facts={"code": "err_copy_dynamic_indirect_indices_not_natively_supported"},
        )
    if is_same_view(target, source):
        return
    _on_chip(source, "is assigned to a tile", "Read from HBM with nl.load or nisa.dma_copy.")
    if value.skipped_at >= 0 and value.skipped_at == current_core("nki").record.next_position:
        return  # the load would have written here, and has not: see `_loaded`
    lanes = value.lanes if value.is_fresh else None
    _keep_masks(dst, value, lanes)
    if lanes is None or target.shape != source.shape:
        if value.shape != dst.shape:
            source = fitted(source, target)
        elif not source.storage.full and value.is_fresh:
            target = _loaded(target, source, value.opened)
        copy_elision.copy(target, source, value.opened)
    elif not lanes.empty:
        chosen = part(target, target.shape, lanes.box)
        if lanes.where is not None:
            chosen = MaskedTensor.of(chosen, lanes.where)
        copy_elision.copy(chosen, part(source, source.shape, lanes.box), value.opened)


def _loaded(target: NkiTensor, source: NkiTensor, opened: OpenInstruction) -> NkiTensor:
    """Return the destination of a load under a mask that leaves out what ``mode=oob_mode.skip`` has left out.

    The load writes into the destination itself, which keeps its elements there: AWS's paged attention loads the tables
    of the next turn so, which the last turn does not have.
    """
    missing = source.unwritten() if opened.plan.name == "dma_copy" else None
    if missing is None or target.shape != source.shape:
        return target
    undefined = travelled(source, missing)
    return MaskedTensor.of(target, ~missing if undefined is None else ~missing | undefined)


def _is_masked(value: Any) -> bool:
    """Return whether a value has just been made by a call under a mask."""
    return getattr(value, "lanes", None) is not None and value.is_fresh


def _assign_inside(dst: Any, value: Any, lanes: Lanes) -> None:
    """Assign the lanes that the call's mask has left to a destination that has room for those at least."""
    _keep_masks(dst, value, lanes)
    if lanes.empty:
        return
    source = value.resolved()
    if lanes.where is None:
        copy_elision.copy(dst.within(dst.shape, lanes.box), part(source, source.shape, lanes.box), value.opened)
        return
    for box in lanes.boxes():
        copy_elision.copy(dst.within(dst.shape, box), part(source, source.shape, box), None)


def _keep_masks(dst: Any, value: Any, lanes: Lanes | None) -> None:
    """Leave out of the destination the elements that a mask left out of the value."""
    if lanes is not None:
        leave_out(dst.storage, value.storage.site, dst.tensor)


def _on_chip(tensor: NkiTensor, what: str, remedy: str) -> None:
    if not tensor.on_chip:
        refuse(
            "NK201",
            f"{describe(tensor)} {what}; assignments copy between SBUF and PSUM",
            about=(tensor,),
            remedy=remedy,
        )


def update(what: str, dst: Any, value: Any) -> None:
    """``dst <what>= value``, of a call under a mask on the lanes that the mask left.

    A matrix product is accumulated where it is, in PSUM, in float32.
    """
    lanes = value.lanes if not is_number(value) and hasattr(value, "lanes") and value.is_fresh else None
    if lanes is not None and lanes.empty:
        return
    where = None
    opened = None if is_number(value) else getattr(value, "opened", None)
    if lanes is not None and dst.shape == value.shape:
        dst, value, where = _boxed(dst, lanes), _boxed(value, lanes), lanes.where
    product = what == "add" and where is None and opened is not None
    if product and copy_elision.accumulate(dst.resolved(), value.resolved(), opened):
        note_update(what, current_core("nki").record.count - 1)
        return
    before = current_core("nki").record.count
    in_place(what, dst, value, _SYMBOLS[what], where)
    note_update(what, before)


def _boxed(tile: Any, lanes: Any) -> Any:
    """Return the part of a tile in the box that a mask left."""
    return type(tile)(part(tile.resolved(), tile.shape, lanes.box))
