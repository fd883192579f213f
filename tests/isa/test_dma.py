"""nisa.dma_compute, and what dma_copy says about descriptors."""

from __future__ import annotations

import inspect
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
from tests.isa.bits import bits
from tests.isa.issued import Tile, empty, inside, placed, tile
from tests.isa.oracles import FLOATS, INTEGERS, float64, held, sample, small_integers
from tests.isa.test_docstrings import named_rules

HBM = "shared_hbm"
MODE, SKIP = nisa.dge_mode, nisa.oob_mode.skip
U16, U32 = nl.uint16, nl.uint32


def ones(*shape: int, dtype: Any = U16, memory: str = HBM) -> Tile:
    """A written operand."""
    return tile(np.ones(shape, dtype.dtype), memory, dtype)


def indices(rows: int, dtype: Any = U32, columns: int = 1) -> Tile:
    """Zeros as indices."""
    return tile(np.zeros((rows, columns), dtype.dtype))


# --- dma_compute -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 16])
def test_compute_adds_its_sources(count: int) -> None:
    """Up to 16, from and to both memories, of any shapes with as many elements."""
    values = [small_integers((4, 12), seed) for seed in range(count)]
    shapes = [(4, 12), (48,), (12, 4), (2, 2, 12)]
    sources = [
        tile(each.reshape(shapes[number % 4]), HBM if number % 4 else "sbuf") for number, each in enumerate(values)
    ]

    def body() -> Any:
        dst = placed(empty((4, 12), memory=HBM))
        nisa.dma_compute(dst, [placed(each) for each in sources], nl.add, scales=[1.0] * count)
        return dst.array

    np.testing.assert_array_equal(inside(body), np.sum(values, axis=0))


@pytest.mark.parametrize("target", [*FLOATS, *INTEGERS], ids=str)
@pytest.mark.parametrize("source", [nl.bfloat16, nl.int32, nl.uint8], ids=str)
def test_compute_is_in_float32(source: Any, target: Any) -> None:
    """Sources are cast to float32, added there, and the sum is cast once."""
    first, second = (sample((8, 16), source, seed, -200, 200) for seed in (1, 2))
    total = first.astype(np.float32) + second.astype(np.float32)

    def body() -> Any:
        dst = placed(empty((8, 16), target))
        nisa.dma_compute(dst, [placed(tile(each, dtype=source)) for each in (first, second)], nl.add)
        return np.array(dst.array)

    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(float64(inside(body)), float64(held(total, target)))


def test_compute_into_one_of_its_sources() -> None:
    """Also into a part that overlaps another one: all is read first."""

    def body() -> Any:
        t = placed(tile(np.arange(12, dtype=np.float32), HBM))
        nisa.dma_compute(t[1:11], [t[0:10], t[1:11], t[2:12]], nl.add)
        return np.array(t.array)

    x = np.arange(12.0)
    np.testing.assert_array_equal(inside(body, rules="report"), [0, *(x[:10] + x[1:11] + x[2:]), 11])


@given(st.permutations(range(6)), st.integers(1, 6), st.booleans(), st.booleans())
def test_scatter_adds_rows(order: list[int], count: int, first: bool, skipping: bool) -> None:
    """``table[index] += tile``, in either order of the sources; rows out of bounds are left out."""
    index = np.array(order[:count])
    if skipping:
        index[0] = 6 + order[0]
    table, added = small_integers((6, 8), 1), small_integers((count, 8), 2)

    def body() -> Any:
        t, tiled = placed(tile(table, HBM)), placed(tile(added))
        offset = placed(tile(index.astype(np.int32).reshape(-1, 1)))
        pattern = [[8, count], [1, 8]]
        dst, src = (t.ap(pattern, vector_offset=offset) for _ in range(2))
        nisa.dma_compute(dst, [src, tiled] if first else [tiled, src], nl.add, oob_mode=SKIP)
        return np.array(t.array)

    expected = table.copy()
    for row, values in zip(index, added, strict=True):
        if row < 6:
            expected[row] += values
    np.testing.assert_array_equal(inside(body), expected)


