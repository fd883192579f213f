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
from nkitools.report.page import page_data
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
    empty = nkitools.Run("rows", "pallas", outputs=(np.zeros((0, 4)), np.zeros((4, 0, 2))))
    reader.open(written(empty, tmp_path, empty.outputs))
    reader.press("2")
    reader.click("#pane figure .link")
    assert reader.text("#pane").count("no elements") == 6
    assert "It has no elements." in reader.text(".inspector")


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
    assert "tolerance: 1e-5 + 0 * |reference|, as stated" in reader.text(".card.error")


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


def test_one_wrong_element_of_many_is_seen(reader: Reader, tmp_path: Path) -> None:
    """One wrong element of 128 x 4096: the pictures mark it, have its colour, and lead to its exact values."""
    run = watched(copied, WIDE)
    expected = WIDE.copy()
    expected[77, 2049] += 0.5
    reader.open(written(run, tmp_path, expected))
    reader.press("2")
    dark = """const picture = [...document.querySelectorAll('#pane figure')][arguments[0]].querySelector('canvas');
        const { data } = picture.getContext('2d').getImageData(0, 0, picture.width, picture.height);
        let found = 0;
        for (let at = 0; at < data.length; at += 4) found += data[at] < 150 && data[at + 1] < 40 && data[at] > 60;
        return found;"""
    assert all(reader.driver.execute_script(dark, at) > 0 for at in (2, 3))
    reader.click("#pane figure .link", "Output out")
    assert "[77, 2049]" in reader.text(".facts")
    assert np.float32(reader.text(".numbers td[aria-current]")) == WIDE[77, 2049]
    assert reader.text(".quality") == "Every element as it is."


def test_exact_numbers_are_those_of_the_run(reader: Reader, tmp_path: Path) -> None:
    """All elements of 200 tiles drawn at random that the page calls exact equal those of the run bit for bit."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        for i in range(60):
            tile = nl.load(x[:, 16 * i : 16 * i + 16])
            for dtype in (nl.bfloat16, nl.float16, nl.int32, nl.float8_e4m3, nl.int8):
                narrow = nl.ndarray((128, 16), dtype)
                nisa.tensor_scalar(dst=narrow, data=tile, op0=nl.multiply, operand0=3.0)
            nisa.dma_copy(dst=out[:, 16 * i : 16 * i + 16], src=tile)
        return out

    run = watched(kernel, WIDE[:, :960], rules="off")
    reader.open(written(run, tmp_path))
    drawn = np.random.default_rng(1).choice(len(run.writes), 200, replace=False).tolist()
    found = reader.driver.execute_script(
        """const { tile, writes } = window.nkitools;
        return arguments[0].map((at) => { const { quality, values } = tile(writes[at].tile);
            return [quality, Array.from(values)]; });""",
        drawn,
    )
    assert {quality for quality, _ in found} == {0}
    for at, (_, values) in zip(drawn, found, strict=True):
        mine = run.writes[at].value
        np.testing.assert_array_equal(np.array(values).astype(mine.dtype).reshape(mine.shape), mine)


def test_numbers_of_very_many_tiles_say_that_they_are_rounded(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their least is rounded down and their largest up; the elements of the picture are still exact."""
    x = WIDE[:, :8]
    for many, about in ((1, "about "), (100, "")):
        monkeypatch.setattr(page_data, "_MANY", many)
        run = watched(copied, x)
        columns = Gathering(run, None).columns
        assert (columns["number.low"][0] < x.min()) is np.bool_(many == 1)
        assert (columns["number.high"][0] > x.max()) is np.bool_(many == 1)
        reader.open(written(run, tmp_path))
        assert reader.text(".facts dd").startswith("about ") is (about != "")
        assert f": {about}" in reader.see(".inspector figure canvas").get_attribute("aria-label")
        assert reader.text(".quality") == "Every element as it is."


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
    ends = Gathering(run, None).columns["SBUF.end"]
    assert ends.size == 20_010
    assert ends.max() == len(run.instructions) - 1


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
