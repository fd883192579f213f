"""One dimension of a grid: which tiles its coordinates stand for, and which elements of the source those hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

Span = tuple[int, int, int]  # the first element, the step from one to the next, and how many elements there are


class Axis(NamedTuple):
    """The selected coordinates of one dimension; coordinate k stands for ``tiles[k * group : (k + 1) * group]``."""

    tile: int  # nominal elements of a tile, 1 along an untiled dimension
    begin: int  # the source element that tile 0 begins with
    end: int  # the first source element behind the last tile, which this end may cut short
    tiles: range  # the numbers of the tiles that the coordinates are made of
    group: int  # tiles of a coordinate: those of a block, 1 where coordinates are tiles
    coordinates: range  # the numbers of the selected coordinates
    tiled: bool = True  # False for a dimension in front of the tiled ones
    taken: bool = False  # an integer index has chosen the one coordinate

    @classmethod
    def whole(cls, begin: int, end: int, tile: int, *, tiled: bool = True) -> Axis:
        """Return the tiles over the elements ``begin`` to ``end - 1``; the last one may be partial."""
        numbers = range(-((begin - end) // tile))
        return cls(tile, begin, end, numbers, 1, numbers, tiled)

    @property
    def dropped(self) -> bool:
        """Return whether the source's dimension is gone: an integer has chosen one slab of an untiled dimension."""
        return self.taken and not self.tiled

    @property
    def selected(self) -> range | None:
        """Return the numbers of the selected tiles as a range; None if they have no constant step."""
        chosen = self.coordinates
        if not chosen:
            return None
        if self.group == 1:
            return self.tiles[chosen.start : chosen.stop : chosen.step]
        if len(chosen) == 1 or chosen.step == 1:
            return self.tiles[chosen[0] * self.group : (chosen[-1] + 1) * self.group]
        return None

    @property
    def span(self) -> Span | None:
        """Return the selected elements where one step leads from each to the next, else None."""
        if self.taken and self.group == 1:  # a cell: what kernels ask for in their loops
            first = self.begin + self.tiles[self.coordinates.start] * self.tile
            return first, 1, min(self.tile, self.end - first)
        tiles = self.selected
        if tiles is None:
            return None
        first = self.begin + tiles[0] * self.tile
        if len(tiles) == 1 or tiles.step == 1:
            return first, 1, min(self.begin + (tiles[-1] + 1) * self.tile, self.end) - first
        return (first, tiles.step, len(tiles)) if self.tile == 1 else None

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield the first element, and the one behind the last, of each stretch between gaps."""
        first = end = -1
        for number in self.coordinates:
            for tile in self.tiles[number * self.group : (number + 1) * self.group]:
                begin = self.begin + tile * self.tile
                if begin != end:
                    if end >= 0:
                        yield first, end
                    first = begin
                end = min(begin + self.tile, self.end)
        if end >= 0:
            yield first, end

    @property
    def tile_count(self) -> int:
        """Return the number of selected tiles."""
        if not self.coordinates:
            return 0
        missing = (self.coordinates[-1] + 1) * self.group - len(self.tiles)
        return len(self.coordinates) * self.group - max(0, missing)

    @property
    def missing(self) -> int:
        """Return the number of elements that the last selected tile lacks."""
        if not self.coordinates:
            return 0
        last = self.tiles[min((self.coordinates[-1] + 1) * self.group, len(self.tiles)) - 1]
        return max(0, self.begin + (last + 1) * self.tile - self.end)

    @property
    def elements(self) -> int:
        """Return the number of selected elements."""
        return self.tile_count * self.tile - self.missing

    @property
    def is_remainder(self) -> bool:
        """Return whether a selected tile or block is smaller than its nominal size."""
        return self.missing > 0 or self.tile_count < len(self.coordinates) * self.group

    @property
    def step(self) -> int:
        """Return the source elements from one coordinate to the next."""
        return self.tile * self.tiles.step * self.group * self.coordinates.step

    @property
    def numbers(self) -> range:
        """Return the coordinates as the whole grid counts them."""
        chosen = self.coordinates
        return self.tiles[chosen.start : chosen.stop : chosen.step] if self.group == 1 else chosen

    # --- other axes -------------------------------------------------------------------------------------------------

    def at(self, position: int) -> Axis:
        """Return the axis with the one coordinate at a position of this one, which is counted from its first."""
        number = self.coordinates[position]
        return Axis(*self[:5], range(number, number + 1), self.tiled, True)  # _replace takes three times as long

    def cut(self, part: slice) -> Axis:
        """Return the axis with some of the coordinates."""
        return self._replace(coordinates=self.coordinates[part])

    def opened(self) -> Axis | None:
        """Return the axis whose coordinates are the selected tiles; None if there are gaps between blocks."""
        if self.group == 1:
            return self._replace(taken=self.dropped)
        if self.selected is None:
            return None
        stop = min((self.coordinates[-1] + 1) * self.group, len(self.tiles))
        return self._replace(group=1, coordinates=range(self.coordinates[0] * self.group, stop), taken=False)

    def grouped(self, group: int) -> Axis | None:
        """Return the axis whose coordinates are blocks of so many selected tiles."""
        if not self.tiled:
            return self
        tiles = self.selected
        if tiles is None:
            return None
        return self._replace(tiles=tiles, group=group, coordinates=range(-(-len(tiles) // group)), taken=False)

    def retiled(self, tile: int) -> Axis | None:
        """Return the axis with tiles of another size over the selected elements; None if these have gaps."""
        span = self.span
        if span is None or (span[1] != 1 and span[2] > 1):
            return None
        return Axis.whole(span[0], span[0] + span[2], tile)

    def packed(self) -> Axis:
        """Return the axis of a new source that holds the selected elements and no others."""
        tiles, numbers = range(self.tile_count), range(len(self.coordinates))
        return self._replace(begin=0, end=self.elements, tiles=tiles, coordinates=numbers)
