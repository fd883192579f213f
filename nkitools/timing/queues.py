"""The queues of transfers on a chip whose profiles show them, and what waits for what there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nkitools.chip.numerics import Array
from nkitools.facts.generations import Generation
from nkitools.facts.laws import profiled
from nkitools.timing.durations import DMA, ENGINES, GPSIMD, SCALAR, TENSOR, VECTOR
from nkitools.timing.operations import Operations

TILES = 2  # that a line's loads fill in turns, in the modern dialect: with fewer none is filled while one is read
RINGS = 16  # transfers that are under way at once (nki-dma-overview: 16 queues)


def lanes(operations: Operations, engines: Array, flow: tuple[Array, Array], base: int, *, reorders: bool) -> Array:
    """Return the queue of each transfer, 0 for others: one a line.

    A legacy kernel has one for loads and for what the Vector or the GpSimd Engine has made of tiles in SBUF, and one
    for other stores.
    """
    moved, found = np.flatnonzero(engines == DMA), np.zeros(engines.size, np.int64)
    if not reorders:
        found[moved] = np.unique(operations.columns.sites[moved], return_inverse=True)[1].reshape(-1) % RINGS
        return found
    last = base + engines.size
    mine = (flow[0] >= base) & (flow[0] < last) & (flow[1] >= base) & (flow[1] < last)
    targets, sources = flow[0][mine] - base, flow[1][mine] - base
    shares = np.isin(engines, (VECTOR, GPSIMD))
    shares[operations.evacuations] = False
    found[moved] = 1
    found[operations.loads] = 0
    found[targets[(engines[targets] == DMA) & shares[sources]]] = 0
    return found


def order_of(uses: Sequence[tuple[Array, Array]], count: int, late: Array) -> Array | None:
    """Return the order of issue in which some instructions stand right before the first one that uses what they make.

    ``uses``: instructions, and the ones before that they need. None where nothing moves.
    """
    if not late.size:
        return None
    first, moves = np.arange(count) * 2 + 1, np.zeros(count, np.bool_)
    moves[late] = True
    first[late] = 2 * count
    for targets, sources in uses:
        mine = moves[sources]
        np.minimum.at(first, sources[mine], 2 * targets[mine])
    order = np.empty(count, np.int64)
    order[np.argsort(first, kind="stable")] = np.arange(count)
    return order


def waits_ns(flow: tuple[Array, Array], engines: Array, chip: Generation) -> Array:
    """Return how long engines take with the semaphores of transfers before each instruction.

    An engine waits once for a transfer, with the first instruction that reads what it brings, and not for one that
    stands in its queue before another one that it has waited for.
    """
    longer = np.zeros(len(ENGINES))
    for kind, name in ((TENSOR, "Tensor"), (VECTOR, "Vector"), (SCALAR, "Scalar"), (GPSIMD, "GpSimd")):
        law = profiled(chip.short_name, name, "EVENT_SEMAPHORE", "")
        longer[kind] = 0.0 if law is None else law.fixed_ns
    kinds, added = engines % len(ENGINES), np.zeros(engines.size)
    mine = (kinds[flow[1]] == DMA) & (longer[kinds[flow[0]]] > 0)
    targets, sources = flow[0][mine], flow[1][mine]
    pairs = engines[sources] * (int(engines.max(initial=0)) + 1) + engines[targets]  # a queue, and who waits for it
    order = np.lexsort((-sources, targets, pairs))
    pairs, targets, sources = pairs[order], targets[order], sources[order]
    begins = np.flatnonzero(np.diff(pairs, prepend=-1))
    latest = sources + np.repeat(np.arange(begins.size), np.diff(begins, append=pairs.size)) * engines.size
    waits = np.diff(np.maximum.accumulate(latest), prepend=-1) > 0
    np.add.at(added, targets[waits], longer[kinds[targets[waits]]])
    return added


def ahead(operations: Operations, flow: tuple[Array, Array], base: int, cores: Array) -> tuple[Array, Array]:
    """Return the loads of a line that wait until an instruction begins to read what another one brings.

    A line has two tiles for its loads: one is read while the other one is filled. What the kernel itself loads before
    it reads any of it does not wait.
    """
    columns, loads = operations.columns, operations.loads
    never = columns.plans.size
    readers = np.full(columns.plans.size, never)
    mine = np.isin(flow[1] - base, loads)
    np.minimum.at(readers, flow[1][mine] - base, flow[0][mine] - base)
    loads = loads[readers[loads] < never]
    lines = columns.sites * (int(cores.max(initial=0)) + 1) + cores
    loads = loads[np.lexsort((loads, readers[loads], lines[loads]))]
    later, readers = loads[TILES:], readers[loads[:-TILES]]
    waits = (lines[later] == lines[loads[:-TILES]]) & (readers < later)
    return later[waits] + base, readers[waits] + base
