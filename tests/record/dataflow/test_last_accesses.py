"""The last writers and readers of pieces, all at once and in stretches, are those that a loop over accesses finds."""

from __future__ import annotations

import numpy as np
import pytest

from nkitools.record.dataflow import last_accesses as module
from nkitools.record.dataflow.last_accesses import ADDS, MAY_WRITE, READS, UNWRITTEN, WRITES, last_accesses
from nkitools.record.dataflow.pieces import Pieces

KINDS = [READS, READS, READS, WRITES, READS | WRITES, ADDS | WRITES, MAY_WRITE, READS | MAY_WRITE, ADDS | MAY_WRITE]


def expected(
    views: list[list[int]], which: list[int], positions: list[int], kinds: list[int]
) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Return pairs of access and writer, and pairs of writer and reader, piece by piece and access by access."""
    writers, anti = set(), set()
    since: dict[int, list[int]] = {}  # the last access that wrote all of a piece, and those behind it
    for access, view in enumerate(which):
        for piece in views[view]:
            before = since.setdefault(piece, [-1])
            first, *others = before
            writers.add((access, UNWRITTEN if first < 0 else positions[first]))
            writers |= {(access, positions[each]) for each in others if kinds[each] & MAY_WRITE}
            if kinds[access] >= WRITES:
                anti |= {(positions[access], positions[each]) for each in others if kinds[each] & (READS | ADDS)}
        for piece in views[view]:
            since[piece] = [access] if kinds[access] & WRITES else [*since[piece], access]
    return writers, anti


@pytest.mark.parametrize("batch", [1, 7, 60, 1 << 17])
@pytest.mark.parametrize("seed", range(12))
def test_writers_and_readers(seed: int, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few accesses are looked at together; some pieces are only read, some are read long before a write."""
    monkeypatch.setattr(module, "_BATCH", batch)
    random = np.random.default_rng(seed)
    total, count = int(random.integers(2, 12)), int(random.integers(1, 300))
    views = [sorted(set(random.integers(0, total, random.integers(1, 5)).tolist())) for _ in range(8)]
    which = random.integers(0, len(views), count)
    kinds = np.array(KINDS)[random.integers(0, len(KINDS), count)]
    if seed % 3 == 0:
        kinds[which < 4] = READS
    positions = np.sort(random.integers(0, count, count))
    pieces = Pieces(np.cumsum([0, *map(len, views)]), np.concatenate(views), total)
    order = np.argsort(which, kind="stable")
    writers, anti = last_accesses(pieces, which, order, positions, kinds)
    assert (writers.positions == positions[writers.accesses]).all()
    assert (writers.kinds == kinds[writers.accesses]).all()
    found = (
        set(zip(writers.accesses.tolist(), writers.sources.tolist(), strict=True)),
        set(zip(anti.targets.tolist(), anti.sources.tolist(), strict=True)),
    )
    assert found == expected(views, which.tolist(), positions.tolist(), kinds.tolist())
