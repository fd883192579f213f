"""Refused instructions in a run that collects its findings and goes on.

The outputs of a refused instruction hold NaN (integers: 4) and count as written: one cause gives one finding. Results
that depend on them are followed, since a 4 does not look undefined as a NaN does: no rule about values is judged for
such results, and an instruction whose place or indices depend on them is left undone, too. Whole tensors are followed,
until all of one has been overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nkitools.chip.column_gather import ColumnTensor
from nkitools.chip.core import Core
from nkitools.chip.layout import layout_of
from nkitools.chip.masked_tensor import MaskedTensor
from nkitools.chip.memory import Storage
from nkitools.chip.runtime_views import DynamicTensor, VectorTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.issue.accumulation import note_read
from nkitools.issue.careful_call import CarefulCall
from nkitools.issue.plan import DATA, ON_DEVICE, WRITTEN, Plan
from nkitools.issue.poison import poison
from nkitools.issue.written_arguments import open_views
from nkitools.rules.finding import StopRun

# Operands whose elements are places in another one.
_INDICES = frozenset({"index", "indices"})


def leave_undone(core: Core, values: Iterable[Any], roles: Iterable[int], *, waits: bool) -> None:
    """Go on without an instruction.

    The run ends where others wait for it (``waits``), and where it has no outputs: what a register should have held
    decides about loops.
    """
    pairs = list(zip(values, roles, strict=True))
    outputs = [value for value, role in pairs if role in WRITTEN and isinstance(value, NkiTensor)]
    if waits or not outputs:
        raise StopRun
    for each in outputs:
        _poison(each)
        core.undone.add(each.storage.id)
    for value, role in pairs:
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if role in DATA and role not in WRITTEN and isinstance(each, NkiTensor):
                note_read(each)
    core.careful = True


def _poison(tensor: NkiTensor) -> None:
    storage = tensor.storage
    if tensor.is_indirect():  # the place is undefined
        storage.poison_unwritten()
        mark_whole(storage)
        return
    open_views(tensor)
    where = tensor.where if isinstance(tensor, MaskedTensor) else None
    if tensor.array.flags.writeable:
        poison(tensor.array, True if where is None else where, tensor.dtype)
    storage.mark_written(tensor.layout, tensor.byte_offset, where)


def mark_whole(storage: Storage) -> None:
    """Let all elements of a storage count as written."""
    storage.mark_written(layout_of(storage.shape, storage.array.strides, storage.dtype, storage.memory, 0, 0, 1), 0)


def leave_rows_undone(call: CarefulCall) -> None:
    """Mark what reported indices have left out of a call's outputs as undone."""
    for name, (tensor, role) in zip(call.plan.operands, call.tensors, strict=True):
        if role not in WRITTEN:
            continue
        if tensor.is_indirect():
            _poison(tensor)
        elif name in call.lost:
            _poison(MaskedTensor.of(tensor, call.lost[name] & getattr(tensor, "where", True)))
        call.core.undone.add(tensor.storage.id)


def refuse_undefined_places(core: Core, values: Iterable[Any], names: Iterable[str]) -> None:
    """End an instruction, without a finding, whose operands lie at undefined places or whose indices are undefined."""
    for name, value in zip(names, values, strict=True):
        if isinstance(value, NkiTensor) and (
            any(each.storage.id in core.undone for each in _places(value))
            or (name in _INDICES and value.storage.id in core.undone)
        ):
            raise StopRun


def _places(tensor: NkiTensor) -> Iterator[NkiTensor]:
    """Yield the tensors that say where another one lies."""
    if isinstance(tensor, (VectorTensor, ColumnTensor)):
        yield tensor.index
    elif isinstance(tensor, DynamicTensor):
        yield from (term.source for term in tensor.terms if isinstance(term.source, NkiTensor))


def depends_on_undone(core: Core, values: Iterable[Any]) -> bool:
    """Return whether some of an instruction's inputs come of one that was left undone."""
    return any(isinstance(value, NkiTensor) and value.storage.id in core.undone for value in values)


def follow(core: Core, plan: Plan, operands: Iterable[tuple[Any, int]]) -> None:
    """Remember what an instruction has made of undefined inputs; what it has overwritten whole is undefined no more."""
    pairs = list(operands)
    outputs = [value for value, role in pairs if role in WRITTEN and isinstance(value, NkiTensor)]
    if depends_on_undone(core, [value for value, role in pairs if role not in WRITTEN]):
        if any(role in ON_DEVICE for _, role in pairs):
            raise StopRun  # its value is undefined, and decides about loops
        core.undone.update(each.storage.id for each in outputs)
    elif not (plan.touches or plan.chooses or (plan.wants_fresh and not plan.overwrites)):
        whole = [each.storage.id for each in outputs if each.direct and each.layout.nbytes == each.storage.nbytes]
        core.undone.difference_update(whole)
