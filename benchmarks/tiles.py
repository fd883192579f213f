"""The workloads once more, in bare NumPy: the same operations on the same tiles, without any simulator.

What the simulator takes beyond these is its own; what untiled NumPy takes beyond them is the cost of large temporaries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = Any
ROWS, BANK, BOXES, LEGACY_BOXES = 128, 512, 512, 256  # partitions, a bank of PSUM in float32, boxes of a GIoU tile
_EPSILON = np.float32(1e-5)


def _loaded(view: Array) -> Array:
    """A copy in dense memory of its own, as a DMA into SBUF leaves one."""
    tile = np.empty(view.shape, view.dtype)
    np.copyto(tile, view)
    return tile


def _accumulated(total: Array, product: Array, *, first: bool) -> None:
    if first:
        np.copyto(total, product)
    else:
        np.add(total, product, out=total)


def _starts(size: int, step: int) -> Iterator[slice]:
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))


def _float32(tile: Array) -> Array:
    return tile.astype(np.float32, copy=False)


def matmul(lhs_transposed: Array, rhs: Array) -> Array:
    """``lhs_transposed.T @ rhs`` in tiles of 128 x 128 x 512; float32 inside and out."""
    contraction, rows = lhs_transposed.shape
    result = np.empty((rows, rhs.shape[1]), np.float32)
    for n in _starts(rhs.shape[1], BANK):
        moving = [_float32(_loaded(rhs[k, n])) for k in _starts(contraction, ROWS)]
        for m in _starts(rows, ROWS):
            total = np.empty((m.stop - m.start, n.stop - n.start), np.float32)
            for number, (k, tile) in enumerate(zip(_starts(contraction, ROWS), moving, strict=True)):
                _accumulated(total, _float32(_loaded(lhs_transposed[k, m])).T @ tile, first=number == 0)
            np.copyto(result[m, n], _loaded(total))
    return result


def _exponentials(tile: Array) -> Array:
    """The exponentials of a tile less its rows' maxima, in place; one over their sums is returned."""
    lowest = np.negative(np.maximum.reduce(tile, axis=1, keepdims=True))
    np.add(tile, lowest, out=tile)
    np.exp(tile, out=tile)
    return np.divide(np.float32(1), np.add.reduce(tile, axis=1, keepdims=True))


def softmax(logits: Array) -> Array:
    """Softmax of 128 rows at a time."""
    result = np.empty_like(logits)
    for rows in _starts(logits.shape[0], ROWS):
        tile = _loaded(logits[rows])
        np.multiply(tile, _exponentials(tile), out=tile)
        np.copyto(result[rows], tile)
    return result


def narrow_softmax(logits: Array) -> Array:
    """Softmax of 128 rows at a time in a dtype narrower than float32, which every computation widens and rounds."""
    result = np.empty_like(logits)
    for rows in _starts(logits.shape[0], ROWS):
        tile = _loaded(logits[rows])
        wide = _float32(tile)
        inverse = _exponentials(wide)
        np.copyto(tile, wide, casting="unsafe")
        np.multiply(_float32(tile), inverse, out=wide)
        np.copyto(tile, wide, casting="unsafe")
        np.copyto(result[rows], tile)
    return result


def gather(table: Array, indices: Array) -> Array:
    """Rows of a table, 128 at a time and 512 columns of them."""
    result = np.empty((indices.size, table.shape[1]), table.dtype)
    for rows in _starts(indices.size, ROWS):
        chosen = _loaded(indices[rows])
        for columns in _starts(table.shape[1], BANK):
            tile = np.zeros((chosen.size, columns.stop - columns.start), table.dtype)
            np.copyto(tile, table[chosen, columns])
            np.copyto(result[rows, columns], tile)
    return result


