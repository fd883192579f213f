"""What becomes of an instruction that was refused, in a run that collects its findings and goes on."""

from __future__ import annotations

from typing import Any

from nkitools.chip.tensor import NkiTensor
from nkitools.isa.plan import WRITTEN
from nkitools.isa.undefined import poison
from nkitools.rules.finding import StopRun


def leave_undone(values: tuple[Any, ...], roles: tuple[int, ...], *, waits: bool) -> None:
    """Go on without an instruction: NaN (integers: 4) is in its outputs then, which count as written.

    One cause is told once, so that nobody hears of them again. The run ends where others wait for the instruction
    (``waits``), and where its outputs are no plain tensors.
    """
    outputs = [value for value, role in zip(values, roles, strict=True) if role in WRITTEN and value is not None]
    if waits or not outputs or not all(type(each) is NkiTensor for each in outputs):
        raise StopRun
    for each in outputs:
        poison(each.array, True, each.dtype)
        each.storage.mark_written(each.layout, each.byte_offset)
