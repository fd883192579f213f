"""The top-p kernel against sorted probabilities in float64."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nkitools
from kernels import references
from kernels.nki import top_p as kernel_module
from kernels.nki.top_p import top_p
from tests.cases import cases
from tests.kernels.mutants import mutant


def case(shape: tuple[int, int], seed: int = 0) -> tuple[Any, Any]:
    """Logits of unequal probability, and a number for each row."""
    random = np.random.default_rng(seed)
    return 3 * random.standard_normal(shape, np.float32), random.random((shape[0], 1), np.float32)


ROUNDED = 64 * 2.0**-24  # how far a float32 sum of 64 probabilities may be off


def agrees(outputs: Any, logits: Any, drawn: Any, p: float) -> bool:
    """Whether tokens and probabilities are the reference's.

    Where a sum of probabilities lies so near to p, or to the number drawn, that float32 may round it to either side,
    the reference of either side is right.
    """
    right = np.zeros(len(drawn), np.bool_)
    for by, of_number in itertools.product((0, -ROUNDED, ROUNDED), repeat=2):
        tokens, kept = references.top_p(logits, drawn + of_number, p + by)
        same = np.isclose(outputs[1], kept, rtol=1e-4, atol=1e-6).all(axis=1)
        right |= same & (outputs[0] == tokens).all(axis=1)
    return bool(right.all() and outputs[0].dtype == np.uint32)


@pytest.mark.parametrize(("shape", "p"), [((1, 64), 1.0), ((130, 80), 0.7), ((3, 5000), 0.01)])
def test_a_token_is_drawn_from_the_nucleus(run_kernel: Callable[..., Any], shape: tuple[int, int], p: float) -> None:
    """Any number of rows; the nucleus is all of the likeliest, some, or one."""
    assert agrees(run_kernel(top_p, *case(shape), p), *case(shape), p)


@settings(max_examples=cases(200))
@given(st.integers(1, 140), st.integers(64, 300), st.floats(0.05, 0.99), st.integers(0, 99))
def test_any_shape(rows: int, vocabulary: int, p: float, seed: int) -> None:
    """As many as the chip has partitions, and more."""
    arrays = case((rows, vocabulary), seed)
    run = nkitools.simulate(top_p, *arrays, p)
    assert run.findings == []
    assert agrees(run.outputs, *arrays, p)
    np.testing.assert_array_equal(np.concatenate([each.value for each in run.prints]), run.outputs[1])


def test_a_sum_beside_p_may_be_rounded_to_either_side() -> None:
    """A case in which the last token of the nucleus is in it by less than float32 can say."""
    arrays, p = case((53, 192), 90), 0.988476079833028
    assert agrees(nkitools.simulate(top_p, *arrays, p).outputs, *arrays, p)


def test_logits_whose_exponentials_overflow(run_kernel: Callable[..., Any]) -> None:
    """The largest logit of a row is taken from all of them before."""
    logits, drawn = case((3, 64))
    assert agrees(run_kernel(top_p, 60 * logits, drawn, 0.9), 60 * logits, drawn, 0.9)


def test_the_last_token_is_drawn_by_the_largest_number() -> None:
    """Also where the sum of the probabilities, rounded, lies below the number; the smallest draws the likeliest."""
    logits, _ = case((200, 64))
    order = np.argsort(-logits, axis=1)
    for number, place in ((np.nextafter(np.float32(1), np.float32(0)), -1), (np.float32(0), 0)):
        tokens, kept = nkitools.simulate(top_p, logits, np.full((200, 1), number), 0.9).outputs
        count = (kept > 0).sum(axis=1)
        wanted = [row[size - 1 if place else 0] for row, size in zip(order, count, strict=True)]
        np.testing.assert_array_equal(tokens[:, 0], wanted)


def test_sums_that_meet_p_and_numbers_that_meet_a_border() -> None:
    """Tokens that have p exactly are enough; a number between two tokens draws the second one."""
    logits = np.full((4, 64), -1000, np.float32)
    logits[:, [3, 7, 22, 40]] = 0  # a quarter each, exactly
    numbers = np.arange(4, dtype=np.float32).reshape(4, 1) / 4
    for p, wanted in ((1.0, [3, 7, 22, 40]), (0.5, [3, 3, 7, 7])):
        tokens, kept = nkitools.simulate(top_p, logits, numbers, p).outputs
        assert tokens[:, 0].tolist() == wanted
        count = len(set(wanted))
        np.testing.assert_array_equal(kept, np.tile(np.repeat([1 / count, 0], [count, 64 - count]), (4, 1)))


MISTAKES = {
    "one token too few": ("nl.subtract(_running_sums(best), best)", "_running_sums(best)"),
    "the probabilities are not shared out again": ("op0=nl.multiply, operand0=mass", "op0=nl.add, operand0=0.0"),
    "a token after the drawn one": ("op0=nl.less_equal, operand0=number", "op0=nl.greater, operand0=number"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_noticed(mistake: str) -> None:
    """The comparison tells of it."""
    broken = mutant(kernel_module, *MISTAKES[mistake]).top_p
    run = nkitools.simulate(broken, *case((130, 80)), 0.7, rules="report")
    assert run.findings or not agrees(run.outputs, *case((130, 80)), 0.7)
