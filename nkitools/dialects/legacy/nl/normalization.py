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
    """``exp(x - max) / sum(exp(x - max))`` along the last free dimension(s); ``compute_dtype`` is another ``dtype``.

    Errors: NK112, NK201, NK301, NK604, NK609.
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
    """``x / sqrt(sum(x ** 2) / n + epsilon) * w`` along free dimensions: a new SBUF tile of the shape of ``x``.

    ``w`` broadcasts to ``x``, partitions too. ``dtype`` and ``compute_dtype``, either of them, set the dtype of the
    result and of every tile on the way; without them the result has that of ``x`` and the others are float32, which the
    reference does not say. How AWS composes it is not published.
    Errors: NK101, NK109, NK112, NK201, NK301, NK604, NK609.
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
