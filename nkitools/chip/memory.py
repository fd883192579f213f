"""The memories of a core: storages, their places, and which of their elements were written.

Storages with addresses may share bytes of a memory, to reuse it. Writing to one takes those bytes from the others,
which remember the loss: a later read of lost bytes differs from a read of bytes that were never written.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import gcd
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from nkitools.chip.claims import Claim as Claim
from nkitools.chip.claims import Loss as Loss
from nkitools.chip.dtypes import DType
from nkitools.chip.layout import LAYOUTS as LAYOUTS
from nkitools.chip.layout import Layout as Layout
from nkitools.chip.layout import layout_of as layout_of
from nkitools.chip.memory_region import ON_CHIP as ON_CHIP
from nkitools.chip.memory_region import MemoryRegion as MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.chip.taken_bytes import Region, Runs, box_of, common, lower_box, lower_runs, runs_of
from nkitools.chip.unused_pages import unused_pages

if TYPE_CHECKING:
    from nkitools.chip.argument_types import FrameworkArray

POISON_INTEGER = 4  # what AWS's simulator leaves in unwritten integers (nki_simulator guide)

_MOST_WHOLE = 256  # views of one storage that are known to be written

_ids = itertools.count()  # of storages and physical memories
_new = object.__new__
_empty = np.empty
_SBUF, _PSUM = MemoryRegion.sbuf, MemoryRegion.psum
_NOTHING: Region = (0, 0, 0, 0)
_NO_VIEWS: frozenset[tuple[Layout, int]] = frozenset()  # of all storages that have no views to note yet


class Storage:
    """Bytes in one memory, and which of their elements were ever written.

    ``array`` is the whole storage as allocated: memory of its own, an argument's (``array=``, which is written
    already), or a window of the ``physical`` memory, which other storages may share. The written state is ``full``
    (everything was written), else a ``box`` as long as writes make one grow, column by column or row by row, else one
    flag (``written``) for each ``unit`` bytes; the unit is as long as the views that were looked at allow, and
    shrinks when one needs it.
    """

    # What most storages never get stands in the class: a storage is made for each tile.
    name = ""
    packed = True
    full = False
    physical: PhysicalMemory | None = None
    start_partition = 0
    start_byte = 0
    poisoned = False  # elements that were never written hold the sentinel
    placed_to_fit = False  # the compiler places it where accesses may begin (legacy, without an address)
    written: Array | None = None
    box: Region = _NOTHING  # of partitions and bytes, elsewhere than on chip of all bytes as one row
    whole: set[tuple[Layout, int]] | frozenset[tuple[Layout, int]] = _NO_VIEWS  # some views that were written whole
    losses: Sequence[Loss] = ()  # of bytes that storages at overlapping addresses have taken since they were written
    left_out: tuple[Any, ...] = ()  # the masks that left elements out, see `nkitools.chip.masked_out`
    origin: FrameworkArray | None = None
    excused: frozenset[str] = frozenset()
    foreign: list[Region] | None = None  # regions of PSUM that another instruction than a matmul wrote last
    sums: list[Any] | None = None  # unread sums of matmuls in PSUM, one list for all that have addresses
    # The truth value of a view, where an author may ask for one; it returns None where he may not.
    truth: Callable[[Any], bool | None] | None = None
    twin: Storage | None = None  # further digits in full precision, see `nkitools.chip.full_precision_shadow`
    guard: Callable[[Storage], None] | None = None  # of a caller's array that stays as it is: called before a write
    _raw: Array | None = None

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        memory: MemoryRegion,
        *,
        array: Array | None = None,
        physical: PhysicalMemory | None = None,
        name: str = "",
        site: int = -1,
        start_partition: int = 0,
        start_byte: int = 0,
    ) -> None:
        self.id = next(_ids)
        self.shape = shape
        self.dtype = dtype
        self.memory = memory
        self.site = site
        self.full = array is not None
        self.array: Array = np.empty(shape, dtype.dtype) if array is None else array
        self.physical = physical
        self.start_partition = start_partition
        self.start_byte = start_byte
        self.nbytes: int = self.array.nbytes
        self._remaining = self.nbytes
        self.free_bytes = self.nbytes // shape[0] if shape[0] else self.nbytes
        self.partition_bytes = self.free_bytes or 1  # an empty argument has no partition to divide by
        self.on_chip = memory is _SBUF or memory is _PSUM
        self.unit = self.free_bytes if self.on_chip else self.nbytes
        if memory is _PSUM:
            self.foreign = []
            self.sums = [] if physical is None else physical.sums
        if name:
            self.name = name
        if physical is not None:
            self._move_in(physical)

    def beginning(self) -> dict[str, Any]:
        """Return the attributes of a new storage, from which `again` makes others like it."""
        own = ("id", "array", "foreign", "sums")
        usual = vars(type(self))
        return {
            name: value for name, value in vars(self).items() if name not in own and value is not usual.get(name, self)
        }

    @classmethod
    def again(cls, beginning: dict[str, Any]) -> Storage:
        """Return the storage of a new tile that is like the one of a `beginning`."""
        self = _new(cls)
        self.__dict__ = facts = beginning.copy()
        facts["id"] = next(_ids)
        facts["array"] = _empty(facts["shape"], facts["dtype"].dtype)
        if facts["memory"] is _PSUM:
            facts["foreign"], facts["sums"] = [], []
        return self

    def _move_in(self, physical: PhysicalMemory) -> None:
        self._raw = physical.bytes
        strides = self.array.strides
        if self.on_chip:
            self.partition_bytes = physical.partition_bytes
            self.packed = self.partition_bytes == self.free_bytes
            strides = (self.partition_bytes, *strides[1:])
        self.array = self.window(self.shape, self.dtype, 0, strides)

    @property
    def region(self) -> Region:
        """Return the bytes of the physical memory that the storage claims; HBM is one row of bytes."""
        first, byte = self.start_partition, self.start_byte
        if not self.on_chip:
            return 0, 1, byte, byte + self.nbytes
        return first, first + self.shape[0], byte, byte + self.free_bytes

    def window(self, shape: tuple[int, ...], dtype: DType, byte_offset: int, strides: tuple[int, ...]) -> Array:
        """Return the elements at ``byte_offset`` and ``strides`` (in bytes), as a NumPy view."""
        raw = self._raw
        if raw is None:
            raw = self._raw = self.array.reshape(-1).view(np.uint8)
        start = self.start_partition * self.partition_bytes + self.start_byte if self.physical is not None else 0
        return np.ndarray(shape, dtype.dtype, raw, start + byte_offset, strides)

    def forget_windows(self) -> None:
        """Let the next views be made of ``array`` as it is by now."""
        self._raw = None

    def overlaps(self, other: Storage) -> bool:
        """Return whether two storages in one physical memory have bytes in common."""
        return common(self.region, other.region) is not None

    def mark_written(self, layout: Layout, byte_offset: int, where: Array | None = None) -> None:
        """Note that a view was written (``where``: only its true elements)."""
        if self.full:
            return
        is_all = where is None and layout.nbytes == self.nbytes and layout.injective
        if not is_all and (self._is_in_box(layout, byte_offset) or (layout, byte_offset) in self.whole):
            return
        if self.physical is not None:
            self.physical.claim(self, layout, byte_offset, where)
        if is_all:
            self._fill()
            return
        if where is not None:
            np.copyto(self._elements(layout, byte_offset), True, where=where[..., None])
        else:
            if self.written is None and layout.dense and self._grow(layout, byte_offset):
                return
            self._runs(layout, byte_offset)[...] = True
            self._note_whole((layout, byte_offset))
        self._remaining -= layout.nbytes
        if self._remaining <= 0:
            self._recount()

    def _is_in_box(self, layout: Layout, byte_offset: int) -> bool:
        """Return whether the written elements are a box that holds a view."""
        above, below, left, right = self.box
        if self.written is not None or not below or not layout.reach:
            return False
        if not self.on_chip:
            return left <= byte_offset and byte_offset + layout.reach <= right
        first, begin = divmod(byte_offset, self.partition_bytes)
        if begin < left or begin + layout.reach > right or first < above:
            return False
        return first + (layout.partitions - 1) * layout.partition_step < below

    def _grow(self, layout: Layout, byte_offset: int) -> bool:
        """Extend the box of written elements by a dense view; return False if both together are no box."""
        if self.on_chip:
            first, begin = divmod(byte_offset, self.partition_bytes)
            last = first + layout.partitions
        else:
            first, last, begin = 0, 1, byte_offset
        end = begin + layout.dense
        above, below, left, right = self.box
        if not below:
            above, below, left, right = first, last, begin, end
        elif first == above and last == below and begin <= right and end >= left:
            left, right = min(begin, left), max(end, right)
        elif begin == left and end == right and first <= below and last >= above:
            above, below = min(first, above), max(last, below)
        else:
            return False
        self.box = above, below, left, right
        if (below - above) * (right - left) == self.nbytes:
            self._fill()
        return True

    def mark_unwritten(self, layout: Layout, byte_offset: int, where: Array) -> None:
        """Forget the true lanes of a view: an undefined value has been put there."""
        if where.any():
            np.copyto(self._elements(layout, byte_offset), False, where=where[..., None])
            self.whole = _NO_VIEWS
            self._remaining = 1  # at least, so that the next write counts

    def lacks(self, layout: Layout, byte_offset: int) -> bool:
        """Return whether some element of a view was never written."""
        if self.full:
            return False
        if self.written is None:
            if not self.box[1]:
                return True
            if self._is_in_box(layout, byte_offset):
                return False
        view = (layout, byte_offset)
        if view in self.whole:
            return False
        if not self._runs(layout, byte_offset).all():
            return True
        self._note_whole(view)
        return False

    def holds(self, layout: Layout, byte_offset: int) -> bool | None:
        """Return whether a view was written: True for all of its elements, False for none, None for some."""
        if not self.lacks(layout, byte_offset):
            return True
        return None if self.written is not None and self._runs(layout, byte_offset).any() else False

    def unwritten(self, layout: Layout, byte_offset: int) -> Array | None:
        """Return a mask of the view's elements that were never written; None if all were."""
        if not self.lacks(layout, byte_offset):
            return None
        if self.written is None:
            return np.ones(layout.shape, np.bool_)
        return np.asarray(~self._elements(layout, byte_offset).all(axis=-1))

    def _note_whole(self, view: tuple[Layout, int]) -> None:
        whole = self.whole
        if isinstance(whole, set) and len(whole) < _MOST_WHOLE:
            whole.add(view)
        else:
            self.whole = {view}

    @property
    def holds_anything(self) -> bool:
        """Return whether a byte was written, and not taken by a storage at an overlapping address."""
        return self.full or bool(self.box[1] if self.written is None else self.written.any())

    def flags_by_partition(self, grain: int) -> Array:
        """Return the written flags, a row for each partition; their ``unit`` then divides ``grain``."""
        self._unit_of(grain, 0)
        assert self.written is not None
        return self.written.reshape(self.shape[0] if self.on_chip else 1, -1)

    def lose(self, loss: Loss) -> None:
        """Bytes were taken: their flags are down already."""
        self.losses = [*self.losses[-15:], loss]  # who reads asks for the last one; of many the early ones are old
        self.whole = _NO_VIEWS
        if self.written is not None:
            self._recount()

    def empty(self) -> None:
        """Let nothing count as written."""
        self.full, self.written, self.box, self._remaining = False, None, _NOTHING, self.nbytes

    def _fill(self) -> None:
        self.full = True
        self.written = None
        self.whole = _NO_VIEWS
        self.losses = ()

    def _runs(self, layout: Layout, byte_offset: int) -> Array:
        """Return the flags of a view by its contiguous runs: they cover its bytes and no others."""
        unit = self._unit_of(layout.grain, byte_offset)
        dimensions = layout.runs
        strides = [stride // unit for _, stride in dimensions]
        return self._flags([size for size, _ in dimensions], strides, layout.run // unit, layout, byte_offset)

    def _elements(self, layout: Layout, byte_offset: int) -> Array:
        """Return the flags of a view by its elements, with one more axis: the units of each element."""
        itemsize = layout.dtype.itemsize
        unit = self._unit_of(itemsize, byte_offset)
        strides = [stride // unit for stride in layout.strides]
        return self._flags(layout.shape, strides, itemsize // unit, layout, byte_offset)

    def _flags(self, shape: Sequence[int], strides: list[int], units: int, layout: Layout, byte_offset: int) -> Array:
        if not self.packed:
            partition, rest = divmod(byte_offset, self.partition_bytes)
            byte_offset = partition * self.free_bytes + rest
            strides[0] = layout.strides[0] // self.partition_bytes * (self.free_bytes // self.unit)
        start = byte_offset // self.unit
        return np.ndarray((*shape, units), np.bool_, self.written, start, (*strides, 1))

    def _unit_of(self, grain: int, byte_offset: int) -> int:
        """Return the unit, made so short that it divides ``grain`` and the offset."""
        if not self.packed:
            byte_offset %= self.partition_bytes  # the step from partition to partition always divides
        old = self.unit
        written = self.written
        if written is None:
            above, below, left, right = self.box
            unit = self.unit = gcd(old, grain, byte_offset, left, right)
            # Pages of np.zeros cost nothing until a flag in them is set.
            flags: Array = np.zeros(self.nbytes // unit, np.bool_)
            if self.full:
                flags[:] = True
            elif below:
                rows = flags.reshape(self.shape[0] if self.on_chip else 1, -1)
                rows[above:below, left // unit : right // unit] = True
            self.written = flags
            self._remaining = self.nbytes - (below - above) * (right - left)
            self.full = False
            return unit
        unit = gcd(old, grain, byte_offset)
        if unit != old:
            self.written = np.repeat(written, old // unit)
            self.unit = unit
        return unit

    def _recount(self) -> None:
        assert self.written is not None
        self._remaining = (self.written.size - int(np.count_nonzero(self.written))) * self.unit
        if self._remaining == 0:
            self._fill()

    def poison_unwritten(self) -> None:
        """Fill unwritten elements with the sentinel: NaN for floats, 4 for integers, as AWS's simulator does.

        Bytes that a storage at an overlapping address has written stay: they are its values.
        """
        if self.full:
            return
        if self.physical is not None and self.physical.others(self):
            return
        layout = layout_of(self.shape, self.array.strides, self.dtype, self.memory, 0, 0, 1)
        missing = self.unwritten(layout, 0)
        if missing is None:
            return
        self.poisoned = True
        if self.dtype.kind == "packed":
            np.copyto(self.array.view(f"u{self.dtype.itemsize}"), POISON_INTEGER, where=missing)
        else:
            sentinel = np.nan if self.dtype.is_float else POISON_INTEGER
            np.copyto(self.array, np.array(sentinel, self.dtype.dtype), where=missing)


class PhysicalMemory:
    """All bytes of a core's SBUF or PSUM, or those of HBM that addresses name.

    The tenants are the storages that have written some of the bytes and still own some. A storage refers to its memory,
    the memory only weakly to its tenants: bytes of a tensor that the kernel has dropped do not matter.
    """

    __slots__ = ("_tenants", "bytes", "id", "partition_bytes", "partitions", "site", "sums")

    def __init__(self, partitions: int, partition_bytes: int, site: Callable[[], int] = lambda: -1) -> None:
        self.id = next(_ids)
        self.partitions = partitions
        self.partition_bytes = partition_bytes
        self.bytes: Array = unused_pages(partitions * partition_bytes)
        self._tenants: dict[int, ref[Storage]] = {}
        self.site = site
        self.sums: list[Any] = []  # of its tenants: see Storage

    def claim(self, writer: Storage, layout: Layout, byte_offset: int, where: Array | None) -> None:
        """Note that ``writer`` writes to a view of itself (``where``: its true elements); other tenants lose those
        bytes.
        """
        others = self.others(writer)
        if writer.id not in self._tenants:
            self._tenants[writer.id] = ref(writer)
        if not others:
            return
        claim = Claim(writer.id, writer.name, writer.memory, writer.dtype, writer.shape, writer.region)
        start = byte_offset + writer.start_partition * writer.partition_bytes + writer.start_byte
        box = box_of(layout, start, self.partition_bytes) if where is None else None
        runs = runs_of(layout, start, where, self.partition_bytes) if box is None else None
        for other in others:
            region = _taken(other, box, runs)
            if region is not None:
                other.lose(Loss(region, claim, self.site()))
            if not other.holds_anything:
                del self._tenants[other.id]

    @property
    def tenants(self) -> list[Storage]:
        """Return the tenants that the kernel still has, and forget the others."""
        found = [(number, each()) for number, each in self._tenants.items()]
        for number, each in found:
            if each is None:
                del self._tenants[number]
        return [each for _, each in found if each is not None]

    def others(self, storage: Storage) -> list[Storage]:
        """Return the tenants that have bytes in common with a storage."""
        return [each for each in self.tenants if each is not storage and each.overlaps(storage)]


def _taken(tenant: Storage, box: Region | None, runs: Runs | None) -> Region | None:
    """Take a box or runs from a tenant; return the region around the bytes that it owned, or None if it owned none.

    The region counts from the tenant's first partition, or from the first partition that is taken.
    """
    own = tenant.region
    first, first_byte = own[0], own[2]
    if box is not None:
        both = common(box, own)
        if both is None:
            return None
        if tenant.full and both == own:
            tenant.empty()
            return own
        begin, end = both[2] - first_byte, both[3] - first_byte
        flags = tenant.flags_by_partition(gcd(begin, end))
        at = begin // tenant.unit
        found = lower_box(flags[both[0] - first : both[1] - first, at : end // tenant.unit])
        first, first_byte = both[0], both[2]
    else:
        assert runs is not None
        starts = runs.starts - first_byte
        flags = tenant.flags_by_partition(gcd(runs.length, *(int(each) for each in np.unique(starts % runs.length))))
        unit = tenant.unit
        found = lower_runs(flags, runs.partitions - first, starts // unit, runs.length // unit)
    if found is None:
        return None
    unit = tenant.unit
    return first + found[0], first + found[1], first_byte + found[2] * unit, first_byte + found[3] * unit
