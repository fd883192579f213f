"""The elements that masks left out, so that a later use of them can name the mask.

Kept beside the written state, which shows that the elements are undefined and not why. Only instructions under masks,
and those that undefined elements travel through, ever come here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from nkitools.chip.layout import Layout
from nkitools.chip.memory import Storage
from nkitools.chip.numerics import Array
from nkitools.chip.tensor import NkiTensor

_MOST = 16  # what is kept of a storage; beyond that, masks are taken to have meant all of it


class LeftOut(NamedTuple):
    """A mask: the site of its call, and the view whose elements it left out (``layout`` None: the whole storage)."""

    site: int
    layout: Layout | None = None
    byte_offset: int = 0


def leave_out(storage: Storage, site: int, view: NkiTensor | None = None) -> None:
    """Remember that the mask of the call at ``site`` left out elements of a storage, or of a view of it."""
    if storage.full or site < 0:
        return
    kept = storage.left_out
    entry = LeftOut(site, view.layout, view.byte_offset) if view is not None and len(kept) < _MOST else LeftOut(site)
    if entry not in kept:
        storage.left_out = (*kept[-_MOST:], entry)


def inherit(storage: Storage, sources: Iterable[Any]) -> None:
    """Mark results of elements that a mask left out as undefined because of that mask."""
    for source in sources:
        behind: Storage | None = getattr(source, "storage", None)
        if behind is not None and behind.left_out and not behind.full:
            for each in behind.left_out:
                leave_out(storage, each.site)


def mask_of(tensor: NkiTensor, missing: Array) -> int | None:
    """Return the site of the mask that left out the first missing element; None where some were never touched."""
    first = tuple(int(axis[0]) for axis in np.nonzero(missing))
    rest, site = missing, None
    for each in tensor.storage.left_out:
        meant = _meant(tensor, each)
        if site is None and meant[first]:
            site = each.site
        rest = rest & ~meant
    return None if rest.any() else site


def _meant(tensor: NkiTensor, each: LeftOut) -> Array:
    """Return which elements of a tensor belong to the view of a mask."""
    storage = tensor.storage
    if each.layout is None or storage.physical is not None:
        return np.ones(tensor.shape, np.bool_)
    # A storage that has nothing written but that view.
    other = Storage(storage.shape, storage.dtype, storage.memory)
    other.mark_written(each.layout, each.byte_offset)
    outside = other.unwritten(tensor.layout, tensor.byte_offset)
    return np.ones(tensor.shape, np.bool_) if outside is None else ~outside
