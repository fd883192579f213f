"""Which elements were ever written: against one flag for each byte, and the states that make it cheap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkitools.chip.dtypes import DTYPES, DType
from nkitools.chip.memory import POISON_INTEGER, PhysicalMemory, Storage
from nkitools.chip.memory_region import MemoryRegion
from nkitools.chip.tensor import NkiTensor
from tests.chip.models import HBM, PSUM, SBUF, Modelled, byte_numbers, placed, tensor, wholes
from tests.chip.view_steps import take

CASTS = tuple(DTYPES[name] for name in ("uint8", "int16", "float32", "float8_e4m3fn_x4"))


def mark(view: NkiTensor, where: object = None) -> None:
    """Say that a view was written."""
    view.storage.mark_written(view.layout, view.byte_offset, where)  # type: ignore[arg-type]


def unmark(view: NkiTensor, where: object) -> None:
    """Say that lanes of a view hold an undefined value."""
    view.storage.mark_unwritten(view.layout, view.byte_offset, where)  # type: ignore[arg-type]


def unwritten(view: NkiTensor) -> object:
    """The mask of a view's elements that were never written."""
    missing = view.storage.unwritten(view.layout, view.byte_offset)
    return None if missing is None else missing.tolist()


@dataclass
class Flags:
    """The naive model: one flag for each byte."""

    written: np.ndarray

    def mask(self, at: Modelled) -> np.ndarray:
        """Which elements of a view were never written."""
        return ~self.written[at.model].all(axis=-1)

    def check(self, at: Modelled) -> None:
        """The storage says the same of a view."""
        found = at.view.storage.unwritten(at.view.layout, at.view.byte_offset)
        expected = self.mask(at)
        assert (found is None) == (not expected.any())
        storage, view = at.view.storage, at.view
        assert storage.lacks(view.layout, view.byte_offset) == expected.any()
        written = self.written[at.model]
        if expected.size and written.any() == (~expected).any():  # no element was written in a few of its bytes only
            held = None if expected.any() and not expected.all() else not expected.any()
            assert storage.holds(view.layout, view.byte_offset) is held
        if found is not None:
            assert found.dtype == np.bool_
            np.testing.assert_array_equal(found, expected)


@given(data=st.data(), start=wholes(dtypes=("float32", "bfloat16", "uint8", "float4_e2m1fn_x4")))
def test_the_written_state_is_that_of_one_flag_a_byte(data: st.DataObject, start: Modelled) -> None:
    """Through any sequence of writes, masked writes, undefined lanes and looks, by views of any kind and dtype."""
    flags = Flags(np.zeros(start.model.size, np.bool_))
    for _ in range(data.draw(st.integers(1, 8))):
        at = take(data.draw, start, data.draw(st.integers(0, 4)), CASTS)
        action = data.draw(st.sampled_from(("write", "write", "masked write", "forget", "look")))
        seed = data.draw(st.integers(0, 2**32 - 1))
        where = np.random.default_rng(seed).random(at.view.shape) < 0.5
        if action == "write":
            mark(at.view)
            flags.written[at.model] = True
        elif action == "masked write":
            mark(at.view, where)
            flags.written[at.model[where]] = True
        elif action == "forget":
            unmark(at.view, where)
            flags.written[at.model[where]] = False
        flags.check(at)
        assert start.view.storage.full == bool(flags.written.all())
    flags.check(start)
    assert start.view.storage.holds_anything == flags.written.any()


def test_a_new_storage_is_untouched_and_an_argument_is_full() -> None:
    """Memory is not initialised (NKI Language Guide, Creating Tensors); what the caller passes in is."""
    new = tensor((2, 2))
    given_array = NkiTensor.whole(Storage((2, 2), DTYPES["float32"], HBM, array=np.ones((2, 2), np.float32)))
    assert not new.storage.holds_anything
    assert unwritten(new) == [[True, True], [True, True]]
    assert not new.storage.holds_anything  # to look is not to write
    assert given_array.storage.full
    assert unwritten(given_array) is None
    assert given_array.storage.holds_anything


def test_a_storage_whose_only_elements_became_undefined_holds_nothing() -> None:
    """Also where they were written in order, which needs no flags until then."""
    t = tensor((2, 3))
    mark(t[0:1])
    unmark(t[0:1], np.ones((1, 3), np.bool_))
    assert unwritten(t) == [[True] * 3, [True] * 3]
    assert not t.storage.holds_anything


