"""Statistics of a partition (mean and variance), and reductions across partitions."""

from __future__ import annotations

import math

import numpy as np

from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array, to_float32, working
from nkitools.chip.view_checks import describe
from nkitools.engines.cast_on_write import put
from nkitools.engines.costs import GPSIMD_START, streaming
from nkitools.engines.operators import OPERATORS, Operator, OperatorToken, token_name
from nkitools.isa.reduce import reducing
from nkitools.issue import guards, instruction_guards
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import WITHIN_PARTITION, Axes, Only, Turns
from nkitools.issue.instruction import Check, Dst, Plan, Src, instruction
from nkitools.issue.instruction_guards import PARTITIONS_PER_CORE

TRIPLE = 3  # count, mean, variance * count
_ACROSS = ("add", "maximum", "bitwise_or", "bitwise_and")


@instruction
def bn_stats(check: Check, dst: Dst, data: Src, name: str | None = None) -> Plan:
    """Write count, mean and variance * count of the even elements of each partition, then of the odd ones.

    On the Vector Engine. ``data``: at most 512 elements per partition (nl.tile_size.bn_stats_fmax), even and odd by
    their place among all of them; ``dst``: 6 per partition, for nisa.bn_aggr. The variance is that of the population.
    In float32, cast once to ``dst.dtype``. No packed dtypes. Memory: SBUF or PSUM. The mean of no elements (of the odd
    ones in a tile of one) is not documented; here it is 0.
    Errors: NK101, NK102, NK107 to NK110, NK201, NK301, NK609. Source: nki.isa.bn_stats (NKI 0.6); cost: SDK 2.26.
    """
    guards.tiles(check, dst=dst, data=data)
    guards.not_packed(check, dst=dst, data=data)
    guards.same_partitions(check, ("dst", dst), ("data", data))
    instruction_guards.at_most(check, "data", data, check.chip.bn_stats_fmax)
    instruction_guards.exactly(check, "dst", dst, 2 * TRIPLE)

    dtype = dst.dtype

    def compute(destination: Array, values: Array) -> None:
        rows = to_float32(values).reshape(values.shape[0], -1)
        put(destination, np.concatenate([_moments(rows[:, 0::2]), _moments(rows[:, 1::2])], axis=1), dtype)

    counted = np.arange(2 * TRIPLE) % TRIPLE == 0  # of how many elements, whatever they are
    elements = made(dst={"data": Only(Turns(2), ~counted)})
    return Plan("vector", streaming(check.chip, data), compute, elements, lanes="apart")


def _moments(rows: Array) -> Array:
    """Count, mean and sum of squared deviations of each row, as columns."""
    count = rows.shape[1]
    moments = np.zeros((rows.shape[0], TRIPLE), working(rows))
    if count:
        moments[:, 0] = count
        np.mean(rows, axis=1, out=moments[:, 1])
        np.sum(np.square(rows - moments[:, 1:2]), axis=1, out=moments[:, 2])
    return moments


