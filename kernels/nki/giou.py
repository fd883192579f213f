"""Generalized intersection over union of two batches of boxes, in the modern NKI dialect.

A box is (left, top, right, bottom). GIoU is the intersection over the union, less the share of the smallest enclosing
box that the union leaves empty (Rezatofighi et al., 2019).
"""

import nki
import nki.isa as nisa
import nki.language as nl

EPSILON = 1e-5
TILE_BOXES = 512


def _combine(first, second, op):
    """A new SBUF tile of ``first <op> second``."""
    result = nl.ndarray(first.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=result, data1=first, data2=second, op=op)
    return result


def _extent(low, high):
    """``maximum(high - low, 0)``: the length of what lies between two edges."""
    length = _combine(high, low, nl.subtract)
    nisa.tensor_scalar(dst=length, data=length, op0=nl.maximum, operand0=0.0)
    return length


def _area(box):
    left, top, right, bottom = box
    return _combine(_combine(right, left, nl.subtract), _combine(bottom, top, nl.subtract), nl.multiply)


def _quotient(numerator, denominator):
    """``numerator / maximum(denominator, EPSILON)``."""
    guarded = nl.ndarray(denominator.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=guarded, data=denominator, op0=nl.maximum, operand0=EPSILON)
    nisa.reciprocal(dst=guarded, data=guarded)
    return _combine(numerator, guarded, nl.multiply)


def _giou_tile(preds, targets):
    """GIoU of two tiles of boxes [partitions, boxes, 4] in SBUF."""
    p = [preds[:, :, corner] for corner in range(4)]
    t = [targets[:, :, corner] for corner in range(4)]

    inner_width = _extent(_combine(p[0], t[0], nl.maximum), _combine(p[2], t[2], nl.minimum))
    inner_height = _extent(_combine(p[1], t[1], nl.maximum), _combine(p[3], t[3], nl.minimum))
    intersection = _combine(inner_width, inner_height, nl.multiply)
    union = _combine(_combine(_area(p), _area(t), nl.add), intersection, nl.subtract)

    outer_width = _extent(_combine(p[0], t[0], nl.minimum), _combine(p[2], t[2], nl.maximum))
    outer_height = _extent(_combine(p[1], t[1], nl.minimum), _combine(p[3], t[3], nl.maximum))
    enclosing = _combine(outer_width, outer_height, nl.multiply)

    empty = _combine(enclosing, union, nl.subtract)
    return _combine(_quotient(intersection, union), _quotient(empty, enclosing), nl.subtract)


@nki.jit
def giou(preds, targets):
    """GIoU of float32 boxes ``preds`` and ``targets`` [batch, boxes, 4], as [batch, boxes]."""
    batch, boxes, _ = preds.shape
    assert targets.shape == preds.shape, "preds and targets must have one shape"
    pmax = nl.tile_size.pmax
    scores = nl.ndarray((batch, boxes), dtype=nl.float32, buffer=nl.shared_hbm)

    for m in range((batch + pmax - 1) // pmax):
        rows = nl.ds(m * pmax, min(pmax, batch - m * pmax))
        for n in range((boxes + TILE_BOXES - 1) // TILE_BOXES):
            columns = nl.ds(n * TILE_BOXES, min(TILE_BOXES, boxes - n * TILE_BOXES))
            preds_tile = nl.load(preds[rows, columns, :])
            targets_tile = nl.load(targets[rows, columns, :])
            nl.device_print("preds", preds_tile)
            nl.store(scores[rows, columns], _giou_tile(preds_tile, targets_tile))
    return scores
