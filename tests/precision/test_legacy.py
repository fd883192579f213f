"""Full precision in the legacy dialect."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

from nkitools.facts import options
from tests.precision.modes import BF16, run_in, uniform


def summed(x: Any) -> Any:
    """The sum of neighbours, in bfloat16 tiles and under a mask, and the last column as it is."""
    out = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)
    rows, columns = nl.mgrid[0 : x.shape[0], 0 : x.shape[1]]
    tile = nl.load(x, dtype=nl.bfloat16)
    result = nl.ndarray(tile.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
    result[...] = nl.copy(tile)
    inside = columns < x.shape[1] - 1
    result[rows, columns] = nl.add(tile[rows, columns], tile[rows, columns + 1], mask=inside)
    nl.store(out, result)
    return out


def test_values_keep_their_digits() -> None:
    """Through loads, operators, masks and assignments."""
    x = uniform(8, 16)
    expected = x.copy()
    expected[:, :-1] += x[:, 1:]
    precise = run_in("precise", nki.jit(summed), x).outputs
    wide = run_in("full", nki.jit(summed), x).outputs
    assert (precise.dtype, wide.dtype) == (BF16, np.float32)
    np.testing.assert_array_equal(wide, expected)
    assert (precise.astype(np.float32) != expected).any()


def test_a_matmul_that_is_assigned_to_psum() -> None:
    """A sum of products of bfloat16 tiles."""

    def kernel(left: Any, right: Any) -> Any:
        out = nl.ndarray((left.shape[1], right.shape[1]), dtype=nl.bfloat16, buffer=nl.shared_hbm)
        total = nl.zeros(out.shape, dtype=nl.float32, buffer=nl.psum)
        for _ in nl.affine_range(3):
            total += nisa.nc_matmul(nl.load(left, dtype=nl.bfloat16), nl.load(right, dtype=nl.bfloat16))
        nl.store(out, nl.copy(total, dtype=nl.bfloat16))
        return out

    left, right = uniform(32, 8), uniform(32, 8, seed=1)
    wide = run_in("full", nki.jit(kernel), left, right).outputs
    np.testing.assert_allclose(wide, 3 * (left.T.astype(float) @ right.astype(float)), rtol=0, atol=96 * 4 * 2.0**-23)


def test_outputs_by_reference_are_rounded() -> None:
    """simulate_kernel writes them into the caller's arrays, which keep their dtype."""

    def kernel(x: Any, out: Any) -> None:
        nl.store(out, nl.multiply(nl.load(x), 3.0))

    x, out = np.full((4, 4), 1.015625, BF16), np.zeros((4, 4), BF16)
    with options.override(precision="full"):
        nki.simulate_kernel(kernel, x, out)
    np.testing.assert_array_equal(out, np.asarray(3.046875, BF16))
