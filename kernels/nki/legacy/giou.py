"""Generalized intersection over union of two batches of boxes, in the legacy NKI dialect.

A box is (left, top, right, bottom), and the boxes of one batch entry stand in one row, four numbers each: one corner of
all boxes of a tile is every fourth of its columns, which a strided index picks out. GIoU is the intersection over the
union, less the share of the smallest enclosing box that the union leaves empty (Rezatofighi et al., 2019).
"""

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

EPSILON = 1e-5
TILE_BOXES = 256


def _extent(low, high):
    """``maximum(high - low, 0)``: the length of what lies between two edges."""
    return nl.maximum(high - low, 0)


def _area(box):
    left, top, right, bottom = box
    return (right - left) * (bottom - top)


def _giou_tile(first, second):
    """GIoU of two lists of corner tiles."""
    inner_width = _extent(nl.maximum(first[0], second[0]), nl.minimum(first[2], second[2]))
    inner_height = _extent(nl.maximum(first[1], second[1]), nl.minimum(first[3], second[3]))
    intersection = inner_width * inner_height
    union = _area(first) + _area(second) - intersection

    outer_width = _extent(nl.minimum(first[0], second[0]), nl.maximum(first[2], second[2]))
    outer_height = _extent(nl.minimum(first[1], second[1]), nl.maximum(first[3], second[3]))
    enclosing = outer_width * outer_height

    empty = (enclosing - union) / nl.maximum(enclosing, EPSILON)
    return intersection / nl.maximum(union, EPSILON) - empty


@nki.jit
def giou(preds, targets):
    """GIoU of float32 boxes ``preds`` and ``targets`` [batch, 4 * boxes], as [batch, boxes]; any sizes."""
    batch, columns = preds.shape
    boxes = columns // 4
    assert targets.shape == preds.shape, "preds and targets must have one shape"
    assert columns % 4 == 0, "a box has four corners"
    pmax = nl.tile_size.pmax
    scores = nl.ndarray((batch, boxes), dtype=nl.float32, buffer=nl.shared_hbm)

    row = nl.arange(pmax)[:, None]
    column = nl.arange(4 * TILE_BOXES)[None, :]
    box = nl.arange(TILE_BOXES)[None, :]
    for m in nl.affine_range((batch + pmax - 1) // pmax):
        for n in nl.affine_range((boxes + TILE_BOXES - 1) // TILE_BOXES):
            rows, corners = m * pmax + row, n * 4 * TILE_BOXES + column
            inside = (rows < batch) & (corners < columns)
            preds_tile = nl.load(preds[rows, corners], mask=inside)
            targets_tile = nl.load(targets[rows, corners], mask=inside)
            nl.device_print("preds", preds_tile, mask=inside)
            result = _giou_tile(
                [preds_tile[row, 4 * box + corner] for corner in range(4)],
                [targets_tile[row, 4 * box + corner] for corner in range(4)],
            )
            found = n * TILE_BOXES + box
            nl.store(scores[rows, found], result, mask=(rows < batch) & (found < boxes))
    return scores
