"""The remedy is that of the situation: exchanged operands, empty loops, masks that are there, run-time indices."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import nkitools

nkitools.install_stand_in()
nl, nisa = import_module("nki.language"), import_module("nki.isa")
legacy_nki, lnl = import_module("neuronxcc.nki"), import_module("neuronxcc.nki.language")
X = np.ones((300, 64), np.float32)


def _empty_loop(x: Any) -> Any:
    out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
    for i in range(x.shape[1] // 128):
        nisa.dma_copy(dst=t, src=x[i * 64 : (i + 1) * 64])
    nisa.dma_copy(dst=out, src=t)
    return out


def _dma_exchanged(x: Any) -> Any:
    out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x[0:64])
    nisa.dma_copy(dst=t, src=out)
    return out


def _in_sbuf(x: Any) -> Any:
    out = nl.ndarray((64, 64), dtype=x.dtype)
    nisa.dma_copy(dst=out, src=x[0:64])
    return out


def _tall_result(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype)
    t = nl.load(x[0:64])
    nisa.dma_copy(dst=out[0:64], src=t)
    return out


def _number(x: Any) -> Any:
    t = nl.load(x[0:64])
    return float(t[0, 0])


def _indices(x: Any) -> Any:
    t = nl.load(x[0:64])
    return t[0, :, :]


def _activation_function(x: Any) -> Any:
    t = nl.load(x[0:64])
    nisa.tensor_scalar(dst=t, data=t, op0=nl.log, operand0=1.0)
    return x


@legacy_nki.jit
def _store_exchanged(x: Any) -> Any:
    out = lnl.ndarray((64, 64), dtype=x.dtype, buffer=lnl.shared_hbm)
    t = lnl.load(x[0:64])
    lnl.store(t, out)
    return out


@legacy_nki.jit
def _masked(x: Any) -> Any:
    out = lnl.ndarray(x.shape, dtype=x.dtype, buffer=lnl.shared_hbm)
    p, f = lnl.arange(128)[:, None], lnl.arange(64)[None, :]
    for i in lnl.affine_range(3):
        t = lnl.load(x[i * 128 + p, f], mask=(p < 300))
        lnl.store(out[i * 128 + p, f], t, mask=(i * 128 + p < 300))
    return out


@legacy_nki.jit
def _not_masked(x: Any) -> Any:
    out = lnl.ndarray(x.shape, dtype=x.dtype, buffer=lnl.shared_hbm)
    p, f = lnl.arange(128)[:, None], lnl.arange(64)[None, :]
    for i in lnl.affine_range(3):
        lnl.store(out[i * 128 + p, f], lnl.load(x[i * 128 + p, f]))
    return out


CASES: dict[Any, tuple[str, str]] = {
    _empty_loop: ("NK401", "runs no time: `range(x.shape[1] // 128)` is empty."),
    _dma_exchanged: ("NK401", "The operands are swapped: dma_copy(dst, src)."),
    _in_sbuf: ("NK201", "or make it with buffer=nl.shared_hbm."),
    _number: ("NK602", "Pass the tile itself as an operand"),
    _indices: ("NK603", "Give 2 indices, one for each dimension of [64, 64]."),
    _activation_function: ("NK306", "Call nisa.activation(dst, op=nl.log, data)."),
    _store_exchanged: ("NK201", "The arguments are exchanged: put `out` first, the destination in HBM."),
    _masked: ("NK402", "The mask lets these positions in: compare the whole index"),
    _not_masked: ("NK402", "Pass a mask that leaves out the positions beyond the end"),
}


def finding_of(kernel: Callable[..., Any]) -> Any:
    """Return the finding that ends a run of a kernel."""
    with pytest.raises((nkitools.KernelError, IndexError)) as caught:
        nkitools.simulate(kernel, X)
    return caught.value.finding  # type: ignore[union-attr]


@pytest.mark.parametrize(("kernel", "expected"), CASES.items(), ids=[each.__name__ for each in CASES])
def test_the_remedy_is_that_of_the_situation(kernel: Callable[..., Any], expected: tuple[str, str]) -> None:
    """And of no other mistake that breaks the same rule; it has two sentences at most."""
    found = finding_of(kernel)
    assert found.rule == expected[0]
    assert expected[1] in found.remedy
    assert found.remedy.count(". ") <= 1


def test_a_result_on_chip_is_reported_where_it_is_made() -> None:
    """Not at the line of the caller, which is right."""
    assert finding_of(_in_sbuf).line == _in_sbuf.__code__.co_firstlineno + 1


def test_a_loop_that_has_run_is_not_blamed() -> None:
    """Another mistake left the tile unwritten."""

    def kernel(x: Any) -> Any:
        t = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
        u = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.sbuf)
        for _ in range(2):
            nisa.dma_copy(dst=u, src=x[0:64])
        nisa.dma_copy(dst=x[0:64], src=t)
        return x

    assert "runs no time" not in finding_of(kernel).remedy
