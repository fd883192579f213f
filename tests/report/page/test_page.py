"""The page as text: self-contained, escaped, within its size; and as it is read by keyboard."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects import legacy
from nkitools.dialects import modern as nki
from nkitools.dialects.legacy import language as lnl
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.run_listeners import collect_runs
from tests import cases
from tests.history.test_races import line_of
from tests.nki_versions import SINCE_0_7
from tests.report.page.browser import Reader
from tests.report.page.test_truth import watched, written

HOSTILE = "</script><script>window.hurt = 1</script><img src=x onerror='window.hurt = 1'>&amp;\u2028`${hurt}`"


def turns(x: Any) -> Any:
    """Three turns, of which the second divides by zero."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for i in range(3):
        tile = nl.load(x[i * 128 : (i + 1) * 128, :])
        nl.device_print("tile", tile)
        root = nl.sqrt(tile)
        nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, :], src=root)
    return out


X = np.arange(1, 3 * 128 * 4 + 1, dtype=np.float32).reshape(3 * 128, 4)


def with_nan() -> Any:
    x = X.copy()
    x[128 + 5, 2] = -1
    return x


class TestText:
    def test_it_needs_nothing_from_outside(self) -> None:
        """No address, no file beside it; a policy refuses whatever would be loaded."""
        text = nkitools.page(watched(turns, X))
        shown = re.sub(r'<script type="(application/json|text/plain)".*?</script>', "", text, flags=re.DOTALL)
        assert not re.search(r"(?:src|href)\s*=|https?:|url\(|@import|fetch\(|import\(", shown)
        assert "default-src 'none'" in text

    def test_what_an_author_writes_cannot_end_the_script(self) -> None:
        """Names and sources stand in the data, in which no sign begins a tag."""
        run = watched(turns, X)
        run.kernel = HOSTILE
        text = nkitools.page(run, title=HOSTILE)
        assert "<script>window.hurt" not in text
        assert "<img" not in text
        assert text.count("</script>") == 3

    def test_a_run_without_a_record_has_a_page(self) -> None:
        """Of a device only outputs are known."""
        run = nkitools.Run("kernel", "neuron", outputs=np.arange(4.0))
        assert '"instruction.plan":["i1",0,' in nkitools.page(run)

    def test_a_notebook_shows_it_in_a_frame_of_its_own(self) -> None:
        """The page is an attribute's text, in which no quote ends it; scripts run apart from the notebook's."""
        shown = watched(turns, X)._repr_html_()
        (source,) = re.findall(r'srcdoc="([^"]*)"', shown)
        assert "&lt;div id=&quot;app&quot;&gt;" in source
        assert 'sandbox="allow-scripts"' in shown

    def test_a_file_that_cannot_be_written_is_said(self, tmp_path: Path) -> None:
        """As OSError says it."""
        with pytest.raises(OSError, match=r"no/page\.html"):
            nkitools.write_page(watched(turns, X), tmp_path / "no" / "page.html")

    def test_a_saved_run_has_the_same_page(self, tmp_path: Path) -> None:
        """Tiles, call paths and memory are those of the run itself."""
        run = watched(turns, X)
        run.save(tmp_path / "run.json")
        assert nkitools.page(nkitools.load_run(tmp_path / "run.json")) == nkitools.page(run)


