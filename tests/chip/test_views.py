"""The view algebra: every view shows exactly the elements that the equivalent NumPy operation shows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkitools.chip.dtypes import DTYPES, DType
from nkitools.chip.memory import PhysicalMemory, Storage
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from nkitools.chip.view_checks import regrouped
from tests.chip.models import HBM, PSUM, SBUF, Modelled, fill, tensor, wholes
from tests.chip.view_steps import STEPS, take

CASTS = tuple(DTYPES[name] for name in ("uint8", "int8", "bfloat16", "float16", "int32", "float8_e5m2_x4"))


@pytest.mark.parametrize("name", list(STEPS))
@given(data=st.data(), start=wholes())
def test_each_view_method_addresses_what_numpy_does(name: str, data: st.DataObject, start: Modelled) -> None:
    """One step, on whole tensors and on what another step has made of them."""
    raw = fill(start.view)
    before = take(data.draw, start, data.draw(st.integers(0, 1)))
    STEPS[name](data.draw, before).check(raw)


@given(data=st.data(), start=wholes())
def test_views_of_views_compose(data: st.DataObject, start: Modelled) -> None:
    """Chains of views of any length address what the same chain addresses in NumPy."""
    raw = fill(start.view)
    take(data.draw, start, data.draw(st.integers(2, 6))).check(raw)


@st.composite
def keys(draw: Any, shape: tuple[int, ...]) -> tuple[int | slice, ...]:
    """Integers and slices for some of the first dimensions."""
    firsts = [draw(st.integers(0, size - 1)) for size in shape[: draw(st.integers(1, len(shape)))]]
    ends = [draw(st.integers(first + 1, size)) for first, size in zip(firsts, shape, strict=False)]
    pairs = zip(firsts, ends, strict=True)
    return tuple(first if draw(st.booleans()) else slice(first, end) for first, end in pairs)


@given(data=st.data(), memory=st.sampled_from([SBUF, PSUM, HBM]), fits=st.booleans(), start=st.integers(0, 3))
def test_a_part_has_the_layout_of_its_place(data: st.DataObject, memory: MemoryRegion, fits: bool, start: int) -> None:
    """Whether the layout is found by the whole's or made anew, also on a storage that has an address."""
    physical = PhysicalMemory(8, 4096) if memory is not HBM else None
    shape = data.draw(st.sampled_from([(4, 6), (4, 700), (3, 2, 5)]))
    for _ in range(2):
        storage = Storage(shape, DTYPES["float32"], memory, physical=physical, start_partition=start if physical else 0)
        storage.placed_to_fit = fits
        view = NkiTensor.whole(storage)
        for _ in range(2):
            view.layout  # noqa: B018 - from here on parts know it
            view = view[data.draw(keys(view.shape))]
            assert view.layout is view._view(view.array, view.byte_offset).layout


@given(data=st.data(), start=wholes(dtypes=("uint8", "bfloat16", "float32", "float4_e2m1fn_x4")))
def test_reinterpreting_views_show_the_same_bytes(data: st.DataObject, start: Modelled) -> None:
    """``view`` cuts the same bytes into other elements, wherever these are whole; elsewhere it is refused."""
    raw = fill(start.view)
    take(data.draw, start, data.draw(st.integers(1, 5)), CASTS).check(raw)


