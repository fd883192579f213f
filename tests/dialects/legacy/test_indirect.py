"""Tiles as indices: gather and scatter of rows in HBM."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal

ROWS = np.array([5, 0, 31, 5, 7], np.int32)


def gather(x: Any, rows: Any) -> Any:
    i_p, i_f = nl.arange(5)[:, None], nl.arange(6)[None, :]
    result = nl.ndarray((5, 6), dtype=x.dtype, buffer=nl.shared_hbm)
    index = nl.load(rows[i_p])
    nl.store(result, nl.load(x[index[i_p, 0], i_f]))
    return result


def test_rows_are_gathered() -> None:
    """Each partition of a load reads the row that its index names."""
    x = random(32, 8)
    np.testing.assert_array_equal(outputs(gather, x, ROWS), x[ROWS, :6])


def test_indices_of_a_grid_and_integers_go_with_a_tile() -> None:
    """The free dimensions may be dense grids with steps, and integers may stand before the tile."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((16, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        index = nisa.iota(2 * nl.arange(16)[:, None], dtype=nl.int32)
        nl.store(result, nl.load(x[1, index, 2 * nl.mgrid[0:16, 0:4].x]))
        return result

    x = random(3, 32, 8)
    np.testing.assert_array_equal(outputs(kernel, x), x[1, ::2, ::2])


def test_rows_are_scattered() -> None:
    """Each partition of a store writes the row that its index names, and no other row is touched."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((32, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(result, -1.0)
        index = nisa.iota(3 * nl.arange(10)[:, None], dtype=nl.int32)
        nl.store(result[index, nl.arange(6)[None, :]], nl.load(x))
        return result

    x = random(10, 6)
    expected = np.full((32, 6), -1, np.float32)
    expected[:30:3] = x
    np.testing.assert_array_equal(outputs(kernel, x), expected)


def test_rows_out_of_bounds() -> None:
    """The error is AWS's: a bare IndexError that counts elements; oob_mode.skip leaves such rows out."""

    def kernel(x: Any, mode: Any) -> Any:
        result = nl.ndarray((16, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        index = nisa.iota(3 * nl.arange(16)[:, None], dtype=nl.int32)
        tile = nisa.memset((16, 6), value=-1, dtype=x.dtype)
        nisa.dma_copy(dst=tile, src=x[index, nl.arange(6)[None, :]], oob_mode=mode)
        nl.store(result, tile)
        return result

    x = random(32, 6)
    finding = refusal(kernel, x, nisa.oob_mode.error)
    assert finding.rule == "NK402"
    assert finding.message.startswith("index 198 is out of bounds for axis 0 with size 192, in elements: index 33 of ")
    assert "tensor `x` (HBM, float32 [32, 6]), which has 32 along dimension 0" in finding.message
    expected = np.full((16, 6), -1, np.float32)
    expected[:11] = x[::3]
    np.testing.assert_array_equal(outputs(kernel, x, nisa.oob_mode.skip), expected)


@pytest.mark.parametrize(
    ("use", "rule", "said"),
    [
        (lambda x, t, i: nl.load(x[nl.arange(16)[:, None], i]), "NK603", "err_indirect_indices_free_dim"),
        (lambda x, t, i: nl.load(x[i, :]), "NK603", "err_unsupported_mixing_basic_advanced_tensor_indexing"),
        (lambda x, t, i: nl.load(x[i, i]), "NK607", "several tiles"),
        (lambda x, t, i: nl.exp(t[i, nl.arange(6)[None, :]]), "NK603", "16 partitions"),
        (lambda x, t, i: nl.load(x[t[:, 0:1], nl.arange(6)[None, :]]), "NK301", "integers"),
    ],
)
def test_what_is_refused(use: Any, rule: str, said: str) -> None:
    """Tiles behind the partition dimension, next to slices, on chip or of fractions are refused by rule."""

    def kernel(x: Any) -> Any:
        return use(x, nl.load(x), nisa.iota(nl.arange(16)[:, None], dtype=nl.int32))

    finding = refusal(kernel, random(32, 6))
    assert finding.rule == rule
    assert said in finding.message
