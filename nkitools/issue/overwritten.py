"""Reading a tensor after another one, placed at an overlapping address, has overwritten it (NK204)."""

from __future__ import annotations

import numpy as np

from nkitools.chip.core import current_core
from nkitools.chip.memory import ON_CHIP, Claim, Loss, Storage
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import MEMORY_NAMES, describe, described
from nkitools.rules.finding import report


def report_lost(what: str, tensor: NkiTensor, missing: Array) -> bool:
    """Report NK204 if a missing element of ``tensor`` was written, and then overwritten by another tensor."""
    storage = tensor.storage
    found = np.nonzero(np.broadcast_to(missing, tensor.shape)) if storage.losses else ()
    offsets = np.asarray(storage.start_partition * storage.partition_bytes + storage.start_byte + tensor.byte_offset)
    for axis, stride in zip(found, tensor.layout.strides, strict=False):
        offsets = offsets + axis * stride
    row = storage.partition_bytes if storage.physical is None else storage.physical.partition_bytes
    partitions, bytes_ = np.divmod(offsets, row)
    for loss in reversed(storage.losses):
        first, end, first_byte, end_byte = loss.region
        lost = (first <= partitions) & (partitions < end) & (first_byte <= bytes_) & (bytes_ < end_byte)
        if np.any(lost):
            at = int(np.argmax(lost))
            _report(what, tensor, loss, (int(partitions[at]), int(bytes_[at])))
            return True
    return False


def _report(what: str, tensor: NkiTensor, loss: Loss, at: tuple[int, int]) -> None:
    site = current_core(what).record.sites[loss.site]
    message = (
        f"{what}: {describe(tensor)} is read at {_place(tensor.storage)}, after {described(loss.by)} at "
        f"{_place(loss.by)} has overwritten it in line {site.line}; the first byte lost is {at[1]}"
        f"{f' of partition {at[0]}' if loss.by.memory in ON_CHIP else ''}"
    )
    report("NK204", message, about=(tensor,), facts={"instruction": what})


def _place(storage: Storage | Claim) -> str:
    first, end, byte, end_byte = storage.region
    partitions = f"partitions {first}..{end - 1}, " if storage.memory in ON_CHIP else ""
    return f"{partitions}bytes {byte}..{end_byte - 1} of {MEMORY_NAMES[storage.memory]}"
