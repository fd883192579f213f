"""What truth values decide: asserts, whiles, attributes, masks joined by ``and``."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nkitools.authors_code.truth_values import is_asserted, is_attribute_test, is_tested, is_while_test, right_side

found: list[Any] = []


class Asked:
    """An object whose truth value notes whether it is asked of an attribute."""

    def __init__(self) -> None:
        self.there = self

    def __bool__(self) -> bool:
        frame = sys._getframe(1)
        found.append(is_attribute_test(frame.f_code, frame.f_lasti))
        return True


def test_which_truth_values_are_of_an_attribute() -> None:
    """In conditions, behind `not`, `and` and `or`; not of a name, an entry, the result of a call or a comparison."""
    asked = Asked()
    entries = [asked]
    found.clear()
    _ = 1 if asked.there else 2
    _ = not asked.there
    _ = 2 if asked.there.there and asked.there else 3
    _ = asked.there or 1
    _ = (asked.there and 1, 2)
    assert found == [True] * 6
    found.clear()
    _ = 1 if asked else 2
    _ = not asked
    _ = asked or asked.there
    _ = 1 if entries[0] else 2
    _ = bool(asked.there)
    _ = 1 if (lambda: asked)() else 2
    assert found == [False] * 6


class Noting:
    """A value that notes what asks for its truth, three times true, then false."""

    def __init__(self, question: Callable[[Any, int], bool]) -> None:
        self.question = question
        self.answers: list[bool] = []
        self.turns = 0

    def __bool__(self) -> bool:
        frame = sys._getframe(1)
        self.answers.append(self.question(frame.f_code, frame.f_lasti))
        self.turns += 1
        return self.turns < 4

    def __lt__(self, other: object) -> bool:
        frame = sys._getframe(1)
        self.answers.append(self.question(frame.f_code, frame.f_lasti))
        return True


def test_which_truth_values_decide_an_assertion() -> None:
    """Of `assert x`, and pytest's form of it; not of an `if` that raises another error, nor of a `while`."""
    asked = Noting(is_asserted)
    assert asked, "with a message"
    exec("assert asked", {"asked": asked})
    if not asked:
        raise ValueError
    while asked:
        pass
    assert asked.answers == [True, True, False, False]


SOURCE = """
def kernel(asked):
    while asked:
        if asked:
            pass
    while not asked:
        break
"""


def test_which_truth_values_are_the_test_of_a_while(tmp_path: Path) -> None:
    """`while x` alone: no `if` inside of the loop, no `while not x`. Where there is no source, each may be one."""
    file = tmp_path / "while_tests.py"
    file.write_text(SOURCE)
    for name, expected in ((str(file), [True, False, True, False, True, False]), ("<nowhere>", [True] * 6)):
        names: dict[str, Any] = {}
        exec(compile(SOURCE, name, "exec"), names)
        asked = Noting(is_while_test)
        names["kernel"](asked)
        assert asked.answers == expected


def test_which_comparisons_decide_something() -> None:
    """A comparison of `if`, `not` and `while`; not one that is kept or handed on."""
    asked = Noting(is_tested)
    if asked < 1:
        pass
    _ = not asked < 1
    _ = 2 if asked < 1 else 3
    kept = asked < 1
    _ = [asked < 1]
    assert (kept, asked.answers) == (True, [True, True, True, False, False])


