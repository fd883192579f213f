"""The Pallas matrix products: exact where integers are, and within the bounds of rounding where they are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

jax = pytest.importorskip("jax")

import ml_dtypes  # noqa: E402  (JAX decides whether this file is collected)

import nkitools.pallas  # noqa: E402
from kernels.pallas import matmul as kernel_module  # noqa: E402
from kernels.pallas.matmul import Blocks, linear, matmul, matmul_int8  # noqa: E402
from tests.kernels.mutants import mutant  # noqa: E402
from tests.kernels.pallas.compiling import assert_compiles, zeros  # noqa: E402

# Several blocks in every direction, which the sizes do not fill, and the least that there can be.
BLOCKS = Blocks(64, 128, 128)
SHAPES = [(70, 200, 130), (1, 1, 1)]

# Half the distance of neighbours, relative to the value (unit roundoff).
ROUNDING = {"bfloat16": 2.0**-8, "float32": 2.0**-24}


def integers(*shape: int, low: int, high: int, dtype: Any) -> npt.NDArray[Any]:
    return np.random.default_rng(sum(shape)).integers(low, high, shape, endpoint=True).astype(dtype)


def normal(*shape: int) -> npt.NDArray[Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(ml_dtypes.bfloat16)


def activated(x: npt.NDArray[np.float64], activation: str) -> npt.NDArray[np.float64]:
    """The activations as they are defined; gelu by tanh (Hendrycks and Gimpel, 2016)."""
    match activation:
        case "relu":
            return np.maximum(x, 0)
        case "silu":
            return x / (1 + np.exp(-x))
        case "gelu":
            return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x


@pytest.mark.parametrize("size", SHAPES)
def test_int8_is_exact(run_kernel: Callable[..., Any], size: tuple[int, int, int]) -> None:
    """Every element of an int8 product is the integer that it should be."""
    m, k, n = size
    x, y = integers(m, k, low=-128, high=127, dtype=np.int8), integers(k, n, low=-128, high=127, dtype=np.int8)
    measured = run_kernel(matmul_int8, x, y, blocks=BLOCKS)
    assert measured.dtype == np.int32
    np.testing.assert_array_equal(measured, x.astype(np.int64) @ y.astype(np.int64))


def test_int8_sums_beyond_int16(run_kernel: Callable[..., Any]) -> None:
    """The largest products, (-128)^2, add up to 2^24 where 1024 of them meet."""
    x = np.full((32, 1024), -128, np.int8)
    np.testing.assert_array_equal(run_kernel(matmul_int8, x, x.T, blocks=BLOCKS), np.full((32, 32), 2**24))


def test_bfloat16_rounds_once(run_kernel: Callable[..., Any]) -> None:
    """Sums of small integers are exact in float32, so the result is the true one rounded to bfloat16, bit by bit."""
    m, k, n = SHAPES[0]
    x = integers(m, k, low=-8, high=8, dtype=ml_dtypes.bfloat16)
    y = integers(k, n, low=-8, high=8, dtype=ml_dtypes.bfloat16)
    measured = run_kernel(matmul, x, y, blocks=BLOCKS)
    assert measured.dtype == ml_dtypes.bfloat16
    exact = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_array_equal(measured, exact.astype(ml_dtypes.bfloat16))


def assert_rounded_once(measured: npt.NDArray[Any], activation: str) -> None:
    """``measured`` is that of the operands below, up to the sum's rounding in float32 and the output's in bfloat16."""
    x, weights, bias = linear_operands()
    wide, wide_weights = x.astype(np.float64), weights.astype(np.float64)
    wanted = activated(wide @ wide_weights + bias, activation)
    # n additions err by at most n roundings of the sum of magnitudes; no activation is steeper than 1.13, and its own
    # evaluation takes a handful of operations more.
    magnitude = np.abs(wide) @ np.abs(wide_weights) + np.abs(bias)
    bound = 1.13 * (200 + 20) * ROUNDING["float32"] * magnitude + ROUNDING["bfloat16"] * np.abs(wanted)
    assert np.all(np.abs(measured.astype(np.float64) - wanted) <= bound)


def linear_operands() -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.float32]]:
    return normal(70, 200), normal(200, 130), np.linspace(-2, 2, 130, dtype=np.float32)


def test_linear_is_rounded_once(run_kernel: Callable[..., Any]) -> None:
    """Bias and activation are those of float64, and nothing is rounded to bfloat16 before them."""
    assert_rounded_once(run_kernel(linear, *linear_operands(), activation="gelu", blocks=BLOCKS), "gelu")


@pytest.mark.parametrize("activation", ["none", "relu", "silu"])
def test_the_other_activations(activation: str) -> None:
    """The same holds for them, interpreted."""
    run = nkitools.pallas.run(linear, *linear_operands(), activation=activation, blocks=BLOCKS)
    assert_rounded_once(run.outputs, activation)


def test_nothing_to_add_up_leaves_the_bias(run_kernel: Callable[..., Any]) -> None:
    """A product over no columns is zero, so `linear` gives its activated bias; one without rows is empty."""
    bias = np.array([-1, 2], np.float32)
    nothing = np.zeros((3, 0), ml_dtypes.bfloat16), np.zeros((0, 2), ml_dtypes.bfloat16)
    np.testing.assert_array_equal(run_kernel(linear, *nothing, bias, activation="relu"), [[0, 2]] * 3)
    assert run_kernel(matmul_int8, np.zeros((0, 5), np.int8), np.zeros((5, 2), np.int8)).shape == (0, 2)


def test_wrong_operands_are_refused(run_kernel: Callable[..., Any]) -> None:
    """The author's words name the operand, its shape or dtype, and what is wanted."""
    good = np.zeros((64, 128), np.int8)
    with pytest.raises(TypeError, match="the right operand is int32; this kernel multiplies int8"):
        run_kernel(matmul_int8, good, good.T.astype(np.int32))
    with pytest.raises(ValueError, match="the left operand has 128 columns, the right 64 rows"):
        run_kernel(matmul_int8, good, good)
    with pytest.raises(ValueError, match="rows is a multiple of 32, depth and columns are multiples of 128"):
        run_kernel(matmul_int8, good, good.T, blocks=Blocks(100, 128, 128))
    with pytest.raises(ValueError, match="activation is 'tanh'; it is one of none, relu, silu, gelu"):
        run_kernel(linear, normal(2, 3), normal(3, 4), np.zeros(4, np.float32), activation="tanh")
    with pytest.raises(ValueError, match=r"bias is float16 \(4,\); weights \(3, 4\) need float32 \(4,\)"):
        run_kernel(linear, normal(2, 3), normal(3, 4), np.zeros(4, np.float16))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("@pl.when(pl.program_id(2) == 0)", "@pl.when(pl.program_id(0) + pl.program_id(2) == 0)"),
        ("+= jnp.dot(x[...]", "= jnp.dot(x[...]"),
        ("lambda row, column, step: (step, column)", "lambda row, column, step: (0, column)"),
    ],
    ids=["the accumulator is cleared once only", "the last step alone counts", "the same weights at every step"],
)
def test_the_comparison_notices(old: str, new: str) -> None:
    """A kernel with the mistake does not agree, so the agreement above means something."""
    x, y = (integers(*size, low=-128, high=127, dtype=np.int8) for size in ((128, 256), (256, 128)))
    broken = nkitools.pallas.run(mutant(kernel_module, old, new).matmul_int8, x, y, blocks=BLOCKS).outputs
    assert not np.array_equal(broken, x.astype(np.int64) @ y.astype(np.int64))


def test_they_compile_for_tpus() -> None:
    """With the default blocks, several in every direction, which leave room in the least VMEM."""
    assert_compiles(matmul_int8, *[zeros(np.int8, 2048, 2048)] * 2)
    assert_compiles(matmul, *[zeros(ml_dtypes.bfloat16, 2048, 2048)] * 2)


@pytest.mark.parametrize("activation", ["none", "relu", "silu", "gelu"])
def test_every_activation_compiles_for_tpus(activation: str) -> None:
    """The activations use nothing that the TPU compiler lacks."""
    weights = zeros(ml_dtypes.bfloat16, 256, 384)
    x, bias = zeros(ml_dtypes.bfloat16, 130, 256), zeros(np.float32, 384)
    assert_compiles(linear, x, weights, bias, activation=activation, blocks=BLOCKS)
