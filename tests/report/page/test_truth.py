"""The page says what is so: verdicts, tolerances and labels, read in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.expected_outputs import Reference
from nkitools.report.page.comparison import compared
from nkitools.report.page.page_data import Gathering
from tests.report.page.browser import Reader

WIDE = np.random.default_rng(0).standard_normal((128, 4096)).astype(np.float32)


def written(run: Any, directory: Path, *args: Any, **kwargs: Any) -> Path:
    path = directory / "page.html"
    nkitools.write_page(run, path, *args, **kwargs)
    return path


def watched(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    with nkitools.watching():
        return nkitools.simulate(kernel, *args, **kwargs)


def copied(x: Any) -> Any:
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=nl.load(x))
    return out


def test_a_run_without_lines_opens(reader: Reader, tmp_path: Path) -> None:
    """Without an instruction, a file or a print no script fails, and nothing advises to do what was done."""
    run = nkitools.Run("matmul", "pallas", outputs=np.arange(4.0))
    reader.open(written(run, tmp_path, title="test_it[sim]"))
    reader.press("ARROW_DOWN", "ARROW_RIGHT", "2")
    assert "--nki-report" not in reader.text("body")
    assert "no findings, no reference" in reader.text("header.top")


def test_nan_in_an_output_is_the_verdict(reader: Reader, tmp_path: Path) -> None:
    """Without a reference the heading counts the NaN; a reference that has them makes it an agreement."""
    x = WIDE[:, :8].copy()
    x[3, 5] = x[7, 1] = np.nan
    run = watched(copied, x)
    reader.open(written(run, tmp_path))
    assert "2 NaN in the outputs" in reader.text("header.top .pill")
    reader.open(written(run, tmp_path, x))
    assert reader.text("header.top .pill") == "agrees with the reference"


def test_a_passing_test_is_never_red(reader: Reader, tmp_path: Path) -> None:
    """A test that passes and states no tolerance: nothing is wrong, the largest difference is said."""
    run = watched(copied, WIDE[:, :8])
    expected = WIDE[:, :8].astype(np.float64)
    expected[3, 5] += 1e-4
    reader.open(written(run, tmp_path, expected, passed=True))
    assert "is at [3, 5]" in reader.text(".card.hint")
    assert reader.all(".pill.bad, .card.error, .line.wrong") == []
    reader.open(written(run, tmp_path, expected, rtol=0, atol=1e-5))
    assert "1 wrong element" in reader.text("header.top .pill")
    assert "the stated tolerance: 1e-5 + 0 * |reference|" in reader.text(".card.error")


@pytest.mark.parametrize(
    ("ours", "tolerance", "wrong"),
    [
        (1.0 + 1e-3, {"atol": 1e-3}, False),
        (1.0 + 2e-3, {"atol": 1e-3}, True),
        (10.0, {"rtol": 0.95}, True),  # relative to the reference, as NumPy has it
        (1.9, {"rtol": 0.95}, False),
        (2.0, {"rtol": 0.9, "atol": 0.11}, False),
        (np.nan, {"atol": 1.0}, True),
    ],
)
def test_the_stated_tolerance_is_that_of_numpy(ours: float, tolerance: dict[str, float], wrong: bool) -> None:
    """An element is wrong exactly where numpy.testing.assert_allclose fails with these numbers."""
    (found,) = compared(np.array([ours]), Reference(np.array([1.0]), **tolerance))
    assert found.count == int(wrong)
    assert np.allclose([ours], [1.0], **{"rtol": 0, "atol": 0, **tolerance}) is not wrong


def test_equal_nan() -> None:
    """A NaN agrees with a NaN unless it is said that it does not."""
    values = np.array([np.nan, 1.0])
    assert [compared(values, Reference(values, equal_nan=each))[0].count for each in (True, False)] == [0, 1]


def test_outputs_of_ranks_are_headed_by_rank(reader: Reader, tmp_path: Path) -> None:
    """Of two ranks each output says whose it is."""
    run = watched(copied, (WIDE[:, :8],), (WIDE[:, 8:16],), ranks=2)
    reader.open(written(run, tmp_path))
    reader.press("2")
    assert [each.text.split(" float32")[0] for each in reader.all("#pane article h3")] == [
        "Output out of rank 0",
        "Output out of rank 1",
    ]


def test_every_life_of_a_long_run_is_in_the_memory_chart() -> None:
    """More than 20,000 tensors: each that was alive is there, that of the last turn among them."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        for _ in nl.sequential_range(20_010):
            tile = nl.ndarray(x.shape, x.dtype)
            nisa.memset(tile, 1.0)
        nisa.dma_copy(dst=out, src=tile)
        return out

    run = nkitools.simulate(kernel, np.ones((1, 1), np.float32))
    lives = Gathering(run, None).tables["memory"]["SBUF"]["lives"]
    assert len(lives) == 20_010
    assert max(life[2] for life in lives) == len(run.instructions) - 1


def test_findings_of_one_line_are_one_article(reader: Reader, tmp_path: Path) -> None:
    """Those of other turns are links in it; the key f marks the article and brings it into sight."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((512, 8), x.dtype, buffer=nl.shared_hbm)
        for i in range(4):
            tile = nl.load(x)
            root = nl.sqrt(tile)
            nisa.dma_copy(dst=out[i * 128 : i * 128 + 64, :], src=root[0:64, :])
        return out

    run = watched(kernel, -np.abs(WIDE[:, :8]), rules="report")
    lines = {(each.rule, each.line) for each in run.findings}
    reader.open(written(run, tmp_path))
    reader.press("f")
    assert len(reader.all("#pane article")) == len(lines)
    assert len(reader.all("#pane article[aria-current]")) == 1
