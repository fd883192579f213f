"""nl.affine_range: what its iterations may write and read (NK501)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.legacy.errors import run
from tests.dialects.legacy.running import random

X = random(8, 48)
TURNS, COLUMNS = 4, 24

# (what, destination, source): columns slope * i + start of the tile, each `width` of them.
Columns = tuple[int, int]
Step = tuple[str, Columns, Columns, int]


def _columns(at: Columns, turn: int, width: int) -> Any:
    slope, start = at
    return slice(slope * turn + start, slope * turn + start + width)


def _loop(tile: Any, x: Any, turns: Iterable[int], steps: list[Step]) -> None:
    for turn in turns:
        for what, into, source, width in steps:
            dst, src = _columns(into, turn, width), _columns(source, turn, width)
            if what == "copy":
                tile[:, dst] = nl.copy(tile[:, src])
            elif what == "load":
                tile[:, dst] = nl.load(x[:, src])
            elif what == "add":
                tile[:, dst] += nl.load(x[:, src])
            elif what == "add its own":
                tile[:, dst] += tile[:, src]
            else:
                tile[:, dst] *= nl.load(x[:, src])


def _after(order: Any, steps: list[Step]) -> Any:
    def kernel(x: Any) -> Any:
        out = nl.ndarray((8, COLUMNS), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x[:, 0:COLUMNS])
        _loop(tile, x, nl.affine_range(TURNS) if order is None else order, steps)
        nl.store(out, tile)
        return out

    return run(kernel, (X,))


def _without_513(done: Any) -> list[Any]:
    """Findings but for unread columns of `X`, and for one line's writes, of several sizes or lost."""
    return [each for each in done.findings if each.rule not in ("NK506", "NK511", "NK513")]


places = st.tuples(st.integers(0, 3), st.integers(0, 8))
kinds = st.sampled_from(["copy", "load", "add", "add its own", "multiply"])
steps = st.tuples(kinds, places, places, st.integers(1, 4))


@given(st.lists(steps, min_size=1, max_size=3), st.permutations(range(TURNS)))
def test_a_loop_without_findings_may_run_in_any_order(found: list[Step], order: list[int]) -> None:
    """Its results are those of every other order, up to rounding of sums and products."""
    done = _after(None, found)
    if not [each for each in done.findings if each.rule == "NK501"]:
        assert _without_513(done) == []
        np.testing.assert_allclose(done.outputs, _after(order, found).outputs, rtol=1e-5, atol=1e-5)


@given(st.lists(steps, min_size=1, max_size=2))
def test_a_loop_of_which_two_orders_differ_is_found(found: list[Step]) -> None:
    """The converse: where the reverse order gives other elements, NK501 has spoken."""
    done = _after(None, found)
    if not np.allclose(done.outputs, _after(range(TURNS)[::-1], found).outputs, rtol=1e-5, atol=1e-5):
        assert "NK501" in [each.rule for each in done.findings]


def _findings(kernel: Any) -> list[tuple[str, int]]:
    first = kernel.__code__.co_firstlineno
    found = run(kernel, (X,)).findings
    return [(each.rule, each.line - first) for each in found if each.rule != "NK506"]  # stores that are replaced


