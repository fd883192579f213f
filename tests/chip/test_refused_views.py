"""What a tensor refuses: every documented constraint by its rule, and nothing on this side of the boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
from nkitools.chip.indexing import DynamicSlice
from nkitools.chip.memory import PhysicalMemory
from nkitools.chip.tensor import NkiTensor
from nkitools.rules.finding import KernelError, NotModelled
from tests.chip.models import HBM, PSUM, SBUF, Modelled, placed, refused, tensor, wholes

View = Callable[[NkiTensor], Any]


@given(data=st.data(), start=wholes())
def test_a_slice_is_in_bounds_or_refused(data: st.DataObject, start: Modelled) -> None:
    """Never clamped: it works exactly where 0 <= start < stop <= size (negative bounds count from the end)."""
    view = start.view
    dim = data.draw(st.integers(0, view.ndim - 1))
    size = view.shape[dim]
    first, stop = data.draw(st.integers(-size - 2, size + 2)), data.draw(st.integers(-size - 2, size + 2))
    low, high = first + size * (first < 0), stop + size * (stop < 0)
    key = (*[slice(None)] * dim, slice(first, stop))
    if 0 <= low < high <= size:
        assert view[key].shape[dim] == high - low
    else:
        inside = 0 <= low <= size and 0 <= high <= size
        with refused("NK109" if inside else "NK402", f"dimension {dim}"):
            view[key]


@given(data=st.data(), start=wholes())
def test_an_integer_is_in_bounds_or_refused(data: st.DataObject, start: Modelled) -> None:
    """It works exactly for -size <= index < size."""
    view = start.view
    dim = data.draw(st.integers(0, view.ndim - 1))
    size = view.shape[dim]
    index = data.draw(st.integers(-size - 3, size + 3))
    key = (*[slice(None)] * dim, index)
    if -size <= index < size:
        assert view[key].size == view.size // size
    else:
        with refused("NK402", f"index {index} is out of bounds for dimension {dim}"):
            view[key]


@given(data=st.data(), start=wholes())
def test_ds_is_in_bounds_or_refused(data: st.DataObject, start: Modelled) -> None:
    """It works exactly where start >= 0, size >= 0 and start + size <= the dimension's size."""
    view = start.view
    dim = data.draw(st.integers(0, view.ndim - 1))
    size = view.shape[dim]
    first, count = data.draw(st.integers(-2, size + 2)), data.draw(st.integers(-1, size + 2))
    key = (*[slice(None)] * dim, DynamicSlice(first, count))
    if first >= 0 and count >= 0 and first + count <= size:
        assert view[key].shape[dim] == count
    else:
        with refused("NK402" if count >= 0 else "NK109", f"nl.ds({first}, {count})"):
            view[key]


@given(data=st.data(), start=wholes())
def test_an_access_pattern_is_in_bounds_or_refused(data: st.DataObject, start: Modelled) -> None:
    """``ap`` works exactly where every element that it names lies in the storage, on chip in its own partition.

    One that does not is refused where it is used: kernels make some that they never use.
    """
    view = start.view
    free = view.storage.free_bytes // 4
    ndim = data.draw(st.integers(1, 3))
    pattern = [[data.draw(st.integers(0, 6)), data.draw(st.integers(1, 6))] for _ in range(ndim)]
    offset = data.draw(st.integers(-3, view.size + 3))
    if view.on_chip:
        pattern = [[free, data.draw(st.integers(1, 7))], *pattern]
    reach = sum(step * (count - 1) for step, count in pattern)
    inside = offset >= 0 and offset + reach < view.size
    if view.on_chip and inside:
        inside = offset % free + sum(step * (count - 1) for step, count in pattern[1:]) < free
    if inside:
        assert view.ap(pattern, offset=offset).shape == tuple(count for _, count in pattern)
    else:
        stray = view.ap(pattern, offset=offset)
        assert stray.shape == tuple(count for _, count in pattern)
        with refused("NK402", "ap "):
            stray.read()


