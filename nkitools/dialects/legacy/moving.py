"""``nisa.*``: filling tiles and moving them by DMA."""

from __future__ import annotations

from typing import Any

from nkitools.dialects.legacy.dtypes import element_type, is_number
from nkitools.dialects.legacy.elementwise import check_tile
from nkitools.dialects.legacy.immutable import check_writable
from nkitools.dialects.legacy.indices import Index, NonAffine, whole
from nkitools.dialects.legacy.keywords import check_keywords
from nkitools.dialects.legacy.masks import lanes_of
from nkitools.dialects.legacy.results import new_tile, write_lanes
from nkitools.dialects.legacy.tensor import Tensor
from nkitools.dialects.legacy.transfer import copy_lanes
from nkitools.isa import move as _move
from nkitools.isa.enums import dge_mode, engine, oob_mode
from nkitools.language.creation import checked_shape, ndarray
from nkitools.rules.finding import not_modelled, refuse


def memset(
    shape: Any, value: Any, dtype: Any, *, mask: Any = None, engine: Any = engine.unknown, **kwargs: Any
) -> Tensor:
    """A new tile filled with a number; its first dimension is the partition dimension.

    Errors: those of the instruction, NK604.
    """
    check_keywords("nisa.memset", kwargs)
    if not is_number(value):
        refuse("NK609", f"nisa.memset: `value` must be a number, it is {type(value).__name__}")
    dst = ndarray(checked_shape(shape, "nisa.memset"), element_type(dtype))
    lanes = lanes_of(mask, dst.shape, "nisa.memset")
    write_lanes(lambda target: _move.fill(target, value, engine), dst, (), lanes)
    return Tensor.made(dst, lanes)


def iota(expr: Any, dtype: Any, *, mask: Any = None, **kwargs: Any) -> Tensor:
    """A new SBUF tile with the values of an index expression. Errors: those of the instruction, NK603, NK604."""
    check_keywords("nisa.iota", kwargs)
    if isinstance(expr, NonAffine):
        expr.refuse()
    number = whole(expr)
    index = expr if number is None else Index(number, (0, 0), (1, 1))
    if not isinstance(index, Index) or index.ndim < 2:
        refuse(
            "NK603",
            "nisa.iota takes an affine expression of indices with at least two dimensions: nl.arange(n)[None, :]",
        )
    dst = new_tile(index.shape, element_type(dtype))
    lanes = lanes_of(mask, dst.shape, "nisa.iota")
    pattern = tuple(zip(index.coefficients[1:], index.shape[1:], strict=True))
    if lanes is None:
        _move.iota(dst, pattern, index.constant, index.coefficients[0])
    else:
        whole_tile = new_tile(index.shape, element_type(dtype))
        _move.iota(whole_tile, pattern, index.constant, index.coefficients[0])
        write_lanes(_move.tensor_copy, dst, (Tensor(whole_tile),), lanes)
    return Tensor.made(dst, lanes)


def dma_copy(
    *,
    dst: Any,
    src: Any,
    mask: Any = None,
    dst_rmw_op: Any = None,
    oob_mode: Any = oob_mode.error,
    dge_mode: Any = dge_mode.unknown,
) -> None:
    """``dst = src`` by DMA, in place, on the lanes of the mask.

    Errors: those of nkitools.isa.move.dma_copy, NK402, NK604.
    """
    if dst_rmw_op is not None:
        not_modelled("nisa.dma_copy(dst_rmw_op=...) is not modelled yet", remedy="Load, add and store.")
    for role, tile in (("dst", dst), ("src", src)):
        check_tile("nisa.dma_copy", role, tile)
    check_writable("nisa.dma_copy", dst)
    lanes = lanes_of(mask, dst.shape, "nisa.dma_copy")
    copy_lanes(dst, src, lanes, oob_mode, dge_mode)
