"""The ring all-gather kernel against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkitools
from kernels.nki import ring_all_gather as kernel_module
from kernels.nki.ring_all_gather import ring_all_gather
from nkitools.facts import options
from tests.kernels.mutants import mutant


def shards(ranks: int, rows: int, columns: int, dtype: Any = np.float32) -> Any:
    """Different ones for each rank."""
    return np.random.default_rng(ranks).standard_normal((ranks, rows, columns)).astype(dtype)


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(("ranks", "rows", "columns"), [(1, 2, 3), (2, 4, 5), (4, 130, 7), (5, 2, 600)])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_ring_all_gather(
    run_kernel: Callable[..., Any], ranks: int, rows: int, columns: int, cores: int, dtype: Any
) -> None:
    """Every rank has all shards, to the bit, on one core and on two."""
    every = shards(ranks, rows, columns, dtype)
    outputs = run_kernel(ring_all_gather[cores], *((shard, ranks) for shard in every), ranks=ranks)
    for gathered in outputs:
        assert gathered.dtype == dtype
        np.testing.assert_array_equal(gathered, every)


@pytest.mark.parametrize("seed", range(6))
def test_every_order_gives_one_result(seed: int) -> None:
    """However the programs of four ranks are interleaved, with nothing to find."""
    every = shards(4, 4, 3)
    with options.override(schedule_seed=str(seed)):
        run = nkitools.simulate(ring_all_gather[2], *((shard, 4) for shard in every), ranks=4)
    assert run.findings == []
    assert all((gathered == every).all() for gathered in run.outputs)


def test_rows_that_two_cores_cannot_share() -> None:
    """An assertion of the kernel."""
    with pytest.raises(AssertionError, match="evenly"):
        nkitools.simulate(ring_all_gather[2], *((shard, 2) for shard in shards(2, 3, 3)), ranks=2)


MISTAKES = {
    "the ring is not turned": ("if step + 1 < ranks:", "if step < 0:"),
    "buffers are not swapped": ("here, there = there, here", "pass"),
    "the place is the rank's own": ("rank_id(step, ring)", "rank_id(0, ring)"),
    "both cores copy the first half": ("first = nl.program_id(0) * height", "first = 0"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_seen(mistake: str) -> None:
    """Each of them changes a result or is a finding."""
    wrong = mutant(kernel_module, *MISTAKES[mistake]).ring_all_gather
    every = shards(4, 4, 3)
    run = nkitools.simulate(wrong[2], *((shard, 4) for shard in every), ranks=4, rules="report")
    assert run.findings or not all((gathered == every).all() for gathered in run.outputs)
