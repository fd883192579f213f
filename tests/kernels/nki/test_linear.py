"""The matmul, softmax and attention kernels against float64 NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kernels.nki.attention import attention
from kernels.nki.matmul import matmul
from kernels.nki.softmax import softmax


def normal(*shape: int) -> npt.NDArray[np.float32]:
    """Reproducible input."""
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def softmax_reference(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Softmax of rows in float64."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (128, 128, 512), (200, 130, 600), (384, 257, 513)])
def test_matmul(run_kernel: Callable[..., Any], sizes: tuple[int, int, int]) -> None:
    """Products of any size agree with float64 to float32's accuracy."""
    contraction, rows, columns = sizes
    a, b = normal(contraction, rows), normal(contraction, columns)
    expected = a.T.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(run_kernel(matmul, a, b), expected, atol=1e-6 * contraction)


@pytest.mark.parametrize("shape", [(1, 1), (128, 2048), (130, 77)])
def test_softmax(run_kernel: Callable[..., Any], shape: tuple[int, int]) -> None:
    """Rows of any number agree with float64."""
    logits = 5 * normal(*shape)
    np.testing.assert_allclose(run_kernel(softmax, logits), softmax_reference(logits.astype(np.float64)), atol=1e-6)


@pytest.mark.parametrize("shape", [(128, 40), (130, 77)])
def test_softmax_of_logits_whose_exponentials_overflow(run_kernel: Callable[..., Any], shape: tuple[int, int]) -> None:
    """The largest of a row is subtracted first, so that rows add up to 1 wherever the logits lie."""
    logits = 100 * normal(*shape)
    np.testing.assert_allclose(run_kernel(softmax, logits), softmax_reference(logits.astype(np.float64)), atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 1), (128, 128), (600, 64), (700, 128)])
def test_attention(run_kernel: Callable[..., Any], shape: tuple[int, int]) -> None:
    """One head of any sequence length agrees with float64."""
    query, key, value = (normal(*shape) * factor for factor in (1.0, 1.5, 2.0))
    wide = [each.astype(np.float64) for each in (query, key, value)]
    expected = softmax_reference(wide[0] @ wide[1].T / np.sqrt(shape[1])) @ wide[2]
    np.testing.assert_allclose(run_kernel(attention, query, key, value), expected, atol=1e-5)


def test_attention_of_scores_whose_exponentials_overflow(run_kernel: Callable[..., Any]) -> None:
    """The largest score of a row is subtracted first; float32 scores of a few hundred are off by some 1e-4."""
    query, key, value = 100 * normal(130, 64), normal(130, 64), normal(130, 64)
    wide = [each.astype(np.float64) for each in (query, key, value)]
    expected = softmax_reference(wide[0] @ wide[1].T / 8) @ wide[2]
    np.testing.assert_allclose(run_kernel(attention, query, key, value), expected, atol=1e-3)
