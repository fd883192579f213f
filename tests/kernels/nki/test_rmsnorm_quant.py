"""The RMSNorm kernels with quantisation against float64 NumPy, by the exact half step of the 8-bit dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import nki.language as nl
import numpy as np
import numpy.typing as npt
import pytest

import nkitools
from kernels.nki import rmsnorm_quant as kernel_module
from kernels.nki.rmsnorm_quant import rmsnorm_quant, rmsnorm_quant_isa
from tests.kernels.mutants import mutant

Wide = npt.NDArray[np.float64]
KERNELS = [rmsnorm_quant, rmsnorm_quant_isa]
CHIPS = ["trn1", "trn2", "trn3"]
LARGEST = {nl.float8_e4m3: 240.0, nl.int8: 127.0}
UNIT = 2.0**-24  # what rounding to float32 changes at most, relatively
SMALLEST_PEAK = 1e-30


def case(rows: int, size: int, dtype: Any = np.float32) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Rows of very different magnitude, the middle one all zeros, and weights of either sign."""
    random = np.random.default_rng(rows + size)
    hidden = random.standard_normal((rows, size)) * 10.0 ** random.integers(-6, 7, (rows, 1))
    hidden[rows // 2] = 0
    return hidden.astype(dtype), (1 + random.standard_normal(size)).astype(dtype)


def reference(hidden: Any, weight: Any, largest: float) -> tuple[Wide, Wide]:
    """The normalised rows and the scale of each, in float64."""
    wide, by = hidden.astype(np.float64), weight.astype(np.float64)
    normaliser = 1 / np.sqrt(np.mean(wide * wide, axis=1, keepdims=True) + 1e-6)
    peak = np.abs(wide * by).max(axis=1, keepdims=True)
    return wide * normaliser * by, np.maximum(peak, SMALLEST_PEAK) * normaliser / largest


def half_step(values: Wide, dtype: Any) -> Wide:
    """Half the distance between neighbours of a dtype at ``values``: what rounding to nearest changes at most."""
    if dtype == nl.int8:
        return np.full(values.shape, 0.5)
    # float8_e4m3: 3 bits after the leading one, which is never worth less than 2**-6.
    leading = np.maximum(np.frexp(values)[1] - 1, -6)
    return np.ldexp(0.5, leading - 3)


def rounding(size: int) -> float:
    """The relative error of float32, at most, before the cast to 8 bits.

    The sum of ``size`` positive squares: ``size`` roundings in any order. The square root halves that, of it and of the
    3 roundings of square, mean and epsilon. The square root, reciprocals, products and constants add 12 at most.
    """
    return (size / 2 + 14) * UNIT


def assert_quantised(measured: Any, hidden: Any, weight: Any, dtype: Any = nl.float8_e4m3) -> None:
    """Scales agree to float32's accuracy, and numbers times scales to half a step of ``dtype``."""
    numbers, scales = (each.astype(np.float64) for each in measured)
    largest, allowed = LARGEST[dtype], rounding(hidden.shape[1])
    rows, expected = reference(hidden, weight, largest)
    np.testing.assert_allclose(scales, expected, rtol=allowed, atol=0)
    scaled = np.abs(rows / scales)
    bound = (half_step(scaled * (1 + allowed), dtype) + scaled * allowed) * scales
    assert np.all(np.abs(numbers * scales - rows) <= bound)
    # A row that is not zero uses the whole range.
    np.testing.assert_array_equal(np.abs(numbers).max(axis=1), np.where(hidden.any(axis=1), largest, 0))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", LARGEST, ids=str)
@pytest.mark.parametrize("shape", [(3, 1), (128, 2048), (129, 2049), (300, 700), (5, 16384)], ids=str)
def test_rmsnorm_quant(run_kernel: Callable[..., Any], kernel: Any, dtype: Any, shape: tuple[int, int]) -> None:
    """Any number of rows, and rows that are shorter and longer than a tile."""
    hidden, weight = case(*shape)
    numbers, scales = run_kernel(kernel, hidden, weight, dtype=dtype)
    assert (numbers.dtype, scales.dtype) == (dtype.dtype, np.float32)
    assert_quantised((numbers, scales), hidden, weight, dtype)


@pytest.mark.parametrize("kernel", KERNELS)
def test_bfloat16(run_kernel: Callable[..., Any], kernel: Any) -> None:
    """bfloat16 is read as it is and computed in float32, so that the bound stays the same."""
    hidden, weight = case(140, 3000, ml_dtypes.bfloat16)
    assert_quantised(run_kernel(kernel, hidden, weight), hidden, weight)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("chip", CHIPS)
def test_every_chip(kernel: Any, chip: str) -> None:
    """The longest rows fit into SBUF everywhere, and no rule has anything to say."""
    hidden, weight = case(129, 16384)
    run = nkitools.simulate(kernel, hidden, weight, chip=chip)
    assert run.findings == []
    assert_quantised(run.outputs, hidden, weight)


def test_both_kernels_give_the_same_numbers() -> None:
    """They round at the same places: only the order of the sums differs, which the numbers do not see."""
    hidden, weight = case(130, 4100)
    numbers = [nkitools.simulate(kernel, hidden, weight).outputs[0] for kernel in KERNELS]
    np.testing.assert_array_equal(*numbers)


@pytest.mark.parametrize("kernel", KERNELS)
def test_another_dtype_is_refused(kernel: Any) -> None:
    """A dtype whose range the kernel does not know is an assertion of the kernel."""
    with pytest.raises(AssertionError, match="float8_e4m3 or int8"):
        nkitools.simulate(kernel, *case(2, 8), dtype=nl.bfloat16)


MISTAKES = {
    "a row of zeros is divided by its peak": ("op0=nl.maximum, operand0=LOWEST_PEAK", "op0=nl.maximum, operand0=0.0"),
    "each tile of columns starts anew": ("reset_reduce if start == 0 else nisa.reduce_cmd.reduce", "reset_reduce"),
    "peak without the sign of what is negative": ("op0=nl.abs,", "op0=nl.add,"),
    "mean of a tile, not of the row": ("operand0=1.0 / size, op1=nl.add", "operand0=1.0 / COLUMNS, op1=nl.add"),
    "weights left out": ("data2=weights[:, columns], op=nl.multiply", "data2=weights[:, columns], op=nl.bypass"),
    "numbers leave half of the range unused": (
        "operand0=factor, op1=nl.multiply, operand1=largest",
        "operand0=factor, op1=nl.multiply, operand1=largest / 2",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_kernel_is_noticed(mistake: str) -> None:
    """The comparison, or a rule, tells of it."""
    hidden, weight = case(40, 3000)
    broken = mutant(kernel_module, *MISTAKES[mistake]).rmsnorm_quant_isa
    with pytest.raises((AssertionError, nkitools.KernelError)):
        assert_quantised(nkitools.simulate(broken, hidden, weight).outputs, hidden, weight)


@pytest.mark.parametrize("kernel", [each.__name__ for each in KERNELS])
def test_a_tile_of_rows_left_out_is_reported(kernel: str) -> None:
    """The rows that were never written are named (NK403)."""
    hidden, weight = case(130, 8)
    broken = mutant(kernel_module, "for start in range(0, stop, size)]", "for start in range(0, stop - 7, size)]")
    with pytest.raises(nkitools.KernelError) as caught:
        nkitools.simulate(getattr(broken, kernel), hidden, weight)
    assert caught.value.finding.rule == "NK403"
    assert "`quantised`" in caught.value.finding.message
    assert "`quantised[128:130, 0:8]` never written (16 of 1040 elements)" in caught.value.finding.message
    assert "round the number of tiles up" in caught.value.finding.remedy
