"""The cross entropy kernels, forward and backward, against float64 NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import nkitools
from kernels.nki import cross_entropy as kernel_module
from kernels.nki.cross_entropy import (
    CHUNK,
    cross_entropy,
    cross_entropy_backward,
    cross_entropy_backward_isa,
    cross_entropy_isa,
)
from tests.kernels.mutants import mutant

Wide = npt.NDArray[np.float64]
FORWARD = [cross_entropy, cross_entropy_isa]
BACKWARD = [cross_entropy_backward, cross_entropy_backward_isa]
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SHAPES = [(1, 1), (128, CHUNK), (130, 2 * CHUNK + 5), (3, 128256)]  # rows, vocabulary
UNIT = 2.0**-24  # what rounding to float32 changes at most, relatively
UNITS = {np.dtype(np.float32): UNIT, BFLOAT16: 2.0**-8}
EXP = 6  # units by which an exponential is off at most: NumPy's float32 exp by 2.52 units in the last place


def case(rows: int, vocabulary: int, dtype: Any = np.float32, ignored: int = -100) -> tuple[Any, Any]:
    """Logits far from 0, each row elsewhere, and labels, the last columns' among them and some to be ignored."""
    random = np.random.default_rng(rows + vocabulary)
    logits = 5 * random.standard_normal((rows, vocabulary)) + random.uniform(-1000, 1000, (rows, 1))
    labels = random.integers(0, vocabulary, (rows, 1)).astype(np.int32)
    labels[1::5] = ignored
    labels[0] = vocabulary - 1
    return logits.astype(dtype), labels


def log_sum_exp(logits: Any) -> Wide:
    """log(sum(exp(row))) in float64."""
    wide = logits.astype(np.float64)
    top = wide.max(axis=1, keepdims=True)
    return np.asarray(top + np.log(np.exp(wide - top).sum(axis=1, keepdims=True)))


def losses_reference(logits: Any, labels: Any, ignored: int = -100) -> Wide:
    """The losses in float64."""
    chosen = np.take_along_axis(logits.astype(np.float64), labels % logits.shape[1], axis=1)
    return np.where(labels == ignored, 0, log_sum_exp(logits) - chosen)