def test_sums_into_psum_and_sbuf_are_no_dependence() -> None:
    """Over all loops of a nest, in each of the ways to add up."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((3, 48, 48), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        total = nl.zeros((48, 48), dtype=nl.float32, buffer=nl.psum)
        kept = nl.zeros((48, 48), dtype=nl.float32)
        product = nl.full((8, 48), 1.0, dtype=nl.float32)
        for _ in nl.affine_range(2):
            for _ in nl.affine_range(3):
                total += nisa.nc_matmul(tile, tile)
                kept += nl.matmul(tile, tile, transpose_x=True)
                kept -= 1.0
                product *= 2.0
        nl.store(out[0], total)
        nl.store(out[1], kept)
        nl.store(out[2], 0)
        nl.store(out[2, 0:8, :], product)
        return out

    done = run(kernel, (X,))
    assert _without_513(done) == []
    np.testing.assert_allclose(done.outputs[0], 6 * (X.T @ X), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(done.outputs[1], 6 * (X.T @ X) - 6, rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(done.outputs[2, :8], 64)


def test_a_sum_that_is_used_on_the_way_is_a_dependence() -> None:
    """A running sum, a sum that is also scaled, and one that each iteration begins anew."""

    def used(x: Any) -> Any:
        out = nl.ndarray((4, 8, 48), dtype=x.dtype, buffer=nl.shared_hbm)
        total = nl.zeros((8, 48), dtype=x.dtype)
        for i in nl.affine_range(4):
            total += nl.load(x)
            nl.store(out[i], total)
        return out

    def scaled(x: Any) -> Any:
        out = nl.ndarray((8, 48), dtype=x.dtype, buffer=nl.shared_hbm)
        total = nl.zeros((8, 48), dtype=x.dtype)
        for _ in nl.affine_range(4):
            total *= 0.5
            total += nl.load(x)
        nl.store(out, total)
        return out

    def begun(x: Any) -> Any:
        out = nl.ndarray((4, 8, 48), dtype=x.dtype, buffer=nl.shared_hbm)
        total = nl.ndarray((8, 48), dtype=x.dtype)
        for i in nl.affine_range(4):
            total[...] = 0
            total += nl.load(x)
            nl.store(out[i], total)
        return out

    assert _findings(used) == [("NK501", 5)]
    assert _findings(scaled) == [("NK501", 4)]
    assert _findings(begun) == [("NK501", 4)]


@pytest.mark.parametrize("start", [0, 1, 2])
def test_what_an_update_adds_may_be_another_iterations(start: int) -> None:
    """A prefix sum by ``+=`` is a chain, as is the doubling of one column; columns that nothing writes are none."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((8, COLUMNS), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x[:, 0:COLUMNS])
        for i in nl.affine_range(TURNS):
            if start == 0:
                tile[:, i + 1 : i + 2] += tile[:, i : i + 1]
            elif start == 1:
                tile[:, 0:1] += tile[:, 0:1]
            else:
                tile[:, i : i + 1] += tile[:, TURNS + i : TURNS + i + 1]
        nl.store(out, tile)
        return out

    done = run(kernel, (X,), rules="report")
    assert [each.rule for each in _without_513(done)] == (["NK501"] if start < 2 else [])


def test_tensors_made_inside_belong_to_their_iteration() -> None:
    """Also where a loop inside writes them again and again, in order."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((4, 8, 48), dtype=x.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(4):
            tile = nl.ndarray((8, 48), dtype=x.dtype)
            tile[...] = nl.load(x)
            for _ in nl.sequential_range(3):
                tile[...] = tile + 1.0
            nl.store(out[i], tile)
        return out

    done = run(kernel, (X,))
    assert _without_513(done) == []
    np.testing.assert_allclose(done.outputs, np.broadcast_to(X + 3, (4, 8, 48)), rtol=1e-6)


@pytest.mark.parametrize(("step", "expected"), [(16, []), (15, [("NK501", 4)]), (0, [("NK501", 4)])])
def test_stores_to_hbm_are_compared_by_their_elements(step: int, expected: list[Any]) -> None:
    """Blocks of 16 columns, side by side, overlapping by one column, or all in one place."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((8, 48), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, 0)
        for i in nl.affine_range(3):
            nl.store(out[:, nl.ds(step * i, 16)], nl.load(x[:, nl.ds(16 * i, 16)]))
        return out

    assert _findings(kernel) == expected


