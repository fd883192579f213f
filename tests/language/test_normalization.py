"""nl.rms_norm against its formula in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools.dialects.modern.language as nl
from tests.isa.issued import tile
from tests.isa.oracles import float64, held, sample
from tests.language.tiles import computed, issued, refused, values


def formula(x: np.ndarray, w: np.ndarray, axes: tuple[int, ...], n: float, epsilon: float) -> np.ndarray:
    """``x / sqrt(sum(x**2) / n + epsilon) * w``."""
    wide = float64(x)
    root = np.sqrt((wide * wide).sum(axis=axes, keepdims=True) / n + epsilon)
    result: np.ndarray = wide / root * float64(w)
    return result


@pytest.mark.parametrize("chip", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((128, 512), 1), ((128, 512), -1), ((16, 3, 8), 2), ((16, 3, 8), (1, 2)), ((16, 3, 8), [-1])]
)
def test_it_is_the_formula(chip: str, shape: tuple[int, ...], axis: Any) -> None:
    """Over one or several of the last dimensions."""
    x, w = sample(shape, seed=1), sample(shape, seed=2)
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    n = int(np.prod([shape[each] for each in axes]))
    result = values(nl.rms_norm, x, w, axis, n, chip=chip)
    np.testing.assert_allclose(result, formula(x, w, axes, n, 1e-6), rtol=2**-19)


@given(st.floats(2**-20, 2**20, width=32), st.integers(0, 99))
def test_it_does_not_see_the_scale(scale: float, seed: int) -> None:
    """Of its input, where epsilon is nothing beside it; with unit weights the mean square of the result is one."""
    x, w = sample((4, 33), seed=seed, low=0.5), np.ones((4, 33), np.float32)
    result = float64(values(nl.rms_norm, x, w, 1, 33, 0))
    scaled = values(nl.rms_norm, x * np.float32(scale), w, 1, 33, 0)
    np.testing.assert_allclose(scaled, result, rtol=2**-19)
    np.testing.assert_allclose((result**2).mean(axis=1), 1, rtol=2**-18)


def test_epsilon_and_n_are_what_is_given() -> None:
    """A tile that is padded divides by fewer; epsilon keeps zeros from dividing by zero."""
    x, w = sample((8, 10), seed=3), np.ones((8, 10), np.float32)
    x[:, 6:] = 0
    np.testing.assert_allclose(values(nl.rms_norm, x, w, 1, 6, 0.25), formula(x, w, (1,), 6, 0.25), rtol=2**-19)
    assert not values(nl.rms_norm, np.zeros_like(x), w, 1, 10).any()


@pytest.mark.parametrize("w_shape", [(16, 1, 8), (16, 3, 1), (16, 1, 1)])
def test_weights_broadcast_along_free_dimensions(w_shape: tuple[int, ...]) -> None:
    """As in nl.multiply."""
    x, w = sample((16, 3, 8), seed=1), sample(w_shape, seed=2)
    result = values(nl.rms_norm, x, w, 2, 8)
    np.testing.assert_allclose(result, formula(x, w, (2,), 8, 1e-6), rtol=2**-19)


def test_dtypes() -> None:
    """The result has that of ``x``, or the one asked for; what is on the way has compute_dtype."""

    def short(values: np.ndarray) -> np.ndarray:
        return float64(held(values, nl.bfloat16))

    x, w = sample((32, 64), nl.bfloat16, 1), sample((32, 64), nl.float32, 2)
    expected = formula(x, w, (1,), 64, 1e-6)
    result, kind = computed(nl.rms_norm, x, w, 1, 64)
    assert kind is nl.bfloat16
    np.testing.assert_allclose(float64(result), expected, rtol=2**-8)
    result, kind = computed(nl.rms_norm, x, w, 1, 64, dtype=nl.float32)
    assert kind is nl.float32
    np.testing.assert_allclose(result, expected, rtol=2**-19)
    rough = values(nl.rms_norm, x, w, 1, 64, dtype=nl.float32, compute_dtype=nl.bfloat16)
    scale = held(1 / np.sqrt(short(short(short(float64(x) ** 2).sum(axis=1, keepdims=True)) / 64 + 1e-6)), nl.bfloat16)
    np.testing.assert_array_equal(rough, held(short(float64(x) * float64(scale)) * float64(w), nl.float32))


def test_tiles_in_psum_and_what_is_refused() -> None:
    """Both may lie in PSUM; weights of other partitions or sizes do not fit, nor tensors in HBM."""
    x = sample((16, 8))
    expected = formula(x, x, (1,), 8, 1e-6)
    result = values(nl.rms_norm, tile(x, "psum"), tile(x, "psum"), 1, 8)
    np.testing.assert_allclose(result, expected, rtol=2**-19)
    assert refused(nl.rms_norm, x, x[:1], 1, 8).rule == "NK111"
    assert refused(nl.rms_norm, x, x[:8], 1, 8).rule == "NK102"
    assert refused(nl.rms_norm, x, x[:, :3], 1, 8).rule == "NK109"
    assert refused(nl.rms_norm, x[:, :1], x, 1, 8).rule == "NK109"
    assert refused(nl.rms_norm, x, x, 0, 8).rule == "NK112"
    assert refused(nl.rms_norm, tile(x, "hbm"), x, 1, 8).rule == "NK201"
    assert refused(nl.rms_norm, np.ones((129, 4), np.float32), np.ones((129, 4), np.float32), 1, 4).rule == "NK101"


def test_its_root_is_the_precise_one() -> None:
    """On the GpSimd Engine, as nl.rsqrt."""
    engines = dict(issued(nl.rms_norm, sample((4, 4)), sample((4, 4)), 1, 4))
    assert engines["activation"] == "scalar"
    assert ("tensor_scalar", "gpsimd") in issued(nl.rms_norm, sample((4, 4)), sample((4, 4)), 1, 4)