class TestRead:
    def test_a_nan_is_found_by_keyboard(self, reader: Reader, tmp_path: Path) -> None:
        """The page begins at the first NaN; its cell is marked and shows where it is, and the turns are stepped."""
        reader.open(written(watched(turns, with_nan(), rules="report"), tmp_path))
        assert reader.line() == line_of(turns, "nl.sqrt")
        assert reader.turn()["i"] == "1"
        assert "The first NaN" in reader.text("#pane")
        assert reader.text(".numbers td[aria-current]") == "NaN"
        assert "[5, 2]" in reader.text(".facts")
        reader.press("ARROW_RIGHT")
        assert reader.turn()["i"] == "2"
        assert reader.all(".numbers td.nan") == []
        reader.press("ARROW_LEFT", "ARROW_LEFT", "ARROW_UP")
        assert reader.turn()["i"] == "0"
        assert reader.line() < line_of(turns, "nl.sqrt")
        reader.press("n")
        assert reader.text(".numbers td[aria-current]") == "NaN"

    def test_numbers_are_those_of_the_tile(self, reader: Reader, tmp_path: Path) -> None:
        """The cell that is chosen shows the element; the facts are those of NumPy."""
        reader.open(written(watched(turns, X), tmp_path))
        reader.click(f".line[data-line='{line_of(turns, 'dma_copy')}']")
        reader.press("ARROW_RIGHT", "ARROW_RIGHT")
        tile = np.sqrt(X[256:])
        cells = [
            [each.text for each in row.find_elements("css selector", "td")] for row in reader.all(".numbers tbody tr")
        ]
        np.testing.assert_allclose(np.array(cells, np.float32), tile[: len(cells)], rtol=1e-5)
        facts = reader.text(".facts").split()
        assert float(facts[facts.index("maximum") + 1]) == pytest.approx(tile.max(), rel=1e-5)

    def test_unwritten_elements_are_marked(self, reader: Reader, tmp_path: Path) -> None:
        """They are no NaN: the table shows a dot, the legend counts them."""

        @legacy.jit
        def kernel(x: Any) -> Any:
            out = lnl.ndarray((128, 4), lnl.float32, buffer=lnl.shared_hbm)
            i, j = lnl.mgrid[0:128, 0:4]
            lnl.store(out[i, j], lnl.load(x[i, j]), mask=(i >= j))
            return out

        reader.open(written(watched(kernel, X[:128], rules="report"), tmp_path))
        reader.click(f".line[data-line='{line_of(kernel, 'lnl.store')}']")
        reader.press(".")
        assert "unwritten 6" in reader.text(".legend")
        assert len(reader.all(".numbers td.unwritten")) == 6

    def test_a_finding_leads_to_its_line(self, reader: Reader, tmp_path: Path) -> None:
        """By its badge and by key; the pane shows message and remedy."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray((128, 8), x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out[:, 0:4], src=nl.load(x))
            return out

        reader.open(written(watched(kernel, X[:128], rules="report"), tmp_path))
        badge = reader.see(".badge.error")
        assert badge.text == "NK403"
        reader.press("f")
        assert reader.line() == line_of(kernel, "nl.ndarray")
        assert "never written" in reader.text("#pane")

    @pytest.mark.parametrize("rules", ["error", "report"])
    def test_a_half_written_output_shows_its_hole(self, reader: Reader, tmp_path: Path, rules: str) -> None:
        """The first card has remedy and picture; the output is there with its hole, and no NaN beside that cause."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray((256, 4), x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out[0:128], src=nl.load(x))
            return out

        with nkitools.watching(), collect_runs() as runs, suppress(nkitools.KernelError):
            nkitools.simulate(kernel, X[:128], rules=rules)
        reader.open(written(runs[0], tmp_path))
        cards = [each.text for each in reader.all("article.card")]
        assert cards[0].startswith("NK403 output-not-written\n")
        assert "Store to every element of the output" in cards[0]
        assert "rows 128..255  ####" in cards[0]
        assert not any("NaN" in each for each in cards)
        assert len(cards) == 1 + (rules == "error")
        reader.press("2")
        assert "unwritten 512" in reader.text("#pane .legend")

    def test_prints_stand_at_their_line(self, reader: Reader, tmp_path: Path) -> None:
        """A badge counts them; the pane lists and filters them; one that is chosen is shown."""
        reader.open(written(watched(turns, X), tmp_path))
        assert reader.text(".badge.print") == "print \N{MULTIPLICATION SIGN}3"
        reader.press("4")
        assert len(reader.all(".prints .list .row")) == 3
        reader.see(".prints input").send_keys("i=2")
        assert len(reader.all(".prints .list .row")) == 1
        reader.click(".prints .list .row")
        assert reader.text(".inspector h2").split() == ["printed", "tile"]
        assert reader.line() == line_of(turns, "nl.device_print")

    def test_programs_are_stepped_through(self, reader: Reader, tmp_path: Path) -> None:
        """A launch on two cores has a stepper of programs."""

        @nki.jit
        def kernel(x: Any) -> Any:
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            row = nl.program_id(0) * 128
            nisa.dma_copy(dst=out[row : row + 128, :], src=nl.load(x[row : row + 128, :]))
            return out

        reader.open(written(watched(kernel[2], X[:256]), tmp_path))
        assert reader.turn()["program"] == "0"
        reader.click("[aria-label='next program']")
        assert reader.turn()["program"] == "1"

    def test_ranks_are_stepped_through(self, reader: Reader, tmp_path: Path) -> None:
        """Each rank's instructions follow those of the rank before; a wrong output belongs to its rank."""

        @nki.jit
        def kernel(x: Any) -> Any:
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=out, src=nl.load(x))
            return out

        given = X[:128], X[128:256]
        with nkitools.watching():
            run = nkitools.simulate(kernel, (given[0],), (given[1],), ranks=2)
        reader.open(written(run, tmp_path, (given[0], given[1] + 1)))
        assert "in the turn rank 1" in reader.text(".card.error")
        assert reader.turn()["rank"] == "1"
        reader.press("ARROW_LEFT")
        assert reader.turn()["rank"] == "0"

    def test_memory_shows_what_is_alive(self, reader: Reader, tmp_path: Path) -> None:
        """Of the moment that is selected: names and bytes of each partition."""
        reader.open(written(watched(turns, X), tmp_path))
        reader.click(f".line[data-line='{line_of(turns, 'nl.sqrt')}']")
        reader.press("6")
        rows = [each.text for each in reader.all(".memories article:first-child .tensors tr")]
        assert [row.split()[0] for row in rows] == ["tile", "root"]
        assert all("16 B" in row for row in rows)

    def test_a_notebook_has_it_in_a_frame(self, reader: Reader, tmp_path: Path) -> None:
        """What Jupyter is given is the whole page, which works inside of another one."""
        notebook = tmp_path / "notebook.html"
        notebook.write_text(f"<html data-ready=yes><body>{watched(turns, X)._repr_html_()}</body></html>")
        reader.open(notebook)
        reader.enter("iframe")
        reader.press("ARROW_RIGHT")
        assert reader.text("h1") == "turns"
        reader.click(".step[aria-label='next i']")
        assert reader.turn() == {"i": "1"}
        reader.driver.switch_to.default_content()

    def test_what_reads_a_tile_is_reported_up_to_its_end(self, reader: Reader, tmp_path: Path) -> None:
        """A write in place reads what was there and ends it."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            tile = nl.load(x)
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=0.5)
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
            nisa.dma_copy(dst=out, src=tile)
            return out

        reader.open(written(watched(kernel, X[:128]), tmp_path))
        assert reader.line() == line_of(kernel, "nl.load")
        readers = [each.text for each in reader.all(".flow > div:last-child li")]
        assert readers == [f"tensor_scalar, test_page.py:{line_of(kernel, 'nl.multiply')}"]

    def test_a_tensor_written_in_pieces_is_made_from_all_of_them(self, reader: Reader, tmp_path: Path) -> None:
        """Every piece that a read covers is named, and so are all parts of the arguments behind them."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
            tile = nl.ndarray(x.shape, x.dtype)
            nisa.memset(tile, 7.0)
            nisa.dma_copy(dst=tile[:, 0:2], src=x[:, 0:2])
            nisa.dma_copy(dst=tile[:, 2:4], src=x[:, 2:4])
            nisa.dma_copy(dst=out, src=tile)
            return out

        reader.open(written(watched(kernel, X[:128]), tmp_path))
        reader.click(f".line[data-line='{line_of(kernel, 'dst=out')}']")
        rests = reader.text(".trail p")
        assert "x[0:128, 0:2]" in rests
        assert "x[0:128, 2:4]" in rests
        assert "memset" not in reader.text(".trail")

    @SINCE_0_7
    def test_parts_of_a_grid_are_called_by_their_tiles(self, reader: Reader, tmp_path: Path) -> None:
        """In HBM, and in SBUF where more rows than partitions lie side by side; other slices stay slices."""

        def kernel(x: Any) -> Any:
            source = nl.tiles(x, tile_shape=(128, 3))
            held = nl.empty_like(source, buffer=nl.sbuf)
            out = nl.ndarray((128, 4), x.dtype, buffer=nl.shared_hbm)
            nisa.dma_copy(dst=held[1].data, src=source[1].data)
            nisa.dma_copy(dst=held[2, 1].data, src=source[2, 1].data)
            nisa.dma_copy(dst=out[:, 0:1], src=held[2, 1].data)
            nisa.dma_copy(dst=out[:, 1:4], src=held[1].data[:, 0:3])
            nisa.dma_copy(dst=out[:, 1:2], src=x[128:256, 1:2])
            return out

        reader.open(written(watched(kernel, X), tmp_path))
        for written_by, read in (
            ("dst=out[:, 0:1]", "tile (2, 1) of held, rows 256:384, columns 3:4"),
            ("dst=out[:, 1:4]", "tile (1, 0) of held, rows 128:256, columns 0:3"),
            ("dst=out[:, 1:2]", "x[128:256, 1]"),
            ("dst=held[1]", "tiles (1, 0:2) of x, rows 128:256, columns 0:4"),
        ):
            reader.click(f".line[data-line='{line_of(kernel, written_by)}']")
            assert read in reader.text(".flow")

    def test_hostile_names_do_nothing(self, reader: Reader, tmp_path: Path) -> None:
        """A tensor, a print, a source line and a title that are HTML and JavaScript are shown as they are."""
        source = f"def kernel(x):\n    # {HOSTILE}\n"
        source += "    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm, name=NAME)\n"
        source += "    nl.device_print(NAME, nl.load(x))\n    nisa.dma_copy(dst=out, src=x)\n    return out\n"
        file = tmp_path / "hostile.py"
        file.write_text(source)
        names: dict[str, Any] = {"nl": nl, "nisa": nisa, "NAME": HOSTILE}
        exec(compile(source, str(file), "exec"), names)
        run = watched(names["kernel"], X[:128])
        reader.open(written(run, tmp_path, X[:128] + 1, title=HOSTILE))
        for key in "1234567":
            reader.press(key)
        assert reader.driver.execute_script("return window.hurt") is None
        assert HOSTILE in reader.see(".line[data-line='2'] .text").get_attribute("textContent")
        assert reader.all("#app img") == []


