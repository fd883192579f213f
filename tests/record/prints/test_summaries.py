"""Arrays in few numbers, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from nkitools.record.prints import summaries
from nkitools.record.prints.summaries import blocks_of, corners_of, summary_of

FLOATS = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=1, max_dims=3, max_side=40),
    elements=st.floats(width=32, min_value=-1e6, max_value=1e6) | st.sampled_from([np.nan, np.inf, -np.inf]),
)


@given(FLOATS, st.integers(0, 2**32 - 1))
def test_the_numbers_are_those_of_numpy(values: Any, seed: int) -> None:
    """Of the finite elements that were written; NaN, infinite and unwritten ones are counted, each once."""
    unwritten = np.random.default_rng(seed).random(values.shape) < 0.2
    summary = summary_of(values, unwritten)
    known = values[~unwritten]
    finite = known[np.isfinite(known)]
    assert (summary.nan, summary.inf) == (np.isnan(known).sum(), np.isinf(known).sum())
    assert (summary.unwritten, summary.size) == (unwritten.sum(), values.size)
    if finite.size:
        assert (summary.minimum, summary.maximum) == (finite.min(), finite.max())
        np.testing.assert_allclose(summary.mean, finite.mean(dtype=np.float64), rtol=1e-9, atol=1e-9)
    else:
        assert (summary.minimum, summary.maximum, summary.mean) == (None, None, None)


@given(FLOATS, st.integers(1, 8), st.integers(1, 8))
def test_blocks_cover_every_element_once(values: Any, rows: int, columns: int) -> None:
    """Each block's numbers are those of its elements, and the blocks are all of the array."""
    blocks = blocks_of(values, None, rows, columns)
    matrix = values.reshape(values.shape[0], -1)
    down = [*blocks.rows, matrix.shape[0]]
    across = [*blocks.columns, matrix.shape[1]]
    assert len(down) <= rows + 1
    assert len(across) <= columns + 1
    for i in range(len(down) - 1):
        for j in range(len(across) - 1):
            block = matrix[down[i] : down[i + 1], across[j] : across[j + 1]]
            assert block.size > 0
            finite = block[np.isfinite(block)]
            assert blocks.nan[i, j] == np.isnan(block).any()
            assert blocks.inf[i, j] == np.isinf(block).any()
            if finite.size:
                assert (blocks.low[i, j], blocks.high[i, j]) == (finite.min(), finite.max())
                np.testing.assert_allclose(blocks.mean[i, j], finite.mean(dtype=np.float64), rtol=1e-4, atol=1e-1)
            else:
                assert np.isnan([blocks.low[i, j], blocks.mean[i, j], blocks.high[i, j]]).all()


def test_corners_are_the_ends_of_each_axis() -> None:
    """Three from each end, or all where there are no more than six."""
    values = np.arange(10 * 4).reshape(10, 4)
    np.testing.assert_array_equal(corners_of(values), values[[0, 1, 2, 7, 8, 9]])


@pytest.mark.parametrize("shape", [(90, 70), (1, 200), (200,), (3, 5, 40)])
def test_an_array_read_a_little_at_a_time_has_the_same_summary(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]
) -> None:
    """Numbers and blocks are NumPy's, whatever is read together."""
    generator = np.random.default_rng(3)
    values = generator.normal(size=shape).astype(np.float32)
    values.flat[::17], values.flat[5::29] = np.nan, np.inf
    unwritten = generator.random(shape) < 0.1
    monkeypatch.setattr(summaries, "_AT_ONCE", 50)
    summary = summary_of(values, unwritten)
    finite = np.isfinite(values) & ~unwritten
    assert (summary.nan, summary.inf) == ((np.isnan(values) & ~unwritten).sum(), (np.isinf(values) & ~unwritten).sum())
    assert (summary.minimum, summary.maximum) == (values[finite].min(), values[finite].max())
    np.testing.assert_allclose(summary.mean, values[finite].mean(dtype=np.float64), rtol=1e-9)
    blocks, matrix, known = summary.blocks, values.reshape(shape[0], -1), finite.reshape(shape[0], -1)
    for i, rows in enumerate(np.split(np.arange(matrix.shape[0]), blocks.rows[1:])):
        for j, columns in enumerate(np.split(np.arange(matrix.shape[1]), blocks.columns[1:])):
            some = matrix[np.ix_(rows, columns)][known[np.ix_(rows, columns)]]
            assert np.array_equal(blocks.low[i, j], some.min() if some.size else np.float32(np.nan), equal_nan=True)
            assert blocks.unwritten[i, j] == unwritten.reshape(shape[0], -1)[np.ix_(rows, columns)].any()
