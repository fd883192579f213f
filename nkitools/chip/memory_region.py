"""The memories that a tensor can live in."""

from __future__ import annotations

from enum import Enum


class MemoryRegion(Enum):
    """The memory of a tensor: nl.sbuf, nl.psum, nl.private_hbm or nl.shared_hbm. nl.hbm is another name of private_hbm.

    A tensor that a program allocates in ``private_hbm`` is its own; the k-th that each allocates in ``shared_hbm`` is
    one tensor of all programs of the launch.
    """

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
