"""The Pallas kernel with copies and semaphores of its own."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

jax = pytest.importorskip("jax")

import nkitools.pallas  # noqa: E402  (JAX decides whether this file is collected)
from kernels.pallas import rmsnorm as kernel_module  # noqa: E402
from kernels.pallas.rmsnorm import rmsnorm  # noqa: E402
from tests.kernels.mutants import mutant  # noqa: E402
from tests.kernels.pallas.compiling import assert_compiles, zeros  # noqa: E402


def rows_and_gain(rows: int, features: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Rows of very different magnitude, which the normalisation takes away."""
    random = np.random.default_rng(rows + features)
    scale = np.geomspace(1e-3, 1e3, rows)[:, None]
    return (random.standard_normal((rows, features)) * scale).astype(np.float32), random.standard_normal(
        features
    ).astype(np.float32)


def reference(x: npt.NDArray[Any], gain: npt.NDArray[Any], epsilon: float = 1e-6) -> npt.NDArray[np.float64]:
    wide = x.astype(np.float64)
    return wide / np.sqrt(np.mean(wide**2, axis=1, keepdims=True) + epsilon) * gain


def close(measured: Any, x: npt.NDArray[Any], gain: npt.NDArray[Any]) -> bool:
    """Whether every value is within the roundings of a float32 sum of squares and of a handful of operations."""
    wanted = reference(x, gain)
    return bool(np.all(np.abs(measured - wanted) <= (x.shape[1] + 16) * 2.0**-24 * np.abs(wanted)))


# One, two and four blocks: the first and the last two are special to a double-buffered loop.
@pytest.mark.parametrize("rows", [1, 128, 200])
def test_it_agrees_with_the_reference(run_kernel: Callable[..., Any], rows: int) -> None:
    """Every row is normalised, also where blocks and lanes are filled up."""
    x, gain = rows_and_gain(rows, 200)
    measured = run_kernel(rmsnorm, x, gain)
    assert measured.shape == x.shape
    assert close(measured, x, gain)


def test_epsilon_counts(run_kernel: Callable[..., Any]) -> None:
    """It keeps rows of zeros finite, and ones become one half where it is 3."""
    x, gain = np.array([[0, 0, 0], [1, 1, 1]], np.float32), np.ones(3, np.float32)
    measured = run_kernel(rmsnorm, x, gain, epsilon=3.0)
    np.testing.assert_array_equal(measured[0], 0)
    np.testing.assert_allclose(measured[1], 0.5, rtol=1e-6)


def test_wrong_inputs_are_refused(run_kernel: Callable[..., Any]) -> None:
    """The message names the argument, what it is and what is wanted."""
    x, gain = rows_and_gain(2, 4)
    with pytest.raises(TypeError, match=r"gain is float32 \(3,\); x \(2, 4\) needs float32 \(4,\)"):
        run_kernel(rmsnorm, x, gain[:3])
    with pytest.raises(TypeError, match=r"x is float16 \(2, 4\); the kernel takes float32 \[rows, features\]"):
        run_kernel(rmsnorm, x.astype(np.float16), gain)


@pytest.mark.parametrize(
    ("old", "new"),
    [("/ features", "/ rows.shape[-1]"), ("load(block + 1).start()", "load(0).start()")],
    ids=["filled-up lanes count", "the first block is fetched again and again"],
)
def test_the_comparison_notices(old: str, new: str) -> None:
    """A kernel with the mistake is not within the bound."""
    x, gain = rows_and_gain(192, 200)
    broken = mutant(kernel_module, old, new).rmsnorm
    assert not close(nkitools.pallas.run(broken, x, gain).outputs, x, gain)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("load(block).wait()", "pass", "load(block + 1).start()"),
        ("for block in range(max(blocks - 2, 0), blocks):", "for block in range(0):", "store(block).start()"),
    ],
    ids=["reads what has not arrived", "ends while copies are under way"],
)
def test_a_wait_that_is_missing_is_found(old: str, new: str, line: str) -> None:
    """Plain interpretation gives the right values all the same; the finding names the copy that nobody awaits."""
    x, gain = rows_and_gain(192, 128)
    broken = mutant(kernel_module, old, new).rmsnorm
    assert close(nkitools.pallas.run(broken, x, gain).outputs, x, gain)
    run = nkitools.pallas.check(broken, x, gain, modes=("tpu_interpret",))
    assert ("PL204", line) in {
        (finding.rule, linecache.getline(finding.file, finding.line).strip()) for finding in run.findings
    }


@pytest.mark.parametrize("rows", [64, 1000])
def test_it_compiles_for_tpus(rows: int) -> None:
    """The TPU compiler takes the copies and semaphores."""
    assert_compiles(rmsnorm, zeros(np.float32, rows, 1000), zeros(np.float32, 1000))
