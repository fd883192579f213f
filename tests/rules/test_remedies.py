"""One rule has several remedies: the one that fits what the kernel has done is given."""

from __future__ import annotations

from typing import Any

import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.rules.catalogue import RULES

X = np.ones((128, 64), np.float32)
WIDE = np.ones((256, 64), np.float32)


def remedy(rule: str, kernel: Any, *arguments: Any, **options: Any) -> str:
    """Return the remedy of the first finding of a rule."""
    run = nkitools.simulate(kernel, *arguments, rules="report", **options)
    return next(finding.remedy for finding in run.findings if finding.rule == rule)


def stored(rows: slice, columns: slice = slice(0, 64), *, height: int = 256) -> Any:
    """Return a kernel that stores ones into a part of its output."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((height, 64), nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 64), nl.float32)
        nisa.memset(tile, 1.0)
        part = tile[0 : rows.stop - rows.start, columns]
        nisa.dma_copy(out[rows, columns], part)
        return out

    return kernel


def nothing(x: Any) -> Any:
    return nl.ndarray((256, 64), nl.float32, buffer=nl.shared_hbm)


@pytest.mark.parametrize(
    ("kernel", "says"),
    [
        (nothing, "Nothing writes to it"),
        (stored(slice(0, 128), height=200), RULES["NK403"].remedy),
        (stored(slice(128, 256)), "A whole block is left out"),
        (stored(slice(0, 100), slice(8, 40)), "The stores leave gaps"),
    ],
    ids=["nothing", "last tile", "first block", "gaps"],
)
def test_an_output_says_by_its_shape_what_is_missing(kernel: Any, says: str) -> None:
    """Never stored at all, the last tile, a block of its own, a pattern."""
    assert remedy("NK403", kernel, X).startswith(says)


def test_a_ring_that_is_read_a_slot_ahead() -> None:
    """Another slot of the tensor is written; that of this turn is not."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
        ring = nl.ndarray((128, 2, 64), nl.float32)
        nisa.dma_copy(ring[:, 0, :], x)
        nisa.dma_copy(out, ring[:, 1, :])
        return out

    assert "one slot ahead" in remedy("NK401", kernel, X)


def test_memory_that_nothing_writes_keeps_the_rules_remedy() -> None:
    """A tile that is read and was never written has to be filled."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 64), nl.float32)
        nisa.dma_copy(out, tile)
        return out

    assert remedy("NK401", kernel, X) == RULES["NK401"].remedy


def test_an_exchange_by_private_memory() -> None:
    """Each core has a private_hbm of its own."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((2, 128, 64), nl.float32, buffer=nl.shared_hbm)
        box = nl.ndarray((2, 128, 64), nl.float32, buffer=nl.private_hbm)
        tile = nl.ndarray((128, 64), nl.float32)
        core = nl.program_id(0)
        nisa.dma_copy(box[core], x)
        nisa.dma_copy(tile, box[1 - core])
        nisa.dma_copy(out[core], tile)
        return out

    assert remedy("NK401", kernel, X, grid=2).startswith("private_hbm is of one core")


@pytest.mark.parametrize(("barriers", "says"), [(0, RULES["NK502"].remedy), (1, "There is a barrier of this tensor")])
def test_a_second_barrier_where_there_is_one(barriers: int, says: str) -> None:
    """In the second turn a core overwrites what the other one may still read from the first."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((2, 2, 128, 64), nl.float32, buffer=nl.shared_hbm)
        box = nl.ndarray((2, 128, 64), nl.float32, buffer=nl.shared_hbm)
        tile = nl.ndarray((128, 64), nl.float32)
        core = nl.program_id(0)
        for turn in range(2):
            nisa.dma_copy(tile, x)
            nisa.tensor_scalar(tile, tile, nl.add, float(turn) + 2 * core)
            nisa.dma_copy(box[core], tile)
            for _ in range(barriers):
                nisa.core_barrier(box, (0, 1))
            nisa.dma_copy(tile, box[1 - core])
            nisa.dma_copy(out[core, turn], tile)
        return out

    assert remedy("NK502", kernel, X, grid=2).startswith(says)


def test_what_a_chip_lacks_is_told_by_what_is_asked() -> None:
    """A priority is left out; no activation takes its place."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out, x, priority=1)
        return out

    assert remedy("NK606", kernel, X, chip="trn2") == "Leave priority out on this chip."


def test_the_result_of_a_matmul_has_a_shape() -> None:
    """The remedy names it."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 64), nl.float32, buffer=nl.shared_hbm)
        tile, total = nl.ndarray((128, 64), nl.float32), nl.ndarray((128, 64), nl.float32, buffer=nl.psum)
        nisa.dma_copy(tile, x)
        nisa.nc_matmul(total, tile, tile)
        return out

    assert "dst[0:64, 0:64]" in remedy("NK109", kernel, X)


def test_a_register_is_no_bound_of_a_slice() -> None:
    """It is known when the kernel runs; // would not help."""

    def kernel(x: Any) -> Any:
        register = nisa.register_alloc(1)
        out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(out[register:128], x[register:128])
        return out

    assert "select" in remedy("NK603", kernel, X)
