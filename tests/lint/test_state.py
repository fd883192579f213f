"""NK617: kernels that depend on what changes outside of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.linted import findings, places, written

pytestmark = pytest.mark.usefixtures("parsed")

HEAD = """\
import os
import random
import time

import numpy

import nki
import nki.language as nl

"""
# What follows the imports; the line that is marked is found.
DEPENDING = {
    "a list that a function changes": """\
        scales = [1.0]

        def grow():
            scales[0] = 2.0

        @nki.jit
        def kernel(x):
            return nl.multiply(x, scales[0])  # NK617
        """,
    "a dictionary that grows": """\
        known = {}

        def add(name):
            known.update({name: 1})

        @nki.jit
        def kernel(x):
            if "a" in known:  # NK617
                pass
        """,
    "a number that a function binds anew": """\
        count = 0

        def step():
            global count
            count += 1

        @nki.jit
        def kernel(x):
            return nl.add(x, count)  # NK617
        """,
    "one that the kernel binds itself": """\
        count = 0

        @nki.jit
        def kernel(x):
            global count  # NK617
            count = 1
        """,
    "one that it reads and changes": """\
        calls = [0]

        @nki.jit
        def kernel(x):
            calls[0] += 1  # NK617
        """,
    "a list around it that changes when it is there": """\
        def build():
            widths = [1]

            @nki.jit
            def kernel(x):
                return nl.multiply(x, widths[0])  # NK617

            widths.append(2)
            return kernel
        """,
    "the environment": """\
        @nki.jit
        def kernel(x):
            return nl.multiply(x, len(os.environ["SCALE"]))  # NK617
        """,
    "the clock": """\
        @nki.jit
        def kernel(x):
            return nl.multiply(x, time.time())  # NK617
        """,
    "random numbers": """\
        @nki.jit
        def kernel(x):
            return nl.multiply(x, random.random())  # NK617
        """,
    "what a called function reads": """\
        scales = [1.0]
        scales_of = scales

        def grow():
            scales.append(2.0)

        def scale():
            return scales[0]  # NK617

        @nki.jit
        def kernel(x):
            return nl.multiply(x, scale())
        """,
}
INDEPENDENT = {
    "numbers that are drawn from a seed": """\
        @nki.jit
        def kernel(x):
            return nl.multiply(x, numpy.random.RandomState(42).randint(4))
        """,
    "a table that nobody changes": """\
        SIZES = {"small": 1}

        @nki.jit
        def kernel(x):
            return nl.multiply(x, SIZES["small"])
        """,
    "one that is filled when the file is imported": """\
        SIZES = {}
        for name in ("a", "b"):
            SIZES[name] = 1

        @nki.jit
        def kernel(x):
            return nl.multiply(x, SIZES["a"])
        """,
    "a list of its own": """\
        scales = [1.0]

        def grow():
            scales.append(2.0)

        @nki.jit
        def kernel(x):
            scales = [2.0]
            scales[0] = 3.0
            return nl.multiply(x, scales[0])
        """,
    "one around it that is ready": """\
        def build():
            widths = []
            widths.append(2)

            @nki.jit
            def kernel(x):
                return nl.multiply(x, widths[0])

            return kernel
        """,
    "a list of the kernel that functions inside of it change": """\
        @nki.jit
        def kernel(x):
            tiles = []

            def keep(i):
                tiles.append(i)

            nl.fori_loop(0, 1, keep)
            return tiles[0]
        """,
    "a parameter of the same name": """\
        scales = [1.0]

        def grow():
            scales.append(2.0)

        @nki.jit
        def kernel(x, scales):
            return nl.multiply(x, scales[0])
        """,
}


def marked_places(text: str) -> list[tuple[str, int]]:
    return [("NK617", number) for number, line in enumerate(text.splitlines(), start=1) if line.endswith("# NK617")]


@pytest.mark.parametrize("source", DEPENDING.values(), ids=DEPENDING)
def test_a_kernel_that_depends_on_what_changes_is_an_error(tmp_path: Path, source: str) -> None:
    """At the place where it reads it."""
    path = written(tmp_path, {"kernels.py": source})["kernels.py"]
    path.write_text(HEAD + path.read_text())
    found = findings(path)
    assert [(each.rule, each.line) for each in found] == marked_places(path.read_text())
    assert {each.severity for each in found} == {"error"}


@pytest.mark.parametrize("source", INDEPENDENT.values(), ids=INDEPENDENT)
def test_what_does_not_change_is_a_constant(tmp_path: Path, source: str) -> None:
    """Tables, closures and lists of the kernel's own are fine."""
    path = written(tmp_path, {"kernels.py": source})["kernels.py"]
    path.write_text(HEAD + path.read_text())
    assert findings(path) == []


def test_a_kernel_that_only_writes_outside_is_reported_when_that_happens(tmp_path: Path) -> None:
    """Its results do not depend on it: a hint."""
    files = written(
        tmp_path,
        {
            "kernels.py": """\
            import nki

            seen = []


            @nki.jit
            def kernel(x):
                seen.append(x.shape)
                return x
            """
        },
    )
    assert places(findings(files["kernels.py"])) == [("NK616", 8, 5)]
