"""The answers about wrong Pallas kernels: evaluated by NumPy in forks, or interpreted where NumPy does not do."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import cases
from tests.repair.test_answers import kernel_of

jax = pytest.importorskip("jax")

from nkitools.repair import jax_function  # noqa: E402
from nkitools.repair.answers import Answer  # noqa: E402
from nkitools.repair.jax_function import JaxFunction, answer_of_jax  # noqa: E402

pytestmark = pytest.mark.process

X = np.random.default_rng(0).standard_normal((16, 128)).astype(np.float32)
TEXT = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

EPSILON = 0.25


def body(x, out, total):
    @pl.when(pl.program_id(1) == 0)
    def _():
        total[...] = jnp.zeros(total.shape, total.dtype)

    total[...] += (x[...] * x[...]).mean(axis=1, keepdims=True)
    out[...] = x[...] * lax.rsqrt(total[...] + EPSILON)


@jax.jit
def kernel(x):
    rows, columns = x.shape
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(rows // 8, 1),
        in_specs=[pl.BlockSpec((8, columns), lambda i, j: (i, j))],
        out_specs=pl.BlockSpec((8, columns), lambda i, j: (i, j)),
        scratch_shapes=[pltpu.VMEM((8, 1), jnp.float32)],
    )(x)
"""


def reference(x: Any) -> Any:
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 0.25)


@cases.each("right, wrong", [("EPSILON = 0.25", "EPSILON = 2.5"), ("program_id(1)", "program_id(0)")])
def test_one_edit_mends_a_kernel(right: str, wrong: str, tmp_path: Path) -> None:
    """The text after the edit is the right one, a constant's too, and many edits take little time."""
    kernel = kernel_of(tmp_path, TEXT.replace(right, wrong))
    found = answer_of_jax(kernel, ((X,), {}), reference, time.monotonic() + 60)
    assert found.kind == "repaired", str(found)
    assert found.trial is not None
    mended = kernel_of(tmp_path, found.trial.text)
    run = JaxFunction(mended).outputs(((X[:8, :64] * 3,), {}))
    np.testing.assert_allclose(run[0], reference(X[:8, :64] * 3), rtol=1e-5, atol=1e-5)


SCATTER = "    rows, columns = x.shape\n", "    rows, columns = x.shape\n    x = x.at[jnp.arange(4)].add(2.0)\n"


@pytest.mark.parametrize(
    ("change", "ways"), [(SCATTER, [False]), (("total[...] + EPSILON", "total[...] * EPSILON"), [True])]
)
def test_what_numpy_does_not_evaluate_is_interpreted(
    change: tuple[str, str], ways: list[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A scatter before the kernel is JAX's matter, whatever arrays are given; other kernels are NumPy's."""
    asked: list[bool] = []

    def answer(case: Any, *_: Any, **__: Any) -> Answer:
        asked.append(case.kernel.in_numpy)
        return Answer("kernel", "not found")

    monkeypatch.setattr(jax_function, "answer_of_case", answer)
    kernel, given = kernel_of(tmp_path, TEXT.replace(*change)), jax.numpy.asarray(X)
    answer_of_jax(kernel, ((given,), {}), reference(X), time.monotonic() + 60)
    assert asked == ways


def test_memory_that_a_kernel_may_not_rely_on(tmp_path: Path) -> None:
    """Accesses outside of a block, and results of memory that was never written, break a rule; values may be right."""
    kernels = [
        kernel_of(tmp_path, TEXT),
        kernel_of(tmp_path, TEXT.replace("lambda i, j: (i, j))],", "lambda i, j: (i + 1, j))],")),
        kernel_of(tmp_path, TEXT.replace("program_id(1) == 0", "program_id(0) == 1")),
    ]
    found = [JaxFunction(each, in_numpy=True).findings(((X,), {})) for each in kernels]
    assert found == [frozenset(), {"PL201"}, {"PL207"}]
