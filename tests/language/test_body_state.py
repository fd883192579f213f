"""NK622 in runs: bodies of loops on the device whose first turn changes outer Python objects, without their source."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from tests.loading import loaded

X = np.ones((8, 4), np.float32)
HEAD = """\
import collections
import functools
import nki.isa as nisa
import nki.language as nl
import numpy as np


class State:
    total = 0

    def __init__(self):
        self.count = 0
        self.items = []
        self.table = {"a": [1]}
        self.small = np.zeros(4)

    def bump(self):
        self.count += 1

    def read(self):
        return self.count + len(self.items)

    @functools.cached_property
    def slow(self):
        return len(self.items)


class Slots:
    __slots__ = ("count",)

    def __init__(self):
        self.count = 0


SEEN = {}
STATE = State()


def helper():
    SEEN["last"] = 1


def kernel(x, state):
    tile = nl.load(x)
    slots = Slots()
    count = 0
    ready = False
"""
CHANGES = {
    "state.bump()": "state.count",
    "state.items.append(i)": "state.items[0]",
    "state.table['a'].append(2)": "state.table['a'][1]",
    "state.small[0] = 3": "state.small[...]",
    "setattr(slots, 'count', 2)": "slots.count",
    "nonlocal count; count += 1": "count",
    "SEEN[1] = 2": "SEEN[1]",
    "STATE.bump()": "STATE.count",
    "State.total += 1": "State.total",
    "helper()": "SEEN['last']",
}
READS = (
    "state.read()",
    "state.slow",
    "own = State(); own.bump(); own.items.append(1)",
    "nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)",
    "nl.store(x, tile)",
    "nonlocal count; count = 0",
    "len(SEEN); state.table.get('b'); list(state.items)",
)


def run_of(body: str, version: str = "0.7", turns: int = 3) -> Any:
    """Run a kernel without source whose loop has that body."""
    lines = [f"def body(i):\n    {body}", f"nl.fori_loop(0, {turns}, body)", "return x"]
    text = HEAD + textwrap.indent("\n".join(lines), "    ")
    names: dict[str, Any] = {"__name__": "without_source"}
    exec(compile(text, "<without source>", "exec"), names)
    run = nkitools.simulate(names["kernel"], X.copy(), names["State"](), nki_version=version, rules="report")
    assert not [each for each in run.findings if each.severity == "error"]
    return run, text.splitlines().index("    def body(i):") + 1


@pytest.mark.parametrize(("body", "name"), CHANGES.items())
def test_a_change_is_found_by_what_it_changes(body: str, name: str) -> None:
    """The finding is at the body's first line, once, and names the object as the body reaches it."""
    run, line = run_of(body)
    (found,) = [each for each in run.findings if each.rule == "NK622"]
    assert (found.line, found.function) == (line, "body")
    assert f"`{name}`" in found.message or (body == "helper()" and "['last']" in found.message)


@pytest.mark.parametrize("body", READS)
def test_reads_and_own_state_are_no_changes(body: str) -> None:
    """A right body has no finding."""
    assert [each for each in run_of(body)[0].findings if each.rule == "NK622"] == []


def test_bodies_of_one_decorator_are_looked_at_one_by_one() -> None:
    """The decorator's own function is the same code for each body that it wraps; the finding names the body's line."""
    body = """pass

    def traced(function):
        @functools.wraps(function)
        def inner(i):
            return function(i)
        return inner

    @traced
    def first(i):
        len(state.items)

    @traced
    def second(i):
        state.bump()

    nl.fori_loop(0, 2, first)
    nl.fori_loop(0, 2, second)
""".replace("\n    ", "\n")
    run, _ = run_of(body)
    (found,) = [each for each in run.findings if each.rule == "NK622"]
    assert (found.function, "state.count`" in found.message) == ("second", True)


def test_python_ran_the_loops_of_the_former_version() -> None:
    """Before tracing there is no finding."""
    assert [each for each in run_of("state.bump()", "0.6")[0].findings if each.rule == "NK622"] == []


def test_a_loop_without_turns_changes_nothing() -> None:
    """A body that never runs has no finding."""
    assert [each for each in run_of("state.bump()", turns=0)[0].findings if each.rule == "NK622"] == []


@pytest.mark.parametrize("comment", ["", "  # nki: ignore[NK622] counts traces"])
def test_what_the_source_shows_is_found_once(tmp_path: Path, comment: str) -> None:
    """A kernel with its source has the finding at the line of the change, once, and none where it is ignored."""
    lines = [f"def body(i):\n    state.count += 1{comment}", "nl.fori_loop(0, 2, body)", "return x"]
    path = tmp_path / "with_source.py"
    path.write_text(HEAD + textwrap.indent("\n".join(lines), "    "))
    module = loaded(path, "with_source")
    run = nkitools.simulate(module.kernel, X.copy(), module.State(), nki_version="0.7", rules="report")
    wanted = [] if comment else [path.read_text().splitlines().index("        state.count += 1") + 1]
    assert [each.line for each in run.findings if each.rule == "NK622"] == wanted
