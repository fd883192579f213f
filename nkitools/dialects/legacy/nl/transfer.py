"""``nl.*``: loading, storing, copying and printing tiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nkitools.chip.core import current_core
from nkitools.chip.masked_tensor import MaskedTensor
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.runtime_views import VectorTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe, made_at, name_of
from nkitools.dialects.legacy.aws_names.enums import dge_mode, oob_mode, translated
from nkitools.dialects.legacy.indexing.masks import Box, Lanes, MaskLike, lanes_of
from nkitools.dialects.legacy.indexing.runtime_indices import RowAccess, check_rows
from nkitools.dialects.legacy.kernels.immutable_inputs import check_writable
from nkitools.dialects.legacy.kernels.keywords import Keyword, check_keywords
from nkitools.dialects.legacy.tiles.assignment import fitted
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, result_type
from nkitools.dialects.legacy.tiles.elementwise import check_tile
from nkitools.dialects.legacy.tiles.result_tiles import copy_tile, new_tile, value_tile
from nkitools.dialects.legacy.tiles.tensor import Operand, Tensor
from nkitools.engines.operators import token
from nkitools.isa.move import dma_copy, fill
from nkitools.issue.guards import HBM
from nkitools.language.broadcast import broadcast
from nkitools.language.creation import checked_shape
from nkitools.language.programs import current_generation, print_tensor, print_values, printed_values
from nkitools.language.transfer import OF_A_ROW
from nkitools.rules.finding import report


def copy_lanes(
    dst: Tensor, src: Tensor, lanes: Lanes | None, mode: Keyword = None, dge: Keyword = dge_mode.unknown
) -> None:
    """DMA from ``src`` to ``dst``, tiles of one shape, on the lanes of a mask.

    Where masked lanes lie outside of a tensor, only the lanes inside are addressed: the predicate becomes one DMA for
    each run.
    """
    mode = oob_mode.error if mode is None else mode
    if lanes is None:
        _copy(dst.resolved(), src.resolved(), mode, dge)
        return
    if lanes.empty:
        return
    if lanes.where is None:
        _copy(dst.within(dst.shape, lanes.box), src.within(dst.shape, lanes.box), mode, dge)
    elif dst.reaches(lanes.box) and src.reaches(lanes.box) and not isinstance(dst.access, RowAccess):
        target = MaskedTensor.of(dst.within(dst.shape, lanes.box), lanes.where)
        _copy(target, src.within(dst.shape, lanes.box), mode, dge)
    else:
        for box in lanes.boxes():
            _copy(dst.within(dst.shape, box), src.within(dst.shape, box), mode, dge)


def _copy(dst: NkiTensor, src: NkiTensor, mode: Keyword, dge: Keyword) -> None:
    if mode is oob_mode.error and dge is dge_mode.unknown and dst.__class__ is src.__class__ is NkiTensor:
        dma_copy(dst=dst, src=src)
        return
    check_rows(mode, dst, src)
    dma_copy(dst=dst, src=src, oob_mode=translated(mode), dge_mode=translated(dge))
    if isinstance(dst, VectorTensor):
        dst.storage.excused |= {"NK403"}  # which rows are written is up to the data: AWS's own examples write half


def check_in_hbm(what: str, role: str, tile: Tensor, other: Any = None) -> None:
    """NK201: loads and stores have an end in HBM; ``other``: the other end."""
    if tile.buffer not in HBM:
        message = f"{what}: `{role}` must be in HBM, it is {describe(tile.base)}"
        remedy = "Assign between tiles on chip (dst[...] = src), or use nl.copy."
        if isinstance(other, Tensor) and other.buffer in HBM:
            remedy = f"The arguments are exchanged: put{name_of(other.base)} first, the destination in HBM."
        elif role == "dst":
            made = f"make{name_of(tile.base)}{made_at(tile.base)} with buffer=nl.shared_hbm"
            remedy = f"If it is the result, {made}; between tiles on chip assign, dst[...] = src."
        facts = {"instruction": what.rpartition(".")[2], "argument": role, "memories": ("HBM",)}
        report("NK201", message, about=(tile.base,), remedy=remedy, facts=facts)


def load(src: Tensor, *, mask: MaskLike = None, dtype: ResultDType = None, **kwargs: Keyword) -> Tensor:
    """Return a new SBUF tile with the values and the shape of a tensor in HBM; one dimension becomes a column.

    ``dtype``: of the tile, by default that of ``src``. Elements that ``mask`` leaves out are not read, and undefined.
    Errors: NK101, NK201, NK301, NK402, NK603, NK604, NK609, NK611.
    """
    check_keywords("nl.load", kwargs)
    check_tile("nl.load", "src", src)
    check_in_hbm("nl.load", "src", src)
    is_flat = len(src.shape) == 1
    if is_flat:
        is_plain = src.access is None and src.base.__class__ is NkiTensor
        src = Tensor(src.base.expand_dim(1)) if is_plain else src.reshape((src.shape[0], 1))
    lanes = lanes_of(mask, src.shape, "nl.load")
    dst = Tensor(value_tile(src.shape, result_type(dtype, "nl.load", src)))
    _check_partitions(src, dst.base, OF_A_ROW if is_flat else "")
    copy_lanes(dst, src, lanes, kwargs.get("mode"))
    result = Tensor.made(dst.base, lanes)
    if result.opened is None:
        result.skipped_at = current_core("nl.load").record.next_position
    return result


def _check_partitions(src: Tensor, tile: NkiTensor, remedy: str) -> None:
    """NK101 about the tensor that is loaded, which has a name, instead of the new tile, which has none yet."""
    limit = current_generation().partitions
    if tile.shape[0] > limit:
        tile.storage.excused |= {"NK101"}
        message = (
            f"nl.load: `src`, {describe(src.base)}, has {tile.shape[0]} rows for partitions; a NeuronCore has {limit}"
        )
        facts = {"instruction": "load", "argument": "src", "partitions": tile.shape[0], "limit": limit}
        report("NK101", message, about=(src.base,), remedy=remedy, facts=facts)


def store(dst: Tensor, value: Operand, *, mask: MaskLike = None, **kwargs: Keyword) -> None:
    """Copy a tile or a number, which fills it, into a tensor in HBM; return nothing.

    ``value``: a tile in SBUF or PSUM, of the shape of ``dst`` or one that broadcasts to it, cast to its dtype.
    Elements that ``mask`` leaves out are not written.
    Errors: NK101, NK107, NK109, NK110, NK201, NK402, NK406, NK603, NK604, NK609, NK611, NK612.
    """
    check_keywords("nl.store", kwargs)
    check_tile("nl.store", "dst", dst)
    check_in_hbm("nl.store", "dst", dst, value)
    check_writable("nl.store", dst)
    lanes = lanes_of(mask, dst.shape, "nl.store")
    if lanes is not None and lanes.empty:
        return
    tile: Any = Tensor(_filled(dst, value)) if isinstance(value, (bool, int, float, np.generic)) else value
    check_tile("nl.store", "value", tile)
    if not tile.base.on_chip:
        report("NK201", f"nl.store: `value` must be on chip, it is {describe(tile.base)}", about=(tile.base,))
    copy_lanes(dst, _in_sbuf(tile, dst, lanes), lanes, kwargs.get("mode"))


def _filled(dst: Tensor, number: Any) -> NkiTensor:
    shape = dst.shape if len(dst.shape) > 1 else (dst.shape[0], 1)
    tile = new_tile(shape, dst.element)
    fill(tile, number)
    return tile


def _in_sbuf(value: Tensor, dst: Tensor, lanes: Lanes | None) -> Any:
    """Return the tile to be stored, in SBUF and of the destination's form."""
    if lanes is not None and value.shape != dst.shape and value.access is None:
        value = Tensor(broadcast(value.resolved(), dst.shape))
    if value.buffer is MemoryRegion.psum:
        evicted = new_tile(value.shape, value.element)
        copy_tile(evicted, value, lanes)
        value = Tensor(evicted)
    fits = lanes is not None or value.shape == dst.shape
    return value if fits else Tensor(fitted(value.resolved(), dst.resolved()))


