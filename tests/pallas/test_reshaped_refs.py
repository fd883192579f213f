"""References under another shape in TPU interpretation, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from nkitools.pallas import check  # noqa: E402
from tests.pallas.kernels import like, ramp  # noqa: E402


def test_reads_writes_and_copies() -> None:
    """Each goes to the elements that NumPy's reshape names, also by a slice of a flat reference, or twice reshaped."""

    def kernel(x_ref: Any, out_ref: Any, row: Any, semaphore: Any) -> None:
        pages, out = x_ref.reshape(4, 8, 128), out_ref.reshape(4, 8, 128)
        out[1] = pages[2] * 2
        out[pl.ds(2, 1)] = pages.reshape(2, 2, 8, 128)[1, pl.ds(1, 1)]
        row.reshape(256)[pl.ds(0, 128)] = pages.at[0].reshape(1024)[pl.ds(128, 128)]
        row[1] = row[0] + 1
        out.at[3].reshape(4, 2, 128)[0] = row[...]
        out.at[3].reshape(4, 2, 128)[pl.ds(1, 3)] = jnp.zeros((3, 2, 128), jnp.float32)
        copy = pltpu.make_async_copy(pages.at[3], out.at[0], semaphore)
        copy.start()
        copy.wait()

    def call(x: Any) -> Any:
        scratch = [pltpu.VMEM((2, 128), jnp.float32), pltpu.SemaphoreType.DMA]
        return pl.pallas_call(kernel, out_shape=like(x), scratch_shapes=scratch)(x)

    x = ramp(32)
    run = check(call, x, modes="tpu_interpret")
    pages = x.reshape(4, 8, 128)
    last = np.concatenate([pages[0, 1:2], pages[0, 1:2] + 1, np.zeros((6, 128), np.float32)])
    assert (run.left_out, run.findings) == ({}, [])
    np.testing.assert_array_equal(run.outputs.reshape(4, 8, 128), np.stack([pages[3], pages[2] * 2, pages[3], last]))


def test_what_nothing_wrote_is_found() -> None:
    """A read of scratch memory by another shape is one of the elements behind it: half of them were never written."""

    def kernel(x_ref: Any, out_ref: Any, rows: Any) -> None:
        rows.reshape(2, 8, 128)[0] = x_ref[...]
        out_ref[...] = rows.reshape(4, 4, 128)[pl.ds(1, 2)].reshape(8, 128)

    def call(x: Any) -> Any:
        return pl.pallas_call(kernel, out_shape=like(x), scratch_shapes=[pltpu.VMEM((16, 128), jnp.float32)])(x)

    run = check(call, ramp(8), modes="tpu_interpret")
    assert run.left_out == {}
    assert [each.rule for each in run.findings] == ["PL207"]


def test_a_row_that_is_read_repeatedly() -> None:
    """A stride of 0 gives one row or column as often as it says, of the reference itself and of one reshaped."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        out_ref[pl.ds(0, 8)] = x_ref[pl.ds(3, 8, stride=0)]
        out_ref[pl.ds(8, 8)] = x_ref.reshape(4, 4, 128)[2, pl.ds(1, 8, stride=0)]

    def call(x: Any) -> Any:
        return pl.pallas_call(kernel, out_shape=like(x))(x)

    x = ramp(16)
    run = check(call, x, modes="tpu_interpret")
    assert (run.left_out, run.findings) == ({}, [])
    np.testing.assert_array_equal(run.outputs, np.repeat(x[[3, 9]], 8, axis=0))


def test_no_box_is_left_out() -> None:
    """Every second row is no box of the reference: the mode is left out, and the reason names both shapes."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref.reshape(8, 2, 128)[:, 0]

    def call(x: Any) -> Any:
        return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype))(x)

    run = check(call, ramp(16), modes="interpret,tpu_interpret")
    assert "a reference of shape (16, 128) under another shape" in run.left_out["tpu_interpret"]
    np.testing.assert_array_equal(run.outputs, ramp(16)[::2])


@pytest.mark.skipif(not hasattr(pltpu, "annotate"), reason="annotations came with JAX 0.11")
def test_an_annotation_leaves_the_reference_as_it_is() -> None:
    """In front of another shape and behind it."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        quick = pltpu.annotate(x_ref, no_bank_conflict=True).reshape(2, 8, 128)
        out_ref[pl.ds(0, 8)] = quick[1]
        out_ref[pl.ds(8, 8)] = pltpu.annotate(x_ref.reshape(2, 8, 128), no_bank_conflict=True)[0]

    x = ramp(16)
    run = check(lambda x: pl.pallas_call(kernel, out_shape=like(x))(x), x, modes="tpu_interpret")
    assert (run.left_out, run.findings) == ({}, [])
    np.testing.assert_array_equal(run.outputs, np.concatenate([x[8:], x[:8]]))
