"""The facts of a storage that messages name, and the bytes that another storage has overwritten."""

from __future__ import annotations

from nkitools.chip.dtypes import DType
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.taken_bytes import Region
from nkitools.facts.light_classes import NamedTuple, dataclass


class Claim(NamedTuple):
    """The facts of a storage, or of a view on it, that messages name; they keep no storage alive."""

    id: int  # of the storage
    name: str  # that the author gave it
    memory: MemoryRegion
    dtype: DType
    shape: tuple[int, ...]
    region: Region  # the bytes of the memory that it reaches over
    words: str = ""  # of a grid's selection: its tile


@dataclass(frozen=True)
class Loss:
    """Bytes that another storage has overwritten.

    The other storage is described, not kept: two that overwrite each other in turns would keep each other alive.
    """

    region: Region
    by: Claim
    site: int  # of the instruction that did it
