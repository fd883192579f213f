"""nisa.bn_stats, nisa.bn_aggr and nisa.tensor_partition_reduce against float64 references."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from tests.isa.issued import empty, inside, issue, placed, refusal, tile
from tests.isa.oracles import FLOATS, INTEGERS, float64, held, sample, words

pytestmark = pytest.mark.usefixtures("each_version")

Cases = dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]]
X = np.ones((32, 8), np.float32)
TALL = np.ones((256, 2), np.float32)
PACKED = np.zeros((32, 6), nl.float8_e5m2_x4.dtype)


def moments(rows: np.ndarray) -> np.ndarray:
    """Count, mean and variance * count of each row in float64; zeros of none."""
    if not rows.shape[1]:
        return np.zeros((rows.shape[0], 3))
    return np.stack(
        [np.full(rows.shape[0], rows.shape[1]), rows.mean(axis=1), rows.var(axis=1) * rows.shape[1]], axis=1
    )


# --- bn_stats --------------------------------------------------------------------------------------------------------


@given(
    st.sampled_from([(1, 1), (32, 2), (128, 511), (64, 512), (16, 3, 7), (8, 2, 4, 64)]),
    st.sampled_from([*FLOATS, *INTEGERS]),
    st.integers(0, 99),
)
def test_count_mean_and_scatter_of_even_and_odd_elements(shape: tuple[int, ...], dtype: Any, seed: int) -> None:
    """Even and odd by their place among all elements of the partition; any dtype is widened to float32."""
    x = sample(shape, dtype, seed, -50, 50)
    rows = float64(x).reshape(shape[0], -1)
    expected = np.concatenate([moments(rows[:, 0::2]), moments(rows[:, 1::2])], axis=1)
    issued = issue(nisa.bn_stats, empty((shape[0], 6)), tile(x, dtype=dtype))
    np.testing.assert_allclose(issued.dst, expected, rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal(issued.dst[:, [0, 3]], expected[:, [0, 3]])


@pytest.mark.parametrize("result", [nl.bfloat16, nl.float16, nl.int32], ids=str)
def test_statistics_are_cast_once(result: Any) -> None:
    """Six numbers that float32 holds exactly, rounded to dst's dtype; views of other dimensions, from PSUM."""
    x = np.tile(np.array([1, 7, 3, 9, 1, 7, 3, 9], np.float32), (32, 1))
    expected = held(np.tile([4, 2, 4, 4, 8, 4], (32, 1)), result)
    dst = empty((32, 2, 3), result)
    np.testing.assert_array_equal(issue(nisa.bn_stats, dst, tile(x, "psum")).dst.reshape(32, 6), expected)


def test_a_large_mean_does_not_drown_the_variance() -> None:
    """Deviations are taken from the mean, not squares from squares."""
    x = (10000 + sample((64, 512))).astype(np.float32)
    issued = issue(nisa.bn_stats, empty((64, 6)), tile(x))
    np.testing.assert_allclose(issued.dst[:, 2], float64(x)[:, 0::2].var(axis=1) * 256, rtol=1e-4)


BN_STATS_REFUSED: Cases = {
    "partitions": ("NK102", "`dst`", (empty((16, 6)), tile(X)), {}),
    "256 partitions": ("NK101", "`data`", (empty((256, 6)), tile(TALL)), {}),
    "513 elements": ("NK107", "`data`", (empty((32, 6)), tile(np.ones((32, 513), np.float32))), {}),
    "five results": ("NK109", "`dst`", (empty((32, 5)), tile(X)), {}),
    "twelve results": ("NK109", "`dst`", (empty((32, 12)), tile(X)), {}),
    "HBM": ("NK201", "`data`", (empty((32, 6)), tile(X, "hbm")), {}),
    "packed": ("NK301", "`data`", (empty((32, 6)), tile(PACKED)), {}),
}