def test_writes_in_order_need_no_flags() -> None:
    """A stretch of bytes is enough until a write skips something; rewriting it changes nothing."""
    t = tensor((4, 8), memory=HBM)
    mark(t[0:1])
    mark(t[1:2])
    mark(t[0, 2:4])
    assert t.storage.written is None
    assert t.storage.box == (0, 1, 0, 2 * 32)
    assert t.storage.holds_anything
    assert unwritten(t[1:3]) == [[False] * 8, [True] * 8]
    mark(t[2:4])
    assert t.storage.full


def test_a_view_of_the_whole_storage_fills_it_at_once() -> None:
    """Also permuted or reinterpreted; a view that repeats elements does not."""
    for view in (lambda t: t, lambda t: t.permute((0, 2, 1)), lambda t: t.view("uint8"), lambda t: t.reshape((2, 12))):
        t = tensor((2, 3, 4))
        mark(view(t))
        assert t.storage.full
        assert t.storage.written is None
    t = tensor((2, 3, 4))
    mark(t[:, 0:1, :].broadcast(1, 3))
    assert not t.storage.full
    assert unwritten(t[:, 0, :]) is None


def test_the_unit_is_as_long_as_the_views_allow() -> None:
    """Tiles of whole rows cost one flag a row of a tile; a narrower view refines the flags and loses nothing."""
    t = tensor((256, 1024), memory=HBM)
    mark(t[0:128, 512:1024])
    assert (t.storage.unit, t.storage.written is not None and t.storage.written.size) == (2048, 512)
    mark(t[0:128, 0:256])
    assert t.storage.unit == 1024
    mark(t[5:6, 300:304])
    assert t.storage.unit == 16
    mark(t.view("uint8")[6:7, 1201:1202])
    assert t.storage.unit == 1
    assert unwritten(t[0:5, 512:]) is None
    assert unwritten(t[5, 299:305]) == [True, False, False, False, False, True]
    assert unwritten(t[6, 299:302]) == [True, True, True]
    assert unwritten(t.view("uint8")[6, 1200:1204]) == [True, False, True, True]


def test_the_unit_does_not_depend_on_the_place_in_memory() -> None:
    """At an address, only offsets within a partition count."""
    t = placed((4, 100), "float32", (1, 0), PhysicalMemory(8, 4096))
    mark(t[2:4])
    assert t.storage.unit == 400
    assert unwritten(t[1:3, 0]) == [[True], [False]]


def test_bytes_written_before_there_are_flags_are_remembered() -> None:
    """Three bytes of a float32, then the fourth, make a written float32."""
    t = tensor((1, 2))
    as_bytes = t.view("uint8")
    mark(as_bytes[:, 0:3])
    assert unwritten(t) == [[True, True]]
    mark(as_bytes[:, 3:4])
    assert unwritten(t) == [[False, True]]


def test_undefined_lanes_make_a_full_storage_open_again() -> None:
    """And writing them fills it again."""
    t = tensor((2, 3))
    mark(t)
    unmark(t, np.zeros((2, 3), np.bool_))
    assert t.storage.full
    unmark(t[0:1], np.array([[False, True, False]]))
    assert not t.storage.full
    assert unwritten(t) == [[False, True, False], [False, False, False]]
    mark(t[:, 1:2])
    assert t.storage.full


def test_a_masked_write_marks_the_lanes_of_its_mask() -> None:
    """The others keep their state."""
    t = tensor((2, 2))
    mark(t, np.array([[True, False], [False, False]]))
    mark(t, np.array([[False, False], [True, False]]))
    assert unwritten(t) == [[False, True], [False, True]]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_what_was_never_written_is_poisoned(dtype: DType) -> None:
    """NaN in floats and 4 in integers, as in AWS's simulator (NKI CPU Simulator, Uninitialized Memory Detection)."""
    t = tensor((2, 3), dtype.name)
    t.array.view(np.uint8)[...] = 0
    mark(t[:, 1:2])
    t.storage.poison_unwritten()
    kept, poisoned = t.array[:, 1].copy(), t.array[:, [0, 2]]
    assert not kept.view(np.uint8).any()
    if dtype.is_float:
        assert np.isnan(poisoned.astype(np.float32)).all()
    else:
        plain = poisoned.view(f"u{dtype.itemsize}") if dtype.kind == "packed" else poisoned
        np.testing.assert_array_equal(plain, 1 if dtype.kind == "bool" else POISON_INTEGER)


def test_a_full_storage_is_not_poisoned() -> None:
    """Nor is one whose last element was just written."""
    t = tensor((2, 2))
    t.write(np.ones((2, 2), np.float32))
    mark(t)
    t.storage.poison_unwritten()
    np.testing.assert_array_equal(t.read(), 1)


