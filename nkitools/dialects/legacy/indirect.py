"""Indirect indices: a tile in SBUF chooses the rows of a tensor in HBM, one for each partition (gather and scatter)."""

from __future__ import annotations

from typing import Any

from nkitools.chip.dynamic import VectorTensor, chosen_rows
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.views import describe
from nkitools.dialects.legacy.access import access_of, bare_index_error
from nkitools.dialects.legacy.indices import Index, whole
from nkitools.isa.enums import oob_mode
from nkitools.rules.finding import not_modelled, refuse


def indirect_rows(tensor: NkiTensor, items: tuple[Any, ...], is_tile: Any) -> NkiTensor:
    """``tensor[idx, i_f]``: the rows that ``idx``, a tile of shape (n, 1), names. Errors: NK603, NK607."""
    places = [dim for dim, item in enumerate(items) if is_tile(item)]
    place = places[0]
    if tensor.on_chip or len(places) > 1:
        not_modelled(
            f"indirect addressing on chip, or by several tiles, is not modelled yet; it is asked of {describe(tensor)}",
            remedy="One tile may choose the rows of a tensor in HBM.",
        )
    if any(whole(item) is None for item in items[:place]):
        refuse(
            "NK603",
            f"a tile chooses along dimension {place} of {describe(tensor)}, behind the partition dimension "
            "(err_indirect_indices_free_dim)",
            about=(tensor,),
            remedy="A tile stands first, or behind integers: tensor[b, tile, nl.arange(n)[None, :]].",
        )
    ndim = max((item.ndim for item in items if isinstance(item, Index)), default=2)
    rows = Index(0, (1, *[0] * (ndim - 1)), (tensor.shape[place], *[1] * (ndim - 1)))
    free = tuple(_without_partitions(item) for item in items[place + 1 :])
    return chosen_rows(access_of(tensor, (*items[:place], rows, *free)).view(), items[place].resolved())


def _without_partitions(item: Any) -> Any:
    """An index of a dense grid that does not vary along axis 0 says nothing about how many rows there are."""
    if isinstance(item, Index) and item.coefficients[0] == 0:
        return Index(item.constant, item.coefficients, (1, *item.shape[1:]))
    return item


def check_rows(mode: Any, *tensors: NkiTensor) -> None:
    """NK402: a row that an index tile names lies outside; an IndexError with AWS's text, which counts elements."""
    if mode is oob_mode.skip:
        return
    for tensor in tensors:
        if isinstance(tensor, VectorTensor):
            invalid = tensor.first_invalid()
            if invalid is not None:
                row = tensor.rows.array.strides[0] // tensor.dtype.itemsize
                size = row * tensor.rows.shape[0]
                bare_index_error(tensor, f"index {invalid[1] * row} is out of bounds for axis 0 with size {size}")
