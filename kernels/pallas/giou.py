"""Generalized intersection over union of two batches of boxes, as a Pallas TPU kernel.

GIoU = I / U - (C - U) / C, with I, U and C the areas of the intersection, the union and the smallest box that encloses
both (Rezatofighi et al., 2019). It lies between -1 and 1 and, unlike I / U, says how far apart two boxes are.

A TPU's vector registers are 8 rows of 128 lanes, and a block's last two dimensions must be multiples of that. Four
coordinates in the last dimension would leave 124 of 128 lanes empty, so the coordinate goes first and the batch and the
box index fill the registers: every coordinate is a plane, and the kernel is elementwise on planes.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

# Two inputs of four planes and one output, double-buffered: 2 * 9 * 64 KiB of VMEM, whose default limit is 16 MiB.
BLOCK_ROWS = 128
BLOCK_LANES = 128

# Areas below this count as this: boxes without an area give 0, not NaN.
SMALLEST_AREA = 1e-5


@jax.jit
def giou(preds: jax.Array, targets: jax.Array) -> jax.Array:
    """The GIoU of each predicted box with its target.

    Args:
        preds: float32 [batch, boxes, 4], corners (x1, y1, x2, y2) with x1 <= x2 and y1 <= y2.
        targets: the same shape and dtype.

    Returns:
        float32 [batch, boxes].
    """
    _check(preds, targets)
    batch, boxes, _ = preds.shape
    if batch == 0 or boxes == 0:
        return jnp.zeros((batch, boxes), jnp.float32)
    rows = min(BLOCK_ROWS, _round_up(batch, 8))
    padded = (_round_up(batch, rows), _round_up(boxes, BLOCK_LANES))
    planes = pl.pallas_call(
        _giou_kernel,
        out_shape=jax.ShapeDtypeStruct(padded, jnp.float32),
        grid=(padded[0] // rows, padded[1] // BLOCK_LANES),
        in_specs=[pl.BlockSpec((4, rows, BLOCK_LANES), lambda row, lane: (0, row, lane))] * 2,
        out_specs=pl.BlockSpec((rows, BLOCK_LANES), lambda row, lane: (row, lane)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
    )
    return planes(_to_planes(preds, padded), _to_planes(targets, padded))[:batch, :boxes]


def _giou_kernel(preds: jax.Ref, targets: jax.Ref, out: jax.Ref) -> None:
    """One block: [4, rows, lanes] of both inputs to [rows, lanes]."""
    px1, py1, px2, py2 = (preds[corner] for corner in range(4))
    tx1, ty1, tx2, ty2 = (targets[corner] for corner in range(4))

    # The overlap of boxes that do not meet is negative in one direction or in both, whose product would count as area.
    width = jnp.maximum(jnp.minimum(px2, tx2) - jnp.maximum(px1, tx1), 0.0)
    height = jnp.maximum(jnp.minimum(py2, ty2) - jnp.maximum(py1, ty1), 0.0)
    intersection = width * height

    union = (px2 - px1) * (py2 - py1) + (tx2 - tx1) * (ty2 - ty1) - intersection
    enclosing = (jnp.maximum(px2, tx2) - jnp.minimum(px1, tx1)) * (jnp.maximum(py2, ty2) - jnp.minimum(py1, ty1))

    overlap = intersection / jnp.maximum(union, SMALLEST_AREA)
    emptiness = (enclosing - union) / jnp.maximum(enclosing, SMALLEST_AREA)
    out[...] = overlap - emptiness


def _check(preds: jax.Array, targets: jax.Array) -> None:
    """Refuse what is not two equal batches of float32 boxes."""
    for name, array in (("preds", preds), ("targets", targets)):
        if array.ndim != 3 or array.shape[-1] != 4:
            raise ValueError(f"{name} has shape {array.shape}; boxes come as [batch, boxes, 4]")
        if array.dtype != jnp.float32:
            raise TypeError(f"{name} is {array.dtype}; the kernel computes in float32, so cast with .astype('float32')")
    if preds.shape != targets.shape:
        raise ValueError(f"preds has shape {preds.shape} and targets {targets.shape}; each box needs one target")


def _to_planes(boxes: jax.Array, padded: tuple[int, int]) -> jax.Array:
    """[batch, boxes, 4] to coordinate planes [4, *padded]; the boxes that fill up the last blocks are all zero."""
    batch, count, _ = boxes.shape
    planes = jnp.moveaxis(boxes, -1, 0)
    return jnp.pad(planes, ((0, 0), (0, padded[0] - batch), (0, padded[1] - count)))


def _round_up(size: int, multiple: int) -> int:
    """The smallest multiple of ``multiple`` that is not below ``size``."""
    return -(-size // multiple) * multiple