def test_storages_at_overlapping_addresses_share_their_bytes() -> None:
    """What one writes the other reads; each knows only what was written through itself."""
    physical = PhysicalMemory(8, 64)
    first, second = placed((4, 4), "float32", (0, 0), physical), placed((2, 4), "int32", (2, 8), physical)
    first.write(np.arange(16, dtype=np.float32).reshape(4, 4))
    mark(first)
    np.testing.assert_array_equal(second.read()[:, :2], first.read()[2:, 2:].view(np.int32))
    assert unwritten(second) == [[True] * 4] * 2
    assert unwritten(first) is None
    assert (first.address, second.address, second[1:, 2:].address) == ((0, 0), (2, 8), (3, 16))


def test_poison_spares_what_another_tenant_has_written() -> None:
    """An unwritten tile over another's values shows these values; over nobody's, NaN."""
    physical = PhysicalMemory(8, 64)
    first = placed((4, 4), "float32", (0, 0), physical)
    over, beside = placed((4, 2), "float32", (0, 8), physical), placed((4, 2), "float32", (4, 8), physical)
    over.storage.poison_unwritten()
    assert np.isnan(over.read()).all()
    first.write(np.ones((4, 4), np.float32))
    mark(first)
    for each in (over, beside):
        each.storage.poison_unwritten()
    np.testing.assert_array_equal(first.read(), 1)
    np.testing.assert_array_equal(over.read(), 1)
    assert np.isnan(beside.read()).all()


@given(st.data())
def test_overlap_is_a_common_byte(data: st.DataObject) -> None:
    """Of two rectangles in partitions and bytes."""
    physical = PhysicalMemory(8, 32)
    tiles = []
    for _ in range(2):
        partitions, free = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
        at = data.draw(st.integers(0, 8 - partitions)), 4 * data.draw(st.integers(0, 8 - free))
        tiles.append((placed((partitions, free), "int32", at, physical), partitions, free, at))
    cells = [
        {(p, b) for p in range(at[0], at[0] + partitions) for b in range(at[1], at[1] + 4 * free)}
        for _, partitions, free, at in tiles
    ]
    first, second = tiles[0][0].storage, tiles[1][0].storage
    assert first.overlaps(second) == second.overlaps(first) == bool(cells[0] & cells[1])


def test_a_window_past_the_storages_memory_is_impossible() -> None:
    """NumPy itself holds the views to the memory that there is."""
    storage = tensor((2, 4)).storage
    with pytest.raises((ValueError, TypeError)):
        storage.window((3, 4), DTYPES["float32"], 0, (16, 4))
    whole = storage.window((2, 4), DTYPES["float32"], 0, (16, 4))
    assert np.shares_memory(whole, storage.array)


def test_an_empty_argument_has_views_without_elements() -> None:
    """Nothing divides by its zero bytes."""
    empty = NkiTensor.whole(Storage((0, 4), DTYPES["float32"], HBM, array=np.empty((0, 4), np.float32)))
    assert (empty.offset, len(empty.strides), empty.size, empty.address) == (0, 2, 0, (0, 0))
    assert unwritten(empty) is None


def test_storages_have_names_of_their_own() -> None:
    """Ids tell them apart in a record."""
    first, second = tensor((1, 1), name="a").storage, tensor((1, 1), name="a").storage
    assert first.id != second.id
    assert byte_numbers((1, 1), first.dtype).size == first.nbytes
    assert (first.memory, first.on_chip, tensor((1,), memory=HBM).storage.on_chip) == (SBUF, True, False)


@pytest.mark.parametrize("memory", [SBUF, PSUM], ids=lambda memory: memory.name)
@pytest.mark.parametrize("cast", CASTS, ids=str)
def test_a_storage_made_again_is_that_of_its_shape(cast: DType, memory: MemoryRegion) -> None:
    """Both ways to make a tile's storage give each attribute the same value; arrays have one form."""
    shape = (3, 5, 4)
    made = Storage.again(Storage(shape, cast, memory, site=7).beginning())
    plain = Storage(shape, cast, memory, site=7)
    names = (vars(made).keys() | vars(plain).keys()) - {"id", "array"}
    assert {name: getattr(made, name) for name in names} == {name: getattr(plain, name) for name in names}
    assert (made.array.shape, made.array.strides, made.array.dtype) == (
        plain.array.shape,
        plain.array.strides,
        plain.array.dtype,
    )
    assert made.id != plain.id
