"""A block of a vision transformer with flash attention, JAX's own Pallas TPU kernel, forward and backward.

The block is the usual pre-norm one (Dosovitskiy et al., 2021): attention, then a two-layer perceptron, each on the
normalised activations and added to what came in. Attention is a parameter, so the kernel can be compared with plain
JAX in place, gradients included: `jax.experimental.pallas.ops.tpu.flash_attention` brings kernels for the backward
pass.

That kernel works in blocks of 128 tokens. Images seldom have a multiple of 128 patches (224 x 224 pixels in patches of
16 are 196), so the tokens are filled up, and segment ids keep the real ones from attending to the others.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu import flash_attention as pallas_flash

Attention = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]

TOKEN_BLOCK = 128


class BlockParameters(NamedTuple):
    """The weights of one block of width D with an inner width H, all float32."""

    norm1_scale: jax.Array  # [D]
    norm1_bias: jax.Array  # [D]
    qkv: jax.Array  # [D, 3 D]: queries, keys, values
    projection: jax.Array  # [D, D]
    norm2_scale: jax.Array  # [D]
    norm2_bias: jax.Array  # [D]
    expand: jax.Array  # [D, H]
    expand_bias: jax.Array  # [H]
    contract: jax.Array  # [H, D]
    contract_bias: jax.Array  # [D]


def flash_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """softmax(q k^T / sqrt(d)) v without the matrix of scores in HBM.

    Args:
        q, k, v: float32 or bfloat16 [batch, heads, tokens, d], any number of tokens.

    Returns:
        The same shape and dtype.
    """
    batch, _, tokens, features = q.shape
    extra = -tokens % TOKEN_BLOCK
    segments = None
    if extra:
        q, k, v = (jnp.pad(array, ((0, 0), (0, 0), (0, extra), (0, 0))) for array in (q, k, v))
        real = jnp.broadcast_to(jnp.arange(tokens + extra) < tokens, (batch, tokens + extra)).astype(jnp.int32)
        segments = pallas_flash.SegmentIds(real, real)
    attended = pallas_flash.flash_attention(q, k, v, segment_ids=segments, sm_scale=1 / math.sqrt(features))
    return attended[:, :, :tokens]


def plain_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """The same as `flash_attention` in plain JAX, with all scores at once."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, axis=-1), v)


@functools.partial(jax.jit, static_argnames=("heads", "attention"))
def transformer_block(
    parameters: BlockParameters, x: jax.Array, *, heads: int, attention: Attention = flash_attention
) -> jax.Array:
    """One block.

    Args:
        parameters: the weights.
        x: float32 [batch, tokens, D].
        heads: a divisor of D.
        attention: `flash_attention` or `plain_attention`.

    Returns:
        float32 [batch, tokens, D].
    """
    batch, tokens, width = x.shape
    if width % heads:
        raise ValueError(f"{heads} heads do not divide the width {width}")
    normalised = _layer_norm(x, parameters.norm1_scale, parameters.norm1_bias)
    qkv = (normalised @ parameters.qkv).reshape(batch, tokens, 3, heads, width // heads)
    q, k, v = qkv.transpose(2, 0, 3, 1, 4)
    attended = attention(q, k, v).transpose(0, 2, 1, 3).reshape(batch, tokens, width)
    x += attended @ parameters.projection

    normalised = _layer_norm(x, parameters.norm2_scale, parameters.norm2_bias)
    hidden = jax.nn.gelu(normalised @ parameters.expand + parameters.expand_bias)
    return x + hidden @ parameters.contract + parameters.contract_bias


@functools.partial(jax.jit, static_argnames=("heads", "attention"))
def loss_and_gradients(
    parameters: BlockParameters, x: jax.Array, wanted: jax.Array, *, heads: int, attention: Attention = flash_attention
) -> tuple[jax.Array, BlockParameters]:
    """The mean squared distance of the block's output from ``wanted``, and its gradient by every weight."""

    def loss(parameters: BlockParameters) -> jax.Array:
        return jnp.mean((transformer_block(parameters, x, heads=heads, attention=attention) - wanted) ** 2)

    return jax.value_and_grad(loss)(parameters)


def _layer_norm(x: jax.Array, scale: jax.Array, bias: jax.Array) -> jax.Array:
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * scale + bias
