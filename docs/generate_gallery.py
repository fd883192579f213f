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
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from docs.generate_page_pictures import WINDOW
from docs.generate_pictures import browser, photograph, selected, timeline_picture
from kernels import gallery
from nkitools.cli.demo import operator_of
from nkitools.customop.errors import BuildError
from nkitools.launch.simulate import simulate
from nkitools.pallas.checking import check
from nkitools.pallas.compiler import why_not
from nkitools.pallas.time_estimate import estimate
from nkitools.record.saved.encoding import leaves
from nkitools.record.watch.watching import watching
from nkitools.report.page.document import write_page
from nkitools.targets.imports import stand_in

REPOSITORY = Path(__file__).parents[1]
OPERATORS = REPOSITORY / "cpp_ops"
INTRODUCTION = """\
# Gallery

The example kernels, which the wheel has below `nkitools/examples/kernels`. `nkitools demo --all` runs them. Each agrees
with what NumPy computes in float64 of the same arguments. The times are [estimates](../explanation/time.md) in
microseconds, for the arguments that are named; below them stand what each engine does when, and the page of the run.
Pallas kernels and C++ operators have the page with their grid or their cores.
"""


def gallery_page(folder: Path) -> str:
    """Write the pictures into a folder; return the page in Markdown: kernels of both dialects, Pallas, C++."""
    folder.mkdir(parents=True, exist_ok=True)
    with stand_in("always"), tempfile.TemporaryDirectory() as scratch, browser(Path(scratch) / "profile") as driver:
        pictures = Pictures(folder, Path(scratch) / "page.html", driver)
        parts = [INTRODUCTION, *_section("NKI", "", gallery.NKI, pictures)]
        parts += _section("The legacy dialect", "legacy", gallery.LEGACY, pictures)
        parts += pallas_section(gallery.PALLAS, pictures)
        parts += operator_section(gallery.OPERATORS, pictures)
    return "\n".join(parts)


class Pictures:
    """Draws and photographs the runs of examples; ``driver``: a browser, where there is one."""

    def __init__(self, folder: Path, page: Path, driver: Any) -> None:
        self._folder, self._page, self._driver = folder, page, driver

    def timeline(self, name: str, run: Any) -> list[str]:
        """Return the lines that show the estimate of a run."""
        file = stem(name)
        (self._folder / f"{file}.svg").write_text(timeline_picture(run), encoding="utf-8")
        return [f"![{name}: what each engine does when, by the estimate]({file}.svg)", ""]

    def page(self, name: str, run: Any, expected: Any, within: float, what: str = "the page of the run") -> list[str]:
        """Return the lines that show the page of a run that was watched; of a traced one its grid or its cores."""
        if self._driver is None:
            return []
        place: dict[str, Any] = {}
        if getattr(run, "traces", ()):
            self._driver.set_window_size(*WINDOW)
            place = {"address": selected(run), "keys": ("6",)}
        largest = max(float(np.abs(each).max(initial=0)) for _, each in leaves(expected))
        write_page(run, self._page, expected, atol=within * largest)
        file = stem(name)
        photograph(self._driver, self._page, self._folder / f"{file}.png", **place)
        return [f"![{name}: {what}]({file}.png)", ""]


def title(example: gallery.Example, world: str) -> str:
    """Return what an example is called on the page; that of a modern NKI kernel has no world."""
    return f"{example.name}, {world}" if world else example.name


def stem(name: str) -> str:
    """Return the file of an example's pictures: ``giou, legacy`` is gallery_legacy_giou."""
    own, _, world = name.partition(", ")
    return "_".join(filter(None, ("gallery", world.lower().replace("+", "p"), re.sub(r"\W+", "_", own).strip("_"))))


def _arguments(args: Sequence[Any]) -> str:
    return ", ".join(f"{each.dtype.name} {list(each.shape)}" for each in args if isinstance(each, np.ndarray))


def _table(args: Sequence[Any], times: Mapping[str, str]) -> list[str]:
    """Return a table with the arguments and the time on each chip."""
    rows = ["arguments", *times], ["---"] * (len(times) + 1), [_arguments(args), *times.values()]
    return [*(f"| {' | '.join(row)} |" for row in rows), ""]


