"""What users of Pallas meet beyond blocks and grids: a right use of each is clean, a mistake in it is named."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from nkitools.pallas import check, launch  # noqa: E402
from nkitools.pallas.calls import compiling_for, pallas_calls  # noqa: E402
from nkitools.pallas.chips import CHIPS  # noqa: E402
from nkitools.pallas.compiler import why_not  # noqa: E402
from tests.pallas.kernels import double, in_blocks, like, ramp  # noqa: E402

ACCEPTED = None if why_not() else True
BLOCK = pl.BlockSpec((8, 128), lambda i, *scalars: (i, 0))


def marked(function: Callable[..., Any], word: str = "here") -> int:
    """Return the line of a function that ends in ``# here``."""
    lines, first = inspect.getsourcelines(function)
    return next(first + at for at, line in enumerate(lines) if line.rstrip().endswith(f"# {word}"))


def with_scalars(kernel: Any, scalars: Any, x: Any, spec: Any = BLOCK, scratch: Any = (), **options: Any) -> Any:
    """Return ``kernel(scalars, x, out, *scratch)`` over blocks of 8 rows."""
    grid = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1, grid=(x.shape[0] // 8,), in_specs=[spec], out_specs=BLOCK, scratch_shapes=scratch
    )
    return pl.pallas_call(kernel, grid_spec=grid, out_shape=like(x), **options)(scalars, x)


@pytest.mark.parametrize("cleared", [True, False])
def test_vmap_over_scalar_prefetch(cleared: bool) -> None:
    """The dimension that it adds is a parallel one on a TPU, so that a sum which is not cleared is undefined."""

    def kernel(count: Any, x_ref: Any, out_ref: Any, total: Any) -> None:
        @pl.when(cleared & (pl.program_id(0) == 0))
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += x_ref[...] * count[0].astype(jnp.float32)  # here
        out_ref[...] = total[...]

    def sums(scalars: Any, x: Any) -> Any:
        ordered = pltpu.CompilerParams(dimension_semantics=("arbitrary",))
        scratch = [pltpu.VMEM((8, 128), jnp.float32)]
        one = lambda part: with_scalars(kernel, scalars, part, scratch=scratch, compiler_params=ordered)  # noqa: E731
        return jax.vmap(one)(x)

    x = np.stack([ramp(), ramp() + 1])
    run = check(sums, np.array([3], np.int32), x, modes="tpu_interpret,lower,aot" if cleared else "tpu_interpret")
    assert "tpu_interpret" not in run.left_out
    if cleared:
        assert (run.findings, run.compiled["v5e"].accepted) == ([], ACCEPTED)
        parts = 3 * x.reshape(2, 2, 8, 128)
        np.testing.assert_array_equal(run.outputs, parts.cumsum(1).reshape(2, 16, 128))
    else:
        assert [(each.rule, each.line) for each in run.findings] == [("PL207", marked(kernel))]


def test_the_dimensions_of_vmap_are_parallel() -> None:
    """The author says nothing of them, and JAX lowers them so."""
    ordered = pltpu.CompilerParams(dimension_semantics=("arbitrary",))
    fn = jax.vmap(lambda x: in_blocks(lambda x_ref, out_ref: None, x, compiler_params=ordered))
    with compiling_for(CHIPS["v5e"]):
        (call,) = pallas_calls(jax.make_jaxpr(fn)(np.stack([ramp(), ramp()])))
    assert call.parallel == (True, False)


