"""Kinds of kernels in JAX's own documentation: random numbers, no inputs, padded blocks, meshes, waits, donation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from nkitools.pallas import check  # noqa: E402
from nkitools.pallas.compiler import why_not  # noqa: E402
from tests.pallas.kernels import in_blocks, kernel_over, like, mesh_of_cores, ramp  # noqa: E402

ACCEPTED = None if why_not() else True


def hardware_numbers() -> Any:
    """Random numbers of the TPU's own, which a CPU has not."""

    def kernel(out_ref: Any) -> None:
        pltpu.prng_seed(0)
        out_ref[...] = pltpu.stateful_uniform(shape=out_ref.shape, minval=0.0, maxval=1.0)

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))()


def test_a_kernel_without_inputs_is_compiled_for_the_chip() -> None:
    """Nothing but its outputs says where it runs."""

    def kernel(out_ref: Any) -> None:
        out_ref[...] = jnp.full(out_ref.shape, 3.0)

    run = check(lambda: pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), jnp.float32))())
    assert (run.findings, run.compiled["v5e"].accepted) == ([], ACCEPTED)
    np.testing.assert_array_equal(run.outputs, np.full((8, 128), 3.0, np.float32))


def test_a_key_of_random_numbers_is_an_argument() -> None:
    """It crosses to the compiler's process as the numbers that it is made of."""

    def kernel(key_ref: Any, out_ref: Any) -> None:
        out_ref[...] = jax.random.bits(key_ref[...], out_ref.shape, jnp.uint32)

    def bits(key: Any) -> Any:
        spec = pl.BlockSpec(memory_space=pltpu.VMEM)
        out = jax.ShapeDtypeStruct((8, 128), jnp.uint32)
        return pl.pallas_call(kernel, in_specs=[spec], out_shape=out)(key)

    key = jax.random.key(7, impl="threefry2x32")
    run = check(bits, key, modes="interpret,lower,aot")
    assert (run.findings, run.compiled["v5e"].accepted) == ([], ACCEPTED)
    np.testing.assert_array_equal(run.outputs, jax.random.bits(key, (8, 128), jnp.uint32))


def test_what_a_cpu_has_not_is_left_out_and_the_compiler_is_asked() -> None:
    """A check that collects tells which modes it could not go through; one that raises has no outputs to hand on."""
    run = check(hardware_numbers)
    assert [(each.rule, each.severity) for each in run.findings] == [("NK607", "hint")]
    assert {"interpret", "tpu_interpret"} <= set(run.left_out)
    assert (run.outputs, run.compiled["v5e"].accepted) == (None, ACCEPTED)
    with pytest.raises(NotImplementedError, match="platform cpu"):
        check(hardware_numbers, rules="error")


@pytest.mark.parametrize(("last", "rules"), [(3, []), (6, ["PL201"])])
def test_a_padded_block_may_begin_within_the_padding(last: int, rules: list[str]) -> None:
    """The index map counts from the start of the padding."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        rows = jax.lax.broadcasted_iota(jnp.int32, (16, 128), 0) + 8 * pl.program_id(0)
        out_ref[...] = jnp.where(rows < 32, x_ref[...], 0.0)

    def windows(x: Any) -> Any:
        rows = pl.Element(16, (0, 8))
        return pl.pallas_call(
            kernel,
            grid=(last + 1,),
            in_specs=[pl.BlockSpec((rows, pl.Element(128)), lambda i: (8 * i, 0))],
            out_specs=pl.BlockSpec((16, 128), lambda i: (i, 0)),
            out_shape=jax.ShapeDtypeStruct((16 * (last + 1), 128), x.dtype),
        )(x)

    run = check(windows, np.ones((32, 128), np.float32), modes="tpu_interpret")
    assert [each.rule for each in run.findings] == rules


def test_a_kernel_over_a_mesh_is_run_and_compiled() -> None:
    """In every mode, though it is no Pallas call."""

    def twice(x: Any) -> Any:
        @kernel_over(mesh_of_cores("core", 1), like(x), pltpu.VMEM(x.shape, x.dtype))
        def kernel(x_ref: Any, out_ref: Any, scratch: Any) -> None:
            pltpu.sync_copy(x_ref, scratch)
            scratch[...] = scratch[...] * 2
            pltpu.sync_copy(scratch, out_ref)

        return kernel(x)

    run = check(twice, ramp())
    np.testing.assert_array_equal(run.outputs, 2 * ramp())
    assert run.findings == []
    assert run.compiled["v5e"].accepted is ACCEPTED


def test_a_wait_that_nothing_ends_does_not_hang_on_two_cores() -> None:
    """It is known from the run on one core, and the second run is not made."""

    def kernel(x_ref: Any, out_ref: Any, semaphore: Any) -> None:
        pl.semaphore_wait(semaphore, 1)
        out_ref[...] = x_ref[...]

    def waiting(x: Any) -> Any:
        return in_blocks(kernel, x, scratch_shapes=[pltpu.SemaphoreType.REGULAR])

    run = check(waiting, ramp(), modes="tpu_interpret", cores=2)
    assert [each.rule for each in run.findings] == ["PL208"]


def test_a_block_visited_again_is_one_finding() -> None:
    """What the kernel reads of it is undefined because of the visit."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            out_ref[...] = jnp.zeros_like(out_ref)

        out_ref[...] += x_ref[...]

    def total(x: Any) -> Any:
        return pl.pallas_call(
            kernel,
            grid=(2, 2),
            in_specs=[pl.BlockSpec((None, 8, 128), lambda i, j: (i, j, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i, j: (j, 0)),
            out_shape=jax.ShapeDtypeStruct(x.shape[1:], x.dtype),
        )(x)

    run = check(total, np.ones((2, 16, 128), np.float32), modes="tpu_interpret")
    assert [each.rule for each in run.findings] == ["PL202"]


def test_donated_arguments_are_the_authors_still() -> None:
    """The function deletes what it is given, and every mode runs it."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = 2 * x_ref[...]

    def twice(x: Any) -> Any:
        return pl.pallas_call(kernel, out_shape=like(x), input_output_aliases={0: 0})(x)

    x = jnp.asarray(ramp())
    run = check(jax.jit(twice, donate_argnums=0), x, cores=2)
    assert run.findings == []
    np.testing.assert_array_equal(run.outputs, 2 * ramp())
    np.testing.assert_array_equal(x, ramp())
