"""Results that are brought elsewhere at once: the compiler lets the instruction that makes them write there.

These instructions take no time of their own: a copy of a tile that nothing else reads, and an addition of such a tile
to zeros in PSUM. ``psum = nl.zeros(..., buffer=nl.psum)`` costs nothing in this model, as matmuls overwrite it, and
``psum[...] += column`` then adds to zeros. Published variants of an attention and of a convolution with such copies and
additions are as fast as those without them.
"""

from __future__ import annotations

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.columns import Columns
from nkitools.timing.operations import Operations

_MAKES, _FILLS = 1, 2  # what an instruction does: make a result that could go elsewhere, or fill a tile


def forwarded(columns: Columns, targets: Array, sources: Array) -> Array:
    """Return the positions of the instructions that only bring a result elsewhere.

    The result is a tile that one instruction of the Vector or the Scalar Engine has written and nothing else reads.
    Each instruction of ``targets`` reads what that of ``sources`` has written; others than the record's stand for
    arguments and for what other ranks send.
    """
    operations, count = Operations(columns), columns.plans.size
    copies, sums = operations.copies, operations.updates_in_psum
    found = np.concatenate((copies, sums))
    if not found.size:
        return found
    firsts, storages = columns.first_operands[:-1], columns.storages
    results = storages[np.concatenate((firsts[copies] + 1, firsts[sums] + 2))]
    numbers, uses = np.unique(storages, return_counts=True)
    found = found[uses[np.searchsorted(numbers, results)] == 2]
    kinds = np.zeros(count + 1, np.int64)  # the last one is that of other records
    kinds[operations.on_engines("vector", "scalar")] = _MAKES
    kinds[operations.named("memset")] = _FILLS
    written = np.append(storages[firsts], -1)
    read = np.isin(targets, found)
    targets, sources = targets[read], sources[read]
    sources = np.where((sources >= 0) & (sources < count), sources, count)
    is_same = written[sources] == written[targets]
    fills, makes = is_same & (kinds[sources] == _FILLS), ~is_same & (kinds[sources] == _MAKES)
    filled, made, others = (
        np.bincount(targets[each], minlength=count)[found] for each in (fills, makes, ~fills & ~makes)
    )
    return np.asarray(found[((filled > 0) == np.isin(found, sums)) & (made == 1) & (others == 0)])
