"""nl's reductions and softmax against NumPy, over one and several of the last dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
import nkitools.dialects.modern.language as nl
from tests.isa.issued import inside, placed, tile
from tests.isa.oracles import float64, held, sample

REDUCTIONS = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod, "mean": np.mean}


def computed(function: Any, x: Any, *args: Any, chip: str = "trn2", **kwargs: Any) -> tuple[np.ndarray, Any]:
    """Values and dtype of a function of one tile."""

    def body() -> tuple[np.ndarray, Any]:
        result = function(placed(x if not isinstance(x, np.ndarray) else tile(x)), *args, **kwargs)
        assert result.buffer == nl.sbuf
        return np.array(result.array), result.dtype

    found: tuple[np.ndarray, Any] = inside(body, chip=chip)
    return found


def numpy_softmax(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """In float64, written out."""
    raised = np.exp(float64(x) - float64(x).max(axis=axes, keepdims=True))
    return raised / raised.sum(axis=axes, keepdims=True)


def last(ndim: int, count: int) -> tuple[int, ...]:
    """The last ``count`` axes."""
    return tuple(range(ndim - count, ndim))


shapes = st.lists(st.integers(1, 6), min_size=2, max_size=5)


@given(st.sampled_from(sorted(REDUCTIONS)), shapes, st.integers(1, 4), st.booleans(), st.booleans())
def test_reductions_are_numpys(name: str, shape: list[int], count: int, keepdims: bool, from_the_end: bool) -> None:
    """Over the last dimensions, in any spelling; of what is left see the next test."""
    axes = last(len(shape), min(count, len(shape) - 1))
    keepdims = keepdims or len(axes) == len(shape) - 1
    x = np.random.default_rng(1).integers(-3, 4, shape).astype(np.float32)
    expected = REDUCTIONS[name](float64(x), axis=axes, keepdims=keepdims)
    spelled: Any = [axis - len(shape) for axis in axes] if from_the_end else axes
    values, dtype = computed(getattr(nl, name), x, spelled if len(axes) > 1 else spelled[0], keepdims=keepdims)
    assert dtype is nl.float32
    assert values.shape == expected.shape
    np.testing.assert_allclose(values, expected, rtol=2**-22, atol=0)


@pytest.mark.parametrize("version", ["0.6", "0.7"])
@pytest.mark.parametrize(("shape", "axis"), [((4, 6), 1), ((4, 6), -1), ((4, 2, 3), (1, 2)), ((4, 1, 1, 3), [1, 2, 3])])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_result_has_two_dimensions(name: str, shape: tuple[int, ...], axis: Any, version: str) -> None:
    """NK110 where the partition dimension alone would be left, as AWS's simulator has it; keepdims=True is right."""

    def kernel(x: Any, keeps: bool) -> Any:
        out = nl.ndarray((4, 1), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, getattr(nl, name)(nl.load(x), axis, keepdims=keeps).reshape((4, 1)))
        return out

    x = np.random.default_rng(1).integers(1, 4, shape).astype(np.float32)
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(kernel, x, False, nki_version=version)
    assert (caught.value.finding.rule, caught.value.finding.remedy) == ("NK110", "Pass keepdims=True.")
    output = nkitools.simulate(kernel, x, True, nki_version=version).outputs
    expected = REDUCTIONS[name](float64(x.reshape(4, -1)), axis=(1,), keepdims=True)
    np.testing.assert_allclose(output, expected, rtol=2**-22, atol=0)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", [nl.bfloat16, nl.int16, nl.uint8], ids=str)
