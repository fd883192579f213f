"""What a run has used is free when the last name of it goes, not only when Python's garbage collector comes by."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools import options
from nkitools.chip.memory import Storage
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.record import Record
from tests.isa.talking import X, swapped

USED = (Storage, Record, np.ndarray)


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
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("seed", [None, "3"])
def test_a_run_is_free_at_once(name: str, seed: str | None) -> None:
    """Neither storages nor arrays nor the record are part of a circle."""
    with options.override(schedule_seed=seed):
        assert left_over(RUNS[name]) == []
