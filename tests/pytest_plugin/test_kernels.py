"""The plugin with real kernels and the real simulator, each session in a process of its own."""

from __future__ import annotations

from typing import Any

import pytest

KERNELS = """
import nki
import nki.language as nl

@nki.jit
def rows(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for m in range(2):
        tile = nl.load(x[nl.ds(m * 2, 2), :])
        nl.device_print("tile", tile)
        nl.store(out[nl.ds(m * 2, 2), :], tile)
    return out

@nki.jit
def tall(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))
    return out
"""

TESTS = """
import nki
import nkitools
import numpy as np
import pytest
from mine import rows, tall

x = np.arange(16, dtype=np.float32).reshape(4, 4)
many_rows = np.ones((256, 4), np.float32)

"""


def test_a_kernel_in_a_conftest_finds_the_stand_in(bare_author: Any) -> None:
    """The first conftest.py is imported before pytest is configured; `import nki` works in it all the same."""
    bare_author.elsewhere = "from mine import rows\n"
    bare_author.write(mine=KERNELS)
    test = """
def test_both_ways_in(run_kernel, device_prints):
    np.testing.assert_array_equal(run_kernel(rows, x), x)
    np.testing.assert_array_equal(nki.simulate(rows)(x), x)
    assert len(run_kernel.run.prints) == 2
    assert [one.loops for one in device_prints] == [{"m": 0}, {"m": 1}] * 2
    np.testing.assert_array_equal(device_prints[1].value, x[2:])
    assert nkitools.simulate(rows, x).chip == "trn1"
    assert len(device_prints) == 6
"""
    result = bare_author.run_apart("-m", "sim", "--nki-prints", "--nki-chip=trn1", test=TESTS + test)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_both_ways_in?sim?",
            "tile ?program 0, m=0, mine.py:9? SBUF float32 ?2, 4?",
            "*0. 1. 2. 3.*",
            "tile ?program 0, m=1, mine.py:9? SBUF float32 ?2, 4?",
            "nki: 3 kernels run, 0 findings, 6 device prints",
        ]
    )


def test_a_broken_rule_fails_the_test_at_the_kernels_line(bare_author: Any) -> None:
    """The traceback ends in the kernel; the finding stands in its section and in JUnit's properties."""
    bare_author.write(mine=KERNELS)
    result = bare_author.run_apart(
        "-m", "sim", test=f"{TESTS}def test_it(run_kernel):\n    run_kernel(tall, many_rows)\n"
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">   *nl.store(out, nl.load(x))",
            "mine.py:16: KernelAssertionError",
            "*- nki findings -*",
            "mine.py:16:*: NK101 *256 partitions*",
            "    Split dimension 0 *",
            "nki: 1 kernel run, 1 finding, 0 device prints",
        ]
    )


def test_rules_report_lists_what_passing_tests_collected(bare_author: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """--nki-rules=report by way of the environment: the test passes and the finding is listed at the end."""
    monkeypatch.setenv("NKITOOLS_RULES", "report")
    bare_author.write(mine=KERNELS)
    test = "def test_it(run_kernel):\n    assert run_kernel(tall, many_rows).shape == (256, 4)\n"
    result = bare_author.run_apart("-m", "sim", test=TESTS + test)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*nki findings of passing tests*", "mine.py:16:*: NK101 *"])


def test_hypothesis_draws_arrays_for_a_kernel(bare_author: Any) -> None:
    """A property of a kernel: each example runs on its own record."""
    bare_author.write(mine=KERNELS)
    test = """
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

@settings(max_examples=10, deadline=None, database=None)
@given(x=arrays(np.float32, (4, 4), elements=st.floats(-8, 8, width=16)))
def test_it(run_kernel, device_prints, x):
    np.testing.assert_array_equal(run_kernel(rows, x), x)
    np.testing.assert_array_equal(np.concatenate([one.value for one in device_prints]), x)
"""
    bare_author.run_apart("-m", "sim", test=TESTS + test).assert_outcomes(passed=1)


def test_a_jax_function_runs_where_kernels_run(bare_author: Any) -> None:
    """run_kernel takes a function with Pallas calls too; on hardware it is a TPU that is missing."""
    pytest.importorskip("jax")
    test = """
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

def _double(x_ref, out_ref):
    out_ref[...] = 2 * x_ref[...]

@jax.jit
def double(x):
    return pl.pallas_call(_double, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

def test_it(run_kernel):
    x = np.ones((8, 128), np.float32)
    np.testing.assert_array_equal(run_kernel(double, x), 2 * x)
    assert run_kernel.run.kernel == "double"
"""
    bare_author.run_apart("-m", "sim", test=test).assert_outcomes(passed=1)


def test_the_stand_in_is_the_sessions_decision(bare_author: Any) -> None:
    """nki_stand_in = never: `import neuronxcc.nki` finds what is installed, here nothing."""
    bare_author.pytester.makeini("[pytest]\nnki_stand_in = never\n")
    test = """
import pytest

def test_it():
    with pytest.raises(ModuleNotFoundError):
        import neuronxcc.nki
"""
    bare_author.run_apart(test=test).assert_outcomes(passed=1)
