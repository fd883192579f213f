"""Adding to HBM on the way: ``nl.atomic_rmw``, and ``dst_rmw_op`` of nisa.dma_copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nkitools.chip.dtypes import int32
from nkitools.chip.runtime_views import VectorTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.indexing.masks import Lanes, MaskLike, lanes_of
from nkitools.dialects.legacy.indexing.runtime_indices import RowAccess, check_rows
from nkitools.dialects.legacy.kernels.immutable_inputs import check_writable
from nkitools.dialects.legacy.kernels.keywords import Keyword, check_keywords
from nkitools.dialects.legacy.tiles.dtypes import is_number
from nkitools.dialects.legacy.tiles.elementwise import check_tile
from nkitools.dialects.legacy.tiles.result_tiles import new_tile
from nkitools.dialects.legacy.tiles.tensor import Operand, Tensor
from nkitools.engines.enums import oob_mode
from nkitools.engines.operators import OPERATORS, OperatorToken, token_name
from nkitools.isa.dma import dma_compute
from nkitools.isa.move import fill
from nkitools.rules.finding import refuse

ADD = OPERATORS["add"]
_NOWHERE = -1  # a row number that is left out


def atomic_rmw(dst: Tensor, value: Operand, op: OperatorToken, *, mask: MaskLike = None, **kwargs: Keyword) -> None:
    """Add ``value`` to the rows of a tensor in HBM that an index tile names: ``dst`` is ``tensor[index, i_f]`` (NK603).

    ``value``: a tile in SBUF or a number. ``op``: np.add, the only one (NK306). A row that is named several times gets
    all that is added to it. Elements that ``mask`` leaves out stay as they are.
    Errors: those of nkitools.isa.dma.dma_compute without NK505, NK402, NK406, NK603, NK604, NK612.
    """
    what = "nl.atomic_rmw"
    check_keywords(what, kwargs)
    check_tile(what, "dst", dst)
    check_addition(what, "op", op)
    if not isinstance(dst.access, RowAccess):
        refuse(
            "NK603",
            f"{what}: `dst`, {describe(dst.base)}, is not indexed by a tile, the only form that there is",
            about=(dst.base,),
            remedy="Write dst[index_tile, nl.arange(n)[None, :]]; nl.load, an addition and nl.store for other rows.",
        )
    check_writable(what, dst)
    lanes = lanes_of(mask, dst.shape, what)
    added: Any = value
    if is_number(value):
        tile = new_tile(dst.shape, dst.element)
        fill(tile, added)
        added = Tensor(tile)
    check_tile(what, "value", added)
    add_lanes(dst, added, lanes)


def check_addition(what: str, role: str, op: OperatorToken) -> None:
    """NK306: ``np.add`` is the only operation."""
    if token_name(op) != "add":
        refuse("NK306", f"{what}: `{role}` must be np.add, the only one that is supported; it is {op!r}")


def add_lanes(dst: Tensor, src: Tensor, lanes: Lanes | None) -> None:
    """``dst += src`` on the lanes of a mask. Errors: NK402."""
    if lanes is None:
        _add(dst.resolved(), src.resolved())
        return
    for box in () if lanes.empty else lanes.boxes():
        _add(dst.within(dst.shape, box), src.within(dst.shape, box))


def _add(dst: NkiTensor, src: NkiTensor) -> None:
    check_rows(None, dst, src)
    if not isinstance(dst, VectorTensor):
        dma_compute(dst=dst, srcs=[dst, src], reduce_op=ADD)
        return
    for rows in _once_each(dst):
        skips = oob_mode.error if rows is dst else oob_mode.skip
        dma_compute(dst=rows, srcs=[rows, src], reduce_op=ADD, oob_mode=skips)


def _once_each(dst: VectorTensor) -> Iterator[VectorTensor]:
    """Yield views that name each row once: a row's first mention in the first of them, its second in the second, …

    One after the other they are the additions that the compiler keeps in order.
    """
    rows, _ = dst.chosen()
    order = np.argsort(rows, kind="stable")
    found = rows[order]
    begins = np.flatnonzero(np.concatenate(([True], found[1:] != found[:-1])))
    rank = np.empty(rows.size, np.intp)
    rank[order] = np.arange(rows.size) - np.repeat(begins, np.diff(begins, append=rows.size))
    turns = int(rank.max()) + 1
    if turns == 1:
        yield dst
        return
    for turn in range(turns):
        index = new_tile((rows.size, 1), int32)
        np.copyto(index.array, np.where(rank == turn, rows, _NOWHERE).reshape(-1, 1), casting="unsafe")
        index.storage.mark_written(index.layout, 0)
        yield VectorTensor.of(dst.rows, index, rows.size)
