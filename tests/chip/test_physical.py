"""Storages in one physical memory: a write takes its bytes from whoever has written them before."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nkitools.chip.memory import PhysicalMemory
from nkitools.chip.tensor import NkiTensor
from tests.cases import cases
from tests.chip.models import placed

PARTITIONS, BYTES = 8, 48
DTYPES = {"float32": 4, "bfloat16": 2, "int8": 1}


def cells(tensor: NkiTensor) -> Any:
    """The (partition, byte) of each byte of each element, as flat numbers: an axis more than the tensor has."""
    steps = [np.arange(size) * stride for size, stride in zip(tensor.shape, tensor.array.strides, strict=True)]
    storage = tensor.storage
    start = storage.start_partition * BYTES + storage.start_byte + tensor.byte_offset
    offsets = sum(np.meshgrid(*steps, np.arange(tensor.dtype.itemsize), indexing="ij"), np.asarray(start))
    return np.asarray(offsets)


@st.composite
def tensors(draw: Any, physical: PhysicalMemory) -> NkiTensor:
    """A tensor of one or two free dimensions somewhere in the memory."""
    dtype = draw(st.sampled_from(sorted(DTYPES)))
    size = DTYPES[dtype]
    shape = (draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    room = BYTES - shape[1] * shape[2] * size
    address = draw(st.integers(0, PARTITIONS - shape[0])), size * draw(st.integers(0, room // size))
    return placed(shape, dtype, address, physical)


@st.composite
def parts(draw: Any, tensor: NkiTensor) -> NkiTensor:
    """A slice of a tensor, with steps."""
    key = []
    for size in tensor.shape:
        first = draw(st.integers(0, size - 1))
        key.append(slice(first, draw(st.integers(first + 1, size)), draw(st.integers(1, 2))))
    return tensor[tuple(key)]


@given(st.data())
@settings(max_examples=cases(5000))
def test_a_byte_belongs_to_its_last_writer(data: st.DataObject) -> None:
    """After any writes, whole, in part or under a mask.

    A tensor's element is written where it wrote all its bytes last, and what it has lost lies in the regions that it
    remembers.
    """
    physical = PhysicalMemory(PARTITIONS, BYTES)
    all_tensors = [data.draw(tensors(physical)) for _ in range(3)]
    owners = np.full(PARTITIONS * BYTES, -1)
    ever = [np.zeros(PARTITIONS * BYTES, np.bool_) for _ in all_tensors]
    for _ in range(data.draw(st.integers(1, 8))):
        number = data.draw(st.integers(0, 2))
        view = data.draw(st.one_of(st.just(all_tensors[number]), parts(all_tensors[number])))
        where = None
        if data.draw(st.booleans()):
            where = np.array(data.draw(st.lists(st.booleans(), min_size=view.size, max_size=view.size)))
            where = where.reshape(view.shape)
        view.storage.mark_written(view.layout, view.byte_offset, where)
        written = cells(view) if where is None else cells(view)[where]
        owners[written] = number
        ever[number][written] = True
        for index, tensor in enumerate(all_tensors):
            mine = cells(tensor)
            missing = tensor.unwritten()
            expected = ~(owners[mine] == index).all(axis=-1)
            np.testing.assert_array_equal(np.zeros(tensor.shape, bool) if missing is None else missing, expected)
            for cell in mine[ever[index][mine] & (owners[mine] != index)]:
                partition, byte = divmod(int(cell), BYTES)
                assert any(
                    loss.region[0] <= partition < loss.region[1] and loss.region[2] <= byte < loss.region[3]
                    for loss in tensor.storage.losses
                )


def test_who_holds_nothing_is_no_tenant() -> None:
    """Tensors made anew at one address, in a loop say, do not pile up."""
    physical = PhysicalMemory(PARTITIONS, BYTES)
    tensors = [placed((4, 4), "float32", (0, 0), physical) for _ in range(5)]
    for tensor in tensors:
        tensor.storage.mark_written(tensor.layout, tensor.byte_offset)
    assert physical.tenants == [tensors[-1].storage]


def test_a_tensor_that_is_gone_is_no_tenant() -> None:
    """The memory keeps no tenant alive: its storage goes with the last tensor on it, without the garbage collector."""
    physical = PhysicalMemory(PARTITIONS, BYTES)
    tensors = [placed((4, 4), "float32", (row, 0), physical) for row in (0, 4)]
    for tensor in tensors:
        tensor.storage.mark_written(tensor.layout, tensor.byte_offset)
    gone = weakref.ref(tensors[0].storage)
    gc.disable()
    try:
        del tensors[0], tensor
        assert gone() is None
    finally:
        gc.enable()
    assert physical.tenants == [tensors[0].storage]
