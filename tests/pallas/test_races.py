"""A race with a copy in flight is named at its line, in kernels in the shape of real ones; right ones are silent."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from tests import cases
from tests.pallas.racing import ROWS, TILE, TILES, Racing, Verdict, semaphores, verdict_of
from tests.pallas.racing_copies import COPIES
from tests.pallas.racing_loops import LOOPS
from tests.pallas.racing_semaphores import SEMAPHORES

ALL = [*LOOPS, *COPIES, *SEMAPHORES]
NAMES = {each.name: each for each in ALL}
CHOSEN = ALL if cases.FULL else ALL[::3]  # each takes half a second


@pytest.mark.soak
@pytest.mark.parametrize("name", [each.name for each in CHOSEN])
def test_a_race_is_named_at_its_line_and_the_right_kernel_is_silent(name: str) -> None:
    """PL203 at the access, or at the later of two copies; without --soak a third of the kernels."""
    kernel = NAMES[name]
    wrong = kernel.verdict(ok=False)
    assert kernel.is_named(wrong), (wrong, kernel.lines)
    assert {rule for rule, _ in wrong} == {"PL203"}
    assert kernel.verdict(ok=True) == []


def test_the_table_is_whole() -> None:
    """Thirty kernels in the shape of real ones, and twelve about semaphores; none twice."""
    assert (len(LOOPS) + len(COPIES), len(SEMAPHORES), len(NAMES)) == (30, 12, 42)


# --- checks in one process do not disturb each other ----------------------------------------------------------------


def _never_signalled(x: Any, o: Any, done: Any) -> None:
    pltpu.make_async_copy(x.at[0], o, done).wait()


def _in_another_shape(x: Any, o: Any, done: Any) -> None:
    o[...] = x.reshape(TILES * ROWS, 128)[0:ROWS]


def _left_in_flight(x: Any, o: Any, done: Any) -> None:
    o[...] = jnp.zeros(TILE, jnp.float32)
    pltpu.make_async_copy(x.at[0], o, done).start()


def _outside(x: Any, o: Any, done: Any) -> None:
    at = jnp.int32(TILES) + (x[0, 0, 0] > 1e9).astype(jnp.int32)
    o[...] = x[pl.ds(at, 1)][0]


def _called(kernel: Any) -> Any:
    return lambda x: pl.pallas_call(
        kernel,
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        scratch_shapes=[semaphores()],
        out_shape=jax.ShapeDtypeStruct(TILE, x.dtype),
    )(x)


def _fails(x: Any) -> Any:
    raise ValueError("of the author")


# Checks that end in another way than most: no interpretation, an endless wait, a copy in flight, an author's error.
UNUSUAL = {
    _never_signalled: "PL208",
    _in_another_shape: "NK607",
    _left_in_flight: "PL204",
    _outside: "PL201",
    _fails: "ValueError",
}


@cache
def _function(kernel: Any) -> Any:
    return kernel if kernel is _fails else _called(kernel)


def _verdict(case: tuple[Any, bool]) -> Verdict | str:
    kernel, ok = case
    if isinstance(kernel, Racing):
        return kernel.verdict(ok)
    try:
        return verdict_of(_function(kernel))
    except ValueError as error:
        return type(error).__name__


def _is_as_stated(case: tuple[Any, bool], verdict: Any) -> bool:
    kernel, ok = case
    if isinstance(kernel, Racing):
        return verdict == [] if ok else kernel.is_named(verdict)
    return UNUSUAL[kernel] in (verdict if isinstance(verdict, str) else {rule for rule, _ in verdict})


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_five_hundred_checks_in_one_process_give_each_what_it_gives_alone() -> None:
    """In random order, among checks that end in another way; the user's random numbers go on as they would have."""
    order = random.Random(7)
    whole = [*((each, ok) for each in ALL for ok in (False, True)), *((each, False) for each in UNUSUAL)]
    chosen = [*whole * (500 // len(whole)), *order.sample(whole, 500 % len(whole))]
    order.shuffle(chosen)
    drawn, python = np.random.get_state()[1].tolist(), random.getstate()
    alone: dict[Any, Any] = {}
    unlike = []
    for case in chosen[: cases.cases(500)]:
        got = _verdict(case)
        if not _is_as_stated(case, got) or alone.setdefault((id(case[0]), case[1]), got) != got:
            unlike.append((case, got))
    assert unlike == []
    assert np.random.get_state()[1].tolist() == drawn
    assert random.getstate() == python
