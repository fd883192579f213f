"""``nisa.bn_stats``, ``nisa.bn_aggr`` and ``nisa.tensor_partition_reduce`` against NumPy."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, stored

I_P, I_F = nl.arange(16)[:, None], nl.arange(8)[None, :]


def moments(x: Any) -> Any:
    """Count, mean, variance * count of the even and of the odd elements of each row."""
    columns = []
    for half in (x[:, 0::2].astype(np.float64), x[:, 1::2].astype(np.float64)):
        columns += [np.full(len(x), half.shape[1]), half.mean(axis=1), half.var(axis=1) * half.shape[1]]
    return np.stack(columns, axis=1)


def test_statistics_of_a_tile_and_of_several() -> None:
    """Six numbers a partition, of which bn_aggr makes mean and variance, of one tile or more."""
    x = random(16, 24)
    np.testing.assert_allclose(outputs(stored(nisa.bn_stats), x), moments(x), rtol=1e-5, atol=1e-6)

    def kernel(a: Any) -> Any:
        result = nl.ndarray((16, 2), dtype=a.dtype, buffer=nl.shared_hbm)
        tile, stats = nl.load(a), nl.ndarray((16, 18), dtype=nl.float32)
        i_p, i_s, i_f = nl.arange(16)[:, None], nl.arange(6)[None, :], nl.arange(8)[None, :]
        for i in range(3):
            stats[i_p, 6 * i + i_s] = nisa.bn_stats(tile[i_p, 8 * i + i_f], dtype=nl.float32)
        nl.store(result, nisa.bn_aggr(stats))
        return result

    expected = np.stack([x.mean(axis=1), x.var(axis=1)], axis=1)
    np.testing.assert_allclose(outputs(kernel, x), expected, rtol=1e-5, atol=1e-6)


def test_the_partitions_of_a_mask_and_those_that_were_loaded() -> None:
    """Rows that a mask leaves out keep what they had; rows that hold nothing make nothing."""

    def kernel(a: Any) -> tuple[Any, Any]:
        masked = nl.ndarray((16, 2), dtype=a.dtype, buffer=nl.shared_hbm)
        loaded = nl.ndarray((12, 2), dtype=a.dtype, buffer=nl.shared_hbm)
        tile, found = nl.load(a[I_P, I_F], mask=I_P < 12), nl.zeros((16, 2), dtype=a.dtype)
        found[...] = nisa.bn_aggr(nisa.bn_stats(tile, mask=I_P < 9), mask=I_P < 9)
        nl.store(masked, found)
        nl.store(loaded, nisa.bn_aggr(nisa.bn_stats(tile))[0:12, :])
        return masked, loaded

    x = random(12, 8)
    expected = np.stack([x.mean(axis=1), x.var(axis=1)], axis=1)
    masked, loaded = outputs(kernel, x)
    np.testing.assert_allclose(loaded, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(masked[:9], expected[:9], rtol=1e-5, atol=1e-6)
    assert not masked[9:].any()


@pytest.mark.parametrize(("token", "reduce"), [(np.add, np.sum), (nl.add, np.sum), (nl.max, np.max), (np.max, np.max)])
def test_partitions_are_reduced(token: Any, reduce: Any) -> None:
    """Element by element, free dimensions kept, the result in one partition."""
    x = random(16, 3, 4)
    found = outputs(stored(lambda t: nisa.tensor_partition_reduce(token, t)), x)
    np.testing.assert_allclose(found, reduce(x, axis=0, keepdims=True), rtol=1e-5, atol=1e-5)


def test_partitions_are_reduced_under_a_mask_and_as_bits() -> None:
    """Only what the mask leaves; bits of integers."""

    def kernel(a: Any) -> Any:
        result = nl.ndarray((1, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        total = nl.zeros((1, 8), dtype=a.dtype)
        total[...] = nisa.tensor_partition_reduce(np.add, nl.load(a), mask=(I_P < 5) & (I_F >= 2))
        nl.store(result, total)
        return result

    x = random(16, 8)
    expected = np.zeros((1, 8))
    expected[0, 2:] = x[:5, 2:].sum(axis=0)
    np.testing.assert_allclose(outputs(kernel, x), expected, rtol=1e-5)
    bits = np.arange(64, dtype=np.int32).reshape(16, 4) * 7
    found = outputs(stored(lambda t: nisa.tensor_partition_reduce(nl.bitwise_or, t)), bits)
    np.testing.assert_array_equal(found, np.bitwise_or.reduce(bits, axis=0, keepdims=True))


@pytest.mark.parametrize(
    ("call", "rule", "said"),
    [
        (lambda t: nisa.bn_stats(t, mask=I_F < 4), "NK604", "bn_stats does not support"),
        (lambda t: nisa.bn_stats(nl.zeros((16, 513), dtype=nl.float32)), "NK107", "512"),
        (lambda t: nisa.bn_aggr(t), "NK113", "3"),
        (lambda t: nisa.bn_aggr(2.0), "NK609", "data"),
        (lambda t: nisa.tensor_partition_reduce(np.subtract, t), "NK306", "op"),
        (lambda t: nisa.tensor_partition_reduce(np.add, t, mask=I_P >= I_F), "NK604", "box"),
    ],
)
def test_what_is_refused(call: Any, rule: str, said: str) -> None:
    """Sizes, operators and masks that are not possible are refused by rule."""
    finding = refusal(stored(call), random(16, 8))
    assert finding.rule == rule
    assert said in finding.message
