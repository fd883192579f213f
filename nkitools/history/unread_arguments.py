"""Arguments of a kernel, and parts of them, that no instruction reads (NK513): another part is read by mistake."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.element_boxes import boxes_text
from nkitools.chip.layout import LAYOUTS
from nkitools.chip.numerics import Array
from nkitools.history.unread import shows_what_is_read
from nkitools.record.columns import Columns, distinct
from nkitools.record.record import StorageRecord
from nkitools.record.reporter import Reporter
from nkitools.record.source_sites import Site
from nkitools.rules.finding import report

_MOST_VIEWS = 4096
_MOST_ELEMENTS = 1 << 24

_OTHER_PART = "Look at the start and the length of each load, and at the number of turns; or pass only what is needed."
_NO_ARGUMENT = "Read it where it is meant, or leave the argument out."

Views = tuple[tuple[int, int], ...]
"""Views, each by the number of its layout and its byte offset."""


def report_unread_arguments(columns: Columns, reporter: Reporter, kernel: Site, inputs: list[int]) -> None:
    """Report NK513 once for an argument: at the last line that reads another part of it, else at the ``kernel``.

    ``inputs``: the storages of the arguments; those of integers are left out, as they may be lengths and indices.
    Elements that an access with a mask may reach count as read. Runs that read indices, addresses or registers on the
    device are not checked.
    """
    record = columns.record
    if record.beside.indices or record.beside.flow or not shows_what_is_read(columns, reporter):
        return
    writes, storages = columns.writes, columns.storages
    if distinct(storages[~writes]).isdisjoint(inputs):
        return  # a kernel that reads no argument at all is an experiment
    seen = record.printed | {access.storage for access in record.outputs}
    for storage in inputs:
        known, mine = record.storages.get(storage), storages == storage
        if (
            known is None
            or not known.shape
            or not as_dtype(known.dtype).is_float
            or storage in seen
            or (mine & writes).any()
        ):
            continue
        left = unread_part(columns, known, mine)
        if left is None:
            continue
        name, at = record.name_of(storage), columns.positions[mine]
        site = record.sites[int(columns.sites[at[-1]])] if at.size else kernel
        if at.size:
            message, remedy = f"nothing reads `{boxes_text(name, left)}` of the argument `{name}`", _OTHER_PART
        else:
            message, remedy = f"nothing reads the argument `{name}` ({known.dtype} {list(known.shape)})", _NO_ARGUMENT
        with reporter.placed(site):
            report("NK513", message, remedy=remedy)


def unread_part(columns: Columns, known: StorageRecord, mine: Array) -> Array | None:
    """Return a mask of the elements of an argument that nothing reads; None if all are read, or if that is not known.

    ``mine``: a mask of the operands that read the argument.
    """
    return _unread(known, _views(columns, mine))


def _views(columns: Columns, mine: Array) -> Views:
    """Return the views of the operands ``mine``, each once."""
    layouts, offsets = columns.layouts[mine], columns.byte_offsets[mine]
    if layouts.size > _MOST_VIEWS:
        return tuple(map(tuple, np.unique(np.stack((layouts, offsets), axis=1), axis=0).tolist()))
    return tuple(sorted(set(zip(layouts.tolist(), offsets.tolist(), strict=True))))


def _unread(known: StorageRecord, views: Views) -> Array | None:
    """Return a mask of an argument's elements in none of the views; None if there are none, or too many to look at."""
    size = prod(known.shape)
    if size > _MOST_ELEMENTS or len(views) > _MOST_VIEWS or not size:
        return None
    if any(LAYOUTS[layout].elements >= size for layout, _ in views):
        return None
    itemsize = as_dtype(known.dtype).itemsize
    return _outside(known.shape, itemsize, views)


@lru_cache(maxsize=256)
def _outside(shape: tuple[int, ...], itemsize: int, views: Views) -> Array | None:
    """Return a mask of a tensor's elements in none of the views; None if there are none, or if that is not known."""
    read = np.zeros(prod(shape), np.bool_)
    for number, offset in views:
        layout = LAYOUTS[number]
        steps = [stride // itemsize for stride in layout.strides]
        if layout.reinterprets or any(stride % itemsize for stride in (*layout.strides, offset)):
            return None
        reach = [(extent - 1) * step for extent, step in zip(layout.shape, steps, strict=True)]
        first = offset // itemsize
        if first + sum(min(0, each) for each in reach) < 0 or first + sum(max(0, each) for each in reach) >= read.size:
            return None  # a view whose mask leaves out what lies outside
        np.ndarray(layout.shape, np.bool_, read, first, tuple(steps))[...] = True
    return None if read.all() else ~read.reshape(shape)
