"""What instructions write is kept for whoever watches, and costs nothing where nobody does."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkitools
from nkitools.dialects import legacy
from nkitools.dialects import modern as nki
from nkitools.dialects.legacy import language as lnl
from nkitools.dialects.modern import collectives
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.record import Record
from nkitools.record.watch.watching import watching
from nkitools.record.watch.written import Written
from nkitools.report.page.page_data import Gathering
from nkitools.report.page.tiles import LEFT_OUT
from tests.history.test_races import line_of

X = np.arange(3 * 128 * 4, dtype=np.float32).reshape(3 * 128, 4)


def halved(x: Any) -> Any:
    """Half of each row tile."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for start in range(0, x.shape[0], 128):
        tile = nl.load(x[start : start + 128, :])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=0.5)
        nisa.dma_copy(dst=out[start : start + 128, :], src=tile)
    return out


def watched(kernel: Any, *args: Any, wanted: Any = None, **kwargs: Any) -> Any:
    with watching(wanted):
        return nkitools.simulate(kernel, *args, **kwargs)


def placed(write: Written) -> tuple[Any, ...]:
    return write.tensor, write.memory, write.line, write.loops


class TestKept:
    def test_every_write_is_kept_as_it_was(self) -> None:
        """In order, each with its tensor, instruction, line and counters, by the value right after it."""
        run = watched(halved, X)
        load, half = line_of(halved, "nl.load"), line_of(halved, "tensor_scalar")
        store = line_of(halved, "dma_copy")
        assert [placed(each) for each in run.writes] == [
            each
            for start in (0, 128, 256)
            for each in (
                ("tile", "SBUF", load, {"start": start}),
                ("tile", "SBUF", half, {"start": start}),
                ("out", "shared HBM", store, {"start": start}),
            )
        ]
        for each in run.writes:
            rows = slice(each.loops["start"], each.loops["start"] + 128)
            expected = X[rows] if each.line == load else X[rows] / 2
            np.testing.assert_array_equal(each.value, expected)
            assert each.unwritten is None
            assert run.instructions[each.position].name == each.instruction
            assert (each.dtype, each.shape, each.file, each.rank) == ("float32", (128, 4), __file__, None)

    def test_a_write_says_where_in_its_tensor_it_lies(self) -> None:
        """Byte offset and strides make the same elements of the whole tensor."""
        run = watched(halved, X)
        whole = np.zeros(X.size, np.float32)
        for each in run.writes:
            if each.tensor == "out":
                assert each.tensor_shape == X.shape
                view = np.ndarray(each.shape, np.float32, whole.data, each.byte_offset, each.strides)
                view[...] = each.value
        np.testing.assert_array_equal(whole.reshape(X.shape), X / 2)

    def test_arguments_and_results_are_kept_with_all(self) -> None:
        """What an argument held before the kernel wrote into it, and what the results hold in the end."""

        def kernel(x: Any) -> Any:
            nisa.dma_copy(dst=x, src=nl.zeros((128, 4), nl.float32))
            return x

        given = X[:128].copy()
        record = watched(kernel, given).record
        (before,), (after,) = record.inputs, record.results
        assert (before.tensor, before.position, after.position) == ("x", -1, record.count)
        np.testing.assert_array_equal(before.value, X[:128])
        assert not after.value.any()

    def test_only_what_is_wanted_is_kept(self) -> None:
        """By tensor, or by line; arguments and results are no writes."""
        store = line_of(halved, "dma_copy")
        by_name = watched(halved, X, wanted=lambda tensor, file, line: tensor == "out")
        by_line = watched(halved, X, wanted=lambda tensor, file, line: (file, line) == (__file__, store))
        for run in (by_name, by_line):
            assert [placed(each) for each in run.writes] == [
                ("out", "shared HBM", store, {"start": start}) for start in (0, 128, 256)
            ]
            assert (run.record.inputs, run.record.results) == ([], [])

    def test_unwritten_elements_are_marked(self) -> None:
        """Those that a mask has left out show as prints show them, and a mask of ours tells them from a NaN."""

        @legacy.jit
        def kernel(x: Any) -> Any:
            out = lnl.ndarray((128, 4), lnl.float32, buffer=lnl.shared_hbm)
            i, j = lnl.mgrid[0:128, 0:4]
            lnl.store(out[i, j], lnl.load(x[i, j]), mask=(i >= j))
            return out

        run = watched(kernel, X[:128], rules="report", wanted=lambda tensor, file, line: tensor == "out")
        (write,) = run.writes
        above = np.triu(np.ones((128, 4), bool), 1)
        np.testing.assert_array_equal(write.unwritten, above)
        np.testing.assert_array_equal(write.value, np.where(above, np.nan, X[:128]))
        assert (write.summary.unwritten, write.summary.nan) == (6, 0)

    def test_an_assigned_load_is_one_write(self) -> None:
        """The legacy dialect's ``tile[...] = nl.load(x)`` is one transfer: into the tile."""

        @legacy.jit
        def kernel(x: Any) -> Any:
            out = lnl.ndarray((128, 4), lnl.float32, buffer=lnl.shared_hbm)
            tile = lnl.ndarray((128, 4), lnl.float32)
            i, j = lnl.mgrid[0:128, 0:4]
            tile[i, j] = lnl.load(x[i, j])
            lnl.store(out[i, j], tile[i, j])
            return out

        run = watched(kernel, X[:128])
        assert [(each.position, each.tensor, each.instruction) for each in run.writes] == [
            (0, "tile", "dma_copy"),
            (1, "out", "dma_copy"),
        ]
        assert len(run.instructions) == 2

    def test_scattered_rows_are_kept_as_their_tensor(self) -> None:
        """Which rows an index on the device chooses the record does not know: the whole tensor is shown."""

        def kernel(x: Any, order: Any) -> Any:
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            rows, index = nl.load(x), nl.load(order)
            nisa.dma_copy(dst=out.vector_select(0, index), src=rows)
            return out

        order = np.arange(127, -1, -1, dtype=np.int32).reshape(128, 1)
        (write,) = watched(kernel, X[:128], order, wanted=lambda tensor, file, line: tensor == "out").writes
        assert write.scattered
        np.testing.assert_array_equal(write.value, X[127::-1])

    def test_full_precision_keeps_its_digits(self) -> None:
        """The value is what the mode reckons with, not what the dtype would hold."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray(x.shape, nl.bfloat16, buffer=nl.shared_hbm)
            tile = nl.ndarray(x.shape, nl.bfloat16)
            nisa.tensor_scalar(dst=tile, data=nl.load(x), op0=nl.multiply, operand0=0.1)
            nisa.dma_copy(dst=out, src=tile)
            return out

        third = np.full((128, 4), 1 / 3, np.float32)
        wanted = lambda tensor, file, line: tensor == "tile"  # noqa: E731
        (rounded,) = watched(kernel, third, wanted=wanted).writes
        with nkitools.facts.options.override(precision="full"):
            (full,) = watched(kernel, third, wanted=wanted).writes
        exact = np.float32(1 / 3) * np.float32(0.1)
        assert rounded.value[0, 0] == exact.astype(ml_dtypes.bfloat16) != exact
        assert full.value.dtype == np.float32
        assert full.value[0, 0] == exact


class TestWhose:
    def test_programs_of_a_grid_are_told_apart(self) -> None:
        """Each program's writes carry its index, also where a seed interrupts them."""

        @nki.jit
        def kernel(x: Any) -> Any:
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            row = nl.program_id(0) * 128
            nisa.dma_copy(dst=out[row : row + 128, :], src=nl.load(x[row : row + 128, :]))
            return out

        for seed in (None, "3"):
            with nkitools.facts.options.override(schedule_seed=seed):
                run = watched(kernel[2], X[:256])
            stores = {each.program: each.value for each in run.writes if each.tensor == "out"}
            assert set(stores) == {(0,), (1,)}
            for (program,), value in stores.items():
                np.testing.assert_array_equal(value, X[program * 128 : (program + 1) * 128])
            positions = [each.position for each in run.writes]
            assert positions == sorted(positions)

    def test_ranks_are_told_apart(self) -> None:
        """What a collective has brought is a write of each rank."""

        @nki.jit
        def kernel(x: Any) -> Any:
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            mine, total = nl.ndarray(x.shape, x.dtype, buffer=nl.hbm), nl.ndarray(x.shape, x.dtype, buffer=nl.hbm)
            nisa.dma_copy(dst=mine, src=x)
            group = collectives.ReplicaGroup([[0, 1]])
            collectives.all_reduce(srcs=[mine], dsts=[total], replica_group=group, op=nl.add)
            nisa.dma_copy(dst=out, src=total)
            return out

        run = watched(kernel, (X[:128],), (X[128:256],), ranks=2, wanted=lambda tensor, file, line: tensor == "total")
        assert [each.rank for each in run.writes] == [0, 1]
        for each in run.writes:
            np.testing.assert_array_equal(each.value, X[:128] + X[128:256])