@pytest.mark.parametrize(("blocks", "rules"), [([1, 0], []), ([1, 2], ["PL201"])])
def test_blocks_that_scalars_choose(blocks: list[int], rules: list[str]) -> None:
    """The index map reads them; one that is too far is named at the block spec."""

    def kernel(chosen: Any, x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref[...]

    def gathered(chosen: Any, x: Any) -> Any:
        spec = pl.BlockSpec((8, 128), lambda i, chosen: (chosen[i], 0))  # here
        return with_scalars(kernel, chosen, x, spec)

    run = check(gathered, np.array(blocks, np.int32), ramp(), modes="tpu_interpret")
    assert [(each.rule, each.line) for each in run.findings] == [(rule, marked(gathered)) for rule in rules]
    if not rules:
        np.testing.assert_array_equal(run.outputs, np.roll(ramp(), 8, axis=0))


@pytest.mark.parametrize("cleared", [True, False])
def test_a_pipeline_within_a_kernel(cleared: bool) -> None:
    """``emit_pipeline`` has buffers and copies of its own; a sum over its grid is to be cleared as any other."""

    def body(x_ref: Any, out_ref: Any) -> None:
        @pl.when(cleared & (pl.program_id(0) == 0))
        def _() -> None:
            out_ref[...] = jnp.zeros_like(out_ref)

        out_ref[...] += x_ref[...]  # here

    def kernel(x_ref: Any, out_ref: Any) -> None:
        blocks = pl.BlockSpec((8, 128), lambda i: (i, 0))
        once = pl.BlockSpec((8, 128), lambda i: (0, 0))
        pltpu.emit_pipeline(body, grid=(2,), in_specs=[blocks], out_specs=[once])(x_ref, out_ref)

    def sums(x: Any) -> Any:
        anywhere, out = pl.BlockSpec(memory_space=pl.ANY), jax.ShapeDtypeStruct((8, 128), jnp.float32)
        return pl.pallas_call(kernel, in_specs=[anywhere], out_specs=anywhere, out_shape=out)(x)

    run = check(sums, ramp(), modes="tpu_interpret,lower,aot" if cleared else "tpu_interpret")
    if cleared:
        assert (run.findings, run.compiled["v5e"].accepted) == ([], ACCEPTED)
        np.testing.assert_array_equal(run.outputs, ramp().reshape(2, 8, 128).sum(0))
    else:
        assert [(each.rule, each.line) for each in run.findings] == [("PL207", marked(body))]


def test_an_alias_counts_the_scalars() -> None:
    """Operand 0 is the scalar: JAX refuses it as an output's memory, and its error passes through."""

    def kernel(add: Any, x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref[...] + add[0].astype(jnp.float32)

    add = np.array([1], np.int32)
    run = check(lambda s, x: with_scalars(kernel, s, x, input_output_aliases={1: 0}), add, ramp())
    assert (run.findings, run.compiled["v5e"].accepted) == ([], ACCEPTED)
    np.testing.assert_array_equal(run.outputs, ramp() + 1)
    with pytest.raises(ValueError, match="input_output_aliases"):
        check(lambda s, x: with_scalars(kernel, s, x, input_output_aliases={0: 0}), add, ramp())


def test_a_print_of_a_vector() -> None:
    """The record has the array, its grid point and its line, and the compiler takes it."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        pl.debug_print("rows {}", x_ref[...])  # here
        out_ref[...] = x_ref[...]

    run = check(lambda x: in_blocks(kernel, x), ramp())
    assert (run.findings, run.compiled["v5e"].accepted) == ([], ACCEPTED)
    assert [(each.program, each.line) for each in run.prints] == [((0,), marked(kernel)), ((1,), marked(kernel))]
    np.testing.assert_array_equal(np.concatenate([each.value for each in run.prints]), ramp())


def test_numbers_of_the_chip_have_their_shape_and_no_mode_makes_them_up() -> None:
    """A CPU has none: plain interpretation is left out, and TPU interpretation has JAX's zeros."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        pltpu.prng_seed(pl.program_id(0))
        bits = pltpu.prng_random_bits(x_ref.shape)
        out_ref[...] = x_ref[...] + (bits & 0).astype(jnp.float32)

    run = check(lambda x: in_blocks(kernel, x), ramp())
    assert (run.findings, run.compiled["v5e"].accepted) == ([], ACCEPTED)
    assert "prng_seed" in run.left_out["interpret"]
    np.testing.assert_array_equal(run.outputs, ramp())


def test_a_device_runs_with_jaxs_checks_and_poison(monkeypatch: pytest.MonkeyPatch) -> None:
    """``pl.debug_check`` counts there, and scratch memory begins as NaN; afterwards both are as they were."""
    seen = []

    def doubled(x: Any) -> Any:
        config = jax.config
        seen.append((config.jax_pallas_enable_debug_checks, config.jax_pallas_poison_buffers))
        return double(x)

    monkeypatch.setattr(launch, "sees_tpu", lambda left_out: True)
    monkeypatch.setattr(launch, "tpu", lambda: jax.devices("cpu")[0])
    with pltpu.force_tpu_interpret_mode(True):
        run = check(doubled, ramp(), modes="device")
    np.testing.assert_array_equal(run.outputs, 2 * ramp())
    assert seen[-1] == (True, True)
    assert not jax.config.jax_pallas_enable_debug_checks
    assert not jax.config.jax_pallas_poison_buffers