def _section(heading: str, world: str, examples: Sequence[gallery.Example], pictures: Pictures) -> list[str]:
    lines = [f"## {heading}\n"]
    for example in examples:
        args = example.arguments(np.random.default_rng(0))
        name = title(example, world)
        lines += [f"### {name}\n", f"{purpose(example)}\n", f"{files(example)}\n"]
        times = {}
        for chip in example.chips:
            settings = {"ranks": example.ranks} if example.ranks else {}
            watched = {"watch": "*"} if chip == example.chips[-1] else {}
            run = simulate(example.kernel, *args, chip=chip, **watched, **settings, **example.keywords)
            times[chip] = f"{run.estimate().latency_us:,.0f}"
        lines += [*_table(args[0] if example.ranks else args, times), *pictures.timeline(name, run)]
        lines += pictures.page(name, run, example.reference(*args, **example.keywords), example.within)
    return lines


def pallas_section(examples: Sequence[gallery.Example], pictures: Pictures) -> list[str]:
    """Return the lines of Pallas kernels: times by the TPU compiler, and the grid as JAX stepped it."""
    has_jax = find_spec("jax") is not None
    lines = ["## Pallas\n", "JAX, which interprets these kernels, was not there." if not has_jax else _of_times(), ""]
    for example in examples:
        args = example.arguments(np.random.default_rng(0))
        name = title(example, "Pallas")
        lines += [f"### {name}\n", f"{purpose(example)}\n", f"{files(example)}\n"]
        if not has_jax:
            continue
        lines += _table(args, _times(example, args))
        with watching():
            run = check(example.kernel, *args, modes="tpu_interpret", **example.keywords)
        expected = example.reference(*args, **example.keywords)
        lines += pictures.page(name, run, expected, example.within, "the grid, the blocks and the order of events")
    return lines


def _of_times() -> str:
    """Return what the times of Pallas kernels are, or why there are none."""
    missing = why_not()
    if missing:
        return f"The times would be the TPU compiler's: {missing.partition(' (')[0]}."  # how to install it is elsewhere
    return (
        "The times are [the TPU compiler's](../how-to/pallas-kernels.md), of the Pallas calls alone, on chips that "
        "it has a profile for. The pages have the grid as JAX's TPU interpretation steps it."
    )


def _times(example: gallery.Example, args: Sequence[Any]) -> dict[str, str]:
    """Return the estimate for each chip, in microseconds; empty without the compiler."""
    if why_not():
        return {}
    found = estimate(example.kernel, *args, chips=example.chips, **example.keywords)
    times = {chip: found.latency_us(chip) for chip in example.chips}
    return {chip: "none" if time is None else f"{time:,.2f}" for chip, time in times.items()}


def operator_section(examples: Sequence[gallery.Example], pictures: Pictures) -> list[str]:
    """Return the lines of custom C++ operators, with the page of a run on simulated GpSimd cores."""
    lines = ["## Custom C++ operators\n", "There is no estimate for GpSimd cores; the pages count what each did.\n"]
    for example in examples:
        args = example.arguments(np.random.default_rng(0))
        name = title(example, "C++")
        lines += [f"### {name}\n", f"{operator_purpose(example)}\n", f"{operator_files(example)}\n"]
        lines += _table(args, {})
        try:
            operator = operator_of(example, OPERATORS)
        except BuildError as error:
            lines += [f"It was not built: {error}\n"]
            continue
        with watching():
            run = operator.run(*args)
        lines += pictures.page(name, run, example.reference(*args), example.within, "what each core did")
    return lines


def operator_purpose(example: gallery.Example) -> str:
    """Return the operator's name and the first paragraph of the comment that its source begins with."""
    place, _, name = example.place.partition(":")
    (source,) = (each for each in OPERATORS.joinpath(place).glob("*.cpp") if each.name != "shape.cpp")
    (comment,) = re.findall(r"\A(?:// .*\n)+", source.read_text(encoding="utf-8"))
    return f"`{name}`. " + " ".join(line[3:] for line in comment.splitlines())


def operator_files(example: gallery.Example) -> str:
    """Return where an operator is written and where it is tested."""
    place = example.place.partition(":")[0]
    sources = ", ".join(f"`cpp_ops/{place}/{path.name}`" for path in sorted(OPERATORS.joinpath(place).glob("*.cpp")))
    return f"Sources: {sources}. Tests: `tests/cpp_ops/test_{Path(place).parts[0]}.py`."


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
