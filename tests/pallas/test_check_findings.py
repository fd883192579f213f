"""The findings of a check: their place, the level that raises them, and results that decide whether they count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

import nkitools  # noqa: E402
from nkitools.pallas import check  # noqa: E402
from nkitools.record.allowed_rules import allow_findings  # noqa: E402
from nkitools.record.run_listeners import collect_runs  # noqa: E402
from tests.pallas.kernels import forgetful, in_blocks, like, ramp  # noqa: E402

RUNNING = ("interpret", "tpu_interpret")


def test_a_finding_says_where_and_which() -> None:
    """File, line, grid point, kernel, operand and elements."""

    def shifted(x: Any) -> Any:
        def kernel(x_ref: Any, out_ref: Any) -> None:
            out_ref[...] = x_ref[pl.ds(pl.program_id(0) * 8, 8), :]

        return in_blocks(kernel, x)

    (finding,) = check(shifted, ramp(), modes=RUNNING).findings
    assert (finding.file, finding.line) == (__file__, shifted.__code__.co_firstlineno + 2)
    assert (finding.rule, finding.severity, finding.program, finding.function) == ("PL201", "error", (1,), "kernel")
    assert "elements [8:16, 0:128] of the block of `x_ref`, whose shape is (8, 128)" in finding.message
    assert "in kernel `kernel` at grid point (1,)" in finding.message


@pytest.mark.parametrize(("level", "raises"), [("error", True), ("strict", True), ("report", False), ("off", False)])
def test_the_level_decides_what_a_finding_does(level: str, raises: bool) -> None:
    """Raised, collected or not looked for."""
    if raises:
        with collect_runs() as runs, pytest.raises(nkitools.KernelError) as caught:
            check(forgetful, ramp(), modes=RUNNING, rules=level)
        assert caught.value.finding.rule == "PL205"
        assert runs[0].error is caught.value
    else:
        run = check(forgetful, ramp(), modes=RUNNING, rules=level)
        assert [each.rule for each in run.findings] == ([] if level == "off" else ["PL205"])


def test_an_allowed_finding_is_set_aside() -> None:
    """It ends nothing, and is kept apart."""
    with allow_findings("PL205", reason="sliced off by the caller"):
        run = check(forgetful, ramp(), modes=RUNNING, rules="error")
    assert (run.findings, [each.rule for each in run.allowed]) == ([], ["PL205"])


def test_what_the_caller_slices_off_raises_no_finding() -> None:
    """An output block that is never written is no finding where no result depends on it."""
    assert check(lambda x: forgetful(x)[:8], ramp(), modes=RUNNING).findings == []


@pytest.mark.parametrize("returned", [True, False])
def test_an_output_that_is_only_scratch_may_be_raced_for(returned: bool) -> None:
    """Points of a parallel dimension that write the same output race, unless nobody looks at it."""

    def kernel(x_ref: Any, out_ref: Any, scratch_ref: Any) -> None:
        scratch_ref[...] = x_ref[...]
        out_ref[...] = scratch_ref[...] * 2

    def call(x: Any) -> Any:
        block = pl.BlockSpec((8, 128), lambda i: (i, 0))
        out, scratch = pl.pallas_call(
            kernel,
            out_shape=(like(x), jax.ShapeDtypeStruct((8, 128), x.dtype)),
            grid=(2,),
            in_specs=[block],
            out_specs=(block, pl.BlockSpec((8, 128), lambda i: (0, 0))),
            compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        )(x)
        return (out, scratch) if returned else out

    assert [each.rule for each in check(call, ramp(), modes=RUNNING[1]).findings] == (["PL203"] if returned else [])


@pytest.mark.parametrize("masked", [True, False])
def test_what_lies_beyond_the_edge_counts_if_the_result_depends_on_it(masked: bool) -> None:
    """A sum over a block that juts out, with its rows masked and without."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        rows = jax.lax.broadcasted_iota(jnp.int32, (8, 128), 0) + 8 * pl.program_id(0)
        values = jnp.where(rows < 12, x_ref[...], 0) if masked else x_ref[...]

        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            out_ref[...] = jnp.zeros_like(out_ref)

        out_ref[...] += values

    def total(x: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype),
            grid=(2,),
            in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0))],
            out_specs=pl.BlockSpec((8, 128), lambda i: (0, 0)),
        )(x)

    run = check(total, np.ones((12, 128), np.int32), modes="tpu_interpret")
    assert [(each.rule, each.line) for each in run.findings] == (
        [] if masked else [("PL207", kernel.__code__.co_firstlineno + 2)]
    )
    if masked:
        np.testing.assert_array_equal(run.outputs, [[2] * 128] * 4 + [[1] * 128] * 4)


