"""Stores into HBM that the next turn of a loop replaces unread."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki.language as legacy
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest
from neuronxcc import nki as legacy_nki

import nkitools

X, Y = (
    np.random.default_rng(seed).standard_normal((512, size)).astype(np.float32) for seed, size in ((0, 64), (1, 96))
)


@nki.jit
def in_turns(x: Any, y: Any, how: str) -> Any:
    """A product over K whose parts are stored in each turn, or behind the loop, or each in a block of its own."""
    blocks = 4 if how == "blocks" else 1
    out = nl.ndarray((blocks * 64, 96), dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((64, 96), dtype=nl.float32, buffer=nl.sbuf)
    for k in range(4):
        product = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.psum)
        rows = slice(128 * k, 128 * k + 128)
        nisa.nc_matmul(dst=product, stationary=nl.load(x[rows]), moving=nl.load(y[rows]))
        part = nl.copy(product)
        nisa.tensor_tensor(dst=total, data1=total, data2=part, op=nl.add)
        if how == "lost":
            nisa.dma_copy(dst=out, src=part)
        elif how == "blocks":
            nisa.dma_copy(dst=out[64 * k : 64 * k + 64], src=part)
        elif how == "read":
            if k:
                nisa.tensor_tensor(dst=part, data1=part, data2=nl.load(out), op=nl.add)
            nisa.dma_copy(dst=out, src=part)
    if how == "behind":
        nisa.dma_copy(dst=out, src=total)
    return out


def found(how: str) -> list[Any]:
    """The findings of NK506."""
    return [each for each in nkitools.simulate(in_turns, X, Y, how).findings if each.rule == "NK506"]


def test_a_store_in_the_loop_over_k_is_told_once() -> None:
    """A warning at its line, with how many stores are lost; the result is the last turn's."""
    (finding,) = found("lost")
    assert finding.severity == "warning"
    assert "stores 4 times into the same elements of `out`" in finding.message
    assert "3 of these stores" in finding.message
    run = nkitools.simulate(in_turns, X, Y, "lost")
    np.testing.assert_allclose(run.outputs, X[384:].T @ Y[384:], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("how", ["behind", "blocks", "read"])
def test_stores_that_count_are_not(how: str) -> None:
    """One store behind the loop, one block for each turn, and a sum that each turn reads and goes on with."""
    assert found(how) == []


def test_the_same_value_may_be_stored_again() -> None:
    """Nothing has been written to the tile in between."""

    @nki.jit
    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        for _ in range(3):
            nisa.dma_copy(dst=out, src=tile)
        return out

    assert nkitools.simulate(kernel, X[:128]).findings == []


def test_legacy_stores_are_told_too() -> None:
    """nl.store without the loop's counter in its index."""

    @legacy_nki.jit
    def kernel(x: Any) -> Any:
        out = legacy.ndarray((128, 64), dtype=x.dtype, buffer=legacy.shared_hbm)
        for k in legacy.sequential_range(4):
            rows = legacy.load(x[legacy.ds(k * 128, 128), :])
            legacy.store(out, legacy.exp(rows))
        return out

    assert [each.rule for each in nkitools.simulate(kernel, X).findings] == ["NK506"]
