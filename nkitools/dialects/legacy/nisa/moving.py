"""Filling tiles, copying them to and from run-time addresses, and moving them by DMA."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from nkitools.chip.argument_types import Shape
from nkitools.chip.core import current_core
from nkitools.chip.memory import Storage
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.aws_names.enums import dge_mode as dge_modes
from nkitools.dialects.legacy.aws_names.enums import engine as engines
from nkitools.dialects.legacy.aws_names.enums import oob_mode as oob_modes
from nkitools.dialects.legacy.aws_names.enums import translated
from nkitools.dialects.legacy.indexing.indices import Index, NonAffine, whole
from nkitools.dialects.legacy.indexing.masks import Box, Lanes, MaskLike, lanes_of
from nkitools.dialects.legacy.indexing.runtime_indices import OffsetAccess, RowAccess
from nkitools.dialects.legacy.kernels.immutable_inputs import check_writable
from nkitools.dialects.legacy.kernels.keywords import Keyword
from nkitools.dialects.legacy.nisa.value_calls import (
    box_lanes,
    check_tiles,
    checked,
    in_place_lanes,
    memory_of,
    moved_by,
    sbuf,
    write_by,
)
from nkitools.dialects.legacy.nl.transfer import check_in_hbm, copy_lanes
from nkitools.dialects.legacy.tiles import accumulating
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, element_type, is_number, result_type
from nkitools.dialects.legacy.tiles.elementwise import check_tile
from nkitools.dialects.legacy.tiles.reshaping import converted_value
from nkitools.dialects.legacy.tiles.result_tiles import value_tile, write_lanes
from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.engines.operators import OperatorToken
from nkitools.isa import move as _move
from nkitools.isa.dma import AXES
from nkitools.isa.dma import dma_transpose as _dma_transpose
from nkitools.language.creation import checked_shape, ndarray
from nkitools.rules.finding import refuse


def memset(
    shape: Shape,
    value: float,
    dtype: ResultDType,
    *,
    mask: MaskLike = None,
    engine: engines = engines.unknown,
    **kwargs: Keyword,
) -> Tensor:
    """Return a new tile of ``shape`` and ``dtype``, filled with the number ``value``, on ``engine``.

    The first size is that of the partition dimension. A float is rounded for an integer ``dtype``. Elements that
    ``mask`` leaves out are undefined. The result is in SBUF, with ``buffer=nl.psum`` in PSUM.
    Errors: those of nkitools.isa.move.memset, NK604, NK609.
    """
    memory = memory_of("nisa.memset", kwargs)
    if not is_number(value):
        refuse("NK609", f"nisa.memset: `value` must be a number, it is {type(value).__name__}")
    dst = ndarray(checked_shape(shape, "nisa.memset"), element_type(dtype), memory)
    current_core("nisa.memset").record.begin_value(dst.storage)
    lanes = lanes_of(mask, dst.shape, "nisa.memset")
    chosen = translated(engine)
    write_lanes(lambda target: _move.fill(target, value, chosen), dst, (), lanes)
    return Tensor.made(dst, lanes)


def iota(expr: Index | NonAffine | int, dtype: ResultDType, *, mask: MaskLike = None, **kwargs: Keyword) -> Tensor:
    """Return a new SBUF tile of ``dtype`` with the values of an index expression.

    ``expr``: an affine expression of nl.arange or nl.mgrid with at least two dimensions (NK603), whose shape is that of
    the tile; or an integer, for a tile of one element. Elements that ``mask`` leaves out are undefined.
    Errors: those of nkitools.isa.move.iota, NK603, NK604, NK609.
    """
    memory = memory_of("nisa.iota", kwargs)
    if isinstance(expr, NonAffine):
        expr.refuse()
    number = whole(expr)
    index = expr if number is None else Index(number, (0, 0), (1, 1))
    if not isinstance(index, Index) or index.ndim < 2:
        refuse(
            "NK603",
            "nisa.iota takes an affine expression of indices with at least two dimensions: nl.arange(n)[None, :]",
        )
    dst = value_tile(index.shape, element_type(dtype), memory)
    lanes = lanes_of(mask, dst.shape, "nisa.iota")
    firsts = [0] * index.ndim if lanes is None else [first for first, _ in lanes.box]
    start = index.constant + sum(slope * first for slope, first in zip(index.coefficients, firsts, strict=True))

    def into(target: NkiTensor) -> None:
        pattern = tuple(zip(index.coefficients[1:], target.shape[1:], strict=True))
        _move.iota(dst=target, pattern=pattern, offset=start, channel_multiplier=index.coefficients[0])

    write_lanes(into, dst, (), lanes)
    return Tensor.made(dst, lanes)


def tensor_copy_dynamic_src(
    src: Tensor,
    *,
    mask: MaskLike = None,
    dtype: ResultDType = None,
    engine: engines = engines.unknown,
    **kwargs: Keyword,
) -> Tensor:
    """Return a copy of a tile in SBUF or PSUM whose index may have an offset known only when the kernel runs.

    Such a ``src`` is ``tile[i_p, offset[0, i] + i_f]``: the offset, an integer in SBUF, moves it within each partition.
    ``dtype``, ``mask`` and memory of the result: as for nisa.activation.
    Errors: those of nkitools.isa.move.tensor_copy, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.tensor_copy_dynamic_src"
    memory = memory_of(what, kwargs)
    check_tile(what, "src", src)
    lanes = lanes_of(mask, src.shape, what)
    dst = value_tile(src.shape, result_type(dtype, what, src), memory)
    write_by(partial(_move.tensor_copy, engine=translated(engine)), dst, lanes, src=_Moved(src))
    return Tensor.made(dst, lanes)