def forward_bound(logits: Any) -> float:
    """By how much float32 can be off.

    Relative errors of the sum of exponentials: one unit for each addition in a chunk; for each chunk the factor, its
    product and the sum; and ``log(vocabulary)`` units where a difference d of two logits is rounded, which moves its
    exponential by d units, because the mean of d over a softmax is no larger. The logarithm makes them absolute. To
    that comes the rounding of logarithm, maximum, logit and their sums, none larger than two logits and the logarithm.
    """
    columns = logits.shape[1]
    chunks, spread = -(-columns // CHUNK), np.log(columns)
    largest = float(np.abs(logits[np.isfinite(logits)].astype(np.float64)).max())
    of_the_sum = min(columns, CHUNK) + EXP + spread + chunks * (EXP + 2 + spread)
    return UNIT * (of_the_sum + 4 * (2 * largest + spread))


def assert_losses(measured: Any, logits: Any, labels: Any, ignored: int = -100) -> None:
    """Losses and log-sum-exp are float32 and agree; ignored rows have the loss 0."""
    losses, statistics = measured
    assert losses.dtype == statistics.dtype == np.float32
    bound = forward_bound(logits)
    np.testing.assert_allclose(losses, losses_reference(logits, labels, ignored), rtol=0, atol=bound)
    np.testing.assert_allclose(statistics, log_sum_exp(logits), rtol=0, atol=bound)
    assert not losses[labels == ignored].any()


def backward_arguments(logits: Any, labels: Any) -> tuple[Any, ...]:
    """What the backward kernels take, with the log-sum-exp of the reference, not of a kernel."""
    gradient = np.random.default_rng(0).standard_normal(labels.shape, np.float32)
    return logits, labels, log_sum_exp(logits).astype(np.float32), gradient


def assert_gradient(measured: Any, arguments: tuple[Any, ...], ignored: int = -100) -> None:
    """``(softmax - one_hot) * gradient``, in the dtype of the logits; rows to be ignored are 0.

    The exponent, a difference of the logit and a log-sum-exp that was rounded, is off by a unit of each; then come the
    exponential, a difference, a product and the cast.
    """
    logits, labels, _, gradient = arguments
    wide, total = logits.astype(np.float64), log_sum_exp(logits)
    softmax = np.exp(wide - total)
    factor = np.where(labels == ignored, 0, gradient.astype(np.float64))
    expected = (softmax - (np.arange(logits.shape[1]) == labels)) * factor
    exponent = np.where(softmax > 0, np.abs(wide - total), 0) + np.abs(total)
    error = np.abs(factor) * softmax * np.expm1(UNIT * (exponent + EXP))
    bound = error + (np.abs(expected) + error) * (3 * UNIT + UNITS[logits.dtype])
    assert measured.dtype == logits.dtype
    assert np.all(np.abs(measured.astype(np.float64) - expected) <= bound)
    assert not measured[labels[:, 0] == ignored].any()


@pytest.mark.parametrize("kernel", FORWARD)
@pytest.mark.parametrize("dtype", UNITS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_forward(run_kernel: Callable[..., Any], kernel: Any, dtype: Any, shape: tuple[int, int]) -> None:
    """Any number of rows, a vocabulary of any size."""
    logits, labels = case(*shape, dtype)
    assert_losses(run_kernel(kernel, logits, labels), logits, labels)


@pytest.mark.parametrize("kernel", BACKWARD)
@pytest.mark.parametrize("dtype", UNITS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_backward(run_kernel: Callable[..., Any], kernel: Any, dtype: Any, shape: tuple[int, int]) -> None:
    """The gradient, from statistics that are the reference's."""
    arguments = backward_arguments(*case(*shape, dtype))
    assert_gradient(run_kernel(kernel, *arguments), arguments)


@pytest.mark.parametrize(("forward", "backward"), list(zip(FORWARD, BACKWARD, strict=True)))
@pytest.mark.parametrize("ignored", [-1, 0, 50])
def test_another_ignored_index(run_kernel: Callable[..., Any], forward: Any, backward: Any, ignored: int) -> None:
    """Any label can be the one to ignore, a column of the vocabulary too."""
    logits, labels = case(200, 51, ignored=ignored)
    assert_losses(run_kernel(forward, logits, labels, ignore_index=ignored), logits, labels, ignored)
    arguments = backward_arguments(logits, labels)
    assert_gradient(run_kernel(backward, *arguments, ignore_index=ignored), arguments, ignored)


@pytest.mark.parametrize(("forward", "backward"), list(zip(FORWARD, BACKWARD, strict=True)))
def test_logits_of_minus_infinity(run_kernel: Callable[..., Any], forward: Any, backward: Any) -> None:
    """Columns that are masked have no weight and no gradient, even where they fill the whole first chunk."""
    logits, labels = case(7, CHUNK + 40)
    logits[:, : CHUNK + 3] = -np.inf
    labels[labels >= 0] = CHUNK + 20
    losses, statistics = run_kernel(forward, logits, labels)
    assert_losses((losses, statistics), logits, labels)
    arguments = backward_arguments(logits, labels)
    measured = run_kernel(backward, *arguments)
    assert_gradient(measured, arguments)
    assert not measured[:, : CHUNK + 3].any()


@pytest.mark.parametrize(("forward", "backward"), list(zip(FORWARD, BACKWARD, strict=True)))
@pytest.mark.parametrize("rows", [1, 300])
def test_two_cores_share_the_rows(run_kernel: Callable[..., Any], forward: Any, backward: Any, rows: int) -> None:
    """Together they give what one core gives, bit by bit."""
    logits, labels = case(rows, CHUNK + 1)
    for of_two, of_one in zip(run_kernel(forward[2], logits, labels), run_kernel(forward, logits, labels), strict=True):
        np.testing.assert_array_equal(of_two, of_one)
    arguments = backward_arguments(logits, labels)
    np.testing.assert_array_equal(run_kernel(backward[2], *arguments), run_kernel(backward, *arguments))


@pytest.mark.parametrize(("forward", "backward"), list(zip(FORWARD, BACKWARD, strict=True)))
@pytest.mark.parametrize("chip", ["trn1", "trn2", "trn3"])
def test_every_chip(forward: Any, backward: Any, chip: str) -> None:
    """The same on all chips, and no rule has anything to say."""
    logits, labels = case(130, CHUNK + 7)
    run = nkitools.simulate(forward, logits, labels, chip=chip)
    assert run.findings == []
    assert_losses(run.outputs, logits, labels)
    arguments = backward_arguments(logits, labels)
    run = nkitools.simulate(backward, *arguments, chip=chip)
    assert run.findings == []
    assert_gradient(run.outputs, arguments)


FORWARD_MISTAKES = {
    "the maximum is not subtracted": ("        bias=now,\n", "        bias=_column(height, 0.0),\n"),
    "what was summed so far is not rescaled": ("op0=nl.multiply, operand0=factor", "op0=nl.multiply, operand0=1.0"),
    "what was summed so far is forgotten": ("op0=nl.multiply, operand0=factor", "op0=nl.multiply, operand0=0.0"),
    "labels looked up in the first row": ("channel_multiplier=vocabulary", "channel_multiplier=0"),
    "no label is ignored": ("op0=nl.not_equal, operand0=float(ignore_index)", "op0=nl.not_equal, operand0=-1.0"),
    "the last chunk left out": ("range(start, stop, size)]", "range(start, stop, size)][:2]"),
}


@pytest.mark.parametrize("mistake", FORWARD_MISTAKES)
def test_a_mistake_in_the_forward_kernel_is_noticed(mistake: str) -> None:
    """The comparison, or a rule, tells of it."""
    logits, labels = case(90, 2 * CHUNK + 5)
    broken = mutant(kernel_module, *FORWARD_MISTAKES[mistake]).cross_entropy_isa
    with pytest.raises((AssertionError, nkitools.KernelError)):
        assert_losses(nkitools.simulate(broken, logits, labels, rules="report").outputs, logits, labels)


LANGUAGE_MISTAKES = {
    "the maximum is not subtracted": ("nl.exp(nl.subtract(tile, highest.broadcast(1, width)))", "nl.exp(tile)"),
    "what was summed so far is not rescaled": ("nl.exp(nl.subtract(before, highest))", "1.0"),
    "labels compared with columns of the chunk": ("nl.subtract(label, float(start))", "nl.subtract(label, 0.0)"),
}


@pytest.mark.parametrize("mistake", LANGUAGE_MISTAKES)
def test_a_mistake_in_the_language_kernel_is_noticed(mistake: str) -> None:
    """The comparison, or a rule, tells of it."""
    logits, labels = case(90, 2 * CHUNK + 5)
    broken = mutant(kernel_module, *LANGUAGE_MISTAKES[mistake]).cross_entropy
    with pytest.raises((AssertionError, nkitools.KernelError)):
        assert_losses(nkitools.simulate(broken, logits, labels, rules="report").outputs, logits, labels)


BACKWARD_MISTAKES = {
    "labels compared with columns of the chunk": ("operand0=float(start))", "operand0=0.0)"),
    "the gradient with the wrong sign": ("                reverse1=True,\n", ""),
    "the gradient of each loss left out": ("data=change, scale=factor)", "data=change)"),
}


@pytest.mark.parametrize("mistake", BACKWARD_MISTAKES)
def test_a_mistake_in_the_backward_kernel_is_noticed(mistake: str) -> None:
    """The comparison tells of it."""
    arguments = backward_arguments(*case(90, 2 * CHUNK + 5))
    broken = mutant(kernel_module, *BACKWARD_MISTAKES[mistake]).cross_entropy_backward_isa
    with pytest.raises(AssertionError):
        assert_gradient(nkitools.simulate(broken, *arguments).outputs, arguments)


@pytest.mark.parametrize("kernel", [each.__name__ for each in BACKWARD])
def test_a_tile_of_rows_left_out_is_reported(kernel: str) -> None:
    """The elements that were never written are named (NK403)."""
    broken = mutant(kernel_module, "(program + 1) // programs, nl", "(program + 1) // programs // 128 * 128, nl")
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(getattr(broken, kernel), *backward_arguments(*case(130, 10)))
    assert caught.value.finding.rule == "NK403"
    assert "`result`" in caught.value.finding.message
    assert "`result[128:130, 0:10]` never written (20 of 1300 elements)" in caught.value.finding.message
    assert "round the number of tiles up" in caught.value.finding.remedy
