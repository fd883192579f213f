"""Forms that a chip is reported to get wrong: computed as documented, with NK623 on the chips concerned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import neuronxcc.nki as legacy
import neuronxcc.nki.isa as legacy_isa
import neuronxcc.nki.language as legacy_language
import nki.isa as nisa
import nki.language as nl
import numpy as np
import pytest

import nkitools

X = np.arange(4 * 3 * 8, dtype=np.float32).reshape(4, 3, 8)
COLUMN = np.arange(1, 5, dtype=np.float32)[:, None]


def copied(call: Callable[..., Any], op: Any) -> Callable[..., Any]:
    """A kernel that applies an activation function, by one of two instructions, to a tile with a bias."""

    def kernel(x: Any, b: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        call(tile, op, nl.load(b))
        nl.store(out, tile)
        return out

    return kernel


def by_activation(tile: Any, op: Any, bias: Any) -> None:
    nisa.activation(dst=tile, op=op, data=tile, bias=bias)


def by_activation_reduce(tile: Any, op: Any, bias: Any) -> None:
    nisa.activation_reduce(dst=tile, op=op, data=tile, reduce_op=nl.add, reduce_res=None, bias=bias)


@legacy.jit
def by_the_legacy_dialect(x: Any, b: Any) -> Any:
    out = legacy_language.ndarray(x.shape, dtype=x.dtype, buffer=legacy_language.shared_hbm)
    tile, bias = legacy_language.load(x), legacy_language.load(b)
    legacy_language.store(out, legacy_isa.activation(legacy_language.copy, tile, bias=bias))
    return out


CONCERNED = {"trn1": True, "inf2": True, "trn2": False, "trn3": False}
HOWS = (by_activation, by_activation_reduce, by_the_legacy_dialect)
ON_CHIPS = [(how, chip) for how in HOWS for chip in CONCERNED if how is not by_the_legacy_dialect or chip != "trn3"]


@pytest.mark.parametrize(("how", "chip"), ON_CHIPS)
def test_a_copy_with_a_bias_is_reported_of_trn1(how: Any, chip: str) -> None:
    """By each instruction and dialect, once a line; the bias is added."""
    kernel = how if how is HOWS[-1] else copied(how, nl.copy)
    for _ in range(2):
        run = nkitools.simulate(kernel, X[:, 0], COLUMN, chip=chip)
        np.testing.assert_array_equal(run.outputs, X[:, 0] + COLUMN)
        assert [(each.rule, each.severity) for each in run.findings] == [("NK623", "hint")] * CONCERNED[chip]
        assert all("aws-neuron-sdk#1296, trn1" in each.message for each in run.findings)


def test_other_functions_and_copies_without_a_bias_are_not() -> None:
    """The report has nl.relu as right."""
    run = nkitools.simulate(copied(by_activation, nl.relu), X[:, 0], COLUMN, chip="trn1")
    assert run.findings == []
    np.testing.assert_array_equal(run.outputs, np.maximum(X[:, 0] + COLUMN, 0))


def product(multiply: Callable[[Any, Any], Any]) -> Any:
    """A legacy kernel that stores what ``multiply`` makes of two loaded tiles."""

    @legacy.jit
    def kernel(x: Any, s: Any) -> Any:
        out = legacy_language.ndarray(x.shape, dtype=x.dtype, buffer=legacy_language.shared_hbm)
        legacy_language.store(out, multiply(legacy_language.load(x), legacy_language.load(s)))
        return out

    return kernel


def in_place(x: Any, s: Any) -> Any:
    x *= s
    return x


PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "nl.multiply": lambda x, s: legacy_language.multiply(x, s),
    "the other way round": lambda x, s: legacy_language.multiply(s, x),
    "an operator": lambda x, s: x * s,
    "in place": in_place,
    "an instruction": lambda x, s: legacy_isa.tensor_tensor(x, s, np.multiply),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("factor", [X[:, :, :1] + 1, X[:, :1] + 1], ids=["last", "middle"])
def test_a_legacy_product_that_broadcasts_a_free_dimension_is_reported(name: str, factor: np.ndarray) -> None:
    """By every door, along each of the free dimensions; the product is right."""
    run = nkitools.simulate(product(PRODUCTS[name]), X, factor)
    assert [each.rule for each in run.findings] == ["NK623"]
    np.testing.assert_array_equal(run.outputs, X * factor)


@pytest.mark.parametrize(
    ("multiply", "x", "factor"),
    [
        (lambda x, s: x + s, X, X[:, :, :1]),
        (lambda x, s: x * s, X[:, 0], COLUMN),
        (lambda x, s: x * s, X, X + 1),
        (lambda x, s: x * s, X, COLUMN[:, :, None]),
        (lambda x, s: legacy_isa.tensor_scalar(x, np.multiply, s), X[:, 0], COLUMN),
        (lambda x, s: legacy_language.softmax(x, axis=[1, 2]), X, COLUMN),
    ],
    ids=["a sum", "two dimensions", "equal shapes", "a column", "an operand", "a softmax"],
)
def test_other_legacy_arithmetic_is_not(multiply: Callable[[Any, Any], Any], x: np.ndarray, factor: np.ndarray) -> None:
    """Nothing is said of sums, two dimensions, equal shapes, one number for each partition, nl's own products."""
    assert nkitools.simulate(product(multiply), x, factor).findings == []


@pytest.mark.parametrize(("chip", "is_concerned"), [("trn1", True), ("trn2", True), ("trn3", False)])
def test_a_seed_for_another_engine_is_reported_before_trn3(chip: str, is_concerned: bool) -> None:
    """AWS's notes have nl.rand on an engine of its own there; a second draw from one seed is the same here."""

    def kernel() -> Any:
        out = nl.ndarray((2, 4, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        for turn in range(2):
            nl.random_seed(nl.full((1, 1), 7, dtype=nl.int32, buffer=nl.sbuf))
            nl.store(out[turn], nl.rand((4, 8), nl.float32))
        return out

    run = nkitools.simulate(kernel, chip=chip)
    assert [each.rule for each in run.findings] == ["NK623"] * is_concerned
    assert all("AWS's notes say" in each.message for each in run.findings)
    np.testing.assert_array_equal(*run.outputs)
