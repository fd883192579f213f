"""Matrix products and transposes of tiles, as ``nl.*`` and as ``nisa.*`` values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from nkitools.chip.dtypes import float32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.aws_names.enums import engine as engines
from nkitools.dialects.legacy.aws_names.enums import translated
from nkitools.dialects.legacy.indexing.masks import Lanes, Mask, MaskLike, lanes_of, not_affine
from nkitools.dialects.legacy.kernels.kernel_state import form_of
from nkitools.dialects.legacy.kernels.keywords import Keyword, check_keywords
from nkitools.dialects.legacy.nisa.value_calls import box_lanes, checked, first_in_row, moved_by
from nkitools.dialects.legacy.tiles import reshaping
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, element_type
from nkitools.dialects.legacy.tiles.elementwise import check_tile
from nkitools.dialects.legacy.tiles.result_tiles import new_tile, part, value_tile
from nkitools.dialects.legacy.tiles.tensor import MaskedOperand, Tensor
from nkitools.engines.enums import engine as modern_engines
from nkitools.engines.enums import matmul_perf_mode
from nkitools.isa.matmul import nc_matmul as _nc_matmul
from nkitools.isa.matmul import nc_transpose as _nc_transpose
from nkitools.isa.move import tensor_copy
from nkitools.issue.shape_remedies import check_product
from nkitools.rules.finding import not_modelled, refuse, report

PSUM = MemoryRegion.psum


def _two_dimensional(what: str, **tiles: Tensor) -> None:
    for role, tile in tiles.items():
        check_tile(what, role, tile)
        if len(tile.shape) != 2:
            refuse("NK110", f"{what}: `{role}` must have 2 dimensions, it is {describe(tile.base)}", about=(tile.base,))


def matmul(x: Tensor, y: Tensor, *, transpose_x: bool = False, mask: MaskLike = None, **kwargs: Keyword) -> Tensor:
    """Return ``x @ y``, or ``x.T @ y`` with ``transpose_x=True``, as a new float32 tile in PSUM.

    ``x``, ``y``: 2-D tiles in SBUF; the product has up to 128 rows. ``mask`` chooses partitions of the operands, those
    that it leaves out do not take part; ``x[mask]`` (only with ``transpose_x=True``) and ``y[mask]`` choose elements.
    Errors: NK101 to NK105, NK107, NK108, NK110, NK201, NK301, NK302, NK402, NK603, NK604, NK609, NK611, NK612.
    """
    check_keywords("nl.matmul", kwargs)
    _two_dimensional("nl.matmul", x=x, y=y)
    if not isinstance(x, MaskedOperand) and not isinstance(y, MaskedOperand) and mask is None:
        check_product(x.resolved(), y.resolved(), transposed=bool(transpose_x))
    if not transpose_x:
        if isinstance(x, MaskedOperand):
            not_affine("nl.matmul takes an operand mask of `x` with transpose_x=True only")
        x = Tensor(transposed(x.resolved()))
    return product("nl.matmul", x, y, mask)


def product(what: str, stationary: Tensor, moving: Tensor, mask: MaskLike = None, **options: Any) -> Tensor:
    """``stationary.T @ moving`` on the Tensor Engine: a float32 tile in PSUM, of the free sizes of both.

    Operand masks (``tile[mask]``) choose lanes of each operand; ``mask`` chooses contracted partitions, since the axes
    of the two operands' free dimensions are the same to it (NKI API Common Fields, Masking), or columns of ``moving``
    where only the sizes tell whose they are (NK621).
    """
    for role, tile in (("stationary", stationary), ("moving", moving)):
        check_tile(what, role, tile)
    moving, mask = _with_own_mask(what, stationary, moving, mask)
    double = 1 if options.get("perf_mode") is None else 2
    masked = isinstance(stationary, MaskedOperand) or isinstance(moving, MaskedOperand)
    # The product has one dimension for all free ones of `stationary`; in double rows there are two to contract.
    if masked and (len(stationary.shape) != 2 or double != 1):
        not_affine(f"{what}: operand masks go with a `stationary` of 2 dimensions, not with double rows")
    left, chosen_left = _operand(what, stationary, mask)
    right, chosen_right = _operand(what, moving, mask)
    rows, columns = math.prod(stationary.shape[double:]), moving.shape[double:]
    dst = value_tile((rows, *columns), float32, PSUM)
    if left is None or right is None:
        return Tensor.made(dst, Lanes(tuple((0, 0) for _ in dst.shape)))
    left, right = _evicted(left), _evicted(right)
    if chosen_left is None and chosen_right is None:
        _nc_matmul(dst=dst, stationary=left, moving=right, accumulate=False, **options)
        return Tensor.made(dst)
    box = (*_free(chosen_left, stationary), *_free(chosen_right, moving))
    _nc_matmul(dst=part(dst, dst.shape, box), stationary=left, moving=right, accumulate=False, **options)
    return Tensor.made(dst, Lanes(box))


def _with_own_mask(what: str, stationary: Tensor, moving: Tensor, mask: MaskLike) -> tuple[Tensor, MaskLike]:
    """Return ``moving`` with the comparisons of ``mask`` about its free dimension, and the rest of the mask.

    A comparison belongs to ``moving`` if its size is not that of the free dimension of ``stationary``.
    """
    is_plain = isinstance(mask, Mask) and not isinstance(moving, MaskedOperand) and len(moving.shape) == 2
    if not isinstance(mask, Mask) or not is_plain or stationary.shape[1:] == moving.shape[1:]:
        return moving, mask
    own = tuple(each for each in mask.constraints if 1 in each.axes and each.expression.shape[1] == moving.shape[1])
    if not own:
        return moving, mask
    message = (
        f"{what}: the mask is about the free dimension of `moving`, {describe(moving.base)}; the documents say that "
        "mask= cannot tell it from that of `stationary`, and compilers have taken it where the sizes differ"
    )
    report("NK621", message, about=(moving.base,), remedy="Mask the operand: moving[i_f < 64].")
    rest = Mask(tuple(each for each in mask.constraints if each not in own), mask.never)
    return MaskedOperand(moving, Mask(own)), rest if rest.constraints or rest.never else None


def _evicted(view: NkiTensor) -> NkiTensor:
    """Return an operand, copied to SBUF if it is a call's result in PSUM; one that the author declared in PSUM stays
    (NK201).

    AWS's flash attention (backward) multiplies what nisa.nc_transpose returns: "the compiler may aid in the support of
    these instruction calls by adding additional instructions" (known issues, SDK 2.26).
    """
    is_result = view.buffer is PSUM and view.storage.id not in form_of().created
    return reshaping.converted(view, view.dtype) if is_result else view


def _operand(what: str, tile: Tensor, mask: MaskLike) -> tuple[NkiTensor | None, Lanes | None]:
    """Return the view of an operand that takes part (None: nothing does), and the lanes of its operand mask."""
    partitions = _contracted(what, mask, tile)
    if not isinstance(tile, MaskedOperand):
        if partitions is None:
            return tile.resolved(), None
        return (None if partitions.empty else tile.within(tile.shape, partitions.box)), None
    box = tile.chosen.box
    if partitions is not None:
        box = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, partitions.box, strict=True))
    chosen = Lanes(box)
    return (None if chosen.empty else tile.within(tile.shape, box)), chosen


def _contracted(what: str, mask: MaskLike, tile: Tensor) -> Lanes | None:
    """Return the partitions that ``mask`` chooses; NK604 if it chooses along free dimensions."""
    lanes = lanes_of(mask, tile.shape, what)
    if lanes is None or lanes.empty:
        return lanes
    if lanes.where is not None or any(
        lane != (0, size) for lane, size in zip(lanes.box[1:], tile.shape[1:], strict=True)
    ):
        not_affine(
            f"{what}: mask= cannot tell the free dimension of one operand from the other's; mask the operands: "
            "x[i_f < 64], y[...]"
        )
    return lanes


def _free(lanes: Lanes | None, tile: Tensor) -> tuple[tuple[int, int], ...]:
    return tuple((0, size) for size in tile.shape[1:]) if lanes is None else lanes.box[1:]


def transposed(x: NkiTensor) -> NkiTensor:
    """Return a new SBUF tile of ``x`` transposed, by the Vector Engine if it is small, else through PSUM."""
    shape = (x.shape[1], x.shape[0])
    small = 32  # what the Vector Engine transposes (nc_transpose docs)
    if max(shape) <= small:
        dst = value_tile(shape, x.dtype)
        _nc_transpose(dst=dst, data=x, engine=modern_engines.vector)
        return dst
    swapped = new_tile(shape, x.dtype, PSUM)
    _nc_transpose(dst=swapped, data=x, engine=modern_engines.tensor)
    return reshaping.converted_value(swapped, x.dtype)


def transpose(x: Tensor, *, dtype: ResultDType = None, mask: MaskLike = None, **kwargs: Keyword) -> Tensor:
    """Return ``x`` transposed, as a new SBUF tile.

    ``x``: a 2-D tile of up to 128 x 128 in SBUF; up to 32 x 32 also in PSUM. ``dtype``: of the result, by default that
    of ``x``. What ``mask`` leaves out is undefined in the result; it must leave a box of ``x`` (NK604).
    Errors: NK101, NK107, NK108, NK110, NK201, NK301, NK402, NK603, NK604, NK609, NK611, NK612.
    """
    check_keywords("nl.transpose", kwargs)
    _two_dimensional("nl.transpose", x=x)
    kind = x.element if dtype is None else element_type(dtype)
    lanes = lanes_of(mask, x.shape, "nl.transpose")
    if lanes is None:
        swapped = transposed(x.resolved())
        return Tensor.made(swapped if swapped.dtype is kind else reshaping.converted_value(swapped, kind))
    if lanes.where is not None:
        not_affine("nl.transpose: the mask must leave a box of the tile")
    kept = Lanes((lanes.box[1], lanes.box[0]))
    turned = None if lanes.empty else transposed(x.within(x.shape, lanes.box))
    dst = value_tile((x.shape[1], x.shape[0]), kind)
    if turned is not None:
        tensor_copy(dst=part(dst, dst.shape, kept.box), src=turned)
    return Tensor.made(dst, kept)


def nc_matmul(
    stationary: Tensor,
    moving: Tensor,
    *,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    tile_position: Sequence[int] = (),
    tile_size: Sequence[int] = (),
    mask: MaskLike = None,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``stationary.T @ moving``, a product of tiles in SBUF, as a new float32 tile in PSUM.

    Its shape: the product of the free sizes of ``stationary``, then the free sizes of ``moving``. ``mask`` chooses
    partitions of both, those that it leaves out do not take part; ``stationary[mask]`` and ``moving[mask]`` choose
    elements. ``perf_mode="double_row_gen3"`` is undocumented, but AWS's own test passes it; others are NK607. All else
    is as for nkitools.isa.matmul.nc_matmul. Errors: its own, NK402, NK603, NK604, NK607, NK612.
    """
    mode = kwargs.pop("perf_mode", None)
    check_keywords("nisa.nc_matmul", kwargs)
    options = {} if mode is None else {"perf_mode": _performance_mode(mode)}
    return product(
        "nisa.nc_matmul",
        stationary,
        moving,
        mask,
        is_stationary_onezero=bool(is_stationary_onezero),
        is_moving_onezero=bool(is_moving_onezero),
        is_transpose=bool(is_transpose),
        tile_position=tuple(tile_position) if isinstance(tile_position, list) else tile_position,
        tile_size=tuple(tile_size) if isinstance(tile_size, list) else tile_size,
        **options,
    )


