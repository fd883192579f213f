"""local_gather and nc_n_gather against loops over Python lists."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.bits import DTYPES, bits, same_bits
from tests.isa.issued import empty, inside, issue, placed, refusal, tile
from tests.isa.oracles import sample, words

# --- local_gather ----------------------------------------------------------------------------------------------------


def gathered(source: np.ndarray, index: np.ndarray, each: int = 1, count: int | None = None) -> np.ndarray:
    """The definition, element by element."""
    source, index = source.reshape(source.shape[0], -1), index.reshape(index.shape[0], -1)
    count = 16 * index.shape[1] if count is None else count
    result = np.zeros((source.shape[0], count * each), source.dtype)
    for partition in range(source.shape[0]):
        core = partition // 16 * 16
        for number in range(count):
            first = int(index[core + number % 16, number // 16])
            for more in range(each):
                result[partition, number * each + more] = source[partition, first + more]
    return result


@given(st.integers(1, 3), st.integers(1, 4), st.sampled_from([1, 2, 4, 8, 16, 32]), st.data())
def test_local_gather_is_its_definition(cores: int, columns: int, each: int, data: st.DataObject) -> None:
    """Indices come from the core's 16 partitions, partition first, and so many of them as are valid."""
    partitions, size = 16 * cores, each + data.draw(st.integers(0, 20))
    indices = arrays.arrays(np.uint16, (partitions, columns), elements=st.integers(0, size - each))
    index = data.draw(indices)
    count = data.draw(st.one_of(st.none(), st.integers(1, 16 * columns)))
    source = words((partitions, size), nl.int32)
    there = 16 * columns if count is None else count
    dst = empty((partitions, there * each), nl.int32)
    issued = issue(nisa.local_gather, dst, tile(source), tile(index), each, count)
    np.testing.assert_array_equal(issued.dst, gathered(source, index, each, count))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_local_gather_moves_bits(dtype: Any) -> None:
    """Nothing is cast, whatever the dtype, and NaN stays the NaN that it was."""
    source, index = bits((32, 40), dtype), words((32, 2), nl.uint16) % np.uint16(37)
    issued = issue(nisa.local_gather, empty((32, 128), dtype), tile(source, dtype=dtype), tile(index), 4)
    same_bits(issued.dst, gathered(source, index, 4))


