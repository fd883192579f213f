"""Operators that are wrong, hostile, or right and suspicious: what is said of each, and the call after it.

What is expected was written before the first run; the figures that the set has to reach stand in `test_the_figures`.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkitools.customop import Operator
from tests import cases as counts

from .conftest import Builder

FOLDER = Path(__file__).parent / "adversarial"
HEADERS = """\
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>
"""
SHAPE = "torch::Tensor shape(const torch::Tensor& x) { return torch::zeros(x.sizes(), torch::kFloat); }\n"
EMPTY = "  torch::Tensor out = torch::empty(x.sizes(), torch::kFloat);\n"
ELEMENTS = "  auto in = x.accessor<float, 1>();\n  auto o = out.accessor<float, 1>();\n  const int64_t n = x.numel();\n"
BLOCK = "  float* b = (float*)torch::neuron::tcm_malloc(sizeof(float) * n);\n  if (b == nullptr) return out;\n"
COPIES = "  auto in = x.tcm_accessor();\n  auto o = out.tcm_accessor();\n"
PARTS = "  const size_t n = x.numel(), id = get_cpu_id(), part = n / get_cpu_count(), first = id * part;\n"
STREAMS = "  auto from = x.read_stream_accessor<float>();\n  auto to = out.write_stream_accessor<float>();\n"
FREED = "  torch::neuron::tcm_free(b);\n"
DST = "  torch::Tensor out = get_dst_tensor();\n"
# Of each head: what is before the body, and what is behind it. A helper is a whole source but for the shape function.
HEADS: dict[str, tuple[str, str]] = {
    "elements": (EMPTY + ELEMENTS, ""),
    "plane": (
        EMPTY
        + ELEMENTS.replace(", 1>", ", 2>").replace("n = x.numel()", "rows = x.sizes()[0], columns = x.sizes()[1]"),
        "",
    ),
    "tcm": (EMPTY + "  const size_t n = x.numel();\n" + BLOCK + COPIES, FREED),
    "dst": (DST + "  const size_t n = x.numel();\n" + BLOCK, FREED),
    "dst_elements": (DST + ELEMENTS, ""),
    "streams": (EMPTY + STREAMS + "  const int64_t n = x.numel();\n", ""),
    "bare": (EMPTY, ""),
    "cores": (DST + PARTS + BLOCK.replace("* n", "* (part + 1)") + COPIES, FREED),
}
KERNEL = "torch::Tensor kernel(const torch::Tensor& x) {\n"


@dataclass(frozen=True)
class Case:
    """One operator: its source, the array that it is called with, and what is expected."""

    name: str
    source: str
    expected: str  # the rules of which one has to speak; of a right one NumPy's expression
    line: int  # that has to be named
    x: Any
    multicore: bool


def read(name: str) -> list[Case]:
    """Return the operators of a file in the order of the file."""
    _, *parts = re.split(r"^=== (.+)\n", (FOLDER / f"{name}.cpp").read_text(), flags=re.M)
    return [_case(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]


def _case(title: str, body: str) -> Case:
    name, head, expected, *shape = (each.strip() for each in title.split("|"))
    body = re.sub(r"^// --- .*\n", "", body, flags=re.M)
    if head in HEADS:
        before, behind = HEADS[head]
        source = f"{KERNEL}{before}{body}{behind}  return out;\n}}\n{SHAPE}"
    else:
        source = KERNEL + EMPTY + "  out.fill_(1);\n  return out;\n}\n" + body if head == "shape" else body + SHAPE
    lines = source.splitlines()
    mark = "// HERE" if "// HERE" in source else "torch::Tensor out ="
    line = next((number for number, text in enumerate(lines, 1) if mark in text), 0)
    sizes = [int(each) for each in shape[0].split(",")] if shape else [8, 32] if head == "plane" else [256]
    x = np.arange(1, 1 + np.prod(sizes), dtype=np.float32).reshape(sizes)
    return Case(name, source, expected, line, x, head.startswith("core"))


RIGHT, WRONG, HOST = read("right"), read("wrong") + read("wrong_wholes"), read("host")


def build(builder: Builder, chosen: list[Case]) -> dict[str, Operator]:
    """Build the operators, one core and eight apart."""
    built: dict[str, Operator] = {}
    for multicore in (False, True):
        sources = {case.name: case.source for case in chosen if case.multicore == multicore}
        built |= builder(sources, headers=HEADERS, multicore=multicore) if sources else {}
    return built


@dataclass
class Outcome:
    """The findings of a run, and the outcome of the call after it."""

    case: Case
    findings: list[tuple[str, int, str]]
    outputs: Any
    next_is_right: bool

    @property
    def named(self) -> bool:
        """Return whether a finding has the rule."""
        return any(rule in self.case.expected.split() for rule, *_ in self.findings)

    @property
    def at_its_line(self) -> bool:
        """Return whether one of them is at the line."""
        return any(rule in self.case.expected.split() and line == self.case.line for rule, line, _ in self.findings)


def outcomes(builder: Builder, chosen: list[Case]) -> list[Outcome]:
    """Run each operator, and after each a right one of the same library's process."""
    found = []
    doubled = next(case for case in RIGHT if case.name == "streams_of_all")
    built = build(builder, [doubled, *(case for case in chosen if case is not doubled)])
    for case in chosen:
        run = built[case.name].run(case.x, timeout=0.3 if "loop" in case.name else 3)
        findings = [(each.rule, each.line, each.message) for each in run.findings]
        after = built[doubled.name].run(doubled.x)
        right = after.findings == [] and np.array_equal(after.outputs, 2 * doubled.x)
        found.append(Outcome(case, findings, run.outputs, right))
    return found


def some(of: list[Case], number: int) -> list[Case]:
    """Return all of the operators under ``--soak``, else as many for one core, the same in each run."""
    return of if counts.FULL else random.Random(26).sample([case for case in of if not case.multicore], number)


@pytest.mark.soak
def test_the_figures(build_operators: Builder) -> None:
    """The session lives, the next call is right; of 100 wrong ones 95 are named, nine in ten of these at their line."""
    chosen = [some(of, number) for of, number in ((WRONG, 5), (HOST, 1), (RIGHT, 3))]
    found = outcomes(build_operators, [case for of in chosen for case in of])
    assert [each.case.name for each in found if not each.next_is_right] == []
    wrong, right = found[: len(chosen[0])], found[-len(chosen[2]) :]
    unnamed = [each for each in wrong if not each.named]
    elsewhere = [each for each in wrong if each.named and not each.at_its_line]
    assert len(unnamed) <= 0.05 * len(wrong), [(each.case.name, each.findings) for each in unnamed]
    assert len(elsewhere) <= 0.1 * (len(wrong) - len(unnamed)), [
        (each.case.name, each.case.line, each.findings) for each in elsewhere
    ]
    for each in right:
        assert each.findings == [], each.case.name
        np.testing.assert_array_equal(each.outputs, eval(each.case.expected, {"np": np, "x": each.case.x}))