class TestBudget:
    def test_what_is_beyond_the_budget_is_summarised(self) -> None:
        """The first values are kept, of the others what the summary says; and the run counts them."""
        tile = X[:128].nbytes
        with watching(lambda tensor, file, line: True, budget=2 * tile):
            run = nkitools.simulate(halved, X)
        assert [each.value is None for each in run.writes] == [False] * 2 + [True] * 7
        assert run.reduced_writes == 7
        last = run.writes[-1]
        half = X[256:] / 2
        summary = last.summary
        assert (summary.minimum, summary.maximum, summary.size) == (half.min(), half.max(), half.size)
        assert summary.mean == pytest.approx(half.mean(dtype=np.float64))
        np.testing.assert_array_equal(summary.corners, half[[0, 1, 2, 125, 126, 127]])

    def test_after_many_summaries_only_numbers_are_left(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Minimum, maximum, mean and corners stay right; the picture is none, and the page says so."""
        monkeypatch.setattr("nkitools.record.watch.watching.MOST_PICTURES", 4)
        with watching(budget=0):
            run = nkitools.simulate(halved, X)
        pictured = [each.summary.blocks.low.size > 0 for each in run.writes]
        assert pictured.index(False) < len(pictured)
        assert pictured == sorted(pictured, reverse=True)
        summary, half = run.writes[-1].summary, X[256:] / 2
        assert (summary.minimum, summary.maximum, summary.size) == (half.min(), half.max(), half.size)
        assert summary.mean == pytest.approx(half.mean(dtype=np.float64))
        np.testing.assert_array_equal(summary.corners, half[[0, 1, 2, 125, 126, 127]])
        found = Gathering(run, None)
        kept = found.columns["tile.quality"][found.columns["write.tile"]] != LEFT_OUT
        assert kept.tolist() == pictured
        assert found.tables["left_out"] >= pictured.count(False)

    def test_each_watch_has_its_own_budget(self) -> None:
        """One who wants a single tensor gets it by value, whoever else has used up what they had for all."""
        with watching(budget=0), watching(lambda tensor, file, line: tensor == "out"):
            run = nkitools.simulate(halved, X)
        assert [each.value is None for each in run.writes] == [True, True, False] * 3

    def test_a_negative_budget_is_refused(self) -> None:
        """It is no number of bytes."""
        with pytest.raises(ValueError, match="budget: must be a number of bytes, it is -1"), watching(budget=-1):
            pass


class TestNobodyWatches:
    def test_the_record_is_the_plain_one(self) -> None:
        """No class of ours is in between, before, and after an error inside too."""

        def wrong(x: Any) -> Any:
            raise RuntimeError("the author's")

        with pytest.raises(RuntimeError), watching():
            nkitools.simulate(wrong, X)
        run = nkitools.simulate(halved, X)
        assert type(run.record) is Record
        assert run.writes == []
        assert run.reduced_writes == 0
