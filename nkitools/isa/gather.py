"""Gathers and shuffles on chip: by index on the GpSimd Engine, between partitions on the Vector Engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from nkitools.chip.dtypes import uint16, uint32
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.pictures import OUTSIDE, picture_of
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines.costs import GPSIMD_START, streaming
from nkitools.issue import guards, instruction_guards
from nkitools.issue.element_maps import made
from nkitools.issue.element_rules import SAME, Gather, Index, Only, Parts
from nkitools.issue.instruction import Check, Dst, Plan, Src, instruction
from nkitools.issue.instruction_guards import PARTITIONS_PER_CORE
from nkitools.issue.poison import poison
from nkitools.rules.finding import report

ELEMENTS_PER_INDEX = (1, 2, 4, 8, 16, 32)
MOST_INDICES_PER_CORE = 4096
GATHER_GROUP = 512  # "n = ceil(elems_per_partition / 512)" groups of instructions (nc_n_gather)
QUADRANT = 32  # partitions that one reshape bank of the Vector Engine connects (trainium_inferentia2_arch)
UNMODIFIED = 255  # the entry of a shuffle mask that leaves its partition alone


@instruction
def local_gather(
    check: Check,
    dst: Dst,
    src_buffer: Src,
    index: Src,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    name: str | None = None,
) -> Plan:
    """Gather along the free dimension of ``src_buffer``, with one list of indices for each 16 partitions, on GpSimd.

    Each of the GpSimd cores takes the ``index`` elements of its 16 partitions, partition first: partition p of the core
    and free element f hold index ``i = 16*f + p``. Of each list the first ``num_valid_indices`` count (default: all; at
    most 4096). With P partitions in all and ``e = num_elem_per_idx`` (1, 2, 4, 8, 16 or 32)

        ``dst[p, i*e + k] = src_buffer[p, index_list(core of p)[i] + k]``  for k in 0..e-1,

    free dimensions flattened, so that ``dst`` has ``num_valid_indices * e`` elements per partition in any shape.
    Indices count elements: a kernel that gathers rows of e elements multiplies its row numbers by e, as AWS's example
    does. Partitions: equally many in all, a multiple of 16. Dtypes: ``index`` uint16, ``dst`` that of ``src_buffer``.
    Memory: SBUF. Reading beyond ``src_buffer`` is "undefined" and refused when the kernel runs (NK402).
    Errors: NK101, NK102, NK107 to NK111, NK113, NK201, NK301, NK401, NK402, NK609. Source: nki.isa.local_gather (NKI
    0.6), and its example for the order of indices and elements.
    """
    guards.tiles(check, on=(MemoryRegion.sbuf,), dst=dst, src_buffer=src_buffer, index=index)
    guards.same_partitions(check, ("src_buffer", src_buffer), ("index", index))
    guards.same_partitions(check, ("dst", dst), ("src_buffer", src_buffer))
    instruction_guards.whole_cores(check, "src_buffer", src_buffer)
    instruction_guards.of_dtype(check, "index", index, uint16)
    instruction_guards.same_dtype(check, ("dst", dst), ("src_buffer", src_buffer))
    each = instruction_guards.integer(check, "num_elem_per_idx", num_elem_per_idx)
    if each not in ELEMENTS_PER_INDEX:
        names = ", ".join(str(allowed) for allowed in ELEMENTS_PER_INDEX)
        check.refuse("NK609", f"`num_elem_per_idx` must be one of {names}, it is {each}")
    count = _valid_indices(check, index, num_valid_indices)
    if dst.layout.free_elements != count * each:
        message = (
            f"`dst`, {describe(dst)}, has {dst.layout.free_elements} elements per partition; {count} indices of {each} "
            f"elements gather {count * each}"
        )
        check.refuse("NK109", message, dst)

    cores, dtype = index.shape[0] // PARTITIONS_PER_CORE, src_buffer.dtype

    def compute(destination: Array, source: Array, indices: Array) -> None:
        values = source.reshape(cores, PARTITIONS_PER_CORE, -1)
        lists = indices.reshape(cores, PARTITIONS_PER_CORE, -1).swapaxes(1, 2).reshape(cores, -1)
        positions = (lists[:, :count, None] + np.arange(each)).reshape(cores, 1, -1)
        outside = positions >= values.shape[2]
        if outside.any():
            _report_local(lists[:, :count], each, values.shape[2])
            positions = np.minimum(positions, values.shape[2] - 1)
        gathered = np.take_along_axis(values, positions, axis=2)
        poison(gathered, outside, dtype)
        np.copyto(destination, gathered.reshape(destination.shape))

    chosen, places = Gather("index", each, PARTITIONS_PER_CORE), Index(each, PARTITIONS_PER_CORE)
    elements = made(dst={"src_buffer": chosen, "index": places})
    cycles = _local_gather_cycles(count, each, src_buffer)
    return Plan("gpsimd", cycles, compute, elements, lanes="travel", addresses=("index",))


def _valid_indices(check: Check, index: NkiTensor, given: Any) -> int:
    """NK609, NK107: how many indices of each core count."""
    there = index.layout.free_elements * PARTITIONS_PER_CORE
    count = there if given is None else instruction_guards.integer(check, "num_valid_indices", given)
    if not 1 <= count <= there:
        message = (
            f"`num_valid_indices` must be from 1 to {there}, the indices that `index`, {describe(index)}, has for each "
            f"GpSimd core; it is {count}"
        )
        check.refuse("NK609", message, index)
    if count > MOST_INDICES_PER_CORE:
        message = (
            f"`index`, {describe(index)}, gives each GpSimd core {count} indices; it takes at most "
            f"{MOST_INDICES_PER_CORE}"
        )
        check.fail("NK107", message, index, argument="index", extent=count, limit=MOST_INDICES_PER_CORE)
    return count


def _local_gather_cycles(count: int, each: int, source: NkiTensor) -> float:
    """``150 + count * each * C`` with ``C = ((28 + 4*each) / (4*each)) / min(4 / itemsize, each)``.

    The docstring of SDK 2.26 divides by C. But C falls as more elements share an index, and with it the cost must fall
    ("to improve gather throughput"): C is in cycles per element.
    """
    work = 4 * each
    cycles = (28 + work) / work / min(4 / source.dtype.itemsize, each)
    return GPSIMD_START + count * each * cycles


def _report_local(lists: Array, each: int, size: int) -> None:
    """NK402: an index from which the elements leave the partition."""
    wrong = lists.astype(np.int64) + each > size
    core, number = (int(axis[0]) for axis in np.nonzero(wrong))
    partition = core * PARTITIONS_PER_CORE + number % PARTITIONS_PER_CORE
    elements = "the element" if each == 1 else f"the {each} elements"
    message = (
        f"local_gather: `index` at partition {partition}, element {number // PARTITIONS_PER_CORE}, is "
        f"{int(lists[core, number])}; {elements} from there on leave the {size} elements that a partition of "
        f"`src_buffer` has ({int(np.count_nonzero(wrong))} of {wrong.size} indices do)"
    )
    remedy = f"Keep the indices from 0 to {size - each}: they count elements of the flattened free dimensions."
    report("NK402", message, remedy=remedy, picture=lambda: picture_of(wrong, OUTSIDE, "entries of each core's index"))


@instruction
def nc_n_gather(check: Check, dst: Dst, data: Src, indices: Src, name: str | None = None) -> Plan:
    """``dst[p, i] = data[p, indices[p, i]]`` with flattened free dimensions, each partition by itself, on GpSimd.

    Shapes: equal partitions; ``dst`` and ``indices`` have equally many elements per partition. Dtypes: ``indices``
    uint32; ``data`` any, ``dst`` the same. Memory: SBUF. An index of ``data``'s elements per partition or more is
    refused when the kernel runs (NK402). Cost: not published; we take one start for each group of 512 elements and one
    element per cycle.
    Errors: NK101, NK102, NK107 to NK111, NK201, NK301, NK401, NK402, NK609. Source: nki.isa.nc_n_gather (NKI 0.6).
    """
    guards.tiles(check, on=(MemoryRegion.sbuf,), dst=dst, data=data, indices=indices)
    guards.same_partitions(check, ("data", data), ("indices", indices))
    guards.same_elements(check, ("dst", dst), ("indices", indices))
    instruction_guards.of_dtype(check, "indices", indices, uint32)
    instruction_guards.same_dtype(check, ("dst", dst), ("data", data))

    size, dtype = data.layout.free_elements, data.dtype

    def compute(destination: Array, values: Array, positions: Array) -> None:
        rows = values.reshape(values.shape[0], -1)
        wanted = positions.reshape(positions.shape[0], -1)
        outside = wanted >= size
        if outside.any():
            _report_outside(wanted, outside, size)
            wanted = np.minimum(wanted, size - 1)
        gathered = np.take_along_axis(rows, wanted.astype(np.intp), axis=1)
        poison(gathered, outside, dtype)
        np.copyto(destination, gathered.reshape(destination.shape))

    count = indices.layout.free_elements
    cycles = math.ceil(count / GATHER_GROUP) * GPSIMD_START + count
    elements = made(dst={"data": Gather("indices"), "indices": SAME})
    return Plan("gpsimd", cycles, compute, elements, lanes="travel", addresses=("indices",))


def _report_outside(wanted: Array, outside: Array, size: int) -> None:
    """NK402: an index beyond the partition."""
    partition, element = (int(axis[0]) for axis in np.nonzero(outside))
    message = (
        f"nc_n_gather: `indices` at partition {partition}, element {element}, is {int(wanted[partition, element])}; a "
        f"partition of `data` has {size} elements, 0 to {size - 1} ({int(np.count_nonzero(outside))} of {outside.size} "
        "indices are out of bounds)"
    )
    remedy = f"Keep them from 0 to {size - 1}; nc_find_index8 writes 4294967295 for a value that it does not find."
    report("NK402", message, remedy=remedy, picture=lambda: picture_of(outside, OUTSIDE, "entries of the index"))


@instruction
def nc_stream_shuffle(check: Check, dst: Dst, src: Src, shuffle_mask: Sequence[int], name: str | None = None) -> Plan:
    """Copy partitions within quadrants of 32 partitions, by one mask for all quadrants, on the Vector Engine.

    In every quadrant ``dst`` partition i becomes partition ``shuffle_mask[i]`` (0 to 31) of the same quadrant of
    ``src``; 255 leaves ``dst`` partition i as it was. ``shuffle_mask``: 32 integers; those beyond the partitions of
    ``dst`` play no part. ``dst`` and ``src`` may have different numbers of partitions and may be the same tile. Equal
    dtypes, equally many elements per partition. Memory: SBUF or PSUM. Both begin at partition 0 if the taller one has
    more than 64 partitions, at 0 or 64 if more than 32, else at a multiple of 32. A mask that names a partition which
    ``src`` does not have is refused (NK402); the reference does not say.
    Errors: NK101, NK107 to NK110, NK201, NK301, NK402, NK609. Source: nki.isa.nc_stream_shuffle (NKI 0.6).
    """
    for role, tensor in (("dst", dst), ("src", src)):
        guards.memory(check, tensor, role, guards.ON_CHIP)
    guards.sizes(check, ("dst", dst), ("src", src))
    _check_starts(check, dst, src)
    instruction_guards.same_dtype(check, ("dst", dst), ("src", src))
    if dst.layout.free_elements != src.layout.free_elements:
        message = (
            f"`dst`, {describe(dst)}, has {dst.layout.free_elements} elements per partition and `src`, "
            f"{describe(src)}, has {src.layout.free_elements}"
        )
        check.refuse("NK109", message, dst, src)
    written, read = _shuffled(check, dst, src, _mask(check, shuffle_mask))

    form = (len(written), *dst.shape[1:])

    def compute(destination: Array, source: Array) -> None:
        destination[written] = source[read].reshape(form)

    touches = (instruction_guards.partitions_of(dst, written), instruction_guards.partitions_of(src, read))
    moves = Parts(tuple((int(row), int(source), 1) for row, source in zip(written, read, strict=True)), 0)
    left = np.ones((dst.shape[0], 1), np.bool_)
    left[written] = False
    elements = made(dst={"src": moves, "dst": Only(SAME, left)})
    return Plan("vector", streaming(check.chip, src), compute, elements, touches=touches, lanes="copy")


def _check_starts(check: Check, dst: NkiTensor, src: NkiTensor) -> None:
    """NK108: both tiles begin where the active partitions of the taller one allow."""
    chip = check.chip
    active = math.ceil(max(dst.shape[0], src.shape[0]) / QUADRANT) * QUADRANT
    step = active if active <= 2 * QUADRANT else chip.partitions
    for role, tensor in (("dst", dst), ("src", src)):
        first = tensor.layout.start_partition
        if first % step:
            allowed = ", ".join(str(each) for each in range(0, chip.partitions, step))
            message = (
                f"`{role}`, {describe(tensor)}, begins at partition {first}; with {active} active partitions it may "
                f"begin at {allowed}"
            )
            check.fail("NK108", message, tensor)


def _mask(check: Check, mask: Sequence[int]) -> tuple[int, ...]:
    """NK609: 32 integers, each a partition of the quadrant or 255."""
    if not isinstance(mask, tuple) or len(mask) != QUADRANT:
        length = f" of {len(mask)}" if isinstance(mask, tuple) else ""
        check.refuse(
            "NK609", f"`shuffle_mask` must be a list of {QUADRANT} integers, it is {type(mask).__name__}{length}"
        )
    for position, entry in enumerate(mask):
        if not _is_entry(entry):
            check.refuse(
                "NK609",
                f"`shuffle_mask[{position}]` must be an integer from 0 to {QUADRANT - 1}, or {UNMODIFIED} to leave the "
                f"partition alone; it is {entry!r}",
            )
    return tuple(int(entry) for entry in mask)


def _is_entry(entry: Any) -> bool:
    whole = isinstance(entry, (int, np.integer)) and not isinstance(entry, bool)
    return whole and (0 <= entry < QUADRANT or entry == UNMODIFIED)


def _shuffled(check: Check, dst: NkiTensor, src: NkiTensor, mask: tuple[int, ...]) -> tuple[Array, Array]:
    """NK402: the partitions that are written, and for each the one that is read."""
    written = np.array([row for row in range(dst.shape[0]) if mask[row % QUADRANT] != UNMODIFIED], np.intp)
    read = np.array([row - row % QUADRANT + mask[row % QUADRANT] for row in written], np.intp)
    beyond = np.flatnonzero(read >= src.shape[0])
    if beyond.size:
        _refuse_beyond(check, src, int(written[beyond[0]]), int(read[beyond[0]]))
    return written, read


def _refuse_beyond(check: Check, src: NkiTensor, row: int, source: int) -> NoReturn:
    message = (
        f"partition {row} of `dst` is to come from partition {source} of `src` (`shuffle_mask[{row % QUADRANT}]`="
        f"{source % QUADRANT} in quadrant {row // QUADRANT}); `src`, {describe(src)}, has {src.shape[0]}"
    )
    remedy = "Pass all the partitions that the mask names, or shuffle one quadrant of `dst` per instruction."
    check.refuse("NK402", message, src, remedy=remedy)