def tensor_copy_dynamic_dst(
    *,
    dst: Tensor,
    src: Tensor,
    mask: MaskLike = None,
    dtype: ResultDType = None,
    engine: engines = engines.unknown,
    **kwargs: Keyword,
) -> None:
    """Copy ``src`` to a tile whose index may have an offset known only when the kernel runs; return nothing.

    Such a ``dst`` is ``tile[i_p, offset[0, i] + i_f]``, as in nisa.tensor_copy_dynamic_src. ``dtype``: None or that of
    ``dst`` (NK301). Elements of ``dst`` that ``mask`` leaves out stay as they were.
    Errors: those of nkitools.isa.move.tensor_copy, NK402, NK603, NK604, NK609, NK612.
    """
    lanes = in_place_lanes("nisa.tensor_copy_dynamic_dst", dst, mask, dtype, kwargs, src=src)
    write_by(partial(_move.tensor_copy, engine=translated(engine)), _Moved(dst), lanes, src=src)


class _Moved:
    """A tile with leave to lie at a run-time address on chip."""

    def __init__(self, tile: Tensor) -> None:
        self.tile = tile
        self.shape: tuple[int, ...] = tile.shape
        self.element = tile.element
        self.storage: Storage = tile.storage

    def resolved(self) -> NkiTensor:
        """Return the view, wherever it is moved to. Errors: NK402."""
        access = self.tile.access
        found: NkiTensor = access.moved() if isinstance(access, OffsetAccess) else self.tile.resolved()
        return found

    def within(self, shape: tuple[int, ...], box: Box) -> NkiTensor:
        """Return the part in a box of a tile of ``shape``. Errors: NK402, NK604."""
        access = self.tile.access
        if isinstance(access, OffsetAccess) and self.shape == shape:
            return access.moved(box)
        found: NkiTensor = self.tile.within(shape, box)
        return found


def dma_copy(
    *,
    dst: Tensor,
    src: Tensor,
    mask: MaskLike = None,
    dst_rmw_op: OperatorToken | None = None,
    oob_mode: oob_modes = oob_modes.error,
    dge_mode: dge_modes = dge_modes.unknown,
) -> None:
    """Copy ``src`` to ``dst`` by DMA, both in HBM or SBUF; with ``dst_rmw_op=np.add`` add it to ``dst``.

    Elements that ``mask`` leaves out are not written. ``oob_mode``: an index tile's row out of bounds is NK402 or, with
    ``skip``, left out. An addition goes with ``oob_mode=error`` only (NK609); a row that its index tile names several
    times gets all that is added to it.
    Errors: those of nkitools.isa.move.dma_copy and (without NK505) of nkitools.isa.dma.dma_compute, NK402, NK406,
    NK603, NK604, NK612.
    """
    what = "nisa.dma_copy"
    check_tiles(what, dst=dst, src=src)
    check_writable(what, dst)
    lanes = lanes_of(mask, dst.shape, what)
    if dst_rmw_op is None:
        copy_lanes(dst, src, lanes, oob_mode, dge_mode)
        return
    accumulating.check_addition(what, "dst_rmw_op", dst_rmw_op)
    if translated(oob_mode) is not translated(oob_modes.error):
        refuse("NK609", f"{what}: `dst_rmw_op` goes with oob_mode=error only, `oob_mode` is {oob_mode!r}")
    accumulating.add_lanes(dst, src, lanes)