INDEX_FORMS: dict[str, tuple[Any, str]] = {
    "float": (32.0, "32.0 (float) is no index of"),
    "bool": (True, "True (bool) is no index of"),
    "None": (None, "None (NoneType) is no index of"),
    "string": ("a", "'a' (str) is no index of"),
    "float bound": (slice(0, 2.5), "2.5 (float) is no index of"),
    "list": ([0, 1], "[0, 1] (list) is no index of"),
    "array": (np.arange(2), "a NumPy array of [2] is no index of"),
    "float ds": (DynamicSlice(0.5, 2), "0.5 (float) is no index of"),  # type: ignore[arg-type]
    "two dots": ((..., ...), "more than one `...`"),
    "three indices": ((0, 0, 0), "3 indices are given for"),
    "three indices and dots": ((0, ..., 0, 0), "3 indices are given for"),
    "zero step": (slice(0, 8, 0), "step 0 of a slice"),
    "negative step": (slice(8, 0, -1), "step -1 of a slice"),
    "negative range": (range(8, 0, -1), "step -1 of a slice"),
}


@pytest.mark.parametrize("name", list(INDEX_FORMS))
def test_an_index_of_another_form_is_refused(name: str) -> None:
    """Integers, slices with a positive step, nl.ds and one `...` are the documented forms (NK603)."""
    key, text = INDEX_FORMS[name]
    for memory in (SBUF, HBM):
        with refused("NK603", text):
            tensor((128, 64), memory=memory)[key]


def test_a_tensor_as_index_is_pointed_to_select() -> None:
    """Its values exist only when the kernel runs; the message shows no values."""
    index = tensor((1, 1), "int32", name="where")
    with pytest.raises(KernelError, match=r"tensor `where` .*is no index of tensor") as raised:
        tensor((128, 64))[:, index]
    assert "select(dim, index)" in raised.value.finding.remedy


ON_CHIP: dict[str, tuple[View, str]] = {
    "permute": (lambda t: t.permute((1, 0, 2)), "NK109"),
    "broadcast": (lambda t: t[0].broadcast(0, 8), "NK111"),
    "expand_dim": (lambda t: t.expand_dim(0), "NK109"),
    "expand_dim from the end": (lambda t: t.expand_dim(-4), "NK109"),
    "squeeze_dim": (lambda t: t[0:1].squeeze_dim(0), "NK109"),
    "reshape_dim": (lambda t: t.reshape_dim(0, (2, 64)), "NK109"),
    "reshape_dim that adds": (lambda t: t.reshape_dim(0, (128, 1)), "NK109"),
    "flatten_dims": (lambda t: t.flatten_dims(0, 1), "NK109"),
    "flatten_dims of one": (lambda t: t.flatten_dims(0, 0), "NK109"),
    "reshape": (lambda t: t.reshape((64, 2, 4, 8)), "NK109"),
    "reshape to 2-D": (lambda t: t.reshape((512, 8)), "NK109"),
    "rearrange that splits": (lambda t: t.rearrange((("p", "q"), "a", "b"), ("p", "q", "a", "b"), {"p": 2}), "NK109"),
    "rearrange that merges": (lambda t: t.rearrange(("p", "a", "b"), (("p", "a"), "b")), "NK109"),
    "rearrange that moves": (lambda t: t.rearrange(("p", "a", "b"), ("a", "p", "b")), "NK109"),
    "ap": (lambda t: t.ap([[64, 64], [1, 32]]), "NK109"),
    "ap that repeats": (lambda t: t.ap([[0, 128], [1, 32]]), "NK111"),
}


@pytest.mark.parametrize("name", list(ON_CHIP))
@pytest.mark.parametrize("memory", [SBUF, PSUM], ids=str)
def test_on_chip_the_partition_dimension_is_kept(name: str, memory: Any) -> None:
    """The constraints "On-chip tensors: dim must not be 0" and their like, in the docstrings of NkiTensor's methods."""
    make, rule = ON_CHIP[name]
    with refused(rule, name.split()[0]):
        make(tensor((128, 4, 8), memory=memory))