def rotary(embedding: Array, cosine: Array, sine: Array) -> Array:
    """Rotary embedding of 128 places at a time, all heads of up to 4096 elements together."""
    result, half = np.empty_like(embedding), embedding.shape[2] // 2
    heads = max(1, 4096 // embedding.shape[2])
    for rows in _starts(embedding.shape[0], ROWS):
        c, s = _loaded(cosine[rows])[:, None], _loaded(sine[rows])[:, None]
        for chosen in _starts(embedding.shape[1], heads):
            tile = _loaded(embedding[rows, chosen])
            turned = np.empty_like(tile)
            x, y = tile[..., :half], tile[..., half:]
            np.subtract(np.multiply(x, c), np.multiply(y, s), out=turned[..., :half])
            np.add(np.multiply(y, c), np.multiply(x, s), out=turned[..., half:])
            np.copyto(result[rows, chosen], turned)
    return result


def attention(query: Array, key: Array, value: Array) -> Array:
    """Attention of 128 queries at a time, its scores in banks of 512 keys."""
    sequence, head = query.shape
    result, keys = np.empty((sequence, head), np.float32), np.empty((head, sequence), np.float32)
    scale, values = np.float32(head**-0.5), []
    for rows in _starts(sequence, ROWS):
        np.copyto(keys[:, rows], _loaded(_loaded(_loaded(key[rows]).T)))
        values.append(_loaded(value[rows]))
    for rows in _starts(sequence, ROWS):
        swapped = _loaded(_loaded(_loaded(query[rows]).T))
        scores = np.empty((swapped.shape[1], sequence), np.float32)
        for columns in _starts(sequence, BANK):
            np.multiply(swapped.T @ keys[:, columns], scale, out=scores[:, columns])
        inverse = _exponentials(scores)
        output = np.empty((scores.shape[0], head), np.float32)
        for number, (columns, tile) in enumerate(zip(_starts(sequence, ROWS), values, strict=True)):
            turned = _loaded(_loaded(scores[:, columns].T))
            _accumulated(output, turned.T @ tile, first=number == 0)
        np.copyto(result[rows], np.multiply(output, inverse))
    return result


def _extent(low: Array, high: Array) -> Array:
    length = np.subtract(high, low)
    return np.maximum(length, np.float32(0), out=length)


def _area(box: list[Array]) -> Array:
    return np.multiply(np.subtract(box[2], box[0]), np.subtract(box[3], box[1]))


def _by_reciprocal(numerator: Array, denominator: Array) -> Array:
    guarded = np.maximum(denominator, _EPSILON)
    return np.multiply(numerator, np.divide(np.float32(1), guarded, out=guarded))


def _by_division(numerator: Array, denominator: Array) -> Array:
    return np.divide(numerator, np.maximum(denominator, _EPSILON))


def _scores(p: list[Array], t: list[Array], quotient: Callable[[Array, Array], Array]) -> Array:
    """GIoU of the corners of two tiles of boxes."""
    inner = np.multiply(
        _extent(np.maximum(p[0], t[0]), np.minimum(p[2], t[2])), _extent(np.maximum(p[1], t[1]), np.minimum(p[3], t[3]))
    )
    union = np.subtract(np.add(_area(p), _area(t)), inner)
    hull = np.multiply(
        _extent(np.minimum(p[0], t[0]), np.maximum(p[2], t[2])), _extent(np.minimum(p[1], t[1]), np.maximum(p[3], t[3]))
    )
    return np.subtract(quotient(inner, union), quotient(np.subtract(hull, union), hull))


def giou(preds: Array, targets: Array) -> Array:
    """GIoU of 128 x 512 boxes [batch, boxes, 4] at a time."""
    result = np.empty(preds.shape[:2], np.float32)
    for rows in _starts(preds.shape[0], ROWS):
        for columns in _starts(preds.shape[1], BOXES):
            p, t = _loaded(preds[rows, columns]), _loaded(targets[rows, columns])
            corners = [[tile[:, :, corner] for corner in range(4)] for tile in (p, t)]
            np.copyto(result[rows, columns], _scores(*corners, _by_reciprocal))
    return result


def legacy_giou(preds: Array, targets: Array) -> Array:
    """GIoU of 128 x 256 boxes [batch, 4 * boxes] at a time."""
    result = np.empty((preds.shape[0], preds.shape[1] // 4), np.float32)
    for rows in _starts(preds.shape[0], ROWS):
        for columns in _starts(result.shape[1], LEGACY_BOXES):
            corners = slice(4 * columns.start, 4 * columns.stop)
            p, t = _loaded(preds[rows, corners]), _loaded(targets[rows, corners])
            split = [[tile[:, corner::4] for corner in range(4)] for tile in (p, t)]
            np.copyto(result[rows, columns], _scores(*split, _by_division))
    return result


def conv2d(images: Array, filters: Array) -> Array:
    """Convolution without padding as matrix products, one for each tap, in blocks of output rows.

    For at most 128 channels in and out, and images whose rows fill whole blocks of one bank of PSUM.
    """
    (batch, _, height, width), (out_channels, _, taps_y, taps_x) = images.shape, filters.shape
    rows, columns = height - taps_y + 1, width - taps_x + 1
    loaded = _loaded(filters)
    stationary = {(y, x): _loaded(_loaded(loaded[:, :, y, x].T)) for y in range(taps_y) for x in range(taps_x)}
    result = np.empty((batch, out_channels, rows, columns), np.float32)
    for b in range(batch):
        image = np.zeros(images.shape[1:], np.float32)
        np.copyto(image, _loaded(images[b]))
        for block in _starts(rows, BANK // columns):
            total = np.zeros((out_channels, block.stop - block.start, columns), np.float32)
            for (y, x), taps in stationary.items():
                moving = image[:, block.start + y : block.stop + y, x : x + columns].reshape(images.shape[1], -1)
                np.add(total, (taps.T @ moving).reshape(total.shape), out=total)
            np.copyto(result[b, :, block], total)
    return result
