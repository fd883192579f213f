"""PL213: the two interpretations differ, and neither rounding nor another finding explains it."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402

from nkitools.pallas import check  # noqa: E402
from nkitools.record.allowed_rules import allow_findings  # noqa: E402
from tests.pallas.kernels import like, ramp  # noqa: E402

RUNNING = ("interpret", "tpu_interpret")
_turns = count(1)
# Since 0.11 plain interpretation takes what was written over the input, where 0.10 takes the input as it was.
_IN_PLACE = jax.version.__version_info__ >= (0, 11)


def before_it(x: Any, *, by: float) -> Any:
    """Add to each block the block before it, which the output has taken the memory of; ``by`` so much of it."""

    def kernel(before: Any, here: Any, out: Any) -> None:
        out[...] = here[...] + (by * before[...].astype(jnp.float32)).astype(out.dtype)

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    before = pl.BlockSpec((8, 128), lambda i: (jnp.maximum(i - 1, 0), 0))
    return pl.pallas_call(
        kernel, grid=(3,), out_shape=like(x), in_specs=[before, block], out_specs=block, input_output_aliases={0: 0}
    )(x, x)


def rules_of(run: Any) -> list[str]:
    return [each.rule for each in run.findings]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_an_output_over_its_own_input_is_found(dtype: str) -> None:
    """The block, its grid point and the kernel, for numbers that are rounded and that are not."""
    x = jnp.asarray(ramp(24)).astype(dtype)
    (found,) = check(lambda x: before_it(x, by=1.0), x, modes=RUNNING).findings
    assert (found.rule, found.severity) == ("PL213", "error")
    assert found.line == before_it.__code__.co_firstlineno + 3
    many, first = (2, 1) if _IN_PLACE else (1, 2)
    expected = f"{many} of 3 blocks differ from plain interpretation, the first is block ({first}, 0)"
    assert (expected in found.message, found.program) == (True, (first,))


def test_a_reference_still_has_its_say() -> None:
    """PL211 beside PL213: one does not hide the other."""
    run = check(lambda x: before_it(x, by=1.0), ramp(24), modes=RUNNING, reference=lambda x: 5 * np.asarray(x))
    assert sorted(rules_of(run)) == ["PL211", "PL213"]


def test_what_is_rounded_is_alike() -> None:
    """A difference within the steps of the coarsest dtype of the kernel, or of an output that is the same."""
    assert rules_of(check(lambda x: before_it(x, by=1e-6), ramp(24) + 1, modes=RUNNING)) == []
    assert rules_of(check(lambda x: before_it(x, by=0.0), ramp(24), modes=RUNNING)) == []


def test_a_function_that_returns_something_else_each_time_is_not_compared() -> None:
    """Its difference is not one of the interpretations."""

    def changing(x: Any) -> Any:
        return before_it(x, by=0.0) + next(_turns)

    assert rules_of(check(changing, ramp(24), modes=RUNNING)) == []


def test_an_explained_difference_is_not_said_twice() -> None:
    """An output that the kernel leaves out is PL205 alone, allowed or not."""

    def leaves_out(x: Any) -> Any:
        def kernel(x_ref: Any, out: Any) -> None:
            out[0:4, :] = x_ref[0:4, :]

        return pl.pallas_call(kernel, out_shape=like(x))(x)

    assert rules_of(check(leaves_out, ramp(8), modes=RUNNING)) == ["PL205"]
    with allow_findings("PL205", reason="sliced off"):
        assert rules_of(check(leaves_out, ramp(8), modes=RUNNING)) == []