def asked_at(source: str) -> tuple[Any, list[int]]:
    """The code of an expression, and where it asks for truth values."""
    code = compile(source, "<expression>", "eval")
    names = ("JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP", "UNARY_NOT")
    found = []
    for each in dis.get_instructions(code):
        has_own = any(other.opname == "TO_BOOL" for other in dis.get_instructions(code))
        if each.opname in (*names, "TO_BOOL") or ("POP_JUMP" in each.opname and not has_own):
            found.append(each.offset)
    return code, found


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < 1 and b < 2", [True]),
        ("f(x, mask=(a < 1 and b < 2))", [True]),
        ("a < 1 and b < 2 and c < 3", [True, True]),
        ("a < 1 and b", [False]),
        ("a and b", [False]),
        ("a < 1 or b < 2", [False]),
        ("0 < a < 1", [False]),
        ("a < 1 and f(b < 2)", [False]),
        ("1 if a < 1 and b < 2 else 2", [False, False]),
    ],
)
def test_the_running_pythons_bytecode(source: str, expected: list[bool]) -> None:
    """Each place that asks for a truth value, in order: whether it is the left side of an ``and`` of comparisons."""
    code, places = asked_at(source)
    assert [right_side(dis.get_instructions(code), each) is not None for each in places] == expected


def listing(text: str) -> list[Any]:
    """Instructions as other Pythons list them: name and argument, two bytes each, ``>`` before a jump's target."""
    lines = [line.split() for line in text.strip().splitlines()]
    target = next(2 * number for number, line in enumerate(lines) if line[0] == ">")
    found = []
    for number, line in enumerate(lines):
        name, *rest = line[1:] if line[0] == ">" else line
        argument = int(rest[0]) if rest and rest[0].isdigit() else None
        value = target if "JUMP" in name else argument
        sign = rest[0] if rest and not rest[0].isdigit() else ""
        found.append(SimpleNamespace(opname=name, arg=argument, argval=value, argrepr=sign, offset=2 * number))
    return found


LEFT = "LOAD_NAME 0\nLOAD_CONST 0\nCOMPARE_OP 2\n"
RIGHT = "LOAD_NAME 1\nLOAD_CONST 1\nCOMPARE_OP 2\n"
CHAIN = "LOAD_CONST 0\nLOAD_NAME 0\nSWAP 2\nCOPY 2\nCOMPARE_OP 2\n"
ASKS = {
    "3.11": "JUMP_IF_FALSE_OR_POP\n",
    "3.12": "COPY 1\nPOP_JUMP_IF_FALSE\nPOP_TOP\n",
    "3.13": "COPY 1\nTO_BOOL\nPOP_JUMP_IF_FALSE\nPOP_TOP\n",
    "3.14": "COPY 1\nTO_BOOL\nPOP_JUMP_IF_FALSE\nNOT_TAKEN\nPOP_TOP\n",
}


@pytest.mark.parametrize("version", ASKS)
def test_every_pythons_and(version: str) -> None:
    """``a < 1 and b < 2`` as each version compiles it, with long jumps too; a chain of comparisons is much like it."""
    ask = ASKS[version]
    first = 1 if version == "3.11" else 2  # the instruction that asks, counted from the end of the left side
    asked = 2 * (LEFT.count("\n") + first - 1)
    code = listing(LEFT + ask + RIGHT + "> RETURN_VALUE")
    begin = 2 * (LEFT + ask).count("\n")
    found = right_side(code, asked)
    assert found is not None
    assert (begin in found, begin + 4 in found, found.stop, asked in found) == (True, True, begin + 6, False)
    far = listing(LEFT + ask.replace("POP_JUMP", "EXTENDED_ARG 1\nPOP_JUMP") + RIGHT + "> RETURN_VALUE")
    shifted = asked + 2 * (version == "3.12")
    assert right_side(far, shifted) is not None
    chain = listing(CHAIN + ask + "LOAD_CONST 1\nCOMPARE_OP 2\nRETURN_VALUE\n> SWAP 2\nPOP_TOP\nRETURN_VALUE")
    assert right_side(chain, 2 * (CHAIN.count("\n") + first - 1)) is None


@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_a_condition_keeps_no_copy(version: str) -> None:
    """``if a < 1 and b < 2`` jumps without keeping the value: no ``and`` whose value is wanted."""
    ask = ASKS[version].replace("COPY 1\n", "").replace("POP_TOP\n", "")
    code = listing(LEFT + ask + RIGHT + "> RETURN_VALUE")
    assert right_side(code, 2 * LEFT.count("\n")) is None
