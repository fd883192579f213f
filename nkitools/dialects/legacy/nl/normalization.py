"""``nl.*``: normalising tiles."""

from __future__ import annotations

from nkitools.chip.argument_types import Axes
from nkitools.chip.dtypes import float32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.dialects.legacy.indexing.masks import MaskLike
from nkitools.dialects.legacy.kernels.keywords import Keyword
from nkitools.dialects.legacy.nisa.value_calls import box_lanes, checked, defined
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, element_type, is_number, result_type
from nkitools.dialects.legacy.tiles.elementwise import common_shape, spread
from nkitools.dialects.legacy.tiles.reductions import reduce_defined, reduced_lanes, reduction_axes, trailing
from nkitools.dialects.legacy.tiles.result_tiles import part, value_tile, write_lanes
from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.language.normalization import rms_norm_into
from nkitools.language.reductions import softmax_into
from nkitools.rules.finding import refuse


def softmax(
    x: Tensor,
    axis: Axes,
    *,
    dtype: ResultDType = None,
    compute_dtype: ResultDType = None,
    mask: MaskLike = None,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``exp(x - max) / sum(exp(x - max))``, computed in float32; maximum and sum go along ``axis``.

    ``x``: a tile in SBUF or PSUM. ``axis``: an int or ints, the last dimension(s) without dimension 0 (others: NK112).
    The result is a new SBUF tile of the shape of ``x``. ``dtype``: of the result, by default ``compute_dtype``, or that
    of ``x`` without both. Elements that ``mask`` leaves out do not take part and are undefined; it must leave a box of
    ``x`` (NK604).
    Errors: NK101, NK107, NK108, NK110, NK112, NK201, NK301, NK402, NK603, NK604, NK609, NK611, NK612.
    """
    checked("nl.softmax", kwargs, x=x)
    axes = reduction_axes("nl.softmax", x, axis)
    lanes, _ = reduced_lanes("nl.softmax", mask, x.shape, axes)
    dst = value_tile(
        x.shape, result_type(dtype if dtype is not None else compute_dtype, "nl.softmax", x), MemoryRegion.sbuf
    )
    if lanes is None:
        reduce_defined(softmax_into, dst, x.resolved(), axes)
    elif not lanes.empty:
        reduce_defined(softmax_into, part(dst, x.shape, lanes.box), x.within(x.shape, lanes.box), axes)
    return Tensor.made(dst, lanes)


def rms_norm(
    x: Tensor,
    w: Tensor,
    axis: Axes,
    n: int,
    epsilon: float = 1e-06,
    *,
    dtype: ResultDType = None,
    compute_dtype: ResultDType = None,
    mask: MaskLike = None,
    **kwargs: Keyword,
) -> Tensor:
    """Return ``x / sqrt(sum(x ** 2) / n + epsilon) * w`` as a new SBUF tile of the shape of ``x``.

    ``axis``: one or several free dimensions, along which the sum goes. ``n``: a number above 0, usually how
    many are summed. ``epsilon``: a number, at least 0. ``w``: a tile that broadcasts to ``x``, partitions too.
    ``dtype``, or else ``compute_dtype``, is the dtype of the result and of all tiles in between; without both the
    result has that of ``x``, and the others are float32 (the reference does not say). Elements that ``mask`` leaves out
    do not take part and are undefined; it must leave a box of ``x`` (NK604).
    Errors: NK101, NK102, NK107 to NK110, NK112, NK201, NK301, NK402, NK603, NK604, NK609, NK611, NK612.
    """
    what = "nl.rms_norm"
    checked(what, kwargs, x=x, w=w)
    if not is_number(n) or n <= 0 or not is_number(epsilon) or epsilon < 0:
        message = f"{what}: `n` must be a number above 0 and `epsilon` one from 0 on, they are {n!r}, {epsilon!r}"
        refuse("NK609", message)
    axes = reduction_axes(what, x, axis)
    if common_shape(what, x, w, partitions=True) != x.shape:
        refuse("NK109", f"{what}: {describe(w.base)} is larger than {describe(x.base)}", about=(w.base, x.base))
    given = dtype if dtype is not None else compute_dtype
    working = float32 if given is None else element_type(given)
    lanes = box_lanes(what, mask, x.shape)
    dst = value_tile(x.shape, result_type(given, what, x))
    last = tuple(range(len(x.shape) - len(axes), len(x.shape)))

    def into(target: NkiTensor, tile: NkiTensor, weight: NkiTensor) -> None:
        dst, data, factors = (trailing(each, axes) for each in (target, tile, spread(weight, target)))
        rms_norm_into(dst, data, factors, last, n, epsilon, working)

    write_lanes(into, dst, (x, w), defined(lanes, x))
    return Tensor.made(dst, lanes)
