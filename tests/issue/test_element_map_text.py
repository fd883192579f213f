"""Element maps as text, as saved runs keep them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nkitools.issue.element_map_text import elements_from, text_of
from nkitools.issue.element_maps import Elements, From
from nkitools.issue.element_rules import Blocks, Gather, Only, Parts, Permutation, Rule, Same, Transpose
from tests.isa.issued import inside
from tests.issue.element_calls import CALLS
from tests.issue.test_element_maps import Trial


def same(one: Rule, other: Rule) -> bool:
    """Two rules of one class with equal fields."""
    if isinstance(one, Only) and isinstance(other, Only):
        masks = zip((one.made, one.of), (other.made, other.of), strict=True)
        return same(one.rule, other.rule) and all(np.array_equal(*each) or each == (None, None) for each in masks)
    return one == other


def test_every_map_of_the_table_of_calls_comes_back() -> None:
    """The maps of all instructions, those with masks among them."""
    for each in CALLS:
        elements = inside(lambda each=each: Trial(each, np.random.default_rng(0)).elements, chip=each.chips[-1])
        again = elements_from(text_of(elements))
        assert again.results == elements.results, each.instruction
        for result in elements.results:
            for (source, rule), (other, its) in zip(elements.of(result), again.of(result), strict=True):
                assert source == other
                assert same(rule, its), each.instruction


@pytest.mark.parametrize(
    "rule",
    [
        Parts(((0, 4, 2), (2, 0, 1)), 1),
        Blocks(2, 3, (0, 1)),
        Transpose((2, 0, 1)),
        Gather("index", 2, 16),
        Permutation(),
        Only(Same(), np.array([[True, False], [False, True]])),
    ],
)
def test_a_rule_comes_back(rule: Any) -> None:
    """With its numbers, its tuples and its masks; a source keeps its rank and core."""
    elements = Elements((("dst", ((From("src", rank=1), rule), (From("src", core=0), Same()))),))
    ((result, ((source, found), (other, _))),) = elements_from(text_of(elements)).made
    assert (result, source, other) == ("dst", From("src", rank=1), From("src", core=0))
    assert same(rule, found)


def test_what_is_no_map_is_refused() -> None:
    """A name that is no rule, and another form."""
    with pytest.raises(ValueError, match="Any is no rule of elements"):
        elements_from('[["dst",[["src",null,null,["Any",{}]]]]]')
    with pytest.raises(ValueError, match="no element map"):
        elements_from("[1]")
