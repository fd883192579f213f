"""Arguments, results and intermediates of the right kernels, in NumPy: at most two intermediates for each kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

TILE = 128


@dataclass(frozen=True)
class Case:
    """A right kernel: its arguments, the function that returns its result, and those of intermediates by name."""

    inputs: Callable[[], tuple[Any, ...]]
    reference: Callable[..., Any]
    expect: dict[str, Callable[..., Any]]


def _normal(*shapes: tuple[int, ...]) -> Callable[[], tuple[Any, ...]]:
    def made() -> tuple[Any, ...]:
        rng = np.random.default_rng(5)
        return tuple(rng.standard_normal(shape).astype(np.float32) for shape in shapes)

    return made


def _alike(shape: tuple[int, ...], row: int) -> Callable[[], tuple[Any, ...]]:
    """Two arrays, the second with 128 equal rows of so many elements."""

    def made() -> tuple[Any, ...]:
        rng = np.random.default_rng(6)
        second = np.repeat(rng.uniform(0.5, 1.5, (1, row)), 128, axis=0)
        return rng.standard_normal(shape).astype(np.float32), second.astype(np.float32)

    return made


def _softmax_powers(logits: Any, *, i: int) -> Any:
    tile = logits[i * TILE : (i + 1) * TILE]
    return np.exp(tile - tile.max(axis=1, keepdims=True))


def _rms_scaled(x: Any, weight: Any, *, i: int) -> Any:
    tile = x[i * TILE : (i + 1) * TILE]
    return tile / np.sqrt((tile**2).mean(axis=1, keepdims=True) + 1e-5)


def _stencil_both(x: Any, weights: Any, *, start: int) -> Any:
    before = np.pad(x, ((0, 0), (1, 0)))[:, start : start + TILE]
    return weights[:, 0:1] * before + weights[:, 1:2] * x[:, start : start + TILE]


def _stencil(x: Any, weights: Any) -> Any:
    wide = np.pad(x, ((0, 0), (1, 1)))
    return weights[:, 0:1] * wide[:, :-2] + weights[:, 1:2] * wide[:, 1:-1] + weights[:, 2:3] * wide[:, 2:]


def _attention(query_t: Any, key_t: Any, value: Any, n: int) -> tuple[Any, Any]:
    """The sums of weights and of weighted values over blocks up to ``n``, by the maximum so far."""
    stop = (n + 1) * TILE
    scores = query_t.T @ key_t[:, :stop] / 8
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights.sum(axis=1, keepdims=True), weights @ value[:stop]


def _flash(query_t: Any, key_t: Any, value: Any) -> Any:
    total, sums = _attention(query_t, key_t, value, key_t.shape[1] // TILE - 1)
    return sums / total


def _scaled_until(left_t: Any, right: Any, scales: Any, *, k: int) -> Any:
    return sum(scales[:, each : each + 1] * (left_t[each].T @ right[each]) for each in range(k + 1))


def _running(x: Any, decay: Any) -> Any:
    found, state = np.zeros(x.shape, x.dtype), np.zeros_like(x[:, :1])
    for t in range(x.shape[1]):
        state = decay * state + x[:, t : t + 1]
        found[:, t : t + 1] = state
    return found


CASES = {
    "product": Case(
        _normal((320, 256), (320, 256)),
        lambda left_t, right: left_t.T @ right,
        {"tile": lambda left_t, right, *, m, n: left_t[:, m : m + TILE].T @ right[:, n : n + TILE]},
    ),
    "product_through_sbuf": Case(
        _normal((384, 128), (384, 256)),
        lambda left_t, right: left_t.T @ right,
        {
            "part": lambda left_t, right, *, k, n: left_t[k : k + TILE].T @ right[k : k + TILE, n : n + TILE],
            "total": lambda left_t, right, *, k, n: left_t[: k + TILE].T @ right[: k + TILE, n : n + TILE],
        },
    ),
    "softmax": Case(
        _normal((256, 384)),
        lambda logits: np.concatenate(
            [(each := _softmax_powers(logits, i=i)) / each.sum(axis=1, keepdims=True) for i in range(2)]
        ),
        {
            "powers": _softmax_powers,
            "inverse": lambda logits, *, i: 1 / _softmax_powers(logits, i=i).sum(axis=1, keepdims=True),
        },
    ),
    "rms_norm": Case(
        _alike((256, 256), 256),
        lambda x, weight: np.concatenate([_rms_scaled(x, weight, i=i) * weight for i in range(2)]),
        {
            "mean": lambda x, weight, *, i: (x[i * TILE : (i + 1) * TILE] ** 2).mean(axis=1, keepdims=True) + 1e-5,
            "scaled": _rms_scaled,
        },
    ),
    "shares": Case(
        lambda: (np.random.default_rng(7).uniform(0.5, 1.5, (256, 16, 16)).astype(np.float32),),
        lambda x: x / x.sum(axis=2, keepdims=True),
        {"total": lambda x, *, i: x[i * TILE : (i + 1) * TILE].sum(axis=2)},
    ),
    "stencil": Case(_alike((128, 384), 3), _stencil, {"both": _stencil_both}),
    "flash": Case(
        _normal((64, 128), (64, 384), (384, 64)),
        _flash,
        {
            "total": lambda query_t, key_t, value, *, n: _attention(query_t, key_t, value, n)[0],
            "sums": lambda query_t, key_t, value, *, n: _attention(query_t, key_t, value, n)[1],
        },
    ),
    "scaled_product": Case(
        _normal((3, 128, 128), (3, 128, 128), (128, 3)),
        lambda left_t, right, scales: _scaled_until(left_t, right, scales, k=2),
        {
            "scaled": lambda left_t, right, scales, *, k: scales[:, k : k + 1] * (left_t[k].T @ right[k]),
            "total": _scaled_until,
        },
    ),
    "turned": Case(_normal((256, 256)), lambda x: x.T, {"copied": lambda x, *, i, j: x[i : i + TILE, j : j + TILE].T}),
    "running": Case(
        lambda: (_normal((128, 384))()[0], np.random.default_rng(8).uniform(0.5, 0.95, (128, 1)).astype(np.float32)),
        _running,
        {"carry": lambda x, decay, *, t: _running(x, decay)[:, t + TILE - 1 : t + TILE]},
    ),
    "distances": Case(
        _alike((256, 320), 320),
        lambda x, centre: ((x - centre[:1]) ** 2).sum(axis=1, keepdims=True),
        {
            "total": lambda x, centre, *, m, c: (
                (x[m * TILE : (m + 1) * TILE, : (c + 1) * TILE] - centre[:, : (c + 1) * TILE]) ** 2
            ).sum(axis=1, keepdims=True)
        },
    ),
}