@pytest.mark.parametrize("asked", [None, nl.float32, nl.int32], ids=str)
def test_reductions_run_in_float32_and_are_cast_once(name: str, dtype: Any, asked: Any) -> None:
    """The tile's dtype, or the one asked for."""
    x = np.rint(sample((64, 9), nl.float32, 2, 0, 4)).astype(dtype.dtype)
    values, result = computed(getattr(nl, name), x, 1, dtype=asked, keepdims=True)
    assert result is (asked or dtype)
    expected = REDUCTIONS[name](float64(x), axis=1, keepdims=True)
    if name == "mean":  # the sum times 1 / n, which is one more rounding
        expected = float64(x.sum(axis=1, keepdims=True, dtype=np.float32) * np.float32(1 / 9))
    np.testing.assert_array_equal(values, held(expected, asked or dtype))


@given(shapes, st.integers(1, 4), st.booleans(), st.floats(-4, 4, width=16), st.integers(0, 99))
def test_variances_are_numpys(shape: list[int], count: int, keepdims: bool, shift: float, seed: int) -> None:
    """Of the population, over the last dimensions, which stay whatever keepdims says; a shift changes nothing."""
    axes = last(len(shape), min(count, len(shape) - 1))
    x = sample(tuple(shape), nl.float32, seed)
    values, dtype = computed(nl.var, x, axes, keepdims=keepdims)
    assert dtype is nl.float32
    np.testing.assert_allclose(values, float64(x).var(axis=axes, keepdims=True), rtol=1e-5, atol=1e-6)
    shifted, _ = computed(nl.var, x + np.float32(shift), axes)
    np.testing.assert_allclose(shifted, values, rtol=1e-5, atol=1e-5)
    doubled, _ = computed(nl.var, 2 * x, axes)
    np.testing.assert_array_equal(doubled, 4 * values)


def test_a_variance_survives_a_large_mean() -> None:
    """It is that of the distances from the mean, not a difference of two large numbers."""
    x = np.float32(2**20) + np.tile(np.array([0, 2], np.float32), (4, 512))
    np.testing.assert_array_equal(computed(nl.var, x, 1)[0], np.ones((4, 1)))


