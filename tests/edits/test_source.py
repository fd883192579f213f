"""Edits of a text stand where Python counts lines and bytes, and give calls and leave out arguments in every layout."""

from __future__ import annotations

import ast

import pytest

from nkitools.edits.source import Edit, Text, assigned, replaced

GIVEN = {
    "f()": "f(k=1)",
    "f(a)": "f(a, k=1)",
    "f((a))": "f((a), k=1)",
    "f(a, b=(c))": "f(a, b=(c), k=1)",
    "f(a,)": "f(a, k=1,)",
    "f(\n    a,  # one, (one)\n    b=g(2),  # two\n)": "f(\n    a,  # one, (one)\n    b=g(2), k=1,  # two\n)",
    "f(\n    (a\n     # why\n    ),\n)": "f(\n    (a\n     # why\n    ), k=1,\n)",
    "f(**a)": "f(**a, k=1)",
    "f('ä', b)": "f('ä', b, k=1)",
}


def _call(text: str) -> ast.Call:
    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    return statement.value


@pytest.mark.parametrize("text", GIVEN)
def test_a_call_gets_an_argument(text: str) -> None:
    """Behind the last one and the brackets around it, in front of a comma and a comment."""
    edit = Text(text).with_argument(_call(text), "k=1")
    assert Text(text).edited([edit]) == GIVEN[text]
    assert edit.about == 1


LEFT_OUT = {
    "f(k=1)": "f()",
    "f(k=1, b=2)": "f(b=2)",
    "f(a, k=1)": "f(a)",
    "f((a), k=1)": "f((a))",
    "f(a, k=1, b=2)": "f(a, b=2)",
    "f(k=1,)": "f()",
    "f(\n    a,\n    k=(1),\n    b=2,\n)": "f(\n    a,\n    b=2,\n)",
    "f(\n    a,\n    k=1,\n)": "f(\n    a,\n)",
}


@pytest.mark.parametrize("text", LEFT_OUT)
def test_a_call_loses_an_argument(text: str) -> None:
    """With one comma, so that it is still a call, and no line is left empty."""
    call = _call(text)
    keyword = next(each for each in call.keywords if each.arg == "k")
    left = Text(text).edited([Text(text).without_argument(call, keyword)])
    assert left == LEFT_OUT[text]
    assert ast.dump(_call(left).func) == ast.dump(call.func)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_those_that_python_counts(end: str) -> None:
    """A form feed or a line separator inside of a line ends none; all three ends of lines do."""
    text = f"'\x0c\u2028ä'{end}x = 'ö' + b{end}"
    (_, statement) = ast.parse(text).body
    assert isinstance(statement, ast.Assign)
    assert isinstance(statement.value, ast.BinOp)
    source = Text(text)
    assert source.lines == ["'\x0c\u2028ä'", "x = 'ö' + b", ""]
    assert source.says(statement.value.right) == "b"
    assert source.character(2, statement.value.right.col_offset) == 10
    assert source.edited([replaced(statement.value.right, "c")]) == f"'\x0c\u2028ä'{end}x = 'ö' + c{end}"


def test_edits_hold_for_the_text_as_it_is() -> None:
    """Positions are those before all edits, whatever their order; the same edit twice is one."""
    edits = [Edit(2, 0, 2, 2, "zwei"), Edit(1, 1, 1, 1, "+"), Edit(1, 1, 1, 1, "+")]
    assert Text("one\ntwo\n").edited(edits) == "o+ne\nzweio\n"


def test_statements_change_places_and_signs() -> None:
    """Two operands are swapped, an assignment adds, and a statement follows another one's comment."""
    text = "x[1] = (a) - b  # why\n"
    (statement,) = ast.parse(text).body
    assert isinstance(statement, ast.Assign)
    assert isinstance(statement.value, ast.BinOp)
    source = Text(text)
    swapped = source.swap(statement.value.left, statement.value.right)
    assert source.edited([swapped]) == "x[1] = (b) - a  # why\n"
    assert source.said(swapped) == "a) - b"
    assert source.edited([assigned(statement.targets[0], statement.value.left, "+=")])[:7] == "x[1] +="
    assert source.edited([source.insert_after(statement, "y = x")]) == "x[1] = (a) - b  # why\ny = x\n"
