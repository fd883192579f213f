"""A tensor as an object: how it is made, what it says of itself, and what Python may not ask of it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkitools.chip.dtypes import DTYPES
from nkitools.chip.masked_tensor import MaskedTensor
from nkitools.chip.memory import PhysicalMemory, Storage
from nkitools.chip.tensor import NkiTensor
from nkitools.rules.finding import KernelError
from tests.chip.models import HBM, PSUM, SBUF, placed, refused, tensor


def test_a_placeholder_has_a_shape_and_no_data() -> None:
    """``storage=None``: a signature placeholder (nki.language.NkiTensor docstring), in SBUF by default."""
    t = NkiTensor((128, 4), "bfloat16", None, name="weights")
    assert (t.shape, t.dtype, t.buffer, t.name) == ((128, 4), "bfloat16", SBUF, "weights")
    assert NkiTensor((4,), np.float32, None, "hbm").buffer is HBM
    assert NkiTensor((4, 1), np.float32, None, PSUM).buffer is PSUM


def test_a_tensor_on_an_existing_storage() -> None:
    """The handle's bytes in any shape and dtype that they have; on chip with the handle's partitions."""
    storage = tensor((4, 8)).storage
    storage.array[...] = np.arange(32, dtype=np.float32).reshape(4, 8)
    again = NkiTensor((4, 2, 4), "float32", storage)
    assert again.storage is storage
    np.testing.assert_array_equal(again.read(), storage.array.reshape(4, 2, 4))
    assert NkiTensor((4, 16), "bfloat16", storage).strides == (16, 1)
    with refused("NK109", "does not have the storage's 128 bytes"):
        NkiTensor((4, 9), "float32", storage)
    with refused("NK109", "partition dimension"):
        NkiTensor((8, 4), "float32", storage)
    with refused("NK301"):
        NkiTensor((4, 8), "float64", storage)


def test_a_tensor_on_a_storage_at_an_address_is_no_copy() -> None:
    """Although its bytes are apart from partition to partition."""
    storage = placed((4, 8), "float32", (1, 16), PhysicalMemory(8, 128)).storage
    again = NkiTensor((4, 2, 4), "float32", storage)
    again.write(np.ones((4, 2, 4), np.float32))
    np.testing.assert_array_equal(storage.array, 1)
    assert again.address == (1, 16)


def test_it_says_where_it_lies() -> None:
    """Partition and byte on chip, byte in HBM."""
    assert tensor((128, 64))[3:, 5:].address == (3, 20)
    assert tensor((128, 64), memory=HBM)[3:, 5:].address == (0, (3 * 64 + 5) * 4)
    assert placed((4, 4), "bfloat16", (2, 8), PhysicalMemory(8, 64))[1:, 1:].address == (3, 10)


def test_offsets_in_a_layout_are_kept_within_a_psum_bank() -> None:
    """2 KiB: more of an offset no guard looks at, and tiles that differ in nothing else share their plans."""
    t = tensor((128, 2048), memory=PSUM)
    assert t[:, 512:1024].layout is t[:, 1024:1536].layout
    assert t[:, 512:1024].layout.free_offset == 0
    assert t[:, 513:1024].layout.free_offset == 4
    sbuf = tensor((128, 2048))
    assert sbuf[:, 1:2].layout is sbuf[:, 7:8].layout


def test_its_repr_shows_values_and_their_state() -> None:
    """Name, memory, dtype, shape, address, what is written and the values; a tensor without a name has none there."""
    t = tensor((2, 2), name="tile")
    t.write(np.ones((2, 2), np.float32))
    assert repr(t) == "<tensor `tile` (SBUF, float32 [2, 2]) at (0, 0), nothing written>\n[[-- --]\n [-- --]]"
    t[1:].storage.mark_written(t[1:].layout, t[1:].byte_offset)
    assert repr(t) == "<tensor `tile` (SBUF, float32 [2, 2]) at (0, 0), rows 1..1 of 2 written>\n[[-- --]\n [ 1  1]]"
    t.storage.mark_written(t.layout, 0)
    assert repr(t[1:]) == "<tensor `tile` (SBUF, float32 [1, 2]) at (1, 0), all written>\n[[1. 1.]]"
    assert repr(tensor((1, 1), "int32")).startswith("<tensor (SBUF, int32 [1, 1]) at")
    for dtype in DTYPES:
        assert repr(tensor((1, 1), dtype)).isprintable() or "\n" in repr(tensor((1, 1), dtype))


@pytest.mark.parametrize(
    ("written", "state"),
    [
        ([slice(0, 64)], "rows 0..63 of 128 written"),
        ([slice(0, 1), slice(2, 4)], "rows 0..0, 2..3 of 128 written"),
        ([slice(at, at + 1) for at in range(0, 10, 2)], "rows 0..0, 2..2, 4..4 and 2 more ranges of 128 written"),
        ([(slice(0, 128), slice(0, 3))], "384 of 1024 elements written, the first unwritten is [0, 3]"),
    ],
)
def test_its_repr_says_which_rows_are_written(written: list[Any], state: str) -> None:
    """Or how many elements, where rows are written in part."""
    t = tensor((128, 8))
    for key in written:
        t.storage.mark_written(t[key].layout, t[key].byte_offset)
    assert f", {state}>" in repr(t)


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 8), st.integers(0, 7), st.integers(1, 8)), max_size=6))
def test_looking_at_it_changes_nothing(boxes: list[tuple[int, int, int, int]]) -> None:
    """Neither the flags nor how they are kept: a look between two writes leaves what they would have left."""
    looked_at, left_alone = tensor((8, 8)), tensor((8, 8))
    for row, rows, column, columns in boxes:
        key = (slice(row, min(8, row + rows)), slice(column, min(8, column + columns)))
        for t in (looked_at, left_alone):
            t.storage.mark_written(t[key].layout, t[key].byte_offset)
        repr(looked_at), repr(looked_at[1:2]), repr(looked_at.view("int8"))
        for name in ("full", "unit", "box", "_remaining"):
            assert getattr(looked_at.storage, name) == getattr(left_alone.storage, name)
        np.testing.assert_array_equal(looked_at.storage.written, left_alone.storage.written)


def test_a_large_tensor_is_shown_by_its_corners() -> None:
    """In the few lines that NumPy needs."""
    t = tensor((128, 512), "bfloat16")
    t.storage.mark_written(t.layout, 0)
    assert len(repr(t).splitlines()) == 8
    t = tensor((128, 512), "bfloat16")
    t.storage.mark_written(t[:5].layout, 0)
    assert [line.split() for line in repr(t).splitlines()[4:6]] == [
        ["..."],
        ["[", "--", "--", "--", "...", "--", "--", "--]"],
    ]


def test_writing_puts_values_into_its_elements() -> None:
    """Of the view alone."""
    t = tensor((2, 3))
    t.write(np.zeros((2, 3), np.float32))
    t[:, 1:2].write(np.ones((2, 1), np.float32))
    assert t.read().tolist() == [[0, 1, 0], [0, 1, 0]]


def test_a_masked_tensor_writes_its_lanes_and_reads_all() -> None:
    """It is the end of a chain of views."""
    t = tensor((1, 3))
    t.write(np.zeros((1, 3), np.float32))
    masked = MaskedTensor.of(t, np.array([[True, False, True]]))
    masked.write(np.array([[7, 8, 9]], np.float32))
    assert masked.read().tolist() == t.read().tolist() == [[7, 0, 9]]
    assert (masked.direct, t.direct, masked.layout) == (False, True, t.layout)
    for make in (
        lambda: masked[:, 0:1],
        lambda: masked[0],
        lambda: masked.reshape((1, 3, 1)),
        lambda: masked.view("int32"),
    ):
        with refused("NK609", "a view under a mask is final"):
            make()


OPERATORS: tuple[Callable[..., Any], ...] = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.matmul,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
)


@pytest.mark.parametrize("compute", OPERATORS, ids=lambda function: function.__name__)
def test_pythons_operators_do_not_compute(compute: Callable[..., Any]) -> None:
    """Between tensors, and with a number on either side (NK601)."""
    t = tensor((2, 2), name="x")
    for operands in ((t, t), (t, 2), (2, t), (t, 2.5), (2.5, t)):
        with refused("NK601", "operators do not work on tensor `x` (SBUF, float32 [2, 2])"):
            compute(*operands)


@pytest.mark.parametrize("compute", [operator.neg, operator.pos, abs, operator.invert], ids=lambda f: f.__name__)
def test_nor_do_those_of_one_operand(compute: Callable[[Any], Any]) -> None:
    """NK601 as well."""
    with refused("NK601"):
        compute(tensor((2, 2)))


def test_an_operator_in_place_does_not_either() -> None:
    """``x += y`` would make a new tensor in silence."""
    t = tensor((2, 2))
    with refused("NK601"):
        t += 1  # type: ignore[misc]


@pytest.mark.parametrize("ask", [bool, lambda t: not t, lambda t: t and 1, int, float, complex, range, math.sqrt, hex])
def test_a_tensor_has_no_value_while_the_kernel_is_traced(ask: Callable[[Any], Any]) -> None:
    """Neither a truth value nor a number (NK602, which is a ValueError too)."""
    with refused("NK602", "its elements exist only when the kernel runs"):
        ask(tensor((1, 1)))
    with pytest.raises(ValueError, match="tensor"):
        ask(tensor((1, 1)))


@pytest.mark.parametrize(
    "ask",
    [list, np.asarray, np.sum, lambda t: np.float32(2) * t, lambda t: np.ones(2) + t, lambda t: 3 in t, lambda t: [*t]],
)
def test_numpy_and_loops_do_not_read_a_tensor(ask: Callable[[Any], Any]) -> None:
    """NK601."""
    with refused("NK601"):
        ask(tensor((2, 2)))


def test_equality_is_identity() -> None:
    """Kernels ask whether an optional tensor is None, and look for tensors in lists."""
    t, other = tensor((2, 2)), tensor((2, 2))
    assert t != None  # noqa: E711 (what a kernel's author may write)
    assert t == t
    assert t != other
    assert t in [other, t]
    assert {t: 1}[t] == 1


def test_a_refusal_outside_of_a_run_shows_no_placeholder() -> None:
    """The author's name of a tensor is found by the reporter of a run; without one the sentence does without."""
    with pytest.raises(KernelError) as raised:
        bool(NkiTensor.whole(Storage((2, 2), DTYPES["float32"], SBUF)))
    finding = raised.value.finding
    assert finding.message == (
        "the truth value of tensor (SBUF, float32 [2, 2]) is asked for; its elements exist only when the kernel runs"
    )
    assert finding.message in str(raised.value)
