"""A failed assertion of a test's own on the output of a Pallas kernel reaches PL211, with the index maps tried out."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("jax")

KERNELS = """
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

import nkitools.pallas

def _double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2

def _both(x_ref, o_ref, p_ref):
    o_ref[...] = x_ref[...] * 2
    p_ref[...] = x_ref[...] + 1

right, wrong = (lambda i, j: (i, j)), (lambda i, j: (j, i))

def spec(index_map):
    return pl.BlockSpec((8, 128), index_map)

def double(x, taken=right):
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(_double, out_shape=like, grid=(2, 2), in_specs=[spec(taken)], out_specs=spec(right))(x)

def double_wrongly(x):
    return double(x, wrong)

def both(x):
    like = jax.ShapeDtypeStruct(x.shape, x.dtype)
    specs = (spec(right), spec(wrong))
    return pl.pallas_call(_both, out_shape=(like, like), grid=(2, 2), in_specs=[spec(right)], out_specs=specs)(x)

X = np.arange(16 * 256, dtype=np.float32).reshape(16, 256)
"""

WRONG = (
    "np.testing.assert_allclose(run_kernel(double_wrongly, X), 2 * X, rtol=1e-6)",
    "np.testing.assert_array_equal(run_kernel(double_wrongly, X), 2 * X)",
    "np.testing.assert_allclose(run_kernel(double_wrongly, jnp.asarray(X)), 2 * X)",
    "np.testing.assert_allclose(nkitools.pallas.check(double_wrongly, X).outputs, 2 * X)",
    "got, want = run_kernel(double_wrongly, X), 2 * X; assert np.allclose(got, want)",
    "got, want = run_kernel(double_wrongly, X), 2 * X; assert (want == got).all()",
    "got = run_kernel(double_wrongly, X); run_kernel(double, X); np.testing.assert_allclose(got, 2 * X)",
    "o, p = run_kernel(both, X); np.testing.assert_allclose(o, 2 * X); np.testing.assert_allclose(p, X + 1)",
)
OTHERWISE = (
    "assert run_kernel(double, X).sum() == 0",  # no two arrays are compared
    "np.testing.assert_allclose(run_kernel(double_wrongly, X), X[:8])",  # shapes
    "np.testing.assert_allclose(np.zeros((16, 256)), X)",  # no output of a run
)


def _tests(assertions: tuple[str, ...]) -> str:
    return "".join(f"\ndef test_{n}(run_kernel):\n    {line}\n" for n, line in enumerate(assertions))


@pytest.fixture
def tests_of(bare_author: Any) -> Any:
    bare_author.write(mine=KERNELS)
    return lambda assertions, *args: bare_author.run_apart(
        "--nki-pallas-modes=interpret,tpu_interpret", *args, test="from mine import *\n" + _tests(assertions)
    )


def test_a_failed_assertion_names_the_index_map(tests_of: Any) -> None:
    """By any way to compare, of the run whose output is compared, and of several outputs the one that is."""
    result = tests_of((*WRONG, *OTHERWISE))
    result.assert_outcomes(failed=len(WRONG) + len(OTHERWISE))
    text = " ".join(result.stdout.str().split())
    shown = [text.partition(f"_ test_{n}[sim] _")[2].partition(" ____")[0] for n in range(len(WRONG + OTHERWISE))]
    for line, report in zip(WRONG, shown, strict=False):
        operand = "p_ref" if "both" in line else "x_ref"
        assert report.count("PL211") == 1, line
        assert "mine.py:16: PL211" in report, line
        said = f"with grid indices 0 and 1 exchanged in the index map of `{operand}` the outputs are the reference's"
        assert said in report, line
    assert not any("PL211" in report for report in shown[len(WRONG) :])


def test_it_can_be_switched_off(tests_of: Any) -> None:
    """--nki-why=off tries nothing out."""
    result = tests_of(WRONG[:1], "--nki-why=off")
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*PL211*")
