"""A run like one in which nothing was found is not looked at again; whatever differs is."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as legacy
import neuronxcc.nki.language as legacy_nl
import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.launch import programs

X = np.arange(32, dtype=np.float32).reshape(4, 8)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The runs that the rules over a whole record look at."""
    found: list[Any] = []
    usual = programs.judge

    def noted(columns: Any, *args: Any, **more: Any) -> None:
        found.append(columns.record)
        usual(columns, *args, **more)

    monkeypatch.setattr(programs, "judge", noted)
    return found


def doubled(x: Any, reads: bool = True, turns: int = 1) -> Any:
    """Twice an array, in one or several turns; a tile that nothing reads where ``reads`` is false."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for _ in range(turns):
        tile = nl.load(x)
        twice = nl.ndarray(tile.shape, tile.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=twice, data1=tile, data2=tile, op=nl.add)
        nisa.dma_copy(dst=out, src=twice if reads else tile)
    return out


def test_a_form_is_looked_at_once(judged: list[Any]) -> None:
    """Other values are the same form."""
    for factor in (1, 2, 3):
        run = nkitools.simulate(doubled, factor * X)
        assert np.array_equal(run.outputs, 2 * factor * X)
    assert len(judged) == 1


def test_another_record_is_another_form(judged: list[Any]) -> None:
    """Of another shape, number of turns, chip and rule level; without rules nothing is looked for."""
    nkitools.simulate(doubled, X[:, :4])
    nkitools.simulate(doubled, X[:, :4], turns=2)
    nkitools.simulate(doubled, X[:, :4], chip="trn3")
    nkitools.simulate(doubled, X[:, :4], rules="report")
    assert len(judged) == 4
    nkitools.simulate(doubled, X[:, :4])
    assert len(judged) == 4


def test_what_is_found_is_found_in_every_run(judged: list[Any]) -> None:
    """NK513: a run with a finding is not clean, accepted or not."""
    runs = [nkitools.simulate(doubled, X, reads=False) for _ in range(3)]
    assert [[each.rule for each in run.findings] for run in runs] == [["NK513"]] * 3
    assert len(judged) == 3


def test_a_tensor_that_is_too_large_is_found_after_one_that_fits(judged: list[Any]) -> None:
    """NK202: the facts about storages are part of the form, also where no instruction differs."""

    def kernel(x: Any, many: int) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tiles = [nl.ndarray((4, 25_000), nl.float32, buffer=nl.sbuf) for _ in range(many)]
        for tile in tiles:
            nisa.memset(tile, 1.0)
        for tile in tiles:
            nisa.tensor_copy(dst=tile[:, 1:2], src=tile[:, 0:1])
        nisa.dma_copy(dst=out, src=x)
        return out

    for _ in range(2):
        assert nkitools.simulate(kernel, X, 1).findings == []
        assert [(each.rule, each.severity) for each in nkitools.simulate(kernel, X, 9).findings] == [
            ("NK202", "warning")
        ]


def test_a_changed_argument_is_found_in_every_run() -> None:
    """NK409: also where the rest of the run is clean, and known to be so."""

    def kernel(x: Any, changes: bool) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        nisa.dma_copy(dst=out, src=tile)
        if changes:
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
            nisa.dma_copy(dst=x, src=tile)
        return out

    for changes in (False, True, False, True, True):
        found = [each.rule for each in nkitools.simulate(kernel, X.copy(), changes).findings]
        assert found == (["NK409"] if changes else [])


def test_a_legacy_kernel_is_looked_at_once_and_found_in_every_run(judged: list[Any]) -> None:
    """NK108: two accesses of a tile that no place serves are a warning each time, after runs without one, too."""

    @legacy.jit
    def kernel(x: Any, shift: int) -> Any:
        out = legacy_nl.ndarray((62, 16), dtype=x.dtype, buffer=legacy_nl.shared_hbm)
        i_p, i_f = legacy_nl.arange(62)[:, None], legacy_nl.arange(16)[None, :]
        tile = legacy_nl.load(x)
        legacy_nl.store(out, legacy_nl.add(tile[i_p, i_f], tile[i_p + shift, i_f]))
        return out

    x = np.ones((64, 16), np.float32)
    found = []
    for shift in (0, 2, 0, 2, 0):
        run = nkitools.simulate(kernel, x, shift)
        assert np.array_equal(run.outputs, np.full((62, 16), 2.0))
        found.append([each.rule for each in run.findings if each.rule == "NK108"])
    assert found == [[], ["NK108"], [], ["NK108"], []]
    assert len(judged) == 3
