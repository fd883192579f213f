"""Random tiles: distributions, seeds, masks. Which numbers the chip draws is not published."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
import pytest

from tests.dialects.legacy.running import outputs, random, refusal, stored

I_P, I_F = nl.arange(16)[:, None], nl.arange(8)[None, :]


def drawn(*, seed: Any = None, dtype: Any = np.float32, chip: str = "trn2") -> Any:
    """A (64, 128) tile of nl.rand, after a seed if there is one."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((64, 128), dtype=dtype, buffer=nl.shared_hbm)
        if seed is not None:
            nl.random_seed(nl.load(x) if seed == "tile" else seed)
        nl.store(result, nl.rand((64, 128), dtype=dtype))
        return result

    return outputs(kernel, np.array([[7]], np.int32), chip=chip)


@pytest.mark.parametrize("chip", ["trn1", "trn2", "trn3"])
def test_rand_is_uniform_between_0_and_1(chip: str) -> None:
    """8192 numbers: their mean is 1/2 and their variance 1/12 within five standard errors."""
    x = drawn(chip=chip)
    assert x.min() >= 0
    assert x.max() < 1
    assert abs(x.mean() - 1 / 2) < 5 * np.sqrt(1 / 12 / x.size)
    assert abs(x.var() - 1 / 12) < 5 * np.sqrt(1 / 180 / x.size)
    assert np.unique(x).size > 8000


def test_the_same_seed_gives_the_same_numbers() -> None:
    """A number, or the same number in a tile; another seed gives others; the dtype is the one asked for."""
    np.testing.assert_array_equal(drawn(seed=7), drawn(seed="tile"))
    assert (drawn(seed=7) != drawn(seed=8)).mean() > 0.99
    np.testing.assert_array_equal(drawn(seed=2**32 - 1), drawn(seed=-1))
    assert drawn(dtype=nl.bfloat16).dtype == ml_dtypes.bfloat16


def test_a_seed_that_a_mask_leaves_out_is_none() -> None:
    """The generator goes on as it was."""

    def kernel(x: Any, masked: bool) -> Any:
        result = nl.ndarray((4, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.random_seed(5)
        nl.random_seed(9, mask=not masked)
        nl.store(result, nl.rand((4, 4)))
        return result

    x = random(4, 4)
    assert (outputs(kernel, x, True) != outputs(kernel, x, False)).any()


@pytest.mark.parametrize("function", [nisa.dropout, nl.dropout])
def test_dropout(function: Any) -> None:
    """None at 0, all at 1, a quarter at 1/4; what is kept is not scaled; another dtype on the way."""
    x = np.abs(random(64, 128)) + 1
    np.testing.assert_array_equal(outputs(stored(lambda t: function(t, 0.0)), x), x)
    assert not outputs(stored(lambda t: function(t, 1.0)), x).any()
    found = outputs(stored(lambda t: function(t, 0.25)), x)
    np.testing.assert_array_equal(found[found != 0], x[found != 0])
    assert abs((found == 0).mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / x.size)
    assert outputs(stored(lambda t: function(t, 0.5, dtype=nl.bfloat16)), x).dtype == ml_dtypes.bfloat16


def test_probabilities_of_partitions_and_of_one_tile() -> None:
    """nisa.dropout has one for each partition, nl.dropout also one for all."""
    x, column = np.ones((16, 8), np.float32), (np.arange(16) % 2).astype(np.float32).reshape(16, 1)
    np.testing.assert_array_equal(outputs(stored(nisa.dropout), x, column), np.where(column == 1, 0, x))
    assert not outputs(stored(nl.dropout), x, np.ones((1, 1), np.float32)).any()


def test_what_is_no_probability_in_a_tile_drops_all_or_nothing() -> None:
    """As AWS's own example relies on; not-a-number is refused."""
    x, column = np.ones((4, 8), np.float32), np.array([[-3.0], [0.0], [1.0], [86.2]], np.float32)
    found = outputs(stored(nisa.dropout), x, column)
    np.testing.assert_array_equal(found, [[1.0] * 8, [1.0] * 8, [0.0] * 8, [0.0] * 8])
    column[0] = np.nan
    assert refusal(stored(nisa.dropout), x, column).rule == "NK609"


def test_dropout_under_a_mask() -> None:
    """The lanes that the mask leaves out stay as they were."""

    def kernel(x: Any) -> Any:
        result = nl.ndarray((16, 8), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        tile[...] = nisa.dropout(tile, 1.0, mask=I_P + I_F < 9)
        nl.store(result, tile)
        return result

    x = np.ones((16, 8), np.float32)
    p, f = np.mgrid[0:16, 0:8]
    np.testing.assert_array_equal(outputs(kernel, x), np.where(p + f < 9, 0, 1))


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda t: nisa.dropout(t, -0.5), "NK609"),
        (lambda t: nisa.dropout(nisa.memset((4, 4), 1, nl.int32), 0.5, dtype=nl.float32), "NK301"),
        (lambda t: nl.dropout(t, t), "NK109"),
        (lambda t: nl.random_seed(2**32), "NK609"),
        (lambda t: nl.random_seed(1.5), "NK609"),
        (lambda t: nl.random_seed(t), "NK109"),
        (lambda t: nl.rand((0, 4)), "NK609"),
    ],
)
def test_what_is_refused(call: Any, rule: str) -> None:
    """Probabilities, dtypes, seeds and shapes that are none."""
    assert refusal(stored(call), random(16, 8)).rule == rule
