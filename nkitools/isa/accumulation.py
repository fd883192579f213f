"""PSUM accumulation: what matmuls add to there, and whether anybody reads their sums.

NK503: on NeuronCore-v2 and v3 a matmul may add only to what a matmul has put there. Source: nki.isa.nc_matmul,
Accumulation mode, note (NKI 0.6): accumulating into a location that was value-initialised by another instruction "is
undefined behavior on hardware". We judge ``accumulate=True`` only: with ``accumulate=None`` a tile of zeros that
matmuls are added to is an idiom of AWS's own examples.

NK506: the sums of matmuls are overwritten, and no instruction has read any of them. What is written in part only (a
mask, a predicate, tensor indirection) is not judged, and of another instruction than a matmul only what overwrites them
all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from nkitools.chip.core import current_core
from nkitools.chip.memory import LAYOUTS, Region
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.views import describe
from nkitools.isa.plan import Plan
from nkitools.rules.finding import report


@dataclass(slots=True)
class Sum:
    """What matmuls have summed up in a region and nobody has read: by how many, from which instruction on."""

    region: Region
    tensor: NkiTensor
    position: int
    matmuls: int = 1


@lru_cache(4096)  # layouts live as long as the process, and their numbers with them
def _reach(layout: int, byte_offset: int, partition_bytes: int) -> Region:
    partition, byte = divmod(byte_offset, partition_bytes)
    known = LAYOUTS[layout]
    span = sum((size - 1) * stride for size, stride in zip(known.shape[1:], known.strides[1:], strict=True))
    return partition, partition + known.shape[0], byte, byte + span + known.dtype.itemsize


def _region(tensor: NkiTensor) -> Region:
    """Partitions and bytes that a view reaches over: (first, end, first byte, end byte)."""
    return _reach(tensor.layout.id, tensor.byte_offset, tensor.storage.partition_bytes)


def _place(tensor: NkiTensor) -> Region:
    """The same in its memory, where the storage has a place of its own there."""
    storage = tensor.storage
    first, end, byte, last = _region(tensor)
    if storage.physical is None:
        return first, end, byte, last
    partition, start = storage.start_partition, storage.start_byte
    return first + partition, end + partition, byte + start, last + start


def _overlap(first: Region, second: Region) -> bool:
    return first[0] < second[1] and second[0] < first[1] and first[2] < second[3] and second[2] < first[3]


def _within(inner: Region, outer: Region) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1] and outer[2] <= inner[2] and inner[3] <= outer[3]


def note_accesses(plan: Plan, operands: Sequence[Any]) -> None:
    """Remember what an instruction reads and writes in PSUM; NK506 where it overwrites what nobody has read.

    ``operands``: all its data, tensors and others.
    """
    if plan.names_only:
        return
    tensors = [each for each in operands if isinstance(each, NkiTensor)]
    pairs = [pair for pair in zip(tensors, plan.written, strict=True) if pair[0].storage.sums is not None]
    for tensor, written in pairs:
        sums = tensor.storage.sums
        if sums and not written:
            here = _place(tensor)
            sums[:] = [each for each in sums if not _overlap(each.region, here)]
    for tensor, written in pairs:
        if written:
            _note_write(plan, tensor)
            if tensor.direct and not (plan.touches or plan.chooses):
                _note_sums(plan, tensor)


def _note_write(plan: Plan, tensor: NkiTensor) -> None:
    """Remember who wrote a region of PSUM: a matmul that overwrites it makes it fit to be added to again."""
    foreign = tensor.storage.foreign
    if foreign is None or (tensor.is_indirect() and not tensor.direct):
        return
    here = _region(tensor)
    if plan.engine != "tensor":
        if here not in foreign:
            foreign.append(here)
    elif plan.overwrites and foreign:
        foreign[:] = [each for each in foreign if not _within(each, here)]


def _note_sums(plan: Plan, tensor: NkiTensor) -> None:
    sums = tensor.storage.sums
    assert sums is not None
    multiplies = plan.wants_fresh
    if not sums and not multiplies:
        return
    here = _place(tensor)
    if multiplies and not plan.overwrites:
        added = next((each for each in sums if _overlap(each.region, here)), None)
        if added is not None:
            added.matmuls += 1
            return
    elif sums:
        for lost in [each for each in sums if (_overlap if multiplies else _within)(each.region, here)]:
            sums.remove(lost)
            _report_lost(plan, tensor, lost)
    if multiplies:
        sums.append(Sum(here, tensor, current_core(plan.name).record.count))


def _report_lost(plan: Plan, tensor: NkiTensor, lost: Sum) -> None:
    site = current_core(plan.name).record.site_at(lost.position)
    whose = "the sum of a matmul" if lost.matmuls == 1 else f"the sum of {lost.matmuls} matmuls"
    at = f"{describe(tensor)}" if lost.tensor.storage is tensor.storage else f"{describe(lost.tensor)}"
    over = "" if lost.tensor.storage is tensor.storage else f", through {describe(tensor)} at the same address"
    report(
        "NK506",
        f"{plan.name}: {whose} in {at}, begun in line {site.line}, is overwritten{over}; no instruction has read it",
        about=(tensor, lost.tensor),
    )


def check_addition(plan: Plan, tensor: NkiTensor) -> None:
    """NK503: the matmul adds to elements that another instruction wrote."""
    here = _region(tensor)
    if plan.adds_to_matmuls_only and any(_overlap(each, here) for each in tensor.storage.foreign or ()):
        report(
            "NK503",
            f"{plan.name}: accumulate=True adds to elements of {describe(tensor)} that an instruction other than a "
            "matmul has written",
            about=(tensor,),
            remedy="Let the first matmul overwrite, accumulate=(i > 0), and add other values after copying PSUM out.",
        )
