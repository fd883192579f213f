"""Indices that are known only when the kernel runs: tiles of row numbers in HBM, and scalars in SBUF.

A tile of shape (n, 1) chooses the rows of a tensor in HBM, one for each partition (gather and scatter). A tile of one
element, alone or plus an affine index, moves a whole access: along the block dimensions of HBM, and along the free
dimensions of a tile on chip, which only nisa.tensor_copy_dynamic_src and nisa.tensor_copy_dynamic_dst take.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NoReturn

from nkitools.chip.indexing import expanded
from nkitools.chip.pictures import OUTSIDE, picture_of
from nkitools.chip.runtime_views import DynamicTensor, Term, VectorTensor, checked_source, chosen_rows
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.aws_names.enums import translated
from nkitools.dialects.legacy.indexing.access import Access, access_of, bare_index_error
from nkitools.dialects.legacy.indexing.indices import Index, IndexLike, NonAffine, whole
from nkitools.dialects.legacy.indexing.masks import Box, Subscript, not_affine
from nkitools.dialects.legacy.indexing.slicing import basic_access
from nkitools.dialects.legacy.tiles.result_tiles import Tile
from nkitools.engines.enums import oob_mode
from nkitools.facts.light_classes import dataclass
from nkitools.rules.finding import not_modelled, refuse, report

_FREE = "err_indirect_indices_free_dim"


class DynamicIndex:
    """The value of a tile of one element plus an affine index: ``offset_tile + nl.arange(64)[None, :]``."""

    __slots__ = ("index", "tile")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, tile: Any, index: Index) -> None:
        self.tile = tile
        self.index = index

    def _plus(self, other: IndexLike, sign: int) -> Any:
        if whole(other) is None and not isinstance(other, Index):
            return NonAffine("arithmetic of a dynamic offset with something that is no index")
        return DynamicIndex(self.tile, self.index + other * sign)

    def __add__(self, other: IndexLike) -> Any:
        return self._plus(other, 1)

    __radd__ = __add__

    def __sub__(self, other: IndexLike) -> Any:
        return self._plus(other, -1)

    def _other_operator(self, other: IndexLike | None = None) -> NonAffine:
        return NonAffine("a dynamic offset under another operator than + and -")

    __mul__ = __rmul__ = __rsub__ = __floordiv__ = __mod__ = __truediv__ = __neg__ = _other_operator

    def _in_mask(self, other: IndexLike) -> NoReturn:
        not_affine("it compares an offset that is known only when the kernel runs")

    __lt__ = __le__ = __gt__ = __ge__ = _in_mask
    __eq__ = __ne__ = _in_mask  # type: ignore[assignment]

    def __bool__(self) -> NoReturn:
        code = "err_dynamic_control_flow_not_supported"
        refuse("NK602", f"control flow depends on a dynamic offset ({code})", facts={"code": code})


def chosen_access(tensor: NkiTensor, items: tuple[Any, ...], is_tile: Any) -> RowAccess | OffsetAccess:
    """Return the access of an index tuple with one tile in it. Errors: NK402, NK603, NK607."""
    places = [dim for dim, item in enumerate(items) if is_tile(item)]
    if len(places) > 1:
        not_modelled(f"indirect addressing by several tiles is not modelled; it is asked of {describe(tensor)}")
    place = places[0]
    item = items[place]
    tile = item.tile if isinstance(item, DynamicIndex) else item
    if math.prod(tile.shape[1:]) != 1:
        message = f"an index tile has one element a partition, it is {describe(tile.base)}"
        remedy = "Load the indices into a tile of shape (n, 1), and index it: tile[nl.arange(n)[:, None], 0]."
        refuse("NK603", message, about=(tile.base,), remedy=remedy)
    others = [each for each in items if each is not item]
    is_basic = tile is item and not any(isinstance(each, (Index, NonAffine)) for each in others)
    is_basic &= tile.shape[0] == 1 and (place > 0 or not tensor.on_chip)
    if is_basic and (len(items) < tensor.ndim or any(whole(each) is None for each in others)):
        return _among_slices(tensor, items, place)
    if tensor.on_chip or isinstance(item, DynamicIndex) or (tile.shape[0] == 1 and _has_partitions(items)):
        return _moved(tensor, items, place)
    return _gathered(tensor, items, place)


def _among_slices(tensor: NkiTensor, items: tuple[Any, ...], place: int) -> OffsetAccess:
    """``tensor[tile]``, ``tensor[:, tile, 0]``: a tile of one element counts as its number would (NK621).

    AWS's paged attention for sequences of different lengths indexes tables and masks in HBM by a loop's counter so.
    """
    tile = items[place]
    basic = expanded(tensor, (*items[:place], 0, *items[place + 1 :]))
    if Ellipsis in items[:place]:
        place += tensor.ndim - len(items)
    message = (
        f"{describe(tensor)} is indexed by a tile along dimension {place} and by slices; the documents do not mix "
        "them, and compilers have taken it"
    )
    remedy = "Write every other dimension as an index: nl.arange(n)[None, :] for `:`."
    report("NK621", message, about=(tensor,), remedy=remedy)
    return OffsetAccess(basic_access(tensor, basic), place, tile)


def _has_partitions(items: tuple[Any, ...]) -> bool:
    return any(isinstance(item, Index) and item.ndim > 1 and item.coefficients[0] for item in items)


@dataclass(frozen=True, eq=False)
class RowAccess:
    """Rows of a tensor that an index tile names; ``rows`` is the access of all that may be named, in axis 0."""

    rows: Access
    index: Tile

    @property
    def tensor(self) -> NkiTensor:
        """The tensor whose rows they are."""
        return self.rows.tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """One row for each partition of the index tile."""
        return (self.index.shape[0], *self.rows.shape[1:])

    def violation(self, box: Box) -> tuple[int, int, int, int] | None:
        """Return how the access leaves the tensor, apart from the row numbers, which are known only when the kernel
        runs.
        """
        return self.rows.violation(((0, self.rows.shape[0]), *box[1:]))

    def view(self, box: Box | None = None) -> NkiTensor:
        """Return the rows of the box's partitions, and of them the box's part. Errors: NK402."""
        lanes = tuple((0, size) for size in self.shape) if box is None else box
        found = self.rows.view(((0, self.rows.shape[0]), *lanes[1:]))
        partitions = (lanes[0], *((0, size) for size in self.index.shape[1:]))
        return chosen_rows(found, self.index.within(self.index.shape, partitions))


def _gathered(tensor: NkiTensor, items: tuple[Any, ...], place: int) -> RowAccess:
    """``tensor[idx, i_f]``: the rows that ``idx``, a tile of shape (n, 1), names."""
    if any(whole(item) is None for item in items[:place]):
        message = (
            f"a tile chooses along dimension {place} of {describe(tensor)}, behind the partition dimension ({_FREE})"
        )
        remedy = "A tile stands first, or behind integers: tensor[b, tile, nl.arange(n)[None, :]]."
        refuse("NK603", message, about=(tensor,), remedy=remedy, facts={"code": _FREE, "axis": place})
    ndim = max((item.ndim for item in items if isinstance(item, Index)), default=2)
    rows = Index(0, (1, *[0] * (ndim - 1)), (tensor.shape[place], *[1] * (ndim - 1)))
    free = tuple(_without_partitions(item) for item in items[place + 1 :])
    return RowAccess(access_of(tensor, (*items[:place], rows, *free)), items[place])


def _without_partitions(item: Subscript) -> Any:
    """Return an index with one row if it does not vary along axis 0: a dense grid repeats the row."""
    if isinstance(item, Index) and item.coefficients[0] == 0:
        return Index(item.constant, item.coefficients, (1, *item.shape[1:]))
    return item


def check_rows(mode: Any, *tensors: NkiTensor) -> None:
    """NK402: a row that an index tile names lies outside; an IndexError that begins with AWS's text, which counts
    elements.
    """
    if translated(mode) is oob_mode.skip:
        return
    for tensor in tensors:
        if isinstance(tensor, VectorTensor):
            invalid = tensor.first_invalid()
            if invalid is not None:
                row, count = tensor.rows.array.strides[0] // tensor.dtype.itemsize, tensor.rows.shape[0]
                bare_index_error(
                    tensor,
                    f"index {invalid[1] * row} is out of bounds for axis 0 with size {count * row}, in elements: index "
                    f"{invalid[1]} of {describe(tensor.rows)}, which has {count} along dimension 0",
                    partial(picture_of, ~tensor.chosen()[1], OUTSIDE, "entries of the index"),
                )


@dataclass(frozen=True)
class _Shifted(Term):
    """An offset whose own smallest position is not 0: ``tile + shift`` steps."""

    shift: int = 0

    def value(self, what: str) -> int:
        return super().value(what) + self.shift


@dataclass(frozen=True, eq=False)
class OffsetAccess:
    """An affine access that the value of a tile of one element moves along dimension ``dim``."""

    affine: Access
    dim: int
    source: Tile

    @property
    def tensor(self) -> NkiTensor:
        """The tensor."""
        return self.affine.tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tile."""
        return self.affine.shape

    def violation(self, box: Box) -> tuple[int, int, int, int] | None:
        """Return how the access leaves the tensor for any value of its offset."""
        return self._at_start(box)[0].violation(box)

    def view(self, box: Box | None = None) -> NkiTensor:
        """Return the moved view in HBM; on chip only the two dynamic copies have such an address (NK603)."""
        if self.tensor.on_chip:
            message = (
                f"{describe(self.tensor)} is addressed by an offset that is known only when the kernel runs "
                "(err_copy_dynamic_indirect_indices_not_natively_supported)"
            )
            remedy = "Copy the tile out with nisa.tensor_copy_dynamic_src, or in with nisa.tensor_copy_dynamic_dst."
            facts = {"code": "err_copy_dynamic_indirect_indices_not_natively_supported"}
            refuse("NK603", message, about=(self.tensor,), remedy=remedy, facts=facts)
        return self.moved(box)

    def moved(self, box: Box | None = None) -> NkiTensor:
        """Return the view that is moved when an instruction uses it. Errors: NK402."""
        lanes = self.affine.pattern.box if box is None else box
        access, low, high = self._at_start(lanes)
        stride = self.tensor.array.strides[self.dim]
        limit = self.tensor.shape[self.dim] - 1 - (high - low)
        source = checked_source(self.tensor, self.source.resolved(), "a dynamic offset")
        return DynamicTensor.of(access.view(lanes), _Shifted(source, stride, limit, low))

    def _at_start(self, box: Box) -> tuple[Access, int, int]:
        """Return the access with its smallest position in the moved dimension at 0, the smallest and the largest."""
        constants, slopes = self.affine.constants, self.affine.pattern.slopes
        low, high = Index(constants[self.dim], slopes[self.dim], self.shape).bounds(box)
        moved = (*constants[: self.dim], constants[self.dim] - low, *constants[self.dim + 1 :])
        return Access(self.tensor, moved, self.affine.pattern), low, high


def _moved(tensor: NkiTensor, items: tuple[Any, ...], place: int) -> OffsetAccess:
    """Return the access ``tensor[i_p, offset + i_f]``, which begins at the value of ``offset``."""
    item = items[place]
    tile, index = (item.tile, item.index) if isinstance(item, DynamicIndex) else (item, 0)
    if tile.shape[0] != 1:
        message = (
            f"{describe(tensor)} is addressed by a tile of {tile.shape[0]} partitions along dimension {place}; one "
            f"value moves such an access ({_FREE})"
        )
        remedy = "Loop over the offsets and copy one tile for each; rows of HBM are chosen by tensor[tile, i_f]."
        refuse("NK603", message, about=(tensor,), remedy=remedy, facts={"code": _FREE, "axis": place})
    if tensor.on_chip and place == 0:
        message = f"a tile chooses a partition of {describe(tensor)}; a dynamic offset lies within each partition"
        refuse("NK603", message, about=(tensor,))
    others = [each for dim, each in enumerate(items) if dim != place]
    if not any(isinstance(each, Index) for each in (*others, index)):
        index = Index(whole(index) or 0, (0, 0), (1, 1))
    return OffsetAccess(access_of(tensor, (*items[:place], index, *items[place + 1 :])), place, tile)
