"""Undefined lanes travel through computations until something uses them."""

from __future__ import annotations

from typing import Any

import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest
from scipy import special

from tests.dialects.legacy.running import outputs, random, refusal, run

ROWS = 250


def over_tiles(compute: Any, columns: int = 64) -> Any:
    """A kernel over tiles of 128 rows: masks at the load and at the store, none between."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((ROWS, columns), dtype=x.dtype, buffer=nl.shared_hbm)
        i_f, o_f = nl.arange(x.shape[1])[None, :], nl.arange(columns)[None, :]
        for m in nl.affine_range(2):
            i_p = m * 128 + nl.arange(128)[:, None]
            tile = nl.load(x[i_p, i_f], mask=i_p < ROWS)
            nl.store(result[i_p, o_f], compute(tile), mask=i_p < ROWS)
        return result

    return kernel


def test_a_partly_loaded_tile_may_be_computed_on() -> None:
    """Element-wise calls on rows that were never loaded are no finding as long as those rows are not stored."""
    x = random(ROWS, 64)
    measured = outputs(over_tiles(lambda tile: nl.exp(tile) * 2 + tile), x)
    np.testing.assert_allclose(measured, np.exp(x) * 2 + x, rtol=1e-6)


def test_rows_without_data_are_left_out_of_reductions() -> None:
    """The usual normalisation reduces a partly loaded tile without a mask; whole rows without data stay undefined."""

    def normalised(tile: Any) -> Any:
        total = nl.sum(nl.square(tile), axis=[1])
        return nl.multiply(tile, nl.rsqrt(total / tile.shape[1]))

    x = random(ROWS, 64)
    expected = x / np.sqrt(np.mean(np.square(x.astype(np.float64)), axis=1, keepdims=True))
    np.testing.assert_allclose(outputs(over_tiles(normalised), x), expected, rtol=1e-5)
    soft = outputs(over_tiles(lambda tile: nl.softmax(tile, axis=1)), x)
    np.testing.assert_allclose(soft, special.softmax(x.astype(np.float64), axis=1), rtol=1e-5)
    means = outputs(over_tiles(lambda tile: nisa.tensor_reduce(np.add, tile, axis=[1]), columns=1), x)
    np.testing.assert_allclose(means, x.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-5)


def test_storing_an_undefined_lane_is_a_finding() -> None:
    """Without its mask the store uses what was never loaded (NK405)."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.arange(128)[:, None], nl.arange(64)[None, :]
        tile = nl.load(x[i_p, i_f], mask=i_p < 100)
        nl.store(result, nl.exp(tile))
        return result

    finding = refusal(kernel, random(100, 64))
    assert finding.rule == "NK405"
    assert "1792 of 8192 elements" in finding.message
    done = run(kernel, random(100, 64), rules="report")
    assert [each.rule for each in done.findings] == ["NK405"]
    np.testing.assert_allclose(done.outputs[:100], np.exp(random(100, 64)), rtol=1e-6)


@pytest.mark.parametrize(
    "use",
    [lambda tile: nl.sum(tile, axis=1), lambda tile: nl.softmax(tile, axis=1), lambda tile: nl.matmul(tile, tile)],
)
def test_mixing_undefined_lanes_with_others_is_a_finding(use: Any) -> None:
    """A sum along half-loaded rows and a product of them use lanes that were never loaded (NK405)."""

    def kernel(x: Any) -> Any:
        return use(nl.load(x, mask=nl.arange(64)[None, :] < 40))

    assert refusal(kernel, random(64, 64)).rule == "NK405"


def test_an_assignment_carries_undefined_lanes_along() -> None:
    """Copied into another tile, lanes stay undefined there until they are written."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        loaded = nl.load(x, mask=nl.arange(64)[None, :] < 40)
        tile = nl.zeros((64, 64), dtype=x.dtype)
        computed = nl.exp(loaded)
        tile[...] = computed + 1
        tile[:, 40:64] = 3
        nl.store(result, tile)
        return result

    x = random(64, 64)
    expected = np.exp(x) + 1
    expected[:, 40:] = 3
    np.testing.assert_allclose(outputs(kernel, x), expected, rtol=1e-6)


@pytest.mark.parametrize("side", ["moving", "stationary"])
@pytest.mark.parametrize("defined", [40, 0])
@pytest.mark.parametrize("order", [(1, 0, 1), (0, 1, 1), (1, 1, 0)])
@pytest.mark.parametrize("call", ["nisa.nc_matmul", "nl.matmul"])
def test_undefined_columns_travel_through_sums_of_products(
    call: str, order: tuple[int, ...], defined: int, side: str
) -> None:
    """Columns that a mask left out, of either operand, make only their own columns or rows of the sum undefined.

    Also where the mask left out all of an operand. They stay undefined whatever is added before and after.
    """
    x = random(128, 64)

    def kernel(x: Any, stored: int) -> Any:
        result = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(result, 0.0)
        whole, part = nl.load(x), nl.ndarray((128, 64), dtype=x.dtype)
        i_p, i_f = nl.mgrid[0:128, 0:64]
        part[i_p, i_f] = nl.load(x[i_p, i_f], mask=i_f < defined)
        total = nl.zeros((64, 64), dtype=nl.float32, buffer=nl.psum)
        for each in order:
            other = whole if each else part
            pair = (whole, other) if side == "moving" else (other, whole)
            total += nisa.nc_matmul(*pair) if call == "nisa.nc_matmul" else nl.matmul(*pair, transpose_x=True)
        i_row, i_column = nl.mgrid[0:64, 0:64]
        mask = (i_column if side == "moving" else i_row) < stored
        nl.store(result[i_row, i_column], total[i_row, i_column], mask=mask)
        return result

    measured = outputs(kernel, x, defined)
    expected = 3 * (x.T.astype(np.float64) @ x)
    kept = np.arange(64) < defined
    np.testing.assert_allclose(measured, expected * (kept if side == "moving" else kept[:, None]), rtol=1e-4, atol=1e-3)
    assert refusal(kernel, x, defined + 1).rule == "NK405"


def test_undefined_and_defined_rows_that_meet_in_a_contraction_are_a_finding() -> None:
    """Each element of the product would be a sum of both (NK405)."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        i_p, i_f = nl.mgrid[0:128, 0:64]
        tile = nl.load(x[i_p, i_f], mask=i_p < 100)
        nl.store(result, nl.matmul(nl.load(x), tile, transpose_x=True))
        return result

    finding = refusal(kernel, random(128, 64))
    assert finding.rule == "NK405"
    assert "nc_matmul: 1792 of 8192 elements" in finding.message
