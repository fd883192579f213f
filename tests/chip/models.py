"""What the tests of this room compare with: tensors whose every byte is known, and NumPy arrays of byte numbers.

A model of a view is an array of its shape with one more axis, which holds the numbers of each element's bytes, counted
from the beginning of the storage with its partitions packed. NumPy's own views of that array are the oracle.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st

from nkitools.chip.dtypes import DTYPES, DType
from nkitools.chip.memory import PhysicalMemory, Storage
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.rules.finding import KernelError

SBUF, PSUM, HBM = MemoryRegion.sbuf, MemoryRegion.psum, MemoryRegion.private_hbm
Numbers = npt.NDArray[np.int64]


def tensor(shape: tuple[int, ...], dtype: str = "float32", memory: MemoryRegion = SBUF, name: str = "") -> NkiTensor:
    """A new tensor, not written."""
    return NkiTensor.whole(Storage(shape, DTYPES[dtype], memory, name=name))


def placed(
    shape: tuple[int, ...], dtype: str, address: tuple[int, int], physical: PhysicalMemory, memory: MemoryRegion = SBUF
) -> NkiTensor:
    """A new tensor at an address of a physical memory."""
    storage = Storage(
        shape, DTYPES[dtype], memory, physical=physical, start_partition=address[0], start_byte=address[1]
    )
    return NkiTensor.whole(storage)


@contextmanager
def refused(rule: str, text: str = "") -> Iterator[None]:
    """The body is refused by ``rule``, with a message that holds ``text``."""
    with pytest.raises(KernelError) as raised:
        yield
    finding = raised.value.finding
    assert finding.rule == rule, finding.text()
    assert text in finding.message
    assert finding.message.isprintable()


def byte_numbers(shape: tuple[int, ...], dtype: DType) -> Numbers:
    """The model of a whole storage."""
    total = int(np.prod(shape)) * dtype.itemsize
    return np.arange(total, dtype=np.int64).reshape(*shape, dtype.itemsize)


def fill(whole: NkiTensor) -> bytes:
    """Give a storage bytes that tell its elements apart; returns them, packed."""
    generator = np.random.default_rng(whole.size)
    data = generator.integers(0, 256, whole.size * whole.dtype.itemsize, dtype=np.uint8)
    whole.array[...] = data.view(whole.dtype.dtype).reshape(whole.shape)
    return data.tobytes()


@dataclass
class Modelled:
    """A view and its model."""

    view: NkiTensor
    model: Numbers

    def check(self, data: bytes) -> None:
        """The view shows the bytes of its model."""
        expected = np.frombuffer(data, np.uint8)[self.model]
        found = np.ascontiguousarray(self.view.read()).view(np.uint8).reshape(self.model.shape)
        assert self.view.shape == self.model.shape[:-1]
        assert self.view.dtype.itemsize == self.model.shape[-1]
        np.testing.assert_array_equal(found, expected)


KINDS = ("packed sbuf", "psum", "hbm", "at an address")


@st.composite
def wholes(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, dtypes: tuple[str, ...] = ("int32",)) -> Modelled:
    """A whole tensor of up to four dimensions in some memory, with its model."""
    kind = draw(st.sampled_from(kinds))
    dtype = draw(st.sampled_from(dtypes))
    least = 1 if kind == "hbm" else 2
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=least, max_size=4)))
    if kind == "at an address":
        address = (draw(st.integers(0, 3)), 8 * draw(st.integers(0, 3)))
        view = placed(shape, dtype, address, PhysicalMemory(16, 8192))
    else:
        view = tensor(shape, dtype, {"packed sbuf": SBUF, "psum": PSUM, "hbm": HBM}[kind])
    return Modelled(view, byte_numbers(shape, DTYPES[dtype]))
