"""tensor_copy_predicated, and which elements of selecting instructions' operands are read and written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip.masked_tensor import MaskedTensor
from tests.isa.issued import empty, inside, issue, placed, tile
from tests.isa.oracles import FLOATS, INTEGERS, held, sample
from tests.isa.test_select import chances

pytestmark = pytest.mark.usefixtures("each_version")

COMMANDS = nisa.reduce_cmd


@given(
    st.sampled_from([nl.uint8, nl.uint16, nl.uint32, nl.bool]),
    st.sampled_from([*FLOATS, *INTEGERS]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([((16, 10), (16, 10)), ((4, 2, 5), (4, 10))]),
    st.integers(0, 99),
)
def test_a_predicated_copy_leaves_the_rest(
    predicate: Any, dtype: Any, number: bool, reverse: bool, shapes: Any, seed: int
) -> None:
    """Tiles of one dtype, or a number; where the predicate does not hold, the destination keeps what it had."""
    p, old = chances(shapes[1], predicate, seed), sample(shapes[1], dtype, seed)
    x = sample(shapes[0], dtype, seed + 1)
    issued = issue(
        nisa.tensor_copy_predicated,
        dst=tile(old, dtype=dtype),
        src=3.25 if number else tile(x, dtype=dtype),
        predicate=tile(p, dtype=predicate),
        reverse_pred=reverse,
    )
    new = held(3.25, dtype) if number else x.reshape(old.shape)
    np.testing.assert_array_equal(issued.dst, np.where((p == 0) if reverse else (p != 0), new, old))


def test_whole_numbers_are_copied_exactly_and_packed_elements_as_bits() -> None:
    """16777217 is no float32; a packed element is neither computed on nor cast."""
    p = np.array([[1, 0, 1]], np.uint8)
    issued = issue(nisa.tensor_copy_predicated, tile(np.zeros((1, 3), np.int32)), 16777217, tile(p))
    np.testing.assert_array_equal(issued.dst, [[16777217, 0, 16777217]])
    packed = np.arange(6, dtype=np.uint32).reshape(2, 1, 3).view(nl.float8_e5m2_x4.dtype)
    issued = issue(nisa.tensor_copy_predicated, tile(packed[0]), tile(packed[1]), tile(p))
    np.testing.assert_array_equal(issued.dst.view(np.uint32), [[3, 1, 5]])


def test_predicated_copies_of_overlapping_tiles_and_under_a_mask() -> None:
    """Source or predicate in the destination's own tensor; masked lanes stay."""
    x, p = sample((8, 12)), chances((8, 10), nl.uint8)
    root = tile(x)
    views = root.seen(lambda t: t[:, 2:]), root.seen(lambda t: t[:, :10])
    issued = issue(nisa.tensor_copy_predicated, *views, tile(p))
    np.testing.assert_array_equal(issued.dst, np.where(p != 0, x[:, :10], x[:, 2:]))
    flags = tile(p)
    np.testing.assert_array_equal(issue(nisa.tensor_copy_predicated, flags, 9, flags).dst, np.where(p != 0, 9, p))
    kept = sample((8, 12), seed=1) > 0
    q = chances((8, 12), nl.uint8)
    masked = tile(x, view=lambda t: MaskedTensor.of(t, kept))
    issued = issue(nisa.tensor_copy_predicated, masked, 9.0, tile(q))
    np.testing.assert_array_equal(issued.storages["dst"], np.where(kept & (q != 0), 9, x))


# --- what was never written ------------------------------------------------------------------------------------------