PRINTS = 500 if cases.FULL else 50


def long(x: Any) -> Any:
    """40 instructions for each of its prints."""
    out = nl.ndarray((128, 16), nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for _i in nl.sequential_range(PRINTS):
        nl.device_print("tile", tile)
        for _j in nl.sequential_range(40):
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=0.25)
    nisa.dma_copy(dst=out, src=tile)
    return out


class TestLarge:
    @pytest.mark.soak
    def test_20000_instructions_and_500_prints_stay_usable(self, reader: Reader, tmp_path: Path) -> None:
        """Under 10 MB; only what is in sight is drawn, and the last instruction is one key away.

        Without --soak there are a tenth as many.
        """
        x = np.random.default_rng(3).standard_normal((128, 16), np.float32)
        run = watched(long, x)
        assert len(run.instructions) == 40 * PRINTS + 2
        assert len(run.prints) == PRINTS
        path = written(run, tmp_path)
        assert path.stat().st_size < 10e6
        reader.open(path)
        reader.press("5")
        assert len(reader.all(".instructions .list .row")) < 60
        reader.see(".instructions .list").send_keys("\ue010")  # End
        assert "dma_copy" in reader.text(".inspector h2")
        assert "out" in reader.text(".inspector h2")


def test_a_tolerance_without_expected_outputs_is_refused() -> None:
    """``rtol`` and ``atol`` are about ``expected``: without it they would change nothing, and the error says so."""
    run = watched(turns, X)
    for tolerance in ({"rtol": 1e-3}, {"atol": 0.0}):
        with pytest.raises(ValueError, match="differences from `expected`"):
            nkitools.page(run, **tolerance)
    for wrong in (-1e-3, np.inf):
        with pytest.raises(ValueError, match="atol: must be a finite number from 0 on"):
            nkitools.page(run, run.outputs, atol=wrong)
    assert "<html" in nkitools.page(run, run.outputs, rtol=1e-3)
