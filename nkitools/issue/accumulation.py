"""PSUM accumulation: checks what matmuls add to, and whether their sums are read.

NK503: on NeuronCore-v2 and v3 a matmul may add only to results of matmuls. Source: nki.isa.nc_matmul, Accumulation
mode, note (NKI 0.6): accumulating into a location that was value-initialised by another instruction "is undefined
behavior on hardware". With ``accumulate=None`` a tile of zeros that matmuls are added to is an idiom of AWS's own
examples, and both readings agree: only other values break the rule. Public kernels add to zeros with
``accumulate=True``, too, with right results on NeuronCore-v2 and v3: that is a warning.

NK512: with ``accumulate=None`` a matmul adds to a sum that an instruction has read since then; the author may not mean
that. Reported only if the sum was surely read, and is continued in exactly the same place.

NK506: the sums of matmuls are overwritten, and no instruction has read any of them. Partial writes (a mask, a
predicate, tensor indirection) are not checked; writes by other instructions than matmuls only if they overwrite
everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from nkitools.chip.core import current_core
from nkitools.chip.memory import LAYOUTS, Claim
from nkitools.chip.numerics import Array
from nkitools.chip.taken_bytes import Region, common
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe, described
from nkitools.facts.light_classes import dataclass
from nkitools.issue.plan import Plan
from nkitools.record.source_sites import Site
from nkitools.rules.finding import report

_WORK: Any = 1000  # candidates that NumPy tries before it gives up on two strided arrays


@dataclass(slots=True, eq=False)
class Sum:
    """The sum of matmuls in a region.

    Its storage has the sum in a list, so the sum describes the storage and does not refer to it.
    """

    claim: Claim  # the tensor and its region
    array: Array
    position: int  # of the first matmul
    matmuls: int = 1
    is_read: bool = False  # an instruction has read it, or parts of it
    reader: int = -1  # the position of the instruction that has read it for sure

    def meets(self, array: Array, region: Region, *, unless_sure: bool) -> bool:
        """Return whether an access shares elements with the sum; ``unless_sure`` if NumPy gives up on the question."""
        if array is self.array:
            return True
        if not _overlap(self.claim.region, region):
            return False
        try:
            return np.shares_memory(self.array, array, max_work=_WORK)
        except np.exceptions.TooHardError:
            return unless_sure


@lru_cache(4096)  # layouts live as long as the process, and their numbers with them
def _reach(layout: int, byte_offset: int, partition_bytes: int) -> Region:
    partition, byte = divmod(byte_offset, partition_bytes)
    known = LAYOUTS[layout]
    span = sum((size - 1) * stride for size, stride in zip(known.shape[1:], known.strides[1:], strict=True))
    return partition, partition + known.shape[0], byte, byte + span + known.dtype.itemsize


def _region(tensor: NkiTensor) -> Region:
    """Return the smallest box around a view: (first partition, end, first byte, end byte)."""
    return _reach(tensor.layout.id, tensor.byte_offset, tensor.storage.partition_bytes)


def _place(tensor: NkiTensor) -> Region:
    """Return the box around a view in PSUM itself if the storage has an address, else in the storage."""
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


def _without(region: Region, taken: Region) -> list[Region]:
    """Return a region without ``taken``, as boxes: above and below, before and after it."""
    both = common(region, taken)
    if both is None:
        return [region]
    first, end, byte, last = region
    above, below = (first, both[0], byte, last), (both[1], end, byte, last)
    before, behind = (both[0], both[1], byte, both[2]), (both[0], both[1], both[3], last)
    return [each for each in (above, below, before, behind) if each[0] < each[1] and each[2] < each[3]]


def note_accesses(plan: Plan, operands: Sequence[Any]) -> None:
    """Note an instruction's reads and writes in PSUM; NK506 if it overwrites an unread sum.

    ``operands``: all data operands, tensors and others.
    """
    for number in plan.psum_reads:
        note_read(operands[number])
    for number in plan.psum_writes:
        tensor = operands[number]
        if tensor.direct or not tensor.is_indirect():
            _note_writer(plan, tensor)
        if tensor.direct and not (plan.touches or plan.chooses):
            _note_sums(plan, tensor)


def note_read(tensor: NkiTensor) -> None:
    """Forget the sums that an instruction reads."""
    sums = tensor.storage.sums
    if sums:
        tensor = getattr(tensor, "columns", tensor)  # all that tensor indirection chooses from
        here = _place(tensor)
        for each in sums:
            if not each.is_read and each.meets(tensor.array, here, unless_sure=True):
                each.is_read = True
                if tensor.array is each.array or each.meets(tensor.array, here, unless_sure=False):
                    each.reader = current_core("PSUM").record.next_position


def _note_writer(plan: Plan, tensor: NkiTensor) -> None:
    """Remember who wrote a region of PSUM. A matmul that overwrites a region makes it fit to be added to again.

    So does a matmul that accumulates: whether it may was checked before.
    """
    foreign = tensor.storage.foreign
    assert foreign is not None
    if plan.engine != "tensor":
        here = _region(tensor)
        if here not in foreign:
            foreign.append(here)
    elif foreign:
        here = _region(tensor)
        foreign[:] = [rest for each in foreign for rest in _without(each, here)]


def _note_sums(plan: Plan, tensor: NkiTensor) -> None:
    sums = tensor.storage.sums
    assert sums is not None
    multiplies = plan.wants_fresh
    if not sums and not multiplies:
        return
    here = _place(tensor)
    met = [each for each in sums if each.meets(tensor.array, here, unless_sure=False)] if sums else []
    if any(each.is_read for each in met):
        met = _go_on(plan, tensor, here, met)
    # A matmul adds to its own tensor's sums only: those of others that lie there it overwrites.
    added = [each for each in met if each.claim.id == tensor.storage.id] if multiplies and not plan.overwrites else []
    for each in met:
        if each not in added and (multiplies or _covers(tensor, here, each.claim.region)):
            sums.remove(each)
            _report_lost(plan, tensor, each)
    for each in added:
        each.matmuls += 1
    if multiplies and not added:
        sums.append(Sum(_claim(tensor, here), tensor.array, current_core(plan.name).record.count))


def _go_on(plan: Plan, tensor: NkiTensor, here: Region, met: list[Sum]) -> list[Sum]:
    """Return the unread sums that a write meets, and forget the read ones; NK512 for a read sum that is continued.

    A sum that is continued is unread again.
    """
    sums = tensor.storage.sums
    assert sums is not None
    continues = plan.wants_fresh and not plan.overwrites
    for each in [each for each in met if each.is_read]:
        is_same = each.claim.id == tensor.storage.id and each.claim.region == here
        if continues and is_same:
            is_said = plan.adds_always or not current_core(plan.name).dialect.has_known_issues
            if each.reader >= 0 and not is_said:
                _report_continued(plan, tensor, each)
            each.is_read, each.reader = False, -1
        else:
            sums.remove(each)
    return [each for each in met if not each.is_read]


def _report_continued(plan: Plan, tensor: NkiTensor, read: Sum) -> None:
    line = current_core(plan.name).record.site_at(read.reader).line
    message = (
        f"{plan.name}: without accumulate= it adds to the sum in {describe(tensor)}, which line {line} has read "
        "already, as if it were finished"
    )
    report("NK512", message, about=(tensor,), facts={"instruction": plan.name})


def _claim(tensor: NkiTensor, region: Region) -> Claim:
    storage, grid = tensor.storage, getattr(tensor, "grid", None)
    words = "" if grid is None else grid.words()
    return Claim(storage.id, storage.name, storage.memory, tensor.dtype, tensor.shape, region, words)


def _covers(tensor: NkiTensor, here: Region, region: Region) -> bool:
    """Return whether a write reaches every byte of a region."""
    dense = tensor.layout.free_elements * tensor.dtype.itemsize == here[3] - here[2]
    return dense and _within(region, here)


def _report_lost(plan: Plan, tensor: NkiTensor, lost: Sum) -> None:
    site = current_core(plan.name).record.site_at(lost.position)
    whose = "the sum of a matmul" if lost.matmuls == 1 else f"the sum of {lost.matmuls} matmuls"
    over = "" if lost.claim.id == tensor.storage.id else f", through {describe(tensor)} at the same address"
    message = (
        f"{plan.name}: {whose} in {described(lost.claim)}, begun in line {site.line}, is overwritten{over}; no "
        "instruction has read it"
    )
    report("NK506", message, about=(tensor,), remedy=_apart(tensor, lost, site), facts={"instruction": plan.name})


def _apart(tensor: NkiTensor, lost: Sum, site: Site) -> str:
    """Return what to do about sums that overlap in part, as blocks of columns do whose step is too small; else ''."""
    here, there = _place(tensor), lost.claim.region
    both = common(here, there)
    if here == there or both is None or lost.claim.id != tensor.storage.id:
        return ""
    start = here[2] - _region(tensor)[2]
    first, last = ((byte - start) // tensor.dtype.itemsize for byte in both[2:])
    return (
        f"Both sums lie in columns {first} to {last - 1} of a partition: give each its own columns, by a step of the "
        f"offset that is as wide as the sum; line {site.line} begins the other one."
    )


def check_addition(plan: Plan, tensor: NkiTensor, missing: Array | None = None) -> None:
    """NK503: the matmul adds to elements that another instruction wrote; with accumulate=None to others than zeros.

    Onto zeros accumulate=True is a warning. ``missing``: the elements that have no value.
    """
    here = _region(tensor)
    if not plan.adds_to_matmuls_only or not any(_overlap(each, here) for each in tensor.storage.foreign or ()):
        return
    values = tensor.read() != 0
    adds_to_zeros = not (values if missing is None else values & ~missing).any()
    if plan.adds_always:
        message = f"accumulate=True adds to elements of {describe(tensor)} that an instruction other than a matmul has"
        zeros = "; they are zeros, where kernels did so on the chip" if adds_to_zeros else ""
        remedy = "Let the first matmul overwrite, accumulate=(i > 0), and add other values after copying PSUM out."
        severity = "warning" if adds_to_zeros else ""
        message = f"{plan.name}: {message} written{zeros}"
        report("NK503", message, about=(tensor,), remedy=remedy, severity=severity, facts={"instruction": plan.name})
    elif not adds_to_zeros:
        message = (
            f"{plan.name}: without accumulate=False it adds to {describe(tensor)}, where an instruction other than a "
            "matmul has written values that are not zero; before NeuronCore-v4 that is undefined"
        )
        remedy = "Pass accumulate=False to the first matmul of a sum, and add other values after copying PSUM out."
        report("NK503", message, about=(tensor,), remedy=remedy, facts={"instruction": plan.name})
