"""A Pallas kernel against its shadow in float32: what low precision costs, and what is wrong without it."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from nkitools.pallas import precision_split  # noqa: E402
from nkitools.rules.finding import NotModelled  # noqa: E402
from tests.pallas.kernels import in_blocks  # noqa: E402

DOCS = Path(__file__).parents[2] / "docs" / "how-to"
X = np.random.default_rng(0).standard_normal((16, 128)).astype(jnp.bfloat16)


def column_sums(scale: float, dtype: Any) -> Any:
    """Return a kernel that adds up blocks of 8 rows in scratch memory of that dtype, in a loop over the rows."""

    def kernel(x_ref: Any, out_ref: Any, total: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        def add(row: Any, _: Any) -> None:
            total[...] += (x_ref[pl.ds(row, 1), :] * jnp.bfloat16(scale)).astype(dtype)

        jax.lax.fori_loop(0, 8, add, None)
        out_ref[...] = total[...].astype(out_ref.dtype)

    def sums(x: Any) -> Any:
        block, once = pl.BlockSpec((8, 128), lambda i: (i, 0)), pl.BlockSpec((1, 128), lambda i: (0, 0))
        out, scratch = jax.ShapeDtypeStruct((1, 128), x.dtype), [pltpu.VMEM((1, 128), dtype)]
        return pl.pallas_call(
            kernel, grid=(2,), in_specs=[block], out_specs=once, out_shape=out, scratch_shapes=scratch
        )(x)

    return sums


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_the_error_is_split(dtype: Any) -> None:
    """Both halves are those of NumPy: the sum in bfloat16 step by step, and in float32."""
    exact = X.astype(np.float64).sum(0, keepdims=True)
    total = np.zeros((1, 128), dtype)
    for row in X:
        total = (total + row.astype(dtype)).astype(dtype)
    rounded = np.abs(total.astype(jnp.bfloat16).astype(np.float64) - exact).max()
    (output,) = precision_split(column_sums(1.0, dtype), X, reference=lambda x: x.sum(0, keepdims=True)).tensors
    assert (output.name, output.dtype, output.shape) == ("output", "bfloat16", (1, 128))
    assert output.error.max_abs == rounded
    assert output.remaining.max_abs < 1e-5
    assert output.low_precision.max_abs == pytest.approx(rounded, abs=1e-5)
    assert output.is_low_precision


def test_the_how_to_page_shows_what_happens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script of the page prints what the page has."""
    monkeypatch.syspath_prepend(str(DOCS / "example"))
    runpy.run_path(str(DOCS / "example" / "product_precision.py"))
    monkeypatch.delitem(sys.modules, "product")
    assert capsys.readouterr().out in (DOCS / "pallas-kernels.md").read_text()


def test_what_is_wrong_without_rounding_too() -> None:
    """A factor that is left out is no matter of precision."""
    (output,) = precision_split(column_sums(2.0, jnp.float32), X, reference=lambda x: x.sum(0, keepdims=True)).tensors
    largest = np.abs(X.astype(np.float64).sum(0)).max()
    assert output.remaining.max_abs == pytest.approx(largest, rel=1e-6)
    assert output.verdict.endswith("look at the algorithm.")


def test_loops_and_calls_around_kernels_have_their_shadow() -> None:
    """Each row is divided by three and by two again in bfloat16, in a scan, a branch and a loop of unknown length."""

    def third(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref[...] / jnp.asarray(3, x_ref.dtype)

    def halved(x: Any) -> Any:
        once = jax.jit(lambda x: in_blocks(third, x))(x)
        twice, _ = jax.lax.scan(lambda each, _: (in_blocks(third, each), None), once, None, length=2)
        small = jax.lax.cond(x[0, 0] < 1e9, lambda: twice, lambda: once)
        return jax.lax.while_loop(lambda each: jnp.abs(each).max() > 0.01, lambda each: each / 2, small)

    split = precision_split(halved, X, reference=lambda x: x / 27 / 2**4)
    output = split["output"]
    assert np.abs(X.astype(np.float32)).max() / 27 / 2**4 < 0.01 < np.abs(X.astype(np.float32)).max() / 27 / 2**3
    assert 0 < output.low_precision.max_abs < 1e-3
    assert output.remaining.max_abs < 1e-8
    assert split.full.rounded == {}


def test_bits_are_rounded_and_named() -> None:
    """What takes the bits of a bfloat16 has them rounded in both runs."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        bits = jax.lax.bitcast_convert_type(x_ref[...] / jnp.asarray(3, x_ref.dtype), jnp.uint16)
        out_ref[...] = jax.lax.bitcast_convert_type(bits, jnp.bfloat16)

    split = precision_split(lambda x: in_blocks(kernel, x), X)
    assert split["output"].low_precision.different == 0
    assert split.full.rounded == {"bitcast_convert_type": 2}
    assert "bitcast_convert_type (2)" in str(split)


def test_whole_numbers_and_float32_have_no_low_precision() -> None:
    """The shadow is the same run."""
    assert precision_split(
        lambda x: in_blocks(lambda a, b: b.__setitem__(..., a[...] + 1), x), np.ones((8, 128), np.int32)
    )["output"].verdict == ("output (int32): low precision changes nothing.")


def test_what_has_no_shadow_is_refused() -> None:
    """By its name."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    spec = jax.sharding.PartitionSpec()
    fn = jax.shard_map(
        lambda x: in_blocks(lambda a, b: b.__setitem__(..., a[...]), x),
        mesh=mesh,
        in_specs=spec,
        out_specs=spec,
        check_vma=False,
    )
    with pytest.raises(NotModelled, match="`shard_map` has no shadow in float32"):
        precision_split(fn, X)
