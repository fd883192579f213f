"""``nisa.*``: mean and variance of each partition, and reductions across partitions."""

from __future__ import annotations

from functools import partial

from nkitools.dialects.legacy.indexing.masks import Lanes, MaskLike, not_affine
from nkitools.dialects.legacy.kernels.keywords import Keyword
from nkitools.dialects.legacy.nisa.value_calls import moved_by, per_partition, taken
from nkitools.dialects.legacy.tiles.dtypes import ResultDType, result_type
from nkitools.dialects.legacy.tiles.result_tiles import value_tile
from nkitools.dialects.legacy.tiles.tensor import Tensor
from nkitools.engines.operators import OperatorToken
from nkitools.isa import statistics as _statistics

MOMENTS = 6  # count, mean and variance * count of the even elements, then of the odd ones


def bn_stats(data: Tensor, *, mask: MaskLike = None, dtype: ResultDType = None, **kwargs: Keyword) -> Tensor:
    """Return count, mean and variance * count of the even elements of each partition, then of the odd ones.

    The result is a new (partitions, 6) tile. ``data``: up to 512 elements a partition. ``dtype``: of the result, by
    default ``data``'s. ``mask`` chooses partitions only (NK604; SDK 2.26, Known Issues). Memory: as for
    nisa.activation. Errors: those of nkitools.isa.statistics.bn_stats, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.bn_stats"
    memory, lanes = taken(what, mask, kwargs, data=data)
    whole = tuple((0, size) for size in data.shape[1:])
    if lanes is not None and not lanes.empty and lanes.box[1:] != whole:
        not_affine(f"{what}: it chooses among the elements of a partition, which bn_stats does not support")
    kind = result_type(dtype, what, data)
    return per_partition(partial(_statistics.bn_stats), MOMENTS, kind, lanes, memory, data=data)


def bn_aggr(data: Tensor, *, mask: MaskLike = None, dtype: ResultDType = None, **kwargs: Keyword) -> Tensor:
    """Return mean and variance of each partition, from results of nisa.bn_stats, as a new (partitions, 2) tile.

    ``data``: triples of count, mean and variance * count, one after the other in each partition. ``dtype``: of the
    result, by default ``data``'s. ``mask`` must leave a box of whole triples. Memory: as for nisa.activation.
    Errors: those of nkitools.isa.statistics.bn_aggr, NK402, NK603, NK604, NK609, NK612.
    """
    memory, lanes = taken("nisa.bn_aggr", mask, kwargs, data=data)
    kind = result_type(dtype, "nisa.bn_aggr", data)
    return per_partition(partial(_statistics.bn_aggr), 2, kind, lanes, memory, data=data)


def tensor_partition_reduce(
    op: OperatorToken, data: Tensor, *, mask: MaskLike = None, dtype: ResultDType = None, **kwargs: Keyword
) -> Tensor:
    """Return all partitions of ``data``, a tile in SBUF, reduced to a single one, as a new SBUF tile.

    ``op``: np.add, max, bitwise_or or bitwise_and. ``dtype``: of the result, by default ``data``'s. What ``mask``
    leaves out does not take part; it must leave a box of ``data`` (NK604).
    Errors: those of nkitools.isa.statistics.tensor_partition_reduce, NK402, NK603, NK604, NK609, NK612.
    """
    what = "nisa.tensor_partition_reduce"
    memory, lanes = taken(what, mask, kwargs, data=data)
    dst = value_tile((1, *data.shape[1:]), result_type(dtype, what, data), memory)
    kept = None if lanes is None else Lanes(((0, 0 if lanes.empty else 1), *lanes.box[1:]))
    moved_by(partial(_statistics.tensor_partition_reduce, op=op), dst, kept, lanes, data=data)
    return Tensor.made(dst, kept)
