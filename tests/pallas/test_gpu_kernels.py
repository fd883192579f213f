"""Kernels for GPUs have no mode of a TPU: they are left out by name, and JAX's interpreters of GPUs run the kernels."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from jax.experimental import pallas as pl  # noqa: E402

import nkitools.pallas  # noqa: E402
from nkitools.pallas import check, jax_internals  # noqa: E402
from nkitools.rules.finding import NotModelled  # noqa: E402
from tests.pallas.kernels import like, ramp  # noqa: E402

X = ramp()


def doubles_on_a_gpu(x: Any) -> Any:
    """Take blocks and a dtype that no TPU takes, with the parameters of Triton's compiler."""
    from jax.experimental.pallas import triton

    def kernel(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref[...] * 2

    block = pl.BlockSpec((4, 64), lambda i, j: (i, j))
    return pl.pallas_call(
        kernel,
        out_shape=like(x),
        grid=(4, 2),
        in_specs=[block],
        out_specs=block,
        compiler_params=triton.CompilerParams(num_warps=4),
    )(x)


def adds_one(x: Any, waits_first: bool = True) -> Any:
    """Copy to shared memory, add one there and copy back; the copy is waited for before or after."""
    from jax.experimental.pallas import mosaic_gpu as plgpu

    def kernel(x_ref: Any, out_ref: Any, rows: Any, barrier: Any) -> None:
        plgpu.copy_gmem_to_smem(x_ref, rows, barrier)
        if waits_first:
            plgpu.barrier_wait(barrier)
        rows[...] = rows[...] + 1  # too early
        if not waits_first:
            plgpu.barrier_wait(barrier)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(rows, out_ref)
        plgpu.wait_smem_to_gmem(0)

    scratch = [plgpu.SMEM(x.shape, x.dtype), plgpu.Barrier()]
    return plgpu.kernel(kernel, out_type=like(x), scratch_types=scratch)(x)


@pytest.mark.parametrize("waits_first", [True, False])
def test_mosaic_gpu_kernels_are_interpreted_with_their_races(waits_first: bool, capsys: Any) -> None:
    """By JAX's own interpreter of GPUs; a copy that is not waited for is a race at the line that reads too early."""
    pytest.importorskip("absl", reason="JAX's Mosaic GPU takes absl-py")
    run = check(partial(adds_one, waits_first=waits_first), X)
    np.testing.assert_array_equal(run.outputs, X + 1)
    said = "the kernel is for GPUs (Mosaic GPU); a TPU has no use for it"
    assert run.left_out == dict.fromkeys(("tpu_interpret", "lower", "aot"), said)
    lines, first = inspect.getsourcelines(adds_one)
    early = next(first + at for at, line in enumerate(lines) if line.rstrip().endswith("# too early"))
    assert [(each.rule, each.file, each.line) for each in run.findings] == (
        [] if waits_first else [("PL203", __file__, early)]
    )
    assert capsys.readouterr().out == ""


def test_kernels_for_gpus_have_no_mode_of_a_tpu() -> None:
    """They are interpreted plainly, and no rule of TPUs has anything to say."""
    x = X.astype(np.float16)
    run = check(doubles_on_a_gpu, x)
    np.testing.assert_array_equal(run.outputs, 2 * x)
    assert (run.findings, run.compiled) == ([], {})
    said = "the kernel is for GPUs (Triton); a TPU has no use for it"
    assert run.left_out == dict.fromkeys(("tpu_interpret", "lower", "aot"), said)
    run = check(doubles_on_a_gpu, x, modes="interpret")
    np.testing.assert_array_equal(run.outputs, 2 * x)
    assert run.left_out == {}


@pytest.mark.parametrize("waits_first", [True, False])
def test_a_run_takes_jaxs_interpreter_of_gpus(waits_first: bool) -> None:
    """Where the function has no parameters of its own; a race is a finding there too."""
    pytest.importorskip("absl", reason="JAX's Mosaic GPU takes absl-py")
    run = nkitools.pallas.run(partial(adds_one, waits_first=waits_first), X)
    np.testing.assert_array_equal(run.outputs, X + 1)
    assert [each.rule for each in run.findings] == ([] if waits_first else ["PL203"])


def test_a_run_without_that_interpreter_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """NK607 says what is missing; another function's own error is raised as it is."""
    pytest.importorskip("absl", reason="JAX's Mosaic GPU takes absl-py")
    moved = jax_internals.moved
    monkeypatch.setattr(jax_internals, "moved", lambda part: "jax: gone" if part == jax_internals.GPU else moved(part))
    with pytest.raises(NotModelled, match="JAX's interpreter of GPUs is not there: jax: gone"):
        nkitools.pallas.run(adds_one, X)

    def refuses(x: Any) -> Any:
        raise NotImplementedError("of the author")

    with pytest.raises(NotImplementedError, match=r"^of the author$"):
        nkitools.pallas.run(refuses, X)
