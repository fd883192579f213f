"""One running NeuronCore: its id, its memories and its record."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from functools import cached_property, partial
from typing import Any

from nkitools.chip.dialect_semantics import MODERN, DialectSemantics
from nkitools.chip.dtypes import DType
from nkitools.chip.host_memory import MOST_OF_A_TILE, HostMemory
from nkitools.chip.memory import PhysicalMemory, Storage
from nkitools.chip.memory_region import ON_CHIP, MemoryRegion
from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.facts.light_classes import dataclass, field
from nkitools.facts.versions import LanguageVersion, by_full_name, language_of
from nkitools.rules.finding import not_modelled, refuse, report

HBM_WINDOW = 16 << 30  # bytes of HBM in which tensors are placed by address; pages that are not used take no memory


@dataclass
class SharedHbm:
    """The shared_hbm allocations of one launch: the k-th of every program is one buffer.

    ``sites``: the sites of each program's allocations, by its index in the grid. ``constants``: compiled-in constants
    by number, and identity matrices by size and dtype.
    """

    storages: list[Storage] = field(default_factory=list)
    sites: dict[tuple[int, ...], list[int]] = field(default_factory=dict)
    constants: dict[Any, Storage] = field(default_factory=dict)
    physical: PhysicalMemory | None = None  # what addresses in shared HBM name


@dataclass(eq=False)
class World:
    """The communicating ranks of a run: how many, and the offers of each program that waits in a collective.

    ``standing`` is indexed by the scheduler's numbers of programs.
    """

    size: int
    standing: dict[int, Any] = field(default_factory=dict)


@dataclass(eq=False)
class Core:
    """One program running on one core."""

    generation: Generation
    record: Any  # takes instructions, prints and findings; handed in, as the chip lies below the record
    plans: dict[tuple[Any, ...], Any]  # in full precision only those whose operands are as wide as declared
    grid: tuple[int, ...] = ()
    program: tuple[int, ...] = ()
    shared: SharedHbm = field(default_factory=SharedHbm)
    dialect: DialectSemantics = MODERN  # of the kernel
    full_plans: dict[Any, Any] | None = None  # the plans of full precision, None in precise mode
    input_ids: frozenset[int] = frozenset()  # the storages of the arguments
    constant_count: int = 0  # constants so far
    language: LanguageVersion = field(default_factory=language_of)  # the version of NKI that holds
    sums_in_order: bool = False  # float32 is added along free axes in the order of elements
    noticed: set[tuple[str, int, str]] = field(default_factory=set)  # file, line and message of each NK618
    compile_config: Any = None  # of the outermost kernel (`launch.compile_config`, which lies above the chip)
    allows_nested_configs: bool = False  # nested kernels may have another one
    no_reorder: int = 0  # blocks of nl.no_reorder that are open
    device_loop: Any = None  # the innermost loop on the device that is running
    prepared: Any = None  # the prepare of a collective that waits for its trigger
    make_baton: Callable[[], Any] | None = None  # None outside of a launch
    team: tuple[int, ...] = ()  # the scheduler's numbers of this launch's programs
    world: World | None = None  # the ranks of the run, None where it was launched without ranks
    rank: int | None = None  # the rank of this program
    evidence: list[Any] = field(default_factory=list)  # of the running instruction, see `nkitools.chip.numeric_flags`
    has_infinities: bool = False  # infinities that the kernel has made were reported
    undone: set[int] = field(default_factory=set)  # storages that depend on refused instructions
    reduce_registers: dict[str, Array] = field(default_factory=dict)
    # By engine: the reductions into lanes of its registers, the last at the end.
    reduce_chains: dict[str, list[Any]] = field(default_factory=dict)
    random_states: dict[str, Array] = field(default_factory=dict)
    host: HostMemory | None = None  # counts what tensors in HBM take of the host
    # Of an assignment that goes on and was reported: the author's frame, the tensor, its name and the loop counters.
    counted: tuple[Any, int, str, dict[str, int]] | None = None
    careful: bool = False  # every instruction is issued carefully from here on
    # Of calls that break a rule, by all that the reports about them depend on (`nkitools.issue.broken_plans`).
    broken_plans: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    # The instruction that wrote each lane of an engine's state last, by the state's name; -1 for none.
    state_writers: dict[str, Array] = field(default_factory=dict)
    _memories: dict[MemoryRegion, PhysicalMemory] = field(default_factory=dict)

    @cached_property
    def baton(self) -> Any:
        """Lets programs wait (``launch.program_scheduler``); None outside of a launch."""
        return None if self.make_baton is None else self.make_baton()

    def allocate(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        memory: MemoryRegion,
        name: str = "",
        address: tuple[int, ...] | None = None,
    ) -> Storage:
        """Return new storage; shared HBM is shared with the same allocation of the launch's other programs.

        ``address``: (partition, byte offset) on chip, (byte offset,) in HBM.
        """
        if dtype.is_wide:
            check_width(dtype, memory, math.prod(shape), self.language)
        site = self.record.naming_site()
        if memory is MemoryRegion.shared_hbm:
            return self._allocate_shared(shape, dtype, name, site, address)
        if address is not None:
            storage = self._allocate_at(shape, dtype, memory, name, site, address)
        else:
            storage = self._new(shape, dtype, memory, name, site)
            storage.placed_to_fit = self.dialect.places_tiles
        self.record.allocated(storage)
        return storage

    def _new(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        memory: MemoryRegion,
        name: str,
        site: int,
        beginning: dict[str, Any] | None = None,
    ) -> Storage:
        """Return a new storage. MemoryLimitError if the run would take more memory than it may."""
        try:
            if beginning is not None:
                storage = Storage.again(beginning)
            else:
                storage = Storage(shape, dtype, memory, name=name, site=site)
        except (MemoryError, ValueError) as error:  # NumPy's: more than there is, more than an address can be
            if self.host is None:
                raise
            raise self.host.failed(shape, dtype, name, partial(self.record.place_of, site)) from error
        if self.host is not None and (not storage.on_chip or storage.nbytes > MOST_OF_A_TILE):
            self.host.hold(storage, self.record.place_of)  # nothing is written yet: its pages are not there
        return storage

    def hbm_again(self, beginning: dict[str, Any]) -> Storage | None:
        """Return another storage in HBM with the `Storage.beginning` of one; None where another program has made it."""
        shape, dtype, memory, site = beginning["shape"], beginning["dtype"], beginning["memory"], beginning["site"]
        shared = self.shared if memory is MemoryRegion.shared_hbm else None
        if shared is not None:
            sites = shared.sites.setdefault(self.program, [])
            if len(sites) != len(shared.storages):
                return None
            self._check_order(sites, site)
            sites.append(site)
        storage = self._new(shape, dtype, memory, "", site, beginning)
        if shared is not None:
            shared.storages.append(storage)
        return storage

    def _allocate_shared(
        self, shape: tuple[int, ...], dtype: DType, name: str, site: int, address: tuple[int, ...] | None
    ) -> Storage:
        sites = self.shared.sites.setdefault(self.program, [])
        index = len(sites)
        self._check_order(sites, site)
        sites.append(site)
        if index < len(self.shared.storages):
            storage = self.shared.storages[index]
            if storage.shape != shape or storage.dtype is not dtype:
                refuse(
                    "NK208",
                    f"shared_hbm allocation {index} is {dtype} {list(shape)} in this program and {storage.dtype} "
                    f"{list(storage.shape)} in another; the k-th allocation of every program is one buffer",
                )
            return storage
        if address is None:
            storage = self._new(shape, dtype, MemoryRegion.shared_hbm, name, site)
        else:
            storage = self._allocate_at(shape, dtype, MemoryRegion.shared_hbm, name, site, address)
        self.shared.storages.append(storage)
        self.record.allocated(storage)
        return storage

    def _check_order(self, sites: list[int], site: int) -> None:
        """NK208: programs create their shared_hbm tensors in different orders."""
        index, storages = len(sites), self.shared.storages
        is_alone = len(self.shared.sites) == 1  # no other program has made one so far
        if site < 0 or is_alone or (index < len(storages) and storages[index].site == site):
            return
        made = [each.site for each in storages]
        for other, theirs in enumerate(made):
            if theirs == site and sites[other : other + 1] != [site]:
                report(
                    "NK208",
                    f"shared_hbm allocation {index} of this program is allocation {other} of another program; the k-th "
                    "allocation of every program is one buffer, so that each of the two stands for another tensor here",
                    remedy="Create the same shared_hbm tensors in the same order in every program, in front of any "
                    "`if` on nl.program_id.",
                )
                return

    def _allocate_at(
        self, shape: tuple[int, ...], dtype: DType, memory: MemoryRegion, name: str, site: int, address: tuple[int, ...]
    ) -> Storage:
        """Storage at an address of the physical array, shared with whatever else claims those bytes."""
        if memory not in ON_CHIP:
            byte = self._byte_in_hbm(math.prod(shape) * dtype.itemsize, memory, address)
            _check_byte(byte, dtype, address)
            physical = self._physical(memory)
            return Storage(shape, dtype, memory, physical=physical, name=name, site=site, start_byte=byte)
        partition, byte = address
        physical = self._physical(memory)
        partitions, partition_bytes = physical.partitions, physical.partition_bytes
        free_bytes = math.prod(shape[1:]) * dtype.itemsize
        if shape[0] > partitions:
            message = f"a tensor at address {address} has {shape[0]} partitions; a NeuronCore has {partitions}"
            refuse("NK101", message, facts={"partitions": shape[0], "limit": partitions})
        if partition < 0 or byte < 0 or partition + shape[0] > partitions or byte + free_bytes > partition_bytes:
            refuse(
                "NK402",
                f"a tensor of {shape[0]} partitions and {free_bytes} bytes per partition at address {address} leaves "
                f"{memory.name.upper()} (partitions 0..{partitions - 1}, bytes 0..{partition_bytes - 1})",
                remedy="An address is (partition, byte within the partition): place the tensor lower, make it smaller, "
                "or leave address out, so that the compiler places it.",
            )
        _check_byte(byte, dtype, address)
        return Storage(
            shape, dtype, memory, physical=physical, name=name, site=site, start_partition=partition, start_byte=byte
        )

    def _byte_in_hbm(self, nbytes: int, memory: MemoryRegion, address: tuple[int, ...]) -> int:
        """Return the byte offset that an address in HBM is. Errors: NK207, NK402, NK607."""
        where = f"address={address!r} is given for a tensor in {memory.value}"
        if not self.language.hbm_addresses:
            row = by_full_name()["nki.%hbm_addresses"]
            refuse("NK207", f"{where}; only SBUF and PSUM have addresses: that of HBM {row.absence(self.language)}")
        if len(address) != 1:
            refuse("NK207", f"{where}; in HBM an address is (byte offset,)")
        if address[0] < 0:
            refuse("NK402", f"{where}; HBM begins at byte 0")
        if address[0] + nbytes > HBM_WINDOW:
            not_modelled(f"{where}; nkitools models addresses in the first {HBM_WINDOW >> 30} GiB of HBM only")
        return address[0]

    def _physical(self, memory: MemoryRegion) -> PhysicalMemory:
        """Return the physical memory of this core, made when the first tensor asks for an address."""
        if memory is MemoryRegion.shared_hbm:
            self.shared.physical = self.shared.physical or PhysicalMemory(1, HBM_WINDOW, self.record.site)
            return self.shared.physical
        physical = self._memories.get(memory)
        if physical is None:
            chip = self.generation
            size = {MemoryRegion.sbuf: chip.sbuf_partition_bytes, MemoryRegion.psum: chip.psum_partition_bytes}
            rows = chip.partitions if memory in ON_CHIP else 1
            physical = PhysicalMemory(rows, size.get(memory, HBM_WINDOW), self.record.site)
            self._memories[memory] = physical
        return physical


def _check_byte(byte: int, dtype: DType, address: tuple[int, ...]) -> None:
    """NK207: a tensor begins at a whole element."""
    if byte % dtype.itemsize:
        size = dtype.itemsize
        refuse("NK207", f"byte offset {byte} of address {address} is not a multiple of {dtype}'s {size} bytes")


def check_width(dtype: DType, memory: MemoryRegion, size: int, language: LanguageVersion) -> None:
    """NK301: integers of 64 bits lie in HBM, and a single signed one in SBUF, for scalars; since NKI 0.7."""
    row = by_full_name()[f"nki.language.{dtype}"]
    if not row.is_in(language):
        refuse("NK301", f"{dtype} is not a dtype of this NKI: {row.absence(language)}", remedy=row.instead)
    signed = memory is MemoryRegion.sbuf and size == 1 and dtype.kind == "signed"
    if memory in ON_CHIP and not signed:
        message = (
            f"a tensor of {dtype} with {size} elements lies in {memory.name.upper()}; no engine computes on 64 bits"
        )
        where = "Integers of 64 bits lie in HBM, and one of nl.int64 in SBUF, where nisa.scalar_load reads it."
        refuse("NK301", message, remedy=f"{where} Compute on nl.int32.")


CORE: ContextVar[Core | None] = ContextVar("nkitools_core", default=None)


def current_core(what: str) -> Core:
    """Return the running core; NK611 outside of a kernel, about ``what``."""
    core = CORE.get()
    if core is None:
        refuse("NK611", f"{what} is called outside a running kernel")
    return core