@given(data=st.data(), start=wholes())
def test_strides_and_offset_locate_every_element(data: st.DataObject, start: Modelled) -> None:
    """``offset + sum(strides[k] * i[k])`` is the position in the storage (NKI Language Guide, Anatomy of a tensor)."""
    at = take(data.draw, start, data.draw(st.integers(0, 4)))
    view = at.view
    positions = view.offset + sum(
        np.arange(size).reshape(-1, *[1] * (view.ndim - dim - 1)) * stride
        for dim, (size, stride) in enumerate(zip(view.shape, view.strides, strict=True))
    )
    np.testing.assert_array_equal(np.broadcast_to(positions, view.shape), at.model[..., 0] // 4)


@given(data=st.data(), start=wholes())
def test_a_pattern_describes_its_view(data: st.DataObject, start: Modelled) -> None:
    """``get_pattern`` of a view, handed to ``ap`` of the whole tensor, is the view (NKI Access Patterns)."""
    at = take(data.draw, start, data.draw(st.integers(0, 4)))
    view, raw = at.view, fill(start.view)
    pattern = view.get_pattern()
    assert pattern == [[stride, size] for stride, size in zip(view.strides, view.shape, strict=True)]
    if view.layout.partition_step == 1:
        again = start.view.ap(pattern, offset=view.offset)
        Modelled(again, at.model).check(raw)
        assert again.offset == view.offset
        assert again.get_pattern() == pattern or 1 in view.shape


@given(data=st.data(), start=wholes())
def test_contiguity_is_the_documented_rule(data: st.DataObject, start: Modelled) -> None:
    """Each dimension's stride is the product of the sizes inside it, but for sizes of 1 and, on chip, the partitions.

    Source: nki.language.NkiTensor.is_contiguous docstring (NKI 0.6).
    """
    view = take(data.draw, start, data.draw(st.integers(0, 4))).view
    dense = all(
        size == 1 or stride == int(np.prod(view.shape[dim + 1 :]))
        for dim, (size, stride) in enumerate(zip(view.shape, view.strides, strict=True))
        if not (view.on_chip and dim == 0)
    )
    assert view.is_contiguous() == dense


@given(data=st.data(), start=wholes())
def test_a_layout_says_what_its_view_is(data: st.DataObject, start: Modelled) -> None:
    """Guards see the view's shape, dtype, memory, place and the relations of its elements."""
    at = take(data.draw, start, data.draw(st.integers(0, 4)))
    view, layout = at.view, at.view.layout
    partitions = np.unique(at.model[..., 0] // start.view.storage.free_bytes)
    assert (layout.shape, layout.dtype, layout.memory) == (view.shape, view.dtype, view.buffer)
    assert (layout.elements, layout.nbytes) == (view.size, view.size * 4)
    assert (layout.partitions, layout.free_elements * layout.partitions) == (view.shape[0], view.size)
    if layout.injective:
        assert np.unique(at.model).size == at.model.size
    if view.on_chip:
        assert layout.start_partition == view.storage.start_partition + partitions[0]
        byte = view.address[1] % 2048 if view.buffer is MemoryRegion.psum else 0  # a PSUM bank has 2 KiB
        assert (layout.start_partition, layout.free_offset) == (view.address[0], byte)
        assert set(np.diff(partitions)) <= {layout.partition_step}
    else:
        assert (layout.start_partition, layout.free_offset, layout.partition_step) == (0, 0, 1)
        assert layout.contiguous == view.is_contiguous()
    assert view.layout is layout


def test_equal_layouts_are_one_object() -> None:
    """Plans are found by a layout's identity."""
    first, second = tensor((128, 64)), tensor((128, 64))
    assert first[:, 8:16].layout is second[:, 8:16].layout
    assert first[:, 8:16].layout is first[:, 16:24].layout  # no guard asks where in a partition of SBUF a view begins
    assert first[:, 8:16].layout is not first[:, 8:17].layout
    assert first.layout is not first.view("int32").layout
    assert tensor((4, 64), memory=HBM)[1:2].layout is tensor((4, 64), memory=HBM)[2:3].layout


def test_the_step_between_partitions_is_part_of_a_layout() -> None:
    """Every other partition of a narrow tile lies as far apart as the neighbours in a wide one, and is not the same."""
    narrow, wide = tensor((128, 64))[::2], tensor((64, 128))[:, 0:64]
    assert narrow.array.strides == wide.array.strides
    assert (narrow.layout.partition_step, wide.layout.partition_step) == (2, 1)
    assert tensor((128, 64))[5:6].layout.partition_step == 1


def test_views_share_storage() -> None:
    """What is written through one view is read through every other (NKI Language Guide, Views share storage)."""
    whole = tensor((128, 64))
    whole.write(np.zeros((128, 64), np.float32))
    whole.reshape((128, 8, 8))[:, 2:4, :].write(np.ones((128, 2, 8), np.float32))
    np.testing.assert_array_equal(whole[:, 16:32].read(), np.ones((128, 16), np.float32))
    assert float(whole.read().sum()) == 128 * 16


def _brute_force(shape: tuple[int, ...], strides: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    """Whether some strides show the same positions in other sizes."""

    def positions(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[int]:
        return [
            sum(i * s for i, s in zip(index, strides, strict=True))
            for index in itertools.product(*(range(size) for size in shape))
        ]

    wanted = positions(shape, strides)
    steps, inner = [], 1
    for size in reversed(sizes):
        steps.append(wanted[inner] - wanted[0] if size > 1 else 0)
        inner *= size
    return positions(sizes, tuple(reversed(steps))) == wanted


@given(st.data())
def test_regrouped_strides_exist_exactly_where_some_strides_would_do(data: st.DataObject) -> None:
    """Against a brute force over positions, for strides that no chain of views may make as well."""
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    strides = tuple(data.draw(st.lists(st.integers(0, 8), min_size=len(shape), max_size=len(shape))))
    total = int(np.prod(shape))
    first = data.draw(st.sampled_from([size for size in range(1, total + 1) if total % size == 0]))
    second = data.draw(st.sampled_from([size for size in range(1, total // first + 1) if total // first % size == 0]))
    sizes = (first, second, total // first // second)
    found = regrouped(shape, strides, sizes, 1)
    assert (found is not None) == _brute_force(shape, strides, sizes)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_views_work_on_every_dtype(dtype: DType) -> None:
    """A slice, a reshape and a reinterpretation to bytes show the bytes that are there."""
    whole = tensor((4, 6), dtype.name, HBM)
    raw = np.frombuffer(fill(whole), np.uint8).reshape(4, 6, dtype.itemsize)
    part = whole[1:3].reshape((12,))[2:5]
    assert part.dtype is dtype
    np.testing.assert_array_equal(part.view("uint8").read(), raw[1:3].reshape(12, -1)[2:5].reshape(-1))
