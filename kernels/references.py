"""What NumPy computes of the example kernels' arguments, in float64."""

from __future__ import annotations

from typing import Any

import numpy as np


def _wide(*arrays: Any) -> list[Any]:
    return [np.asarray(each).astype(np.float64) for each in arrays]


def product(left_transposed: Any, right: Any) -> Any:
    """The matrix product whose left operand comes transposed."""
    left, wide = _wide(left_transposed, right)
    return left.T @ wide


def softmax(logits: Any) -> Any:
    """Softmax of each row."""
    (wide,) = _wide(logits)
    powers = np.exp(wide - wide.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def attention(query: Any, key: Any, value: Any) -> Any:
    """Attention of one head."""
    q, k, v = _wide(query, key, value)
    return softmax(q @ k.T / np.sqrt(q.shape[1])) @ v


def flash_attention(query: Any, key: Any, value: Any, causal: bool = False) -> Any:
    """Attention of one head, and the log-sum-exp of its scores."""
    q, k, v = _wide(query, key, value)
    scores = q @ k.T / np.sqrt(q.shape[1])
    if causal:
        scores = np.where(np.tri(*scores.shape, dtype=np.bool_), scores, -np.inf)
    top = scores.max(axis=1, keepdims=True)
    return softmax(scores) @ v, top + np.log(np.exp(scores - top).sum(axis=1, keepdims=True))


def flash_attention_backward(query: Any, key: Any, value: Any, _: Any, gradient: Any, __: Any) -> Any:
    """The gradients of attention by its derivative."""
    q, k, v, g = _wide(query, key, value, gradient)
    weights = softmax(q @ k.T / np.sqrt(q.shape[1]))
    inner = g @ v.T
    scores = weights * (inner - (inner * weights).sum(axis=1, keepdims=True)) / np.sqrt(q.shape[1])
    return scores @ k, scores.T @ q, weights.T @ g


def giou(preds: Any, targets: Any) -> Any:
    """Generalized intersection over union."""
    first, second = _wide(preds, targets)
    sizes = [np.maximum(each[..., 2:] - each[..., :2], 0).prod(axis=-1) for each in (first, second)]
    low, high = np.maximum(first[..., :2], second[..., :2]), np.minimum(first[..., 2:], second[..., 2:])
    inner = np.maximum(high - low, 0).prod(axis=-1)
    low, high = np.minimum(first[..., :2], second[..., :2]), np.maximum(first[..., 2:], second[..., 2:])
    outer = np.maximum(high - low, 0).prod(axis=-1)
    union = sizes[0] + sizes[1] - inner
    return inner / np.maximum(union, 1e-5) - (outer - union) / np.maximum(outer, 1e-5)


def flat_giou(preds: Any, targets: Any) -> Any:
    """The same of boxes that stand in one row."""
    return giou(*(each.reshape(len(each), -1, 4) for each in (preds, targets)))


def cross_entropy(logits: Any, labels: Any) -> Any:
    """The losses, and the log-sum-exp of each row."""
    (wide,) = _wide(logits)
    top = wide.max(axis=1, keepdims=True)
    total = top + np.log(np.exp(wide - top).sum(axis=1, keepdims=True))
    return total - np.take_along_axis(wide, labels, axis=1), total


def cross_entropy_backward(logits: Any, labels: Any, _: Any, gradient: Any) -> Any:
    """The gradient of the losses."""
    one_hot = np.arange(logits.shape[1])[None] == labels
    return (softmax(logits) - one_hot) * gradient.astype(np.float64)


def depthwise_conv1d(data: Any, weights: Any) -> Any:
    """Each channel with its filter, zeros before the start."""
    wide, taps = _wide(data, weights)
    padded = np.pad(wide, ((0, 0), (0, 0), (taps.shape[1] - 1, 0)))
    return np.einsum("bctk,ck->bct", np.lib.stride_tricks.sliding_window_view(padded, taps.shape[1], axis=2), taps)


def depthwise_conv2d(data: Any, weights: Any) -> Any:
    """Each channel with its filter, zeros around."""
    wide, taps = _wide(data, weights)
    height, width = taps.shape[1:]
    padded = np.pad(wide, ((0, 0), (0, 0), (height // 2,) * 2, (width // 2,) * 2))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), axis=(2, 3))
    return np.einsum("bcyxij,cij->bcyx", windows, taps)


def conv2d(images: Any, filters: Any) -> Any:
    """A convolution without padding, as neural networks mean it."""
    wide, taps = _wide(images, filters)
    windows = np.lib.stride_tricks.sliding_window_view(wide, taps.shape[2:], axis=(2, 3))
    return np.einsum("bcyxij,ocij->boyx", windows, taps)


def scatter_add(table: Any, indices: Any, updates: Any) -> Any:
    """Rows added to rows of a table."""
    total, rows = _wide(table, updates)
    np.add.at(total, indices, rows)
    return total


def moe(tokens: Any, router: Any, gate: Any, up: Any, down: Any, k: int) -> Any:
    """Each token through k of the gated MLPs."""
    x, by, opening, raising, falling = _wide(tokens, router, gate, up, down)
    logits = x @ by
    chosen = np.argsort(-logits, axis=1)[:, :k]
    shares = softmax(np.take_along_axis(logits, chosen, axis=1))
    total = np.zeros_like(x)
    for token, (experts, weights) in enumerate(zip(chosen, shares)):
        for expert, weight in zip(experts, weights):
            open_ = x[token] @ opening[expert]
            total[token] += weight * (open_ / (1 + np.exp(-open_)) * (x[token] @ raising[expert])) @ falling[expert]
    return total


def paged_attention(queries: Any, keys: Any, values: Any, tables: Any, counts: Any) -> Any:
    """Attention of each sequence over the pages of its table."""
    found = []
    for query, table, (count,) in zip(queries.astype(np.float64), tables, counts):
        pages = table[:count]
        found.append(softmax(query.T @ np.hstack(list(keys[pages]))) @ np.vstack(list(values[pages])))
    return np.array(found)


def grouped_query_decode(queries: Any, keys: Any, values: Any, tables: Any, counts: Any) -> Any:
    """The same for each head of the cache, which serves a group of queries."""
    heads = range(keys.shape[1])
    of_heads = [paged_attention(queries[:, h], keys[:, h], values[:, h], tables, counts) for h in heads]
    return np.stack(of_heads, axis=1)


def packed_product(left_transposed: Any, weights: Any, scales: Any) -> Any:
    """The product with weights of MXFP4, whose groups are 8 rows of packed elements; the left operand unrounded."""
    codes = weights.view(np.uint16)[..., None] >> np.array([0, 4, 8, 12], np.uint16) & 15
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])[codes & 7] * np.where(codes & 8, -1, 1)
    exponents = np.repeat(scales.view(np.uint8).astype(np.int64) - 127, 8, axis=0)
    wide = numbers * 2.0 ** exponents[..., None]
    parts = [wide[start : start + 128].transpose(2, 0, 1) for start in range(0, len(wide), 128)]
    return product(left_transposed, np.concatenate([part.reshape(-1, part.shape[2]) for part in parts]))


def top_p(logits: Any, drawn: Any, p: float) -> Any:
    """The token that the number draws from the nucleus, and the 64 largest probabilities, 0 where not kept."""
    every = softmax(logits)
    order = np.argsort(-every, axis=1, kind="stable")[:, :64]
    best = np.take_along_axis(every, order, axis=1)
    kept = np.where(np.cumsum(best, axis=1) - best < p, best, 0)
    kept /= kept.sum(axis=1, keepdims=True)
    places = (np.cumsum(kept, axis=1) <= drawn).sum(axis=1, keepdims=True)
    last = (kept > 0).sum(axis=1, keepdims=True) - 1
    return np.take_along_axis(order, np.minimum(places, last), axis=1), kept


def rms_norm(hidden: Any, weight: Any) -> Any:
    """Rows over the root of their mean square."""
    x, w = _wide(hidden, weight)
    return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + 1e-6) * w


def layer_norm(hidden: Any, weight: Any, bias: Any) -> Any:
    """Rows less their mean, over the root of their variance."""
    x, w, b = _wide(hidden, weight, bias)
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * w + b


def state_space_scan(decay: Any, drive: Any) -> Any:
    """States that decay and are driven, one step after the other."""
    a, b = _wide(decay, drive)
    states = np.zeros_like(b)
    last = np.zeros(len(b))
    for step in range(b.shape[1]):
        last = states[:, step] = a[:, step] * last + b[:, step]
    return states


def conv1d(data: Any, filters: Any) -> Any:
    """A convolution without padding, as neural networks mean it."""
    wide, taps = _wide(data, filters)
    windows = np.lib.stride_tricks.sliding_window_view(wide, taps.shape[2], axis=2)
    return np.einsum("bcti,oci->bot", windows, taps)


def max_pool2d(data: Any) -> Any:
    """The largest of each 2 x 2 pixels."""
    batch, channels, height, width = data.shape
    even = data[:, :, : height // 2 * 2, : width // 2 * 2]
    return even.reshape(batch, channels, height // 2, 2, width // 2, 2).max(axis=(3, 5))


def rotary(embedding: Any, cosine: Any, sine: Any) -> Any:
    """Halves of each head turned by angles."""
    x, c, s = _wide(embedding, cosine[:, None], sine[:, None])
    even, odd = np.split(x, 2, axis=2)
    return np.concatenate((even * c - odd * s, odd * c + even * s), axis=2)


def top_k(rows: Any, k: int) -> Any:
    """The largest values of each row, and their columns."""
    columns = np.argsort(-rows, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(rows, columns, axis=1), columns


def of_shards(*ranks: Any) -> Any:
    return tuple(np.array([product(other[0], rank[1]) for other in ranks]) for rank in ranks)


def of_halves(*ranks: Any) -> Any:
    total = sum(product(left, right) for left, right, _ in ranks)
    return tuple(np.split(total, len(ranks)))


def linear(inputs_transposed: Any, weights: Any, bias: Any) -> Any:
    """A linear layer with ReLU."""
    return np.maximum(product(inputs_transposed, weights) + bias, 0)


def gather_rows(table: Any, indices: Any) -> Any:
    """Rows of a table."""
    return table[indices]


def quantised(hidden: Any, weight: Any) -> Any:
    """Normalised rows as 8-bit numbers, whose largest is 240, and the scale of each row."""
    rows = rms_norm(hidden, weight)
    scales = np.abs(rows).max(axis=1, keepdims=True) / 240
    return rows / scales, scales


def rows_product(left: Any, right: Any) -> Any:
    """The matrix product."""
    one, other = _wide(left, right)
    return one @ other


def gelu_layer(x: Any, weights: Any, bias: Any) -> Any:
    """A linear layer with GELU, by tanh."""
    sums = rows_product(x, weights) + bias
    return sums / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (sums + 0.044715 * sums**3)))


def grouped_product(x: Any, weights: Any, groups: Any) -> Any:
    """The exact products of blocks of rows, each with the weights of its group."""
    blocks = np.split(x.astype(np.int64), len(groups))
    return np.concatenate([block @ weights[group] for block, group in zip(blocks, groups)])


def attention_of_heads(query: Any, key: Any, value: Any) -> Any:
    """Attention of each head of [batch, heads, tokens, features]."""
    heads = zip(*(each.reshape(-1, *each.shape[2:]) for each in (query, key, value)))
    return np.stack([attention(*head) for head in heads]).reshape(query.shape)


def integer_product(left: Any, right: Any) -> Any:
    """The exact product of integers."""
    return left.astype(np.int64) @ right.astype(np.int64)


def relu(x: Any) -> Any:
    """What is above zero."""
    return np.maximum(x, 0)


def relu_gradient(gradient: Any, x: Any) -> Any:
    """The gradient where the value is above zero."""
    return np.where(x > 0, gradient, 0)


def row_sums(x: Any) -> Any:
    """The sum of each row."""
    return x.astype(np.float64).sum(axis=1, keepdims=True)


def column_sums(x: Any) -> Any:
    """The sum of each column."""
    return x.astype(np.float64).sum(axis=0, keepdims=True)


def added(x: Any, y: Any) -> Any:
    """The sum of two vectors."""
    return x.astype(np.float64) + y


def gathered(*ranks: Any) -> Any:
    return (np.array([shard for shard, _ in ranks]),) * len(ranks)


def running_sum(x: Any) -> Any:
    """The sum of all rows above each row and its own."""
    return np.cumsum(np.asarray(x, np.float64), axis=0)
