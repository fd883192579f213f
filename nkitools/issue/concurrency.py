"""An instruction's operands in shared HBM, which the other programs of a launch reach, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nkitools.chip.core import Core
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.runtime_views import VectorTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.issue.plan import WRITTEN
from nkitools.record.rows import Part

SHARED = MemoryRegion.shared_hbm


def after_others(core: Core, tensor: NkiTensor, missing: Array, touched: Array | None) -> Array | None:
    """Return which of the missing elements are still unwritten when the other programs have gone as far as they can.

    What another program writes without waiting is no uninitialised read (NK401) but a race of the two programs
    (NK502), whichever of them runs first here.
    """
    if core.baton is None or tensor.storage.memory is not SHARED:
        return missing
    core.baton.let_others_run(lambda: tensor.unwritten() is None)
    still = tensor.unwritten()
    if still is None:
        return None
    return still if touched is None else still & touched


def keep_parts(
    core: Core,
    tensors: Sequence[tuple[NkiTensor, int]],
    touches: Sequence[Array | None],
    lanes: Array | None,
    kept: Callable[[NkiTensor], Array | None],
) -> None:
    """Record which elements of shared HBM are touched where they are not all of a view.

    ``lanes``: the rows of a gather that are in bounds. ``kept``: the elements of a destination that are written. Under
    a mask only its lanes are read, too.
    """
    masks = {tensor.shape: tensor.where for tensor, _ in tensors if hasattr(tensor, "where")}
    for number, ((tensor, role), touched) in enumerate(zip(tensors, touches, strict=True)):
        if tensor.storage.memory is not SHARED and not core.record.keeps_all_parts:
            continue
        if isinstance(tensor, VectorTensor):
            rows, valid = tensor.chosen()
            if role in WRITTEN and lanes is not None:
                valid = valid & lanes
            chosen = np.unique(rows[valid])
            core.record.touches_only(number, Part(tensor.rows.layout, tensor.rows.byte_offset, rows=chosen))
            continue
        where = kept(tensor) if role in WRITTEN else masks.get(tensor.shape)
        if touched is not None:
            where = touched if where is None else where & touched
        if where is not None:
            everywhere = np.broadcast_to(where, tensor.shape)
            core.record.touches_only(number, Part(tensor.layout, tensor.byte_offset, lanes=everywhere))
