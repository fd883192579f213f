"""Copies of arguments: arrays that share memory, wholly or in part, share it in the copies too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.precision.runs import copied, in_float64

VIEWS: dict[str, Callable[[Any], Any]] = {
    "the first rows": lambda x: x[:2],
    "the last columns": lambda x: x[:, 3:],
    "every second column": lambda x: x[:, ::2],
    "reversed": lambda x: x[::-1, ::-1],
    "transposed": lambda x: x.T,
    "one element": lambda x: x[1, 1, ...],
    "a flat view": lambda x: x.reshape(-1),
    "broadcast": lambda x: np.broadcast_to(x[0], (4, 6)),
    "an overlapping window": lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=0),
}
DTYPES = [np.float32, np.int32, np.uint8, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]


@dataclass(frozen=True)
class Held:
    """An object with an array inside."""

    x: Any


def numbers(dtype: Any) -> Any:
    """Return [4, 6] different numbers."""
    return np.arange(24).reshape(4, 6).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("change", [copied, in_float64])
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_another_argument_stays_one(view: str, change: Any, dtype: Any) -> None:
    """It holds the same numbers, sees what is written into the other, and the caller's arrays do not."""
    x = numbers(dtype)
    part = VIEWS[view](x)
    before = part.copy()
    for one, other in (change((x, part)), reversed(change([part, x]))):
        np.testing.assert_array_equal(one.astype(np.float64), x.astype(np.float64))
        np.testing.assert_array_equal(other.astype(np.float64), before.astype(np.float64))
        one[...] = 7
        np.testing.assert_array_equal(other.astype(np.float64), 7.0)
    np.testing.assert_array_equal(part, before)


@given(
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11), st.sampled_from([1, 2, -1, -3])), min_size=2, max_size=5)
)
def test_any_slices_see_each_others_writes_as_the_originals_do(bounds: list[tuple[int, int, int]]) -> None:
    """Whatever one slice is filled with appears in the copies where it would appear in the originals."""
    x = np.arange(12, dtype=np.float32)
    slices = [x[first:last:step] for first, last, step in bounds]
    for change in (copied, in_float64):
        changed = change({"slices": slices, "held": Held(slices[-1])})
        for number, each in enumerate(changed["slices"]):
            each[...] = 100 + number
        truth = np.arange(12, dtype=np.float32)
        for number, (first, last, step) in enumerate(bounds):
            truth[first:last:step] = 100 + number
        for (first, last, step), each in zip(bounds, changed["slices"], strict=True):
            np.testing.assert_array_equal(each, truth[first:last:step])
        assert changed["held"].x is changed["slices"][-1]


def test_views_of_other_dtypes_share_the_bytes() -> None:
    """The bits of a float32 array are seen through its int32 view; in float64 the two are apart."""
    x = np.zeros((2, 4), np.float32)
    one, bits = copied((x, x.view(np.int32)))
    one[...] = 1
    np.testing.assert_array_equal(bits, 0x3F800000)
    wide, bits, same = in_float64((x, x.view(np.int32), x[:]))
    wide[...] = 1
    assert (wide.dtype, bits.dtype, bits.max()) == (np.float64, np.int32, 0)
    np.testing.assert_array_equal(same, 1.0)


def test_read_only_and_unaligned_views_stay_what_they_are() -> None:
    """A read-only view of a writeable array cannot be written in the copies either."""
    x = np.frombuffer(bytearray(33), np.uint8)[1:].view(np.float32)
    seen = x[1:]
    seen.flags.writeable = False
    one, other = copied((x, seen))
    assert (one.flags.writeable, other.flags.writeable) == (True, False)
    assert one.flags.aligned == x.flags.aligned
    one[1:] = 3
    np.testing.assert_array_equal(other, 3)


def test_arrays_that_share_nothing_are_apart() -> None:
    """Columns of one array lie between each other and are none of each other's elements."""
    x = np.zeros((3, 4), np.float32)
    left, right = copied((x[:, :2], x[:, 2:]))
    left[...] = 1
    np.testing.assert_array_equal(right, 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "bool"])
def test_torch_tensors_share_with_each_other_and_with_numpy(dtype: str) -> None:
    """As `torch.from_numpy` and slices do."""
    torch = pytest.importorskip("torch")
    x = torch.zeros((4, 6), dtype=getattr(torch, dtype))
    for change in (copied, in_float64):
        one, rows, columns = change((x, x[1:], x[:, ::2]))
        one[...] = 1
        assert bool((rows == 1).all())
        assert bool((columns == 1).all())
        assert (rows.shape, columns.shape) == ((3, 6), (4, 3))
        assert not x.any()
    if dtype == "float32":
        tensor, array = copied((x, x.numpy()[2:]))
        tensor[...] = 2
        np.testing.assert_array_equal(array, 2)


def test_a_kernel_sees_the_overlap_in_its_copies() -> None:
    """What it writes into one argument is what it then reads from the other, in a split of its precision too."""

    def reads_what_it_wrote(x: Any, head: Any) -> Any:
        tile = nl.ndarray((2, 8), nl.float32, nl.sbuf)
        nisa.memset(dst=tile, value=5.0)
        nisa.dma_copy(dst=x[0:2], src=tile)
        out = nl.ndarray((2, 8), nl.float32, nl.shared_hbm)
        nisa.dma_copy(dst=tile, src=head)
        nisa.dma_copy(dst=out, src=tile)
        return out

    x = np.zeros((4, 8), np.float32)

    def reference(x: Any, head: Any) -> Any:
        x[:2] = 5
        return head.copy()

    split = nkitools.precision_split(reads_what_it_wrote, x, x[:2], reference=reference)
    assert (split["output"].error.max_abs, split["output"].low_precision.max_abs) == (0, 0)
    np.testing.assert_array_equal(split.precise.outputs, 5)
