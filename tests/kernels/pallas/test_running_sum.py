"""The Pallas scan that carries its sum from one grid step to the next."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

jax = pytest.importorskip("jax")

import nkitools.pallas  # noqa: E402  (JAX decides whether this file is collected)
from kernels.pallas import running_sum as kernel_module  # noqa: E402
from kernels.pallas.running_sum import running_sum  # noqa: E402
from tests.kernels.mutants import mutant  # noqa: E402
from tests.kernels.pallas.compiling import assert_compiles, zeros  # noqa: E402


def integers(rows: int, lanes: int) -> npt.NDArray[np.int32]:
    """Of the whole range, so that sums wrap around."""
    return np.random.default_rng(rows).integers(-(2**31), 2**31, (rows, lanes)).astype(np.int32)


# One block, and several below and beside each other that the sizes do not fill.
@pytest.mark.parametrize("size", [(1, 1), (300, 130)])
def test_integers_are_exact(run_kernel: Callable[..., Any], size: tuple[int, int]) -> None:
    """Every sum is NumPy's, wrapped around as NumPy's are."""
    x = integers(*size)
    measured = run_kernel(running_sum, x)
    assert measured.dtype == np.int32
    np.testing.assert_array_equal(measured, np.cumsum(x, axis=0, dtype=np.int32))


def test_floats_are_within_rounding(run_kernel: Callable[..., Any]) -> None:
    """A sum of n float32 errs by at most n roundings of the sum of their magnitudes, in whatever order."""
    x = np.random.default_rng(3).standard_normal((300, 128)).astype(np.float32)
    wanted = np.cumsum(x.astype(np.float64), axis=0)
    bound = np.arange(1, 301)[:, None] * 2.0**-24 * np.cumsum(np.abs(x.astype(np.float64)), axis=0)
    assert np.all(np.abs(run_kernel(running_sum, x) - wanted) <= bound)


def test_no_rows_and_no_lanes(run_kernel: Callable[..., Any]) -> None:
    """What is empty stays as it is."""
    assert run_kernel(running_sum, np.zeros((0, 4), np.int32)).shape == (0, 4)
    assert run_kernel(running_sum, np.zeros((4, 0), np.float32)).shape == (4, 0)


def test_other_inputs_are_refused(run_kernel: Callable[..., Any]) -> None:
    """Dtype and shape stand in the message."""
    with pytest.raises(TypeError, match=r"x is int16 \(2, 3\); the kernel sums int32 or float32 \[rows, lanes\]"):
        run_kernel(running_sum, np.zeros((2, 3), np.int16))
    with pytest.raises(TypeError, match=r"x is int32 \(3,\)"):
        run_kernel(running_sum, np.zeros(3, np.int32))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("carry[...] = out[-1:, :]", "carry[...] = x[-1:, :]"),
        ("@pl.when(pl.program_id(1) == 0)", "@pl.when(pl.program_id(0) + pl.program_id(1) == 0)"),
        ("row >= shift", "row > shift"),
    ],
    ids=["the carry is the last row", "the second column of blocks starts where the first one ended", "off by one"],
)
def test_the_comparison_notices(old: str, new: str) -> None:
    """A kernel with the mistake does not agree."""
    x = integers(768, 256)
    broken = nkitools.pallas.run(mutant(kernel_module, old, new).running_sum, x).outputs
    assert not np.array_equal(broken, np.cumsum(x, axis=0, dtype=np.int32))


def test_a_second_core_disturbs_no_carry() -> None:
    """Columns of blocks may go to two cores: each has a carry of its own, and its rows in order."""
    x = integers(300, 256)
    run = nkitools.pallas.check(running_sum, x, modes=("tpu_interpret",), cores=2)
    assert [finding.text() for finding in run.findings] == []
    np.testing.assert_array_equal(run.outputs, np.cumsum(x, axis=0, dtype=np.int32))


def test_a_carry_over_a_parallel_dimension_is_found() -> None:
    """Rows that depend on each other must not be declared parallel; the finding is at the line that takes the carry."""
    broken = mutant(kernel_module, '("parallel", "arbitrary")', '("parallel", "parallel")').running_sum
    run = nkitools.pallas.check(broken, np.ones((768, 128), np.int32), modes=("tpu_interpret",))
    assert ("PL206", "out[...] = _sum_within(x[...]) + carry[...]") in {
        (finding.rule, linecache.getline(finding.file, finding.line).strip()) for finding in run.findings
    }


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_it_compiles_for_tpus(dtype: Any) -> None:
    """The TPU compiler, which has no cumsum, takes the doubling."""
    assert_compiles(running_sum, zeros(dtype, 4096, 512))
