"""The flash attention kernels, forward and backward, against float64 NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import nkitools
from kernels.nki import flash_attention as kernel_module
from kernels.nki.flash_attention import flash_attention, flash_attention_backward
from tests.kernels.mutants import mutant

Wide = npt.NDArray[np.float64]
TOLERANCE = 2e-5
SHAPES = [(1, 1), (128, 128), (512, 64), (600, 128), (1100, 80)]


def heads(sequence: int, head: int, count: int = 3) -> list[npt.NDArray[np.float32]]:
    """Reproducible matrices [sequence, head]."""
    random = np.random.default_rng(sequence + head)
    return [random.standard_normal((sequence, head), np.float32) for _ in range(count)]


def rows_reference(query: Any, key: Any, rows: slice, causal: bool) -> tuple[Wide, Wide]:
    """The attention weights of some rows, and the log-sum-exp of their scores, in float64."""
    scores = query[rows].astype(np.float64) @ key.astype(np.float64).T / np.sqrt(query.shape[1])
    if causal:
        scores[np.arange(len(query))[rows, None] < np.arange(len(key))[None, :]] = -np.inf
    top = scores.max(axis=1, keepdims=True)
    powers = np.exp(scores - top)
    total = powers.sum(axis=1, keepdims=True)
    return powers / total, top + np.log(total)


def gradients_reference(
    query: Any, key: Any, value: Any, gradient: Any, causal: bool, block: int = 512
) -> tuple[Wide, Wide, Wide]:
    """The gradients by the derivative of softmax, a block of rows at a time, in float64."""
    q, k, v, g = (each.astype(np.float64) for each in (query, key, value, gradient))
    changed = [np.zeros_like(q) for _ in range(3)]
    for start in range(0, len(q), block):
        rows = slice(start, start + block)
        weights, _ = rows_reference(query, key, rows, causal)
        inner = g[rows] @ v.T
        scores = weights * (inner - (inner * weights).sum(axis=1, keepdims=True)) / np.sqrt(q.shape[1])
        changed[0][rows] = scores @ k
        changed[1] += scores.T @ q[rows]
        changed[2] += weights.T @ g[rows]
    return changed[0], changed[1], changed[2]


def worst_error(measured: Any, expected: Wide) -> float:
    """The largest distance; NaN where the kernel gave one."""
    return float(np.max(np.abs(np.asarray(measured, np.float64) - expected)))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_forward(run_kernel: Callable[..., Any], shape: tuple[int, int], causal: bool) -> None:
    """Outputs and row statistics agree with float64 for any sequence, with and without a causal mask."""
    query, key, value = heads(*shape)
    output, statistics = run_kernel(flash_attention, 3 * query, key, value, causal=causal)
    weights, logarithms = rows_reference(3 * query, key, slice(None), causal)
    assert worst_error(output, weights @ value.astype(np.float64)) <= TOLERANCE
    assert worst_error(statistics, logarithms) <= TOLERANCE


@pytest.mark.parametrize("causal", [False, True])
def test_forward_of_bfloat16(run_kernel: Callable[..., Any], causal: bool) -> None:
    """bfloat16 inputs give a bfloat16 output within that dtype's accuracy, and float32 statistics."""
    query, key, value = (each.astype(ml_dtypes.bfloat16) for each in heads(600, 128))
    output, statistics = run_kernel(flash_attention, query, key, value, causal=causal)
    weights, logarithms = rows_reference(query, key, slice(None), causal)
    assert output.dtype == ml_dtypes.bfloat16
    assert worst_error(output, weights @ value.astype(np.float64)) <= 2e-2
    assert worst_error(statistics, logarithms) <= TOLERANCE


def test_forward_of_scores_whose_exponentials_overflow(run_kernel: Callable[..., Any]) -> None:
    """The largest score so far is subtracted: scores of hundreds, off by 1e-4 in float32, are weighted too."""
    query, key, value = heads(600, 64)
    output, statistics = run_kernel(flash_attention, 100 * query, key, value)
    weights, logarithms = rows_reference(100 * query, key, slice(None), causal=False)
    assert worst_error(output, weights @ value.astype(np.float64)) <= 1e-3
    assert worst_error(statistics, logarithms) <= 1e-3


def test_forward_of_a_long_sequence(run_kernel: Callable[..., Any]) -> None:
    """4096 x 128, causal: rows from all over agree with float64."""
    query, key, value = heads(4096, 128)
    output, statistics = run_kernel(flash_attention, query, key, value, causal=True)
    rows = slice(0, None, 63)
    weights, logarithms = rows_reference(query, key, rows, causal=True)
    assert worst_error(output[rows], weights @ value.astype(np.float64)) <= TOLERANCE
    assert worst_error(statistics[rows], logarithms) <= TOLERANCE


