"""Races that a function's own interpretation parameters look for: JAX prints them or raises, here they are findings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from nkitools.pallas import check, jax_internals, run  # noqa: E402
from tests.pallas.collectives import DMA, WHOLE  # noqa: E402
from tests.pallas.kernels import like, ramp  # noqa: E402

X = ramp(8)


def line_of(fn: Callable[..., Any], mark: str) -> int:
    """Return the line of ``fn`` that ends in the comment ``mark``."""
    lines, first = inspect.getsourcelines(fn)
    return next(first + at for at, line in enumerate(lines) if line.rstrip().endswith(f"# {mark}"))


def copies(x: Any, *, waits: bool, interpret: Any) -> Any:
    """Copy the rows into scratch memory and add one to them."""

    def kernel(x_ref: Any, out_ref: Any, rows: Any, semaphore: Any) -> None:
        copy = pltpu.make_async_copy(x_ref, rows, semaphore)
        copy.start()
        if waits:
            copy.wait()
        out_ref[...] = rows[...] + 1  # too early
        if not waits:
            copy.wait()

    return pl.pallas_call(
        kernel,
        out_shape=like(x),
        in_specs=[WHOLE],
        scratch_shapes=[pltpu.VMEM(x.shape, x.dtype), DMA],
        interpret=interpret,
    )(x)


@pytest.mark.parametrize("waits", [True, False])
def test_a_race_of_a_run_is_a_finding(waits: bool, capsys: Any) -> None:
    """At the line that should have waited; the run goes on, and nothing is printed. Without a race there is none."""
    eager = pltpu.InterpretParams(detect_races=True, dma_execution_mode="eager")
    found = run(copies, X, waits=waits, interpret=eager)
    np.testing.assert_array_equal(found.outputs, X + 1)
    races = [] if waits else [("PL203", __file__, line_of(copies, "too early"))]
    assert [(each.rule, each.file, each.line) for each in found.findings] == races
    assert capsys.readouterr().out == ""


def test_a_race_of_a_check_is_one_finding(capsys: Any) -> None:
    """In plain interpretation by the function's own parameters, and in TPU interpretation beside it."""
    own = pltpu.InterpretParams(detect_races=True)
    at = ("PL203", line_of(copies, "too early"))
    for modes in ("interpret", "interpret,tpu_interpret"):
        found = check(copies, X, waits=False, interpret=own, modes=modes)
        assert [(each.rule, each.line) for each in found.findings] == [at]
    assert capsys.readouterr().out == ""


def test_the_detector_is_jaxs_own_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a run that went through, and after one that did not."""
    module, name = jax_internals.race_detector(of_gpu=False)
    theirs = getattr(module, name)
    own = pltpu.InterpretParams(detect_races=True)
    run(copies, X, waits=False, interpret=own)
    assert getattr(module, name) is theirs
    with pytest.raises(ValueError, match="no rows"):
        run(refusing, X, interpret=own)
    assert getattr(module, name) is theirs


def refusing(x: Any, interpret: Any) -> Any:
    raise ValueError("no rows")


# ---------------------------------------------------------------------- GPUs


def on_a_gpu(x: Any, *, waits: bool, interpret: Any) -> Any:
    """Copy the rows into shared memory and add one to them."""
    from jax.experimental.pallas import mosaic_gpu as plgpu

    def kernel(x_ref: Any, out_ref: Any, rows: Any, barrier: Any) -> None:
        plgpu.copy_gmem_to_smem(x_ref, rows, barrier)
        if waits:
            plgpu.barrier_wait(barrier)
        rows[...] = rows[...] + 1  # too early
        if not waits:
            plgpu.barrier_wait(barrier)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(rows, out_ref)
        plgpu.wait_smem_to_gmem(0)

    scratch = [plgpu.SMEM(x.shape, x.dtype), plgpu.Barrier()]
    return plgpu.kernel(kernel, out_type=like(x), scratch_types=scratch, interpret=interpret)(x)


@pytest.mark.parametrize("door", [run, check])
@pytest.mark.parametrize("waits", [True, False])
def test_a_race_of_a_gpu_is_a_finding(door: Any, waits: bool, capsys: Any) -> None:
    """Whether the function brings the parameters of the interpreter of GPUs, or the check does."""
    pytest.importorskip("absl", reason="JAX's Mosaic GPU takes absl-py")
    own = jax_internals.gpu_parameters()(detect_races=True)
    found = door(on_a_gpu, X, waits=waits, interpret=own)
    np.testing.assert_array_equal(found.outputs, X + 1)
    races = [] if waits else [("PL203", __file__, line_of(on_a_gpu, "too early"))]
    assert [(each.rule, each.file, each.line) for each in found.findings] == races
    assert capsys.readouterr().out == ""


def through_a_union(x: Any, *, same: bool) -> Any:
    """Write one member of a union of shared memory, and read it or the other one."""
    from jax.experimental.pallas import mosaic_gpu as plgpu

    def kernel(x_ref: Any, out_ref: Any, union: Any, barrier: Any) -> None:
        first, second = union
        plgpu.copy_gmem_to_smem(x_ref, first, barrier)
        plgpu.barrier_wait(barrier)
        out_ref[...] = (first if same else second)[...]  # by the other one

    either = plgpu.RefUnion(plgpu.SMEM(x.shape, x.dtype), plgpu.SMEM(x.shape, x.dtype))
    return plgpu.kernel(kernel, out_type=like(x), scratch_types=[either, plgpu.Barrier()])(x)


@pytest.mark.parametrize("same", [True, False])
def test_a_union_is_read_by_the_member_that_was_written(same: bool) -> None:
    """The other one shares its memory and holds nothing that counts."""
    pytest.importorskip("absl", reason="JAX's Mosaic GPU takes absl-py")
    if "ref_union_members" not in vars(getattr(*jax_internals.race_detector(of_gpu=True))).get("__annotations__", {}):
        pytest.skip("JAX interprets plgpu.RefUnion since 0.11")
    found = check(through_a_union, X, same=same)
    wanted = [] if same else [("PL207", line_of(through_a_union, "by the other one"))]
    assert [(each.rule, each.line) for each in found.findings] == wanted