@instruction
def bn_aggr(check: Check, dst: Dst, data: Src, name: str | None = None) -> Plan:
    """Write the mean and the variance of each partition, from the triples that nisa.bn_stats wrote into ``data``.

    ``data``: a multiple of 3 elements per partition: count, mean, variance * count, and so on; ``dst``: 2 per
    partition, the variance that of the population. Counts that add up to 0 give NaN. In float32 on the Vector Engine,
    cast once to ``dst.dtype``. NKI 0.7 states at most 5 dimensions of ``data`` and 3 of ``dst``. Memory: SBUF or PSUM.
    Errors: NK101, NK102, NK107 to NK110, NK113, NK201, NK301, NK609. Source: nki.isa.bn_aggr (NKI 0.7); cost: SDK 2.26.
    """
    guards.tiles(check, dst=dst, data=data)
    instruction_guards.stated_dimensions(check, 3, dst=dst)
    guards.not_packed(check, dst=dst, data=data)
    guards.same_partitions(check, ("dst", dst), ("data", data))
    if data.layout.free_elements % TRIPLE:
        message = (
            f"`data`, {describe(data)}, has {data.layout.free_elements} elements per partition; they must be a "
            f"multiple of {TRIPLE}: count, mean and variance * count of each nisa.bn_stats"
        )
        remedy = "Pass the whole tile that nisa.bn_stats wrote: 6 elements for each call, and no others."
        check.refuse("NK113", message, data, remedy=remedy)
    instruction_guards.exactly(check, "dst", dst, 2)

    dtype = dst.dtype

    def compute(destination: Array, values: Array) -> None:
        triples = to_float32(values).reshape(values.shape[0], -1, TRIPLE)
        count, mean, scatter = triples[:, :, 0], triples[:, :, 1], triples[:, :, 2]
        total = count.sum(axis=1, keepdims=True)
        overall = (count * mean).sum(axis=1, keepdims=True) / total
        squares = (scatter + count * np.square(mean - overall)).sum(axis=1, keepdims=True)
        put(destination, np.concatenate([overall, squares / total], axis=1), dtype)

    cycles, elements = streaming(check.chip, data, 13 / TRIPLE), made(dst={"data": WITHIN_PARTITION})
    # Of an undefined row bn_stats has defined counts.
    return Plan("vector", cycles, compute, elements, lanes="travel")


@instruction
def tensor_partition_reduce(check: Check, dst: Dst, op: OperatorToken, data: Src, name: str | None = None) -> Plan:
    """Reduce all partitions of ``data`` to the single one of ``dst``, element by element, on the GpSimd Engine.

    ``op``: add, average or maximum in float32, cast once to ``dst.dtype``, or bitwise_or or bitwise_and of integers;
    from NKI 0.7 on also bitwise_xor, and nl.mean, which its page has where that of 0.6 has average (both are taken, as
    no page says which name is meant). ``dst``: one partition with as many elements as each of ``data``'s. NKI 0.7
    states at most 5 dimensions. Memory: SBUF, for the engine has no access to PSUM. Cost: not published; we take one
    start and, in each GpSimd core, an element of a partition per cycle.
    Errors: NK101, NK107 to NK110, NK201, NK301, NK306, NK401, NK606, NK609. Source: nki.isa.tensor_partition_reduce
    (NKI 0.7).
    """
    operator, is_average = _across_operator(check, op)
    guards.tiles(check, on=(MemoryRegion.sbuf,), dst=dst, data=data)
    guards.not_packed(check, dst=dst, data=data)
    elements = math.prod(data.shape[1:])
    if dst.shape[0] != 1 or dst.layout.free_elements != elements:
        message = (
            f"`dst`, {describe(dst)}, must have 1 partition of {elements} elements to take `data`, {describe(data)}, "
            "reduced across its partitions"
        )
        check.refuse("NK109", message, dst, data)
    if operator.kind == "bitvec":
        guards.integers(check, dst=dst, data=data)

    share = np.float32(data.shape[0])
    compute = reducing(operator, (0,), dst.dtype, data.dtype, (lambda total: total / share) if is_average else None)

    cycles = GPSIMD_START + elements * min(data.shape[0], PARTITIONS_PER_CORE)
    return Plan("gpsimd", cycles, compute, made(dst={"data": Axes((0,))}))


def _across_operator(check: Check, token: OperatorToken) -> tuple[Operator, bool]:
    """NK306: the operator, and whether its result is divided by the number of partitions."""
    means, added = (
        (("average", "mean"), ("bitwise_xor",)) if check.language.mean_across_partitions else (("average",), ())
    )
    name = token_name(token)
    if name in means:
        return OPERATORS["add"], True
    found = guards.operator(check, "op", token)
    if found.name not in (*_ACROSS, *added):
        names = ", ".join(f"nl.{name}" for name in (*_ACROSS, *added, *means))
        check.refuse("NK306", f"`op`={found} does not reduce across partitions; possible are {names}")
    return found, False
