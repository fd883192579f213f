"""Arguments that a kernel has changed, and does not return (NK409)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from nkitools.record.columns import Columns
from nkitools.record.reporter import Reporter
from nkitools.rules.finding import report

_SWAPPED = "The operands are swapped: {name}(dst, src). The destination comes first."
_COPIES = ("dma_copy", "dma_transpose", "tensor_copy")


def report_changed_arguments(
    columns: Columns, reporter: Reporter, asked: Iterable[int], is_unchanged: Callable[[int], bool], severity: str
) -> None:
    """NK409 at the first line that writes into an argument: of those ``asked``, by the numbers of their storages.

    ``is_unchanged``: whether an argument holds the bits that it held before, all the same.
    """
    record, writes = columns.record, columns.writes
    for storage in asked:
        mine = (columns.storages == storage) & writes
        if not mine.any() or is_unchanged(storage):
            continue
        known, at = record.storages[storage], int(columns.positions[mine][0])
        name = record.name_of(storage)
        message = (
            f"the kernel changes its argument `{name}` ({known.dtype} {list(known.shape)}), which it does not return"
        )
        with reporter.placed(record.sites[int(columns.sites[at])]):
            report("NK409", message, remedy=_remedy(columns, at, name), severity=severity)


def _remedy(columns: Columns, at: int, name: str) -> str:
    """Return what to do about an instruction that writes into an argument."""
    plan = columns.record.plans[int(columns.plans[at])].plan
    sources = columns.storages[(columns.positions == at) & ~columns.writes]
    if plan.name in _COPIES and sources.size and not any(_holds_data(columns, int(each), at) for each in sources):
        return _SWAPPED.format(name=plan.name)
    return (
        "Write to a tensor of the kernel in nl.shared_hbm and return it. Where the kernel is to change its argument, "
        f"return it too, or name it: mutates=({name!r},)."
    )


def _holds_data(columns: Columns, storage: int, before: int) -> bool:
    """Return whether a storage was given, or written by more than a fill, before an instruction."""
    known = columns.record.storages.get(storage)
    if known is None or known.is_given:
        return True
    written = columns.positions[(columns.storages == storage) & columns.writes]
    names = {columns.record.plans[number].plan.name for number in np.unique(columns.plans[written[written < before]])}
    return not names <= {"memset"}
