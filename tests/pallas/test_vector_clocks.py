"""Vector clocks with an entry for each copy in flight: races beside other copies, at any seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402

import nkitools.pallas  # noqa: E402
from nkitools.pallas import check, tpu_interpret  # noqa: E402
from nkitools.pallas.vector_clocks import VectorClock  # noqa: E402
from tests.pallas.test_reported_races import line_of  # noqa: E402

X = np.ones((8, 128), np.float32)


def beside(refs: tuple[Any, ...], *, others: int, at_once: bool, waits: bool) -> None:
    """Copy into the target, and wait for ``others`` first; ``waits``: and for this copy, before the target is read."""
    x, out, buffers, target, arrived = refs
    mine = pltpu.make_async_copy(x, target, arrived.at[others])
    target[...] = jnp.zeros_like(target)
    mine.start()  # the start

    def other(i: Any) -> Any:
        return pltpu.make_async_copy(x.at[pl.ds(0, 1)], buffers.at[i], arrived.at[i])

    def start(i: Any, _: None) -> None:
        other(i).start()

    def wait(i: Any, _: None) -> None:
        other(i).wait()

    def both(i: Any, _: None) -> None:
        other(i).start()
        other(i).wait()

    for step in (start, wait) if at_once else (both,):
        jax.lax.fori_loop(0, others, step, None)
    if waits:
        mine.wait()
    out[...] = target[...]  # too early
    if not waits:
        mine.wait()


def call(others: int, *, at_once: bool, waits: bool, interpret: Any = False) -> Any:
    def body(*refs: Any) -> None:
        beside(refs, others=others, at_once=at_once, waits=waits)

    return lambda x, interpret=interpret: pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
        scratch_shapes=[
            pltpu.VMEM((others, 1, 128), jnp.float32),
            pltpu.VMEM((8, 128), jnp.float32),
            pltpu.SemaphoreType.DMA((others + 1,)),
        ],
        interpret=interpret,
    )(x)


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("others", [1, 50, 500])
def test_a_race_is_found_beside_copies_that_were_waited_for(others: int, at_once: bool) -> None:
    """At the line of the read, with the line of the start, at any seed; a copy that is waited for is none."""
    for seed in (0, 7):
        np.random.seed(seed)
        (found,) = check(call(others, at_once=at_once, waits=False), X, modes="tpu_interpret", seed=seed).findings
        assert (found.rule, found.line) == ("PL203", line_of(beside, "too early"))
        assert f"by a DMA started at line {line_of(beside, 'the start')} may" in found.message
    assert check(call(others, at_once=at_once, waits=True), X, modes="tpu_interpret").findings == []


def test_the_random_numbers_of_the_user_go_on() -> None:
    """A check draws none of NumPy's global random numbers, and neither does a run with the author's own mode."""
    np.random.seed(3)
    before = np.random.get_state()[1].tolist()
    position = np.random.get_state()[2]
    check(call(5, at_once=True, waits=True), X, modes="tpu_interpret")
    mode = pltpu.InterpretParams(detect_races=True)
    run = nkitools.pallas.run(call(5, at_once=True, waits=False, interpret=mode), X)
    assert [each.rule for each in run.findings] == ["PL203"]
    assert np.random.get_state()[1].tolist() == before
    assert np.random.get_state()[2] == position


@pytest.mark.parametrize(("at_once", "most"), [(False, 2), (True, 41)])
def test_entries_grow_with_the_copies_in_flight(at_once: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that has ended, and was waited for, leaves its entry to the next one."""
    memories: list[Any] = []
    ours = tpu_interpret._WatchedMemory.__init__

    def kept(self: Any, *args: Any, **kwargs: Any) -> None:
        ours(self, *args, **kwargs)
        memories.append(self)

    monkeypatch.setattr(tpu_interpret._WatchedMemory, "__init__", kept)
    check(call(40, at_once=at_once, waits=True), X, modes="tpu_interpret")
    assert [len(each._copies) for each in memories] == [most]


def test_clocks_of_other_lengths_are_ordered() -> None:
    """What a clock leaves out is 0."""
    one = VectorClock(2)
    one.inc(0)
    later = one.copy()
    later.inc(5)
    beside_it = one.copy()
    beside_it.inc(1)
    assert later.counts.tolist() == [1, 0, 0, 0, 0, 1]
    assert (one.ordered(later), later.ordered(one), one.ordered(one.copy())) == (True, True, False)
    assert (later.ordered(beside_it), beside_it.ordered(later)) == (False, False)
    beside_it.update(later)
    assert beside_it.counts.tolist() == [1, 1, 0, 0, 0, 1]
    assert later.ordered(beside_it)
    assert (one.count(5), later.count(5)) == (0, 1)


def test_jax_has_its_own_clocks_again() -> None:
    """After a watched run, in success and in failure, nothing of JAX is replaced."""
    from nkitools.pallas import jax_internals

    def names() -> list[Any]:
        clocks = vars(jax_internals.jax_module(jax_internals.VECTOR_CLOCK))
        return [jax_internals.of(jax_internals.SHARED_MEMORY, "SharedMemory"), dict(clocks)]

    before = names()
    with tpu_interpret.watching():
        assert names() != before
    with pytest.raises(KeyError), tpu_interpret.watching():
        raise KeyError
    assert names() == before
