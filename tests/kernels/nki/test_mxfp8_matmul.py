"""The MXFP8 matmul kernel against operands that the host quantises, and against the plain product."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import nki.language as nl
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nkitools
from kernels import gallery, references
from kernels.nki import mxfp8_matmul as kernel_module
from kernels.nki.mxfp8_matmul import mxfp4_matmul, mxfp8_matmul
from tests.cases import cases
from tests.kernels.mutants import mutant

Wide = npt.NDArray[np.float64]
Matrix = npt.NDArray[Any]
MANTISSA = {nl.float8_e4m3fn_x4: 3, nl.float8_e5m2_x4: 2}
SIZES = [(128, 2, 1), (896, 130, 520)]


def case(contraction: int, rows: int, columns: int, dtype: Any = ml_dtypes.bfloat16) -> tuple[Matrix, Matrix]:
    """Matrices of very different magnitude along the contraction, as blocks of quantised numbers meet them."""
    random = np.random.default_rng(contraction + rows + columns)
    spread = 2.0 ** random.integers(-6, 7, (contraction, 1))
    left = random.standard_normal((contraction, rows)) * spread
    return left.astype(dtype), (random.standard_normal((contraction, columns)) / spread).astype(dtype)


def quantised(matrix: Matrix, dtype: Any) -> Wide:
    """The numbers that the host makes of a matrix [K, F], tile by tile of 512 rows, back in their places."""
    tiles = []
    for start in range(0, len(matrix), 512):
        tile = matrix[start : start + 512]
        numbers = nkitools.mx.dequantize(*nkitools.mx.quantize(interleaved(tile), dtype, "quantize_mx"))
        tiles.append(numbers.reshape(len(tile) // 4, -1, 4).transpose(2, 0, 1).reshape(tile.shape))
    return np.concatenate(tiles)


def interleaved(tile: Matrix) -> Matrix:
    """Rows of a tile that lie a quarter of it apart, side by side."""
    return nkitools.mx.interleave(tile, len(tile) // 4)


def agrees(measured: Any, left: Wide, right: Wide) -> bool:
    """Whether a product differs by no more than what any order of float32 sums may lose."""
    bound = len(left) * 2.0**-24 * (np.abs(left).T @ np.abs(right))
    return bool((np.abs(measured - left.T @ right) <= bound).all())


@pytest.mark.parametrize("programs", [1, 2])
@pytest.mark.parametrize("dtype", MANTISSA, ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_it_multiplies_what_the_host_quantises_alike(sizes: tuple[int, int, int], dtype: Any, programs: int) -> None:
    """Of several tiles in every direction, the last ones shorter, on one core and shared by two."""
    left, right = case(*sizes)
    run = nkitools.simulate(mxfp8_matmul, left, right, dtype=dtype, grid=programs, chip="trn3")
    assert run.findings == []
    assert agrees(run.outputs, quantised(left, dtype), quantised(right, dtype))


@pytest.mark.parametrize("source", [ml_dtypes.bfloat16, np.float16], ids=["bfloat16", "float16"])
@pytest.mark.parametrize("dtype", MANTISSA, ids=str)
def test_it_is_near_the_plain_product(source: Any, dtype: Any) -> None:
    """By what rounding each factor to MXFP8 may change: half a step of its mantissa, or of its group's subnormals."""
    left, right = (each.astype(np.float64) for each in case(640, 64, 200, source))
    got = nkitools.simulate(mxfp8_matmul, left.astype(source), right.astype(source), dtype=dtype, chip="trn3").outputs
    # The largest of a group lies in [2**7, 2**8) of float8_e4m3fn, [2**14, 2**15) of e5m2; the least step is far below.
    least = {3: 2.0**-10 / 2**7, 2: 2.0**-17 / 2**14}[MANTISSA[dtype]]
    changes = [np.abs(each) * 2.0 ** -(MANTISSA[dtype] + 1) + np.abs(each).max() * least for each in (left, right)]
    sides = [np.abs(left), np.abs(right)]
    largest = (sides[0] + changes[0]).T @ (sides[1] + changes[1])
    bound = largest - sides[0].T @ sides[1] + 640 * 2.0**-24 * largest
    assert (np.abs(got - left.T @ right) <= bound).all()


@settings(max_examples=cases(200))
@given(st.integers(1, 7), st.integers(1, 70), st.integers(1, 540))
def test_packed_weights_are_multiplied(deep: int, pairs: int, columns: int) -> None:
    """Weights that the host has quantised to MXFP4, as they are read from their bits; prints are its parts."""
    left, right = case(128 * deep, 2 * pairs, columns)
    weights, scales = gallery.packed(right.astype(np.float64))
    run = nkitools.simulate(mxfp4_matmul, left, weights, scales, chip="trn3")
    assert run.findings == []
    wide = references.packed_product(np.eye(128 * deep), weights, scales)
    assert agrees(run.outputs, quantised(left, nl.float8_e4m3fn_x4), wide)
    np.testing.assert_array_equal(run.prints[0].value, run.outputs[:128, :512])


MISTAKES = {
    "rows not interleaved": ("loaded.permute((0, 2, 1))", "loaded.reshape((partitions, width, QUAD))"),
    "the scales of the other operand": ("moving_scale=moving_scale", "moving_scale=stationary_scale[:, :width]"),
    "each part overwrites the last": ("moving_scale=moving_scale,", "moving_scale=moving_scale, accumulate=False,"),
    "both cores compute the first half": ("share * nl.program_id(0)", "0"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_noticed(mistake: str) -> None:
    """The comparison, or a rule, tells of it."""
    left, right = case(640, 128, 200)
    broken = mutant(kernel_module, *MISTAKES[mistake]).mxfp8_matmul
    run = nkitools.simulate(broken, left, right, grid=2, chip="trn3", rules="report")
    dtype = nl.float8_e4m3fn_x4
    assert run.findings or not agrees(run.outputs, quantised(left, dtype), quantised(right, dtype))


def test_earlier_chips_have_no_microscaling() -> None:
    """NK606, and the remedy names the chip."""
    with pytest.raises(nkitools.KernelError, match="NeuronCore-v4") as raised:
        nkitools.simulate(mxfp8_matmul, *case(128, 2, 2), chip="trn2")
    assert raised.value.finding.rule == "NK606"