@token("copy")
def copy(src: Tensor, *, mask: MaskLike = None, dtype: ResultDType = None, **kwargs: Keyword) -> Tensor:
    """Return a copy of a tile in SBUF or PSUM, as a new SBUF tile.

    ``dtype``: of the copy, by default that of ``src``. Elements that ``mask`` leaves out are undefined.
    Errors: NK101, NK107, NK108, NK110, NK201, NK301, NK402, NK603, NK604, NK609, NK611, NK612.
    """
    check_keywords("nl.copy", kwargs)
    check_tile("nl.copy", "src", src)
    lanes = lanes_of(mask, src.shape, "nl.copy")
    dst = value_tile(src.shape, result_type(dtype, "nl.copy", src))
    copy_tile(dst, src, lanes)
    return Tensor.made(dst, lanes)


def broadcast_to(src: Tensor, *, shape: Sequence[int], **kwargs: Keyword) -> Tensor:
    """Return ``src`` broadcast to ``shape`` by NumPy's rules; ``src`` itself if that is its shape.

    The result is a view, but a new SBUF tile if ``src`` is a tile of one partition that becomes several. A tile keeps
    its number of dimensions (NK109).
    Errors: NK101, NK109, NK110, NK402, NK603, NK609, NK612.
    """
    check_keywords("nl.broadcast_to", kwargs)
    check_tile("nl.broadcast_to", "src", src)
    found: Tensor = src if src.shape == checked_shape(shape, "nl.broadcast_to") else src.broadcast_to(shape)
    return found


