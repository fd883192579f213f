"""Shapes of tiles that fit a chip, and of matrices that tiles do not quite fit."""

from __future__ import annotations

import math
from collections.abc import Iterable

from hypothesis import strategies as st

from nkitools.chip.argument_types import Memory
from nkitools.chip.chosen_chip import resolve_chip
from nkitools.chip.dtypes import DTypeLike, as_dtype
from nkitools.chip.memory_region import MemoryRegion
from nkitools.facts.generations import Generation, generation_of

MAX_DIMENSIONS = 5  # of an access pattern
_LARGEST_FREE = 2048
_MEMORIES = {"sbuf": MemoryRegion.sbuf, "psum": MemoryRegion.psum}


def tile_shapes(
    chip: str | None = None,
    memory: Memory = "sbuf",
    *,
    dtype: DTypeLike = "float32",
    ndim: int = 2,
    banks: int = 1,
    max_free: int | None = _LARGEST_FREE,
) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw shapes of legal tiles, as tuples: 1 to 128 partitions, and free elements of ``dtype`` that fit into a
    partition.

    Edges come often: 1, one less than the most, the most, and the sizes around multiples of a quarter of the partitions
    and of 512 elements. ``memory``: ``"sbuf"`` or ``"psum"`` (also ``nl.sbuf``, ``nl.psum``); ``banks``: the most banks
    of PSUM that a tile fills (before NeuronCore-v4 a matmul writes one). ``chip``: as in `nkitools.simulate`; None is
    the chip that holds when a shape is drawn. ``ndim``: 2 to 5; the free size is the product of all dimensions behind
    the first; those between the first and the last are at most 4. ``max_free``: at most so many free elements, None for
    all that fit, which is slow. Shrinks to ones. ValueError at the call for a wrong memory, dtype, chip, ``ndim``,
    ``banks`` or ``max_free``.
    """
    region = _MEMORIES.get(memory.lower() if isinstance(memory, str) else getattr(memory, "value", ""))
    if region is None:
        raise ValueError(f"memory: must be one of {', '.join(_MEMORIES)}, it is {memory!r}")
    itemsize = as_dtype(dtype).itemsize
    if not 2 <= ndim <= MAX_DIMENSIONS:
        raise ValueError(f"ndim: a tile has 2 to {MAX_DIMENSIONS} dimensions, it is {ndim}")
    if max_free is not None and max_free < 1:
        raise ValueError(f"max_free: must be at least 1, it is {max_free}")
    _free_bytes(generation_of(resolve_chip(chip)), region, banks)  # a mistake is reported where it is made

    @st.composite
    def shapes(draw: st.DrawFn) -> tuple[int, ...]:
        generation = generation_of(resolve_chip(chip))
        most = _free_bytes(generation, region, banks) // itemsize
        if max_free is not None:
            most = min(most, max_free)
        step = generation.start_partition_step
        partitions = draw(sizes(generation.partitions, range(step, generation.partitions, step)))
        inner: list[int] = []
        for _ in range(ndim - 2):
            inner.append(draw(st.integers(1, min(4, most // math.prod(inner)))))
        most //= math.prod(inner)
        return (partitions, *inner, draw(sizes(most, range(512, most, 512))))

    return shapes()


def _free_bytes(generation: Generation, memory: MemoryRegion, banks: int) -> int:
    if not 1 <= banks <= generation.psum_banks:
        raise ValueError(f"banks: PSUM has {generation.psum_banks}, it is {banks}")
    if memory is MemoryRegion.psum:
        return banks * generation.psum_bank_bytes
    return generation.sbuf_automatic_bytes


def matrix_shapes(*tiles: int, max_tiles: int = 2) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw shapes, as tuples, with one size for each size in ``tiles``: from 1 to ``max_tiles`` times that; often a
    multiple of it, or one off.

    For kernels that cut their operands into tiles and treat what remains: ``matrix_shapes(128, 512)`` draws the rows
    and columns of one matrix, ``matrix_shapes(128, 128, 512)`` M, K and N of a product. Shrinks to ones. ValueError
    without ``tiles``, and for numbers less than 1.
    """
    if not tiles or min(*tiles, max_tiles) < 1:
        raise ValueError(
            "matrix_shapes: name the size of a tile in each dimension, and max_tiles, all at least 1; they are "
            f"{list(tiles)} and {max_tiles}"
        )
    return st.tuples(*(sizes(max_tiles * tile, range(tile, max_tiles * tile, tile)) for tile in tiles))


def sizes(most: int, edges: Iterable[int]) -> st.SearchStrategy[int]:
    """1 to ``most``; both of these, ``edges`` and their neighbours come often."""
    near = {each + step for each in (1, most, *edges) for step in (-1, 0, 1)}
    # Any size comes first, so that a failure at an edge shrinks to a smaller size that fails too.
    return st.one_of(st.integers(1, most), st.sampled_from(sorted(each for each in near if 1 <= each <= most)))
