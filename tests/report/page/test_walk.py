"""A newcomer finds a planted fault through the page alone: by what it says first, and by its links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.stand_in import stand_in_installed
from tests.report.page.browser import Reader
from tests.report.page.planted import PLANTED, arguments, expected, module_of


@pytest.fixture(scope="module", autouse=True)
def _stand_in() -> Any:
    was = stand_in_installed()
    nkitools.install_stand_in(prefer="builtin")
    yield
    if not was:
        nkitools.remove_stand_in()


def page_of(name: str, directory: Path) -> tuple[Path, int]:
    module, line = module_of(name, directory)
    args = arguments(name)
    wanted = expected(name, *args)
    with nkitools.watching():
        run = nkitools.simulate(getattr(module, name), *args)
    path = directory / f"{name}.html"
    nkitools.write_page(run, path, wanted, rtol=1e-4, atol=1e-5)
    return path, line


@pytest.mark.parametrize("name", PLANTED)
def test_the_planted_fault_is_found(name: str, reader: Reader, tmp_path: Path) -> None:
    """The overview names the turn; from the wrong tile the trail leads to the planted line, in the same turn."""
    path, line = page_of(name, tmp_path)
    reader.open(path)
    card = reader.text(".card.error")
    assert "differs from the reference" in card
    assert all(f"{counter}={value}" in card for counter, value in PLANTED[name].turn.items())
    reader.click(".card.error .go", "Show the first wrong tile")
    assert "wrong elements" in reader.text(".inspector header")
    assert PLANTED[name].turn.items() <= reader.turn().items()
    trail = [each for each in reader.all(".trail button") if each.text == f"{name}.py:{line}"]
    assert trail, reader.text(".trail")
    reader.driver.execute_script("arguments[0].click()", trail[0])
    assert reader.line() == line
    assert PLANTED[name].turn.items() <= reader.turn().items()


def test_the_wrong_load_of_the_softmax_reads_other_rows(reader: Reader, tmp_path: Path) -> None:
    """At the planted line the page says which rows were read; one turn before they are those of the turn."""
    path, line = page_of("softmax", tmp_path)
    reader.open(path)
    assert f"It rests on logits[0:128, 0:64] read by softmax.py:{line}" in reader.text(".trail")
    reader.click(".trail button", f"softmax.py:{line}")
    assert "logits[0:128, 0:64]" in reader.text(".flow")
    reader.press("ARROW_LEFT")
    assert reader.turn() == {"start": "128"}
    assert "logits[128:256, 0:64]" in reader.text(".flow")


def test_the_outputs_pane_says_what_differs(reader: Reader, tmp_path: Path) -> None:
    """How many elements, the worst one with both values, a histogram, and the wrong tiles with the line of each."""
    path, _ = page_of("softmax", tmp_path)
    reader.open(path)
    reader.press("2")
    pane = reader.text("#pane")
    args = arguments("softmax")
    wanted = expected("softmax", *args)
    got = wanted.copy()
    got[256:384] = wanted[0:128]
    wrong = np.abs(got - wanted) > 1e-5 + 1e-4 * np.maximum(np.abs(got), np.abs(wanted))
    assert f"{np.count_nonzero(wrong)} of {wanted.size}" in pane.replace("\u202f", "")
    worst = np.unravel_index(np.argmax(np.where(wrong, np.abs(got - wanted), -1)), wanted.shape)
    assert f"[{worst[0]}, {worst[1]}]" in pane
    tiles = [each.text for each in reader.all(".details ol li")]
    assert len(tiles) == 1
    assert "softmax.py:32 (start=256)" in tiles[0].replace("\n", " ")
    assert "first" in tiles[0]
