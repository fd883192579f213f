"""The memories that a tensor can live in."""

from __future__ import annotations

from enum import Enum


class MemoryRegion(Enum):
    """The memory of a tensor. ``nl.hbm`` is an alias of ``private_hbm``."""

    sbuf = "sbuf"
    psum = "psum"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"

    def __repr__(self) -> str:
        return f"nl.{self.value}"

    # Members are single objects, so that their identity is a hash; Enum's own hashes the name at each look-up.
    __hash__ = object.__hash__


ON_CHIP = frozenset({MemoryRegion.sbuf, MemoryRegion.psum})

MEMORY_NAMES = {
    MemoryRegion.sbuf: "SBUF",
    MemoryRegion.psum: "PSUM",
    MemoryRegion.private_hbm: "HBM",
    MemoryRegion.shared_hbm: "shared HBM",
}