def from_rows_to_rows(table: Any, source: list[int], target: list[int], level: str = "error") -> tuple[Any, list[str]]:
    """Gather rows of 4 of a table and scatter them into rows of zeros; the result, and the rules of the findings."""
    width = 4 * len(source) // len(target)

    def kernel(x: Any, y: Any, i: Any, j: Any) -> Any:
        src = x.ap([[4, len(source)], [1, 4]], vector_offset=nl.load(i))
        dst = y.ap([[width, len(target)], [1, width]], vector_offset=nl.load(j))
        nisa.dma_copy(dst, src, oob_mode=SKIP)
        return y

    columns = [np.array(each, np.int32).reshape(-1, 1) for each in (source, target)]
    run = nkitools.simulate(kernel, table, np.zeros((6, width), np.float32), *columns, rules=level)
    return run.outputs, [each.rule for each in run.findings]


@given(st.sampled_from([(4, 2), (2, 4), (6, 3), (6, 4), (3, 6), (4, 4), (4, 1), (1, 4)]), st.data())
def test_gather_and_scatter_in_one_copy(sizes: tuple[int, int], data: st.DataObject) -> None:
    """Of unequally many rows, whose elements are taken in order; those of rows out of bounds are left out."""
    source = data.draw(st.lists(st.integers(0, 8), min_size=sizes[0], max_size=sizes[0]))
    target = data.draw(st.permutations(range(8)))[: sizes[1]]
    table = small_integers((6, 4), 1)
    expected = np.zeros((6, 4 * sizes[0] // sizes[1]), np.float32)
    for number in range(4 * sizes[0]):
        row, (entry, column) = source[number // 4], divmod(number, expected.shape[1])
        if row < 6 and target[entry] < 6:
            expected[target[entry], column] = table[row, number % 4]
    found, rules = from_rows_to_rows(table, source, target)
    np.testing.assert_array_equal(found, expected)
    assert rules == []


@pytest.mark.parametrize(("source", "rules"), [([0, 9, 9, 3], []), ([0, 9, 3, 9], ["NK509"]), ([0, 9, 0, 9], [])])
def test_parts_of_rows_that_come_twice(source: list[int], rules: list[str]) -> None:
    """NK509 is about the elements that two values come for: here the two halves of row 5, or one of them twice."""
    table = np.arange(24, dtype=np.float32).reshape(6, 4)
    assert from_rows_to_rows(table, source, [5, 5], "report")[1] == rules


@pytest.mark.parametrize("first", [True, False])
def test_gather_adds_rows(first: bool) -> None:
    """``tile += table[index]``, of a table of another dtype too; an index may come twice, and may be skipped."""
    table, start = sample((6, 8), nl.bfloat16, 1), small_integers((4, 8), 2)
    index = np.array([[3], [3], [9], [0]], np.int32)

    def body() -> Any:
        dst = placed(tile(start))
        rows = placed(tile(table, HBM, nl.bfloat16)).vector_select(0, placed(tile(index)))
        nisa.dma_compute(dst, [dst, rows] if first else [rows, dst], nl.add, oob_mode=SKIP)
        return np.array(dst.array)

    expected = start.copy()
    expected[[0, 1, 3]] += table[[3, 3, 0]].astype(np.float32)
    np.testing.assert_array_equal(inside(body), expected)


def scatter(index: list[int], **kwargs: Any) -> Callable[[], Any]:
    """Add ones to rows of a table of four."""

    def body() -> Any:
        t = placed(tile(np.zeros((4, 2), np.float32), HBM))
        view = t.vector_select(0, placed(tile(np.array(index, np.int32).reshape(-1, 1))))
        nisa.dma_compute(view, [view, placed(ones(len(index), 2, dtype=nl.float32, memory="sbuf"))], nl.add, **kwargs)
        return np.array(t.array)

    return body


def test_rows_that_are_named_twice() -> None:
    """NK505 says which; out of bounds and skipped they do not count."""
    finding = nkitools.simulate(scatter([1, 3, 0, 3]), rules="report").findings[0]
    assert finding.rule == "NK505"
    assert "partitions 1 and 3 of" in finding.message
    assert "both name row 3 of" in finding.message
    np.testing.assert_array_equal(inside(scatter([1, 9, 9], oob_mode=SKIP))[:, 0], [0, 1, 0, 0])


def test_each_call_looks_whether_its_source_is_its_destination() -> None:
    """Two calls of the same layouts, of which only the first adds in place."""

    def body() -> None:
        tables = [placed(tile(np.zeros((4, 2), np.float32), HBM)) for _ in range(2)]
        index = placed(tile(np.zeros((1, 1), np.int32)))
        one, other = (each.vector_select(0, index) for each in tables)
        added = placed(ones(1, 2, dtype=nl.float32, memory="sbuf"))
        nisa.dma_compute(one, [one, added], nl.add)
        nisa.dma_compute(one, [other, added], nl.add)

    findings = nkitools.simulate(body, rules="report").findings
    assert [each.rule for each in findings] == ["NK609"]
    assert "srcs=[dst, tile]" in findings[0].remedy


F32 = nl.float32


def computed(dst: Tile, *srcs: Any, op: Any = nl.add, **kwargs: Any) -> Callable[[], Any]:
    """A dma_compute of these."""
    return lambda: nisa.dma_compute(placed(dst), [placed(each) for each in srcs], op, **kwargs)


def plain(*shape: int, memory: str = HBM, dtype: Any = F32) -> Tile:
    """A written operand."""
    return ones(*shape, memory=memory, dtype=dtype)


def moved(**kwargs: Any) -> Callable[[], Any]:
    """A source whose address a register decides."""

    def body() -> None:
        source = placed(plain(4, 8)).select(0, nisa.register_alloc(1))
        nisa.dma_compute(placed(empty((8,), memory=HBM)), [source, placed(plain(8))], nl.add, **kwargs)

    return body


def update(make: Callable[[Any, Any, Any], tuple[Any, list[Any]]], **kwargs: Any) -> Callable[[], Any]:
    """A read-modify-write on gathered rows of a table, a tile and another tensor in HBM."""

    def body() -> None:
        rows = placed(plain(6, 8)).vector_select(0, placed(tile(np.arange(4, dtype=np.int32).reshape(4, 1))))
        dst, srcs = make(rows, placed(plain(4, 8, memory="sbuf")), placed(plain(4, 8)))
        nisa.dma_compute(dst, srcs, nl.add, **kwargs)

    return body


COMPUTE: dict[str, tuple[str, Callable[[], Any]]] = {
    "no source": ("NK609", computed(empty((4, 8)))),
    "17 sources": ("NK609", computed(empty((4, 8)), *[plain(4, 8)] * 17)),
    "a tensor instead of a list": (
        "NK609",
        lambda: nisa.dma_compute(placed(empty((4, 8))), placed(plain(4, 8)), nl.add),
    ),
    "a number among the sources": (
        "NK609",
        lambda: nisa.dma_compute(placed(empty((4, 8))), [placed(plain(4, 8)), 1.0], nl.add),
    ),
    "multiply": ("NK306", computed(empty((4, 8)), plain(4, 8), op=nl.multiply)),
    "an activation function": ("NK306", computed(empty((4, 8)), plain(4, 8), op=nl.exp)),
    "a scale of 2": ("NK609", computed(empty((4, 8)), plain(4, 8), scales=[2.0])),
    "two scales": ("NK609", computed(empty((4, 8)), plain(4, 8), scales=[1.0, 1.0])),
    "a scale alone": ("NK609", computed(empty((4, 8)), plain(4, 8), scales=1.0)),
    "source in PSUM": ("NK201", computed(empty((4, 8)), plain(4, 8, memory="psum"))),
    "destination in PSUM": ("NK201", computed(empty((4, 8), memory="psum"), plain(4, 8))),
    "another size": ("NK109", computed(empty((4, 8)), plain(4, 8), plain(4, 9))),
    "packed": ("NK301", computed(empty((4, 8)), tile(bits((4, 8), nl.float8_e4m3fn_x4), HBM, nl.float8_e4m3fn_x4))),
    "unwritten": ("NK401", computed(empty((4, 8)), plain(4, 8), empty((4, 8), memory=HBM))),
    "skip without indices": ("NK609", computed(empty((4, 8)), plain(4, 8), oob_mode=SKIP)),
    "another oob_mode": ("NK609", computed(empty((4, 8)), plain(4, 8), oob_mode="skip")),
    "unique_indices as a number": ("NK609", computed(empty((4, 8)), plain(4, 8), unique_indices=1)),
    "a register decides the address": ("NK609", moved()),
    "scatter into another": ("NK609", update(lambda rows, t, hbm: (rows, [t, t]))),
    "scatter from HBM": ("NK201", update(lambda rows, t, hbm: (rows, [rows, hbm]))),
    "scatter of rows": ("NK609", update(lambda rows, t, hbm: (rows, [rows, rows]))),
    "scatter of one": ("NK609", update(lambda rows, t, hbm: (rows, [rows]))),
    "scatter of three": ("NK609", update(lambda rows, t, hbm: (rows, [rows, t, t]))),
    "scatter of rows that are not unique": (
        "NK609",
        update(lambda rows, t, hbm: (rows, [rows, t]), unique_indices=False),
    ),
    "gather into HBM": ("NK201", update(lambda rows, t, hbm: (hbm, [hbm, rows]))),
    "gather onto nothing": ("NK609", update(lambda rows, t, hbm: (t, [rows]))),
    "gather onto another": ("NK609", update(lambda rows, t, hbm: (t, [hbm, rows]))),
}


@pytest.mark.parametrize("name", COMPUTE)
def test_what_dma_compute_does_not_take(name: str) -> None:
    """One finding a cause."""
    rule, body = COMPUTE[name]
    findings = nkitools.simulate(body, rules="report").findings
    assert [each.rule for each in findings] == [rule]
    assert "dma_compute" in findings[0].message
    assert rule in named_rules(nisa.dma_compute.__doc__ or "")


def test_a_compute_is_recorded_with_all_its_operands() -> None:
    """In the order of the call, at the author's line; it costs twice a copy before NeuronCore-v4."""

    def body() -> None:
        nisa.dma_compute(placed(empty((4, 8))), [placed(plain(4, 8)), placed(plain(4, 8))], nl.add)

    for chip, factor in (("trn2", 2), ("trn3", 1)):
        issued = nkitools.simulate(body, chip=chip).instructions[-1]
        assert (issued.name, issued.engine) == ("dma_compute", "dma")
        assert [each.written for each in issued.operands] == [True, False, False]
        assert issued.file == __file__
        copying = 4 * 8 * 4 / generation_of(chip).dma_bytes_per_second * 1e9 + 1300
        assert issued.cycles == 0
        assert issued.nanoseconds == pytest.approx(factor * copying)


# --- descriptors of dma_copy -----------------------------------------------------------------------------------------


def copying(kind: str, mode: Any, chip: str = "trn2") -> list[str]:
    """The rules that speak when rows are copied by this descriptor mode."""

    def body() -> None:
        table, tiled = placed(plain(6, 8)), placed(plain(1, 8, memory="sbuf"))
        index = placed(tile(np.ones((1, 1), np.int32)))
        if kind == "gather":
            nisa.dma_copy(tiled, table.vector_select(0, index), dge_mode=mode)
        elif kind == "scatter":
            nisa.dma_copy(table.vector_select(0, index), tiled, dge_mode=mode)
        elif kind == "dynamic":
            nisa.dma_copy(tiled, table.select(0, index), dge_mode=mode)
        else:
            nisa.dma_copy(tiled, table[1:2], dge_mode=mode)

    findings = nkitools.simulate(body, rules="report", chip=chip).findings
    return [each.rule for each in findings if each.rule != "NK408"]  # nothing is returned


def test_which_descriptor_mode_takes_which_address() -> None:
    """The table "How .ap() Affects DGE Mode" (nki-dge), also behind a copy of the same layouts."""
    allowed = {
        "static": (MODE.unknown, MODE.none, MODE.swdge, MODE.hwdge),
        "dynamic": (MODE.unknown, MODE.swdge, MODE.hwdge),
        "gather": (MODE.unknown, MODE.swdge),
        "scatter": (MODE.unknown, MODE.swdge),
    }
    for kind, modes in allowed.items():
        for mode in MODE:
            assert copying(kind, mode) == ([] if mode in modes else ["NK609"]), (kind, mode)
    assert copying("gather", MODE.unknown, "trn1") == []


def test_a_copy_takes_one_index_per_partition() -> None:
    """A vector_offset of shape (P, 1) (dma_copy docstring); several columns are dma_transpose's."""

    def body() -> None:
        rows = placed(plain(6, 8)).ap([[8, 4], [1, 8]], vector_offset=placed(indices(2, columns=2)))
        nisa.dma_copy(placed(empty((4, 8))), rows)

    assert [each.rule for each in nkitools.simulate(body, rules="report").findings] == ["NK109"]


# --- the call --------------------------------------------------------------------------------------------------------

SIGNATURES = {
    "dma_transpose": "(dst, src, axes=None, priority=None, dge_mode=unknown, oob_mode=error, name=None)",
    "dma_compute": "(dst, srcs, reduce_op, scales=None, unique_indices=True, oob_mode=error, name=None)",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_signature_is_the_documented_one(name: str) -> None:
    """Names, order and defaults of NKI 0.6."""
    signature = str(inspect.signature(getattr(nisa, name)))
    for enum in (MODE.unknown, nisa.oob_mode.error):
        signature = signature.replace(repr(enum), enum.name)
    assert signature == SIGNATURES[name]


@pytest.mark.parametrize("version", ["0.6", "0.7"])
@pytest.mark.parametrize("rows", [129, 256])
def test_a_tile_that_is_too_tall_is_refused_where_it_is_filled(rows: int, version: str) -> None:
    """NK101 at the copy into it, once, as AWS's simulator has it; a part of it that fits is filled without one."""

    def kernel(x: Any, whole: bool) -> Any:
        out = nl.ndarray((128, 1), dtype=x.dtype, buffer=nl.shared_hbm)
        tall = nl.ndarray((rows, 8), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tall if whole else tall[0:128], src=x if whole else x[0:128])
        nisa.dma_copy(dst=out, src=nl.sum(tall[0:128], axis=[1], keepdims=True))
        return out

    x = np.ones((rows, 8), np.float32)
    done = nkitools.simulate(kernel, x, True, nki_version=version, rules="report")
    (finding,) = [each for each in done.findings if each.severity == "error"]
    assert finding.rule == "NK101"
    assert finding.message.startswith(
        f"dma_copy: `dst`, tensor `tall` (SBUF, float32 [{rows}, 8]), has {rows} partitions"
    )
    done = nkitools.simulate(kernel, x, False, nki_version=version, rules="report")
    assert not [each for each in done.findings if each.message.startswith("dma_copy")]
    assert (done.outputs == 8).all()


def test_rows_that_were_never_written_are_named_by_their_own_indices() -> None:
    """NK401 names the rows that the index chose, not those at the head of the table."""

    def kernel(index: Any) -> Any:
        out = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        table = nl.ndarray((9, 2, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        ones, rows = nl.ndarray((8, 8), dtype=nl.float32), nl.ndarray((4, 8), dtype=nl.float32)
        nisa.memset(dst=ones, value=1.0)
        nisa.dma_copy(dst=table[0:8, 1, :], src=ones)
        chosen = table.ap([[16, 4], [1, 8]], offset=8, vector_offset=nl.load(index), indirect_dim=0)
        nisa.dma_copy(dst=rows, src=chosen)
        nisa.dma_copy(dst=out, src=rows)
        return out

    index = np.array([[8], [3], [8], [0]], np.int32)
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, index)
    assert caught.value.finding.rule == "NK401"
    assert "16 of 32 elements" in caught.value.finding.message
    assert "these are `table[8, 1, 0:8]`" in caught.value.finding.message
