"""The facts beside an instruction's row: the elements of its operands that it touches, and its indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nkitools.chip.column_gather import ColumnTensor
from nkitools.chip.core import Core, current_core
from nkitools.chip.device_numbers import DeviceNumber
from nkitools.chip.masked_tensor import MaskedTensor
from nkitools.chip.memory import MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.registers import VirtualRegister
from nkitools.chip.runtime_views import DynamicTensor, VectorTensor
from nkitools.chip.tensor import NkiTensor
from nkitools.issue.plan import WRITTEN, Plan
from nkitools.record.beside_rows import BesideRows, ascending
from nkitools.record.rows import words_of

Mask = Array | None


def keep_touched(
    core: Core,
    plan: Plan,
    tensors: Sequence[tuple[NkiTensor, int]],
    touches: Sequence[Mask],
    kept: Callable[[str, NkiTensor], Mask],
) -> None:
    """Note the elements that the next recorded instruction touches, if they are not all of a view.

    ``kept``: returns the written elements of a result. Under a mask only its elements are read, too. Choices made by
    data are kept if a rule needs them.
    """
    record = core.record
    position, beside = record.next_position, record.beside
    masks = {tensor.shape: tensor.where for tensor, _ in tensors if isinstance(tensor, MaskedTensor)}
    for number, ((tensor, role), touched) in enumerate(zip(tensors, touches, strict=True)):
        if not tensor.direct or isinstance(tensor, DynamicTensor):
            _keep_indices(beside, position, tensor)
        if isinstance(tensor, (VectorTensor, ColumnTensor)):
            where = kept(plan.operands[number], tensor) if role in WRITTEN else None
            _keep_chosen(beside, position, number, tensor, where)
            continue
        where = kept(plan.operands[number], tensor) if role in WRITTEN else masks.get(tensor.shape)
        fixed = touched if plan.chooses is None else None
        if where is not None or fixed is not None:
            beside.keep(position, number, beside.lanes(tensor.layout, _both(tensor, where, fixed)))
        shared = tensor.storage.memory is MemoryRegion.shared_hbm and record.keeps_parts
        if touched is not fixed and touched is not None and (shared or record.keeps_all_parts):
            beside.keep_as_run(position, number, beside.lanes(tensor.layout, _both(tensor, where, touched)))


def _both(tensor: NkiTensor, *masks: Mask) -> Array:
    """Return the elements of a view that are in all masks that there are."""
    found: Array = np.ones(tensor.shape, np.bool_)
    for mask in masks:
        if mask is not None:
            found = found & mask
    return found


def _keep_chosen(
    beside: BesideRows, position: int, number: int, tensor: VectorTensor | ColumnTensor, where: Mask
) -> None:
    if isinstance(tensor, ColumnTensor):
        columns = beside.columns(tensor.columns.layout, ascending(tensor.lined_up()))
        beside.keep(position, number, columns)
        return
    _, there = tensor.places(where)
    if len(there) == 1:
        beside.choose(position, number, tensor.rows.layout, there[0])
    else:
        beside.keep(position, number, beside.lanes(tensor.rows.layout, tensor.among_rows(where)))


def _keep_indices(beside: BesideRows, position: int, tensor: NkiTensor) -> None:
    if isinstance(tensor, (VectorTensor, ColumnTensor)):
        beside.indices.extend((position, *words_of((tensor.index,))))
    elif isinstance(tensor, DynamicTensor):
        for term in tensor.terms:
            if isinstance(term.source, NkiTensor):
                beside.indices.extend((position, *words_of((term.source,))))
            else:
                _use(beside, position, term.source)


def register_value(what: str, register: DeviceNumber) -> int:
    """Return the number of a register or scalar that the instruction that is about to be recorded reads.

    Errors: NK301, NK401.
    """
    value = register.short_integer(what)
    use_register(current_core(what), register)
    return value


def use_register(core: Core, register: DeviceNumber) -> None:
    """Keep that the instruction that is about to be recorded reads a register or scalar."""
    _use(core.record.beside, core.record.next_position, register)


def _use(beside: BesideRows, position: int, register: DeviceNumber) -> None:
    beside.depends(position, register.sources)
    if register.is_written:
        register.readers.append(position)


def set_register(core: Core, register: VirtualRegister) -> None:
    """Keep that the instruction that is about to be recorded writes a register."""
    position = core.record.next_position
    core.record.beside.overwrites(position, register.sources if register.is_written else (), register.readers)
    register.sources, register.readers, register.is_written = (position,), [], True


def use_state(core: Core, name: str, lanes: slice, *, reads: bool, writes: bool) -> None:
    """Note that the next recorded instruction uses an engine's state (reduce registers, random numbers) in some lanes.

    Only reads become dependences on the last writers: a state belongs to one engine, which runs in order.
    """
    record, writers = core.record, core.state_writers.get(name)
    if writers is None or writers.size < lanes.stop:
        grown = np.full(max(lanes.stop, core.generation.partitions), -1, np.int64)
        if writers is not None:
            grown[: writers.size] = writers
        core.state_writers[name] = writers = grown
    if reads:
        record.beside.depends(record.next_position, [each for each in np.unique(writers[lanes]).tolist() if each >= 0])
    if writes:
        writers[lanes] = record.next_position