def test_masks_say_which_elements_are_written() -> None:
    """Iterations may share a tensor where masks keep them apart, in triangles, say."""

    def overlapping(x: Any) -> Any:
        out = nl.ndarray((8, 48), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.zeros((8, 48), dtype=x.dtype)
        i_p, i_f = nl.mgrid[0:8, 0:48]
        for _ in nl.affine_range(2):
            tile[i_p, i_f] = nl.full((8, 48), 1.0, dtype=x.dtype)[i_p, i_f]
        nl.store(out[i_p, i_f], tile)
        return out

    def triangles(x: Any) -> Any:
        out = nl.ndarray((8, 48), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:8, 0:48]
        for i in nl.affine_range(2):
            nl.store(out[i_p, i_f], float(i), mask=(i_p + i_f < 24 + 100 * i) & (i_p + i_f >= 24 * i))
        return out

    done = run(triangles, (X,))
    assert _without_513(done) == []
    np.testing.assert_array_equal(done.outputs, np.add.outer(np.arange(8), np.arange(48)) >= 24)
    assert _findings(overlapping) == [("NK501", 5)]


def test_a_loop_that_is_left_early_is_not_judged() -> None:
    """Nor does it leave anything behind for the loops after it."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((8, 48), dtype=x.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(4):
            nl.store(out, nl.load(x))
            if i == 1:
                break
        for i in nl.sequential_range(2):
            nl.store(out, float(i))
        return out

    assert _findings(kernel) == []
    assert _findings(kernel) == []


def test_each_program_has_iterations_of_its_own() -> None:
    """Programs write side by side what the loop of each one writes apart."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray((2, 4, 8, 48), dtype=x.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(4):
            nl.store(out[nl.program_id(0), i], nl.load(x))
        return out

    done = run(kernel[2], (X,))
    assert _without_513(done) == []
    np.testing.assert_array_equal(done.outputs, np.broadcast_to(X, (2, 4, 8, 48)))


def test_a_row_that_is_kept_for_a_later_iteration_is_a_warning() -> None:
    """Pairs of rows are pooled by public kernels so, with the result of the program's order; a chain is an error."""

    def pooled(x: Any) -> Any:
        out = nl.ndarray((2, 8, 48), dtype=x.dtype, buffer=nl.shared_hbm)
        kept = nl.ndarray((8, 48), dtype=x.dtype)
        for i in nl.affine_range(4):
            row = nl.load(x) * float(i % 3)
            if i % 2 == 0:
                kept[...] = row
            else:
                nl.store(out[i // 2], nl.maximum(kept, row))
        return out

    def chained(x: Any) -> Any:
        out = nl.ndarray((4, 8, 48), dtype=x.dtype, buffer=nl.shared_hbm)
        kept = nl.load(x)
        for i in nl.affine_range(4):
            nl.store(out[i], kept)
            kept[...] = nl.multiply(kept, 2.0)
        return out

    done = run(pooled, (X,), "error")
    assert [(each.rule, each.severity) for each in _without_513(done)] == [("NK501", "warning")]
    assert "kept the order" in done.findings[0].message
    expected = [np.maximum(X * 0, X), np.maximum(X * 2, X * 0)]
    np.testing.assert_array_equal(done.outputs, np.stack(expected))
    assert {(each.rule, each.severity) for each in run(chained, (X,)).findings} == {("NK501", "error")}


def test_a_tile_that_every_iteration_overwrites() -> None:
    """By nisa.dma_copy with another tile it is a warning; by an assignment AWS lists it as an error."""

    def copied(x: Any) -> Any:
        out = nl.ndarray((8, 48), dtype=x.dtype, buffer=nl.shared_hbm)
        last = nl.ndarray((8, 48), dtype=x.dtype)
        for i in nl.affine_range(3):
            nisa.dma_copy(dst=last, src=nl.multiply(nl.load(x), float(i)))
        nl.store(out, last)
        return out

    def assigned(x: Any) -> Any:
        out = nl.ndarray((8, 48), dtype=x.dtype, buffer=nl.shared_hbm)
        last = nl.ndarray((8, 48), dtype=x.dtype)
        for i in nl.affine_range(3):
            last[...] = nl.multiply(nl.load(x), float(i))
        nl.store(out, last)
        return out

    done = run(copied, (X,), "error")
    assert [(each.rule, each.severity) for each in _without_513(done)] == [("NK501", "warning")]
    np.testing.assert_allclose(done.outputs, 2 * X)
    assert [(each.rule, each.severity) for each in run(assigned, (X,)).findings] == [("NK501", "error")]


def test_a_ring_of_rows_that_iterations_load_for_later_ones() -> None:
    """From HBM it is a warning, with the values of the program's order; what is computed on chip is a chain."""

    def ring(x: Any) -> Any:
        out = nl.ndarray((3, 8, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        rows = nl.ndarray((8, 12), dtype=x.dtype)
        nisa.dma_copy(dst=rows, src=x[:, 0:12])
        for i in nl.affine_range(3):
            nl.store(out[i], nl.add(rows[:, 0:6], rows[:, 6:12]))
            slot = i % 2 * 6
            nisa.dma_copy(dst=rows[:, slot : slot + 6], src=x[:, i * 6 + 12 : i * 6 + 18])
        return out

    def doubled(x: Any) -> Any:
        out = nl.ndarray((3, 8, 12), dtype=x.dtype, buffer=nl.shared_hbm)
        rows = nl.ndarray((8, 12), dtype=x.dtype)
        nisa.dma_copy(dst=rows, src=x[:, 0:12])
        for i in nl.affine_range(3):
            nl.store(out[i], rows)
            nisa.dma_copy(dst=rows, src=nl.add(rows, rows))
        return out

    done = run(ring, (X,), "error")
    assert [(each.rule, each.severity) for each in _without_513(done)] == [("NK501", "warning")]
    expected = [X[:, i : i + 6] + X[:, i + 6 : i + 12] for i in (0, 6, 12)]
    np.testing.assert_array_equal(done.outputs, np.stack(expected))
    assert {(each.rule, each.severity) for each in run(doubled, (X,)).findings} == {("NK501", "error")}
