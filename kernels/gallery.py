"""The example kernels as a list: arguments that fill several tiles, and what NumPy computes of them in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .references import (
    added,
    attention,
    attention_of_heads,
    column_sums,
    conv1d,
    conv2d,
    cross_entropy,
    cross_entropy_backward,
    depthwise_conv1d,
    depthwise_conv2d,
    flash_attention,
    flash_attention_backward,
    flat_giou,
    gather_rows,
    gathered,
    gelu_layer,
    giou,
    grouped_product,
    grouped_query_decode,
    integer_product,
    layer_norm,
    linear,
    max_pool2d,
    moe,
    of_halves,
    of_shards,
    packed_product,
    paged_attention,
    product,
    quantised,
    relu,
    relu_gradient,
    rms_norm,
    rotary,
    row_sums,
    rows_product,
    running_sum,
    scatter_add,
    softmax,
    state_space_scan,
    top_k,
    top_p,
)

Arguments = tuple[Any, ...]


class Example(NamedTuple):
    """One example: how it is called, and what is right."""

    name: str
    place: str  # module and function, within this folder; of a C++ operator, folder and name, within `cpp_ops`
    arguments: Callable[[np.random.Generator], Arguments]
    reference: Callable[..., Any]  # of the arguments
    within: float  # error beside the largest value of the reference
    chips: tuple[str, ...] = ("trn1", "trn2", "trn3")
    keywords: Mapping[str, Any] = MappingProxyType({})  # of the kernel
    programs: int = 0  # in the brackets of the launch; GpSimd cores of an operator
    ranks: int = 0  # `arguments` returns those of each rank
    is_first: bool = True  # of those that `nkitools demo` shows without --all

    @property
    def kernel(self) -> Any:
        """The kernel, imported when it is asked for."""
        module, _, function = self.place.partition(":")
        found = getattr(import_module(f"{__package__}.{module}"), function)
        return found[self.programs] if self.programs else found


def relative_error(outputs: Any, expected: Any) -> float:
    """Return the largest difference beside the largest value that is expected; infinite where the form differs."""
    found, wanted = _leaves(outputs), _leaves(expected)
    if [np.shape(each) for each in found] != [np.shape(each) for each in wanted]:
        return np.inf
    worst = 0.0
    for one, other in zip(found, wanted):
        wide = np.asarray(one).astype(np.float64)
        if np.isnan(wide).any():
            return np.inf
        worst = max(worst, float(np.abs(wide - other).max(initial=0) / np.abs(other).max(initial=1e-30)))
    return worst


def _leaves(values: Any) -> list[Any]:
    return [leaf for each in values for leaf in _leaves(each)] if isinstance(values, (list, tuple)) else [values]


# --- arguments -------------------------------------------------------------------------------------------------------


def normal(*shapes: tuple[int, ...], dtype: str = "float32") -> Callable[[np.random.Generator], Arguments]:
    """Normally distributed numbers of these shapes."""
    return lambda random: tuple(random.standard_normal(shape, np.float32).astype(dtype) for shape in shapes)


def boxes(*shape: int) -> Callable[[np.random.Generator], Arguments]:
    """Two batches of boxes in an image of 256 x 256."""

    def drawn(random: np.random.Generator) -> Arguments:
        def batch() -> Any:
            corners = random.integers(0, 256, (*shape, 2, 2))
            return np.concatenate((corners.min(axis=-2), corners.max(axis=-2)), axis=-1).astype(np.float32)

        return batch(), batch()

    return drawn


def _flat(drawn: Callable[[np.random.Generator], Arguments]) -> Callable[[np.random.Generator], Arguments]:
    return lambda random: tuple(each.reshape(len(each), -1) for each in drawn(random))


def _labelled(random: np.random.Generator) -> Arguments:
    return random.standard_normal((256, 3000), np.float32), random.integers(0, 3000, (256, 1)).astype(np.int32)


def _with_statistics(random: np.random.Generator) -> Arguments:
    logits, labels = _labelled(random)
    _, statistics = cross_entropy(logits, labels)
    return logits, labels, statistics.astype(np.float32), random.standard_normal((256, 1), np.float32)


def _with_output(random: np.random.Generator) -> Arguments:
    heads = normal((384, 64), (384, 64), (384, 64))(random)
    output, statistics = flash_attention(*heads)
    return (*heads, output.astype(np.float32), normal((384, 64))(random)[0], statistics.astype(np.float32))


def _embedding(random: np.random.Generator) -> Arguments:
    return random.standard_normal((4096, 96), np.float32), random.integers(0, 4096, 512).astype(np.int32)


def _updates(random: np.random.Generator) -> Arguments:
    indices = random.permutation(512)[:256].astype(np.int32)
    return *normal((512, 96))(random), indices, *normal((256, 96))(random)


def _experts(random: np.random.Generator) -> Arguments:
    tensors = normal((96, 64), (64, 8), (8, 64, 48), (8, 64, 48), (8, 48, 64))(random)
    return *tensors, 2


def _pages(random: np.random.Generator) -> Arguments:
    tables = np.array([random.permutation(16)[:6] for _ in range(4)], np.int32)
    tensors = normal((4, 64, 8), (16, 64, 32), (16, 32, 64))(random)
    return *tensors, tables, np.array([[6], [1], [3], [4]], np.int32)


def _angles(random: np.random.Generator) -> Arguments:
    angles = np.arange(512)[:, None] / 10_000 ** (np.arange(32)[None] / 32)
    return *normal((512, 4, 64))(random), np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _shards(random: np.random.Generator) -> Arguments:
    return tuple((*normal((128, 64), (128, 512))(random), 2) for _ in range(2))


def _halves(random: np.random.Generator) -> Arguments:
    return tuple((*normal((96, 128), (96, 300))(random), 2) for _ in range(2))


def _decaying(random: np.random.Generator) -> Arguments:
    return random.random((128, 3000), np.float32), random.standard_normal((128, 3000), np.float32)


def _hidden(random: np.random.Generator) -> Arguments:
    return normal((256, 1024), (1024,))(random)


def _groups(random: np.random.Generator) -> Arguments:
    tables = np.array([random.permutation(16)[:6] for _ in range(2)], np.int32)
    tensors = normal((2, 2, 64, 4), (16, 2, 64, 32), (16, 2, 32, 64))(random)
    return *tensors, tables, np.array([[6], [3]], np.int32)


def packed(weights: Any) -> Arguments:
    """A matrix as packed elements and scales of MXFP4."""
    from nkitools import mx

    return mx.quantize(mx.interleave(weights), "float4_e2m1fn_x4")


def _packed_weights(random: np.random.Generator) -> Arguments:
    return *normal((512, 256), dtype="bfloat16")(random), *packed(random.standard_normal((512, 512)))


def _next_token(random: np.random.Generator) -> Arguments:
    return 3 * random.standard_normal((256, 2048), np.float32), random.random((256, 1), np.float32), 0.8


def _top(random: np.random.Generator) -> Arguments:
    return *normal((256, 512))(random), 16


def _small_integers(random: np.random.Generator) -> Arguments:
    return tuple(random.integers(-128, 128, (256, 256)).astype(np.int8) for _ in range(2))


def _grouped(random: np.random.Generator) -> Arguments:
    x, weights = (random.integers(-128, 128, shape).astype(np.int8) for shape in ((384, 512), (3, 512, 512)))
    return x, weights, np.array([2, 0, 2], np.int32)


def _layer(random: np.random.Generator) -> Arguments:
    return *_HALVED(random), *normal((512,))(random)


def _parts(random: np.random.Generator) -> Arguments:
    return tuple((*normal((128, 256))(random), 4) for _ in range(4))


# --- the examples ----------------------------------------------------------------------------------------------------

_ONE_HEAD = normal(*[(512, 64)] * 3)
_ROWS = normal((512, 1024))
_FLAT_BOXES = _flat(boxes(512, 256))

NKI = (
    Example("matmul", "nki.matmul:matmul", normal((512, 512), (512, 1024)), product, 1e-5),
    Example(
        "blocked_matmul",
        "nki.blocked_matmul:blocked_matmul",
        normal((300, 400), (300, 1200)),
        product,
        1e-5,
        is_first=False,
    ),
    Example("linear_layer", "nki.linear_layer:linear", normal((256, 256), (256, 512), (1, 512)), linear, 1e-5),
    Example(
        "mxfp8_matmul",
        "nki.mxfp8_matmul:mxfp8_matmul",
        normal((512, 256), (512, 512), dtype="bfloat16"),
        product,
        0.1,
        ("trn3",),
    ),
    Example("softmax", "nki.softmax:softmax", _ROWS, softmax, 1e-5),
    Example("attention", "nki.attention:attention", _ONE_HEAD, attention, 1e-5),
    Example(
        "flash_attention",
        "nki.flash_attention:flash_attention",
        _ONE_HEAD,
        flash_attention,
        1e-5,
        keywords={"causal": True},
    ),
    Example(
        "flash_backward", "nki.flash_attention:flash_attention_backward", _with_output, flash_attention_backward, 1e-5
    ),
    Example("paged_attention", "nki.paged_attention:paged_attention", _pages, paged_attention, 1e-5),
    Example("rotary[2]", "nki.rotary:rotary", _angles, rotary, 1e-5, programs=2),
    Example("giou", "nki.giou:giou", boxes(1024, 256), giou, 1e-4),
    Example("cross_entropy[2]", "nki.cross_entropy:cross_entropy_isa", _labelled, cross_entropy, 1e-5, programs=2),
    Example(
        "cross_entropy_back",
        "nki.cross_entropy:cross_entropy_backward_isa",
        _with_statistics,
        cross_entropy_backward,
        1e-5,
        is_first=False,
    ),
    Example("rmsnorm_quant", "nki.rmsnorm_quant:rmsnorm_quant_isa", _hidden, quantised, 0.04),
    Example("moe", "nki.moe:moe", _experts, moe, 1e-4),
    Example("top_k", "nki.top_k:top_k", _top, top_k, 1e-6),
    Example("gather_rows", "nki.gather_scatter:gather_rows", _embedding, gather_rows, 0.0),
    Example("scatter_add", "nki.gather_scatter:scatter_add", _updates, scatter_add, 1e-5),
    Example(
        "depthwise_conv1d",
        "nki.depthwise_conv:depthwise_conv1d",
        normal((2, 128, 500), (128, 4)),
        depthwise_conv1d,
        1e-5,
        is_first=False,
    ),
    Example(
        "depthwise_conv2d",
        "nki.depthwise_conv:depthwise_conv2d",
        normal((2, 128, 28, 28), (128, 3, 3)),
        depthwise_conv2d,
        1e-5,
        is_first=False,
    ),
    Example(
        "layer_norm",
        "nki.layer_norm:layer_norm",
        normal((256, 1024), (1024,), (1024,)),
        layer_norm,
        1e-5,
        is_first=False,
    ),
    Example(
        "state_space_scan", "nki.state_space_scan:state_space_scan", _decaying, state_space_scan, 1e-5, is_first=False
    ),
    Example(
        "mxfp4_matmul",
        "nki.mxfp8_matmul:mxfp4_matmul",
        _packed_weights,
        packed_product,
        0.05,
        ("trn3",),
        is_first=False,
    ),
    Example(
        "grouped_query", "nki.paged_attention:grouped_query_decode", _groups, grouped_query_decode, 1e-5, is_first=False
    ),
    Example("top_p", "nki.top_p:top_p", _next_token, top_p, 1e-5, is_first=False),
    Example("conv2d", "nki.conv:conv2d", normal((1, 64, 16, 18), (128, 64, 3, 3)), conv2d, 1e-5, is_first=False),
    Example("conv1d", "nki.conv:conv1d", normal((2, 64, 600), (128, 64, 5)), conv1d, 1e-5, is_first=False),
    Example("max_pool2d", "nki.conv:max_pool2d", normal((2, 128, 33, 34)), max_pool2d, 0.0, is_first=False),
    Example(
        "reduce_scatter_matmul",
        "nki.reduce_scatter_matmul:reduce_scatter_matmul",
        _halves,
        of_halves,
        1e-5,
        ranks=2,
        is_first=False,
    ),
    Example("all_gather_matmul", "nki.all_gather_matmul:all_gather_matmul", _shards, of_shards, 1e-5, ranks=2),
    Example("ring_all_gather", "nki.ring_all_gather:ring_all_gather", _parts, gathered, 0.0, ranks=4, is_first=False),
)
"""Kernels of the modern dialect."""

LEGACY = (
    Example("giou", "nki.legacy.giou:giou", _FLAT_BOXES, flat_giou, 1e-4),
    Example("conv2d", "nki.legacy.conv2d:conv2d", normal((1, 128, 34, 34), (128, 128, 3, 3)), conv2d, 1e-5),
    Example("matmul", "nki.legacy.matmul:matmul", normal((512, 512), (512, 1024)), product, 1e-5, is_first=False),
    Example("softmax", "nki.legacy.softmax:softmax", _ROWS, softmax, 1e-5, is_first=False),
    Example("relu", "nki.legacy.relu:relu", _ROWS, relu, 0.0, is_first=False),
    Example("row_sums", "nki.legacy.sum_reduction:row_sums", _ROWS, row_sums, 1e-5, is_first=False),
    Example("column_sums", "nki.legacy.sum_reduction:column_sums", _ROWS, column_sums, 1e-5, is_first=False),
    Example("transpose", "nki.legacy.transpose:transpose", _ROWS, np.transpose, 0.0, is_first=False),
    Example(
        "vector_add", "nki.legacy.vector_add:vector_add", normal((200_000,), (200_000,)), added, 1e-6, is_first=False
    ),
)
"""Kernels of the legacy dialect, `neuronxcc.nki`."""


def _relu(stage: str, cores: int) -> Iterator[Example]:
    elements, place = (64, 250), f"relu/{stage}:relu"
    of_one = partial(Example, programs=cores, within=0.0, is_first=False)
    yield of_one(f"relu_{stage}", f"{place}_forward", normal(elements), relu)
    yield of_one(f"relu_{stage}_back", f"{place}_backward", normal(elements, elements), relu_gradient)


OPERATORS = (
    Example("giou", "giou:giou", boxes(64, 256), giou, 1e-4, programs=8),
    *_relu("element", 1),
    *_relu("tcm", 1),
    *_relu("multicore", 8),
)
"""Custom C++ operators, for GpSimd cores; they need a compiler of C++."""

_tpu = partial(Example, chips=("v5e", "v6e"))  # libtpu 0.0.42 aborts where it is asked for the profile on a tpu7x
_any_tpu = partial(Example, chips=("v5e", "v6e", "tpu7x"))
_HALVED = normal((256, 256), (256, 512), dtype="bfloat16")
_HEADS = normal(*[(1, 2, 256, 64)] * 3)
_ROUNDED = 2.0**-8 + 1e-5  # rounded once to bfloat16, after sums in float32

PALLAS = (
    _tpu("giou", "pallas.giou:giou", boxes(64, 256), giou, 1e-4),
    _tpu("rmsnorm", "pallas.rmsnorm:rmsnorm", normal((64, 256), (256,)), rms_norm, 1e-5),
    _any_tpu("running_sum", "pallas.running_sum:running_sum", normal((256, 128)), running_sum, 1e-5),
    _any_tpu("matmul", "pallas.matmul:matmul", _HALVED, rows_product, _ROUNDED, is_first=False),
    _any_tpu("matmul_int8", "pallas.matmul:matmul_int8", _small_integers, integer_product, 0.0, is_first=False),
    _any_tpu("linear", "pallas.matmul:linear", _layer, gelu_layer, _ROUNDED, is_first=False),
    _tpu(
        "grouped_matmul_int8",
        "pallas.grouped_matmul:grouped_matmul_int8",
        _grouped,
        grouped_product,
        0.0,
        is_first=False,
    ),
    _tpu(
        "flash_attention", "pallas.vision_transformer:flash_attention", _HEADS, attention_of_heads, 1e-5, is_first=False
    ),
)
"""Pallas kernels for TPUs; they need JAX."""
