"""``nl.*`` element-wise functions and reductions against NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import neuronxcc.nki.language as nl
import numpy as np
import pytest
from scipy import special

from tests.dialects.legacy.running import outputs, random, refusal, run, stored

UNARY = {
    "exp": np.exp,
    "tanh": np.tanh,
    "sigmoid": special.expit,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x * special.ndtr(x),
    "gelu_apprx_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "gelu_apprx_sigmoid": lambda x: x * special.expit(1.702 * x),
    "silu": lambda x: x * special.expit(x),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "erf": special.erf,
    "square": np.square,
    "sign": np.sign,
    "abs": np.abs,
    "negative": np.negative,
}


@pytest.mark.parametrize("name", sorted(UNARY))
def test_functions_of_one_tile(name: str) -> None:
    """Each function agrees with its definition in float64."""
    x = random(16, 8)
    expected = UNARY[name](x.astype(np.float64))
    np.testing.assert_allclose(outputs(stored(getattr(nl, name)), x), expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "function"), [("log", np.log), ("sqrt", np.sqrt), ("reciprocal", np.reciprocal)])
def test_functions_of_positive_numbers(name: str, function: Any) -> None:
    """The same for functions that want positive numbers; rsqrt is one over the square root."""
    x = np.abs(random(16, 8)) + 0.1
    np.testing.assert_allclose(outputs(stored(getattr(nl, name)), x), function(x.astype(np.float64)), rtol=2e-6)
    np.testing.assert_allclose(outputs(stored(nl.rsqrt), x), 1 / np.sqrt(x.astype(np.float64)), rtol=2e-6)


@pytest.mark.parametrize(
    "name", ["add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "less", "equal", "greater_equal"]
)
def test_functions_of_two_tiles_broadcast_both_ways(name: str) -> None:
    """Tiles, numbers, columns, rows and both broadcast as in NumPy, partitions too."""
    x, y = np.abs(random(16, 8)) + 0.5, np.abs(random(16, 8, seed=1)) + 0.5
    function, numpy_function = getattr(nl, name), getattr(np, name)
    pairs = [(x, y), (x, y[:, :1]), (x, y[:1]), (x[:1], y), (x[:, :1], y[:1]), (x, y[:1, :1])]
    for first, second in pairs:
        np.testing.assert_allclose(
            outputs(stored(function), np.ascontiguousarray(first), np.ascontiguousarray(second)),
            numpy_function(first, second),
            rtol=2e-6,
        )
    np.testing.assert_allclose(
        outputs(stored(lambda a: function(a, 1.5)), x), numpy_function(x, np.float32(1.5)), rtol=2e-6
    )
    np.testing.assert_allclose(
        outputs(stored(lambda a: function(1.5, a)), x), numpy_function(np.float32(1.5), x), rtol=2e-6
    )


def test_comparisons_and_logic_are_of_dtype_bool() -> None:
    """Comparison and logical functions give truth values unless another dtype is asked for."""
    x, y = np.rint(random(16, 8)), np.rint(random(16, 8, seed=1))
    for name in ("less", "not_equal", "logical_and", "logical_or", "logical_xor"):
        measured = outputs(stored(getattr(nl, name)), x, y)
        assert measured.dtype == np.bool_
        np.testing.assert_array_equal(measured, getattr(np, name)(x, y))
    np.testing.assert_array_equal(outputs(stored(nl.logical_not), x), np.logical_not(x))
    assert outputs(stored(lambda a, b: nl.less(a, b, dtype=nl.float32)), x, y).dtype == np.float32


def test_a_dtype_may_be_asked_for() -> None:
    """The result is cast once to the dtype that is given."""
    x = random(16, 8)
    measured = outputs(stored(lambda a: nl.exp(a, dtype=nl.bfloat16)), x)
    np.testing.assert_array_equal(measured, np.exp(x).astype(ml_dtypes.bfloat16))


@pytest.mark.parametrize("name", ["sum", "max", "min", "prod", "mean"])
@pytest.mark.parametrize("axis", [1, -1, 2, (1, 2), [2], [1]])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(name: str, axis: Any, keepdims: bool) -> None:
    """Any free axes are reduced; a result has at least two dimensions."""
    x = random(8, 3, 4)
    expected = getattr(np, name)(
        x.astype(np.float64), axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims
    )
    expected = expected if expected.ndim > 1 else expected[:, None]
    measured = outputs(stored(lambda a: getattr(nl, name)(a, axis=axis, keepdims=keepdims)), x)
    assert measured.shape == expected.shape
    np.testing.assert_allclose(measured, expected, rtol=1e-5, atol=1e-6)


def test_pooling_reduces_axes_that_are_not_neighbours() -> None:
    """A five-dimensional index and a reduction of two inner axes pool windows."""

    def kernel(x: Any) -> Any:
        i0, i1, i2, i3, i4 = nl.mgrid[0:4, 0:3, 0:2, 0:5, 0:2]
        result = nl.ndarray((4, 3, 5), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x)
        nl.store(result, nl.max(tile[i0, 2 * i1 + i2, 2 * i3 + i4], axis=[2, 4]))
        return result

    x = random(4, 6, 10)
    np.testing.assert_array_equal(outputs(kernel, x), x.reshape(4, 3, 2, 5, 2).max(axis=(2, 4)))


def test_means_of_integers_are_float32() -> None:
    """The mean of integers is a float32; variance and all reduce as well."""
    n = np.arange(32, dtype=np.int32).reshape(4, 8)
    measured = outputs(stored(lambda a: nl.mean(a, axis=1)), n)
    assert measured.dtype == np.float32
    np.testing.assert_array_equal(measured, n.mean(axis=1, keepdims=True))
    x = random(4, 8)
    np.testing.assert_allclose(outputs(stored(lambda a: nl.var(a, axis=1)), x), x.var(axis=1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(outputs(stored(lambda a: nl.all(a, axis=1)), n), n.all(axis=1, keepdims=True))


@pytest.mark.parametrize("axis", [1, 2, (1, 2)])
def test_softmax(axis: Any) -> None:
    """Softmax along the last axes; compute_dtype is another way to give the dtype."""
    x = random(8, 3, 4)
    axes = (1, 2) if axis != 2 else 2
    measured = outputs(stored(lambda a: nl.softmax(a, axis=axes)), x)
    np.testing.assert_allclose(measured, special.softmax(x.astype(np.float64), axis=axes), rtol=1e-5)
    narrow = outputs(stored(lambda a: nl.softmax(a, axis=axes, compute_dtype=nl.bfloat16)), x)
    assert narrow.dtype == ml_dtypes.bfloat16


def test_masked_calls_compute_their_box() -> None:
    """A mask makes the instruction smaller, for element-wise functions, reductions and softmax alike."""

    def kernel(x: Any) -> Any:
        i_p, i_f = nl.arange(16)[:, None], nl.arange(8)[None, :]
        mask = (i_p < 10) & (i_f < 6)
        tile = nl.load(x)
        product = nl.ndarray((10, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        total = nl.ndarray((10, 1), dtype=x.dtype, buffer=nl.shared_hbm)
        soft = nl.ndarray((10, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        copied = nl.ndarray((10, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        for result, made in (
            (product, nl.multiply(tile, tile, mask=mask)),
            (total, nl.sum(tile, axis=1, mask=mask)),
            (soft, nl.softmax(tile, axis=1, mask=mask)),
            (copied, nl.copy(tile, mask=mask)),
        ):
            nl.store(result, made[0 : result.shape[0], 0 : result.shape[1]])
        return product, total, soft, copied

    x = random(16, 8)
    part = x[:10, :6]
    product, total, soft, copied = outputs(kernel, x)
    np.testing.assert_allclose(product, part * part, rtol=1e-6)
    np.testing.assert_allclose(total, part.sum(axis=1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(soft, special.softmax(part, axis=1), rtol=1e-5)
    np.testing.assert_array_equal(copied, part)


ROUNDING = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "sin": np.sin, "cos": np.cos, "arctan": np.arctan}


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_the_sine_beyond_pi_is_a_warning(dtype: Any) -> None:
    """NK305 with the number of such elements, which are computed; at pi and under a mask that leaves them out none."""
    x = (20 * random(16, 8)).astype(dtype)
    done = run(stored(nl.sin), x)
    (finding,) = done.findings
    assert (finding.rule, finding.severity) == ("NK305", "warning")
    outside = int((np.abs(x.astype(np.float64)) > np.float32(np.pi)).sum())
    assert f"{outside} of 128 elements" in finding.message
    np.testing.assert_allclose(
        done.outputs.astype(np.float64), np.sin(x.astype(np.float64)), atol=1e-6 if dtype is np.float32 else 5e-3
    )
    assert run(stored(nl.sin), np.full((16, 8), np.pi, np.float32)).findings == []
    assert run(stored(lambda tile: nl.cos(tile)), x).findings == []


@pytest.mark.parametrize("name", sorted(ROUNDING))
def test_rounding_and_trigonometry(name: str) -> None:
    """Whole numbers exactly, angles within 1e-6; on the lanes of an oblique mask; in the input's dtype."""
    x = {"arctan": 0.7, "sin": 1.5}.get(name, 20) * random(16, 8)
    expected = ROUNDING[name](x.astype(np.float64))
    np.testing.assert_allclose(outputs(stored(getattr(nl, name)), x), expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(
        outputs(stored(nl.tan), 0.1 * random(16, 8)), np.tan(0.1 * random(16, 8)), rtol=1e-5, atol=1e-6
    )
    narrow = x.astype(ml_dtypes.bfloat16)
    assert outputs(stored(getattr(nl, name)), narrow).dtype == ml_dtypes.bfloat16

    def kernel(a: Any) -> Any:
        result = nl.ndarray((16, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        tile = nl.zeros((16, 8), dtype=a.dtype)
        tile[...] = getattr(nl, name)(nl.load(a), mask=nl.arange(16)[:, None] > nl.arange(8)[None, :])
        nl.store(result, tile)
        return result

    p, f = np.mgrid[0:16, 0:8]
    np.testing.assert_allclose(outputs(kernel, x), np.where(p > f, expected, 0), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("name", "function"), [("mod", np.mod), ("fmod", np.fmod)])
def test_remainders(name: str, function: Any) -> None:
    """With the sign of the divisor or of the dividend, of tiles, rows and numbers."""
    x, y = 10 * random(16, 8), random(16, 8, seed=1) + 3
    call = getattr(nl, name)
    np.testing.assert_allclose(outputs(stored(call), x, y), function(x, y), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(outputs(stored(call), x, y[:1]), function(x, y[:1]), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(outputs(stored(lambda a: call(a, 3.0)), x), function(x, 3), rtol=1e-5, atol=1e-5)
    whole = np.arange(-64, 64, dtype=np.int32).reshape(16, 8)
    np.testing.assert_array_equal(outputs(stored(lambda a: call(a, np.int32(7))), whole), function(whole, 7))


def test_where() -> None:
    """Of tiles that broadcast, numbers, and conditions of any dtype; the dtype is promoted."""
    x, y, row = random(16, 8), random(16, 8, seed=1), random(1, 8, seed=2)
    np.testing.assert_array_equal(outputs(stored(lambda a, b: nl.where(a > b, a, b)), x, y), np.maximum(x, y))
    np.testing.assert_array_equal(outputs(stored(lambda a, r: nl.where(a > 0, a, r)), x, row), np.where(x > 0, x, row))
    np.testing.assert_array_equal(outputs(stored(lambda a: nl.where(a, 1.0, a)), x), np.where(x != 0, 1, x))
    narrow = x.astype(np.float16)
    assert outputs(stored(lambda a: nl.where(a > 0, a, 0.0)), narrow).dtype == np.float32
    assert outputs(stored(lambda a: nl.where(a > 0, a, np.float16(0))), narrow).dtype == np.float16

    def kernel(a: Any) -> Any:
        result = nl.ndarray((16, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        tile, mask = nl.load(a), nl.arange(16)[:, None] + nl.arange(8)[None, :] < 9
        tile[...] = nl.where(tile > 0, tile, -1.0, mask=mask)
        nl.store(result, tile)
        return result

    p, f = np.mgrid[0:16, 0:8]
    np.testing.assert_array_equal(outputs(kernel, x), np.where((p + f < 9) & (x <= 0), -1, x))


def test_rms_norm() -> None:
    """x / sqrt(sum(x * x) / n + epsilon) * w, with one row of weights for all partitions, under a mask."""
    x, w = random(16, 8), random(1, 8, seed=1)

    def expected(a: Any) -> Any:
        return a / np.sqrt(np.square(a).sum(axis=1, keepdims=True) / 8 + 1e-3) * w[:, : a.shape[1]]

    found = outputs(stored(lambda a, b: nl.rms_norm(a, b, 1, 8, 1e-3)), x, w)
    np.testing.assert_allclose(found, expected(x), rtol=1e-5, atol=1e-6)
    narrow = outputs(stored(lambda a, b: nl.rms_norm(a, b, [1], 8, 1e-3, compute_dtype=nl.bfloat16)), x, w)
    assert narrow.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(narrow.astype(np.float32), expected(x), rtol=0.05, atol=0.05)

    def kernel(a: Any, b: Any) -> Any:
        result = nl.ndarray((16, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        tile, mask = nl.zeros((16, 8), dtype=a.dtype), (nl.arange(16)[:, None] < 9) & (nl.arange(8)[None, :] < 6)
        tile[...] = nl.rms_norm(nl.load(a), nl.load(b), axis=1, n=8, epsilon=1e-3, mask=mask)
        nl.store(result, tile)
        return result

    masked = outputs(kernel, x, w)
    np.testing.assert_allclose(masked[:9, :6], expected(x[:9, :6]), rtol=1e-5, atol=1e-6)
    assert not masked[9:].any()
    assert not masked[:, 6:].any()


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (lambda t: nl.sum(t, axis=0), "NK112"),
        (lambda t: nl.sum(t, axis=3), "NK112"),
        (lambda t: nl.sum(t, axis="x"), "NK609"),
        (lambda t: nl.sum(t, axis=1, mask=nl.arange(8)[:, None] >= nl.arange(8)[None, :]), "NK604"),
        (lambda t: nl.exp(t, typ=1), "NK609"),
        (lambda t: nl.bitwise_and(t, t), "NK301"),
        (lambda t: nl.add(t, t, dtype="float7"), "NK301"),
        (lambda t: nl.where(t, 1.0, 2.0), "NK609"),
        (lambda t: nl.where(t, t, t[:, 0:3]), "NK109"),
        (lambda t: nl.rms_norm(t, t, 0, 8), "NK112"),
        (lambda t: nl.rms_norm(t, t, 1, 0), "NK609"),
        (lambda t: nl.rms_norm(t[:, 0:1], t, 1, 1), "NK109"),
        (lambda t: nl.mod(t), "NK609"),
    ],
)
def test_what_is_refused(call: Any, rule: str) -> None:
    """Axes, masks, keywords, dtypes and functions that are not possible are refused by rule."""
    assert refusal(stored(call), random(8, 8)).rule == rule
