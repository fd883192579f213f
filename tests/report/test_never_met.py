"""The line of a green session about what its tests never met."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.report import never_met
from nkitools.report.run_counts import Tally, tally_of


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of other tests are forgotten."""
    monkeypatch.setattr(never_met, "_met", {})


def product(left_t: Any, right: Any) -> Any:
    """``left_t.T @ right``, tile by tile."""
    depth, rows = left_t.shape
    out = nl.ndarray((rows, right.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    for m in range(0, rows, 128):
        stop = min(rows, m + 128)
        total = nl.ndarray((stop - m, right.shape[1]), dtype=nl.float32, buffer=nl.psum)
        for k in range(0, depth, 128):
            a, b = nl.load(left_t[k : k + 128, m:stop]), nl.load(right[k : k + 128])
            nisa.nc_matmul(dst=total, stationary=a, moving=b)
        tile = nl.ndarray((stop - m, right.shape[1]), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=tile, src=total)
        nisa.dma_copy(dst=out[m:stop], src=tile)
    return out


def shared(x: Any) -> Any:
    """Each program has its part of the columns."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    width = x.shape[1] // nl.num_programs(0)
    start = nl.program_id(0) * width
    nl.store(out[:, start : start + width], nl.load(x[:, start : start + width]))
    return out


def ones(*shape: int) -> Any:
    """An array of ones."""
    return np.ones(shape, np.float32)


def missing(*runs: Any) -> str:
    """The line after some runs, each of a test of its own."""
    total = Tally()
    for run in runs:
        total.merge(Tally.from_plain(tally_of([run], "").as_plain()))
    return never_met.sentence(total.met)


def test_sizes() -> None:
    """Each size that a test adds takes a part of the line away."""
    small, deep, partial = (
        nkitools.simulate(product, ones(depth, rows), ones(depth, 32))
        for depth, rows in ((128, 256), (256, 256), (128, 200))
    )
    assert missing(small) == "never met: product: no partial last tile, K never beyond one tile"
    assert missing(small, deep) == "never met: product: no partial last tile"
    assert missing(small, deep, partial) == ""


def test_programs() -> None:
    """Only of kernels that ask for their program."""
    assert missing(nkitools.simulate(shared, ones(128, 64))) == "never met: shared: never more than one program"
    assert missing(nkitools.simulate(shared, ones(128, 64), grid=2)) == "never met: shared: no partial last tile"


def test_many_kernels() -> None:
    """Three of them are named."""
    met = {name: {"depth": False} for name in "abcde"}
    text = never_met.sentence(met)
    assert (
        text == "never met: " + "; ".join(f"{name}: K never beyond one tile" for name in "abc") + "; and 2 more kernels"
    )


def test_a_kernel_is_shown_by_a_name_that_commands_nothing() -> None:
    """A kernel's name that would turn a terminal's text or begin a second line is escaped."""
    line = never_met.sentence({"mat\nmul\x1b[31m": {"depth": False}})
    assert line == "never met: mat\\nmul\\x1b[31m: K never beyond one tile"
