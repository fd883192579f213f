"""What the page says a tile was made from: the run's own dependences, in the tables that its scripts read."""

from __future__ import annotations

from typing import Any

import numpy as np

import nkitools
from nkitools.dialects.modern import collectives as ncc
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.report.page.page_data import Gathering


def flow_of(run: Any) -> tuple[list[list[list[int]]], dict[int, list[int]]]:
    """Return for each instruction the sources of its operands, and the sources by other ways, as the page gets them."""
    found = Gathering(run, None)
    tables, columns = found.tables, {name: column.tolist() for name, column in found.columns.items()}
    counts, sources = columns["flow.counts"], iter(columns["flow.sources"])
    by_operand = iter([[next(sources) for _ in range(count)] for count in counts])
    plans = [tables["plans"][plan] for plan in columns["instruction.plan"]]
    others: dict[int, list[int]] = {}
    for position, source in zip(columns["others.position"], columns["others.source"], strict=True):
        others.setdefault(position, []).append(source)
    return [[next(by_operand) for _ in plan[3]] for plan in plans], others


def test_blocks_of_columns_in_hbm() -> None:
    """Each block that the second pass reads was made by the turn of the first pass that wrote it."""

    def kernel(x: Any) -> Any:
        scratch = nl.ndarray(x.shape, x.dtype, buffer=nl.private_hbm)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        for c in nl.affine_range(8):
            nisa.dma_copy(dst=scratch[:, c * 64 : c * 64 + 64], src=x[:, c * 64 : c * 64 + 64])
        for d in nl.affine_range(8):
            nisa.dma_copy(dst=out[:, d * 64 : d * 64 + 64], src=scratch[:, d * 64 : d * 64 + 64])
        return out

    found, others = flow_of(nkitools.simulate(kernel, np.ones((128, 512), np.float32)))
    assert found == [[[], [-1]]] * 8 + [[[], [turn]] for turn in range(8)]
    assert others == {}


def test_steps_and_accumulation() -> None:
    """Every third column comes from who wrote these; what a matmul adds to is among its operands' sources."""

    def kernel(x: Any, y: Any) -> Any:
        out = nl.ndarray((128, 128), x.dtype, buffer=nl.shared_hbm)
        t, total = nl.ndarray((128, 128), x.dtype), nl.ndarray((128, 128), nl.float32, buffer=nl.psum)
        nisa.dma_copy(dst=t, src=y)
        nisa.dma_copy(dst=t[:, 1:128:3], src=x[:, 1:128:3])
        nisa.dma_copy(dst=out[:, 1:128:3], src=t[:, 1:128:3])
        nisa.nc_matmul(dst=total, stationary=t, moving=t)
        nisa.nc_matmul(dst=total, stationary=t, moving=t)
        nisa.tensor_copy(dst=t, src=total)
        nisa.dma_copy(dst=out, src=t)
        return out

    x = np.ones((128, 128), np.float32)
    found, _ = flow_of(nkitools.simulate(kernel, x, x))
    assert found[2:5] == [[[], [1]], [[], [0, 1], [0, 1]], [[3], [0, 1], [0, 1]]]


def test_ranks_indices_and_unwritten_memory() -> None:
    """What another rank has sent and what an index chose by stand beside; what was never written is no argument."""

    def kernel(x: Any, rows: Any) -> Any:
        mine, total = (nl.ndarray((2, 4), x.dtype, buffer=nl.private_hbm) for _ in range(2))
        index, tile, never = nl.load(rows), nl.ndarray((2, 4), x.dtype), nl.ndarray((2, 4), x.dtype)
        nisa.dma_copy(dst=tile, src=x.vector_select(0, index))
        nisa.dma_copy(dst=mine, src=tile)
        ncc.all_reduce(srcs=[mine], dsts=[total], replica_group=ncc.ReplicaGroup([[0, 1]]), op=nl.add)
        nisa.tensor_copy(dst=tile, src=never)
        return total

    given = (np.ones((8, 4), np.float32), np.array([[1], [5]], np.int32))
    found, others = flow_of(nkitools.simulate(kernel, given, given, ranks=2, rules="off"))
    assert found[:5] == [[[], [-1]], [[], [-1]], [[], [1]], [[], [2]], [[], [-2]]]
    assert others == {1: [0], 3: [8], 6: [5], 8: [3]}
