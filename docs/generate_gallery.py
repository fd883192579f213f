"""The gallery: every example kernel with its purpose, its time on each chip, its source and its tests.

``python -m docs.generate_gallery`` prints the page; the Sphinx build writes it beside the other reference pages.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kernels import gallery
from nkitools.launch.simulate import simulate
from nkitools.targets.imports import stand_in

REPOSITORY = Path(__file__).parents[1]
INTRODUCTION = """\
# Gallery

The example kernels, which the wheel has below `nkitools/examples/kernels`. `nkitools demo --all` runs them. Each agrees
with what NumPy computes in float64 of the same arguments. The times are [estimates](../explanation/time.md) in
microseconds, for the arguments that are named.
"""


def gallery_page() -> str:
    """Return the whole page in Markdown: the kernels of both dialects and of Pallas."""
    with stand_in("always"):
        parts = [INTRODUCTION, *_section("NKI", gallery.NKI), *_section("The legacy dialect", gallery.LEGACY)]
    lines = ["## Pallas\n"]
    for example in gallery.PALLAS:
        lines += [f"### {example.name}\n", f"{purpose(example)}\n", f"{files(example)}\n"]
    lines += ["## Custom C++ operators\n"]
    for folder in sorted({path.parent for path in (REPOSITORY / "cpp_ops").glob("*/*.cpp")}):
        sources = ", ".join(f"`{path.relative_to(REPOSITORY).as_posix()}`" for path in sorted(folder.glob("*.cpp")))
        lines += [f"### {folder.name} (C++)\n", f"Sources: {sources}; tests in `tests/cpp_ops`.\n"]
    return "\n".join([*parts, *lines])


def _section(title: str, examples: Sequence[gallery.Example]) -> list[str]:
    lines = [f"## {title}\n"]
    for example in examples:
        args = example.arguments(np.random.default_rng(0))
        lines += [
            f"### {example.name}\n" if title == "NKI" else f"### {example.name}, legacy\n",
            f"{purpose(example)}\n",
        ]
        lines += [f"{files(example)}\n", "| arguments | " + " | ".join(example.chips) + " |"]
        lines += ["|---" * (len(example.chips) + 1) + "|"]
        times = []
        for chip in example.chips:
            settings = {"ranks": example.ranks} if example.ranks else {}
            run = simulate(example.kernel, *args, chip=chip, **settings, **example.keywords)
            times.append(f"{run.estimate().latency_us:,.0f}")
        of_one = args[0] if example.ranks else args
        shapes = ", ".join(f"{each.dtype.name} {list(each.shape)}" for each in of_one if isinstance(each, np.ndarray))
        lines += [f"| {shapes} | " + " | ".join(times) + " |", ""]
    return lines


def purpose(example: gallery.Example) -> str:
    """Return the first paragraph of the kernel's docstring, or of its file's."""
    module, _, function = example.place.partition(":")
    tree = ast.parse(_path(module).read_text(encoding="utf-8"))
    found = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == function]
    text = (ast.get_docstring(found[0]) if found else None) or ast.get_docstring(tree) or ""
    return re.sub(r"\s+", " ", inspect.cleandoc(text).partition("\n\n")[0]).replace("``", "`")


def files(example: gallery.Example) -> str:
    path = _path(example.place.partition(":")[0])
    test = REPOSITORY / "tests" / path.relative_to(REPOSITORY).with_name(f"test_{path.name}")
    named = f" Tests: `{test.relative_to(REPOSITORY).as_posix()}`." if test.exists() else ""
    return f"Source: `{path.relative_to(REPOSITORY).as_posix()}`.{named}"


def _path(module: str) -> Path:
    return REPOSITORY.joinpath("kernels", *module.split(".")).with_suffix(".py")


if __name__ == "__main__":
    print(gallery_page())
