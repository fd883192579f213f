"""The gallery: every example kernel with its purpose, pictures, its time on each chip, its source and its tests.

``python -m docs.generate_gallery FOLDER`` prints the page and writes its pictures; the Sphinx build writes it beside
the other reference pages. Where Chromium or selenium is missing there are no pictures of pages.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from docs.generate_pictures import browser, photograph, timeline_picture
from kernels import gallery
from nkitools.launch.simulate import simulate
from nkitools.record.saved.encoding import leaves
from nkitools.report.page.document import write_page
from nkitools.targets.imports import stand_in

REPOSITORY = Path(__file__).parents[1]
INTRODUCTION = """\
# Gallery

The example kernels, which the wheel has below `nkitools/examples/kernels`. `nkitools demo --all` runs them. Each agrees
with what NumPy computes in float64 of the same arguments. The times are [estimates](../explanation/time.md) in
microseconds, for the arguments that are named; below them stand what each engine does when, and the page of the run.
"""


def gallery_page(folder: Path) -> str:
    """Write the pictures into a folder; return the page in Markdown: kernels of both dialects, Pallas, C++."""
    folder.mkdir(parents=True, exist_ok=True)
    with stand_in("always"), tempfile.TemporaryDirectory() as scratch, browser(Path(scratch) / "profile") as driver:
        pictures = _Pictures(folder, Path(scratch) / "page.html", driver)
        parts = [INTRODUCTION, *_section("NKI", gallery.NKI, pictures)]
        parts += _section("The legacy dialect", gallery.LEGACY, pictures)
    lines = ["## Pallas\n"]
    for example in gallery.PALLAS:
        lines += [f"### {example.name}, Pallas\n", f"{purpose(example)}\n", f"{files(example)}\n"]
    lines += ["## Custom C++ operators\n"]
    for folder in sorted({path.parent for path in (REPOSITORY / "cpp_ops").glob("*/*.cpp")}):
        sources = ", ".join(f"`{path.relative_to(REPOSITORY).as_posix()}`" for path in sorted(folder.glob("*.cpp")))
        lines += [f"### {folder.name} (C++)\n", f"Sources: {sources}; tests in `tests/cpp_ops`.\n"]
    return "\n".join([*parts, *lines])


class _Pictures:
    """Draws and photographs the runs of examples; ``driver``: a browser, where there is one."""

    def __init__(self, folder: Path, page: Path, driver: Any) -> None:
        self._folder, self._page, self._driver = folder, page, driver

    def of(self, name: str, run: Any, expected: Any, within: float) -> list[str]:
        """Return the lines that show a run that was watched."""
        kind = "legacy_" if "legacy" in name else ""
        stem = "gallery_" + kind + re.sub(r"\W+", "_", name.partition(",")[0]).strip("_")
        (self._folder / f"{stem}.svg").write_text(timeline_picture(run), encoding="utf-8")
        lines = [f"![{name}: what each engine does when, by the estimate]({stem}.svg)", ""]
        if self._driver is not None:
            largest = max(float(np.abs(each).max(initial=0)) for _, each in leaves(expected))
            write_page(run, self._page, expected, atol=within * largest)
            photograph(self._driver, self._page, self._folder / f"{stem}.png")
            lines += [f"![{name}: the page of the run]({stem}.png)", ""]
        return lines


def _section(title: str, examples: Sequence[gallery.Example], pictures: _Pictures) -> list[str]:
    lines = [f"## {title}\n"]
    for example in examples:
        args = example.arguments(np.random.default_rng(0))
        name = example.name if title == "NKI" else f"{example.name}, legacy"
        lines += [f"### {name}\n", f"{purpose(example)}\n"]
        lines += [f"{files(example)}\n", "| arguments | " + " | ".join(example.chips) + " |"]
        lines += ["|---" * (len(example.chips) + 1) + "|"]
        times = []
        for chip in example.chips:
            settings = {"ranks": example.ranks} if example.ranks else {}
            watched = {"watch": "*"} if chip == example.chips[-1] else {}
            run = simulate(example.kernel, *args, chip=chip, **watched, **settings, **example.keywords)
            times.append(f"{run.estimate().latency_us:,.0f}")
        of_one = args[0] if example.ranks else args
        shapes = ", ".join(f"{each.dtype.name} {list(each.shape)}" for each in of_one if isinstance(each, np.ndarray))
        lines += [f"| {shapes} | " + " | ".join(times) + " |", ""]
        lines += pictures.of(name, run, example.reference(*args, **example.keywords), example.within)
    return lines


def purpose(example: gallery.Example) -> str:
    """Return the first paragraph of the kernel's docstring, or of its file's."""
    module, _, function = example.place.partition(":")
    tree = ast.parse(_path(module).read_text(encoding="utf-8"))
    found = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == function]
    text = (ast.get_docstring(found[0]) if found else None) or ast.get_docstring(tree) or ""
    return re.sub(r"\s+", " ", inspect.cleandoc(text).partition("\n\n")[0]).replace("``", "`")


def files(example: gallery.Example) -> str:
    """Return where a kernel is written and where it is tested; the list as a whole is tested with the demo."""
    module = example.place.partition(":")[0]
    names = [name for name, text in _tests() if re.search(rf"\bkernels\.{re.escape(module)} import", text)]
    tests = ", ".join(f"`{name}`" for name in names or ["tests/cli/test_demo.py"])
    return f"Source: `{_path(module).relative_to(REPOSITORY).as_posix()}`. Tests: {tests}."


@cache
def _tests() -> list[tuple[str, str]]:
    paths = sorted((REPOSITORY / "tests" / "kernels").rglob("test_*.py"))
    return [(path.relative_to(REPOSITORY).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def _path(module: str) -> Path:
    return REPOSITORY.joinpath("kernels", *module.split(".")).with_suffix(".py")


if __name__ == "__main__":
    print(gallery_page(Path(sys.argv[1])))
