"""Time in the page: lanes and costs are those of `run.estimate`, one scrubber moves source, tiles and lanes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.report.page import time_data
from nkitools.report.page.page_data import Gathering
from nkitools.timing.durations import DMA, ENGINES
from tests.report.page.browser import Reader
from tests.report.page.test_truth import WIDE, watched, written


def reloading(x: Any) -> Any:
    """Load one tile in every turn again, and store what a matmul makes of it."""
    out = nl.ndarray((512, 128), x.dtype, buffer=nl.shared_hbm)
    for t in range(4):
        tile = nl.load(x)
        product = nl.ndarray((128, 128), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=tile, moving=tile)
        nisa.dma_copy(dst=out[t * 128 : t * 128 + 128, :], src=nl.copy(product))
    return out


def test_the_columns_are_those_of_the_estimate() -> None:
    """What engines do adds up to the estimate's; lines have all bytes of the traffic, and the reloads."""
    run = watched(reloading, WIDE[:, :128])
    found, estimate = Gathering(run, None), run.estimate()
    lanes, lasts = found.columns["time.lane"], found.columns["time.duration"]
    for use in estimate.engines:
        at = ENGINES.index(use.engine)
        if at != DMA:
            assert lasts[lanes % len(ENGINES) == at].sum() == pytest.approx(use.busy_us * 1e3, abs=2 * len(lasts))
    assert (found.columns["time.start"] + lasts).max() <= found.tables["time"]["span_ns"] + 1
    assert found.columns["line.moved"].sum() == sum(each.read_bytes + each.written_bytes for each in estimate.traffic)
    assert found.columns["line.reloads"].sum() == 3
    assert set(found.columns["time.path"].tolist()) <= set(range(len(run.instructions)))
    assert found.tables["time"]["latency_us"] == estimate.latency_us


def test_a_long_run_says_that_its_time_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a run has more instructions than a page schedules, the table says how many it would."""
    monkeypatch.setattr(time_data, "MOST", 10)
    found = Gathering(watched(reloading, WIDE[:, :128]), None)
    assert found.tables["time"] == {"left_out": 10}
    assert "time.start" not in found.columns


def test_pallas_calls_have_their_estimates(reader: Reader, tmp_path: Path) -> None:
    """A check has no instructions; what it keeps of the estimates is a table, with the reason where there is none."""
    known = {"kernel": "product", "chip": "v5e", "steps": 512, "profiled_steps": 32, "left_out": "", "bound": "memory"}
    times = {"latency_us": 41.5, "compute_us": 12.25, "memory_us": 41.5, "hbm_bytes": 1 << 20, "units": {"MXU": 0.25}}
    without = {**known, "chip": "v4", "latency_us": None, "left_out": "the compiler has no profile for v4"}
    run = nkitools.Run("matmul", "pallas", settings={"estimates": [{**known, **times}, without]})
    reader.open(written(nkitools.Run.from_json(run.to_json()), tmp_path))
    reader.press("7")
    first, second = (each.split("\t") for each in reader.texts(".time tbody tr"))
    assert first[:4] == ["product", "v5e", "41.5 \u00b5s", "memory"]
    assert first[-2:] == ["512 (32 profiled)", "MXU 25 %"]
    assert second == ["product", "v4", "no estimate: the compiler has no profile for v4"]


def test_the_scrubber_moves_everything(reader: Reader, tmp_path: Path) -> None:
    """A click on a lane and the scrubber choose the instruction at that time; lines have their cost beside them."""
    run = watched(reloading, WIDE[:, :128], rules="report")
    reader.open(written(run, tmp_path))
    reader.press("7")
    starts = Gathering(run, None).columns["time.start"]
    last = int(starts.argmax())
    reader.driver.execute_script(
        """const input = document.querySelector('.time input[type=range]');
        input.value = input.max; input.dispatchEvent(new Event('input'));"""
    )
    assert reader.text(".told").startswith(run.instructions[last].name)
    assert reader.line() == run.instructions[last].line
    assert f"instruction {last} " in reader.text(".inspector")
    click = """const picture = document.querySelector('.lanes canvas'), box = picture.getBoundingClientRect();
        for (const kind of ['mousedown', 'mouseup']) picture.dispatchEvent(new MouseEvent(kind,
            { clientX: box.left + 106, clientY: box.top + 18 + 18 * arguments[0] + 6, bubbles: true }));
        return picture.getAttribute('aria-label');"""
    label = reader.driver.execute_script(click, 0)
    lanes = label.removeprefix("Lanes of ").split(" from ")[0].split(", ")
    assert lanes[0] == "tensor"
    assert any("dma" in each for each in lanes)
    reader.driver.execute_script(click, next(at for at, each in enumerate(lanes) if "dma" in each))
    assert reader.text(".told").startswith("dma_copy")
    assert "turn" not in reader.text(".told")
    assert reader.line() == run.instructions[0].line
    # The view: closer, along, and whole again.
    box = reader.see(".lanes")
    box.send_keys("+")
    assert reader.see(".lanes canvas").get_attribute("aria-label") != label
    box.send_keys("0")
    assert reader.see(".lanes canvas").get_attribute("aria-label") == label
    shares = [each for each in reader.texts(".line .cost") if each]
    assert sum(float(each.strip("%↻<")) for each in shares) == pytest.approx(100, abs=len(shares))
    assert sum("↻" in each for each in shares) == 1
    words = reader.text(".bounds")
    for told in ("latency", "Roofline", "HBM traffic", "Critical path", "4\u00d7"):
        assert told in words
    for advice in run.estimate().advice:
        assert advice.rule in words
        assert any(advice.rule in each for each in reader.texts(".badge.hint"))


def test_lanes_of_cores_and_ranks_are_named(reader: Reader, tmp_path: Path) -> None:
    """Two ranks have lanes of their own."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=nl.load(x))
        return out

    run = watched(kernel, (np.ones((8, 8), np.float32),), (np.ones((8, 8), np.float32),), ranks=2)
    reader.open(written(run, tmp_path))
    reader.press("7")
    label = reader.see(".lanes canvas").get_attribute("aria-label")
    assert "rank 0 dma" in label
    assert "rank 1 dma" in label
