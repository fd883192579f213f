"""The bytes that the pipeline of a Pallas call moves between HBM and vector memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nkitools.pallas.calls import Call, Operand, points
from nkitools.pallas.imports import jax_module
from nkitools.pallas.static import bit_width_in_memory
from nkitools.pallas.whole_function import WholeFunction

_MOST_POINTS = 1 << 20  # beyond so many, index maps are not gone through


def traffic(call: Call) -> int:
    """Return the bytes of all blocks that are loaded and stored; arrays that the kernel copies itself count once."""
    if isinstance(call, WholeFunction) and call.traced is not None:
        jaxpr = call.traced.jaxpr
        arrays = [var.aval for var in (*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars)]
        return sum(math.prod(each.shape) * bit_width_in_memory(each.dtype) // 8 for each in arrays)
    return sum(_bytes(call, operand) for operand in call.operands if operand.memory != "smem")


def _bytes(call: Call, operand: Operand) -> int:
    bits = bit_width_in_memory(operand.dtype)
    if operand.memory in ("any", "hbm"):
        return math.prod(operand.shape) * bits // 8
    return math.prod(operand.block_sizes) * bits // 8 * _visits(call, operand)


def _visits(call: Call, operand: Operand) -> int:
    """Return how often the block changes along the grid: a block that stays is not moved again.

    Index maps that look at prefetched scalars count as if each point had another block.
    """
    steps = points(call)
    index_map = operand.mapping.index_map_jaxpr
    if not call.grid or steps == 1:
        return 1
    if call.prefetched or steps > _MOST_POINTS or None in call.grid:
        return steps
    where: Any = np.stack(np.unravel_index(np.arange(steps), [int(size or 1) for size in call.grid])).astype(np.int32)
    jax = jax_module()
    eval_jaxpr = jax_module("jax.core").eval_jaxpr
    blocks = jax.vmap(lambda *point: eval_jaxpr(index_map.jaxpr, index_map.consts, *point))(*where)
    table = np.stack([np.broadcast_to(np.asarray(each), steps) for each in blocks])
    return 1 + int((np.diff(table, axis=1) != 0).any(axis=0).sum())
