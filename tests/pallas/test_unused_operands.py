"""PL303: operands that no line reads, where libtpu is reported to copy zeros beside them."""

from __future__ import annotations

from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

from nkitools.pallas import check, compiled, libtpu  # noqa: E402

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


@pytest.mark.parametrize(("version", "is_concerned"), [((0, 0, 42), False), ((0, 0, 43), True), ((0, 0, 52), True)])
def test_an_unused_operand_is_a_hint_since_the_version_that_zeroes(
    version: tuple[int, ...], is_concerned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From libtpu 0.0.43 on, with the name of the operand and the thread."""
    monkeypatch.setattr(libtpu, "version", lambda: version)
    monkeypatch.setattr(compiled, "_prepared", {})  # which keeps what was found of a call
    assert found(called(by_copies)) == [("PL303", "hint")] * is_concerned
    run = check(called(by_copies), X, modes=("lower", "aot"), chips="v5e")
    assert all("`spare`" in each.message and "jax-ml/jax#39744" in each.message for each in run.findings)


@pytest.mark.parametrize(
    "function",
    [called(by_both), called(by_copies, X[:1], input_output_aliases={1: 0})],
    ids=["one that is read", "one whose memory is the output's"],
)
def test_operands_that_are_used_are_not(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operand whose memory an output takes over need not be read."""
    monkeypatch.setattr(libtpu, "version", lambda: (0, 0, 43))
    monkeypatch.setattr(compiled, "_prepared", {})
    assert found(function) == []
