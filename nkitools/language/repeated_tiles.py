"""A tile that the same line of the author's has made before: nothing about it is looked at twice.

The line calls ``nl.ndarray``, or a function of the language that makes tiles for its results.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

from nkitools.chip.core import Core
from nkitools.chip.dtypes import DType
from nkitools.chip.host_memory import MOST_OF_A_TILE
from nkitools.chip.layout import Layout
from nkitools.chip.memory import Storage
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.facts.light_classes import NamedTuple
from nkitools.record.record import Record, StorageRecord
from nkitools.record.source_sites import caller_of

_again, _new = Storage.again, object.__new__


class _KnownTile(NamedTuple):
    """A tile by its line and arguments: its layout, what its storage begins with, and the facts that records keep."""

    layout: Layout
    beginning: dict[str, Any]
    facts: StorageRecord


# Of a line whose tile is what its function returns: the caller's line names the tile, and is a part of the key.
_HANDED_ON: Any = object()


def tile_again(
    core: Core, frame: FrameType, shape: tuple[int, ...], dtype: DType, buffer: MemoryRegion
) -> NkiTensor | None:
    """Return a new tile if the line of the author's ``frame`` has made one with these arguments, else None.

    Repeats skip the checks. TypeError for a shape that is a list.
    """
    record: Record = core.record
    at = id(frame.f_code) + frame.f_lasti
    latest = record.tiles.get(at)
    if latest is not None and latest[0] is shape and latest[1] is dtype and latest[2] is buffer:
        known = latest[3]
    else:
        known = _known_tile(record, frame, shape, dtype, buffer)
        if known is None:
            return None
    layout, beginning, facts = known
    storage = _again(beginning) if layout.on_chip else core.hbm_again(beginning)
    if storage is None:
        return None
    if record.observers or storage.id < record.oldest:
        record.allocated(storage, facts)
    else:
        record.storages[storage.id] = facts
    tile: NkiTensor = _new(NkiTensor)
    tile.storage = storage
    tile.array = storage.array
    tile.dtype = layout.dtype
    tile.shape = layout.shape
    tile.byte_offset = 0
    tile._layout = layout
    return tile


def _known_tile(
    record: Record, frame: FrameType, shape: tuple[int, ...], dtype: DType, buffer: MemoryRegion
) -> _KnownTile | None:
    """Return a tile with these arguments that a line has made before, and let it be the line's last one."""
    key = (id(frame.f_code), frame.f_lasti, shape, id(dtype), id(buffer))
    known: _KnownTile | None = record.calls.get(key)
    if known is _HANDED_ON:
        outer = caller_of(frame)
        known = None if outer is None else record.calls.get((*key, id(outer.f_code), outer.f_lasti))
    if known is None:
        return None
    for size in shape:
        if size.__class__ is not int:  # True and 1.0 equal 1
            return None
    if record.calls[key] is known:
        record.tiles[id(frame.f_code) + frame.f_lasti] = shape, dtype, buffer, known
    return known


def keep_tile(
    core: Core, frame: FrameType, tile: NkiTensor, shape: tuple[int, ...], dtype: DType, buffer: MemoryRegion
) -> None:
    """Keep what a call has made where the next one of the same line makes the same: a nameless one of usual size."""
    storage, layout, record = tile.storage, tile.layout, core.record
    is_new = storage.physical is None and not storage.holds_anything  # not made, and written, by another program
    is_usual = dtype is layout.dtype and shape.__class__ is tuple and shape == layout.shape
    if not (is_new and is_usual) or dtype.is_wide or storage.nbytes > MOST_OF_A_TILE:
        return
    sites = record.sites
    key: tuple[Any, ...] = (id(frame.f_code), frame.f_lasti, shape, id(dtype), id(buffer))
    site = sites.known.get(key[:2], -1)
    if sites[site].is_handed_on:
        outer = caller_of(frame)
        if outer is None or sites[sites.known.get((id(outer.f_code), outer.f_lasti), -1)].is_handed_on:
            return
        record.calls[key] = _HANDED_ON
        key += id(outer.f_code), outer.f_lasti
    elif site < 0 or site != storage.site:
        return  # the line is none of the author's
    record.calls[key] = _KnownTile(layout, storage.beginning(), record.storages[storage.id])
