"""What nl's functions say of themselves."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.engines.operators import is_token
from nkitools.rules.catalogue import RULES
from tests.isa.issued import empty, issue, tile

MODULES = (
    *("constants", "creation", "gather", "indexing", "linear", "math", "modulo", "normalization", "programs", "random"),
    *("reductions", "rounding", "select", "transfer", "trigonometry"),
)
FUNCTIONS = {
    name: getattr(nl, name)
    for name in nl.__all__
    if getattr(getattr(nl, name), "__module__", "") in {f"nkitools.language.{module}" for module in MODULES}
    and callable(getattr(nl, name))
}
DOCS = {name: " ".join((function.__doc__ or "").split()) for name, function in FUNCTIONS.items()}
SAID = re.compile(r"nisa\.(\w+)(?: takes?)? ``(op0?)=nl\.(\w+)``")
CLAIMS = [(name, *claim) for name, doc in DOCS.items() for claim in SAID.findall(doc)]
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "invert")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_names_its_rules_and_its_source(name: str) -> None:
    """Rules that exist; the ranges, which are Python's, have no page of their own."""
    doc = DOCS[name]
    assert FUNCTIONS[name].__name__ == name
    assert "Errors: " in doc
    assert set(re.findall(r"NK\d{3}", doc)) <= set(RULES)
    if not name.endswith("_range"):
        assert f"Source: nki.language.{name} (NKI 0.6)" in doc or f"Source: nki.language.{name} (NKI 0.7)" in doc


def test_all_of_them_are_here() -> None:
    """The list is not empty by mistake."""
    assert {"add", "exp", "sum", "softmax", "load", "matmul", "zeros", "program_id", "device_print"} <= set(FUNCTIONS)


@pytest.mark.parametrize(("name", "instruction", "argument", "operator"), CLAIMS)
def test_an_instruction_takes_the_operator_that_a_docstring_names(
    name: str, instruction: str, argument: str, operator: str
) -> None:
    """It finishes on a chip that has all operators; nl.divide alone is reported, since no chip divides."""
    x = tile(np.full((4, 4), 2), dtype=nl.int32 if name in BITS else nl.float32)
    others: dict[str, Any] = {
        "tensor_tensor": {"data1": x, "data2": x},
        "tensor_scalar": {"data": x, "operand0": None},
        "activation": {"data": x},
        "tensor_partition_reduce": {"data": x},
    }[instruction]
    dst = empty((1, 4) if instruction == "tensor_partition_reduce" else (4, 4), x.dtype)
    called = {"dst": dst, argument: getattr(nl, operator), **others}
    found = issue(getattr(nisa, instruction), chip="trn3", rules="report", **called)
    assert operator == name
    assert set(found.rules) - {"NK305"} == ({"NK615"} if name == "divide" else set())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_docstring_says_of_each_operator_that_it_is_one(name: str) -> None:
    """Of all others, such as nl.negative, none says so."""
    says = bool(SAID.search(DOCS[name])) or f"Instructions take nl.{name} as the operator" in DOCS[name]
    assert is_token(FUNCTIONS[name]) == says