def test_a_wait_that_nothing_ends_does_not_hang() -> None:
    """JAX would wait for ever."""

    def kernel(x_ref: Any, out_ref: Any, semaphore: Any) -> None:
        pl.semaphore_wait(semaphore, 1)
        out_ref[...] = x_ref[...]

    run = check(lambda x: in_blocks(kernel, x, scratch_shapes=[pltpu.SemaphoreType.REGULAR]), ramp(), modes=RUNNING[1])
    assert [each.rule for each in run.findings] == ["PL208"]
    assert "it has 0, the wait takes 1" in run.findings[0].message


def test_a_semaphore_that_keeps_a_count() -> None:
    """Signalled twice, waited for once."""

    def kernel(x_ref: Any, out_ref: Any, semaphore: Any) -> None:
        pl.semaphore_signal(semaphore, 2)
        pl.semaphore_wait(semaphore, 1)
        out_ref[...] = x_ref[...]

    fn = lambda x: in_blocks(kernel, x, scratch_shapes=[pltpu.SemaphoreType.REGULAR])  # noqa: E731
    assert [each.rule for each in check(fn, ramp(8), modes=RUNNING[1]).findings] == ["PL204"]


def test_what_tpu_interpretation_does_not_take_is_said() -> None:
    """The rest of the check is made, and a hint says what was not looked for."""

    def sequential_first(x: Any) -> Any:
        def kernel(x_ref: Any, out_ref: Any) -> None:
            out_ref[...] = x_ref[...]

        block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
        semantics = pltpu.CompilerParams(dimension_semantics=("arbitrary", "parallel"))
        return pl.pallas_call(
            kernel, out_shape=like(x), grid=(2, 1), in_specs=[block], out_specs=block, compiler_params=semantics
        )(x)

    run = check(sequential_first, ramp(), modes=RUNNING)
    np.testing.assert_array_equal(run.outputs, ramp())
    assert run.left_out["tpu_interpret"].startswith("ValueError: Dimensions with parallel semantics must form a prefix")
    assert [(each.rule, each.severity, each.file) for each in run.findings] == [("NK607", "hint", __file__)]


@pytest.mark.parametrize(("rows", "index"), [(1, 2**31 - 1), (8, -1)])
def test_a_block_by_a_scalar_that_is_not_there(rows: int, index: int) -> None:
    """The finding names the operand of scalars and its shape; the index itself says nothing. The right one is right."""

    def taken(table_ref: Any, pages_ref: Any, out_ref: Any) -> None:
        out_ref[...] = pages_ref[...]

    def gathered(table: Any, pages: Any, first: int) -> Any:
        specs = pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(4,),
            in_specs=[pl.BlockSpec((rows, 128), lambda i, table: (table[i + first], 0))],
            out_specs=pl.BlockSpec((rows, 128), lambda i, table: (i, 0)),
        )
        shape = jax.ShapeDtypeStruct((4 * rows, 128), pages.dtype)
        return pl.pallas_call(taken, out_shape=shape, grid_spec=specs)(table, pages)

    table, pages = np.array([5, 0, 3, 3], np.int32), np.arange(6 * rows * 128, dtype=np.float32).reshape(-1, 128)
    (found,) = check(lambda *given: gathered(*given, 1), table, pages, modes="tpu_interpret").findings
    said = "a scalar holds that is read outside of `table_ref` (int32 [4]), or before it is written"
    assert (found.rule, f"has no block ({index}, 0)" in found.message, said in found.message) == ("PL201", True, True)
    assert "read scalars that there are" in found.remedy
    assert check(lambda *given: gathered(*given, 0), table, pages, modes="tpu_interpret").findings == []
