"""PL303: operands that no line reads, where libtpu is reported to copy zeros beside them."""

from __future__ import annotations

from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from nkitools.pallas import check  # noqa: E402

ROW = jax.ShapeDtypeStruct((1, 256), jnp.float32)
X = jnp.ones((2, 256), jnp.float32)
HBM = pl.BlockSpec(memory_space=pl.ANY)


def by_copies(x: Any, spare: Any, out: Any, row: Any) -> None:
    pltpu.sync_copy(x.at[pl.ds(0, 1), :], row)
    pltpu.sync_copy(row, out)


def by_both(x: Any, spare: Any, out: Any, row: Any) -> None:
    by_copies(x, x, out, row)
    pltpu.sync_copy(spare.at[pl.ds(0, 1), :], row)


def called(kernel: Any, spare: Any = X, **how: Any) -> Any:
    """A function that makes an operand of its own for a kernel that may not read it."""

    def function(x: Any) -> Any:
        rows = [pltpu.VMEM((1, 256), jnp.float32)]
        call = pl.pallas_call(kernel, in_specs=[HBM, HBM], out_specs=HBM, scratch_shapes=rows, out_shape=ROW, **how)
        return call(x, spare + 1)

    return function


def found(function: Any) -> list[tuple[str, str]]:
    return [(each.rule, each.severity) for each in check(function, X, modes=("lower", "aot"), chips="v5e").findings]


def test_an_unused_operand_is_a_hint_whatever_libtpu_is_here() -> None:
    """Its message has the name of the operand, the thread and the versions that zero, which the TPU's may be."""
    (finding,) = check(called(by_copies), X, modes=("lower", "aot"), chips="v5e").findings
    assert (finding.rule, finding.severity) == ("PL303", "hint")
    assert "no line reads input `spare`" in finding.message
    assert "jax-ml/jax#39744; libtpu from 0.0.43" in finding.message


@pytest.mark.parametrize(
    "function",
    [called(by_both), called(by_copies, X[:1], input_output_aliases={1: 0})],
    ids=["one that is read", "one whose memory is the output's"],
)
def test_operands_that_are_used_are_not(function: Any) -> None:
    """An operand whose memory an output takes over need not be read."""
    assert found(function) == []