def test_local_gather_in_several_dimensions() -> None:
    """The shapes of AWS's example: rows of 4 elements, whose indices are multiplied by 4."""
    source = words((128, 64, 4), nl.int32)
    rows = np.tile(words((16, 4), nl.uint16) % np.uint16(64), (8, 1))
    issued = issue(nisa.local_gather, empty((128, 4, 16, 4), nl.int32), tile(source), tile(rows * np.uint16(4)), 4, 64)
    flat = [int(rows[number % 16, number // 16]) for number in range(64)]
    np.testing.assert_array_equal(issued.dst.reshape(128, 64, 4), source[:, flat, :])


def test_local_gather_finds_an_index_out_of_bounds() -> None:
    """The finding names where the index stands, the index and the limit; the element is undefined, the others right."""
    source, index = sample((32, 8)), np.zeros((32, 2), np.uint16)
    index[19, 1] = 7  # with 2 elements each, 6 is the last
    dst = empty((32, 64))
    finding = refusal(nisa.local_gather, dst, tile(source), tile(index), 2)
    assert finding.rule == "NK402"
    for part in ("`index` at partition 19, element 1,", "is 7;", "the 8 elements", "1 of 64 indices"):
        assert part in finding.message
    assert "from 0 to 6" in finding.remedy
    got = issue(nisa.local_gather, dst, tile(source), tile(index), 2, rules="report").dst
    number = 16 + 3  # of core 1
    expected = gathered(np.pad(source, ((0, 0), (0, 1)), constant_values=np.nan), index, 2)
    expected[:16] = gathered(source, np.zeros_like(index), 2)[:16]
    assert np.isnan(got[16:, 2 * number + 1]).all()
    np.testing.assert_array_equal(got, expected)


def test_local_gather_does_not_look_at_indices_that_do_not_count() -> None:
    """What lies behind num_valid_indices may hold anything."""
    index = np.zeros((16, 1), np.uint16)
    index[9:] = 65535
    assert issue(nisa.local_gather, empty((16, 9)), tile(np.ones((16, 4), np.float32)), tile(index), 1, 9).rules == []


# --- nc_n_gather -----------------------------------------------------------------------------------------------------


@given(st.integers(1, 5), st.integers(1, 30), st.integers(1, 40), st.data())
def test_n_gather_is_its_definition(partitions: int, size: int, count: int, data: st.DataObject) -> None:
    """Each partition by itself."""
    index = data.draw(arrays.arrays(np.uint32, (partitions, count), elements=st.integers(0, size - 1)))
    values = words((partitions, size), nl.int32)
    issued = issue(nisa.nc_n_gather, empty((partitions, count), nl.int32), tile(values), tile(index))
    expected = [[row[i] for i in each] for row, each in zip(values.tolist(), index.tolist(), strict=True)]
    assert issued.dst.tolist() == expected


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_n_gather_moves_bits_of_flattened_dimensions(dtype: Any) -> None:
    """Shapes may differ; the flattened order counts."""
    values, index = bits((7, 3, 5), dtype), words((7, 4, 2), nl.uint32) % np.uint32(15)
    issued = issue(nisa.nc_n_gather, empty((7, 8), dtype), tile(values, dtype=dtype), tile(index))
    expected = np.array([row.reshape(-1)[each.reshape(-1)] for row, each in zip(values, index, strict=True)])
    same_bits(issued.dst, expected)


@pytest.mark.parametrize(("dtype", "undefined"), [(nl.float32, math.nan), (nl.bfloat16, math.nan), (nl.int32, 4)])
def test_n_gather_finds_an_index_out_of_bounds(dtype: Any, undefined: float) -> None:
    """The finding names where the index stands, the index and the limit; the element is undefined, the others right."""
    values = tile(np.ones((4, 6), dtype.dtype), dtype=dtype)
    index = np.zeros((4, 3), np.uint32)
    index[2, 1], index[3, 0] = 6, 0xFFFFFFFF
    finding = refusal(nisa.nc_n_gather, empty((4, 3), dtype), values, tile(index))
    assert finding.rule == "NK402"
    for part in ("`indices` at partition 2, element 1, is 6;", "6 elements, 0 to 5", "2 of 12 indices"):
        assert part in finding.message
    got = issue(nisa.nc_n_gather, empty((4, 3), dtype), values, tile(index), rules="report").dst.astype(np.float32)
    expected = np.ones((4, 3))
    expected[2, 1] = expected[3, 0] = undefined
    np.testing.assert_array_equal(got, expected)


def test_an_index_out_of_bounds_is_found_each_time() -> None:
    """Not only where the combination is met for the first time; and it is an IndexError too."""

    def body() -> None:
        values, out = placed(tile(np.ones((1, 4), np.float32))), placed(empty((1, 1)))
        for number in (0, 9, 1, 7):
            index = placed(tile(np.full((1, 1), number, np.uint32)))
            nisa.nc_n_gather(dst=out, data=values, indices=index)

    run = nkitools.simulate(body, rules="report")
    (found,) = run.findings
    assert [place.message.split(";")[0][-2:].strip() for place in found.places] == ["9", "7"]
    with pytest.raises(IndexError):
        inside(body)


def test_n_gather_in_place_of_its_own_data() -> None:
    """All is read before anything is written."""
    values = np.arange(6, dtype=np.float32).reshape(1, 6)
    data = tile(values)
    reversing = tile(np.arange(5, -1, -1, dtype=np.uint32).reshape(1, 6))
    assert issue(nisa.nc_n_gather, data, data, reversing).dst.tolist() == values[:, ::-1].tolist()


# --- what is refused -------------------------------------------------------------------------------------------------


def ones(*shape: int, dtype: Any = nl.float32, memory: str = "sbuf") -> Any:
    """A written operand."""
    return tile(np.ones(shape, dtype.dtype), memory, dtype)


def zeros(*shape: int, dtype: Any = nl.uint16, memory: str = "sbuf") -> Any:
    """Indices."""
    return tile(np.zeros(shape, dtype.dtype), memory, dtype)


U32 = nl.uint32
LOCAL: dict[str, Any] = {
    "24 partitions": ("NK113", empty((24, 32)), ones(24, 8), zeros(24, 2)),
    "other partitions of index": ("NK102", empty((32, 32)), ones(32, 8), zeros(16, 2)),
    "other partitions of dst": ("NK102", empty((16, 32)), ones(32, 8), zeros(32, 2)),
    "32-bit indices": ("NK301", empty((16, 32)), ones(16, 8), zeros(16, 2, dtype=U32)),
    "signed indices": ("NK301", empty((16, 32)), ones(16, 8), zeros(16, 2, dtype=nl.int16)),
    "another dtype": ("NK301", empty((16, 32), nl.bfloat16), ones(16, 8), zeros(16, 2)),
    "source in PSUM": ("NK201", empty((16, 32)), ones(16, 8, memory="psum"), zeros(16, 2)),
    "index in PSUM": ("NK201", empty((16, 32)), ones(16, 8), zeros(16, 2, memory="psum")),
    "destination in PSUM": ("NK201", empty((16, 32), memory="psum"), ones(16, 8), zeros(16, 2)),
    "three elements each": ("NK609", empty((16, 96)), ones(16, 8), zeros(16, 2), 3),
    "64 elements each": ("NK609", empty((16, 2048)), ones(16, 64), zeros(16, 2), 64),
    "elements as a float": ("NK609", empty((16, 32)), ones(16, 8), zeros(16, 2), 1.0),
    "more valid indices than there are": ("NK609", empty((16, 33)), ones(16, 8), zeros(16, 2), 1, 33),
    "no valid index": ("NK609", empty((16, 1)), ones(16, 8), zeros(16, 2), 1, 0),
    "4097 indices": ("NK107", empty((16, 4097)), ones(16, 8), zeros(16, 257), 1, 4097),
    "dst of another size": ("NK109", empty((16, 31)), ones(16, 8), zeros(16, 2)),
    "dst without the elements of each": ("NK109", empty((16, 32)), ones(16, 8), zeros(16, 2), 2),
    "unwritten index": ("NK401", empty((16, 32)), ones(16, 8), empty((16, 2), nl.uint16)),
}
N_GATHER: dict[str, Any] = {
    "16-bit indices": ("NK301", empty((4, 2)), ones(4, 8), zeros(4, 2)),
    "signed indices": ("NK301", empty((4, 2)), ones(4, 8), zeros(4, 2, dtype=nl.int32)),
    "another dtype": ("NK301", empty((4, 2), nl.bfloat16), ones(4, 8), zeros(4, 2, dtype=U32)),
    "other partitions of indices": ("NK102", empty((4, 2)), ones(4, 8), zeros(3, 2, dtype=U32)),
    "one row of indices": ("NK111", empty((4, 2)), ones(4, 8), zeros(1, 2, dtype=U32)),
    "other partitions of dst": ("NK102", empty((5, 2)), ones(4, 8), zeros(4, 2, dtype=U32)),
    "dst of another size": ("NK109", empty((4, 3)), ones(4, 8), zeros(4, 2, dtype=U32)),
    "129 partitions": ("NK101", empty((129, 2)), ones(129, 8), zeros(129, 2, dtype=U32)),
    "data in PSUM": ("NK201", empty((4, 2)), ones(4, 8, memory="psum"), zeros(4, 2, dtype=U32)),
    "indices in PSUM": ("NK201", empty((4, 2)), ones(4, 8), zeros(4, 2, dtype=U32, memory="psum")),
    "destination in PSUM": ("NK201", empty((4, 2), memory="psum"), ones(4, 8), zeros(4, 2, dtype=U32)),
    "data in HBM": ("NK201", empty((4, 2)), ones(4, 8, memory="shared_hbm"), zeros(4, 2, dtype=U32)),
}


def _each(table: dict[str, Any], instruction: Any) -> list[Any]:
    return [
        pytest.param(instruction, *case[:1], case[1:], id=f"{instruction.__name__}-{what}")
        for what, case in table.items()
    ]


@pytest.mark.parametrize(
    ("instruction", "rule", "args"), [*_each(LOCAL, nisa.local_gather), *_each(N_GATHER, nisa.nc_n_gather)]
)
def test_what_the_docstring_does_not_allow_is_refused(instruction: Any, rule: str, args: tuple[Any, ...]) -> None:
    """One finding a cause, by the most specific rule, that begins with the instruction's name."""
    finding = refusal(instruction, *args)
    assert finding.rule == rule
    assert instruction.__name__ in finding.message


# --- the call, the record --------------------------------------------------------------------------------------------

SIGNATURES = {
    nisa.local_gather: "(dst, src_buffer, index, num_elem_per_idx=1, num_valid_indices=None, name=None)",
    nisa.nc_n_gather: "(dst, data, indices, name=None)",
}


@pytest.mark.parametrize(("instruction", "signature"), SIGNATURES.items(), ids=lambda value: getattr(value, "name", ""))
def test_the_signature_is_the_documented_one(instruction: Any, signature: str) -> None:
    """Names, order and defaults of NKI 0.6."""
    assert str(inspect.signature(instruction)) == signature


@pytest.mark.parametrize(
    ("instruction", "args", "engine", "cycles"),
    [
        # one element an index: 32/4 cycles each; eight of bfloat16: 60/32 for two at a time
        (nisa.local_gather, (empty((16, 32)), ones(16, 8), zeros(16, 2)), "gpsimd", 150 + 32 * 8),
        (
            nisa.local_gather,
            (empty((16, 256), nl.bfloat16), ones(16, 8, dtype=nl.bfloat16), zeros(16, 2), 8),
            "gpsimd",
            150 + 32 * 8 * (60 / 32) / 2,
        ),
        (nisa.nc_n_gather, (empty((4, 512)), ones(4, 8), zeros(4, 512, dtype=U32)), "gpsimd", 150 + 512),
        (nisa.nc_n_gather, (empty((4, 513)), ones(4, 8), zeros(4, 513, dtype=U32)), "gpsimd", 300 + 513),
    ],
)
def test_engine_and_cost(instruction: Any, args: tuple[Any, ...], engine: str, cycles: float) -> None:
    """As the docstrings of SDK 2.26 say; nc_n_gather's cost is ours."""
    issued = issue(instruction, *args).instruction
    assert (issued.engine, issued.cycles) == (engine, pytest.approx(cycles))


def test_more_elements_for_each_index_cost_less() -> None:
    """What num_elem_per_idx is for."""
    costs = [
        issue(nisa.local_gather, empty((16, 512)), ones(16, 64), zeros(16, 2), each, 512 // each).instruction.cycles
        for each in (16, 32)
    ]
    assert costs[1] < costs[0]