def run_backward(run: Callable[..., Any], query: Any, key: Any, value: Any, gradient: Any, causal: bool) -> Any:
    """The backward kernel's results, from an output and statistics that are the reference's, not the kernel's."""
    weights, logarithms = rows_reference(query, key, slice(None), causal)
    output = (weights @ value.astype(np.float64)).astype(np.float32)
    return run(
        flash_attention_backward, query, key, value, output, gradient, logarithms.astype(np.float32), causal=causal
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_backward(run_kernel: Callable[..., Any], shape: tuple[int, int], causal: bool) -> None:
    """The gradients of query, key and value agree with float64."""
    query, key, value, gradient = heads(*shape, count=4)
    measured = run_backward(run_kernel, query, key, value, gradient, causal)
    expected = gradients_reference(query, key, value, gradient, causal)
    for got, wanted in zip(measured, expected, strict=True):
        assert worst_error(got, wanted) <= TOLERANCE * max(1.0, float(np.abs(wanted).max()))


def test_forward_and_backward_of_a_long_sequence(run_kernel: Callable[..., Any]) -> None:
    """4096 x 128: the gradients from the forward kernel's own output and statistics agree with float64."""
    query, key, value, gradient = heads(4096, 128, count=4)
    output, statistics = run_kernel(flash_attention, query, key, value)
    measured = run_kernel(flash_attention_backward, query, key, value, output, gradient, statistics)
    for got, wanted in zip(measured, gradients_reference(query, key, value, gradient, causal=False), strict=True):
        assert worst_error(got, wanted) <= TOLERANCE


def test_the_gradient_is_that_of_the_function() -> None:
    """The reference itself: a step along each gradient changes the float64 result as much as it says."""
    arrays = [each.astype(np.float64) for each in heads(9, 4, count=4)]
    gradient = arrays[3]

    def total(query: Wide, key: Wide, value: Wide) -> float:
        return float(((rows_reference(query, key, slice(None), causal=True)[0] @ value) * gradient).sum())

    for place, slope in enumerate(gradients_reference(*arrays, causal=True)):
        sides = []
        for step in (1e-5, -1e-5):
            moved = list(arrays[:3])
            moved[place] = moved[place] + step * slope
            sides.append(total(moved[0], moved[1], moved[2]))
        assert (sides[0] - sides[1]) / 2e-5 == pytest.approx((slope**2).sum(), rel=1e-6)


FORWARD_MISTAKES = {
    "what was summed so far is forgotten": (
        "operand0=factor, op1=nl.add, operand1=product",
        "operand0=0.0, op1=nl.add, operand1=product",
    ),
    "the sum of the weights is not rescaled": (
        "data=total, op0=nl.multiply, operand0=factor",
        "data=total, op0=nl.multiply, operand0=1.0",
    ),
    "the mask lets the next key through": ("offset=distance,", "offset=distance + 1,"),
    "the last, shorter tile left out": ("range(0, stop, size)]", "range(0, stop - size + 1, size)]"),
}


@pytest.mark.parametrize("mistake", FORWARD_MISTAKES)
def test_a_mistake_in_the_forward_kernel_is_noticed(mistake: str) -> None:
    """The comparison, or a rule, tells of it."""
    query, key, value = heads(600, 64)
    broken = mutant(kernel_module, *FORWARD_MISTAKES[mistake]).flash_attention
    run = nkitools.simulate(broken, 3 * query, key, value, causal=True, rules="report")
    weights, logarithms = rows_reference(3 * query, key, slice(None), causal=True)
    output, statistics = run.outputs
    right = worst_error(output, weights @ value) <= TOLERANCE and worst_error(statistics, logarithms) <= TOLERANCE
    assert not right


BACKWARD_MISTAKES = {
    "the gradient of softmax without its mean": ("op0=nl.subtract, operand0=share", "op0=nl.subtract, operand0=0.0"),
    "a diagonal tile taken for a masked one": ("range(start // pmax if causal", "range(start // pmax + 1 if causal"),
    "query and gradient mixed up": ("key_sums, changes, queries", "key_sums, changes, gradients"),
}


@pytest.mark.parametrize("mistake", BACKWARD_MISTAKES)
def test_a_mistake_in_the_backward_kernel_is_noticed(mistake: str) -> None:
    """The comparison tells of it."""
    query, key, value, gradient = heads(600, 64, count=4)
    broken = mutant(kernel_module, *BACKWARD_MISTAKES[mistake]).flash_attention_backward

    def run(_: Any, *arrays: Any, **options: Any) -> Any:
        return nkitools.simulate(broken, *arrays, **options, rules="report").outputs

    measured = run_backward(run, query, key, value, gradient, causal=True)
    expected = gradients_reference(query, key, value, gradient, causal=True)
    errors = [worst_error(got, wanted) for got, wanted in zip(measured, expected, strict=True)]
    assert not max(errors) <= 1e-3
