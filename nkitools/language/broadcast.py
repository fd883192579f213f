"""Broadcasting: of free dimensions as a view, over partitions, which no compute engine does, by DMA."""

from __future__ import annotations

import numpy as np

from nkitools.chip.argument_types import Shape
from nkitools.chip.dtypes import DTypeLike
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.isa.move import dma_copy, tensor_copy
from nkitools.language.creation import checked_shape, ndarray, sbuf
from nkitools.language.math import check_tile, spread
from nkitools.language.promotion import result_dtype
from nkitools.rules.finding import refuse


def broadcast(tensor: NkiTensor, shape: Shape) -> NkiTensor:
    """``tensor`` broadcast to ``shape``: free dimensions as a view, partitions by copies. Errors: NK109, NK609."""
    sizes = checked_shape(shape, "broadcast_to")
    if tensor.shape == sizes:
        return tensor
    try:
        fits = np.broadcast_shapes(tensor.shape, sizes) == sizes
    except ValueError:
        fits = False
    if not fits or (tensor.on_chip and len(sizes) != tensor.ndim):
        refuse("NK109", f"{describe(tensor)} does not broadcast to {list(sizes)}", about=(tensor,))
    for _ in range(len(sizes) - tensor.ndim):
        tensor = tensor.expand_dim(0)
    if tensor.on_chip and tensor.shape[0] != sizes[0]:
        tensor = spread_partitions(tensor, sizes[0])
    return spread(tensor, sizes)


def broadcast_to(x: NkiTensor, shape: Shape, dtype: DTypeLike | None = None) -> NkiTensor:
    """Return a tile (SBUF or PSUM) broadcast to ``shape``: equally many dimensions, and only those of size 1 grow.

    If shape and dtype stay, ``x`` itself is returned, else a new SBUF tile, of ``x``'s dtype unless ``dtype`` is given.
    Which instructions AWS makes of it is not published: here partitions are spread by DMA and the rest is one
    tensor_copy.
    Errors: NK101, NK107 to NK109, NK201, NK301, NK609, NK611. Source: nki.language.broadcast_to (NKI 0.6).
    """
    check_tile("broadcast_to", "x", x)
    if not x.on_chip:
        refuse("NK201", f"nl.broadcast_to: `x` must be in SBUF or PSUM, it is {describe(x)}", about=(x,))
    wide, target = broadcast(x, shape), result_dtype(dtype, x)
    if wide is x and target is x.dtype:
        return x
    tile = ndarray(wide.shape, target, sbuf)
    tensor_copy(dst=tile, src=wide)
    return tile


def spread_partitions(tile: NkiTensor, count: int) -> NkiTensor:
    """Return a new SBUF tile of ``count`` partitions, each like the only one of ``tile``.

    The written part is doubled by DMA until it fills the tile: exact for every dtype, in log2(count) + 1 instructions.
    """
    if tile.buffer is MemoryRegion.psum:  # which DMA does not reach
        evicted = ndarray(tile.shape, tile.dtype, sbuf)
        tensor_copy(dst=evicted, src=tile)
        tile = evicted
    spread = ndarray((count, *tile.shape[1:]), tile.dtype, sbuf)
    dma_copy(dst=spread[0:1, ...], src=tile)
    filled = 1
    while filled < count:
        more = min(filled, count - filled)
        dma_copy(dst=spread[filled : filled + more, ...], src=spread[0:more, ...])
        filled += more
    return spread
