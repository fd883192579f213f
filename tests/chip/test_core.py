"""A running core hands out storage: by itself, shared with the other programs, or at an address."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.core import CORE, Core, SharedHbm, current_core
from nkitools.chip.dtypes import DTYPES
from nkitools.chip.memory import Storage
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.facts.generations import V2, V3, Generation
from nkitools.facts.versions import language_of
from nkitools.rules.finding import KernelError
from tests.chip.models import HBM, PSUM, SBUF, refused
from tests.nki_versions import SINCE_0_7

SHARED = MemoryRegion.shared_hbm
FLOAT = DTYPES["float32"]


class Remembered:
    """A record that keeps what it is told."""

    rows = None  # no instruction is added to any

    def __init__(self) -> None:
        self.storages: list[Storage] = []

    def site(self) -> int:
        """Every call comes from site 7."""
        return 7

    naming_site = site

    def commit(self, plan: Any, site: int, operands: list[int]) -> None:
        """No instruction is issued here."""

    def allocated(self, storage: Storage) -> None:
        """Keep it."""
        self.storages.append(storage)


def core(generation: Generation = V3, **details: Any) -> Core:
    """A core that no launch has made."""
    return Core(generation, Remembered(), {}, **details)


def test_an_allocation_is_recorded() -> None:
    """With its name and the author's site."""
    running = core()
    storage = running.allocate((128, 4), FLOAT, SBUF, "tile")
    assert running.record.storages == [storage]
    assert (storage.shape, storage.dtype, storage.memory) == ((128, 4), FLOAT, SBUF)
    assert (storage.name, storage.site, storage.physical) == ("tile", 7, None)
    assert (storage.start_partition, storage.start_byte) == (0, 0)


def test_private_allocations_are_apart() -> None:
    """Each has bytes of its own."""
    running = core()
    first, second = running.allocate((4, 4), FLOAT, HBM), running.allocate((4, 4), FLOAT, HBM)
    assert not np.shares_memory(first.array, second.array)


def test_the_kth_shared_allocation_of_every_program_is_one_buffer() -> None:
    """In the order of the allocations; it is recorded once."""
    shared = SharedHbm()
    first, second = core(shared=shared, program=(0,)), core(shared=shared, program=(1,))
    ours = [first.allocate((4, n), FLOAT, SHARED) for n in (1, 2)]
    theirs = [second.allocate((4, n), FLOAT, SHARED) for n in (1, 2)]
    assert ours == theirs == shared.storages
    assert ours[0] is not ours[1]
    assert (len(first.record.storages), len(second.record.storages)) == (2, 0)


@pytest.mark.parametrize(("shape", "dtype"), [((4, 2), "float32"), ((4, 1), "bfloat16")])
def test_programs_that_share_differently_are_refused(shape: tuple[int, ...], dtype: str) -> None:
    """Another shape or dtype at the same place in the order (NK208)."""
    shared = SharedHbm()
    core(shared=shared, program=(0,)).allocate((4, 1), FLOAT, SHARED)
    with refused("NK208", "shared_hbm allocation 0"):
        core(shared=shared, program=(1,)).allocate(shape, DTYPES[dtype], SHARED)


def test_tensors_at_one_address_share_bytes() -> None:
    """Whatever their dtypes; SBUF and PSUM are apart, and so are two cores."""
    running, other = core(), core()
    first = running.allocate((8, 4), FLOAT, SBUF, address=(32, 64))
    second = running.allocate((2, 4), DTYPES["uint32"], SBUF, address=(33, 72))
    first.array[...] = np.arange(32, dtype=np.float32).reshape(8, 4)
    np.testing.assert_array_equal(second.array[:, :2], first.array[1:3, 2:].view(np.uint32))
    for apart in (
        running.allocate((8, 4), FLOAT, PSUM, address=(32, 64)),
        other.allocate((8, 4), FLOAT, SBUF, address=(32, 64)),
        running.allocate((8, 4), FLOAT, SBUF),
    ):
        assert not np.shares_memory(apart.array, first.array)
    assert NkiTensor.whole(second)[1:, 1:].address == (34, 76)
    assert not first.full


EDGES = {SBUF: V3.sbuf_partition_bytes, PSUM: V3.psum_partition_bytes}