def dma_transpose(
    src: Tensor,
    *,
    axes: Sequence[int] | None = None,
    mask: MaskLike = None,
    dtype: ResultDType = None,
    **kwargs: Keyword,
) -> Tensor:
    """Return a new SBUF tile with the dimensions of ``src`` (HBM or SBUF) permuted: (1, 0), (2, 1, 0) or (3, 1, 2, 0).

    ``axes``: None or that permutation. ``dtype``: of the result, by default ``src``'s. What ``mask`` leaves out is
    undefined in the result; it must leave a box of ``src`` (NK604). A further keyword is ``dge_mode``:
    ``none`` and ``swdge`` act as ``unknown``. ``src`` has no index tiles (NK603).
    Errors: those of nkitools.isa.dma.dma_transpose, NK402, NK603, NK604, NK609, NK612.
    """
    mode: Any = kwargs.pop("dge_mode", dge_modes.unknown)
    memory = memory_of("nisa.dma_transpose", kwargs)
    if memory is not sbuf:
        refuse("NK201", "nisa.dma_transpose: DMA writes to SBUF, `buffer` names another memory")
    return transposed_by_dma("nisa.dma_transpose", src, axes, mask, dtype, mode)


def transposed_by_dma(
    what: str,
    src: Tensor,
    axes: Sequence[int] | None,
    mask: MaskLike,
    dtype: ResultDType,
    mode: dge_modes = dge_modes.unknown,
) -> Tensor:
    """Return the transposed tile; ``mask``, which chooses among the elements of ``src``, leaves the part that it
    names.
    """
    check_tile(what, "src", src)
    if isinstance(src.access, (OffsetAccess, RowAccess)):
        refuse(
            "NK603",
            f"{what}: {describe(src.base)} is addressed by another tensor "
            "(err_indirect_indices_are_not_supported_with_nki_api)",
            about=(src.base,),
            remedy="Load the rows with nl.load, and transpose the tile with nisa.nc_transpose.",
            facts={"code": "err_indirect_indices_are_not_supported_with_nki_api"},
        )
    order = AXES.get(len(src.shape), tuple(range(len(src.shape))))
    given: Any = axes
    if isinstance(axes, (list, tuple)):
        given = tuple(axis if (n := whole(axis)) is None else n for axis in axes)
    lanes = box_lanes(what, mask, src.shape)
    dst = value_tile(tuple(src.shape[axis] for axis in order), src.element)
    chosen = translated(mode if mode is dge_modes.hwdge or not isinstance(mode, dge_modes) else dge_modes.unknown)
    kept = None if lanes is None else Lanes(tuple(lanes.box[axis] for axis in order))
    moved_by(partial(_dma_transpose, axes=given, dge_mode=chosen), dst, kept, lanes, src=src)
    kind = result_type(dtype, what, src)
    return Tensor.made(dst if kind is src.element else converted_value(dst, kind), kept)


def load_transpose2d(src: Tensor, *, mask: MaskLike = None, dtype: ResultDType = None, **kwargs: Keyword) -> Tensor:
    """Return a tensor [F, P] in HBM, with P up to 128, transposed: a new SBUF tile [P, F].

    ``dtype`` and ``mask``: as for nisa.dma_transpose.
    Errors: those of nkitools.isa.dma.dma_transpose, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nl.load_transpose2d"
    checked(what, kwargs, src=src)
    check_in_hbm(what, "src", src)
    if len(src.shape) != 2:
        refuse("NK110", f"{what}: `src` must have 2 dimensions, it is {describe(src.base)}", about=(src.base,))
    return transposed_by_dma(what, src, None, mask, dtype)
