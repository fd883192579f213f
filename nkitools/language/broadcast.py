"""Broadcasting over partitions, which no compute engine does: made of DMA."""

from __future__ import annotations

from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.isa.move import dma_copy, tensor_copy
from nkitools.language.creation import ndarray, sbuf


def spread_partitions(tile: NkiTensor, count: int) -> NkiTensor:
    """A new SBUF tile of ``count`` partitions, each like the only one of ``tile``.

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
