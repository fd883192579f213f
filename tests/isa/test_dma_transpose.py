"""nisa.dma_transpose: what arrives, to the bit, and what each way to generate its descriptors asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.facts.generations import generation_of
from tests.isa.bits import DTYPES, bits, same_bits
from tests.isa.issued import Tile, empty, inside, issue, placed, refusal, tile
from tests.isa.oracles import words
from tests.isa.test_docstrings import named_rules

HBM = "shared_hbm"
MODE, SKIP = nisa.dge_mode, nisa.oob_mode.skip
ORDER = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}
U16, U32, I32 = nl.uint16, nl.uint32, nl.int32


# --- dma_transpose, direct -------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 7), min_size=2, max_size=4), st.sampled_from(["sbuf", HBM]), st.booleans())
def test_transpose_permutes_the_dimensions(shape: list[int], memory: str, named: bool) -> None:
    """2-D (1, 0), 3-D (2, 1, 0), 4-D (3, 1, 2, 0), with axes given and without."""
    x = words(tuple(shape), U16)
    order = ORDER[len(shape)]
    expected = x.transpose(order)
    kwargs = {"axes": order} if named else {}
    got = issue(nisa.dma_transpose, empty(expected.shape, U16), tile(x, memory), **kwargs).dst
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_transpose_moves_bits(dtype: Any) -> None:
    """Of every dtype."""
    x = bits((6, 20), dtype)
    same_bits(issue(nisa.dma_transpose, empty((20, 6), dtype), tile(x, HBM, dtype)).dst, x.T)


def test_transpose_of_views_and_in_place() -> None:
    """Strided ends, a tile onto itself."""
    x = words((8, 3, 10), U16)
    got = issue(nisa.dma_transpose, empty((5, 3, 8), U16), tile(x, HBM, view=lambda t: t[:, :, ::2])).dst
    np.testing.assert_array_equal(got, x[:, :, ::2].transpose(2, 1, 0))
    square = words((16, 16), U16)
    there = tile(square)
    np.testing.assert_array_equal(issue(nisa.dma_transpose, there, there, rules="report").dst, square.T)


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        ((1, 2, 8, 64), (64, 2, 8)),  # another rank
        ((1, 2, 8, 64), (64, 16)),
        ((1, 2, 8, 64), (64, 8, 2, 1)),  # as many elements, in another order
        ((2, 8, 64), (64, 16)),
        ((8, 64), (64, 2, 4)),
    ],
)
def test_a_destination_of_another_shape_is_refused(source: tuple[int, ...], destination: tuple[int, ...]) -> None:
    """NK109: the destination has the shape of the transposed source "exactly, including rank" (NKI 0.4)."""
    finding = refusal(nisa.dma_transpose, empty(destination, U16), ones(*source, memory=HBM))
    assert (finding.rule, str(list(destination)) in finding.message) == ("NK109", True)


def test_transpose_by_the_hardware() -> None:
    """The shapes that hardware descriptor generation takes."""
    for shape in ((16, 128), (16, 64), (2, 8, 128), (16, 3, 32), (4, 5, 4, 16)):
        x = words(shape, U16)
        expected = x.transpose(ORDER[x.ndim])
        issued = issue(nisa.dma_transpose, empty(expected.shape, U16), tile(x, HBM), dge_mode=MODE.hwdge)
        np.testing.assert_array_equal(issued.dst, expected)


def test_transpose_from_a_dynamic_address() -> None:
    """One slice of an HBM tensor, chosen by a register."""
    x = words((5, 16, 32), U16)

    def body() -> Any:
        dst = placed(empty((32, 16), U16))
        nisa.dma_transpose(dst, placed(tile(x, HBM)).select(0, nisa.register_alloc(3)), dge_mode=MODE.hwdge)
        return dst.array

    np.testing.assert_array_equal(inside(body), x[3].T)


def test_a_part_that_was_not_written_is_found() -> None:
    """NK401."""
    assert refusal(nisa.dma_transpose, empty((4, 8), U16), empty((8, 4), U16, HBM)).rule == "NK401"


@pytest.mark.parametrize(("memory", "efficiency"), [(HBM, 0.9), ("sbuf", 0.5)])
def test_cost_of_a_transpose(memory: str, efficiency: float) -> None:
    """ "Up to 90%" of the DMA bandwidth from HBM, "up to 50%" within SBUF, and the completion."""
    issued = issue(nisa.dma_transpose, empty((128, 4, 128), U16), ones(128, 4, 128, memory=memory))
    nanoseconds = 128 * 512 * 2 / generation_of("trn2").dma_bytes_per_second * 1e9 / efficiency + 1300
    assert (issued.instruction.engine, issued.instruction.nanoseconds) == ("dma", pytest.approx(nanoseconds))


# --- dma_transpose, indirect -----------------------------------------------------------------------------------------


def gathering(shape: tuple[int, ...], index: np.ndarray, **kwargs: Any) -> tuple[np.ndarray, np.ndarray]:
    """A table and what the indirect transpose of some of its rows leaves in a destination full of 7."""
    table = words(shape, U16)
    count = index.size
    free = int(np.prod(shape[1:]))
    pattern = [[free, count]]
    for dim in range(1, len(shape)):
        pattern.append([int(np.prod(shape[dim + 1 :])), shape[dim]])
    gathered = (count, *shape[1:])

    def body() -> Any:
        dst = placed(tile(np.full([gathered[axis] for axis in ORDER[len(shape)]], 7, np.uint16)))
        view = placed(tile(table, HBM)).ap(pattern, vector_offset=placed(tile(index)))
        nisa.dma_transpose(dst=dst, src=view, **kwargs)
        return np.array(dst.array)

    return table, inside(body)


@pytest.mark.parametrize("shape", [(50, 64), (50, 3, 16), (50, 1, 6, 128), (50, 6, 1, 8)], ids=str)
@pytest.mark.parametrize("form", [(16, 1), (128, 1), (48, 1), (128, 3)], ids=str)
def test_indirect_transpose(shape: tuple[int, ...], form: tuple[int, int]) -> None:
    """``src[indices.T.flatten()]``, transposed."""
    index = words(form, U32) % np.uint32(50)
    table, got = gathering(shape, index)
    np.testing.assert_array_equal(got, table[index.T.flatten()].transpose(ORDER[len(shape)]))


def test_indirect_transpose_skips_columns() -> None:
    """Indices out of bounds leave their columns of the destination as they were; without skip they are NK402."""
    index = np.arange(16, dtype=np.uint32).reshape(16, 1)
    index[[2, 9], 0] = 40, 0xFFFFFFFF
    table, got = gathering((20, 3, 8), index, oob_mode=SKIP, dge_mode=MODE.swdge)
    expected = table[np.where(index[:, 0] < 20, index[:, 0], 0)].transpose(2, 1, 0).copy()
    expected[..., [2, 9]] = 7
    np.testing.assert_array_equal(got, expected)
    with pytest.raises(nkitools.KernelError, match="is 40, out of bounds for the 20 rows") as raised:
        gathering((20, 3, 8), index)
    assert raised.value.finding.rule == "NK402"


def indexed(shape: tuple[int, ...], index: Any, memory: str = "sbuf", dtype: Any = U16) -> Callable[[], Any]:
    """The indirect transpose of a table of this shape."""

    def body() -> None:
        table = placed(tile(np.zeros(shape, dtype.dtype), HBM, dtype))
        view = table.vector_select(0, placed(index))
        order = ORDER.get(view.ndim, tuple(range(view.ndim)))
        nisa.dma_transpose(placed(empty(tuple(view.shape[axis] for axis in order), dtype)), view)

    return body


def indices(rows: int, dtype: Any = U32, columns: int = 1) -> Tile:
    """Zeros as indices."""
    return tile(np.zeros((rows, columns), dtype.dtype))


INDIRECT: dict[str, tuple[str, Callable[[], Any]]] = {
    "signed indices": ("NK301", indexed((4, 8), indices(16, I32))),
    "elements of 4 bytes": ("NK301", indexed((4, 8), indices(16), dtype=I32)),
    "24 rows": ("NK113", indexed((4, 8), indices(24))),
    "64 partitions of two columns": ("NK113", indexed((4, 8), indices(64, columns=2))),
    "129 to be partitions": ("NK101", indexed((4, 129), indices(16))),
    "two middle dimensions": ("NK109", indexed((4, 2, 2, 8), indices(16))),
    "indices of three dimensions": ("NK110", indexed((4, 8), tile(np.zeros((16, 1, 1), np.uint32)))),
}


@pytest.mark.parametrize("name", INDIRECT)
def test_constraints_of_the_indirect_transpose(name: str) -> None:
    """The list of the docstring, one finding each."""
    rule, body = INDIRECT[name]
    findings = nkitools.simulate(body, rules="report").findings
    assert [each.rule for each in findings] == [rule]
    assert findings[0].message.startswith("dma_transpose: ")


def test_trn1_has_no_indirect_transpose() -> None:
    """TRN2+ only."""
    body = indexed((4, 8), indices(16))
    assert [each.rule for each in nkitools.simulate(body, rules="report", chip="trn1").findings] == ["NK606"]


def ones(*shape: int, dtype: Any = U16, memory: str = HBM) -> Tile:
    """A written operand."""
    return tile(np.ones(shape, dtype.dtype), memory, dtype)


TRANSPOSE: dict[str, Any] = {
    "source in PSUM": ("NK201", empty((8, 4), U16), ones(4, 8, memory="psum")),
    "destination in HBM": ("NK201", empty((8, 4), U16, HBM), ones(4, 8)),
    "another dtype": ("NK301", empty((8, 4), nl.int16), ones(4, 8)),
    "one dimension": ("NK110", empty((8, 1), U16), ones(8)),
    "five dimensions": ("NK110", empty((1, 1, 1, 1, 1), U16), ones(1, 1, 1, 1, 1)),
    "other axes": ("NK609", empty((4, 2, 8), U16), ones(2, 4, 8), (1, 0, 2)),
    "axes of another number of dimensions": ("NK609", empty((8, 4), U16), ones(4, 8), (2, 1, 0)),
    "axes as a number": ("NK609", empty((8, 4), U16), ones(4, 8), 1),
    "another shape": ("NK109", empty((4, 8), U16), ones(4, 8)),
    "200 partitions": ("NK101", empty((200, 4), U16), ones(4, 200)),
    "software descriptors": ("NK609", empty((8, 16), U16), ones(16, 8), None, None, MODE.swdge),
    "hardware, 8 rows": ("NK113", empty((8, 8), U16), ones(8, 8), None, None, MODE.hwdge),
    "hardware, 3-D of 3": ("NK113", empty((8, 16, 3), U16), ones(3, 16, 8), None, None, MODE.hwdge),
    "hardware, 3-D of 2 by 4": ("NK113", empty((8, 4, 2), U16), ones(2, 4, 8), None, None, MODE.hwdge),
    "hardware, float32": ("NK301", empty((8, 16)), ones(16, 8, dtype=nl.float32), None, None, MODE.hwdge),
    "skip without an index": ("NK609", empty((8, 4), U16), ones(4, 8), None, None, MODE.unknown, SKIP),
    "another mode": ("NK609", empty((8, 4), U16), ones(4, 8), None, None, "hwdge"),
    "priority": ("NK606", empty((8, 4), U16), ones(4, 8), None, 1),
    "priority 4": ("NK609", empty((8, 4), U16), ones(4, 8), None, 4),
}


# --- the call --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRANSPOSE)
def test_what_dma_transpose_does_not_take(name: str) -> None:
    """One finding a cause, by the most specific rule."""
    rule, *args = TRANSPOSE[name]
    finding = refusal(nisa.dma_transpose, *args)
    assert finding.rule == rule
    assert rule in named_rules(nisa.dma_transpose.__doc__ or "")
    assert finding.message.startswith("dma_transpose: ")
