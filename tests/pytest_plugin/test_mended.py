"""A failed comparison says the edit that mends the kernel, within its budget, and once."""

from __future__ import annotations

import time
from importlib.metadata import entry_points
from typing import Any

import pytest

from tests.processes import LEAN
from tests.pytest_plugin.test_wrong_elements import block

KERNEL = """
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

@nki.jit
def halved(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    half = nl.ndarray(x.shape, dtype=nl.int32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=half, data=tile, op0=nl.multiply, operand0=0.5)
    nisa.dma_copy(dst=out, src=half)
    return out

X = np.random.default_rng(0).standard_normal((128, 64)).astype(np.float32)
"""
TEST = """
from halving import *
def test_it(run_kernel):
    run_kernel(halved, X, reference=lambda x: x / 2, rtol=1e-5)
def test_it_again(run_kernel):
    run_kernel(halved, X, reference=lambda x: x / 2, rtol=1e-5)
"""


def run(author: Any, *args: str, test: str = TEST) -> pytest.RunResult:
    """Run the tests in a process of its own, on nkitools' own simulator."""
    author.write(test_it=test)
    is_installed = any(entry.name == "nkitools" for entry in entry_points(group="pytest11"))
    plugin = () if is_installed else ("-p", "nkitools.pytest_plugin")
    result: pytest.RunResult = author.pytester.runpytest_subprocess(*LEAN, *plugin, "-m", "sim", *args)
    return result


def test_the_report_has_the_edit(author: Any) -> None:
    """The dtype of the tile that loses the fractions, as a line that goes and one that comes; searched once for two."""
    author.write(halving=KERNEL)
    result = run(author, "--nki-why-budget=60")
    result.assert_outcomes(failed=2)
    lines = block(result, "nki why")
    at = lines.index("repair: halving.py:11: with this edit the outputs are right")
    assert lines[at + 1].startswith("  -    half = nl.ndarray(x.shape, dtype=nl.int32")
    assert lines[at + 2].startswith("  +    half = nl.ndarray(x.shape, dtype=")
    assert "verified on this case, fresh values, shapes" in lines[at + 3]
    assert result.outlines.count(lines[at + 3]) == 2  # with the same seconds


@pytest.mark.parametrize(("budget", "most"), [("0", 3.0), ("0.5", 6.0)])
def test_the_budget_ends_the_search(author: Any, budget: str, most: float) -> None:
    """Without a budget nothing is searched; with a small one the answer comes soon."""
    author.write(halving=KERNEL.replace("operand0=0.5)", "operand0=3.0, op1=nl.add, operand1=7.0)"))
    began = time.monotonic()
    result = run(author, f"--nki-why-budget={budget}")
    result.assert_outcomes(failed=2)
    assert any(line.startswith("repair: ") for line in block(result, "nki why")) == (budget != "0")
    assert time.monotonic() - began < 10 * most  # of a machine that others use too


PALLAS = """
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

def _norm(x, out):
    mean = jnp.mean(x[...] * x[...], axis=1, keepdims=True)
    out[...] = x[...] * (lax.rsqrt(mean) + 0.5)

@jax.jit
def halved(x):
    rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(_norm, out_shape=shape, grid=(2,), in_specs=[rows], out_specs=rows)(x)

X = np.random.default_rng(0).standard_normal((16, 128)).astype(np.float32)
"""


def test_a_pallas_kernel_is_mended(author: Any) -> None:
    """The line of the kernel's body, where no finding names an index map."""
    author.write(halving=PALLAS)
    test = TEST.replace("x / 2", "x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 0.5)")
    result = run(author, "--nki-why-budget=120", "-k", "not again", test=test)
    result.assert_outcomes(failed=1)
    lines = block(result, "nki why")
    assert lines[0].startswith("repair: halving.py:9: ")
    assert lines[2].strip() == "+    out[...] = x[...] * (lax.rsqrt(mean + 0.5))"
    result.stdout.fnmatch_lines(["*halving.py:9: PL211 *"])
