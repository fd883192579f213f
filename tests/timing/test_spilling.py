"""The estimate of kernels whose tensors spill: the traffic, the time, and where both are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools
from nkitools.dialects import legacy
from nkitools.dialects.legacy import language as lnl
from nkitools.facts.generations import GENERATIONS
from nkitools.record.time_estimate import Estimate
from nkitools.report.estimate_text import estimate_text, side_by_side
from nkitools.timing.durations import LEFT_OUT
from nkitools.timing.estimate import latency_of
from nkitools.timing.knobs import knobs_of
from nkitools.timing.timeline import timeline_of

WIDE = 8192
TILE = 128 * WIDE * 4  # bytes of a tile, of which six fit on trn2
X = np.ones((128, WIDE), np.float32)


@nki.jit
def kept(x: Any, counts: tuple[int, ...] = (9,)) -> Any:
    """Load so many tiles before the last is stored, and then the others."""
    out = nl.ndarray((len(counts), 128, WIDE), x.dtype, buffer=nl.shared_hbm)
    me = nl.program_id(0) if len(counts) > 1 else 0
    tiles = []
    for _ in range(counts[me]):
        tile = nl.load(x)
        tiles.append(tile)
    for waiting in tiles[::-1]:
        nisa.dma_copy(dst=out[me], src=waiting)
    return out


def busy_us(run: Any) -> Any:
    """The time of the busiest engine of each core."""
    chip = GENERATIONS[run.chip]
    busy = timeline_of(run, chip, knobs_of(chip)).busy_ns()[:, :LEFT_OUT]
    return busy.max(1) / 1e3


def spilled(estimate: Estimate) -> list[tuple[str, int, int, int]]:
    return [
        (each.tensor, each.nbytes, each.read_bytes, each.written_bytes) for each in estimate.traffic if each.spilled
    ]


@pytest.mark.parametrize(("chip", "fit", "rate"), [("trn1", 5, 296e9), ("trn2", 6, 400e9), ("trn3", 7, 574e9)])
def test_the_estimate_carries_the_traffic_and_its_time(chip: str, fit: int, rate: float) -> None:
    """What does not fit goes and comes once; after the busiest engine its bytes take their time."""
    run = nkitools.simulate(kept, X, chip=chip)
    found, beyond = run.estimate(), (9 - fit) * TILE
    assert found.latency_us == latency_of(run)
    assert spilled(found) == [("tile", beyond, beyond, beyond)]
    assert found.spilled_bytes == 2 * beyond
    assert found.latency_us == pytest.approx(busy_us(run)[0] + 2 * beyond / rate * 1e6 + found.launch_us)
    assert found.spill_us > 0
    assert found.roofline.hbm_bytes == 9 * TILE + TILE * 9 + 2 * beyond
    assert [each.severity for each in run.findings if each.rule == "NK202"] == ["warning"]


def test_without_spills_nothing_is_added() -> None:
    """As many tiles as fit have the schedule's time and no row that is spilled."""
    run = nkitools.simulate(kept, X, (6,))
    found, made = run.estimate(), timeline_of(run, GENERATIONS["trn2"], knobs_of(GENERATIONS["trn2"]))
    assert (spilled(found), found.spilled_bytes, found.spill_us) == ([], 0, 0.0)
    assert found.latency_us == pytest.approx(made.span_ns / 1e3 + found.launch_us)
    assert "spills:" not in estimate_text(found)


def test_spills_that_other_work_hides_cost_nothing() -> None:
    """The schedule without spills is longer than the busiest engine and the bytes together: it is the latency."""

    @nki.jit
    def waiting(x: Any) -> Any:
        out = nl.ndarray((2, 128, WIDE), x.dtype, buffer=nl.shared_hbm)
        tiles = [nl.load(x) for _ in range(7)]
        row = nl.load(x[0:1, 0:1])
        for _ in range(200):  # each waits for the one before: a store and a load, which no engine is busy with for long
            nisa.dma_copy(dst=out[1, 0:1, 0:1], src=row)
            nisa.dma_copy(dst=row, src=out[1, 0:1, 0:1])
        for tile in tiles[::-1]:
            nisa.dma_copy(dst=out[0], src=tile)
        return out

    found = nkitools.simulate(waiting, X, rules="off").estimate()
    assert found.spilled_bytes == 2 * TILE
    assert found.spill_us == 0.0


def test_the_core_that_needs_the_longest_decides() -> None:
    """Each core moves what its own SBUF has no room for, beside the others."""
    run = nkitools.simulate(kept, X, (8, 9), grid=2)
    found = run.estimate()
    assert found.spilled_bytes == 2 * (2 + 3) * TILE
    expected = max(busy_us(run) + np.array([4, 6]) * TILE / 400e9 * 1e6) + found.launch_us
    assert found.latency_us == pytest.approx(expected)


def test_texts_plain_forms_and_saved_runs_tell_of_it(tmp_path: Path) -> None:
    """The page has a line with the bytes and the time, and names the tensors; JSON has the same by name."""
    run = nkitools.simulate(kept, X)
    found = run.estimate()
    text = estimate_text(found)
    assert f"spills: {6 * TILE:,} bytes for which SBUF has no room (NK202), " in text
    assert f"  tile, spilled: {3 * TILE:,} bytes read" in text
    assert "spills" in side_by_side([found])
    plain = found.as_plain()
    assert (plain["spilled_bytes"], plain["spill_us"]) == (6 * TILE, found.spill_us)
    assert [each["tensor"] for each in plain["traffic"] if each["spilled"]] == ["tile"]
    run.save(tmp_path / "it.run")
    assert nkitools.load_run(tmp_path / "it.run").estimate() == found


def test_estimates_of_legacy_kernels_have_no_spills() -> None:
    """No measurement of them is at hand: the warning stands alone."""

    def kernel(x: Any) -> Any:
        out = lnl.ndarray(x.shape, dtype=x.dtype, buffer=lnl.shared_hbm)
        tiles = [lnl.load(x) for _ in range(7)]
        for tile in tiles[::-1]:
            lnl.store(out, tile)
        return out

    run = nkitools.simulate(legacy.jit(kernel), X, chip="trn2", rules="report")
    assert [(each.rule, each.severity) for each in run.findings if each.rule == "NK202"] == [("NK202", "warning")]
    assert run.estimate().spilled_bytes == 0