@pytest.mark.parametrize("dtype", [nl.bfloat16, nl.int16], ids=str)
@pytest.mark.parametrize("asked", [None, nl.float32], ids=str)
def test_the_dtype_of_a_variance(dtype: Any, asked: Any) -> None:
    """That of the tile, also where it cannot hold it well, or the one asked for; also of a tile in PSUM."""
    x = sample((16, 3, 40), dtype, 2, -9, 9)
    values, result = computed(nl.var, tile(x, "psum", dtype=dtype), (1, 2), dtype=asked)
    assert result is (asked or dtype)
    expected = float64(x).var(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(float64(values), float64(held(expected, asked or dtype)), rtol=2**-8)


@given(shapes, st.integers(1, 4), st.sampled_from([nl.float32, nl.uint8, nl.bfloat16]), st.integers(0, 99))
def test_all_is_numpys(shape: list[int], count: int, dtype: Any, seed: int) -> None:
    """1 or 0, over the last dimensions, which are gone; not-a-number and fractions are not 0."""
    axes = last(len(shape), min(count, len(shape) - 1))
    x = np.random.default_rng(seed).choice([0, 1, 1, 1, 2], shape).astype(dtype.dtype)
    if dtype.is_float:
        x = np.where(x == 2, np.array(np.nan if seed % 2 else 0.25, dtype.dtype), x)
    expected = (x != 0).all(axis=axes)
    expected = expected if expected.ndim > 1 else expected[:, None]
    values, result = computed(nl.all, x, axes)
    assert result is dtype
    np.testing.assert_array_equal(values, expected.astype(dtype.dtype))


def test_all_of_comparisons() -> None:
    """What it is for: a tile of 1 and 0, in another dtype."""
    x = sample((64, 9), seed=1)
    values, dtype = computed(lambda tile: nl.all(nl.less(tile, 3.9), axis=1, dtype=nl.uint8), x)
    assert dtype is nl.uint8
    np.testing.assert_array_equal(values, (x < 3.9).all(axis=1, keepdims=True))


def test_two_thousand_bfloat16_ones_make_two_thousand() -> None:
    """Not 256."""
    ones = np.ones((4, 2048), nl.bfloat16.dtype)
    assert (computed(nl.sum, ones, 1, keepdims=True)[0].astype(np.float32) == 2048).all()
    assert (computed(nl.mean, ones, 1, keepdims=True)[0].astype(np.float32) == 1).all()


@given(shapes, st.integers(1, 4), st.sampled_from([nl.float32, nl.bfloat16]), st.integers(0, 99))
def test_softmax_is_the_float64_softmax(shape: list[int], count: int, dtype: Any, seed: int) -> None:
    """Over one or several dimensions; what float32 loses in ``x - max`` is all that is lost."""
    axes = last(len(shape), min(count, len(shape) - 1))
    x = sample(tuple(shape), dtype, seed, -20, 20)
    values, result = computed(nl.softmax, x, axes if len(axes) > 1 else axes[0])
    assert result is dtype
    tolerance = 2**-18 if dtype is nl.float32 else 2**-8
    np.testing.assert_allclose(float64(values), numpy_softmax(x, axes), rtol=tolerance, atol=1e-38)


def test_softmax_defaults_and_large_values() -> None:
    """The last axis by default; no overflow; a dtype asked for."""
    x = np.array([[1000, 1001, 999], [-1000, -1000, -1000]], np.float32)
    np.testing.assert_allclose(computed(nl.softmax, x)[0], numpy_softmax(x, (1,)), rtol=1e-6)
    values, dtype = computed(nl.softmax, x, -1, nl.bfloat16)
    assert dtype is nl.bfloat16
    np.testing.assert_array_equal(values, held(numpy_softmax(x, (1,)), nl.bfloat16))


def test_softmax_does_not_disturb_later_reductions() -> None:
    """It resets the Scalar Engine's registers first."""
    x = sample((32, 12))

    def body() -> list[np.ndarray]:
        data = placed(tile(x))
        return [np.array(nl.softmax(data).array) for _ in range(2)]

    first, second = inside(body)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("function", [*REDUCTIONS, "softmax", "var", "all"])
@pytest.mark.parametrize(
    ("axis", "rule"), [(0, "NK112"), ((0, 1, 2), "NK112"), (3, "NK112"), (1, "NK112"), ("1", "NK609"), (1.0, "NK609")]
)
def test_other_axes_are_refused(function: str, axis: Any, rule: str) -> None:
    """The partition dimension, dimensions in the middle, dimensions that there are not."""
    with pytest.raises(nkitools.KernelError) as caught:
        computed(getattr(nl, function), np.ones((4, 3, 2), np.float32), axis)
    assert caught.value.finding.rule == rule
    assert "`axis`" in caught.value.finding.message


@pytest.mark.parametrize("function", [*REDUCTIONS, "softmax", "var", "all"])
def test_only_tiles_are_reduced(function: str) -> None:
    """A number is none; a tensor in HBM is not on chip."""
    arguments = (1,) if function != "softmax" else ()
    with pytest.raises(nkitools.KernelError, match="NK609"):
        inside(lambda: getattr(nl, function)(2.0, *arguments))
    keywords = {"keepdims": True} if function in REDUCTIONS else {}
    with pytest.raises(nkitools.KernelError, match="NK201"):
        computed(getattr(nl, function), tile(np.ones((4, 3), np.float32), "hbm"), *arguments, **keywords)


def test_256_partitions_are_reported_once_and_computed() -> None:
    """Under rules="report"; one cause, one finding, however many instructions."""
    x = sample((256, 6))
    results: list[np.ndarray] = []
    run = nkitools.simulate(lambda: results.append(np.array(nl.softmax(placed(tile(x))).array)), rules="report")
    np.testing.assert_allclose(results[0], numpy_softmax(x, (1,)), rtol=1e-6)
    assert [finding.rule for finding in run.findings] == ["NK101"]
