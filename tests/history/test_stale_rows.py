"""NK511: an instruction mixes what two turns of one line have written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.history.test_races import line_of

X = np.ones((128, 160), np.float32)


def sbuf(*shape: int) -> Any:
    """A tile of float32."""
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf)


def found(kernel: Any, x: Any = X) -> list[tuple[int, str]]:
    """Return line and sentence of each finding; a second run, which may be remembered, has to give the same."""
    runs = [nkitools.simulate(kernel, x, rules="report") for _ in range(2)]
    said = [[(each.line, each.message) for each in run.findings if each.rule == "NK511"] for run in runs]
    assert said[0] == said[1]
    assert [each.rule for each in runs[0].findings if each.severity == "error"] == []
    return said[0]


def through_a_copy(x: Any) -> Any:
    """The old columns travel through an element-wise instruction and are summed there."""
    out = nl.ndarray((128, 3), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = sbuf(128, 64)
    for n in range(3):
        width = min(64, 160 - n * 64)
        nisa.dma_copy(dst=tile[:, 0:width], src=x[:, n * 64 : n * 64 + width])
        powers, total = sbuf(128, 64), sbuf(128, 1)
        nisa.activation(dst=powers, op=nl.exp, data=tile)
        nisa.tensor_reduce(dst=total, op=nl.add, data=powers, axis=1)
        nisa.dma_copy(dst=out[:, n : n + 1], src=total)
    return out


def stored(x: Any) -> Any:
    """The old columns are stored beside the new ones."""
    out = nl.ndarray((3, 128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = sbuf(128, 64)
    for n in range(3):
        width = min(64, 160 - n * 64)
        nisa.dma_copy(dst=tile[:, 0:width], src=x[:, n * 64 : n * 64 + width])
        nisa.dma_copy(dst=out[n], src=tile)
    return out


def test_columns_that_have_travelled() -> None:
    """At the line that sums them, with the columns, and the line that has written fewer where that is known."""
    message = "tensor_reduce mixes two turns: of its operand `powers`, powers[0:128, 32:64] is of an earlier turn"
    assert found(through_a_copy) == [(line_of(through_a_copy, "tensor_reduce"), f"{message} than the rest")]


def test_columns_that_are_stored() -> None:
    """At the store."""
    ((line, message),) = found(stored)
    assert line == line_of(stored, "out[n]")
    short = line_of(stored, "tile[:, 0:width]")
    assert message.endswith(f"than the rest: line {short} has written fewer elements in the later one")
    assert "tile[0:128, 32:64]" in message


def filled(x: Any) -> Any:
    """Each turn fills the tile before its shorter write."""
    out = nl.ndarray((3, 128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = sbuf(128, 64)
    for n in range(3):
        width = min(64, 160 - n * 64)
        nisa.memset(dst=tile, value=0.0)
        nisa.dma_copy(dst=tile[:, 0:width], src=x[:, n * 64 : n * 64 + width])
        nisa.dma_copy(dst=out[n], src=tile)
    return out


def in_parts(x: Any) -> Any:
    """One tile is filled part by part, and the last part is shorter; then all of it is stored."""
    out = nl.ndarray((128, 160), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = sbuf(128, 160)
    for _ in range(2):
        for n in range(3):
            width = min(64, 160 - n * 64)
            nisa.dma_copy(dst=tile[:, n * 64 : n * 64 + width], src=x[:, n * 64 : n * 64 + width])
        nisa.dma_copy(dst=out, src=tile)
    return out


def row_by_row(x: Any) -> Any:
    """Old rows are summed each on its own, and their sums are not stored."""
    out = nl.ndarray((192, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    tile, total = sbuf(128, 160), sbuf(128, 1)
    for m in range(2):
        rows = min(128, 192 - m * 128)
        nisa.dma_copy(dst=tile[0:rows, :], src=x[0:rows, :])
        nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
        nisa.dma_copy(dst=out[m * 128 : m * 128 + rows, :], src=total[0:rows, :])
    return out


@pytest.mark.parametrize("kernel", [filled, in_parts, row_by_row])
def test_what_is_right(kernel: Any) -> None:
    """Nothing is said."""
    assert found(kernel) == []
