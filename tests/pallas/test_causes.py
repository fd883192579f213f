"""Findings have the right cause: none only follows from another one, or matters to no result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402
from jax.experimental.pallas.ops.tpu import flash_attention  # noqa: E402

from nkitools.pallas import check  # noqa: E402
from nkitools.pallas.calls import pallas_calls  # noqa: E402
from tests.pallas.kernels import like, ramp  # noqa: E402

PARALLEL = ("parallel", "parallel", "arbitrary")


def product(semantics: tuple[str, ...], cleared: str) -> Callable[[Any], Any]:
    """Return a matrix product in blocks, whose sum is ``cleared`` for each block, ``once`` or ``never``."""

    def kernel(x_ref: Any, y_ref: Any, out_ref: Any, total: Any) -> None:
        first = pl.program_id(2) == 0
        if cleared == "once":
            first &= (pl.program_id(0) == 0) & (pl.program_id(1) == 0)

        if cleared != "never":

            @pl.when(first)
            def _() -> None:
                total[...] = jnp.zeros_like(total)

        total[...] += jnp.dot(x_ref[...], y_ref[...])
        out_ref[...] = total[...]

    def multiplied(x: Any) -> Any:
        return pl.pallas_call(
            kernel,
            out_shape=jax.ShapeDtypeStruct((16, 256), jnp.float32),
            grid=(2, 2, 1),
            in_specs=[pl.BlockSpec((8, 128), lambda i, j, k: (i, k)), pl.BlockSpec((128, 128), lambda i, j, k: (k, j))],
            out_specs=pl.BlockSpec((8, 128), lambda i, j, k: (i, j)),
            scratch_shapes=[pltpu.VMEM((8, 128), jnp.float32)],
            compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
        )(x, np.ones((128, 256), np.float32))

    return multiplied


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize(
    ("semantics", "cleared", "rules"),
    [
        (PARALLEL, "each time", []),
        (PARALLEL, "never", ["PL207"]),
        (("arbitrary",) * 3, "never", ["PL207"]),
        (PARALLEL, "once", ["PL206"]),
        (("arbitrary",) * 3, "once", []),
    ],
)
def test_a_sum_that_is_never_cleared_is_no_race(
    semantics: tuple[str, ...], cleared: str, rules: list[str], cores: int
) -> None:
    """It is read before it is written, in parallel dimensions too; a race is what one point leaves for another."""
    run = check(product(semantics, cleared), ramp(), modes="tpu_interpret", cores=cores)
    assert [each.rule for each in run.findings] == rules


def adding_the_next(*, used: bool) -> Callable[[Any], Any]:
    """Return a function that reads one scalar past the last, and adds it to the last block only if ``used``."""

    def kernel(scalars: Any, x_ref: Any, out_ref: Any) -> None:
        point = pl.program_id(0)
        after = scalars[point + 1]
        out_ref[...] = x_ref[...] + jnp.where(used | (point == 0), after, 0).astype(jnp.float32)

    def added(x: Any) -> Any:
        block = pl.BlockSpec((8, 128), lambda i, scalars: (i, 0))
        specs = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), in_specs=[block], out_specs=block)
        return pl.pallas_call(kernel, grid_spec=specs, out_shape=like(x))(jnp.array([1, 2], jnp.int32), x)

    return added


@pytest.mark.parametrize(("used", "severity"), [(True, "error"), (False, "hint")])
def test_a_scalar_from_outside_that_no_result_depends_on_is_a_hint(used: bool, severity: str) -> None:
    """The kernel reads it all the same, which the message says."""
    (finding,) = check(adding_the_next(used=used), ramp(), modes="tpu_interpret").findings
    assert (finding.rule, finding.severity) == ("PL201", severity)
    assert finding.message.endswith("no result depends on what is read") is not used


def test_what_follows_from_a_read_outside_is_folded_under_it() -> None:
    """The second output is written in part, and the results differ because of the read: one finding names both."""

    def kernel(scalars: Any, x_ref: Any, out_ref: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            out_ref[...] = x_ref[...] + scalars[2].astype(jnp.float32)

    def partly(x: Any) -> Any:
        block = pl.BlockSpec((8, 128), lambda i, scalars: (i, 0))
        specs = pltpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(2,), in_specs=[block], out_specs=block)
        scalars = jnp.array([1, 2], jnp.int32)
        return pl.pallas_call(kernel, grid_spec=specs, out_shape=like(x))(scalars, x)

    (finding,) = check(partly, ramp(), modes="tpu_interpret").findings
    assert finding.rule == "PL201"
    assert finding.message.endswith("(behind it, perhaps because of it: PL205 of `out_ref`)")


def test_a_kernel_of_all_its_references_has_names_for_them() -> None:
    """Their places in the call's own lists, in place of the kernel's ``args[3]``."""

    def kernel(*args: Any) -> None:
        x_ref, out_ref, total = args
        out_ref[...] = x_ref[...] + total[...]

    def summed(x: Any) -> Any:
        return pl.pallas_call(kernel, out_shape=like(x), scratch_shapes=[pltpu.VMEM(x.shape, x.dtype)])(x)

    (finding,) = check(summed, ramp(), modes="tpu_interpret").findings
    assert (finding.rule, finding.message.partition(" is read")[0]) == ("PL207", "scratch `scratch_shapes[0]`")


def test_a_kernel_of_jaxs_own_has_a_file_and_a_line() -> None:
    """Where no line of the author's is known, that of the library's function is."""
    x = np.ones((1, 1, 128, 128), np.float32)
    (call,) = pallas_calls(jax.make_jaxpr(lambda: flash_attention.flash_attention(x, x, x))())
    assert call.kernel_place.file == flash_attention.__file__
    assert call.kernel_place.line == flash_attention._flash_attention_kernel.__code__.co_firstlineno


def test_elements_are_boxes_in_the_arrays_own_indices() -> None:
    """The second block of rows was left out of an output of two dimensions."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        @pl.when(pl.program_id(0) != 1)
        def _() -> None:
            out_ref[...] = x_ref[...]

    def partly(x: Any) -> Any:
        block = pl.BlockSpec((8, 128), lambda i: (i, 0))
        return pl.pallas_call(kernel, out_shape=like(x), grid=(3,), in_specs=[block], out_specs=block)(x)

    (finding,) = check(partly, ramp(24), modes="tpu_interpret").findings
    assert finding.rule == "PL205"
    assert ": out_ref[8:16, 0:128] never written, the first in block (1, 0): " in finding.message


def test_a_part_that_is_read_before_it_is_written_is_a_box_of_its_buffer() -> None:
    """Where it lies in the buffer, whatever part was read."""

    def kernel(x_ref: Any, out_ref: Any, rows: Any) -> None:
        rows[pl.ds(0, 12)] = x_ref[pl.ds(0, 12)]
        out_ref[...] = jnp.concatenate([rows[pl.ds(8, 8)], rows[pl.ds(0, 8)]])

    def kept(x: Any) -> Any:
        return pl.pallas_call(kernel, out_shape=like(x), scratch_shapes=[pltpu.VMEM(x.shape, x.dtype)])(x)

    (finding,) = check(kept, ramp(), modes="tpu_interpret").findings
    assert (finding.rule, finding.message.partition(", in kernel")[0].rpartition(": ")[2]) == (
        "PL207",
        "rows[12:16, 0:128]",
    )
