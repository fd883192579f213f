"""What pages once did wrong stays right, read in a browser: producers, layout, search, links, files, colours."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from tests.report.page.browser import Reader
from tests.report.page.test_truth import WIDE, watched, written


def passes(x: Any, y: Any) -> Any:
    """Two passes over HBM by blocks of columns; steps and interleaved columns on chip; a tile that nothing wrote."""
    scratch = nl.ndarray(x.shape, x.dtype, buffer=nl.private_hbm)
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for c in range(4):
        nisa.dma_copy(dst=scratch[:, c * 32 : c * 32 + 32], src=x[:, c * 32 : c * 32 + 32])
    for d in range(4):
        nisa.dma_copy(dst=out[:, d * 32 : d * 32 + 32], src=scratch[:, d * 32 : d * 32 + 32])
    mixed, never = nl.ndarray(x.shape, x.dtype), nl.ndarray((128, 8), x.dtype)
    nisa.dma_copy(dst=mixed[:, 0:128:2], src=x[:, 0:128:2])
    nisa.dma_copy(dst=mixed[:, 1:128:2], src=y[:, 1:128:2])
    nisa.tensor_copy(dst=mixed[:, 1:64:3], src=mixed[:, 65:128:3])
    even, odd, steps = (nl.ndarray((128, 64), x.dtype) for _ in range(3))
    nisa.tensor_copy(dst=even, src=mixed[:, 0:128:2])
    nisa.tensor_copy(dst=odd, src=mixed[:, 1:128:2])
    nisa.tensor_tensor(dst=steps, data1=even, data2=odd, op=nl.add)
    nisa.tensor_copy(dst=steps[:, 0:8], src=never)
    return out


_SOURCES = """const { operandsOf, othersOf, sourcesOf, run } = window.nkitools;
    return Array.from(run.instructions.plan, (_, at) => [...operandsOf(at).flatMap(sourcesOf), ...othersOf(at)]);"""


def test_producers_are_those_of_the_dependences(reader: Reader, tmp_path: Path) -> None:
    """The page has the sources that run.dependences has, and shows them by turn, unwritten ones too."""
    run = watched(passes, WIDE[:, :128], WIDE[:, 128:256], rules="off")
    reader.open(written(run, tmp_path))
    starts, sources = run.dependences.flow.starts, run.dependences.flow.sources
    expected = [sorted(set(sources[first:last].tolist())) for first, last in pairwise(starts)]
    assert [sorted(set(each)) for each in reader.driver.execute_script(_SOURCES)] == expected
    assert [expected[turn] for turn in range(8)] == [[-1]] * 4 + [[0], [1], [2], [3]]
    reader.press("5")
    for turn in range(4):
        reader.driver.execute_script(f"location.hash = 'line={line_of(run, 4)}&turn=d:{turn}'")
        wait(lambda turn=turn: f"(c={turn})" in reader.text(".flow"))
        assert reader.text(".flow").count("(c=") == 1
    reader.driver.execute_script(f"location.hash = 'line={line_of(run, len(expected) - 1)}'")
    wait(lambda: "never written" in reader.text(".flow"))


def line_of(run: Any, position: int) -> int:
    return int(run.instructions[position].line)


def wait(holds: Any) -> None:
    end = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.02)


def turns(x: Any) -> Any:
    """Four turns, the last with large values; a constant tile; a print and a finding at long lines."""
    out = nl.ndarray((512, 16), x.dtype, buffer=nl.shared_hbm)
    for t in range(4):
        tile = nl.load(x[:, 16 * t : 16 * t + 16])
        nisa.dma_copy(dst=out[t * 128 : t * 128 + 128, :], src=nl.sqrt(tile))
        nisa.dma_copy(dst=out[t * 128 : t * 128 + 128, :], src=tile)
    constant = nl.full((128, 16), 7.0, x.dtype)
    nl.device_print("constant", constant)
    return out


_OVERLAPS = """return [...document.querySelectorAll('.line')].filter((row) => {
    const range = document.createRange(); range.selectNodeContents(row.querySelector('.text'));
    return [...row.querySelectorAll('.badge')].some((badge) => [...range.getClientRects()].some((a) => {
        const b = badge.getBoundingClientRect();
        return a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1; }));
    }).length"""
_CONTRAST = """const rgb = (text) => text.match(/[0-9.]+/g).map(Number);
    const light = (c) => c.slice(0, 3).map((v) => v / 255)
        .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
        .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
    const back = (e) => { for (let p = e; p; p = p.parentElement) { const c = rgb(getComputedStyle(p).backgroundColor);
        if (c.length < 4 || c[3] > 0.99) return light(c); } return 1; };
    const words = '.line .number, .numbers th, .hint, .sub, .badge, .pill';
    return Math.min(...[...document.querySelectorAll(words)].map((e) => {
        const [a, b] = [light(rgb(getComputedStyle(e).color)), back(e)];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); }))"""


@dataclass(frozen=True)
class Shown:
    """A run, and where its page is."""

    run: Any
    page: Path


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """The run of `turns`, and its page."""
    x = WIDE[:, :64].copy()
    x[:, 48:] *= 100
    run = watched(turns, x, rules="report")
    return Shown(run, written(run, tmp_path_factory.mktemp("turns")))


@pytest.fixture
def at_turns(reader: Reader, shown: Shown) -> Reader:
    """A reader who has just opened that page."""
    reader.driver.get("about:blank")  # from one address of a page to another nothing is loaded
    reader.open(shown.page)
    return reader


def test_all_is_found_by_words(at_turns: Reader, shown: Shown) -> None:
    """An instruction by its name and number, a finding by its rule, a tensor by its name."""
    rule = shown.run.findings[0].rule
    kinds = {words: search(at_turns, words) for words in ("dma_copy", rule, "constant", "#3")}
    assert "Instructions" in kinds["dma_copy"]
    assert "Findings" in kinds[rule]
    assert {"Lines", "Tensors", "Prints"} <= set(kinds["constant"].replace("\n", " ").split())
    assert "\n3 " in kinds["#3"]


def test_an_address_brings_back_what_was_shown(reader: Reader, shown: Shown) -> None:
    """The turn and the element; the scale is one over all turns, so that its ends stay while stepping."""
    load = load_of(shown.run)
    reader.driver.get("about:blank")
    reader.driver.get(f"{shown.page.absolute().as_uri()}#line={load.line}&turn=t:2&el=3,11")
    wait(lambda: reader.see("html").get_attribute("data-ready"))
    assert reader.turn()["t"] == "2"
    assert np.float32(reader.text(".numbers td[aria-current]")) == load.value[3, 11]
    ends = reader.text(".inspector .legend")
    reader.press("ARROW_RIGHT")
    assert reader.turn()["t"] == "3"
    assert reader.text(".inspector .legend") == ends
    wait(lambda: "turn=t:3" in reader.driver.current_url)


def test_a_file_of_a_tile_has_its_values(at_turns: Reader, shown: Shown) -> None:
    """As NumPy reads it; a constant tile has the one value as its legend."""
    script = "return Array.from(window.nkitools.npyOfItem(window.nkitools.writes[0]))"
    raw = at_turns.driver.execute_script(script)
    np.testing.assert_array_equal(np.load(io.BytesIO(bytes(raw))), shown.run.writes[0].value)
    at_turns.driver.execute_script(f"location.hash = 'line={load_of(shown.run).line}&turn=t:3'")
    wait(lambda: at_turns.turn().get("t") == "3")
    assert at_turns.text(".facts .link:last-child") != ""
    at_turns.driver.execute_script(f"location.hash = 'line={line_of_write(shown.run, 'constant')}'")
    wait(lambda: at_turns.text(".inspector .legend") == "7")


def test_borders_move_by_keys_and_by_the_mouse(at_turns: Reader) -> None:
    """The border between source and tile and that above the panes, and back."""
    widths = "return [...document.querySelectorAll('.source, .bottom')].map((each) => Math.round(each.clientWidth))"
    before = at_turns.driver.execute_script(widths)
    for key, way in (("ArrowRight", 1), ("Home", 0)):
        at_turns.driver.execute_script(_KEY, ".border[aria-orientation=vertical]", key)
        assert np.sign(at_turns.driver.execute_script(widths)[0] - before[0]) == way
    sizes = (
        "const { clientWidth, clientHeight } = document.querySelector(arguments[0]); return [clientWidth, clientHeight]"
    )
    for border, box, way, change in (
        ("vertical", ".source", (-120, 0), (-120, 0)),
        ("horizontal", ".bottom", (0, -90), (0, 90)),
    ):
        size = at_turns.driver.execute_script(sizes, box)
        at_turns.drag(f".border[aria-orientation={border}]", *way)
        assert np.subtract(at_turns.driver.execute_script(sizes, box), size) == pytest.approx(change, abs=12)
        at_turns.driver.execute_script(_KEY, f".border[aria-orientation={border}]", "Home")


def test_colours_by_rank_and_of_the_source(at_turns: Reader, shown: Shown) -> None:
    """Half of the colours are for the half of the elements; words and numbers of Python have theirs."""
    assert {"def", "for", "in", "return"} <= set(at_turns.texts(".text .word"))
    assert "512" in at_turns.texts(".text .number")
    at_turns.driver.execute_script(f"location.hash = 'line={load_of(shown.run).line}&turn=t:2'")
    wait(lambda: at_turns.turn().get("t") == "2")
    scale = """const box = document.querySelector('.steppers select');
        box.value = arguments[0]; box.dispatchEvent(new Event('change'))"""
    at_turns.driver.execute_script(scale, "quantile")
    assert "(by rank)" in at_turns.text(".inspector .legend")
    assert at_turns.driver.execute_script(_DARK) == pytest.approx(0.5, abs=0.3)
    at_turns.driver.execute_script(scale, "linear")


def test_nothing_covers_code_and_all_can_be_read(at_turns: Reader, shown: Shown) -> None:
    """On wide and narrow screens, and on paper, which has findings and pictures whichever pane is open."""
    at_turns.driver.execute_script(f"location.hash = 'line={load_of(shown.run).line}&turn=t:2'")
    wait(lambda: at_turns.turn().get("t") == "2")
    for width in (1280, 390):
        at_turns.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 860, "deviceScaleFactor": 1, "mobile": False},
        )
        assert at_turns.driver.execute_script("return document.documentElement.scrollWidth") <= width
        assert at_turns.all(".badge") != []
        assert at_turns.driver.execute_script(_OVERLAPS) == 0
    at_turns.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert at_turns.driver.execute_script(_CONTRAST) >= 4.5
    at_turns.driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert at_turns.all("#pane .finding") != []
    assert at_turns.all("#pane .arrays canvas") != []
    at_turns.driver.execute_script("dispatchEvent(new Event('afterprint'))")


def test_arrow_keys_go_from_pane_to_pane(at_turns: Reader) -> None:
    """From the overview to the outputs."""
    at_turns.driver.execute_script("document.querySelector('#tab-overview').focus()")
    at_turns.press("ARROW_RIGHT")
    assert at_turns.see("[role=tab][aria-selected=true][id^=tab-]").get_attribute("id") == "tab-outputs"


_KEY = """document.querySelector(arguments[0]).dispatchEvent(
    new KeyboardEvent('keydown', { key: arguments[1], bubbles: true }))"""
_DARK = """const picture = document.querySelector('.tile figure canvas'), { data } = picture.getContext('2d')
        .getImageData(0, 0, picture.width, picture.height);
    let dark = 0;
    for (let at = 0; at < data.length; at += 4) dark += data[at + 1] < 150;
    return (dark * 4) / data.length;"""


def search(reader: Reader, words: str) -> str:
    reader.press("/")
    reader.see(".search input").send_keys(words)
    text = reader.text(".results")
    reader.press("ESCAPE")
    return text


def line_of_write(run: Any, tensor: str) -> int:
    return next(each.line for each in run.writes if each.tensor == tensor)


def load_of(run: Any) -> Any:
    return next(each for each in run.writes if each.loops == {"t": 2})
