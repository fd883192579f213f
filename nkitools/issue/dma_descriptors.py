"""The guards of a DMA's descriptors: which engine generates them, and which addresses that engine can generate."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkitools.chip.core import current_core
from nkitools.chip.runtime_views import VectorTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.engines.enums import dge_mode as dge_modes
from nkitools.engines.enums import engine as engines
from nkitools.engines.enums import oob_mode as oob_modes
from nkitools.issue import guards
from nkitools.issue.instruction import Check

GATHERING = (dge_modes.unknown, dge_modes.swdge)  # the modes that vector_offset goes with (nki-dge)
_BY_VALUE = {member.value: member for member in dge_modes}


def mode_of(dge_mode: dge_modes | int) -> Any:
    """Return the mode that an argument means: production kernels also pass a documented value (``dge_mode=3``)."""
    return _BY_VALUE.get(dge_mode, dge_mode) if type(dge_mode) is int else dge_mode


def modes(check: Check, priority: int | None, dge_mode: dge_modes, oob_mode: oob_modes) -> None:
    """NK609, NK606: priority 0 to 3 is NeuronCore-v4's, hardware descriptor generation came with v3."""
    chip = check.chip
    guards.one_of(check, "oob_mode", oob_mode, oob_modes)
    guards.one_of(check, "dge_mode", dge_mode, dge_modes)
    check_priority(check, priority)
    if dge_mode is dge_modes.hwdge and not chip.hardware_dge:
        message = f"`dge_mode`={dge_mode}: hardware descriptor generation came with NeuronCore-v3; {chip.name} has none"
        remedy = "Leave dge_mode out, or ask for dge_mode.swdge on this chip."
        check.fail("NK606", message, remedy=remedy, argument="dge_mode")


def check_priority(check: Check, priority: int | None) -> None:
    """NK609, NK606: the priority of a transfer is 0 to 3, on NeuronCore-v4."""
    if priority is None:
        return
    chip = check.chip
    whole = isinstance(priority, (int, np.integer)) and not isinstance(priority, bool)
    if not whole or not 0 <= priority <= 3:
        check.refuse("NK609", f"`priority` must be 0, 1, 2 or 3, it is {priority!r}")
    if not chip.dma_priority:
        message = f"`priority`={priority}: DMA priorities came with NeuronCore-v4; {chip.name} has none"
        check.fail("NK606", message, remedy="Leave priority out on this chip.", argument="priority")


def trigger(check: Check, engine: engines, dge_mode: dge_modes) -> None:
    """NK206, NK609: with hardware descriptor generation the Sync or the Scalar Engine's queue may be chosen."""
    guards.one_of(check, "engine", engine, engines, (engines.sync, engines.scalar, engines.unknown))
    if engine is not engines.unknown and dge_mode is not dge_modes.hwdge:
        check.fail("NK609", f"`engine`={engine} goes with dge_mode=nisa.dge_mode.hwdge only", argument="engine")


def addresses(check: Check, dge_mode: dge_modes, **tensors: NkiTensor) -> None:
    """NK609: descriptors made on the host take no run-time addresses, those of the hardware no index per partition."""
    for role, tensor in tensors.items():
        if isinstance(tensor, VectorTensor) and dge_mode not in GATHERING:
            message = (
                f"`dge_mode`={dge_mode} cannot gather or scatter, `{role}`, {describe(tensor)}, is addressed by a "
                "vector_offset"
            )
            check.fail("NK609", message, tensor, remedy="Pass dge_mode=nisa.dge_mode.swdge, or leave it out.")
        elif tensor.is_indirect() and dge_mode is dge_modes.none:
            message = (
                f"`dge_mode`={dge_mode} makes descriptors before the kernel runs, `{role}`, {describe(tensor)}, has an "
                "address that is known only then"
            )
            check.fail("NK609", message, tensor, remedy="Leave dge_mode out, or pass nisa.dge_mode.swdge or hwdge.")


def skips_indices(check: Check, oob_mode: oob_modes, dst: NkiTensor, src: NkiTensor) -> None:
    """NK621: indices out of bounds are skipped, and no address is decided while the kernel runs.

    Validation of dma_compute, which "mirrors" this one, "ensures oob_mode.skip is used only with indirect indexing".
    """
    if oob_mode is not oob_modes.skip or dst.is_indirect() or src.is_indirect():
        return
    if current_core(check.instruction).dialect.has_known_issues:
        message = "`oob_mode`=skip goes with addresses that are decided while the kernel runs; here both are known"
        check.goes_beyond(message, dst, src, remedy="Leave oob_mode out.")


def one_index_each(check: Check, **tensors: NkiTensor) -> None:
    """NK109: each partition has one index, in a tensor of shape (partitions, 1)."""
    for role, tensor in tensors.items():
        if isinstance(tensor, VectorTensor) and tensor.index.layout.free_elements != 1:
            message = f"the vector_offset of `{role}` must have shape (partitions, 1), it is {describe(tensor.index)}"
            check.refuse("NK109", message, tensor.index)
