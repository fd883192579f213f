"""What a session at a prompt shows of a run and of its instructions."""

from __future__ import annotations

from typing import Any

import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools


def doubled(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for _ in range(2):
        tile = nl.load(x)
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nl.device_print("tile", tile)
        nl.store(out, tile)
    return out, out, out, out, out


def test_a_run_is_one_line() -> None:
    """The form of its outputs and the number of all else; no array is printed."""
    run = nkitools.simulate(doubled, np.ones((128, 512), np.float32), rules="off")
    wide = "float32 [128, 512]"
    shown = f"<Run of doubled on trn2 (builtin): {wide}, {wide}, {wide}, {wide}, and 1 more outputs, "
    assert repr(run) == shown + f"{len(run.instructions)} instructions, 0 findings, 2 prints>"


def test_a_run_that_failed_says_so() -> None:
    """By the type of its error."""

    def failing(x: Any) -> None:
        raise RuntimeError("mine")

    with nkitools.collect_runs() as runs, pytest.raises(RuntimeError):
        nkitools.simulate(failing, np.ones((2, 2), np.float32))
    expected = (
        "<Run of failing on trn2 (builtin): no outputs, ended by RuntimeError, 0 instructions, 0 findings, 0 prints>"
    )
    assert [repr(run) for run in runs] == [expected]


def test_instructions_are_listed() -> None:
    """The first of them with their lines, then how many more."""
    run = nkitools.simulate(doubled, np.ones((128, 512), np.float32), rules="off")
    first, second, *rest = repr(run.instructions).splitlines()
    assert first == f"<Instructions: {len(run.instructions)}"
    assert second.startswith("  0: dma_copy at test_shown_runs.py:")
    assert rest[-1].startswith("  ")
    assert rest[-1].endswith(">")
    assert repr(run.instructions[:0]) == "[]"
