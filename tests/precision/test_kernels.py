"""The example kernels in both precisions, against float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from kernels.nki.flash_attention import flash_attention
from kernels.nki.matmul import matmul
from kernels.nki.softmax import softmax
from tests.precision.modes import BF16, uniform


def softmax_reference(logits: Any) -> Any:
    """Of each row."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def attention_reference(query: Any, key: Any, value: Any) -> Any:
    """The output and the log-sum-exp of the scaled scores."""
    scores = query @ key.T / np.sqrt(query.shape[1])
    return softmax_reference(scores) @ value, np.log(np.exp(scores).sum(axis=1, keepdims=True))


@pytest.mark.parametrize(
    ("kernel", "shapes", "reference"),
    [
        (softmax, [(130, 300)], softmax_reference),
        (matmul, [(200, 130), (200, 520)], lambda left, right: left.T @ right),
        (flash_attention, [(200, 64)] * 3, attention_reference),
    ],
)
def test_full_precision_is_float32s(kernel: Any, shapes: list[tuple[int, int]], reference: Any) -> None:
    """On bfloat16 inputs what remains is float32's rounding; kernels that round on the way lose far more than that."""
    inputs = [uniform(*shape, seed=number).astype(BF16) for number, shape in enumerate(shapes)]
    split = nkitools.precision_split(kernel, *inputs, reference=reference)
    for tensor in split.tensors:
        assert tensor.remaining is not None
        assert tensor.remaining.max_abs <= 1e-6 * max(1.0, float(np.abs(_exact(reference, inputs)).max()))
    narrow = [tensor for tensor in split.tensors if tensor.dtype == "bfloat16"]
    assert all(tensor.low_precision.max_abs > 100 * tensor.remaining.max_abs for tensor in narrow if tensor.remaining)
    assert split.full.rounded == {}


def _exact(reference: Any, inputs: list[Any]) -> Any:
    result = reference(*(each.astype(np.float64) for each in inputs))
    return np.concatenate([np.ravel(each) for each in result]) if isinstance(result, tuple) else result


def test_softmax_of_float32_has_no_low_precision() -> None:
    """Both runs give the same bits."""
    split = nkitools.precision_split(softmax, uniform(130, 40))
    assert split["output"].verdict == "output (float32): low precision changes nothing."
