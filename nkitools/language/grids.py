"""``nl.NkiTileGrid`` and ``nl.NkiBlockGrid``: views of a tensor by tiles, or by blocks of tiles.

A grid is arithmetic alone: one `Axis` for each dimension of its source, and where the elements of the source lie.
Nothing is allocated or issued before an instruction gets ``.data``.
"""

from __future__ import annotations

from types import EllipsisType
from typing import Any, ClassVar, NoReturn, Self, TypeAlias

import numpy as np

from nkitools.chip.dtypes import DType
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.tensor_refusals import NotAValue
from nkitools.language.grid_axis import Axis
from nkitools.language.grid_backing import InPlace, SideBySide
from nkitools.language.grid_words import words
from nkitools.rules.finding import refuse

Coordinate: TypeAlias = int | slice | EllipsisType


class NkiGrid(NotAValue):
    """The common part of tile grids and block grids (``nki.language.NkiGrid``, NKI 0.7).

    nl.tiles, nl.blocks, nl.alloc_tiles and nl.alloc_blocks make grids; kernels do not call the classes.

    Indices are integers, slices with a positive step, and one `...`; negative ones count from the end, and what lies
    outside is refused (NK402), never clamped: AWS's page leaves these three open, and a tensor is indexed so.
    An integer consumes its coordinate: ``shape`` and ``index_step_elements`` lose it. ``element_shape`` keeps every
    tiled dimension, and loses the dimension of an untiled one in front of them, as a tensor does.
    Errors: NK109 (``data``, and a slice without a tile), NK402, NK603.
    """

    __slots__ = ("_axes", "_backing", "_tile_shape")

    unit: ClassVar[str] = "tile"  # what a coordinate stands for

    _axes: tuple[Axis, ...]
    _backing: InPlace | SideBySide
    _tile_shape: tuple[int, ...]

    def __init__(self, **kwargs: Any) -> None:
        """Refuse (NK609): grids are made by nl.tiles, nl.blocks, nl.alloc_tiles and nl.alloc_blocks."""
        refuse(
            "NK609",
            f"nl.{type(self).__name__} is not constructed by kernels",
            remedy="Call nl.tiles or nl.blocks on a tensor, or nl.alloc_tiles or nl.alloc_blocks for a new one.",
        )

    @classmethod
    def of(cls, backing: InPlace | SideBySide, axes: tuple[Axis, ...], tile_shape: tuple[int, ...]) -> Self:
        """Return the grid with these axes over a backing; nl.tiles and its siblings call it, kernels do not."""
        self = cls.__new__(cls)
        self._backing, self._axes, self._tile_shape = backing, axes, tile_shape
        return self

    # --- members ----------------------------------------------------------------------------------------------------

    @property
    def buffer(self) -> MemoryRegion:
        """The memory of the tensor that the grid divides."""
        return self._tensor.buffer

    @property
    def dtype(self) -> DType:
        """The dtype of the tensor that the grid divides."""
        return self._tensor.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of coordinates, tiles or blocks, of each dimension that no integer has consumed."""
        return tuple(len(axis.coordinates) for axis in self._axes if not axis.taken)

    @property
    def tile_shape(self) -> tuple[int, ...]:
        """The elements of a whole tile along the tiled dimensions; a tile at the end of the source may have fewer."""
        return self._tile_shape

    @property
    def element_shape(self) -> tuple[int, ...]:
        """The number of selected elements along each dimension; a partial tile counts the elements that it holds."""
        return tuple(axis.elements for axis in self._axes if not axis.dropped)

    @property
    def index_step_elements(self) -> tuple[int, ...]:
        """The distance of neighbouring coordinates in elements of the source, for each dimension of ``shape``."""
        return tuple(axis.step for axis in self._axes if not axis.taken)

    @property
    def is_remainder(self) -> bool:
        """Return whether a selected tile or block at the end of the source is smaller than a whole one.

        AWS's page shows the name alone: this is our reading of it.
        """
        return any(axis.is_remainder for axis in self._axes)

    @property
    def is_data_representable(self) -> bool:
        """Return whether ``data`` can be the selection: a view of ``element_shape`` with one step for each dimension.

        It cannot if a slice leaves gaps between tiles of several elements. In a grid that nl.alloc_tiles or
        nl.alloc_blocks made in SBUF or PSUM it also cannot if the selection has several rows of tiles, if it has
        an untiled dimension without an integer index, and for most selections of several tiles of three or more
        dimensions.
        """
        return self._backing.view(self._axes) is not None

    @property
    def data(self) -> NkiTensor:
        """The selection as a view of shape ``element_shape``; NK109 if no such view exists.

        AWS's page leaves open what happens then.
        """
        view = self._backing.view(self._axes)
        if view is None:
            self._not_one_operand()
        view.grid = self
        return view

    @property
    def _tensor(self) -> NkiTensor:
        """Return the tensor below."""
        return self._backing.tensor

    # --- indexing ---------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Coordinate | tuple[Coordinate, ...]) -> Self:
        items = key if type(key) is tuple else (key,)
        axes = list(self._axes)
        free = [dim for dim, axis in enumerate(axes) if not axis.taken]
        if len(items) > len(free) or any(item is Ellipsis for item in items):
            items = self._expanded(items, len(free))
        for number, item in enumerate(items):
            dim = free[number]
            axis = axes[dim]
            if type(item) is int and 0 <= item < len(axis.coordinates):
                axes[dim] = axis.at(item)
            else:
                axes[dim] = self._chosen(number, axis, item)
        return self.of(self._backing, tuple(axes), self._tile_shape)

    def _expanded(self, items: tuple[Any, ...], count: int) -> tuple[Any, ...]:
        """Return the indices with `...` replaced by as many full slices as it stands for."""
        dots = [at for at, item in enumerate(items) if item is Ellipsis]
        if len(dots) > 1:
            self._no_index(f"an index of {self.words()} has more than one `...`")
        if len(items) - len(dots) > count:
            given = len(items) - len(dots)
            self._no_index(f"{given} indices are given for {self.words()}, which has {count} coordinates left")
        if not dots:
            return items
        return (*items[: dots[0]], *[slice(None)] * (count - len(items) + 1), *items[dots[0] + 1 :])

    def _chosen(self, number: int, axis: Axis, item: Any) -> Axis:
        """Return the axis that an index of coordinate ``number`` leaves."""
        count = len(axis.coordinates)
        if not isinstance(item, slice):
            position = self._integer(item)
            if not -count <= position < count:
                self._outside(number, str(position), count)
            return axis.at(position % count)
        step = 1 if item.step is None else self._integer(item.step)
        first = 0 if item.start is None else self._integer(item.start)
        stop = count if item.stop is None else self._integer(item.stop)
        first, stop = (each + count if each < 0 else each for each in (first, stop))
        shown = f"{'' if item.start is None else item.start}:{'' if item.stop is None else item.stop}"
        if step < 1:
            self._no_index(f"step {step} of a slice of {self.words()} is not positive")
        if not (0 <= first <= count and 0 <= stop <= count):
            self._outside(number, shown, count)
        if first >= stop:
            message = f"slice {shown} of coordinate {number} of {self.words()} holds no {self.unit}"
            refuse("NK109", message, about=(self._tensor,))
        return axis.cut(slice(first, stop, step))

    def _integer(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            self._no_index(f"{value!r} ({type(value).__name__}) is no index of {self.words()}")
        return int(value)

    def _no_index(self, message: str) -> NoReturn:
        remedy = "The coordinates of a grid are integers and slices that are known when the kernel is built."
        refuse("NK603", message, about=(self._tensor,), remedy=remedy)

    def _outside(self, number: int, shown: str, count: int) -> NoReturn:
        message = f"index {shown} is out of bounds for coordinate {number} of {self.words()}, which has size {count}"
        remedy = "Loop over range(grid.shape[dimension]): partial tiles at the ends are coordinates of their own."
        refuse("NK402", message, about=(self._tensor,), remedy=remedy)

    def _not_one_operand(self) -> NoReturn:
        if any(axis.span is None for axis in self._axes):
            reason = "slices leave gaps between its tiles"
        else:
            reason = "its tiles lie side by side in the partitions, a row of tiles behind the other"
        remedy = (
            f"Pass .data of each {self.unit}, or of a selection without gaps within one row of tiles; "
            "is_data_representable says which selections have it. nl.tiles(block) has the tiles of a block."
        )
        message = f"{self.words()} cannot be one operand, since one access pattern does not represent it: {reason}"
        refuse("NK109", message, about=(self._tensor,), remedy=remedy)

    # --- words ------------------------------------------------------------------------------------------------------

    def words(self) -> str:
        """Return the selection as findings have it: ``tile (2, 1) of `x`, rows 256:384, columns 256:512``."""
        return words(self.unit, self._tensor, self._axes)

    def __repr__(self) -> str:
        selection = words(self.unit, self._tensor, self._axes, plain=True)
        return f"<{type(self).__name__} of shape {self.shape}: {selection}>"

    def _refuse(self, rule: str, before: str, after: str, remedy: str = "") -> NoReturn:
        remedy = remedy or "Loop over range(grid.shape[dimension]) and pass .data of each cell to an instruction."
        refuse(rule, f"{before}{self.words()}{after}", about=(self._tensor,), remedy=remedy)

    def __bool__(self) -> bool:
        self._refuse("NK602", "the truth value of ", " is asked for; its elements exist only when the kernel runs")

    def __len__(self) -> int:
        self._refuse("NK601", "len() is asked of ", "", remedy="Its shape says how many there are: grid.shape[0].")


class NkiTileGrid(NkiGrid):
    """A tensor by tiles: ``grid[i, j]`` is the tile in row i and column j (``nki.language.NkiTileGrid``, NKI 0.7)."""

    __slots__ = ()


class NkiBlockGrid(NkiGrid):
    """A tensor by blocks of tiles: ``grid[i, j]`` is the block in row i and column j, and nl.tiles of it its tiles.

    ``nki.language.NkiBlockGrid``, NKI 0.7.
    """

    __slots__ = ()

    unit = "block"

    @property
    def block_shape(self) -> tuple[int, ...]:
        """The tiles of a whole block along the tiled dimensions; a block at the end of the source may have fewer."""
        return tuple(axis.group for axis in self._axes if axis.tiled)