@pytest.mark.parametrize(
    "name", ["permute", "expand_dim", "reshape_dim", "flatten_dims", "reshape", "squeeze_dim", "ap"]
)
def test_hbm_has_no_partition_dimension(name: str) -> None:
    """The same views of an HBM tensor are views like any other (NKI Language Guide)."""
    make, _ = ON_CHIP[name]
    hbm = tensor((128, 4, 8), memory=HBM)
    assert make(hbm).storage is hbm.storage


def test_hbm_broadcasts_dimension_0() -> None:
    """Only on chip must ``dim`` not be 0 (broadcast docstring)."""
    assert tensor((4, 8), memory=HBM)[0:1].broadcast(0, 128).shape == (128, 8)


SHAPES: dict[str, View] = {
    "permute not a permutation": lambda t: t.permute((0, 1)),
    "permute twice the same": lambda t: t.permute((0, 1, 1)),
    "broadcast of a size": lambda t: t.broadcast(1, 8),
    "broadcast to nothing": lambda t: t[:, 0:1].broadcast(1, 0),
    "squeeze_dim of a size": lambda t: t.squeeze_dim(1),
    "reshape_dim to another size": lambda t: t.reshape_dim(1, (3, 2)),
    "reshape_dim with two open": lambda t: t.reshape_dim(1, (-1, -1)),
    "reshape_dim that does not divide": lambda t: t.reshape_dim(1, (3, -1)),
    "reshape to another size": lambda t: t.reshape((128, 24)),
    "reshape to a zero": lambda t: t.reshape((128, 0)),
    "reshape below -1": lambda t: t.reshape((128, -2, -16)),
    "reshape of a permuted view": lambda t: t.permute((0, 2, 1)).reshape((128, 32)),
    "reshape of a slice": lambda t: t[:, :, 0:4].reshape((128, 16)),
    "flatten_dims of a slice": lambda t: t[:, :, 0:4].flatten_dims(1, 2),
    "flatten_dims of a permuted view": lambda t: t.permute((0, 2, 1)).flatten_dims(1, 2),
    "flatten_dims backwards": lambda t: t.flatten_dims(2, 1),
    "rearrange of a permuted merge": lambda t: t.rearrange(("p", "a", "b"), ("p", ("b", "a"))),
    "rearrange without a name": lambda t: t.rearrange(("p", "a", "b"), ("p", "a")),
    "rearrange with a name twice": lambda t: t.rearrange(("p", "a", "a"), ("p", "a", "a")),
    "rearrange of too few": lambda t: t.rearrange(("p", "a"), ("p", "a")),
    "rearrange with an open pair": lambda t: t.rearrange(("p", ("a", "b"), "c"), ("p", "a", "b", "c")),
    "rearrange with a wrong size": lambda t: t.rearrange(("p", ("a", "b"), "c"), ("p", "a", "b", "c"), {"a": 3}),
    "rearrange with an unknown size": lambda t: t.rearrange(("p", "a", "b"), ("p", "a", "b"), {"c": 3}),
    "dimension 3": lambda t: t.slice(3, 0, 1),
    "dimension -4": lambda t: t.select(-4, 0),
    "expand_dim 4": lambda t: t.expand_dim(4),
    "empty slice": lambda t: t.slice(1, 2, 2),
    "backward slice": lambda t: t.slice(1, 3, 1),
    "view of a strided last dimension": lambda t: t[:, :, ::2].view("uint8"),
    "view that does not divide": lambda t: t.view("uint8")[:, :, 0:6].view("float32"),
    "view within an element": lambda t: t.view("uint8")[:, :, 1:5].view("float32"),
    "view between the steps": lambda t: (
        t.flatten_dims(1, 2).view("uint8")[:, :126].reshape((128, 21, 6))[:, :, :4].view("int32")
    ),
    "ap without free dimension": lambda t: t.ap([[32, 128]]),
    "ap with a negative stride": lambda t: t.ap([[32, 128], [-1, 4]]),
    "ap of nothing": lambda t: t.ap([[32, 128], [1, 0]]),
    "ap within an element": lambda t: t.view("bfloat16")[:, :, 1:].ap([[32, 128], [1, 4]], dtype="float32"),
}


