"""The tensors that must fit into SBUF and PSUM, and the bytes of a partition that they take.

A tensor takes its bytes of the partitions that it lies on. Tensors of at most 32 or 64 partitions may lie beside each
other in the same bytes (start partitions 0, 32, 64, 96 and 0, 64, trainium_inferentia2_arch), so that they count for a
quarter and a half: tensors that do not fit by this count do not fit in any arrangement. Likewise PSUM is counted in
bytes, not in banks: that a small tile has a bank of its own is documented for the legacy dialect's direct allocation
only.
"""

from __future__ import annotations

from math import prod
from operator import attrgetter

import numpy as np

from nkitools.chip.dtypes import as_dtype
from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.facts.light_classes import NamedTuple, dataclass
from nkitools.record.record import Record, StorageRecord


class Memory(NamedTuple):
    """A limited memory: its name, its rule, and the bytes of a partition that a kernel may use.

    ``size``: these bytes in words. ``spills``: whether the compiler moves tensors that do not fit to HBM. ``foreseen``:
    whether the simulator predicts which.
    """

    name: str
    rule: str
    capacity: int
    size: str
    spills: bool
    foreseen: bool


@dataclass(frozen=True)
class Demand:
    """The memory that an instruction needs: its position, the bytes of a partition, and the tensors.

    ``tensors``: their storages, each with the position at which its life begins. ``beside``: whether some have so few
    partitions that they count as lying side by side. ``owner``: the number of the program.
    """

    position: int
    nbytes: int
    tensors: tuple[tuple[int, int], ...]
    beside: bool
    owner: int = 0


_FORM = attrgetter("memory", "dtype", "shape", "has_address")


def partition_bytes(storage: StorageRecord) -> int:
    """Return the bytes of each partition that a tensor on chip takes."""
    return prod(storage.shape[1:]) * as_dtype(storage.dtype).itemsize


def _sizes(form: tuple[str, str, tuple[int, ...], bool], chip: Generation) -> tuple[int, int, int]:
    """Return a tensor's bytes of a partition, these times the quarters of the partitions used, and all bytes."""
    _, dtype, shape, _ = form
    nbytes = prod(shape[1:]) * as_dtype(dtype).itemsize
    quarters = min(chip.partitions, shape[0] + chip.start_partition_step - 1) // chip.start_partition_step
    return nbytes, nbytes * quarters, nbytes * shape[0]


class Tiles:
    """The tensors that must fit into one memory, with their sizes."""

    def __init__(self, ids: Array, sizes: Array, quarters: int) -> None:
        self.ids = ids  # ascending: storages are numbered as they are made
        self.quarters = quarters
        self.nbytes: Array = sizes[:, 0]  # of each partition
        self.areas: Array = sizes[:, 1]  # the same, times the quarters of the partitions that it lies on
        self.whole: Array = sizes[:, 2]  # of all partitions

    @classmethod
    def of_memories(cls, record: Record, chip: Generation, *, has_address: bool = False) -> dict[str, Tiles]:
        """Return the tensors of SBUF and of PSUM that have no address, or those that have one."""
        quarters = chip.partitions // chip.start_partition_step
        forms = list(map(_FORM, record.storages.values()))
        kinds = list(dict.fromkeys(forms))  # few, even of many tensors
        number = {kind: at for at, kind in enumerate(kinds)}
        which = np.fromiter(map(number.__getitem__, forms), np.int64, len(forms))
        ids = np.fromiter(record.storages, np.int64, len(forms))
        sizes = np.array([_sizes(kind, chip) for kind in kinds], np.int64).reshape(-1, 3)
        tiles = {}
        for memory in ("SBUF", "PSUM"):
            wanted = np.array([kind[0] == memory and kind[3] == has_address for kind in kinds], np.bool_)[which]
            tiles[memory] = cls(ids[wanted], sizes[which[wanted]], quarters)
        return tiles

    def places_of(self, storages: Array) -> Array:
        """Return the index of each storage among these tensors; -1 for other storages."""
        if not storages.size or not self.ids.size:
            return np.full(storages.size, -1)
        # The storages of a run are numbered one after the other: a table is shorter than the accesses, mostly.
        lowest, highest = min(storages.min(), self.ids[0]), max(storages.max(), self.ids[-1])
        places = np.full(int(highest - lowest) + 1, -1)
        places[self.ids - lowest] = np.arange(self.ids.size)
        return np.asarray(places[storages - lowest])

    def may_exceed(self, capacity: int) -> bool:
        """Return True if all tensors together, or one alone, exceed ``capacity``."""
        return bool(self.areas.sum() > capacity * self.quarters or (self.nbytes > capacity).any())

    def demand(self, position: int, tiles: Array, begins: Array) -> Demand:
        """Return the demand of ``tiles`` together at an instruction.

        ``begins``: the positions at which their lives begin.
        """
        area, largest = int(self.areas[tiles].sum()), int(self.nbytes[tiles].max())
        beside = bool((self.areas[tiles] < self.nbytes[tiles] * self.quarters).any())
        tensors = tuple(zip(self.ids[tiles].tolist(), begins.tolist(), strict=True))
        return Demand(position, max(-(-area // self.quarters), largest), tensors, beside)
