"""Every kernel of ``kernels/nki``, each with arguments drawn at random: sizes that fill no tile, awkward values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import nkitools

nkitools.install_stand_in(prefer="builtin")

import nki.language as nl  # noqa: E402

from kernels.nki import (  # noqa: E402
    attention,
    cross_entropy,
    depthwise_conv,
    flash_attention,
    gather_scatter,
    giou,
    linear_layer,
    matmul,
    moe,
    mxfp8_matmul,
    paged_attention,
    rmsnorm_quant,
    rotary,
    softmax,
    top_k,
)
from kernels.nki.legacy import conv2d as legacy_conv2d  # noqa: E402
from kernels.nki.legacy import giou as legacy_giou  # noqa: E402
from kernels.nki.legacy import matmul as legacy_matmul  # noqa: E402
from kernels.nki.legacy import relu as legacy_relu  # noqa: E402
from kernels.nki.legacy import softmax as legacy_softmax  # noqa: E402
from kernels.nki.legacy import sum_reduction as legacy_sums  # noqa: E402
from kernels.nki.legacy import transpose as legacy_transpose  # noqa: E402
from kernels.nki.legacy import vector_add as legacy_add  # noqa: E402

BFLOAT16 = ml_dtypes.bfloat16
AWKWARD = np.array([0.0, -0.0, 1e-40, -1e-38, 3e38, -3e38, np.inf, -np.inf, np.nan, 1.0, -1.0], np.float32)


class Call(NamedTuple):
    """A kernel, and its arguments of one form: shapes of float32 arrays, and what makes other arguments."""

    name: str
    kernel: Any
    shapes: tuple[Any, ...]
    settings: Mapping[str, Any] = MappingProxyType({})
    why_not: str = ""  # a part of the reason why it is not replayed

    def arguments(self, random: np.random.Generator, *, awkward: bool = False) -> tuple[Any, ...]:
        """Return arguments; ``awkward``: a few of the floats are zeros, subnormal, very large, infinite or NaN."""
        return tuple(each(random) if callable(each) else floats(random, *each, awkward=awkward) for each in self.shapes)


def floats(random: np.random.Generator, *shape: int, awkward: bool = False) -> Any:
    """Return normal numbers in float32, with some awkward ones among them."""
    values = random.standard_normal(shape).astype(np.float32)
    if awkward:
        chosen = random.random(shape) < 4 / values.size
        values[chosen] = random.choice(AWKWARD[: random.integers(1, AWKWARD.size + 1)], np.count_nonzero(chosen))
    return values


def integers(high: int, *shape: int, dtype: Any = np.int32) -> Callable[[np.random.Generator], Any]:
    """Return what draws integers below ``high``."""
    return lambda random: random.integers(0, high, shape).astype(dtype)


def different(high: int, count: int) -> Callable[[np.random.Generator], Any]:
    """Return what draws integers below ``high``, none of them twice."""
    return lambda random: random.permutation(high)[:count].astype(np.int32)


def narrow(*shape: int) -> Callable[[np.random.Generator], Any]:
    """Return what draws bfloat16 numbers."""
    return lambda random: random.standard_normal(shape).astype(BFLOAT16)


def boxes(*shape: int) -> Callable[[np.random.Generator], Any]:
    """Return what draws boxes: two corners, the second one beyond the first."""

    def drawn(random: np.random.Generator) -> Any:
        near = random.uniform(0, 100, (*shape, 2))
        return np.concatenate([near, near + random.uniform(1, 50, (*shape, 2))], axis=-1).astype(np.float32)

    return drawn


def flat_boxes(rows: int, count: int) -> Callable[[np.random.Generator], Any]:
    """Return what draws rows of boxes."""
    return lambda random: boxes(rows, count)(random).reshape(rows, -1)


def number(value: Any) -> Callable[[np.random.Generator], Any]:
    """Return what gives the same number each time."""
    return lambda random: value


def calls() -> Iterator[Call]:
    """Yield the calls."""
    labels, rows = integers(600, 200, 1), (200, 600)
    yield Call("matmul", matmul.matmul, ((200, 130), (200, 600)))
    yield Call("softmax", softmax.softmax, ((300, 70),))
    yield Call("attention", attention.attention, ((200, 64),) * 3)
    yield Call("giou", giou.giou, (boxes(130, 40), boxes(130, 40)))
    yield Call("linear", linear_layer.linear, ((200, 130), (200, 600), (1, 600)))
    yield Call("linear of a row", linear_layer.linear, ((64, 1), (64, 9), (1, 9)), {"activation": nl.gelu})
    for name, kernel in (("nl", cross_entropy.cross_entropy), ("isa", cross_entropy.cross_entropy_isa)):
        yield Call(f"cross_entropy {name}", kernel, (rows, labels))
        yield Call(f"cross_entropy {name} on two cores", kernel[2], (rows, labels))
    for name, kernel in (
        ("nl", cross_entropy.cross_entropy_backward),
        ("isa", cross_entropy.cross_entropy_backward_isa),
    ):
        yield Call(f"cross_entropy_backward {name}", kernel, (rows, labels, (200, 1), (200, 1)))
    yield Call("depthwise_conv1d", depthwise_conv.depthwise_conv1d, ((2, 130, 50), (130, 4)))
    yield Call("depthwise_conv2d", depthwise_conv.depthwise_conv2d, ((2, 9, 11, 12), (9, 3, 3)))
    heads = ((200, 40),) * 3
    yield Call("flash_attention", flash_attention.flash_attention, heads)
    yield Call("flash_attention causal", flash_attention.flash_attention, heads, {"causal": True})
    backward = (*heads, (200, 40), (200, 40), (200, 1))
    yield Call("flash_attention_backward", flash_attention.flash_attention_backward, backward)
    yield Call("gather_rows", gather_scatter.gather_rows, ((90, 70), integers(90, 50)))
    yield Call(
        "scatter_add", gather_scatter.scatter_add, ((90, 70), different(90, 50), (50, 70)), why_not="data choose"
    )
    yield Call("moe", moe.moe, ((60, 32), (32, 8), (8, 32, 24), (8, 32, 24), (8, 24, 32), number(2)), why_not="data")
    mx = {"chip": "trn3"}
    yield Call("mxfp8_matmul", mxfp8_matmul.mxfp8_matmul, (narrow(256, 130), narrow(256, 520)), mx)
    pages = (integers(6, 2, 3), number(np.array([[3], [2]], np.int32)))
    queries = ((2, 64, 8), (6, 64, 32), (6, 32, 64))
    yield Call("paged_attention", paged_attention.paged_attention, (*queries, *pages), why_not="register")
    for name, kernel in (("nl", rmsnorm_quant.rmsnorm_quant), ("isa", rmsnorm_quant.rmsnorm_quant_isa)):
        yield Call(f"rmsnorm_quant {name}", kernel, ((200, 300), (300,)))
    for name, kernel in (("nl", rotary.rotary), ("isa", rotary.rotary_isa)):
        yield Call(f"rotary {name}", kernel, ((130, 3, 16), (130, 8), (130, 8)))
        yield Call(f"rotary {name} interleaved", kernel[2], ((130, 3, 16), (130, 8), (130, 8)), {"interleaved": True})
    yield Call("top_k", top_k.top_k, ((130, 50), number(9)))
    yield Call("legacy conv2d", legacy_conv2d.conv2d, ((1, 40, 9, 10), (20, 40, 3, 3)))
    yield Call("legacy giou", legacy_giou.giou, (flat_boxes(128, 256), flat_boxes(128, 256)))
    odd = (flat_boxes(130, 300), flat_boxes(130, 300))
    yield Call("legacy giou of other sizes", legacy_giou.giou, odd, why_not="it prints a tensor with elements")
    yield Call("legacy matmul", legacy_matmul.matmul, ((256, 128), (256, 512)))
    yield Call("legacy relu", legacy_relu.relu, ((130, 70),))
    yield Call("legacy softmax", legacy_softmax.softmax, ((130, 70),))
    yield Call("legacy row_sums", legacy_sums.row_sums, ((130, 70),))
    yield Call("legacy column_sums", legacy_sums.column_sums, ((130, 70),))
    yield Call("legacy transpose", legacy_transpose.transpose, ((130, 70),))
    yield Call("legacy vector_add", legacy_add.vector_add, ((70_000,), (70_000,)))


CALLS = list(calls())
