"""Grids of tiles and of blocks: over tensors that exist, and over new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, TypeAlias, TypeVar

from nkitools.chip.argument_types import Memory
from nkitools.chip.core import CORE, current_core
from nkitools.chip.dtypes import DTypeLike
from nkitools.chip.memory_region import MEMORY_NAMES, ON_CHIP, MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.language.creation import check_like, ndarray, region
from nkitools.language.grid_axis import Axis
from nkitools.language.grid_backing import InPlace, SideBySide
from nkitools.language.grids import NkiBlockGrid, NkiGrid, NkiTileGrid
from nkitools.rules.finding import refuse

Source: TypeAlias = NkiTensor | NkiTileGrid | NkiBlockGrid
AnyGrid = TypeVar("AnyGrid", bound=NkiGrid)


def tiles(source: Source, *, tile_shape: tuple[int, ...] | None = None) -> NkiTileGrid:
    """Return a view of a tensor, or of a selection of a grid, as a grid of tiles; nothing is copied.

    ``tile_shape``: a tuple of at least two sizes, for the last dimensions of a tensor; the last tile of a dimension may
    be partial. The dimensions before them stay untiled, with a coordinate for each index, in HBM only (else NK609).
    If ``source`` is a grid, ``tile_shape`` may be None: a grid of tiles then keeps its tiles, and a grid of blocks has
    the tiles of its blocks. With another ``tile_shape`` the selected elements are divided anew, and must have no gaps
    between them (NK109). In the new grid every tiled dimension has coordinates, also one that an integer has consumed.
    AWS's page leaves open when ``tile_shape`` may be left out, and what sources there are on chip: this is our
    reading. Errors: NK109, NK609. Source: nki.language.tiles (NKI 0.7).
    """
    return _tiled("nl.tiles", source, tile_shape)


def blocks(source: Source, *, tile_shape: tuple[int, ...] | None = None, block_shape: tuple[int, ...]) -> NkiBlockGrid:
    """Return a view of a tensor, or of a selection of a grid, as a grid of blocks of tiles; nothing is copied.

    ``block_shape``: a tuple, the number of tiles of a block along each tiled dimension; the last block of a dimension
    may be partial. ``source`` and ``tile_shape`` are those of `nl.tiles`. The selected tiles of a grid are grouped from
    the first one on, whatever blocks it has.
    Errors: NK109, NK609. Source: nki.language.blocks (NKI 0.7).
    """
    return _grouped("nl.blocks", _tiled("nl.blocks", source, tile_shape), block_shape)


def alloc_tiles(
    *,
    tile_shape: tuple[int, ...],
    element_shape: tuple[int, ...],
    buffer: MemoryRegion,
    dtype: DTypeLike,
    address: tuple[int, ...] | None = None,
    name: str = "",
) -> NkiTileGrid:
    """Return a grid of tiles over a new tensor, whose elements are not initialised.

    ``element_shape``: the elements that the grid has. ``tile_shape``: the sizes of a tile along the last dimensions, at
    least two. Both are tuples of integers, at least 1. ``buffer``: a memory such as nl.sbuf, no string.
    In HBM the tensor has ``element_shape``. In SBUF and PSUM it has the partitions of one tile, and all tiles lie
    whole, one behind the other, along the free dimension, the last coordinate fastest. AWS's page names that layout
    ("dense rank-two capacity") without describing it.
    ``address`` and ``name`` are those of nl.ndarray. Errors: NK207, NK301, NK402, NK609, NK611. Source:
    nki.language.alloc_tiles (NKI 0.7).
    """
    current_core("nl.alloc_tiles")
    sizes = _sizes("nl.alloc_tiles", "tile_shape", tile_shape)
    elements = _sizes("nl.alloc_tiles", "element_shape", element_shape)
    _check_rank("nl.alloc_tiles", sizes, elements)
    if not isinstance(buffer, MemoryRegion):
        refuse("NK609", f"nl.alloc_tiles: buffer must be a memory such as nl.sbuf, it is {buffer!r}")
    return _made(NkiTileGrid, _axes(elements, sizes), sizes, dtype, buffer, name, address)


def alloc_blocks(
    *,
    tile_shape: tuple[int, ...],
    block_shape: tuple[int, ...],
    element_shape: tuple[int, ...],
    buffer: MemoryRegion,
    dtype: DTypeLike,
    address: tuple[int, ...] | None = None,
    name: str = "",
) -> NkiBlockGrid:
    """Return a grid of blocks of tiles over a new tensor, whose elements are not initialised.

    ``block_shape``: a tuple, the number of tiles of a block along each dimension of ``tile_shape``. The other arguments
    and the layout in memory are those of nl.alloc_tiles.
    Errors: NK207, NK301, NK402, NK609, NK611. Source: nki.language.alloc_blocks (NKI 0.7).
    """
    current_core("nl.alloc_blocks")
    _check_block("nl.alloc_blocks", _sizes("nl.alloc_blocks", "tile_shape", tile_shape), block_shape)
    made = alloc_tiles(
        tile_shape=tile_shape, element_shape=element_shape, buffer=buffer, dtype=dtype, address=address, name=name
    )
    return _grouped("nl.alloc_blocks", made, block_shape)


# --- a grid over a tensor or another grid -----------------------------------------------------------------------------


def _tiled(what: str, source: Source, tile_shape: tuple[int, ...] | None) -> NkiTileGrid:
    sizes = None if tile_shape is None else _sizes(what, "tile_shape", tile_shape)
    if isinstance(source, NkiGrid):
        return _tiled_again(what, source, sizes)
    if not isinstance(source, NkiTensor):
        refuse("NK609", f"{what}: source must be a tensor or a grid, it is {type(source).__name__}")
    if sizes is None:
        refuse("NK609", f"{what}: tile_shape is needed for {describe(source)}", about=(source,))
    _check_rank(what, sizes, source.shape)
    if source.on_chip and len(sizes) < source.ndim:
        refuse(
            "NK609",
            f"{what}: tile_shape={sizes} leaves the partition dimension of {describe(source)} untiled",
            about=(source,),
            remedy=f"Give tile_shape a size for each of the tensor's {source.ndim} dimensions.",
        )
    if source.shape == source.storage.shape and not source.byte_offset:
        _remember(source, sizes)
    return NkiTileGrid.of(InPlace(source), _axes(source.shape, sizes), sizes)


def _remember(tensor: NkiTensor, tile_shape: tuple[int, ...], elements: tuple[int, ...] = ()) -> None:
    """Let the record have the tiles of a storage, by which the page of the run calls its parts."""
    core = CORE.get()
    if core is not None:
        core.record.tiled(tensor.storage.id, tile_shape, elements)


def _tiled_again(what: str, grid: NkiGrid, sizes: tuple[int, ...] | None) -> NkiTileGrid:
    """Return the tiles inside of a selection, or its elements by tiles of another size."""
    if sizes is None or sizes == grid.tile_shape:
        opened = [axis.opened() for axis in grid._axes]
    else:
        if len(sizes) != len(grid.tile_shape):
            refuse("NK609", f"{what}: tile_shape={sizes} has not the {len(grid.tile_shape)} tiled dimensions of a grid")
        new = iter(sizes)
        opened = [axis.retiled(next(new)) if axis.tiled else axis for axis in grid._axes]
    return NkiTileGrid.of(grid._backing, _without_gaps(what, grid, opened), sizes or grid.tile_shape)


def _grouped(what: str, grid: NkiTileGrid, block_shape: tuple[int, ...]) -> NkiBlockGrid:
    groups = iter(_check_block(what, grid.tile_shape, block_shape))
    axes = [axis.grouped(next(groups)) if axis.tiled else axis for axis in grid._axes]
    return NkiBlockGrid.of(grid._backing, _without_gaps(what, grid, axes), grid.tile_shape)


def _without_gaps(what: str, grid: NkiGrid, axes: Sequence[Axis | None]) -> tuple[Axis, ...]:
    """Return the axes of a new grid; NK109 if a slice has left gaps that the grid cannot have."""
    found = tuple(axis for axis in axes if axis is not None)
    if len(found) < len(axes):
        message = f"{what}: {grid.words()} have gaps between them, over which no grid of other tiles or blocks goes"
        refuse("NK109", message, remedy="Slice without a step, or take the blocks one by one.")
    return found


def _axes(shape: tuple[int, ...], tile_shape: tuple[int, ...]) -> tuple[Axis, ...]:
    untiled = len(shape) - len(tile_shape)
    front = [Axis.whole(0, size, 1, tiled=False) for size in shape[:untiled]]
    return (*front, *(Axis.whole(0, size, tile) for size, tile in zip(shape[untiled:], tile_shape, strict=True)))


# --- a grid over a new tensor -----------------------------------------------------------------------------------------


def _made(
    kind: type[AnyGrid],
    axes: tuple[Axis, ...],
    tile_shape: tuple[int, ...],
    dtype: DTypeLike,
    buffer: MemoryRegion,
    name: str | None,
    address: tuple[int, ...] | None,
) -> AnyGrid:
    """Return the grid of these axes, which begin at element 0, over a new tensor."""
    shape = tuple(axis.end for axis in axes)
    if buffer in ON_CHIP:
        tensor = ndarray(SideBySide.sizes(shape, tile_shape), dtype, buffer, name, address)
        _remember(tensor, tile_shape, shape)
        return kind.of(SideBySide(tensor, shape, tile_shape), axes, tile_shape)
    tensor = ndarray(shape, dtype, buffer, name, address)
    _remember(tensor, tile_shape)
    return kind.of(InPlace(tensor), axes, tile_shape)


Like = TypeVar("Like", NkiTensor, NkiTileGrid, NkiBlockGrid)


def empty_like(
    x: Like,
    dtype: DTypeLike | None = None,
    buffer: Memory | None = None,
    name: str | None = "",
    *,
    transpose_axes: tuple[int, ...] | None = None,
    address: tuple[int, ...] | None = None,
) -> Like:
    """Return a new tensor or grid of the shape of ``x``, whose elements are not initialised.

    ``dtype`` and ``buffer`` (the memory): by default those of ``x``; ``name`` and ``address``: as for nl.ndarray. A new
    grid has the coordinates, tiles, blocks and exact extents of the selection ``x``, without the gaps between them.
    ``transpose_axes``: the order of the dimensions, for the SBUF destination of a later nisa.dma_transpose: the tuple
    (1, 0), (2, 1, 0) or (3, 1, 2, 0), by the number of dimensions (others: NK609). It reorders the dimensions of a
    tensor, and of a grid those of coordinates, tiles and blocks alike (of a grid our reading, AWS's page shows none).
    The memory must then be SBUF (NK201), and the new partition dimension of a tensor or tile at most 128 (NK101).
    Errors: NK101, NK110, NK201, NK207, NK301, NK402, NK608, NK609, NK611. Source: nki.language.empty_like (NKI 0.7).
    """
    if isinstance(x, NkiGrid):
        memory = x.buffer if buffer is None else region(buffer)
        return _grid_like(x, dtype or x.dtype, memory, name, transpose_axes, address)
    check_like("nl.empty_like", x)
    memory = x.buffer if buffer is None else region(buffer)
    shape = x.shape
    if transpose_axes is not None:
        shape = tuple(shape[dim] for dim in _order(transpose_axes, shape, memory, describe(x)))
    return ndarray(shape, dtype or x.dtype, memory, name, address)


def _grid_like(
    grid: AnyGrid,
    dtype: DTypeLike,
    memory: MemoryRegion,
    name: str | None,
    transpose_axes: tuple[int, ...] | None,
    address: tuple[int, ...] | None,
) -> AnyGrid:
    axes = tuple(axis.packed() for axis in grid._axes if not axis.dropped)
    tile_shape = grid.tile_shape
    if transpose_axes is not None:
        if len(axes) > len(tile_shape):
            message = f"nl.empty_like: transpose_axes is given for {grid.words()}, which has untiled dimensions"
            refuse("NK609", message, remedy="Take one slab with an integer first.")
        order = _order(transpose_axes, tile_shape, memory, grid.words())
        axes, tile_shape = tuple(axes[dim] for dim in order), tuple(tile_shape[dim] for dim in order)
    return _made(type(grid), axes, tile_shape, dtype, memory, name, address)


_ORDERS = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


def _order(order: Any, shape: tuple[int, ...], memory: MemoryRegion, what: str) -> tuple[int, ...]:
    """Return the axes of a destination of nisa.dma_transpose for tiles of ``shape``; NK101, NK201 and NK609."""
    if not isinstance(order, tuple) or order != _ORDERS.get(len(shape)):
        wanted = _ORDERS.get(len(shape))
        has = f"it is {wanted}" if wanted else "there is none: nisa.dma_transpose takes 2 to 4 dimensions"
        message = f"nl.empty_like: transpose_axes={order!r} is not the order of nisa.dma_transpose for {what}; {has}"
        refuse("NK609", message)
    if memory is not MemoryRegion.sbuf:
        message = f"nl.empty_like: transpose_axes prepares a tensor in SBUF, its buffer is {MEMORY_NAMES[memory]}"
        refuse("NK201", message, remedy="Pass buffer=nl.sbuf.")
    partitions = current_core("nl.empty_like").generation.partitions
    if shape[-1] > partitions:
        message = (
            f"nl.empty_like: the last dimension of {what} becomes the partition dimension, and a tile has {shape[-1]} "
            f"elements along it; a NeuronCore has {partitions} partitions"
        )
        facts = {"instruction": "empty_like", "axis": len(shape) - 1, "extent": shape[-1], "limit": partitions}
        remedy = f"Use tiles of at most {partitions} elements in the last dimension."
        refuse("NK101", message, remedy=remedy, facts=facts)
    return tuple(order)


# --- arguments --------------------------------------------------------------------------------------------------------


def _sizes(what: str, name: str, shape: Any) -> tuple[int, ...]:
    """Return a shape that is a tuple of positive Python integers; NK609 for others, as AWS's page has it."""
    if type(shape) is not tuple or any(type(size) is not int for size in shape):
        refuse("NK609", f"{what}: {name} must be a tuple of integers, it is {shape!r}")
    if not shape or min(shape) < 1:
        refuse("NK609", f"{what}: every size of {name} must be at least 1, it is {shape}")
    return shape


def _check_rank(what: str, tile_shape: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if len(tile_shape) < 2:
        _wrong_rank(f"{what}: a tile has at least two dimensions, tile_shape is {tile_shape}")
    if len(tile_shape) > len(shape):
        _wrong_rank(f"{what}: tile_shape={tile_shape} has more dimensions than the shape {shape} that it divides")


def _wrong_rank(message: str) -> NoReturn:
    refuse("NK609", message, remedy="tile_shape has a size for each of the last dimensions, two or more of them.")


def _check_block(what: str, tile_shape: tuple[int, ...], block_shape: Any) -> tuple[int, ...]:
    groups = _sizes(what, "block_shape", block_shape)
    if len(groups) != len(tile_shape):
        message = f"{what}: block_shape={groups} counts tiles along each dimension of tile_shape={tile_shape}"
        refuse("NK609", message, remedy=f"Give block_shape {len(tile_shape)} sizes.")
    return groups
