"""NK622: outer Python objects that the body of a loop on the device changes, by way of methods and functions."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from nkitools.lint.engine import lint
from nkitools.suggestions.lint_interface import Dialects
from tests.lint.linted import written
from tests.nki_versions import SINCE_0_7

pytestmark = SINCE_0_7

HEAD = """\
import functools
import itertools

import nki
import nki.language as nl


class Above:
    def bump(self):
        self.count += 1{above}


class State(Above):
    kinds: set

    def __init__(self):
        self.count = 0
        self.items = []
        self.inner = Above()

    def note(self, item):
        self.items.append(item){note}

    def mark(self, item):
        self.kinds.add(item){mark}

    def read(self):
        return len(self.items) + self.count

    def deeper(self):
        self.inner.bump()

    def step(self, i):
        self.count = i{step}

    def __call__(self, i):
        self.count = 2{call}

    @staticmethod
    def put(into, item):
        into.append(item){put}

    def launch(self, x):
        nl.fori_loop(0, 4, self.step)


def change(state, number):
    state.count = number{change}


def make(number):
    made = State()
    made.note(number)
    change(made, number)
    return made


"""
CASES = {
    "an inherited method of an outer object": ("state = State()\nnl.fori_loop(0, 4, lambda i: state.bump())", "above"),
    "a method that appends": ("state = State()\nnl.fori_loop(0, 4, lambda i: state.note(1))", "note"),
    "a method that adds to an annotated set": ("state = State()\nnl.fori_loop(0, 4, lambda i: state.mark(1))", "mark"),
    "a method of an object in an object": ("state = State()\nnl.fori_loop(0, 4, lambda i: state.deeper())", "above"),
    "a method that is a body": ("state = State()\nnl.fori_loop(0, 4, state.step)", "step"),
    "an object that is a body": ("state = State()\nnl.fori_loop(0, 4, state)", "call"),
    "a partial that is a body": ("nl.fori_loop(0, 4, functools.partial(change, State()))", ""),
    "a partial of an outer object": ("state = State()\nnl.fori_loop(0, 4, functools.partial(change, state))", "change"),
    "a function of an outer object": ("state = State()\nnl.fori_loop(0, 4, lambda i: change(state, i))", "change"),
    "a static method": ("state = State()\nnl.fori_loop(0, 4, lambda i: State.put(state.items, i))", "put"),
    "a function in the body": (
        """\
        state = State()

        def body(i):
            def inner():
                state.bump()

            inner()

        nl.fori_loop(0, 4, body)""",
        "above",
    ),
    "an iterator": ("turns = itertools.count()\nnl.fori_loop(0, 4, lambda i: next(turns))  # HERE", "here"),
    "an object of the body": (
        """\
        def body(i):
            state = State()
            state.note(1)
            state.deeper()
            change(state, 2)

        nl.fori_loop(0, 4, body)""",
        "",
    ),
    "a function that makes and changes its own": ("nl.fori_loop(0, 4, lambda i: make(1))", ""),
    "a method that reads": ("state = State()\nnl.fori_loop(0, 4, lambda i: state.read())", ""),
    "changes outside of the body": ("state = State()\nstate.bump()\nnl.fori_loop(0, 4, lambda i: state.read())", ""),
}


@pytest.mark.parametrize(("body", "marked"), CASES.values(), ids=CASES)
def test_changes_by_way_of_functions(tmp_path: Path, body: str, marked: str) -> None:
    """The change is found where it is made; what the body makes itself and what it reads is not found."""
    places = ("above", "note", "mark", "step", "call", "put", "change")
    head = HEAD.format(**{each: "  # HERE" if each == marked else "" for each in places})
    # Without its method `launch`, whose loop has a finding of its own.
    head = head.replace("        nl.fori_loop(0, 4, self.step)", "        return None")
    text = head + "@nki.jit\ndef kernel(x):\n" + textwrap.indent(textwrap.dedent(body), "    ") + "\n    return x\n"
    path = written(tmp_path, {"kernel.py": text})["kernel.py"]
    found = [each.line for each in lint([path], "auto", Dialects()).findings if each.rule == "NK622"]
    assert found == [number for number, line in enumerate(text.splitlines(), 1) if "# HERE" in line]
    assert len(found) == bool(marked)


def test_a_method_that_hands_over_a_method_of_its_object(tmp_path: Path) -> None:
    """``nl.fori_loop(0, 4, self.step)`` in a method: the object is its caller's."""
    text = """\
        import nki
        import nki.language as nl


        class State:
            def step(self, i):
                self.count = 1

            def run(self):
                nl.fori_loop(0, 4, self.step)


        @nki.jit
        def kernel(x):
            State().run()
            return x
        """
    found = lint([written(tmp_path, {"kernel.py": text})["kernel.py"]], "auto", Dialects()).findings
    assert [(each.rule, each.line) for each in found] == [("NK622", 7)]


def test_a_class_of_another_file(tmp_path: Path) -> None:
    """The finding names the file of the method that makes the change."""
    files = {
        "state.py": "class State:\n    def bump(self):\n        self.count = 1\n",
        "kernel.py": """\
            import nki
            import nki.language as nl
            from state import State


            @nki.jit
            def kernel(x):
                state = State()

                def body(i):
                    state.bump()

                nl.fori_loop(0, 4, body)
                return x
            """,
    }
    paths = written(tmp_path, files)
    found = [each for each in lint([paths["kernel.py"]], "auto", Dialects()).findings if each.rule == "NK622"]
    assert [(each.file, each.line, each.function) for each in found] == [(str(paths["state.py"]), 3, "bump")]
