"""What nl's functions say of themselves."""

from __future__ import annotations

import re

import pytest

import nkitools.dialects.modern.language as nl
from nkitools.rules.catalogue import RULES

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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_names_its_rules_and_its_source(name: str) -> None:
    """Rules that exist; the ranges, which are Python's, have no page of their own."""
    doc = " ".join((FUNCTIONS[name].__doc__ or "").split())
    assert FUNCTIONS[name].__name__ == name
    assert "Errors: " in doc
    assert set(re.findall(r"NK\d{3}", doc)) <= set(RULES)
    if not name.endswith("_range"):
        assert f"Source: nki.language.{name} (NKI 0.6)" in doc or f"Source: nki.language.{name} (NKI 0.7)" in doc


def test_all_of_them_are_here() -> None:
    """The list is not empty by mistake."""
    assert {"add", "exp", "sum", "softmax", "load", "matmul", "zeros", "program_id", "device_print"} <= set(FUNCTIONS)
