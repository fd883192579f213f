"""What the functions of nl and nisa say of themselves: rules that exist, instructions that exist, errors that come."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from nkitools.rules.catalogue import RULES
from tests.dialects.legacy.running import random, refusal

FUNCTIONS = {
    f"{short}.{name}": getattr(module, name)
    for short, module in (("nl", nl), ("nisa", nisa))
    for name in module.__all__
    if inspect.isfunction(getattr(module, name))
}
DOCS = {name: " ".join((function.__doc__ or "").split()) for name, function in FUNCTIONS.items()}


def named_rules(doc: str) -> set[str]:
    """Return the rules of a docstring's "Errors:", with "NK107 to NK110" spelled out."""
    text = doc.rpartition("Errors: ")[2]
    found = set(re.findall(r"NK\d{3}", text))
    for first, last in re.findall(r"NK(\d{3}) to NK(\d{3})", text):
        found |= {f"NK{number}" for number in range(int(first), int(last) + 1)}
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_docstring_names_rules_and_functions_that_exist(name: str) -> None:
    """Its text is complete: no placeholder of a template is left."""
    doc = DOCS[name]
    assert doc[0].isupper()
    assert not re.search(r"[{}]", doc)
    assert set(re.findall(r"NK\d{3}", doc)) <= set(RULES)
    for path in re.findall(r"nkitools\.(?:isa|language)\.\w+\.\w+", doc):
        module, _, function = path.rpartition(".")
        assert "Errors: " in getattr(import_module(module), function).__doc__


WRONG: dict[str, Any] = {
    "NK101": lambda x: nl.load(x).broadcast_to((256, 8)),
    "NK107": lambda x: nl.zeros((1, 300_000), dtype=nl.float32),
    "NK201": lambda x: x,
    "NK402": lambda x: nl.load(x)[nl.mgrid[0:1, 0:12]],
    "NK603": lambda x: nl.load(x)[nl.load(x, dtype=nl.int32)[:, 0:1], nl.arange(8)[None, :]],
    "NK609": lambda x: np.zeros((1, 8), np.float32),
}


@pytest.mark.parametrize("name", ["abs", "add", "copy", "exp", "floor", "logical_not", "mod", "power", "sin", "where"])
@pytest.mark.parametrize("rule", WRONG)
def test_the_error_of_a_wrong_operand_is_documented(name: str, rule: str) -> None:
    """Whatever ends the run is in the list, or in that of the function to which the docstring refers."""
    function = getattr(nl, name)
    count = len([each for each in inspect.signature(function).parameters.values() if each.default is each.empty]) - 1

    def kernel(x: Any) -> Any:
        function(*[WRONG[rule](x)] * count)
        return x

    found = refusal(kernel, random(1, 8)).rule
    doc = DOCS["nl.add"] if "errors are as for nl.add" in DOCS[f"nl.{name}"] else DOCS[f"nl.{name}"]
    assert found in named_rules(doc)
