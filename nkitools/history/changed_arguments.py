"""Arguments that a kernel has changed beyond the part that it returns (NK409)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.layout import LAYOUTS
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.record.columns import Columns
from nkitools.record.dataflow.cells import touched_elements
from nkitools.record.dataflow.pieces import View
from nkitools.record.reporter import Reporter
from nkitools.rules.finding import report

_SWAPPED = "The operands are swapped: {name}(dst, src). The destination comes first."
_COPIES = ("dma_copy", "dma_transpose", "tensor_copy")


def report_changed_arguments(
    columns: Columns,
    reporter: Reporter,
    asked: Iterable[int],
    returned: Sequence[NkiTensor],
    changed: Callable[[int], Array],
    severity: str,
) -> None:
    """Report NK409 at the first line that changes an argument outside of the tensors ``returned``.

    ``asked``: the numbers of the arguments' storages. ``changed``: a function that returns a mask of the elements of
    one whose bits have changed, as far as that is known.
    """
    for storage in asked:
        own = [each for each in returned if each.storage.id == storage]
        _report(columns, reporter, storage, own, changed, severity)


def _report(
    columns: Columns,
    reporter: Reporter,
    storage: int,
    returned: list[NkiTensor],
    changed: Callable[[int], Array],
    severity: str,
) -> None:
    outside = changed(storage)
    mine = np.flatnonzero((columns.storages == storage) & columns.writes)
    if not mine.size or not outside.any():
        return
    record, known = columns.record, columns.record.storages[storage]
    itemsize = as_dtype(known.dtype).itemsize
    for each in returned:
        outside = outside & ~touched_elements(View(each.layout, each.byte_offset, None), outside.size, itemsize)
    found = _first_write(columns, mine, outside, itemsize) if outside.any() else None
    if found is None:
        return
    at, element = int(columns.positions[found[0]]), np.unravel_index(found[1], known.shape)
    name = record.name_of(storage)
    whole = f"its argument `{name}` ({known.dtype} {list(known.shape)})"
    message = f"the kernel changes {whole}, which it does not return"
    if returned:
        where = [int(axis) for axis in element]
        message = f"the kernel changes {whole} at {where}, outside of the part that it returns"
    with reporter.placed(record.sites[int(columns.sites[at])]):
        report("NK409", message, remedy=_remedy(columns, at, name, is_swap=not returned), severity=severity)


def _first_write(columns: Columns, writes: Array, elements: Array, itemsize: int) -> tuple[int, int] | None:
    """Return the first operand of ``writes`` that covers one of ``elements``, and its first such element."""
    touched: dict[tuple[int, int], Array] = {}
    for operand in map(int, writes):
        key = int(columns.layouts[operand]), int(columns.byte_offsets[operand])
        if key not in touched:
            touched[key] = elements & touched_elements(View(LAYOUTS[key[0]], key[1], None), elements.size, itemsize)
            if touched[key].any():
                return operand, int(touched[key].argmax())
    return None


def _remedy(columns: Columns, at: int, name: str, *, is_swap: bool) -> str:
    """Return the remedy for an instruction that writes into an argument; ``is_swap``: its operands may be swapped."""
    plan = columns.record.plans[int(columns.plans[at])].plan
    sources = columns.storages[(columns.positions == at) & ~columns.writes]
    if (
        is_swap
        and plan.name in _COPIES
        and sources.size
        and not any(_holds_data(columns, int(each), at) for each in sources)
    ):
        return _SWAPPED.format(name=plan.name)
    return (
        "Write to a tensor of the kernel in nl.shared_hbm and return it. Where the kernel is to change its argument, "
        f"return all of it too, or name it: mutates=({name!r},)."
    )


def _holds_data(columns: Columns, storage: int, before: int) -> bool:
    """Return whether a tensor held data before an instruction: an argument, or written by more than memset."""
    known = columns.record.storages.get(storage)
    if known is None or known.is_given:
        return True
    written = columns.positions[(columns.storages == storage) & columns.writes]
    names = {columns.record.plans[number].plan.name for number in np.unique(columns.plans[written[written < before]])}
    return not names <= {"memset"}
