"""Instructions that make again what an earlier one has made: the compiler moves them out of the loop.

Such an instruction has the plan and the line of the earlier one, reads the same elements as the same instructions have
written them, and fills a tile that nothing else has touched before. Only instructions without numbers among their
operands count, since the record does not keep these.
"""

from __future__ import annotations

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.record.columns import Columns
from nkitools.record.dependences import CompressedRows

_WITHOUT_NUMBERS = frozenset({"tensor_tensor", "tensor_copy", "nc_transpose"})
_MIX = np.uint64(0x9E3779B97F4A7C15)


def repeated(columns: Columns, flow: CompressedRows, base: int) -> tuple[Array, Array]:
    """Return the positions of repeated instructions, and for each the first one that makes the same.

    ``base``: the position of the record's first instruction in ``flow``.
    """
    found = np.flatnonzero(columns.of_each_plan(lambda plan: plan.name in _WITHOUT_NUMBERS))
    if not found.size:
        return found, found
    firsts = columns.first_operands
    _, first_uses = np.unique(columns.storages, return_index=True)
    is_fresh = np.zeros(columns.storages.size, np.bool_)
    is_fresh[first_uses] = True
    found = found[is_fresh[firsts[found]]]
    words = mixed(columns.storages, columns.layouts, columns.byte_offsets)
    words[firsts[:-1]] = mixed(columns.heads)  # in place of the destination
    keys = sums(words, firsts)[found] ^ sums(mixed(flow.sources), flow.starts)[base + found]
    _, places, numbers = np.unique(keys, return_index=True, return_inverse=True)
    originals = found[places[numbers.reshape(-1)]]
    again = originals != found
    return found[again], originals[again]


def mixed(*columns: Array) -> Array:
    """Return a number for each row of some columns that other rows are not likely to have."""
    found = np.zeros(columns[0].size, np.uint64)
    for column in columns:
        found = (found ^ column.astype(np.uint64)) * _MIX
        found ^= found >> np.uint64(29)
    return found


def sums(values: Array, bounds: Array) -> Array:
    """Return the sum of each stretch of values between two neighbouring bounds."""
    totals = np.concatenate((np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)))
    return np.asarray(totals[bounds[1:]] - totals[bounds[:-1]])
