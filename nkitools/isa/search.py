"""Searching a partition: the largest values, where values stand, what is not zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from nkitools.chip.dtypes import bfloat16, float32, int32, uint16, uint32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array, to_float32
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines import lost_integers
from nkitools.engines.cast_on_write import put
from nkitools.engines.costs import GPSIMD_START, streaming
from nkitools.issue import guards, instruction_guards
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import BROADCAST, SAME, SCAN, WITHIN_PARTITION, All, Only
from nkitools.issue.instruction import Check, Dst, Operand, OptionalDst, Plan, Src, instruction
from nkitools.issue.instruction_guards import PARTITIONS_PER_CORE
from nkitools.issue.plan import Value
from nkitools.issue.poison import poison

FOUND = 8  # values that one instruction of the Vector Engine finds, looks for or replaces
MOST_SEARCHED = 16384
CHUNK = 64  # elements whose maximum is looked at first, where a row is long
SEARCHED_DIMENSIONS = 3
TOPK_N = range(8, 65536)
TOPK_K = range(1, 32768)


def _rows(array: Array) -> Array:
    """One row for each partition, free dimensions flattened."""
    return array.reshape(array.shape[0], -1)


@instruction
def max8(check: Check, dst: Dst, src: Src, name: str | None = None) -> Plan:
    """Write the 8 largest values of each partition of ``src`` into ``dst``, the largest first; Vector Engine.

    Equal values count each. ``src``: 8 to 16384 elements per partition in up to 5 dimensions (before NKI 0.7: up to 3).
    ``dst``: 8 elements per partition in 2 or 3 dimensions (before NKI 0.7: 2). Compared in float32, then cast to
    ``dst.dtype``. Memory: SBUF or PSUM. A NaN comes last, after every number: the reference is silent, and AWS's kernel
    library says that the hardware's maximum returns the operand that is not NaN.
    Errors: NK101, NK102, NK107 to NK110, NK201, NK301, NK609. Source: nki.isa.max8 (NKI 0.7); SDK 2.26 took 5
    dimensions too.
    """
    guards.tiles(check, dst=dst, src=src)
    guards.not_packed(check, dst=dst, src=src)
    guards.same_partitions(check, ("dst", dst), ("src", src))
    wide = check.language.wide_max8
    _searched(check, "src", src, 5 if wide else SEARCHED_DIMENSIONS)
    _found(check, "dst", dst, 3 if wide else 2)

    dtype = dst.dtype

    def compute(destination: Array, values: Array) -> None:
        put(destination, _largest(_candidates(_rows(to_float32(values)))), dtype)

    watching = lost_integers.watched(compute, lambda values: _largest(_rows(_wide(values))), dtype, (src.dtype,))

    elements = made(dst={"src": WITHIN_PARTITION})
    return Plan("vector", float(src.layout.free_elements), watching, elements, lanes="apart")


def _largest(rows: Array) -> Array:
    """Return the 8 largest of each row, descending. NumPy sorts NaN last: of negated values, behind every number."""
    rising: Array = np.sort(np.negative(rows), axis=1)
    return np.negative(rising[:, :FOUND])


def _candidates(rows: Array) -> Array:
    """Fewer elements among which the 8 largest are: those of the 8 chunks with the largest maxima, and the remainder.

    No element elsewhere is larger than those eight maxima. Looking for maxima is far cheaper than sorting.
    """
    whole = rows.shape[1] // CHUNK * CHUNK
    if whole <= 2 * FOUND * CHUNK:
        return rows
    chunks = rows[:, :whole].reshape(len(rows), -1, CHUNK)
    maxima = np.maximum.reduce(chunks, axis=2)
    if np.isnan(maxima).any():
        return rows
    chosen = np.argpartition(np.negative(maxima), FOUND - 1, axis=1)[:, :FOUND]
    kept = np.take_along_axis(chunks, chosen[:, :, None], axis=1).reshape(len(rows), -1)
    return np.concatenate([kept, rows[:, whole:]], axis=1)


@instruction
def nc_find_index8(check: Check, dst: Dst, data: Src, vals: Src, name: str | None = None) -> Plan:
    """Write the index in ``data`` of each of the 8 ``vals`` of a partition into ``dst``; Vector Engine.

    ``data``: up to 3 dimensions, 8 to 16384 elements per partition; ``vals``: up to 3 dimensions, 8 elements per
    partition; ``dst``: [partitions, 8], uint32 or uint16. Indices count the flattened free dimensions from 0. Compared
    in float32. The index is that of the first occurrence; if some ``vals`` are equal, the first of them in ``vals``
    gets the first occurrence, the next one the second, and so on (so says AWS's docstring of nc_match_replace8). A
    value that is not there, or has no occurrence left, gives all ones (4294967295 or 65535); so does NaN, which equals
    nothing. Memory: SBUF or PSUM.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK609. Source: nki.isa.nc_find_index8 (NKI 0.6).
    """
    guards.tiles(check, dst=dst, data=data, vals=vals)
    guards.not_packed(check, data=data, vals=vals)
    instruction_guards.of_dtype(check, "dst", dst, uint16, uint32)
    guards.same_partitions(check, ("data", data), ("vals", vals))
    guards.same_partitions(check, ("dst", dst), ("data", data))
    _searched(check, "data", data)
    _looked_for(check, vals)
    _found(check, "dst", dst)

    def compute(destination: Array, values: Array, wanted: Array) -> None:
        found, _ = _pair(_rows(to_float32(values)), _rows(to_float32(wanted)), range(FOUND))
        np.copyto(destination, found.astype(destination.dtype).reshape(destination.shape))

    def exactly(values: Array, wanted: Array) -> Array:
        found, _ = _pair(_rows(_wide(values)), _rows(_wide(wanted)), range(FOUND))
        return found.astype(dst.dtype.dtype).astype(np.float64)

    watching = lost_integers.watched(compute, exactly, dst.dtype, (data.dtype, vals.dtype))

    elements = made(dst={"data": WITHIN_PARTITION, "vals": SCAN})  # equal values take turns, from the first column on
    return Plan("vector", float(data.layout.free_elements), watching, elements, lanes="apart")


@instruction
def nc_match_replace8(
    check: Check, dst: Dst, data: Src, vals: Src, imm: Operand, dst_idx: OptionalDst = None, name: str | None = None
) -> Plan:
    """``dst`` is ``data`` with the first occurrence of each of the 8 ``vals`` replaced by ``imm``; Vector Engine.

    ``imm``: a number. ``dst_idx`` (uint32 or uint16, 8 elements per partition) receives the indices of the replaced
    elements, in the order of ``vals``. Of equal ``vals`` the last one takes the first occurrence in ``data``, the one
    before it the second, and so on. ``data`` (at most 16384 elements per partition) and ``dst`` have equally many
    elements per partition, ``vals`` 8 in up to 3 dimensions; ``dst`` may be ``data`` itself. Compared in float32 with
    what ``data`` held before. Memory: SBUF or PSUM.
    Of a value that is not in ``data`` (NaN never is) SDK 2.26 said "undefined", NKI 0.6 says nothing: nothing is
    replaced and its index is all ones, as nc_find_index8 has it. The limits of sizes and dimensions are those of SDK
    2.26. AWS's kernel library does without ``dst_idx`` on NeuronCore-v2; no document forbids it there.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK609. Source: nki.isa.nc_match_replace8 (NKI 0.6; SDK 2.26).
    """
    instruction_guards.known_number(check, "imm", imm)
    guards.tiles(check, dst=dst, data=data, vals=vals, dst_idx=dst_idx)
    guards.not_packed(check, dst=dst, data=data, vals=vals)
    guards.same_partitions(check, ("data", data), ("vals", vals))
    guards.same_elements(check, ("dst", dst), ("data", data))
    instruction_guards.at_most(check, "data", data, MOST_SEARCHED)
    _looked_for(check, vals)
    if dst_idx is not None:
        instruction_guards.of_dtype(check, "dst_idx", dst_idx, uint16, uint32)
        guards.same_partitions(check, ("dst", dst), ("dst_idx", dst_idx))
        instruction_guards.exactly(check, "dst_idx", dst_idx, FOUND)

    dtype = dst.dtype

    def compute(destination: Array, values: Array, wanted: Array, number: Value, indices: Array | None) -> None:
        rows = _rows(to_float32(values))
        found, taken = _pair(rows, _rows(to_float32(wanted)), reversed(range(FOUND)))
        put(destination, np.where(taken, np.float32(number), rows), dtype)
        if indices is not None:
            np.copyto(indices, found.astype(indices.dtype).reshape(indices.shape))

    def exactly(values: Array, wanted: Array, number: Value, indices: Array | None) -> Array:
        rows = _wide(_rows(values))
        _, taken = _pair(rows, _wide(_rows(wanted)), reversed(range(FOUND)))
        return np.where(taken, np.float32(number), rows)

    watching = lost_integers.watched(compute, exactly, dtype, (data.dtype, vals.dtype))

    # An element stays where equal ones before it have taken all values of its kind.
    elements = made(
        dst={"data": SCAN, "vals": WITHIN_PARTITION, "imm": BROADCAST},
        dst_idx={"data": WITHIN_PARTITION, "vals": WITHIN_PARTITION},
    )
    return Plan("vector", streaming(check.chip, data), watching, elements, lanes="apart")


def _wide(values: Array) -> Array:
    """Return values in float64, which holds every 32-bit integer."""
    return values.astype(np.float64)


def _pair(rows: Array, wanted: Array, columns: Iterable[int]) -> tuple[Array, Array]:
    """For each column of ``wanted`` the first position of its value that no other has taken, else -1; and all taken."""
    taken = np.zeros(rows.shape, np.bool_)
    found = np.full(wanted.shape, -1, np.int64)
    each = np.arange(len(rows))
    for column in columns:
        hits = rows == wanted[:, column, None]
        hits &= ~taken
        first = hits.argmax(axis=1)
        matched = hits[each, first]
        taken[each, first] |= matched
        found[matched, column] = first[matched]
    return found, taken


def _searched(check: Check, role: str, tensor: NkiTensor, dimensions: int = SEARCHED_DIMENSIONS) -> None:
    instruction_guards.dimensions(check, role, tensor, dimensions)
    instruction_guards.at_least(check, role, tensor, FOUND)
    instruction_guards.at_most(check, role, tensor, MOST_SEARCHED)


def _looked_for(check: Check, vals: NkiTensor) -> None:
    instruction_guards.dimensions(check, "vals", vals, SEARCHED_DIMENSIONS)
    instruction_guards.exactly(check, "vals", vals, FOUND)


def _found(check: Check, role: str, tensor: NkiTensor, dimensions: int = 2) -> None:
    instruction_guards.dimensions(check, role, tensor, dimensions, least=2)
    instruction_guards.exactly(check, role, tensor, FOUND)


@instruction
def topk(
    check: Check, val_dst: Dst, idx_dst: Dst, src: Src, n: int, sorted: bool = False, name: str | None = None
) -> Plan:
    """Write the K largest of the n elements of every 16 partitions, and their indices, on the GpSimd Engine.

    Each 16 partitions are one problem in "snake" layout: element i stands at partition ``i % 16``, free element ``i //
    16``. ``src``: bfloat16, at least ``ceil(n / 16)`` elements per partition, 8 <= n < 65536. ``val_dst`` (bfloat16)
    and ``idx_dst`` (uint32) are [partitions, K] with 1 <= K < 32768 and K <= n. Partitions: a multiple of 16. Memory:
    SBUF. The results are a snake too: the j-th value and its index i stand at partition ``j % 16``, free element ``j //
    16``.
    NKI 0.7: the free elements 0 to ``ceil(K / 16) - 1`` are written in all 16 partitions; what lands behind the K
    results is not published, here NaN and 4. With ``sorted`` the results ascend, as before 0.7 (no page shows the
    direction); else no order is promised, and here they come in the order of their indices, so that a kernel that
    relies on an order shows it.
    Before NKI 0.7: the results ascend, and all else of the destinations stays as it was. AWS's docstring lets "each
    partition operate independently" and fill [partitions, K]; public kernels, AWS's own among them, read a snake.
    Undocumented: of equal values at the limit the smaller indices win, and NaN loses against every number.
    Errors: NK101, NK102, NK107 to NK111, NK113, NK201, NK301, NK401, NK609. Source: nki.isa.topk (NKI 0.7; 0.6);
    nki-library 2.32.
    """
    guards.tiles(check, on=(MemoryRegion.sbuf,), val_dst=val_dst, idx_dst=idx_dst, src=src)
    guards.same_partitions(check, ("src", src), ("val_dst", val_dst))
    guards.same_elements(check, ("val_dst", val_dst), ("idx_dst", idx_dst))
    instruction_guards.whole_cores(check, "src", src)
    for role, tensor in (("val_dst", val_dst), ("idx_dst", idx_dst)):
        instruction_guards.dimensions(check, role, tensor, 2, least=2)
    instruction_guards.of_dtype(check, "src", src, bfloat16)
    instruction_guards.of_dtype(check, "val_dst", val_dst, bfloat16)
    instruction_guards.of_dtype(check, "idx_dst", idx_dst, uint32)
    count, k = instruction_guards.integer(check, "n", n), val_dst.layout.free_elements
    _topk_sizes(check, count, k, val_dst, src)

    whole_positions = check.language.snake_topk
    # Results before NKI 0.7 ascend; from then on only where that is asked for.
    order_of = partial(_largest_of, count=count, k=k, ascending=bool(sorted) or not whole_positions)
    written = math.ceil(k / PARTITIONS_PER_CORE) * PARTITIONS_PER_CORE if whole_positions else k
    compute = _into_snakes(order_of, src.shape[0] // PARTITIONS_PER_CORE, k, written)

    found, changed = (_snake(each, src.shape[0], k) for each in (k, written))
    searched = _snake(count, src.shape[0], src.layout.free_elements)
    problem = Only(All(PARTITIONS_PER_CORE), found, searched)
    elements = made({each: {"src": problem, each: Only(SAME, ~changed)} for each in ("val_dst", "idx_dst")})
    touches = (changed.reshape(val_dst.shape), changed.reshape(idx_dst.shape), searched.reshape(src.shape))
    return Plan("gpsimd", 4.0 * count + k, compute, elements, touches=touches)


def _largest_of(values: Array, *, count: int, k: int, ascending: bool) -> tuple[Array, Array]:
    """Return the k largest of each snake and their places, ascending or in the order of their places."""
    cores = values.shape[0] // PARTITIONS_PER_CORE
    snakes = values.reshape(cores, PARTITIONS_PER_CORE, -1).swapaxes(1, 2).reshape(cores, -1)[:, :count]
    order = np.argsort(_falling(snakes), axis=1, kind="stable")[:, :k]
    order = order[:, ::-1] if ascending else np.sort(order, axis=1)
    return np.take_along_axis(snakes, order, axis=1), order


def _into_snakes(
    order_of: Callable[[Array], tuple[Array, Array]], cores: int, k: int, written: int
) -> Callable[..., None]:
    """Return the function that puts the results into the first k places of each snake; other written places are
    undefined.
    """
    places = np.arange(written)
    partition, element = places % PARTITIONS_PER_CORE, places // PARTITIONS_PER_CORE

    def compute(best: Array, where: Array, values: Array) -> None:
        for destination, dtype, results in zip((best, where), (bfloat16, uint32), order_of(values), strict=True):
            snakes = destination.reshape((cores, PARTITIONS_PER_CORE, k), copy=False)
            undefined = np.empty((cores, written), dtype.dtype)
            poison(undefined, True, dtype)
            undefined[:, :k] = results
            snakes[:, partition, element] = undefined

    return compute


def _snake(count: int, partitions: int, places: int) -> Array:
    """Return a mask by partition and position of the first ``count`` elements of each snake."""
    partition, place = np.indices((partitions, places), sparse=True)
    first: Array = place * PARTITIONS_PER_CORE + partition % PARTITIONS_PER_CORE < count
    return first


def _topk_sizes(check: Check, n: int, k: int, val_dst: NkiTensor, src: NkiTensor) -> None:
    """NK107, NK109: what the instruction says of n, K and the elements that there are."""
    there = src.layout.free_elements
    if n not in TOPK_N:
        check.refuse("NK107", f"`n` must be from {TOPK_N[0]} to {TOPK_N[-1]}, it is {n}")
    if k not in TOPK_K or k > n:
        message = (
            f"`val_dst`, {describe(val_dst)}, asks for the K={k} largest; K may be from 1 to {TOPK_K[-1]} and at most "
            f"n={n}"
        )
        check.refuse("NK107", message, val_dst)
    if there < math.ceil(n / PARTITIONS_PER_CORE):
        message = (
            f"`src`, {describe(src)}, has {there} elements per partition; n={n} elements over {PARTITIONS_PER_CORE} "
            f"partitions need {math.ceil(n / PARTITIONS_PER_CORE)}"
        )
        check.refuse("NK109", message, src)


def _falling(values: Array) -> Array:
    """Keys of bfloat16 values that rise as the values fall: 16-bit integers, which NumPy sorts stably by radix.

    -0 and 0 are equal; NaN comes last.
    """
    bits = values.view(np.uint16)
    bits = np.where(bits == 0x8000, np.uint16(0), bits)
    rising = np.where(bits & 0x8000, ~bits, bits | 0x8000)
    return np.where((bits & 0x7FFF) > 0x7F80, np.uint16(0xFFFF), ~rising)


@instruction
def nonzero_with_count(
    check: Check, dst: Dst, src: Src, index_offset: int = 0, padding_val: int = -1, name: str | None = None
) -> Plan:
    """Write the indices of the elements of ``src`` that are not zero, and their number, into ``dst``; GpSimd Engine.

    Works on partitions 0, 16, 32, ... only, one for each GpSimd core; the others of ``dst`` are not modified. ``dst``
    has one element per partition more than ``src``: the indices (free dimensions flattened, from 0, plus
    ``index_offset``), then ``padding_val``, and the count last. NaN is not zero. Equally many partitions; ``src``
    float32 or int32, ``dst`` int32, ``index_offset`` and ``padding_val`` int32. Memory: SBUF. NeuronCore-v3 on (NK606).
    Cost: not published; we take one start and one element per cycle.
    Errors: NK101, NK102, NK107 to NK110, NK201, NK301, NK606, NK609. Source: nki.isa.nonzero_with_count (NKI 0.6).
    """
    guards.tiles(check, on=(MemoryRegion.sbuf,), dst=dst, src=src)
    guards.same_partitions(check, ("dst", dst), ("src", src))
    instruction_guards.of_dtype(check, "src", src, float32, int32)
    instruction_guards.of_dtype(check, "dst", dst, int32)
    instruction_guards.exactly(check, "dst", dst, src.layout.free_elements + 1)
    offset = instruction_guards.integer(check, "index_offset", index_offset)
    padding = instruction_guards.integer(check, "padding_val", padding_val)
    remedy = "Count with nisa.tensor_scalar (nl.not_equal) and nisa.tensor_reduce, or run on a newer chip."
    guards.has_instruction(check, "nonzero_with_count", remedy)

    def compute(destination: Array, values: Array) -> None:
        nonzero = _rows(values[::PARTITIONS_PER_CORE]) != 0
        results = np.full((nonzero.shape[0], nonzero.shape[1] + 1), padding, np.int32)
        row, index = np.nonzero(nonzero)
        rank = (np.cumsum(nonzero, axis=1) - 1)[row, index]
        results[row, rank] = index + offset
        results[:, -1] = np.count_nonzero(nonzero, axis=1)
        written = destination[::PARTITIONS_PER_CORE]
        np.copyto(written, results.reshape(written.shape))

    ours = slice(None, None, PARTITIONS_PER_CORE)
    touches = (instruction_guards.partitions_of(dst, ours), instruction_guards.partitions_of(src, ours))
    searched = np.arange(dst.shape[0])[:, None] % PARTITIONS_PER_CORE == 0
    elements = made(dst={"src": Only(WITHIN_PARTITION, searched), "dst": Only(SAME, ~searched)})
    cycles = GPSIMD_START + src.layout.free_elements
    return Plan("gpsimd", cycles, compute, elements, touches=touches, lanes="travel")
