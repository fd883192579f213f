"""An instruction's operands in shared HBM, which the other programs of a launch reach, too."""

from __future__ import annotations

from nkitools.chip.core import Core
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor

SHARED = MemoryRegion.shared_hbm


def after_others(core: Core, tensor: NkiTensor, missing: Array, touched: Array | None) -> Array | None:
    """Let the other programs run as far as they can, and return the missing elements that are still unwritten.

    A read of elements that another program writes without waiting is not uninitialised (NK401) but a race (NK502),
    whichever program runs first here.
    """
    if tensor.storage.memory is not SHARED or core.baton is None:
        return missing
    core.baton.let_others_run(lambda: tensor.unwritten() is None)
    still = tensor.unwritten()
    if still is None:
        return None
    return still if touched is None else still & touched
