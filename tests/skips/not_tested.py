"""The last lines of a session: what was not tested, how many tests that is, and what to install for them."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

MOST_LINES = 10


class Group(NamedTuple):
    """Tests that are skipped for one lack: what their reasons name, what they are about, and what to install."""

    reasons: str  # a regular expression, looked for anywhere
    about: str
    remedy: str


GROUPS = (
    Group(r"'torch'|\btorch is not installed|no torch\b", "torch tensors and modules", "pip install torch"),
    Group(r"libtpu", "the TPU compiler", "pip install 'jax[tpu]' (Linux x86-64)"),
    Group(r"'jax'|\bjax is not installed|no jax\b", "Pallas kernels and JAX arrays", "pip install jax"),
    Group(r"no browser|chromium|selenium", "pages in a browser", "apt-get install chromium chromium-driver"),
    Group(r"C\+\+ compiler", "custom C++ operators", "apt-get install g++"),
    Group(r"pyarrow|nkitools\[profile\]", "profiles and Parquet", "pip install pyarrow"),
    Group(r"pyright", "stubs under pyright", "pip install basedpyright"),
    Group(r"mypy", "stubs under mypy", "pip install mypy"),
    Group(r"'absl'|absl-py|absl is missing", "JAX's interpreter of GPU kernels", "pip install absl-py"),
    Group(r"'ray'", "sweeps on Ray", "pip install ray"),
    Group(r"nkitools\[(?:lsp|mcp)\]", "servers of editors and agents", "pip install pygls mcp"),
    Group(r"root writes everywhere", "folders that cannot be written", "nothing: run as another user than root"),
    Group(r"make soak", "full counts", "nothing: make soak"),
)
_MODULE = re.compile(r"No module named '(\w+)|could not import '(\w+)")


def group_of(reason: str) -> Group:
    """Return the group of a reason: by what it names, by the module that it misses, or without a remedy."""
    for group in GROUPS:
        if re.search(group.reasons, reason):
            return group
    missing = _MODULE.search(reason)
    if missing is not None:
        name = missing[1] or missing[2]
        return Group("", f"what takes {name}", f"pip install {name.replace('_', '-')}")
    return Group("", "cases that this machine or session does not have", "nothing (-rs lists them)")


def lines_of(skipped: Mapping[str, int]) -> list[str]:
    """Return at most `MOST_LINES` lines for the numbers of skipped tests by their reasons, the largest group first."""
    counts: Counter[Group] = Counter()
    for reason, number in skipped.items():
        counts[group_of(reason)] += number
    ranked = sorted(counts.items(), key=lambda item: (item[0].remedy.startswith("nothing"), -item[1]))
    shown = [f"  {number} of {group.about}: {group.remedy}" for group, number in ranked]
    if len(shown) > MOST_LINES - 1:
        rest = ranked[MOST_LINES - 2 :]
        remedies = [each.remedy for each, _ in rest if not each.remedy.startswith("nothing")]
        more = f"  {sum(number for _, number in rest)} others (-rs lists them)"
        shown = [*shown[: MOST_LINES - 2], more + (f": {'; '.join(remedies)}" if remedies else "")]
    total = sum(counts.values())
    return [f"{total} tests were skipped; what they are about, and what to install for them:", *shown]


class NotTested:
    """Collects the reasons of a session, in the process that has all reports."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files: dict[str, tuple[str, int]] = {}  # a file is collected by each process of pytest-xdist
        self._tests: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test; an expected failure is no skip."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self._tests[_reason(report.longrepr)] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count the tests of a file that skips itself while it is imported, each function once."""
        if report.skipped:
            path = self._root / report.nodeid
            self._files[report.nodeid] = _reason(report.longrepr), _tests_in(path)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the lines, where anything was skipped."""
        skipped = self._tests + Counter[str]()
        for reason, number in self._files.values():
            skipped[reason] += number
        if skipped:
            for line in lines_of(skipped):
                terminalreporter.write_line(line)


def _reason(said: object) -> str:
    return str(said[2] if isinstance(said, tuple) else said).removeprefix("Skipped: ")


def _tests_in(path: Path) -> int:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError):
        return 1
    nodes: Iterable[ast.AST] = ast.walk(tree)
    return sum(isinstance(node, ast.FunctionDef) and node.name.startswith("test") for node in nodes) or 1
