"""topk and nonzero_with_count against loops over Python lists."""

from __future__ import annotations

import inspect
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.dialects.version_forms import signature_in
from nkitools.facts import versions
from tests.isa.issued import empty, inside, issue, placed, refusal, tile
from tests.isa.oracles import sample

NAN, INF = math.nan, math.inf
BFLOAT16 = ml_dtypes.bfloat16


# --- topk ------------------------------------------------------------------------------------------------------------


def topk(
    values: np.ndarray, n: int, k: int, before: Any = None, version: str = "0.6", **kwargs: Any
) -> tuple[np.ndarray, np.ndarray]:
    """What nisa.topk leaves in its destinations under an NKI version."""
    partitions = values.shape[0]
    best = empty((partitions, k), nl.bfloat16) if before is None else tile(np.full((partitions, k), before, BFLOAT16))
    where = empty((partitions, k), nl.uint32) if before is None else tile(np.full((partitions, k), before, np.uint32))
    issued = issue(nisa.topk, best, where, tile(values, dtype=nl.bfloat16), n, version=version, **kwargs)
    return issued.views["val_dst"], issued.views["idx_dst"]


def snake(block: np.ndarray, count: int) -> list[Any]:
    """The first elements of 16 partitions, in the order of the snake."""
    return [block[i % 16, i // 16] for i in range(count)]


def top_of(block: np.ndarray, n: int, k: int) -> list[int]:
    """Positions of the K largest in ascending order; equal values: the smaller position counts as the larger."""
    values = [float(value) for value in snake(block, n)]
    order = sorted(range(n), key=lambda i: (values[i] != values[i], -values[i] if values[i] == values[i] else 0, i))
    return order[:k][::-1]


# Of each NKI version and argument: in which order the results come, given their places in ascending order of values.
ORDERS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "0.6": ("0.6", {}, list),
    "0.7": ("0.7", {}, sorted),
    "0.7 sorted": ("0.7", {"sorted": True}, list),
    "auto": ("auto", {"sorted": False}, sorted),
}


@pytest.mark.parametrize("order", ORDERS)
@given(st.integers(1, 3), st.integers(8, 70), st.data())
def test_topk_of_each_sixteen_partitions(order: str, cores: int, n: int, data: st.DataObject) -> None:
    """Values and places of the K largest along the snake, in the version's order; what lies beyond n plays no part."""
    version, kwargs, ordered = ORDERS[order]
    k = data.draw(st.integers(1, n))
    width = math.ceil(n / 16) + data.draw(st.integers(0, 2))
    elements = st.sampled_from([-INF, -3.5, -0.0, 0.0, 1.0, 2.0, INF, NAN])
    values = data.draw(arrays.arrays(np.float32, (16 * cores, width), elements=elements)).astype(BFLOAT16)
    best, where = topk(values, n, k, version=version, **kwargs)
    for core in range(cores):
        lanes = slice(16 * core, 16 * core + 16)
        expected = ordered(top_of(values[lanes], n, k))
        assert snake(where[lanes], k) == expected
        wanted = [snake(values[lanes], n)[i] for i in expected]
        np.testing.assert_array_equal(np.array(snake(best[lanes], k), np.float32), np.array(wanted, np.float32))


def test_topk_fills_whole_positions_since_0_7() -> None:
    """K = 18 writes two free elements of all 16 partitions: 14 of those are undefined, the third keeps what it had."""
    best, where = topk(sample((32, 3), nl.bfloat16), 42, 18, before=77, version="0.7")
    for lanes in (slice(0, 16), slice(16, 32)):
        assert np.isnan(best[lanes][2:, 1].astype(np.float32)).all()
        assert (where[lanes][2:, 1] == 4).all()
    assert (best[:, 2:] == 77).all()
    assert (where[:, 2:] == 77).all()
    assert (where[:, 0] < 42).all()
    assert (where[:2, 1] < 42).all()


def test_topk_leaves_the_rest_of_its_destinations_alone() -> None:
    """Before NKI 0.7 K results fill K positions of the snake: the others keep what they had."""
    values = sample((32, 3), nl.bfloat16)
    best, where = topk(values, 42, 10, before=77)
    assert (best[10:16] == 77).all()
    assert (best[:, 1:] == 77).all()
    assert (where[:, 1:] == 77).all()
    assert (best[:10, 0] != 77).all()


@pytest.mark.parametrize(("adds", "rule"), [(False, "NK621"), (True, "NK401")])
@pytest.mark.parametrize(("version", "written"), [("0.6", 3), ("0.7", 16)])
def test_topk_leaves_unwritten_what_it_does_not_write(version: str, written: int, adds: bool, rule: str) -> None:
    """K = 3 of 16 x 3 elements are written, since NKI 0.7 16 of them: the others leave the chip by copies alone."""

    def kernel() -> Any:
        values, best = placed(tile(sample((16, 4), nl.bfloat16))), placed(empty((16, 3), nl.bfloat16))
        nisa.topk(best, placed(empty((16, 3), nl.uint32)), values, 64)
        out, total = nl.ndarray((16, 3), nl.bfloat16, nl.shared_hbm), placed(empty((16, 3), nl.bfloat16))
        nisa.tensor_tensor(total, best, best, nl.add)
        nisa.dma_copy(out, total if adds else best)
        return out

    findings = nkitools.simulate(kernel, rules="report", nki_version=version).findings
    (found,) = (each for each in findings if each.rule != "NK513")
    assert found.rule == rule
    assert f"{48 - written} of 48 elements" in found.message


def test_topk_reads_no_more_than_n_elements() -> None:
    """What lies behind them may be unwritten; the last of them may not (NK401)."""

    def kernel(n: int) -> None:
        values = placed(empty((16, 4), nl.bfloat16))
        nisa.memset(values[:, 0:2], 1.0)
        nisa.topk(placed(empty((16, 1), nl.bfloat16)), placed(empty((16, 1), nl.uint32)), values, n)

    assert [nkitools.simulate(kernel, n, rules="report").findings for n in (20, 32)] == [[], []]
    (found,) = nkitools.simulate(kernel, 33, rules="report").findings
    assert found.rule == "NK401"


def test_topk_at_its_largest() -> None:
    """n = 65535 and K = 32767."""
    values = sample((16, 4096), nl.bfloat16)
    _, where = topk(values, 65535, 32767)
    assert [int(i) for i in snake(where, 32767)] == top_of(values, 65535, 32767)


# --- nonzero_with_count ----------------------------------------------------------------------------------------------


def nonzero(values: Any, *, before: Any = None, chip: str = "trn2", **kwargs: Any) -> np.ndarray:
    """What nisa.nonzero_with_count leaves."""
    source = tile(values)
    shape = (source.shape[0], *[1] * (len(source.shape) - 2), math.prod(source.shape[1:]) + 1)
    dst = empty(shape, nl.int32) if before is None else tile(np.full(shape, before, np.int32))
    return issue(nisa.nonzero_with_count, dst, source, chip=chip, **kwargs).dst


def listed(row: Any, offset: int, padding: int) -> list[int]:
    """Indices, padding and count of one row."""
    found = [index + offset for index, value in enumerate(row) if value != 0]
    return found + [padding] * (len(row) - len(found)) + [len(found)]


@given(
    arrays.arrays(
        np.float32, st.tuples(st.integers(1, 40), st.integers(1, 20)), elements=st.sampled_from([0, -0.0, 1, NAN])
    ),
    st.integers(-1000, 1000),
    st.integers(-5, 5),
)
def test_nonzero_lists_indices_padding_and_count(values: np.ndarray, offset: int, padding: int) -> None:
    """On every sixteenth partition; the others are not modified."""
    got = nonzero(values, before=123, index_offset=offset, padding_val=padding)
    for partition, row in enumerate(values):
        expected = listed(row, offset, padding) if partition % 16 == 0 else [123] * (len(row) + 1)
        assert got[partition].tolist() == expected


@pytest.mark.parametrize("chip", ["trn2", "trn3"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_nonzero_as_the_docstring_shows_it(dtype: Any, chip: str) -> None:
    """Of both dtypes, on every generation that has the instruction."""
    values = np.array([[0, 1, 1, 0, 0, 1, 0, 0]], dtype)
    assert nonzero(values, chip=chip, index_offset=16).tolist() == [[17, 18, 21, -1, -1, -1, -1, -1, 3]]


def test_nonzero_flattens_free_dimensions() -> None:
    """As AWS's kernels pass their tiles."""
    values = (np.random.default_rng(0).random((128, 3, 16)) < 0.3).astype(np.float32)
    got = nonzero(values)
    for partition in range(0, 128, 16):
        assert got[partition, 0].tolist() == listed(values[partition].reshape(-1), 0, -1)


def test_nonzero_reads_and_writes_every_sixteenth_partition() -> None:
    """The others may be unwritten, and stay so."""

    def body() -> None:
        source, result = placed(empty((32, 4))), placed(empty((32, 5), nl.int32))
        nisa.memset(dst=source[0:1, :], value=1.0)
        nisa.dma_copy(dst=source[16:17, :], src=source[0:1, :])
        nisa.nonzero_with_count(dst=result, src=source)
        written = ~result.storage.unwritten(result.layout, result.byte_offset)
        assert np.flatnonzero(written.all(axis=1)).tolist() == [0, 16]
        assert np.flatnonzero(written.any(axis=1)).tolist() == [0, 16]

    inside(body)


def test_nonzero_came_with_neuroncore_v3() -> None:
    """On v2 it is refused by the chip's name."""
    values = tile(np.ones((16, 8), np.float32))
    finding = refusal(nisa.nonzero_with_count, empty((16, 9), nl.int32), values, chip="trn1")
    assert finding.rule == "NK606"
    assert "NeuronCore-v2" in finding.message


# --- what is refused -------------------------------------------------------------------------------------------------

f32, bf16 = nl.float32, nl.bfloat16


def ones(*shape: int, dtype: Any = f32, memory: str = "sbuf") -> Any:
    """A written operand."""
    return tile(np.ones(shape, dtype.dtype), memory, dtype)


def outputs(
    partitions: int = 16, k: int = 8, values: Any = bf16, indices: Any = nl.uint32, memory: str = "sbuf"
) -> Any:
    """The destinations of topk."""
    return empty((partitions, k), values, memory), empty((partitions, k), indices, memory)


TOPK: dict[str, Any] = {
    "float32 source": ("NK301", *outputs(), ones(16, 3), 42),
    "float32 values": ("NK301", *outputs(values=f32), ones(16, 3, dtype=bf16), 42),
    "signed indices": ("NK301", *outputs(indices=nl.int32), ones(16, 3, dtype=bf16), 42),
    "source in PSUM": ("NK201", *outputs(), ones(16, 3, dtype=bf16, memory="psum"), 42),
    "results in PSUM": ("NK201", *outputs(memory="psum"), ones(16, 3, dtype=bf16), 42),
    "seven elements": ("NK107", *outputs(k=1), ones(16, 3, dtype=bf16), 7),
    "65536 elements": ("NK107", *outputs(), ones(16, 4096, dtype=bf16), 65536),
    "more results than elements": ("NK107", *outputs(k=9), ones(16, 3, dtype=bf16), 8),
    "32768 results": ("NK107", *outputs(k=32768), ones(16, 4000, dtype=bf16), 64000),
    "short source": ("NK109", *outputs(), ones(16, 2, dtype=bf16), 33),
    "24 partitions": ("NK113", *outputs(24), ones(24, 3, dtype=bf16), 42),
    "other partitions": ("NK102", *outputs(16), ones(32, 3, dtype=bf16), 42),
    "different K": ("NK109", outputs()[0], outputs(k=9)[1], ones(16, 3, dtype=bf16), 42),
    "three dimensions": ("NK110", empty((16, 1, 8), bf16), empty((16, 1, 8), nl.uint32), ones(16, 3, dtype=bf16), 42),
    "n is no integer": ("NK609", *outputs(), ones(16, 3, dtype=bf16), 42.0),
    "n is a tensor": ("NK609", *outputs(), ones(16, 3, dtype=bf16), ones(16, 1)),
}
I32 = nl.int32
NONZERO: dict[str, Any] = {
    "bfloat16 source": ("NK301", empty((16, 9), I32), ones(16, 8, dtype=bf16)),
    "unsigned source": ("NK301", empty((16, 9), I32), ones(16, 8, dtype=nl.uint32)),
    "float destination": ("NK301", empty((16, 9)), ones(16, 8)),
    "no place for the count": ("NK109", empty((16, 8), I32), ones(16, 8)),
    "two more elements": ("NK109", empty((16, 10), I32), ones(16, 8)),
    "other partitions": ("NK102", empty((17, 9), I32), ones(16, 8)),
    "source in PSUM": ("NK201", empty((16, 9), I32), ones(16, 8, memory="psum")),
    "destination in PSUM": ("NK201", empty((16, 9), I32, "psum"), ones(16, 8)),
    "offset of 2**31": ("NK609", empty((16, 9), I32), ones(16, 8), 2**31),
    "offset of 1.5": ("NK609", empty((16, 9), I32), ones(16, 8), 1.5),
    "padding of True": ("NK609", empty((16, 9), I32), ones(16, 8), 0, True),
    "padding of None": ("NK609", empty((16, 9), I32), ones(16, 8), 0, None),
}


def _each(table: dict[str, Any], instruction: Any) -> list[Any]:
    return [
        pytest.param(instruction, *case[:1], case[1:], id=f"{instruction.__name__}-{what}")
        for what, case in table.items()
    ]


@pytest.mark.parametrize(
    ("instruction", "rule", "args"), [*_each(TOPK, nisa.topk), *_each(NONZERO, nisa.nonzero_with_count)]
)
def test_what_the_docstring_does_not_allow_is_refused(instruction: Any, rule: str, args: tuple[Any, ...]) -> None:
    """One finding a cause, by the most specific rule, that begins with the instruction's name."""
    finding = refusal(instruction, *args)
    assert finding.rule == rule
    assert instruction.__name__ in finding.message


# --- the call, the record --------------------------------------------------------------------------------------------


def test_the_signatures_are_the_documented_ones() -> None:
    """Names, order and defaults."""
    assert str(inspect.signature(nisa.topk)) == "(val_dst, idx_dst, src, n, sorted=False, name=None)"
    assert str(signature_in(nisa.topk, versions.language_of("0.6"))) == "(val_dst, idx_dst, src, n, name=None)"
    assert str(inspect.signature(nisa.nonzero_with_count)) == "(dst, src, index_offset=0, padding_val=-1, name=None)"


@pytest.mark.parametrize(
    ("instruction", "args", "cycles"),
    [
        (nisa.topk, (*outputs(k=8), ones(16, 3, dtype=bf16), 42), 4 * 42 + 8),
        (nisa.nonzero_with_count, (empty((16, 9), nl.int32), ones(16, 8)), 158),
    ],
)
def test_engine_and_cost(instruction: Any, args: tuple[Any, ...], cycles: float) -> None:
    """As topk's docstring says; nonzero_with_count's cost is ours."""
    issued = issue(instruction, *args).instruction
    assert (issued.engine, issued.cycles) == ("gpsimd", cycles)
