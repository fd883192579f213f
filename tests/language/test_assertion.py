"""`assert` of a comparison: the one place where a tensor has a truth value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.language as nl
from tests.isa.issued import inside, placed, tile

ONES = np.ones((4, 3), np.float32)
ONE_OTHER = np.array(ONES)
ONE_OTHER[2, 1] = 5
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def asserted(x: Any, y: Any, name: str = "equal") -> None:
    """Runs a kernel that asserts a comparison."""

    def body() -> None:
        assert getattr(nl, name)(placed(tile(x)), placed(tile(y)))

    inside(body)


@pytest.mark.parametrize("name", COMPARISONS)
def test_an_asserted_comparison_holds_for_all_elements(name: str) -> None:
    """As AWS's examples assert it; the failure is the author's own AssertionError."""
    holds = getattr(np, name)
    for x, y in ((ONES, ONES), (ONES, ONE_OTHER), (ONE_OTHER, ONES), (ONES, ONES + 1), (ONES + 1, ONES)):
        if holds(x, y).all():
            asserted(x, y, name)
        else:
            with pytest.raises(AssertionError) as caught:
                asserted(x, y, name)
            assert not isinstance(caught.value, nkitools.KernelError)


def plain(source: str) -> Callable[[Any], Any]:
    """A kernel body as Python compiles it, without what pytest makes of asserts."""
    namespace: dict[str, Any] = {"nl": nl}
    lines = "".join(f"    {line}\n" for line in source.splitlines())
    exec(compile(f"def body(x):\n{lines}    return 'done'\n", "author.py", "exec"), namespace)
    body: Callable[[Any], Any] = namespace["body"]
    return body


@pytest.mark.parametrize(
    "source",
    [
        "assert nl.equal(x, 1.0)",
        "assert nl.equal(x, 1.0), f'{x.shape} differ'",
        "same = nl.equal(x, 1.0)\nassert same",
        "assert nl.equal(x, 1.0)[0:2], 'views of it too'",
        "assert nl.equal(x, 1.0) and nl.less(x, 2.0)",
        "if not nl.equal(x, 1.0):\n    raise AssertionError('written out')",
        "for _ in range(2):\n    assert nl.equal(x, 1.0)",
    ],
)
def test_what_is_an_assert(source: str) -> None:
    """With a message, of a variable, of several, of views, written out."""
    assert inside(lambda: plain(source)(placed(tile(ONES)))) == "done"


@pytest.mark.parametrize(
    "source",
    [
        "if nl.equal(x, 1.0):\n    pass",
        "if not nl.equal(x, 1.0):\n    x = nl.add(x, 1.0)\n    assert x.ndim == 2",
        "if nl.equal(x, 1.0):\n    raise AssertionError",
        "while nl.less(x, 0.0):\n    pass",
        "y = 1 if nl.equal(x, 1.0) else 2",
        "y = nl.equal(x, 1.0) or x",
        "y = bool(nl.equal(x, 1.0))",
        "assert bool(nl.equal(x, 1.0))",
        "assert not nl.equal(x, 2.0)",
        "assert nl.equal(x, 2.0) or nl.equal(x, 1.0)",
        "assert x",
        "assert nl.add(x, 1.0)",
        "assert nl.copy(nl.equal(x, 1.0))",
    ],
)
def test_everywhere_else_it_has_no_truth_value(source: str) -> None:
    """The chip cannot choose what Python would (NK602), and other tensors are no comparisons."""
    with pytest.raises(nkitools.KernelError) as caught:
        inside(lambda: plain(source)(placed(tile(ONES))))
    assert caught.value.finding.rule == "NK602"
