"""The causes of undefined elements, so that a later use of them can name their source.

The written state shows that elements are undefined; this shows why. Only instructions under masks, instructions that
leave elements as they were, and those that copy undefined elements use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from nkitools.chip.layout import Layout
from nkitools.chip.memory import Storage
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor
from nkitools.facts.light_classes import NamedTuple

# The causes: a mask left elements out, an instruction documents elements as not modified, or no instruction wrote them.
MASK, UNMODIFIED, UNWRITTEN = "mask", "unmodified", "unwritten"

_MOST = 16  # what is kept of a storage; beyond that, masks are taken to have meant all of it


class Use(NamedTuple):
    """An instruction that computes with undefined elements, or puts them into HBM; a copy on chip is none."""

    what: str = ""  # the instruction and the elements, for a message
    site: int = -1
    decides: bool = False  # mixes defined elements with these, or puts them into HBM


class LeftOut(NamedTuple):
    """A cause of undefined elements, and the view that these are in."""

    site: int  # the call that left them out, or that made the tensor in which they were never written
    layout: Layout | None = None  # of the view; None: the whole storage
    byte_offset: int = 0  # of the view
    cause: str = MASK
    source: int = -1  # the id of the storage that they came from; -1: they were left out here
    use: Use = Use()  # the first one; of elements that a mask left out, the first that decides


def leave_out(
    storage: Storage,
    site: int,
    view: NkiTensor | None = None,
    cause: str = MASK,
    source: int = -1,
    use: Use = Use(),  # noqa: B008 - immutable
) -> None:
    """Note that elements of a storage, or of a view of it, are undefined because of the call at ``site``.

    ``use``: the first use of them.
    """
    if storage.full or site < 0:
        return
    kept = storage.left_out
    entry = LeftOut(site, None, 0, cause, source, use)
    if view is not None and len(kept) < _MOST:
        entry = entry._replace(layout=view.layout, byte_offset=view.byte_offset)
    if entry not in kept:
        storage.left_out = (*kept[-_MOST:], entry)


def inherit(storage: Storage, sources: Iterable[Any]) -> None:
    """Mark results of elements that a mask left out as undefined because of that mask."""
    for source in sources:
        behind: Storage | None = getattr(source, "storage", None)
        if behind is not None and behind.left_out and not behind.full:
            for each in behind.left_out:
                leave_out(storage, each.site, None, each.cause, each.source)


def carry(target: NkiTensor, source: NkiTensor, missing: Array, use: Use | None) -> None:
    """Note that elements of a result are undefined because missing elements of an operand are.

    ``use``: by the instruction that makes the result; None for a copy on chip. Elements that an instruction documents
    as not modified stay so in a copy; in computations they count as never written.
    """
    kept, none = source.storage.left_out, Use()
    unmodified = use is None and cause_of(source, missing, UNMODIFIED) is not None
    for each in kept:
        first = each.use if each.use.what or use is None else use
        if each.cause == MASK:
            first = first if first.decides else none
            leave_out(target.storage, each.site, target, MASK, source.storage.id, first)
        elif each.cause == UNWRITTEN or unmodified:
            leave_out(target.storage, each.site, target, each.cause, each.source, first)
    if not kept:
        leave_out(target.storage, source.storage.site, target, UNWRITTEN, source.storage.id, use or none)


def cause_of(tensor: NkiTensor, missing: Array, cause: str) -> LeftOut | None:
    """Return the write that left all missing elements undefined for this cause; None if some have another cause.

    If there are several, the one for the first element, preferably one whose use is known.
    """
    first = tuple(int(axis[0]) for axis in np.nonzero(missing))
    rest, found = missing, None
    for each in tensor.storage.left_out:
        if each.cause != cause:
            continue
        meant = _meant(tensor, each)
        if meant[first] and (found is None or (each.use.what and not found.use.what)):
            found = each
        rest = rest & ~meant
    return None if rest.any() else found


def travelled(tensor: NkiTensor, missing: Array) -> Array | None:
    """Return the missing elements that were computed from undefined ones of another tensor; None if there are none."""
    mine, found = tensor.storage.id, None
    for each in tensor.storage.left_out:
        if each.source not in (-1, mine):
            meant = _meant(tensor, each) & missing
            found = meant if found is None else found | meant
    return found if found is not None and found.any() else None


def _meant(tensor: NkiTensor, each: LeftOut) -> Array:
    """Return a mask of a tensor's elements that belong to the view of ``each``."""
    storage = tensor.storage
    if each.layout is None or storage.physical is not None:
        return np.ones(tensor.shape, np.bool_)
    # A storage that has nothing written but that view.
    other = Storage(storage.shape, storage.dtype, storage.memory)
    other.mark_written(each.layout, each.byte_offset)
    outside = other.unwritten(tensor.layout, tensor.byte_offset)
    return np.ones(tensor.shape, np.bool_) if outside is None else ~outside
