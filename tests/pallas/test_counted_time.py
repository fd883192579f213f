"""Times by counts: what a kernel computes and moves, what stands around it, and the bands of measured kernels."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from nkitools.pallas import counted_time, estimate, time_estimate  # noqa: E402
from nkitools.pallas.around_calls import Around  # noqa: E402
from nkitools.pallas.calls import compiling_for  # noqa: E402
from nkitools.pallas.chips import CHIPS  # noqa: E402
from nkitools.pallas.counted_time import Parts, time_of  # noqa: E402
from nkitools.pallas.counted_work import Work  # noqa: E402
from nkitools.pallas.kernel_integers import work_of  # noqa: E402
from nkitools.pallas.whole_function import calls_to_compile  # noqa: E402

BLOCK = 128 * 128 * 4  # bytes


def counts_of(fn: Callable[..., Any], *args: Any) -> tuple[Work, float]:
    """Return the work of the one call of a function, and the bytes that are moved around it."""
    with compiling_for(CHIPS["v5e"]):
        traced = jax.make_jaxpr(fn)(*args)
    around = Around(traced, args)
    (call,) = calls_to_compile(traced)
    return work_of(call, around.scalars), around.moved


def square(size: int) -> Any:
    return jax.ShapeDtypeStruct((size, size), jnp.float32)


def multiplied(x_ref: Any, y_ref: Any, out_ref: Any) -> None:
    @pl.when(pl.program_id(2) == 0)
    def _() -> None:
        out_ref[...] = jnp.zeros_like(out_ref)

    out_ref[...] += jnp.dot(x_ref[...], y_ref[...])


SPECS: dict[str, Any] = {
    "grid": (2, 3, 4),
    "in_specs": [pl.BlockSpec((128, 128), lambda i, j, k: (i, k)), pl.BlockSpec((128, 128), lambda i, j, k: (k, j))],
    "out_specs": pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
}
FACTORS = (jax.ShapeDtypeStruct((256, 512), jnp.float32), jax.ShapeDtypeStruct((512, 384), jnp.float32))
PRODUCT = jax.ShapeDtypeStruct((256, 384), jnp.float32)


def test_a_grid_counts_its_points_products_and_blocks() -> None:
    """24 points: each multiplies and loads two blocks, each adds to 16 registers, and six results are stored."""
    work, around = counts_of(pl.pallas_call(multiplied, out_shape=PRODUCT, **SPECS), *FACTORS)
    assert (work.steps, around) == (24, 0)
    assert work.products == {(128, 128, 128, "float32"): 24}
    assert work.moved == (24 + 24 + 6) * BLOCK
    assert (work.elementwise, work.functions) == (24 * 16, 0)


def test_a_pipeline_in_a_kernel_counts_as_its_grid() -> None:
    """The loop, the branches and the copies of `pltpu.emit_pipeline` are those of the grid; the first block is one."""

    def kernel(x_ref: Any, y_ref: Any, out_ref: Any) -> None:
        specs = {**SPECS, "out_specs": [SPECS["out_specs"]]}
        pltpu.emit_pipeline(multiplied, **specs)(x_ref, y_ref, out_ref)

    hbm = pl.BlockSpec(memory_space=pl.ANY)
    fn = pl.pallas_call(kernel, out_shape=PRODUCT, in_specs=[hbm, hbm], out_specs=hbm)
    work, _ = counts_of(fn, *FACTORS)
    assert work.products == {(128, 128, 128, "float32"): 24}
    assert work.moved == (24 + 24 + 6) * BLOCK
    assert work.steps == 24 + 1


def grouped(groups: Any, wanted: Any) -> tuple[Work, float]:
    """Count a kernel whose block is that of a group, and that takes exponentials where it is wanted."""

    def kernel(groups_ref: Any, wanted_ref: Any, x_ref: Any, out_ref: Any) -> None:
        @pl.when(wanted_ref[pl.program_id(0)] == 1)
        def _() -> None:
            out_ref[...] = jnp.exp(x_ref[...])

    block = pl.BlockSpec((128, 128), lambda i, groups_ref, wanted_ref: (groups_ref[i], 0))
    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2, grid=(6,), in_specs=[block], out_specs=pl.BlockSpec((128, 128), lambda i, *_: (i, 0))
    )
    x = jax.ShapeDtypeStruct((768, 128), jnp.float32)
    return counts_of(pl.pallas_call(kernel, out_shape=x, grid_spec=spec), groups, wanted, x)


def test_prefetched_scalars_decide_on_blocks_and_branches() -> None:
    """A block that stays is loaded once, and a branch that is not taken computes nothing: 16 registers each."""
    groups, wanted = np.array([0, 0, 2, 2, 2, 1], np.int32), np.array([1, 0, 0, 1, 0, 1], np.int32)
    work, _ = grouped(groups, wanted)
    assert work.moved == (3 + 6) * BLOCK
    assert work.functions == 3 * 16


def test_scalars_without_values_count_as_different() -> None:
    """Each point has another block then, and takes the branch."""
    unknown = jax.ShapeDtypeStruct((6,), jnp.int32)
    work, _ = grouped(unknown, unknown)
    assert work.moved == (6 + 6) * BLOCK
    assert work.functions == 6 * 16


def test_scalars_may_be_computed_from_the_arguments() -> None:
    """Values are followed through what the function computes before the call."""
    ends = jnp.asarray([1, 3, 6])
    work, _ = grouped(jnp.searchsorted(ends, jnp.arange(6), side="right").astype(jnp.int32), np.ones(6, np.int32))
    assert work.moved == (3 + 6) * BLOCK


def test_a_large_grid_is_counted_in_part_and_scaled() -> None:
    """Of 8,192 points the first are run; blocks, products and points are those of all."""
    block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    x = jax.ShapeDtypeStruct((8 * 64, 128 * 128), jnp.float32)

    def kernel(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = jnp.tanh(x_ref[...])

    work, _ = counts_of(pl.pallas_call(kernel, out_shape=x, grid=(64, 128), in_specs=[block], out_specs=block), x)
    assert (work.steps, work.functions) == (8192, 8192)
    assert work.moved == 2 * 8 * 64 * 128 * 128 * 4


def test_what_stands_around_a_call_is_read_and_written_once() -> None:
    """A scaled transpose is one operation; a transpose of it back is none; an output named twice is a copy."""
    product = pl.pallas_call(multiplied, out_shape=PRODUCT, **SPECS)
    size = 256 * 512 * 4
    turned = (jax.ShapeDtypeStruct((512, 256), jnp.float32), FACTORS[1])
    assert counts_of(lambda x, y: product(2 * x.T, y), *turned)[1] == 2 * size
    assert counts_of(lambda x, y: product(x.T.T, y), *FACTORS)[1] == 0
    assert counts_of(lambda x, y: (product(x, y),) * 2, *FACTORS)[1] == 2 * 256 * 384 * 4


def test_the_time_follows_the_table() -> None:
    """A changed rate changes the time; no code knows a rate."""
    law = {"product": 1.5, "vector": 2.0, "step_us": 0.5, "call_us": 7.0, "moved": 1.2, "around": 1.0}
    found = time_of(Parts(product=100.0, vector=10.0, moved=50.0, steps=8.0), law)
    assert found == pytest.approx((170.0, 60.0, 11.0))


def test_an_estimate_by_counts_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the greater of both times with the starts, its band, and the time around the calls."""
    monkeypatch.setattr(time_estimate, "why_not", lambda: "libtpu is not installed")
    product = pl.pallas_call(multiplied, out_shape=PRODUCT, **SPECS)
    found = estimate(lambda x, y: product(x, y).T, *FACTORS, by="counts", chips="v5e,v4")
    (measured, other) = found.kernels
    assert measured.latency_us == max(measured.compute_us or 0, measured.memory_us) + measured.overhead_us
    assert (measured.lower_us or 0) < measured.latency_us < (measured.upper_us or 0)
    assert measured.hbm_bytes == (24 + 24 + 6) * BLOCK
    law = counted_time.law_of(CHIPS["v5e"])
    assert found.around_us["v5e"] == pytest.approx(2 * 256 * 384 * 4 / 820e9 * 1e6 * law["around"])
    assert "measured kernels, products)" in str(measured)
    assert "no kernel was measured on v4" in str(other)
    assert "around the calls on v5e: about" in str(found)


