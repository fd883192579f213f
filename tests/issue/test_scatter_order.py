"""Scatters that name a row more than once: rows that differ are a matter of chance (NK509), equal ones are none."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as legacy
import neuronxcc.nki.language as legacy_nl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl


def scatter(table: Any, rows: Any, values: Any, mode: Any = nisa.oob_mode.error) -> Any:
    """``table[rows] = values``."""
    nisa.dma_copy(dst=table.vector_select(0, nl.load(rows)), src=nl.load(values), oob_mode=mode)
    return table


def run(rows: list[int], values: Any, **options: Any) -> Any:
    """The run of a scatter into 16 rows of 4."""
    index = np.array(rows, np.int32).reshape(-1, 1)
    return nkitools.simulate(scatter, np.zeros((16, 4), np.float32), index, np.asarray(values), **options)


def test_both_entries_are_named_and_the_last_one_stays() -> None:
    """A warning: the row may be one that nobody looks at."""
    values = np.arange(16, dtype=np.float32).reshape(4, 4)
    done = run([3, 7, 3, 9], values)
    assert [(each.rule, each.severity) for each in done.findings] == [("NK509", "warning")]
    message = done.findings[0].message
    assert message.startswith("dma_copy: entries 0 and 2 of tensor")
    assert "both name row 3 of tensor `table` (HBM, float32 [16, 4]) and bring different values" in message
    np.testing.assert_array_equal(done.outputs[3], values[2])


def test_equal_values_are_benign() -> None:
    """Whichever stays, it is the same."""
    values = np.ones((4, 4), np.float32)
    values[1] = 2
    assert run([3, 7, 3, 9], values).findings == []


def test_values_are_compared_bit_by_bit() -> None:
    """A NaN is the NaN that it is, and -0.0 is not 0.0."""
    values = np.full((2, 4), np.nan, np.float32)
    assert run([5, 5], values).findings == []
    zeros = np.zeros((2, 4), np.float32)
    zeros[1, 3] = -0.0
    assert [each.rule for each in run([5, 5], zeros).findings] == ["NK509"]


def test_rows_that_are_skipped_do_not_meet() -> None:
    """Padding out of bounds may be named as often as one likes."""
    values = np.arange(16, dtype=np.float32).reshape(4, 4)
    assert run([99, 7, 99, 9], values, mode=nisa.oob_mode.skip).findings == []


@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 2)), min_size=1, max_size=12))
def test_there_is_a_finding_where_the_order_shows(entries: list[tuple[int, int]]) -> None:
    """Where writing forwards and backwards gives different tables."""
    rows = [row for row, _ in entries]
    values = np.repeat(np.array([[value] for _, value in entries], np.float32), 4, axis=1)
    forwards, backwards = dict(entries), dict(reversed(entries))
    # Of three different values the middle one may stay, so that the ends do not tell.
    shows = any(len({value for name, value in entries if name == row}) > 1 for row in rows)
    done = run(rows, values)
    assert [each.rule for each in done.findings] == ["NK509"] * shows
    assert shows or forwards == backwards
    assert [done.outputs[row, 0] for row in rows] == [forwards[row] for row in rows]


def test_an_addition_stays_an_error() -> None:
    """dma_compute demands unique indices: NK505, and nothing else."""

    def kernel(table: Any, rows: Any, values: Any) -> Any:
        chosen = table.vector_select(0, nl.load(rows))
        nisa.dma_compute(dst=chosen, srcs=[chosen, nl.load(values)], reduce_op=nl.add)
        return table

    index, values = np.array([[3], [3]], np.int32), np.arange(8, dtype=np.float32).reshape(2, 4)
    done = nkitools.simulate(kernel, np.zeros((16, 4), np.float32), index, values, rules="report")
    assert [(each.rule, each.severity) for each in done.findings] == [("NK505", "error")]


@pytest.mark.parametrize(("rows", "expected"), [([4, 4, 8], ["NK509"]), ([4, 5, 8], [])])
def test_an_indirect_store_of_the_legacy_dialect(rows: list[int], expected: list[str]) -> None:
    """``out[idx, i_f] = tile`` is a scatter, too."""

    @legacy.jit
    def kernel(index: Any, values: Any) -> Any:
        out = legacy_nl.ndarray((16, 4), dtype=values.dtype, buffer=legacy_nl.shared_hbm)
        legacy_nl.store(out, legacy_nl.zeros((16, 4), dtype=values.dtype))
        chosen = legacy_nl.load(index)
        i_p, i_f = legacy_nl.arange(3)[:, None], legacy_nl.arange(4)[None, :]
        legacy_nl.store(out[chosen[i_p, 0], i_f], legacy_nl.load(values))
        return out

    index, values = np.array(rows, np.int32).reshape(-1, 1), np.arange(12, dtype=np.float32).reshape(3, 4)
    done = nkitools.simulate(kernel, index, values, rules="report")
    assert [each.rule for each in done.findings] == expected
