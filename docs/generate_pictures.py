"""The pictures of the landing page, made of real runs: the timeline of an estimate, the page of a run, a finding.

``python -m docs.generate_pictures FOLDER`` writes them. The page is photographed by Chromium; where it or selenium
is missing, that picture is left out, and the landing page says so. That of a finding is kept as ``docs/finding.svg``
for README: a test compares it with what `finding_picture` makes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from kernels import gallery, references
from nkitools.cli.demo import mistaken_run
from nkitools.facts.generations import generation_of
from nkitools.launch.simulate import simulate
from nkitools.report.page.document import write_page
from nkitools.report.run_counts import tally_of
from nkitools.targets.imports import stand_in
from nkitools.timing.durations import ENGINES
from nkitools.timing.knobs import knobs_of
from nkitools.timing.timeline import timeline_of

COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d")
WIDTH, ROW, LEFT = 900, 26, 110
SETTLED = 0.6  # seconds that a page takes to draw what was selected


def pictures_page(folder: Path) -> str:
    """Write the pictures into a folder, and return Markdown that shows those that could be made."""
    folder.mkdir(parents=True, exist_ok=True)
    with stand_in("always"):
        run, expected = _softmax()
        (folder / "timeline.svg").write_text(timeline_picture(_attention()), encoding="utf-8")
        has_page = page_picture(run, expected, folder / "page.png")
    shown = [
        ("../finding.svg", "A finding: the author's line, their tensor, the limit, a picture and what to do"),
        ("page.png", "The page of a run: its source, and each tile that a line wrote, turn by turn"),
        ("timeline.svg", "The estimated time of a flash attention on trn2, engine by engine"),
    ]
    lines = []
    for name, text in shown:
        if name != "page.png" or has_page:
            lines += [f"![{text}]({name})", "", f"*{text}.*", ""]
        else:
            lines += ["The picture of a run's page takes Chromium and selenium, which were not there.", ""]
    return "\n".join(lines)


def _softmax() -> tuple[Any, Any]:
    """Return a run of the softmax kernel with its tiles, and what is right."""
    from kernels.nki.softmax import softmax

    logits = np.random.default_rng(0).standard_normal((512, 256), np.float32)
    return simulate(softmax, logits, chip="trn2", watch="*"), references.softmax(logits)


def _attention() -> Any:
    """Return the run of a kernel that keeps all engines busy."""
    (example,) = (each for each in gallery.NKI if each.name == "flash_attention")
    arguments = example.arguments(np.random.default_rng(0))
    return simulate(example.kernel, *arguments, chip="trn2", **example.keywords)


def finding_picture() -> str:
    """Return the finding of the demo's mistake, as a terminal shows it, as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        (finding, *_) = tally_of([mistaken_run(Path(folder))], folder).ranked()
        lines = [piece for line in finding.lines(blocks=True) for piece in _wrapped(line)]
    width, height = 9 * max(map(len, lines)) + 24, 20 * len(lines) + 20
    parts = [_svg(width, height, "monospace"), f'<rect width="{width}" height="{height}" rx="6" fill="#1d2430"/>']
    for number, line in enumerate(lines):
        colour = "#ff8a80" if number == 0 else "#e6e6e6"
        place = f'x="12" y="{25 + 20 * number}" textLength="{9 * len(line)}"' if line else 'x="12" y="0"'
        parts.append(f'<text {place} fill="{colour}" xml:space="preserve">{escape(line)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _svg(width: int, height: int, font: str) -> str:
    box = f'viewBox="0 0 {width} {height}" font-family="{font}" font-size="15"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>'


def _wrapped(line: str) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(line, 100, subsequent_indent=indent + "    ", drop_whitespace=False) or [""]


def timeline_picture(run: Any) -> str:
    """Return what each engine does when, by the estimate of a run, as SVG."""
    generation = generation_of(run.chip)
    timeline = timeline_of(run, generation, knobs_of(generation))
    kinds = timeline.work.engines % len(ENGINES)
    starts, ends = timeline.schedule.starts, timeline.schedule.ends
    used = [kind for kind in range(len(ENGINES)) if (kinds == kind).any()]
    scale = (WIDTH - LEFT - 10) / float(ends.max())
    height = ROW * len(used) + 34
    parts = [_svg(WIDTH, height, "sans-serif"), f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>']
    for row, kind in enumerate(used):
        top = 4 + row * ROW
        parts.append(f'<text x="6" y="{top + 16}" fill="#222222">{escape(str(ENGINES[kind]))}</text>')
        for at in np.flatnonzero(kinds == kind).tolist():
            left, wide = LEFT + float(starts[at]) * scale, max(0.6, float(ends[at] - starts[at]) * scale - 0.4)
            colour = COLOURS[kind % len(COLOURS)]
            parts.append(f'<rect x="{left:.1f}" y="{top}" width="{wide:.1f}" height="{ROW - 5}" fill="{colour}"/>')
    latency = run.estimate().latency_us
    text = f"{latency:,.1f} us on {run.chip}, by estimate"
    parts.append(f'<text x="{LEFT}" y="{height - 10}" fill="#222222">{escape(text)}</text></svg>')
    return "\n".join(parts) + "\n"


def page_picture(run: Any, expected: Any, path: Path) -> bool:
    """Photograph the page of a run; returns whether there is a browser that does."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        write_page(run, page, expected)
        with browser(Path(folder) / "profile") as driver:
            if driver is None:
                return False
            line = (
                "const line = [...document.querySelectorAll('.line, tr, li')]"
                ".find(each => each.textContent.includes('nisa.activation('));"
                "if (line) line.click();"
            )
            return photograph(driver, page, path, line)


def photograph(
    driver: Any, page: Path, path: Path, script: str = "", *, address: str = "", keys: Sequence[str] = ()
) -> bool:
    """Photograph a page once it is ready, a script has run on it and keys are pressed; returns whether that worked.

    ``address``: what is selected, the part of the page's address from ``#``.
    """
    from selenium.webdriver.support.ui import WebDriverWait

    driver.get("about:blank")
    driver.get(page.as_uri() + address)
    WebDriverWait(driver, 30).until(lambda each: each.find_element("css selector", "html").get_attribute("data-ready"))
    driver.execute_script(script)
    for key in keys:
        press = "(document.activeElement ?? document).dispatchEvent(new KeyboardEvent('keydown', {key: arguments[0]"
        driver.execute_script(f"{press}, bubbles: true}}))", key)
    if keys or address:
        time.sleep(SETTLED)
    return bool(driver.save_screenshot(str(path)))


def selected(run: Any) -> str:
    """Return the address of the last block stored in a Pallas run or an operator's, else of its last write, else ''."""
    (trace, *_) = run.traces
    written = [each for each in trace.events if each.writes and each.line]
    if not written:
        return ""
    last = ([each for each in written if each.kind == "block out"] or written)[-1]
    alike = [each for each in written if (each.line, each.step, each.core) == (last.line, last.step, last.core)]
    address = f"#line={last.line}&write={alike.index(last)}"
    if trace.kind == "cores":
        return f"{address}&program={list(dict.fromkeys(each.core for each in trace.events)).index(last.core)}"
    turn = ",".join(f"program_id({axis}):{at}" for axis, at in enumerate(trace.points[last.step]))
    return f"{address}&turn={turn}"


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Any]:
    """A headless Chromium; None where it or selenium is missing, or does not start."""
    if None in (shutil.which("chromium"), shutil.which("chromedriver")) or find_spec("selenium") is None:
        yield None
        return
    os.environ["SE_OFFLINE"] = "true"  # nothing is downloaded
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,800", f"--user-data-dir={profile}"):
        options.add_argument(flag)
    try:
        driver = webdriver.Chrome(options=options, service=Service(str(shutil.which("chromedriver"))))
    except WebDriverException:
        yield None
        return
    try:
        yield driver
    finally:
        driver.quit()


if __name__ == "__main__":
    print(pictures_page(Path(sys.argv[1])))