def expand_dims(data: Tensor, axis: int) -> Tensor:
    """Return a view with a new dimension of size 1 at ``axis`` of the result; -1 is its last dimension.

    NK109: an ``axis`` beyond the result, and axis 0 of a tile. Errors: NK109, NK402, NK603, NK609, NK612.
    """
    check_tile("nl.expand_dims", "data", data)
    expanded: Tensor = data.expand_dims(axis)
    return expanded


def device_print(prefix: str, x: Tensor, *, mask: MaskLike = None, **kwargs: Keyword) -> None:
    """Record a print of a tensor's values under ``prefix`` in the run; return nothing.

    A call of the kernel itself and nki.simulate_kernel also show it on stdout, as it comes. Elements that ``mask``
    leaves out are masked in the print; if it leaves none, nothing is printed.
    Errors: NK402, NK603, NK604, NK609, NK611, NK612.
    """
    check_keywords("nl.device_print", kwargs)
    current_core("nl.device_print")
    check_tile("nl.device_print", "x", x)
    lanes = lanes_of(mask, x.shape, "nl.device_print")
    if lanes is None:
        print_tensor(prefix, x.resolved())
        return
    parts = [(box, x.within(x.shape, box)) for box in lanes.boxes()] if not lanes.empty else []
    if parts:
        print_values(prefix, parts[0][1], *_assembled(x.shape, parts))


def _assembled(shape: tuple[int, ...], parts: list[tuple[Box, NkiTensor]]) -> tuple[Array, Array | None, Array]:
    """Return the values of a tile with only some boxes printed, the never written elements, and those left out."""
    found = [(tuple(slice(first, end) for first, end in box), *printed_values(tensor)) for box, tensor in parts]
    value = np.zeros(shape, found[0][1].dtype)
    mask, missing = np.ones(shape, np.bool_), np.zeros(shape, np.bool_)
    for at, shown, unwritten in found:
        value[at] = shown
        mask[at] = False
        missing[at] = False if unwritten is None else unwritten
    return value, missing if missing.any() else None, mask
