"""A vision transformer block with JAX's flash attention kernel against plain JAX, forward and backward."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

jax = pytest.importorskip("jax")

import nkitools.pallas  # noqa: E402  (JAX decides whether this file is collected)
from kernels.pallas import vision_transformer as kernel_module  # noqa: E402
from kernels.pallas.vision_transformer import (  # noqa: E402
    BlockParameters,
    flash_attention,
    loss_and_gradients,
    plain_attention,
    transformer_block,
)
from tests.kernels.mutants import mutant  # noqa: E402
from tests.kernels.pallas.compiling import assert_compiles, zeros  # noqa: E402

HEADS, WIDTH, INNER = 2, 64, 128

# Two blocks of tokens, and the patches of a 224 x 224 image with a class token, which fill the second one in part.
FULL, IN_PART = 256, 197


# Roundings that may come together in the chain of products, sums and exponentials from one end to the other. Each sum
# has hundreds, but they are as often up as down, and distances are taken relative to the largest value.
ROUNDINGS = 32
FLOAT32 = 2.0**-24


def bound(run_kernel: Any) -> float:
    """The distance that rounding explains; a TPU by default rounds float32 operands of products to bfloat16."""
    simulated = run_kernel.run.target.startswith("pallas")
    return ROUNDINGS * (FLOAT32 if simulated else 2.0**-8)


def parameters(width: int = WIDTH, inner: int = INNER) -> BlockParameters:
    random = np.random.default_rng(width)

    def weights(*size: int) -> npt.NDArray[np.float32]:
        return (random.standard_normal(size) / np.sqrt(size[0])).astype(np.float32)

    ones = np.ones(width, np.float32)
    return BlockParameters(
        *(ones, weights(width), weights(width, 3 * width), weights(width, width)),
        *(ones, weights(width), weights(width, inner), weights(inner), weights(inner, width), weights(width)),
    )


def activations(tokens: int, seed: int = 0) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((1, tokens, WIDTH)).astype(np.float32)


def queries_keys_values(tokens: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(tokens).standard_normal((3, 1, HEADS, tokens, 32)).astype(np.float32)


def softmax_attention(q: npt.NDArray[Any], k: npt.NDArray[Any], v: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Attention in float64."""
    wide_q, wide_k, wide_v = (array.astype(np.float64) for array in (q, k, v))
    scores = wide_q @ wide_k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ wide_v


def apart(measured: Any, wanted: Any) -> float:
    """The largest distance, as a share of the largest value."""
    return float(np.max(np.abs(np.asarray(measured) - np.asarray(wanted))) / np.max(np.abs(np.asarray(wanted))))


def test_attention_agrees_with_float64(run_kernel: Callable[..., Any]) -> None:
    """Attention is NumPy's softmax, and so is the plain one that the block is compared with."""
    q, k, v = queries_keys_values(FULL)
    wanted = softmax_attention(q, k, v)
    measured = run_kernel(flash_attention, q, k, v)
    assert apart(measured, wanted) <= bound(run_kernel)
    assert apart(plain_attention(q, k, v), wanted) <= ROUNDINGS * FLOAT32


def test_the_block_and_its_gradients_agree_with_plain_jax(run_kernel: Callable[..., Any]) -> None:
    """With the kernel the loss and the gradient by every weight are those of plain JAX, up to rounding."""
    arguments = parameters(), activations(IN_PART), activations(IN_PART, seed=1)
    loss, gradients = run_kernel(loss_and_gradients, *arguments, heads=HEADS)
    wanted_loss, wanted = loss_and_gradients(*arguments, heads=HEADS, attention=plain_attention)
    assert apart(loss, wanted_loss) <= bound(run_kernel)
    for name, measured in zip(BlockParameters._fields, gradients, strict=True):
        assert apart(measured, getattr(wanted, name)) <= bound(run_kernel), name


def test_heads_must_divide_the_width() -> None:
    """A block of width 64 has no three heads."""
    with pytest.raises(ValueError, match="3 heads do not divide the width 64"):
        transformer_block(parameters(), activations(8), heads=3)


@pytest.mark.parametrize(
    ("old", "new", "tokens"),
    [("sm_scale=1 / math.sqrt(features)", "sm_scale=1.0", FULL), ("segment_ids=segments", "segment_ids=None", IN_PART)],
    ids=["scores without their scale", "real tokens attend to those that fill up"],
)
def test_the_comparison_notices(old: str, new: str, tokens: int) -> None:
    """Attention with the mistake is not within the bound."""
    q, k, v = queries_keys_values(tokens)
    broken = nkitools.pallas.run(mutant(kernel_module, old, new).flash_attention, q, k, v).outputs
    assert apart(broken, softmax_attention(q, k, v)) > ROUNDINGS * FLOAT32


def test_it_compiles_for_tpus() -> None:
    """Forward and backward, with tokens that do not fill their blocks, at a head size of 64."""
    x = zeros(np.float32, 2, 197, 128)
    assert_compiles(functools.partial(loss_and_gradients, heads=2), parameters(128, 256), x, x)