@pytest.mark.parametrize("name", list(SHAPES))
def test_a_view_that_the_shape_does_not_have_is_refused(name: str) -> None:
    """Constraints on shapes and layouts in the docstrings of NkiTensor's methods (NK109)."""
    with refused("NK109", "tensor (SBUF, "):
        SHAPES[name](tensor((128, 4, 8)))


BOUNDS: dict[str, View] = {
    "select at the size": lambda t: t.select(1, 4),
    "select of -1": lambda t: t.select(1, -1),
    "slice beyond": lambda t: t.slice(1, 0, 5),
    "slice from -1": lambda t: t.slice(1, -1, 4),
    "slice to -1": lambda t: t.slice(1, 0, -1),
    "index at the size": lambda t: t[128],
    "index below": lambda t: t[:, -5],
}


@pytest.mark.parametrize("name", list(BOUNDS))
def test_what_lies_outside_is_out_of_bounds(name: str) -> None:
    """``0 <= index < shape[dim]`` and ``0 <= start < end <= shape[dim]`` (select and slice docstrings)."""
    with refused("NK402", "out of bounds for dimension"):
        BOUNDS[name](tensor((128, 4, 8)))
    with pytest.raises(IndexError):
        BOUNDS[name](tensor((128, 4, 8)))


CALLS: dict[str, View] = {
    "dimension of a name": lambda t: t.slice("a", 0, 1),
    "open slice": lambda t: t.slice(1, None, 2),
    "select by a float": lambda t: t.select(1, 1.0),
    "permute by a number": lambda t: t.permute(0),
    "permute by names": lambda t: t.permute("pab"),
    "reshape to floats": lambda t: t.reshape((128, 32.0)),
    "reshape_dim by a number": lambda t: t.reshape_dim(1, 4),
    "broadcast by a float": lambda t: t[:, 0:1].broadcast(1, 2.0),
    "bool as a dimension": lambda t: t.expand_dim(True),
    "rearrange by a string": lambda t: t.rearrange("p a b", "p b a"),
    "rearrange by numbers": lambda t: t.rearrange((0, 1, 2), (0, 2, 1)),
    "rearrange by a size": lambda t: t.rearrange(("p", "a", "b"), ("p", "a", "b"), 4),
    "rearrange by float sizes": lambda t: t.rearrange(("p", ("a", "b"), "c"), ("p", "a", "b", "c"), {"a": 2.0}),
    "ap by numbers": lambda t: t.ap([32, 128], [1, 32]),
    "ap by triples": lambda t: t.ap([[32, 128, 1]]),
    "ap by nothing": lambda t: t.ap([]),
    "ap by floats": lambda t: t.ap([[32.0, 128], [1, 4]]),
    "ap from a float": lambda t: t.ap([[32, 128], [1, 4]], offset=1.5),
    "ap with a lone indirect_dim": lambda t: t.ap([[32, 128], [1, 4]], indirect_dim=1),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_an_argument_of_another_form_is_refused(name: str) -> None:
    """Dimensions, sizes and bounds are integers, patterns are pairs of them (NK609, which is a TypeError too)."""
    with refused("NK609"):
        CALLS[name](tensor((128, 4, 8)))
    with pytest.raises(TypeError):
        CALLS[name](tensor((128, 4, 8)))


def test_a_tensor_keeps_its_least_number_of_dimensions() -> None:
    """On-chip tensors are at least 2-D, HBM tensors at least 1-D (NKI Language Guide; __getitem__ docstring)."""
    for make in (lambda t: t.reshape((128,)), lambda t: t.squeeze_dim(1), lambda t: t.reshape(())):
        with refused("NK109"):
            make(tensor((128, 1)))
    for make in (lambda t: t.reshape(()), lambda t: t.squeeze_dim(0), lambda t: t.reshape_dim(0, ())):
        with refused("NK109"):
            make(tensor((1,), memory=HBM))
    assert tensor((128, 1)).select(1, 0).shape == (128, 1)
    assert tensor((128, 1), memory=HBM).squeeze_dim(1).shape == (128,)


def test_selection_of_a_partition_keeps_it() -> None:
    """``select`` is ``t[index]`` there: the docstring forbids dimension 0 to dynamic selections only."""
    assert tensor((128, 4, 8)).select(0, 5).shape == (1, 4, 8)
    assert tensor((128, 4, 8)).select(0, 5).offset == 5 * 32


def test_unknown_dtypes_are_refused() -> None:
    """64-bit floats and strangers are no dtypes of NKI (NK301)."""
    for dtype in ("float64", np.complex64, None, 3):
        with refused("NK301", "is not a dtype of NKI"):
            tensor((128, 4)).view(dtype)
        with refused("NK301", "is not a dtype of NKI"):
            tensor((128, 4)).ap([[4, 128], [1, 4]], dtype=dtype or "complex64")


def test_assignment_of_a_number_is_not_modelled() -> None:
    """It has no documented meaning, and no kernel was seen to use it (NK607)."""
    with pytest.raises(NotModelled, match="assignment of a float into a tensor"):
        tensor((128, 8))[0] = 1.0


def test_neighbours_in_physical_memory_are_out_of_bounds() -> None:
    """A tensor at an address ends where it ends, although bytes and partitions follow."""
    physical = PhysicalMemory(16, 64)
    t = placed((4, 2), "float32", (2, 8), physical)
    assert t.ap([[2, 4], [1, 2]]).shape == (4, 2)
    for pattern, offset in (
        ([[2, 5], [1, 2]], 0),
        ([[2, 4], [1, 3]], 0),
        ([[2, 4], [1, 2]], 1),
        ([[2, 4], [1, 2]], -2),
    ):
        with refused("NK402"):
            t.ap(pattern, offset=offset).read()


def test_a_stray_access_pattern_is_refused_by_whatever_uses_it() -> None:
    """Views of it, an instruction that reads it and one that writes it; a kernel that leaves it alone runs."""

    def kernel(x: Any, use: str) -> Any:
        tile = nl.load(x)
        stray = tile.ap([[8, 4], [1, 9]])
        assert stray.shape == (4, 9)
        if use == "view":
            stray[:, 0:2]
        elif use == "read":
            nl.copy(stray)
        elif use == "write":
            nisa.memset(dst=stray, value=0.0)
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    x = np.ones((4, 8), np.float32)
    assert not nkitools.simulate(kernel, x, "").findings
    for use in ("view", "read", "write"):
        found = nkitools.simulate(kernel, x, use, rules="report").findings
        assert [each.rule for each in found] == ["NK402"]
        assert "reaches element 8 of a partition of tensor `tile`" in found[0].message


def test_elements_begin_at_a_multiple_of_their_size_in_every_partition() -> None:
    """Also where the partitions are apart: in elements they are the free size apart, which must be a whole number."""
    for t in (tensor((2, 6), "uint8"), placed((2, 6), "uint8", (0, 0), PhysicalMemory(4, 64))):
        assert t[0:1, 0:4].view("float32").shape == (1, 1)
        with refused("NK109", "steps of dimension 0"):
            t[:, 0:4].view("float32")
        with refused("NK109", "first byte"):
            t[1:2, 0:4].view("float32")
        with refused("NK109", "a partition of 6 bytes"):
            t.ap([[1, 2], [1, 1]], dtype="float32")


def test_messages_name_the_tensor_and_nothing_else() -> None:
    """With its own name where it has one; outside of a run nobody knows the author's, and no placeholder shows."""
    with refused("NK402", "index 200 is out of bounds for dimension 0 of tensor `x` (PSUM, bfloat16 [128, 4])"):
        tensor((128, 4), "bfloat16", PSUM, name="x")[200]
    with refused("NK109", "it is asked of tensor (HBM, int8 [8])"):
        tensor((8,), "int8", HBM).reshape((3,))
