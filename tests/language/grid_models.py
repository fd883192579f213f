"""What a grid selects, by lists of indices and NumPy: the oracle of the tests of grids.

A dimension is a list of its coordinates, a coordinate a list of its tiles, and a tile a list of the elements of its
source. The oracle slices such lists.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from hypothesis import strategies as st

Tile = list[int]


def tiles_of(extent: int, size: int) -> list[Tile]:
    """Return the elements of a dimension by tiles, the last of which may be short."""
    return [list(range(first, min(first + size, extent))) for first in range(0, extent, size)]


@dataclass
class Dimension:
    """One dimension: its coordinates, the nominal elements of each, and whether it has tiles or was consumed."""

    coordinates: list[list[Tile]]
    tile: int
    group: int = 1
    tiled: bool = True
    taken: bool = False

    @property
    def elements(self) -> Tile:
        """Return all selected elements, in order."""
        return list(chain.from_iterable(chain.from_iterable(self.coordinates)))

    @property
    def is_partial(self) -> bool:
        """Return whether some coordinate has fewer elements than a whole one."""
        return any(sum(map(len, each)) < self.tile * self.group for each in self.coordinates)


@dataclass
class Model:
    """A grid: its dimensions, those of a tensor of ``extents``."""

    extents: tuple[int, ...]
    tile_shape: tuple[int, ...]
    dimensions: list[Dimension]

    @classmethod
    def of(cls, extents: tuple[int, ...], tile_shape: tuple[int, ...]) -> Model:
        """Return the grid of all tiles."""
        untiled = len(extents) - len(tile_shape)
        sizes = (1,) * untiled + tile_shape
        dimensions = [
            Dimension([[tile] for tile in tiles_of(extent, size)], size, tiled=at >= untiled)
            for at, (extent, size) in enumerate(zip(extents, sizes, strict=True))
        ]
        return cls(extents, tile_shape, dimensions)

    def blocks(self, block_shape: tuple[int, ...]) -> Model:
        """Return the grid of blocks of the selected tiles."""
        groups = iter(block_shape)
        found = []
        for each in self.dimensions:
            if not each.tiled:
                found.append(each)
                continue
            group = next(groups)
            tiles = list(chain.from_iterable(each.coordinates))
            blocks = [tiles[first : first + group] for first in range(0, len(tiles), group)]
            found.append(Dimension(blocks, each.tile, group))
        return replace(self, dimensions=found)

    def tiles(self) -> Model:
        """Return the grid of the selected tiles."""
        found = [
            Dimension([[tile] for tile in chain.from_iterable(each.coordinates)], each.tile) if each.tiled else each
            for each in self.dimensions
        ]
        return replace(self, dimensions=found)

    def __getitem__(self, key: tuple[Any, ...]) -> Model:
        found = list(self.dimensions)
        left = [at for at, each in enumerate(found) if not each.taken]
        for at, item in zip(left, key, strict=False):
            each = found[at]
            if isinstance(item, slice):
                found[at] = replace(each, coordinates=each.coordinates[item])
            else:
                found[at] = replace(each, coordinates=[each.coordinates[item]], taken=True)
        return replace(self, dimensions=found)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the coordinates of each dimension that no integer has consumed."""
        return tuple(len(each.coordinates) for each in self.dimensions if not each.taken)

    @property
    def kept(self) -> list[Dimension]:
        """Return the dimensions of the selected elements."""
        return [each for each in self.dimensions if each.tiled or not each.taken]

    @property
    def element_shape(self) -> tuple[int, ...]:
        """Return how many elements are selected."""
        return tuple(len(each.elements) for each in self.kept)

    @property
    def is_remainder(self) -> bool:
        """Return whether a tile or block is partial."""
        return any(each.is_partial for each in self.dimensions)

    def of_array(self, array: np.ndarray) -> np.ndarray:
        """Return the selected elements of an array."""
        found = array[np.ix_(*(each.elements for each in self.dimensions))]
        gone = tuple(at for at, each in enumerate(self.dimensions) if each.taken and not each.tiled)
        return found.squeeze(gone)

    def has_one_step(self) -> bool:
        """Return whether the elements of each dimension are evenly spaced."""
        return all(len(set(np.diff(each.elements))) <= 1 for each in self.dimensions)

    def steps(self) -> list[int | None]:
        """Return the elements between coordinates; None where there is one coordinate only."""
        left = [each for each in self.dimensions if not each.taken]
        return [
            each.coordinates[1][0][0] - each.coordinates[0][0][0] if len(each.coordinates) > 1 else None
            for each in left
        ]


@dataclass
class Case:
    """A tensor's shape, and what is made of it: calls on the grid and on the model alike."""

    extents: tuple[int, ...]
    tile_shape: tuple[int, ...]
    block_shape: tuple[int, ...] | None
    keys: list[tuple[Any, ...]]
    inner: tuple[Any, ...] | None  # an index of the tiles inside, once the grid is opened
    model: Model


@st.composite
def indices(draw: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Indices of some of the first coordinates: integers, negative ones, and slices that hold something."""
    found: list[Any] = []
    for count in shape[: draw(st.integers(0, len(shape)))]:
        if draw(st.booleans()):
            found.append(draw(st.integers(-count, count - 1)))
            continue
        first = draw(st.integers(0, count - 1))
        stop = draw(st.integers(first + 1, count))
        step = draw(st.sampled_from((None, 1, 2, 3)))
        found.append(slice(draw(st.sampled_from((first, first - count))), draw(st.sampled_from((stop, None))), step))
    return tuple(found)


@st.composite
def cases_of(draw: Any, *, front: int = 2) -> Case:
    """A case: tensors of two to four dimensions, ``front`` of them untiled at most."""
    tiled = draw(st.integers(2, 3))
    untiled = draw(st.integers(0, min(front, 4 - tiled)))
    tile_shape = tuple(draw(st.integers(1, 5)) for _ in range(tiled))
    extents = tuple(draw(st.integers(1, 3)) for _ in range(untiled))
    extents += tuple(draw(st.integers(1, 13)) for _ in range(tiled))
    model = Model.of(extents, tile_shape)
    block_shape = None
    if draw(st.booleans()):
        block_shape = tuple(draw(st.integers(1, 3)) for _ in range(tiled))
        model = model.blocks(block_shape)
    keys = []
    for _ in range(draw(st.integers(0, 2))):
        key = draw(indices(model.shape))
        keys.append(key)
        model = model[key]
    inner = None
    if draw(st.booleans()) and all(_is_open(each) for each in model.dimensions):
        model = model.tiles()
        inner = draw(indices(model.shape))
        model = model[inner]
    return Case(extents, tile_shape, block_shape, keys, inner, model)


def _is_open(each: Dimension) -> bool:
    """Return whether the tiles of a dimension follow one another in even steps."""
    firsts = [tile[0] for tile in chain.from_iterable(each.coordinates)]
    return not each.tiled or each.group == 1 or len(set(np.diff(firsts))) <= 1


def made(case: Case, grid: Any, nl: Any) -> Any:
    """Return what a case makes of the grid of all tiles."""
    if case.block_shape is not None:
        grid = nl.blocks(grid, block_shape=case.block_shape)
    for key in case.keys:
        grid = grid[key]
    if case.inner is not None:
        grid = nl.tiles(grid)[case.inner]
    return grid