def test_a_family_that_was_not_measured_says_so() -> None:
    """Its band is wider than that of the families that were."""
    fn = pl.pallas_call(lambda x_ref, out_ref: out_ref.__setitem__(..., x_ref[...] + 1), out_shape=square(128))
    (found,) = estimate(fn, square(128), by="counts").kernels
    assert "no such kernel was measured on v5e" in str(found)
    known = counted_time.band_of(Work(products={(8, 8, 8, "bfloat16"): 1}), CHIPS["v5e"])  # type: ignore[arg-type]
    assert found.band.lower < known.lower < known.upper < found.band.upper


def test_an_unknown_way_is_refused() -> None:
    """The error names the ways."""
    with pytest.raises(ValueError, match=r"timeout=5: .* leave it out"):
        estimate(pl.pallas_call(multiplied, out_shape=PRODUCT, **SPECS), *FACTORS, by="counts", timeout=5)
    with pytest.raises(ValueError, match="by has 'guess'; choose of compiler, counts"):
        estimate(pl.pallas_call(multiplied, out_shape=PRODUCT, **SPECS), *FACTORS, by="guess")


def test_the_script_of_the_how_to_page_ranks_blocks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each block of the result loads a block of columns, so that blocks of 256 move more than those of 512."""
    script = Path(__file__).parents[2] / "docs" / "how-to" / "example" / "product_counts.py"
    monkeypatch.syspath_prepend(str(script.parent))
    runpy.run_path(str(script))
    monkeypatch.delitem(sys.modules, "product")
    small, _, large, _ = (float(us) for us in re.findall(r"about ([\d.]+) us", capsys.readouterr().out))
    assert large < small
