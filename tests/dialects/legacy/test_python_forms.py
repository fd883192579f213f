"""Operators of Python and functions of NumPy that tiles do not have: refused by rule, with a remedy."""

from __future__ import annotations

import math
from typing import Any

import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, stored

X = random(8, 4)


def deleted(tile: Any) -> None:
    del tile[0]


CHOSEN = np.array([True, False] * 4)


@pytest.mark.parametrize(
    ("use", "rule", "remedy"),
    [
        (lambda t: t // 2, "NK601", "nl.floor"),
        (lambda t: 2 // t, "NK601", "nl.floor"),
        (lambda t: np.float32(2) // t, "NK601", "nl.floor"),
        (lambda t: t % 2, "NK601", "nl.mod"),
        (lambda t: divmod(t, 2), "NK601", "nl.floor"),
        (lambda t: t @ t, "NK601", "nl.matmul"),
        (lambda t: X @ t, "NK601", "nl.matmul"),
        (lambda t: +t, "NK601", "sign"),
        (round, "NK601", "dtype"),
        (math.floor, "NK601", "nl.floor"),
        (math.ceil, "NK601", "nl.ceil"),
        (lambda t: float(t[0, 0]), "NK602", "nl.device_print"),
        (lambda t: int(t[0, 0]), "NK602", "nl.device_print"),
        (lambda t: int(t[0, 0].__index__()), "NK602", "nl.device_print"),
        (lambda t: list(range(t[0, 0])), "NK602", "nl.device_print"),
        (lambda t: [1, 2, 3][t], "NK602", "nl.device_print"),
        (lambda t: f"{t:.2f}", "NK602", "nl.device_print"),
        (lambda t: pow(t, 2, 3), "NK601", "nl.mod"),
        (lambda t: 1.0 in t, "NK601", "nl.equal"),
        (len, "NK601", "x.shape[0]"),
        (lambda t: t(), "NK601", "brackets"),
        (next, "NK601", "loop"),
        (deleted, "NK601", "slice"),
        (lambda t: np.maximum(t, 0), "NK601", "nl.maximum"),
        (np.exp, "NK601", "nl.exp"),
        (np.sum, "NK601", "nl.sum"),
        (lambda t: np.clip(t, 0, 1), "NK601", "neuronxcc.nki.language"),
        (lambda t: np.add(t, 1), "NK601", "nl.add"),
        (lambda t: X + t, "NK601", "nl.add"),
        (lambda t: t + X, "NK609", "arguments"),
        (lambda t: t - [1.0], "NK609", "nl.load"),
        (lambda t: t * None, "NK609", "nl.load"),
        (lambda t: t[CHOSEN], "NK603", "integers"),
        (lambda t: t[CHOSEN, 0:2], "NK603", "integers"),
        (lambda t: t[np.array([0, 1]), 0], "NK603", "integers"),
        (lambda t: t[[True] * 8], "NK603", "integers"),
        (lambda t: t[t > 0], "NK603", "(n, 1)"),
    ],
)
def test_what_tiles_do_not_have_is_refused_with_a_remedy(use: Any, rule: str, remedy: str) -> None:
    """At the author's line, with what to write; no bare TypeError."""
    finding = refusal(stored(lambda t: use(t)), X)
    assert finding.rule == rule
    assert remedy in finding.remedy


def test_a_scalar_of_numpy_on_the_left_computes() -> None:
    """``np.float32(3) - np.float32(2) * t`` and comparisons are the tile's own operators."""
    measured = outputs(stored(lambda t: np.float32(3) - np.float32(2) * t), X)
    np.testing.assert_allclose(measured, 3 - 2 * X, rtol=1e-6)
    less = outputs(stored(lambda t: nl.copy(np.float32(0.5) < t, dtype=nl.float32)), X)
    np.testing.assert_array_equal(less, (X > 0.5).astype(np.float32))


def test_equality_with_none_is_pythons() -> None:
    """``tile == None`` asks whether a tile was given, as it always did."""
    measured = outputs(stored(lambda t: t if t != None else None), X)  # noqa: E711 - the form at hand
    np.testing.assert_array_equal(measured, X)
