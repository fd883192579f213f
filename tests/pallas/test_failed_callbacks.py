"""What a check leaves behind reaches no later one: callbacks that have failed, modes that were left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from jax.experimental import pallas as pl  # noqa: E402

from nkitools.pallas import check, jax_internals  # noqa: E402
from tests.pallas.kernels import double_block, like, ramp  # noqa: E402

RUNNING = ("interpret", "tpu_interpret")


class _Failed:
    """A token of JAX whose callback has failed."""

    def block_until_ready(self) -> None:
        raise RuntimeError("of another kernel")


def reshapes(x: Any) -> Any:
    """Read every second row by another shape, at which TPU interpretation raises in a callback: they are no box."""

    def kernel(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref.reshape(8, 2, 128)[:, 0] + 1

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((8, 128), x.dtype))(x)


def beyond(x: Any) -> Any:
    """Take a block that there is not."""
    here, next_one = pl.BlockSpec((8, 128), lambda i: (i, 0)), pl.BlockSpec((8, 128), lambda i: (i + 1, 0))
    return pl.pallas_call(double_block, grid=(2,), out_shape=like(x), in_specs=[next_one], out_specs=here)(x)


@pytest.mark.parametrize("kind", ["current_tokens", "output_runtime_tokens"])
def test_a_callback_that_failed_before_is_forgotten(kind: str) -> None:
    """What JAX keeps of an earlier run's error reaches no later check: not its findings, and not its outputs."""
    tokens = jax_internals.of(jax_internals.DISPATCH, "runtime_tokens")
    for left in ({"tpu": _Failed()}, {}):
        getattr(tokens, kind).update(left)
        run = check(beyond, ramp(16), modes=RUNNING)
        assert ([each.rule for each in run.findings], run.left_out) == (["PL201"], {})
        assert run.outputs is not None
        assert not getattr(tokens, kind)


def test_checks_behind_one_that_is_left_out() -> None:
    """A right kernel that TPU interpretation cannot run leaves the verdicts behind it as they are alone."""
    for _ in range(4):
        run = check(reshapes, ramp(16), modes=RUNNING)
        assert list(run.left_out) == ["tpu_interpret"]
        np.testing.assert_array_equal(run.outputs, ramp(16)[::2] + 1)
        assert [each.rule for each in check(beyond, ramp(16), modes=RUNNING).findings] == ["PL201"]
        assert (
            check(lambda x: pl.pallas_call(double_block, out_shape=like(x))(x), ramp(16), modes=RUNNING).left_out == {}
        )
