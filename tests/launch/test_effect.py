"""Kernels of which nothing comes (NK408), and those of which something does although they return nothing."""

from __future__ import annotations

from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools

X = np.ones((4, 8), np.float32)


def told(kernel: Any, *args: Any) -> list[str]:
    return [finding.message for finding in nkitools.simulate(kernel, *args).findings]


def test_what_is_lost_is_named() -> None:
    """The last tensor of its own that the kernel writes, at the line that makes it."""

    @nki.jit
    def kernel(x: Any) -> None:
        scratch = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
        out = nl.ndarray((8, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=scratch, src=x)
        nisa.dma_copy(dst=out, src=scratch.reshape((8, 4)))

    (finding,) = nkitools.simulate(kernel, X).findings
    assert (finding.rule, finding.severity) == ("NK408", "warning")
    assert finding.message == (
        "the kernel returns nothing: `out` (shared HBM, float32 [8, 4]), which it writes, is lost"
    )
    assert finding.line == kernel.__wrapped__.__code__.co_firstlineno + 3


@pytest.mark.parametrize("grid", [None, 2])
def test_each_of_several_programs_may_have_forgotten_it(grid: int | None) -> None:
    @nki.jit
    def kernel(x: Any) -> None:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        half = nl.ds(nl.program_id(0) * 2, 2) if grid else slice(0, 4)
        nisa.dma_copy(dst=out[half, :], src=x[half, :])

    (message,) = told(kernel[grid] if grid else kernel, X)
    assert "`out`" in message


def test_a_kernel_that_prints_has_done_something() -> None:
    @nki.jit
    def kernel(x: Any) -> None:
        scratch = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
        nisa.dma_copy(dst=scratch, src=x)
        nl.device_print("x", nl.load(scratch))

    assert told(kernel, X) == []


def test_a_kernel_that_writes_its_argument_has_done_something() -> None:
    @nki.jit
    def kernel(x: Any, out: Any) -> None:
        scratch = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm)
        nisa.dma_copy(dst=scratch, src=x)
        nisa.dma_copy(dst=out, src=scratch)

    (said,) = told(kernel, X, np.zeros_like(X))
    assert said.startswith("the kernel changes its argument `out`")


def test_a_kernel_that_writes_to_hbm_not_at_all_is_another_matter() -> None:
    @nki.jit
    def kernel(x: Any) -> None:
        nl.load(x)

    assert told(kernel, X) == []


def test_an_error_comes_first() -> None:
    """Who has one to mend is not told of what follows."""

    @nki.jit
    def kernel(x: Any) -> None:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf))

    assert [finding.rule for finding in nkitools.simulate(kernel, X, rules="report").findings] == ["NK401"]
