"""The matrix product of tiles and blocks against NumPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nkitools
from kernels import gallery, references
from kernels.nki.blocked_matmul import BLOCK, blocked_matmul
from tests.cases import cases

VERSIONS = ("0.7",)  # nl.tiles and nl.blocks are of 0.7


def factors(contraction: int, rows: int, columns: int) -> tuple[Any, Any]:
    """Return two matrices of these sizes."""
    random = np.random.default_rng(contraction + rows + columns)
    return tuple(random.uniform(-0.9, 0.9, (contraction, size)).astype(np.float32) for size in (rows, columns))


@pytest.mark.parametrize("sizes", [(1, 1, 1), (130, 769, 1025), (4096, 256, 1024)], ids=str)
def test_it_agrees(run_kernel: Any, sizes: tuple[int, int, int]) -> None:
    """One element, a row and a column beyond whole blocks, more of them down than across, the longest sum."""
    left, right = factors(*sizes)
    output = run_kernel(blocked_matmul, left, right)
    assert gallery.relative_error(output, references.product(left, right)) <= 1e-5


def test_each_tile_is_printed(run_kernel: Any, device_prints: Any) -> None:
    """Of whole blocks; the first print is the first tile of the result."""
    left, right = factors(128, 256, 1024)
    output = run_kernel(blocked_matmul, left, right)
    assert gallery.relative_error(output, references.product(left, right)) <= 1e-5
    if run_kernel.run.target == "builtin":
        assert len(device_prints) == 2 * 2
        np.testing.assert_array_equal(device_prints.where(i=0, j=0, m=0, n=0)[0].value, output[:128, :512])


@settings(max_examples=cases(100))
@given(
    st.tuples(st.integers(1, 300), st.integers(1, 600), st.integers(1, 2200)), st.sampled_from(["trn1", "trn2", "trn3"])
)
def test_it_takes_any_shape(sizes: tuple[int, int, int], chip: str) -> None:
    """On each chip, and without a finding."""
    left, right = factors(*sizes)
    run = nkitools.simulate(blocked_matmul, left, right, chip=chip)
    assert gallery.relative_error(run.outputs, references.product(left, right)) <= 1e-5
    assert run.findings == []


def test_an_operand_is_loaded_once_a_block() -> None:
    """The rows of both blocks of rows share the columns' loads, and the other way round."""
    run = nkitools.simulate(blocked_matmul, *factors(256, 512, 1024), chip="trn2")
    stores = 4 * 2  # tiles of the result
    loads = 2 * (512 // 128 // BLOCK[0]) * (1024 // 512 // BLOCK[1]) * 2  # rows of tiles, of two operands
    assert [each.name for each in run.instructions].count("dma_copy") == stores + loads
