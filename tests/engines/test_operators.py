"""Operator tokens, and what the tables say of them."""

from __future__ import annotations

import numpy as np
import pytest

import nkitools.dialects.modern.language as nl
from nkitools.engines.operators import ACTIVATIONS, OPERATORS, token_name

REDUCING = {
    *("bitwise_and", "bitwise_or", "bitwise_xor"),
    *("add", "subtract", "multiply", "maximum", "minimum"),
    *("logical_and", "logical_or", "logical_xor"),
}
BITVEC = {"invert", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"}
UNARY = {"invert", "abs", "square", "relu", "rsqrt", "reciprocal"}


@pytest.mark.parametrize("name", [*OPERATORS, *ACTIVATIONS, "prelu"])
def test_every_operator_is_a_name_of_nki_language(name: str) -> None:
    """And that name stands for it, as a key of a dictionary too."""
    token = getattr(nl, name)
    assert token_name(token) == name
    assert {token: name}[getattr(nl, name)] == name
    assert token == getattr(nl, name)
    assert token in [token]
    assert token != nl.subtract or name == "subtract"


def test_the_table_of_math_operators() -> None:
    """Which may reduce, which work on bits, which take one operand (divide and bypass are documented elsewhere)."""
    assert {name for name, each in OPERATORS.items() if each.reduce is not None} == REDUCING
    assert {name for name, each in OPERATORS.items() if each.kind == "bitvec"} == BITVEC
    assert {name for name, each in OPERATORS.items() if each.unary} == UNARY
    assert {name for name, each in OPERATORS.items() if each.needs} == {"abs_max", "abs_min", "square", "relu"}


@pytest.mark.parametrize(
    ("function", "name"),
    [(np.add, "add"), (np.max, "maximum"), (np.sum, "add"), (np.exp, "exp"), (np.bitwise_and, "bitwise_and")],
)
def test_numpy_functions_are_tokens_too(function: object, name: str) -> None:
    """The legacy dialect names operators by NumPy's functions."""
    assert token_name(function) == name


@pytest.mark.parametrize("value", [None, "add", 1, [], np.ones(2), len])
def test_what_is_no_token(value: object) -> None:
    """Nothing else is, hashable or not."""
    assert token_name(value) is None


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_shows_its_name(name: str) -> None:
    """In messages."""
    assert repr(OPERATORS[name]) == f"nl.{name}"
