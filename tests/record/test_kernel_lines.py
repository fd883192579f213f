"""A kernel's later runs make and issue what its earlier ones did, and break the same rules."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.columns import Columns

X = np.arange(32, dtype=np.float32).reshape(4, 8)


def summed(x: Any, turns: int = 1) -> Any:
    """Sum an array with itself, in one or several turns."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    for _ in range(turns):
        nisa.dma_copy(dst=tile, src=x)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
        nisa.dma_copy(dst=out, src=tile)
    return out


def rows_of(run: nkitools.Run) -> tuple[Any, ...]:
    """Return what a run has issued, where, and on what."""
    columns = Columns(run.record)
    shown = [(each.name, each.line, each.loops, each.operands) for each in run.instructions]
    return shown, columns.sites.tolist(), sorted(run.record.plans), [repr(each) for each in run.record.sites.all]


def test_later_runs_record_the_same() -> None:
    """Rows, sites, plans and tensors; also after runs of other shapes and dtypes."""
    first = rows_of(nkitools.simulate(summed, X))
    other = rows_of(nkitools.simulate(summed, X[:2].astype(np.float16), 3))
    for _ in range(3):
        run = nkitools.simulate(summed, X)
        assert np.array_equal(run.outputs, 2 * X)
        assert rows_of(run) == first
        assert rows_of(nkitools.simulate(summed, X[:2].astype(np.float16), 3))[:2] == other[:2]


def test_a_rule_is_broken_in_every_run() -> None:
    """A line that reports is looked at each time, also after runs of other arguments that report nothing."""

    def filled(x: Any, number: float) -> Any:
        out = nl.ndarray((4, 8), nl.int32, buffer=nl.shared_hbm)
        tile = nl.ndarray((4, 8), nl.int32, buffer=nl.sbuf)
        nisa.memset(dst=tile, value=number)
        nisa.dma_copy(dst=out, src=tile)
        return out

    found = [[each.rule for each in nkitools.simulate(filled, X, number).findings] for number in (2, 2, 2.0, 2, 2.0)]
    assert [rules.count("NK621") for rules in found] == [0, 0, 1, 0, 1]


@pytest.mark.parametrize("place", ["dst", "data1", "data2"])
def test_a_tensor_of_an_earlier_run_is_refused(place: str) -> None:
    """As any operand, of an instruction that the line has issued in earlier runs (NK611)."""
    kept: list[Any] = []

    def kernel(x: Any, keeps: bool) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tiles = {name: nl.load(x) for name in ("dst", "data1", "data2")}
        if keeps:
            kept[:] = [tiles[place]]
        tiles[place] = kept[0] if kept else tiles[place]
        nisa.tensor_tensor(**tiles, op=nl.add)
        nisa.dma_copy(dst=out, src=tiles["dst"])
        return out

    for _ in range(3):
        nkitools.simulate(kernel, X, True)
    with pytest.raises(nkitools.KernelError, match=r"is a tensor of another run.*NK611|NK611"):
        nkitools.simulate(kernel, X, False)


def test_a_kernel_without_arguments_runs_again() -> None:
    """Its first tensor begins the run's own."""

    def kernel() -> Any:
        out = nl.ndarray((4, 8), nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((4, 8), nl.float32, buffer=nl.sbuf)
        nisa.memset(dst=tile, value=3.0)
        nisa.dma_copy(dst=out, src=tile)
        return out

    for _ in range(3):
        assert np.array_equal(nkitools.simulate(kernel).outputs, np.full((4, 8), 3.0))


def test_runs_side_by_side() -> None:
    """Two threads that run one kernel at once each record their own run."""
    results: list[Any] = []
    wanted = rows_of(nkitools.simulate(summed, X, 2))[0]

    def work() -> None:
        results.extend(rows_of(nkitools.simulate(summed, X, 2))[0] for _ in range(8))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == [wanted] * 24


def test_programs_share_what_lines_make_in_shared_memory() -> None:
    """Of both cores the k-th shared tensor stays one buffer in later runs, too."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        half = x.shape[0] // 2
        rows = slice(nl.program_id(0) * half, (nl.program_id(0) + 1) * half)
        nisa.dma_copy(dst=out[rows], src=x[rows])
        return out

    for factor in (1, 2, 3):
        run = nkitools.simulate(kernel, factor * X, grid=2)
        assert np.array_equal(run.outputs, factor * X)
        assert len(run.record.storages) == 2
