"""Masks that are joined by ``and``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import random, refusal, run

I_P, I_F = nl.mgrid[0:64, 0:32]
P, F = np.mgrid[0:64, 0:32]


def filled(mask: Callable[[int], Any]) -> Any:
    """A kernel that writes 1 where ``mask`` of the loop counter leaves a lane."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.zeros((64, 32), dtype=nl.float32)
        for i in nl.static_range(2):
            tile[I_P, I_F] = nisa.memset((64, 32), 1.0, nl.float32, mask=mask(i))
        nl.store(out, tile)
        return out

    return kernel


def helper(first: int) -> Any:
    return first <= I_P and I_F < 8


MASKS: dict[str, tuple[Callable[[int], Any], Any]] = {
    "two": (lambda i: I_P < 40 and I_F < 20, (P < 40) & (F < 20)),
    "with the counter": (lambda i: 16 * i + I_P < 40 and 30 > I_F, (P < 40) & (F < 30)),  # noqa: SIM300
    "three": (lambda i: I_P < 40 and I_F < 20 and I_P > 3, (P < 40) & (F < 20) & (P > 3)),
    "nested on the right": (lambda i: I_P < 40 and (I_F < 20 and I_P > 3), (P < 40) & (F < 20) & (P > 3)),
    "with & on the right": (lambda i: I_P < 40 and (I_F < 20) & (I_P > 3), (P < 40) & (F < 20) & (P > 3)),
    "with & on the left": (lambda i: (I_F < 20) & (I_P > 3) and I_P < 40, (P < 40) & (F < 20) & (P > 3)),
    "in a helper": (lambda i: helper(32), (P >= 32) & (F < 8)),
    "a truth value first": (lambda i: i < 2 and I_P < 40, P < 40),
    "in a choice": (lambda i: (I_P < 40 and I_F < 20) if i < 2 else None, (P < 40) & (F < 20)),
    "affine in both": (lambda i: I_P + I_F < 40 and I_P >= I_F, (P + F < 40) & (P >= F)),
}


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_joined_by_and_is_both_comparisons(name: str) -> None:
    """As NumPy's ``&`` has it, and no more than a hint (NK620), said once of a place."""
    mask, expected = MASKS[name]
    done = run(filled(mask), random(2, 2), rules="report")
    np.testing.assert_array_equal(done.outputs != 0, expected)
    places = [(finding.line, finding.column) for finding in done.findings]
    # The second turn of one writes fewer rows, and a store reads those of both.
    assert {finding.rule for finding in done.findings} - {"NK511"} == (
        {"NK620"} if name != "a truth value first" else set()
    )
    assert ("NK511" in {finding.rule for finding in done.findings}) == (name == "with the counter")
    assert len(set(places)) == len(places)


def test_the_hint_names_the_authors_line() -> None:
    """NK620 points at the comparison whose truth value is asked for."""
    done = run(filled(lambda i: I_P < 40 and I_F < 20), random(2, 2))
    (finding,) = done.findings
    assert (finding.rule, finding.severity) == ("NK620", "hint")
    assert finding.file == __file__


def of_names(i: int) -> Any:
    first, second = I_P < 40, I_F < 20
    return first and second


def under_if(i: int) -> Any:
    if I_P < 40 and I_F < 20:
        return None
    return False


def asserted(i: int) -> Any:
    assert I_P < 40 and I_F < 20  # noqa: PT018 - this is what is tested
    return None


def flag_last(i: int) -> Any:
    return I_P < 40 and i < 2


REFUSED: dict[str, tuple[Callable[[int], Any], str]] = {
    "names": (of_names, "NK604"),
    "if": (under_if, "NK602"),
    "assert": (asserted, "NK602"),
    "or": (lambda i: I_P < 40 or I_F < 20, "NK604"),
    "and in or": (lambda i: (I_P < 40 and I_F < 20) or I_P < 3, "NK604"),
    "not": (lambda i: not I_P < 40, "NK604"),
    "not on the right": (lambda i: I_P < 40 and not I_F < 20, "NK604"),
    "a chain": (lambda i: 3 < I_P < 40, "NK604"),
    "a chain on the right": (lambda i: I_F < 20 and 3 < I_P < 40, "NK604"),
    "a number on the right": (lambda i: I_P < 40 and 5, "NK604"),
    "a call on the right": (lambda i: I_P < 40 and helper(3), "NK604"),
    "a truth value on the right": (flag_last, "NK604"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_truth_values_of_a_mask_are_refused(name: str) -> None:
    """What decides control flow is NK602, what does not join two comparisons NK604: a comparison never gets lost."""
    mask, rule = REFUSED[name]
    assert refusal(filled(mask), random(2, 2)).rule == rule


def test_outside_of_a_kernel_a_mask_has_no_truth_value() -> None:
    """There nothing could wait for the right side."""
    with pytest.raises(TypeError, match="NK604"):
        MASKS["two"][0](0)


# --- bytecode --------------------------------------------------------------------------------------------------------
