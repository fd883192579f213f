"""Findings of elements that were never written: where they are read, and where they leave in a result."""

from __future__ import annotations

import numpy as np

from nkitools.chip.core import Core
from nkitools.chip.masked_out import UNMODIFIED, cause_of
from nkitools.chip.masked_out import UNWRITTEN as NEVER_WRITTEN
from nkitools.chip.numerics import Array
from nkitools.chip.pictures import UNWRITTEN, picture_of
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import describe
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.plan import Plan
from nkitools.record.columns import Columns
from nkitools.record.empty_loops import empty_loop
from nkitools.record.undefined_elements import place_of, report_undefined
from nkitools.rules.finding import report


def report_read(call: CarefulCall, tensor: NkiTensor, missing: Array) -> bool:
    """NK405, NK401: an instruction that decides something reads elements that were never written.

    Return whether a run has recorded it.
    """
    record, name = call.core.record, call.plan.name
    remedy = _remedy_of_swapped(call, tensor) or _remedy_of_unwritten(call.core, tensor, missing)
    return report_undefined(record, name, f"which {name} reads", tensor, missing, record.site(), remedy)


def _remedy_of_swapped(call: CarefulCall, tensor: NkiTensor) -> str:
    """Return that the operands of a copy are swapped, where nothing was written yet into its source; else ''.

    Only where the destination is an argument, which is there to be read, or a tile that something was written to, and
    the source a tensor in HBM.
    """
    if not call.plan.name.startswith(("dma_", "tensor_copy")) or tensor.storage.holds_anything:
        return ""
    swapped = any(written.storage.id in call.core.input_ids for written, _ in call.outputs)
    to_result = not tensor.on_chip and any(each.on_chip and each.storage.holds_anything for each, _ in call.outputs)
    if not swapped and not to_result:
        return ""
    return f"The operands are swapped: {call.plan.name}(dst, src). The destination comes first."


def _remedy_of_unwritten(core: Core, tensor: NkiTensor, missing: Array) -> str:
    """Return the remedy for unwritten elements with a known cause; '' for the rule's own remedy."""
    cause = cause_of(tensor, missing, NEVER_WRITTEN)
    known = None if cause is None else core.record.storages.get(cause.source)
    memory = tensor.storage.memory.name if known is None else known.memory
    if memory in ("private_hbm", "HBM") and len(core.team) > 1:
        return (
            "private_hbm is of one core, and the other core writes another tensor: exchange through nl.shared_hbm with "
            "nisa.core_barrier between, or by nisa.sendrecv."
        )
    written = tensor.storage.box[1] > 0 or tensor.storage.written is not None or tensor.storage.full
    if missing.all() and not tensor.storage.holds_anything and (copied := _remedy_of_earlier_copy(core, tensor)):
        return copied
    if missing.all() and (idle := empty_loop(tensor if cause is None else cause.source)):
        return idle
    if missing.all() and written and cause is None:
        return (
            "Other elements of the tensor are written: look at the index of this access and at the order of the turns "
            "(is a ring read one slot ahead?)."
        )
    return ""


def _remedy_of_earlier_copy(core: Core, tensor: NkiTensor) -> str:
    """Return that a copy should have filled a tensor that it reads: its destination had been written; else ''."""
    columns = Columns(core.record)
    mine = columns.storages == tensor.storage.id
    for position in columns.positions[mine & ~columns.writes].tolist():
        name, at = core.record.row(position).plan.name, columns.positions == position
        before = columns.writes & (columns.positions < position)
        if name in ("dma_copy", "tensor_copy") and np.isin(columns.storages[before], columns.storages[at]).any():
            line = core.record.site_at(position).line
            return (
                f"The operands of the {name} at line {line} are swapped: {name}(dst, src), the destination comes first."
            )
    return ""


def leaves(core: Core, plan: Plan, tensor: NkiTensor, missing: Array) -> bool:
    """Return whether all missing elements are such as an instruction documents as not modified (NK621)."""
    cause = cause_of(tensor, missing, UNMODIFIED)
    if cause is None:
        return False
    place = place_of(core.record, cause.site, core.record.site())
    message = (
        f"{plan.name}: {np.count_nonzero(missing)} of {missing.size} elements of {describe(tensor)} leave in a result "
        f"without ever being written, since the instruction {place} documents them as not modified; "
        "AWS's own examples copy such elements out with the others, and the values are undefined"
    )
    remedy = "Copy the modified elements alone, or fill the tile with nisa.memset before that instruction."
    if core.rank is not None:
        remedy = (
            f"Rank {core.rank} may have received nothing: let a pair of source_target_pairs have it as a target, or "
            "fill the tensor before the collective."
        )
    report("NK621", message, about=(tensor,), remedy=remedy, picture=lambda: picture_of(missing, UNWRITTEN))
    return True