@pytest.mark.parametrize("memory", EDGES, ids=str)
def test_an_address_may_reach_the_last_byte_and_no_further(memory: MemoryRegion) -> None:
    """Partitions 0..127 and the bytes of a partition (NK402)."""
    size = EDGES[memory]
    assert core().allocate((64, 4), FLOAT, memory, address=(64, size - 16)).start_byte == size - 16
    assert core().allocate((128, size // 4), FLOAT, memory, address=(0, 0)).free_bytes == size
    for address in ((65, 0), (-1, 0), (0, -4), (64, size - 12), (128, 0)):
        with refused("NK402", f"at address {address} leaves {memory.name.upper()}"):
            core().allocate((64, 4), FLOAT, memory, address=address)


def test_the_size_of_a_partition_is_the_chips() -> None:
    """What fits into trn2's SBUF does not fit into trn1's."""
    at = (0, V2.sbuf_partition_bytes)
    assert core(V3).allocate((128, 4), FLOAT, SBUF, address=at).start_byte == at[1]
    with refused("NK402", "bytes 0..196607"):
        core(V2).allocate((128, 4), FLOAT, SBUF, address=at)


def test_too_many_partitions_at_an_address() -> None:
    """No address has room for them: the limit speaks (NK101), not the bounds."""
    with refused("NK101", "has 129 partitions"):
        core().allocate((129, 4), FLOAT, SBUF, address=(0, 0))


@pytest.mark.parametrize(("dtype", "byte"), [("float32", 2), ("bfloat16", 3), ("float8_e5m2_x4", 6)])
def test_an_address_is_a_multiple_of_the_elements_size(dtype: str, byte: int) -> None:
    """NK207; a multiple is taken."""
    with refused("NK207", f"byte offset {byte} of address (0, {byte})"):
        core().allocate((4, 4), DTYPES[dtype], SBUF, address=(0, byte))
    size = DTYPES[dtype].itemsize
    assert core().allocate((4, 4), DTYPES[dtype], SBUF, address=(0, size)).start_byte == size


@pytest.mark.parametrize("memory", [HBM, SHARED], ids=str)
def test_hbm_has_no_addresses_before_0_7(memory: MemoryRegion) -> None:
    """NK207; shared HBM is placed by its order alone."""
    for address in ((0, 0), (64,)):
        with refused("NK207", "only SBUF and PSUM have addresses: that of HBM is public since NKI 0.7"):
            core(language=language_of("0.6")).allocate((4, 4), FLOAT, memory, address=address)


@pytest.mark.parametrize("memory", [HBM, SHARED], ids=str)
def test_an_address_in_hbm_is_a_byte(memory: MemoryRegion) -> None:
    """Tensors at the same bytes share them, whatever their shapes and dtypes; those beside them are left alone."""
    here = core()
    first = here.allocate((4, 6), FLOAT, memory, address=(1 << 33,))
    second = here.allocate((24,), DTYPES["int32"], memory, address=((1 << 33) + 4,))
    first.array[...] = 0
    second.array[0] = 7
    second.array[23] = 9
    assert first.array.view(np.int32).reshape(-1).tolist() == [0, 7, *[0] * 22]
    assert (first.overlaps(second), first.start_byte) == (True, 1 << 33)
    assert not first.overlaps(here.allocate((4,), FLOAT, memory, address=((1 << 33) - 16,)))


@pytest.mark.parametrize(
    ("rule", "address", "message"),
    [
        ("NK207", (0, 0), "in HBM an address is (byte offset,)"),
        ("NK207", (2,), "byte offset 2 of address (2,) is not a multiple of float32's 4 bytes"),
        ("NK402", (-4,), "HBM begins at byte 0"),
        ("NK607", (16 << 30,), "the first 16 GiB of HBM only"),
    ],
)
def test_wrong_addresses_in_hbm(rule: str, address: tuple[int, ...], message: str) -> None:
    """Each is refused by its rule."""
    with refused(rule, message):
        core().allocate((4, 4), FLOAT, HBM, address=address)


@SINCE_0_7
def test_a_tensor_in_hbm_loses_the_bytes_that_another_one_writes() -> None:
    """Reading them is NK204, as it is on chip; the dependences see that the bytes are the same."""

    def kernel(x: NkiTensor, lost: int) -> NkiTensor:
        first = nl.ndarray((128, 4), nl.float32, nl.hbm, address=(512,))
        second = nl.ndarray((64, 4), nl.float32, nl.hbm, address=(512 + 64 * 16,))
        out = nl.ndarray((64, 4), nl.float32, nl.shared_hbm)
        nisa.dma_copy(first, x)
        nisa.dma_copy(second, x[0:64])
        nisa.dma_copy(out, first[lost : lost + 64])
        return out

    x = np.arange(512, dtype=np.float32).reshape(128, 4)
    run = nkitools.simulate(kernel, x, 0)
    np.testing.assert_array_equal(run.outputs, x[:64])
    assert (run.dependences.output[1].tolist(), run.dependences.flow[2].tolist()) == ([0], [0])
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, x, 32)
    assert caught.value.finding.rule == "NK204"


def test_outside_of_a_kernel_there_is_no_core() -> None:
    """What needs one says its name (NK611)."""
    assert CORE.get() is None
    with refused("NK611", "nl.ndarray is called outside a running kernel"):
        current_core("nl.ndarray")
    token = CORE.set(core())
    try:
        assert current_core("nl.ndarray") is CORE.get()
    finally:
        CORE.reset(token)
    with pytest.raises(KernelError):
        current_core("nl.ndarray")