def test_a_predicated_copy_writes_where_its_predicate_holds() -> None:
    """The other elements of a new tile stay unwritten: NK401 when they are read, until another copy writes them."""
    p = np.tri(8, dtype=np.uint8)

    def body(complete: bool) -> Any:
        dst, out = placed(empty((8, 8))), placed(empty((8, 8), memory="shared_hbm"))
        predicate = placed(tile(p))
        nisa.tensor_copy_predicated(dst, 1.0, predicate)
        nisa.dma_copy(out[:, :1], dst[:, :1])  # which the predicate covers
        if complete:
            nisa.tensor_copy_predicated(dst, 2.0, predicate, reverse_pred=True)
        nisa.dma_copy(out, dst)
        return np.array(out.array)

    with pytest.raises(nkitools.KernelError, match="28 of 64 elements") as caught:
        inside(lambda: body(False))
    assert caught.value.finding.rule == "NK401"
    for _ in range(2):  # the second time by way of a kept plan
        np.testing.assert_array_equal(inside(lambda: body(True)), np.where(p != 0, 1, 2))


def partly(shape: tuple[int, ...], region: tuple[slice, ...]) -> Any:
    """A tile of which only ``region`` holds ones."""
    tensor = placed(empty(shape))
    nisa.memset(tensor[region], 1.0)
    return tensor


LEFT = (slice(0, 8), slice(0, 4))


def test_elements_that_are_not_selected_need_not_be_written() -> None:
    """The columns from 4 on are unwritten, and no instruction chooses them."""
    p = np.zeros((8, 8), np.uint8)
    p[:, :4] = 1
    four = np.full((8, 1), 4, np.float32)

    def body() -> list[np.ndarray]:
        data, seen = partly((8, 8), LEFT), []
        predicate, bound, zero = placed(tile(p)), placed(tile(four)), placed(tile(0 * four))
        for call in (
            lambda dst: nisa.affine_select(dst, [[1, 8]], 0, data, 0.0, nl.less, -4),
            lambda dst: nisa.range_select(dst, data, nl.less, nl.greater_equal, bound, zero),
            lambda dst: nisa.select_reduce(dst, predicate, data, 0.0),
            lambda dst: nisa.select_reduce(dst, predicate, data, zero, None, COMMANDS.reset_reduce),
        ):
            dst = placed(empty((8, 8)))
            call(dst)
            out = placed(empty((8, 8)))
            nisa.tensor_copy(out, dst)
            seen.append(np.array(out.array))
        dst = placed(tile(np.zeros((8, 8), np.float32)))
        nisa.tensor_copy_predicated(dst, data, predicate)
        return [*seen, np.array(dst.array)]

    for found in inside(body):
        np.testing.assert_array_equal(found == 1, p == 1)


def test_elements_that_are_selected_must_be_written() -> None:
    """NK401, of the operand that lacks them where it is used at once, else of the result where it leaves."""
    p = np.tri(8, dtype=np.uint8)
    one = np.ones((8, 1), np.float32)
    calls = {
        "affine": lambda dst, p, v: nisa.affine_select(dst, [[1, 8]], 0, partly((8, 8), LEFT), 0.0, nl.less, -5),
        "range": lambda dst, p, v: nisa.range_select(dst, dst, nl.less, nl.less, v, partly((8, 1), (slice(0, 4),))),
        "select": lambda dst, p, v: nisa.select_reduce(dst, p, partly((8, 8), LEFT), 0.0),
        "vector": lambda dst, p, v: nisa.select_reduce(dst, p, dst, partly((8, 1), (slice(0, 4),)), reverse_pred=True),
        "copy": lambda dst, p, v: nisa.tensor_copy_predicated(dst, partly((8, 8), LEFT), p),
        "predicate": lambda dst, p, v: nisa.tensor_copy_predicated(dst, 1.0, placed(empty((8, 8), nl.uint8))),
    }
    missing = {"affine": 8, "range": 4, "select": 10, "vector": 32, "copy": 10, "predicate": 64}
    for name, call in calls.items():

        def body(call: Any = call) -> None:
            dst = placed(tile(np.zeros((8, 8), np.float32)))
            call(dst, placed(tile(p)), placed(tile(one)))
            nisa.dma_copy(placed(empty((8, 8), memory="shared_hbm")), dst)

        with pytest.raises(nkitools.KernelError, match=f"{missing[name]} of \\d+ elements") as caught:
            inside(body)
        assert caught.value.finding.rule == "NK401", name
