"""``nl.ndarray`` of a tile that the same line has made before: nothing about it is looked at twice."""

from __future__ import annotations

import sys
from typing import NamedTuple

from nkitools.chip.core import Core
from nkitools.chip.dtypes import DType
from nkitools.chip.host_memory import MOST_OF_A_TILE
from nkitools.chip.layout import Layout
from nkitools.chip.memory import Storage
from nkitools.chip.memory_region import ON_CHIP, MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.record.record import Record, StorageRecord

_SBUF = MemoryRegion.sbuf
_of_layout, _new = Storage.of_layout, object.__new__


class _KnownTile(NamedTuple):
    """A tile by its line and arguments: its layout, its site, and the facts that records keep."""

    layout: Layout
    site: int
    facts: StorageRecord


def tile_again(
    core: Core,
    shape: tuple[int, ...],
    dtype: DType,
    buffer: MemoryRegion = _SBUF,
    name: str | None = "",
    address: tuple[int, ...] | None = None,
) -> NkiTensor | None:
    """Return a new tile where the author's line has made one with these arguments before in this run, else None."""
    if name != "" or address is not None:
        return None
    record: Record = core.record
    frame = sys._getframe(2)
    known = record.calls.get((id(frame.f_code), frame.f_lasti, shape, id(dtype), id(buffer)))
    if known is None:
        return None
    for size in shape:
        if size.__class__ is not int:  # True and 1.0 equal 1
            return None
    layout, site, facts = known
    storage = _of_layout(layout, site)
    record.storages[storage.id] = facts
    if record.observers:
        record.allocated(storage, facts)
    tile: NkiTensor = _new(NkiTensor)
    tile.storage = storage
    tile.array = storage.array
    tile.dtype = layout.dtype
    tile.shape = layout.shape
    tile.byte_offset = 0
    tile._layout = layout
    return tile


def keep_tile(
    core: Core,
    tile: NkiTensor,
    shape: tuple[int, ...],
    dtype: DType,
    buffer: MemoryRegion = _SBUF,
    name: str | None = "",
    address: tuple[int, ...] | None = None,
) -> None:
    """Keep what a call has made where the next one of the same line makes the same: a nameless tile of usual size."""
    storage, layout, record = tile.storage, tile.layout, core.record
    is_usual = buffer in ON_CHIP and dtype is layout.dtype and shape.__class__ is tuple and shape == layout.shape
    if not is_usual or name != "" or address is not None or core.dialect.places_tiles:
        return
    frame = sys._getframe(2)
    place = id(frame.f_code), frame.f_lasti
    site = record.sites.known.get(place)
    if site is None or site != storage.site or record.sites.all[site].is_handed_on or dtype.is_wide:
        return  # the line is none of the author's, or another one names the tile
    if storage.nbytes <= MOST_OF_A_TILE:
        facts = StorageRecord.of_tile(layout, site)
        record.calls[*place, shape, id(dtype), id(buffer)] = _KnownTile(layout, site, facts)