def _performance_mode(mode: Keyword) -> matmul_perf_mode:
    if mode not in (matmul_perf_mode.double_row, "double_row", "double_row_gen3"):
        not_modelled(f"nisa.nc_matmul(perf_mode={mode!r})", remedy='Leave perf_mode out, or pass "double_row_gen3".')
    return matmul_perf_mode.double_row


def nc_transpose(
    data: Tensor,
    *,
    mask: MaskLike = None,
    dtype: ResultDType = None,
    engine: engines = engines.unknown,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``data`` with its partition and free dimensions swapped, as a new tile.

    ``engine``: by default the Tensor Engine, for ``data`` in PSUM of up to 32 x 32 the Vector Engine. The result is in
    PSUM; in SBUF if ``engine`` is the Vector Engine, or ``dtype`` is not that of ``data``. Free dimensions become one.
    What ``mask`` leaves out is undefined in the result; it must leave a box of ``data`` (NK604).
    Errors: those of nkitools.isa.matmul.nc_transpose, NK301, NK402, NK603, NK604, NK612.
    """
    what = "nisa.nc_transpose"
    checked(what, kwargs, data=data)
    lanes = box_lanes(what, mask, data.shape)
    chosen = translated(engine)
    memory = MemoryRegion.sbuf if chosen is modern_engines.vector else MemoryRegion.psum
    dst = value_tile((math.prod(data.shape[1:]), data.shape[0]), data.element, memory)
    kept = None
    if lanes is not None:
        first = first_in_row(what, lanes, data.shape)
        count = math.prod(end - start for start, end in lanes.box[1:])
        kept = Lanes(((first, first + count), lanes.box[0]))
    moved_by(partial(_nc_transpose, engine=chosen), dst, kept, lanes, data=data)
    kind = data.element if dtype is None else element_type(dtype)
    return Tensor.made(dst if kind is data.element else reshaping.converted_value(dst, kind), kept)
