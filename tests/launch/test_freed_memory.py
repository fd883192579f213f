"""What a run has used is free when the last name of it goes, not only when Python's garbage collector comes by."""

from __future__ import annotations

import contextlib
import gc
import tracemalloc
from collections.abc import Callable
from contextvars import Context
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.chip.memory import Storage
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from nkitools.record.record import Record
from nkitools.record.run import Run
from tests.isa.talking import X, swapped

USED = (Storage, Record, Run, np.ndarray)


@nki.jit
def copies(x: Any) -> Any:
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    tile = nl.load(x)
    nl.device_print("tile", tile)
    nl.store(out, tile)
    return out


@nki.jit
def reads_unwritten(x: Any) -> Any:
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    tile = nl.ndarray(x.shape, x.dtype, nl.sbuf)
    nisa.dma_copy(dst=out, src=tile)
    return out


@nki.jit
def shares_bytes(x: Any) -> Any:
    """Let two tiles take the same bytes from each other, in turns; that does not end when a result has been read."""
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    tiles = [nl.ndarray(x.shape, x.dtype, nl.sbuf, address=(0, 0)) for _ in range(2)]
    for _ in range(3):
        for tile in tiles:
            nisa.dma_copy(dst=tile, src=x)
    nisa.dma_copy(dst=out, src=tiles[1])
    return out


@nki.jit
def leaves_a_sum(x: Any) -> Any:
    """Multiply into PSUM, with an address and without one, and read neither product."""
    out = nl.ndarray(x.shape, x.dtype, nl.shared_hbm)
    tile = nl.load(x)
    for address in (None, (0, 0)):
        product = nl.ndarray((x.shape[1], x.shape[1]), nl.float32, nl.psum, address=address)
        nisa.nc_matmul(dst=product, stationary=tile, moving=tile)
    nl.store(out, tile)
    return out


@nki.jit
def lacks_an_argument(x: Any) -> Any:
    tile = nl.load(x)
    nisa.activation(dst=tile, func=nl.exp, data=tile)
    return tile


@nki.jit
def divides_by_zero(x: Any) -> Any:
    tile = nl.load(x)
    return tile[0 : 1 // 0]


def fails(kernel: Any) -> None:
    """Run a kernel that raises, and forget the exception."""
    with contextlib.suppress(nkitools.KernelError, ZeroDivisionError):
        nkitools.simulate(kernel, X)


def left_over(run: Callable[[], Any]) -> list[str]:
    """Return the classes of what a call has used and leaves to the garbage collector."""
    run()
    gc.freeze()  # what other tests have left is none of this one's
    gc.disable()
    before = gc.get_debug()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        run()
        gc.collect()
        return [type(each).__name__ for each in gc.garbage if isinstance(each, USED)]
    finally:
        gc.garbage.clear()
        gc.set_debug(before)
        gc.unfreeze()
        gc.enable()


RUNS: dict[str, Callable[[], Any]] = {
    "one program": lambda: nkitools.simulate(copies, X),
    "two cores": lambda: nkitools.simulate(copies, X, grid=2),
    "two cores that talk": lambda: nkitools.simulate(swapped, X, grid=2),
    "two ranks": lambda: nkitools.simulate(copies, (X,), (X,), ranks=2),
    "a finding": lambda: nkitools.simulate(reads_unwritten, X, rules="report"),
    "tensors at one address": lambda: nkitools.simulate(shares_bytes, X),
    "sums that are not read": lambda: nkitools.simulate(leaves_a_sum, X),
    "a call without an argument": lambda: nkitools.simulate(lacks_an_argument, X, rules="report"),
    "an error": lambda: fails(lacks_an_argument),
    "an author's exception": lambda: fails(divides_by_zero),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("seed", [None, "3"])
def test_a_run_is_free_at_once(name: str, seed: str | None) -> None:
    """Neither storages nor arrays nor the record are part of a circle."""

    def ran() -> list[str]:
        with options.override(schedule_seed=seed):
            return left_over(RUNS[name])

    assert Context().run(ran) == []  # outside of the plugin's context: a test keeps its runs until its end


@pytest.mark.parametrize("kernel", [copies, shares_bytes, leaves_a_sum], ids=lambda kernel: str(kernel.__name__))
def test_of_many_runs_nothing_stays(kernel: Any) -> None:
    """Ten runs, with megabytes of tensors, take the memory of none: with the garbage collector off."""
    x = np.ones((128, 512), np.float32)[:, : 128 if kernel is leaves_a_sum else 512]

    def taken() -> int:
        for _ in range(2):
            nkitools.simulate(kernel, x)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(10):
            run = nkitools.simulate(kernel, x)
            assert run.outputs.shape == x.shape
            del run
        return tracemalloc.get_traced_memory()[0] - before

    gc.disable()
    tracemalloc.start()
    try:
        assert Context().run(taken) < 20_000
    finally:
        tracemalloc.stop()
        gc.enable()
