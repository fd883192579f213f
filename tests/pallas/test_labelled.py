"""The cases that JAX labels as racing or revisiting in its own tests, in our words: they get the same verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from nkitools.pallas import check  # noqa: E402
from nkitools.pallas.one_check import CheckedRun  # noqa: E402
from tests.pallas.kernels import like, mesh_of_cores, on_cores  # noqa: E402


def watched(fn: Any, *args: Any, cores: int = 1) -> CheckedRun:
    return check(fn, *args, modes="tpu_interpret", cores=cores)


def rules(run: CheckedRun) -> list[str]:
    return [finding.rule for finding in run.findings]


def doubled_through_scratch(rows: int, spec: Any) -> Any:
    """2 x, on a parallel grid of two points."""

    def kernel(x_ref: Any, o_ref: Any, scratch: Any) -> None:
        scratch[...] = x_ref[...]
        o_ref[...] = x_ref[...] + scratch[...]

    def call(x: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=like(x),
            grid=(2,),
            in_specs=[spec],
            out_specs=spec,
            scratch_shapes=[pltpu.VMEM((8, 128), x.dtype)],
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        )(x)

    return call, np.ones((rows, 128), np.float32)


@pytest.mark.parametrize("cores", [1, 2])
def test_two_points_of_a_parallel_dimension_that_write_the_same_block_race(cores: int) -> None:
    """Whether or not they happen to be on two cores in this run."""
    fn, x = doubled_through_scratch(8, pl.BlockSpec((8, 128), lambda i: (0, 0)))
    assert rules(watched(fn, x, cores=cores)) == ["PL203"]


@pytest.mark.parametrize("cores", [1, 2])
def test_points_of_a_parallel_dimension_with_blocks_of_their_own_do_not(cores: int) -> None:
    """Each core has scratch of its own."""
    fn, x = doubled_through_scratch(16, pl.BlockSpec((8, 128), lambda i: (i, 0)))
    run = watched(fn, x, cores=cores)
    assert run.findings == []
    np.testing.assert_array_equal(run.outputs, 2 * x)


def test_the_second_output_is_visited_again() -> None:
    """The first output's blocks follow one another; the second's come back at grid point (2, 0)."""

    def kernel(o1_ref: Any, o2_ref: Any) -> None:
        o1_ref[...] = jnp.zeros_like(o1_ref)
        o2_ref[...] = jnp.zeros_like(o2_ref)

    def call() -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=[jax.ShapeDtypeStruct((16, 256), jnp.float32), jax.ShapeDtypeStruct((8, 256), jnp.float32)],
            grid=(4, 4),
            out_specs=[
                pl.BlockSpec((4, 128), lambda i, j: (i, j // 2)),
                pl.BlockSpec((4, 128), lambda i, j: (j // 2, i % 2)),
            ],
        )()

    (finding,) = watched(call).findings
    assert (finding.rule, finding.program) == ("PL202", (2, 0))
    assert "output `o2_ref`" in finding.message
    assert finding.line == call.__code__.co_firstlineno + 7


def test_blocks_of_an_output_that_is_its_input_may_come_in_any_order() -> None:
    """Each block is read before it is written, at another point of the grid."""

    def kernel(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + 1.0

    def call(x: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=like(x),
            grid=(2, 2),
            in_specs=[pl.BlockSpec((8, 128), lambda i, j: (i, j))],
            out_specs=pl.BlockSpec((8, 128), lambda i, j: (j, i)),
            input_output_aliases={0: 0},
        )(x)

    run = watched(call, np.zeros((16, 256), np.float32))
    assert run.findings == []
    np.testing.assert_array_equal(run.outputs[::8, ::128], [[1, 2], [1, 1]])


def test_a_grid_that_is_known_when_it_runs() -> None:
    """Its size is a value of the program."""

    def kernel(s_ref: Any, x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = x_ref[...] + s_ref[0].astype(x_ref.dtype)

    def call(steps: Any, s: Any, x: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=like(x),
            grid=(steps,),
            in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec((8, 128), lambda i: (0, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        )(s, x)

    x = np.arange(1024, dtype=np.float32).reshape(8, 128)
    run = watched(jax.jit(call), np.int32(3), np.ones(1, np.int32), x)
    assert run.findings == []
    np.testing.assert_array_equal(run.outputs, x + 1)


def on_each_core(body: Any, *scoped: Any) -> Any:
    """``body(core, x, y, *scoped)`` on two cores of a mesh, x and y in HBM; y is what comes back."""
    mesh = mesh_of_cores("core", 2)

    @jax.jit
    def call(x: Any) -> Any:
        def inner(refs: Any) -> None:
            x_ref, y_ref = refs

            @on_cores(mesh)
            def _() -> None:
                pl.run_scoped(lambda *memory: body(jax.lax.axis_index("core"), x_ref, y_ref, *memory), *scoped)

        return pl.run_state(inner)((x, jnp.zeros_like(x)))[1]

    return call


def test_two_cores_that_meet_do_not_race() -> None:
    """Both signal, both wait, and each copies a half."""

    def body(core: Any, x_ref: Any, y_ref: Any, buffer: Any, transfer: Any, met: Any) -> None:
        for other in range(2):
            pl.semaphore_signal(met, 1, core_index=other)
        pl.semaphore_wait(met, 2)
        half = pl.ds(core * 8, 8)
        pltpu.async_copy(x_ref.at[half], buffer, transfer).wait()
        buffer[...] = buffer[...] + core + 1
        pltpu.async_copy(buffer, y_ref.at[half], transfer).wait()

    x = np.arange(16 * 128, dtype=np.int32).reshape(16, 128)
    scoped = pltpu.VMEM((8, 128), jnp.int32), pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.REGULAR
    run = watched(on_each_core(body, *scoped), x)
    assert run.findings == []
    np.testing.assert_array_equal(run.outputs, x + np.repeat([1, 2], 8)[:, None])


def test_two_cores_that_copy_to_the_same_rows_race() -> None:
    """Nothing puts the two transfers in order."""

    def body(core: Any, x_ref: Any, y_ref: Any, transfer: Any) -> None:
        pltpu.async_copy(x_ref, y_ref, transfer).wait()

    x = np.arange(16 * 128, dtype=np.int32).reshape(16, 128)
    assert set(rules(watched(on_each_core(body, pltpu.SemaphoreType.DMA), x))) == {"PL203"}


@pytest.mark.parametrize("waits_first", [True, False])
def test_a_read_races_with_a_dma_that_is_not_waited_for(waits_first: bool) -> None:
    """The kernel that waits first does not."""

    def kernel(x_ref: Any, o_ref: Any, buffer: Any, semaphore: Any) -> None:
        copy = pltpu.make_async_copy(x_ref, buffer, semaphore)
        copy.start()
        if waits_first:
            copy.wait()
        o_ref[...] = buffer[...] + 1.0
        if not waits_first:
            copy.wait()

    def call(x: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=like(x),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            scratch_shapes=[pltpu.VMEM(x.shape, x.dtype), pltpu.SemaphoreType.DMA],
        )(x)

    assert rules(watched(call, np.zeros((8, 128), np.float32))) == ([] if waits_first else ["PL203"])
