"""The workloads: a kernel, its input, and the same mathematics in NumPy, untiled and in the kernel's tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks import tiles


@dataclass(frozen=True)
class Workload:
    """``kernel(*inputs)`` in the simulator, and what it is compared with.

    ``plain`` and ``tiles`` take the same inputs; all three results are equal within ``tolerance``.
    """

    name: str
    kernel: Any
    inputs: tuple[Any, ...]
    plain: Callable[..., Any]
    tiles: Callable[..., Any]
    tolerance: float
    is_goal: bool = False  # one of those whose mean is the goal
    waits_for_memory: bool = False  # and computes nothing, so that its times are those of the caches' state


def _gather(table: Any, indices: Any) -> Any:
    return table[indices]


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _attention(q: Any, k: Any, v: Any) -> Any:
    return _softmax(q @ k.T * np.float32(q.shape[1] ** -0.5)) @ v


def _giou(p: Any, t: Any) -> Any:
    epsilon, zero = np.float32(1e-5), np.float32(0)
    first = (p[..., 2] - p[..., 0]) * (p[..., 3] - p[..., 1])
    second = (t[..., 2] - t[..., 0]) * (t[..., 3] - t[..., 1])
    width = np.maximum(np.minimum(p[..., 2], t[..., 2]) - np.maximum(p[..., 0], t[..., 0]), zero)
    height = np.maximum(np.minimum(p[..., 3], t[..., 3]) - np.maximum(p[..., 1], t[..., 1]), zero)
    inner = width * height
    union = first + second - inner
    hull = np.maximum(np.maximum(p[..., 2], t[..., 2]) - np.minimum(p[..., 0], t[..., 0]), zero) * np.maximum(
        np.maximum(p[..., 3], t[..., 3]) - np.minimum(p[..., 1], t[..., 1]), zero
    )
    return inner / np.maximum(union, epsilon) - (hull - union) / np.maximum(hull, epsilon)


def _rows_of_boxes(p: Any, t: Any) -> Any:
    return _giou(p.reshape(p.shape[0], -1, 4), t.reshape(t.shape[0], -1, 4))


def _conv2d(images: Any, filters: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(images, filters.shape[2:], axis=(2, 3))
    return np.tensordot(windows, filters, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2)


def _wide_softmax(x: Any) -> Any:
    return _softmax(x.astype(np.float32)).astype(x.dtype)


def _rotary(embedding: Any, cosine: Any, sine: Any) -> Any:
    x, y = np.split(embedding, 2, axis=2)
    c, s = cosine[:, None], sine[:, None]
    return np.concatenate((x * c - y * s, y * c + x * s), axis=2)


def _boxes(random: np.random.Generator) -> Any:
    near = random.uniform(0, 200, (1024, 1024, 2))
    return np.concatenate((near, near + random.uniform(1, 55, (1024, 1024, 2))), axis=2).astype(np.float32)


def workloads() -> list[Workload]:
    """The workloads, of which four make the speed goal; call after the stand-in is installed."""
    from kernels.nki.attention import attention
    from kernels.nki.gather_scatter import gather_rows
    from kernels.nki.giou import giou
    from kernels.nki.legacy.conv2d import conv2d
    from kernels.nki.legacy.giou import giou as legacy_giou
    from kernels.nki.matmul import matmul
    from kernels.nki.rotary import rotary_isa
    from kernels.nki.softmax import softmax

    random = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return random.standard_normal(shape, np.float32)

    def narrow(array: Any) -> Any:
        return array.astype(ml_dtypes.bfloat16)

    def product(a: Any, b: Any) -> Any:
        return a.astype(np.float32, copy=False).T @ b.astype(np.float32, copy=False)

    square, rows = (normal(1024, 1024), normal(1024, 1024)), (normal(1024, 128), normal(1024, 128), normal(1024, 128))
    logits, boxes = normal(4096, 2048), (_boxes(random), _boxes(random))
    flat = tuple(each.reshape(1024, -1) for each in boxes)
    images = (normal(2, 128, 34, 34), normal(128, 128, 3, 3))
    table = (normal(8192, 512), random.integers(0, 8192, 4096).astype(np.int32))
    turned = (normal(2048, 16, 128), normal(2048, 64), normal(2048, 64))
    half = tuple(map(narrow, square))
    return [
        Workload("matmul 1024x1024x1024", matmul, square, product, tiles.matmul, 1e-3, is_goal=True),
        Workload("softmax 4096x2048", softmax, (logits,), _softmax, tiles.softmax, 1e-6, is_goal=True),
        Workload("attention 1024x128", attention, rows, _attention, tiles.attention, 1e-5, is_goal=True),
        Workload("GIoU 1024x1024 boxes", giou, boxes, _giou, tiles.giou, 1e-5, is_goal=True),
        Workload("matmul 1024 in bfloat16", matmul, half, product, tiles.matmul, 1e-3),
        Workload("softmax in bfloat16", softmax, (narrow(logits),), _wide_softmax, tiles.narrow_softmax, 1e-2),
        Workload("gather 4096 of 8192 rows", gather_rows, table, _gather, tiles.gather, 0, waits_for_memory=True),
        Workload("rotary 2048, two cores", rotary_isa[2], turned, _rotary, tiles.rotary, 1e-5),
        Workload("legacy GIoU 1024x1024", legacy_giou, flat, _rows_of_boxes, tiles.legacy_giou, 1e-5),
        Workload("legacy conv 2x128x34x34", conv2d, images, _conv2d, tiles.conv2d, 1e-3),
    ]
