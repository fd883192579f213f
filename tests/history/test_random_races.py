"""Random kernels of two cores: exactly the races of a model in sets of elements are found (NK502)."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from tests.cases import cases

SHAPE = (6, 10)


@st.composite
def cut(draw: Any, size: int) -> slice:
    start = draw(st.integers(0, size - 1))
    stop = draw(st.integers(start + 1, size))
    return slice(start, stop, draw(st.integers(1, 3)))


VIEW = st.tuples(st.just("view"), st.tuples(cut(SHAPE[0]), cut(SHAPE[1])))
ROWS = st.tuples(st.just("rows"), st.lists(st.integers(0, SHAPE[0] - 1), min_size=1, max_size=4, unique=True))
ACCESS = st.tuples(st.booleans(), st.integers(0, 1), st.one_of(VIEW, VIEW, ROWS))  # written, which tensor, what of it
SYNC = st.sampled_from(["none", "exchange", "barrier 0", "barrier 1"])
ROUND = st.tuples(st.lists(ACCESS, max_size=2), st.lists(ACCESS, max_size=2), SYNC)


def elements(what: Any) -> set[int]:
    """The flat elements that an access touches."""
    numbers = np.arange(SHAPE[0] * SHAPE[1]).reshape(SHAPE)
    return set(numbers[what[1]].ravel().tolist())


def racing(rounds: Any) -> set[str]:
    """By definition: two accesses of different cores to one element, one of them a write, in no order."""
    accesses = [
        (core, number, *access) for number, round_ in enumerate(rounds) for core in (0, 1) for access in round_[core]
    ]
    races = set()
    for core, number, written, tensor, what in accesses:
        for other, later, other_written, other_tensor, other_what in accesses:
            if core == other or tensor != other_tensor or number > later or not (written or other_written):
                continue
            syncs = [round_[2] for round_ in rounds[number:later]]
            ordered = any(sync in ("exchange", f"barrier {tensor}") for sync in syncs)
            if not ordered and elements(what) & elements(other_what):
                races.add("ab"[tensor])
    return races


def played(a: Any, b: Any, rounds: Any, *index: Any) -> Any:
    """A kernel that does what the rounds say."""
    core, indices = nl.program_id(0), iter(index)
    for round_ in rounds:
        for mine in (0, 1):
            for written, tensor, (kind, where) in round_[mine]:
                rows = next(indices) if kind == "rows" else None
                if mine != core:
                    continue
                whole = (a, b)[tensor]
                view = whole[where] if rows is None else whole.vector_select(0, nl.load(rows))
                tile = nl.full(view.shape, 1.0 + core, nl.float32)
                if written:
                    nisa.dma_copy(dst=view, src=tile)
                else:
                    nisa.dma_copy(dst=tile, src=view)
        if round_[2] == "exchange":
            theirs = nl.ndarray((1, 1), nl.float32, buffer=nl.sbuf)
            nisa.sendrecv(nl.ones((1, 1), nl.float32), theirs, 1 - core, 1 - core, 0)
        elif round_[2] != "none":
            nisa.core_barrier((a, b)[int(round_[2][-1])], (0, 1))


@settings(max_examples=cases(5000))
@given(st.lists(ROUND, min_size=1, max_size=4), st.one_of(st.none(), st.integers(0, 1000)))
def test_exactly_what_races_is_found(rounds: Any, seed: int | None) -> None:
    """In any order of the programs: strided views, gathered and scattered rows, barriers and exchanges."""
    # The last row, which may be one for padding, is left alone.
    a, b = (np.zeros((SHAPE[0] + 1, SHAPE[1]), np.float32) for _ in range(2))
    index = [
        np.array(what[1], np.int32)[:, None]
        for round_ in rounds
        for core in (0, 1)
        for _, _, what in round_[core]
        if what[0] == "rows"
    ]
    with options.override(schedule_seed=None if seed is None else str(seed)):
        run = nkitools.simulate(played, a, b, rounds, *index, grid=2, rules="report")
    races = [each for each in run.findings if each.rule != "NK409"]  # it writes into its arguments
    races = [each for each in races if each.rule != "NK506"]  # one program's stores that its next one replaces
    assert {each.rule for each in races} <= {"NK502"}
    assert {each.message.split("tensor `")[1][0] for each in races} == racing(rounds)