@pytest.mark.parametrize("case", BN_STATS_REFUSED)
def test_what_bn_stats_refuses(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = BN_STATS_REFUSED[case]
    finding = refusal(nisa.bn_stats, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message


# --- bn_aggr ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 512), min_size=1, max_size=4), st.integers(0, 99))
def test_mean_and_variance_of_tiles_of_any_sizes(sizes: list[int], seed: int) -> None:
    """bn_stats of each tile into its six columns, one bn_aggr: numpy's mean and variance of the whole."""
    x = sample((32, sum(sizes)), seed=seed) + 3
    bounds = np.cumsum([0, *sizes])

    def body() -> np.ndarray:
        data, stats = placed(tile(x)), placed(empty((32, 6 * len(sizes))))
        result = placed(empty((32, 2)))
        for k, (first, last) in enumerate(itertools.pairwise(bounds)):
            nisa.bn_stats(dst=stats[:, 6 * k : 6 * k + 6], data=data[:, int(first) : int(last)])
        nisa.bn_aggr(dst=result, data=stats)
        return np.array(result.array)

    expected = np.stack([float64(x).mean(axis=1), float64(x).var(axis=1)], axis=1)
    np.testing.assert_allclose(inside(body), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16, nl.float16], ids=str)
def test_triples_of_any_count_are_weighted(dtype: Any) -> None:
    """One triple, and two of different counts, in the dtype that bn_stats has written."""
    triples = np.tile(held([2, 1, 4, 6, 5, 12], dtype), (16, 1))
    single = issue(nisa.bn_aggr, empty((16, 2)), tile(triples[:, :3])).dst
    np.testing.assert_array_equal(single, np.tile([1, 2], (16, 1)))
    both = issue(nisa.bn_aggr, empty((16, 2), dtype), tile(triples, "psum")).dst
    # 8 elements: mean (2 * 1 + 6 * 5) / 8 = 4; scatter 4 + 2 * 9 + 12 + 6 * 1 = 40
    np.testing.assert_array_equal(both, held(np.tile([4, 5], (16, 1)), dtype))


def test_statistics_in_place() -> None:
    """The results may lie over the triples."""
    stats = tile(np.tile(np.array([2, 1, 4], np.float32), (16, 1)))
    issued = issue(nisa.bn_aggr, stats.seen(lambda t: t[:, 1:]), stats)
    np.testing.assert_array_equal(issued.storages["dst"], np.tile([2, 1, 2], (16, 1)))


def test_costs_of_statistics() -> None:
    """max(64, N) and max(64, 13 * N / 3) cycles of the Vector Engine (SDK 2.26)."""
    x = np.ones((32, 512), np.float32)
    for instruction, args, cycles in (
        (nisa.bn_stats, (empty((32, 6)), tile(x)), 512),
        (nisa.bn_stats, (empty((32, 6)), tile(x[:, :9])), 64),
        (nisa.bn_aggr, (empty((32, 2)), tile(x[:, :48])), 208),
        (nisa.bn_aggr, (empty((32, 2)), tile(x[:, :6])), 64),
    ):
        issued = issue(instruction, *args)
        assert (issued.instruction.engine, issued.instruction.cycles) == ("vector", cycles)


STATS = np.ones((32, 6), np.float32)
BN_AGGR_REFUSED: Cases = {
    "partitions": ("NK102", "`dst`", (empty((16, 2)), tile(STATS)), {}),
    "256 partitions": ("NK101", "`data`", (empty((256, 2)), tile(np.ones((256, 3), np.float32))), {}),
    "no triples": ("NK113", "`data`", (empty((32, 2)), tile(X)), {}),
    "one result": ("NK109", "`dst`", (empty((32, 1)), tile(STATS)), {}),
    "six results": ("NK109", "`dst`", (empty((32, 6)), tile(STATS)), {}),
    "HBM": ("NK201", "`data`", (empty((32, 2)), tile(STATS, "hbm")), {}),
    "packed": ("NK301", "`data`", (empty((32, 2)), tile(PACKED)), {}),
}


@pytest.mark.parametrize("case", BN_AGGR_REFUSED)
def test_what_bn_aggr_refuses(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = BN_AGGR_REFUSED[case]
    finding = refusal(nisa.bn_aggr, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message


# --- tensor_partition_reduce -----------------------------------------------------------------------------------------

ARITHMETIC: dict[str, Any] = {"add": np.add, "maximum": np.maximum}
BITS: dict[str, Any] = {"bitwise_or": np.bitwise_or, "bitwise_and": np.bitwise_and}


@pytest.mark.parametrize("shape", [(128, 32, 4), (1, 5), (77, 30), (16, 2, 2, 3)])
@pytest.mark.parametrize("result", [nl.float32, nl.bfloat16, nl.int32], ids=str)
@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16, nl.int8], ids=str)
@pytest.mark.parametrize("name", [*ARITHMETIC, "average", "mean", "max"])
def test_partitions_are_reduced_in_float32(name: str, dtype: Any, result: Any, shape: tuple[int, ...]) -> None:
    """Whole numbers add exactly; the average is the sum over the number of partitions, rounded once, then cast."""
    x = held(np.random.default_rng(0).integers(-9, 10, shape), dtype)
    if name in ("average", "mean"):
        expected = (float64(x).sum(axis=0, keepdims=True) / shape[0]).astype(np.float32)
    else:
        expected = ARITHMETIC["maximum" if name == "max" else name].reduce(float64(x), axis=0, keepdims=True)
    dst = empty((1, *shape[1:]), result)
    np.testing.assert_array_equal(
        issue(
            nisa.tensor_partition_reduce, dst, getattr(nl, name), tile(x), version="0.7" if name == "mean" else None
        ).dst,
        held(expected, result),
    )


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", BITS)
def test_bits_are_reduced_as_they_are(name: str, dtype: Any) -> None:
    """Over the whole range of each integer dtype."""
    x = words((100, 24), dtype)
    if name == "bitwise_and":
        x = x | dtype.dtype.type(3)
    dst = empty((1, 24), dtype)
    issued = issue(nisa.tensor_partition_reduce, dst, getattr(nl, name), tile(x))
    np.testing.assert_array_equal(issued.dst, BITS[name].reduce(x, axis=0, keepdims=True))


@given(st.sampled_from(INTEGERS), st.integers(1, 128), st.integers(1, 24), st.integers(0, 99))
def test_bits_are_combined_exclusively_since_0_7(dtype: Any, partitions: int, columns: int, seed: int) -> None:
    """Each bit of the result says whether an odd number of partitions has it."""
    x = words((partitions, columns), dtype, seed)
    issued = issue(nisa.tensor_partition_reduce, empty((1, columns), dtype), nl.bitwise_xor, tile(x), version="0.7")
    for column in range(columns):
        odd = [sum(int(value) >> bit & 1 for value in x[:, column]) % 2 for bit in range(dtype.itemsize * 8)]
        assert [int(issued.dst[0, column]) >> bit & 1 for bit in range(dtype.itemsize * 8)] == odd


def test_a_sum_of_many_partitions_and_a_row_of_its_own_input() -> None:
    """128 fractions against float64; the destination may be the first row of what it reduces, in another shape."""
    x = sample((128, 6, 10))
    data = tile(x)
    issued = issue(nisa.tensor_partition_reduce, data.seen(lambda t: t[0:1].reshape(1, 60)), nl.add, data)
    np.testing.assert_allclose(issued.dst.reshape(6, 10), float64(x).sum(axis=0), rtol=1e-5, atol=1e-5)
    assert (issued.instruction.engine, issued.instruction.cycles) == ("gpsimd", 150 + 60 * 16)


N = np.ones((32, 8), np.int32)
ACROSS_REFUSED: Cases = {
    "partitions": ("NK109", "`dst`", (empty((32, 8)), nl.add, tile(X)), {}),
    "elements": ("NK109", "`dst`", (empty((1, 4)), nl.add, tile(X)), {}),
    "256 partitions": ("NK101", "`data`", (empty((1, 2)), nl.add, tile(TALL)), {}),
    "PSUM": ("NK201", "`data`", (empty((1, 8)), nl.add, tile(X, "psum")), {}),
    "into PSUM": ("NK201", "`dst`", (empty((1, 8), memory="psum"), nl.add, tile(X)), {}),
    "HBM": ("NK201", "`data`", (empty((1, 8)), nl.add, tile(X, "hbm")), {}),
    "bits of floats": ("NK301", "`data`", (empty((1, 8), nl.int32), nl.bitwise_or, tile(X)), {}),
    "bits into floats": ("NK301", "`dst`", (empty((1, 8)), nl.bitwise_or, tile(N)), {}),
    "packed": ("NK301", "`data`", (empty((1, 6)), nl.add, tile(PACKED)), {}),
    "minimum": ("NK306", "`op`", (empty((1, 8)), nl.minimum, tile(X)), {}),
    "multiply": ("NK306", "`op`", (empty((1, 8)), nl.multiply, tile(X)), {}),
    "exclusive or": ("NK306", "`op`", (empty((1, 8), nl.int32), nl.bitwise_xor, tile(N)), {"version": "0.6"}),
    "a mean": ("NK306", "`op`", (empty((1, 8)), nl.mean, tile(X)), {"version": "0.6"}),
    "six dimensions": ("NK110", "`data`", (empty((1, 8)), nl.add, tile(X.reshape(*X.shape[:1], 1, 1, 1, 1, 8))), {}),
    "no operator": ("NK609", "`op`", (empty((1, 8)), None, tile(X)), {}),
}


@pytest.mark.parametrize("case", ACROSS_REFUSED)
def test_what_tensor_partition_reduce_refuses(case: str) -> None:
    """One finding, of the documented rule, that names the operand."""
    rule, named, args, kwargs = ACROSS_REFUSED[case]
    finding = refusal(nisa.tensor_partition_reduce, *args, **kwargs)
    assert finding.rule == rule
    assert named in finding.message
