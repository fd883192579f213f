"""Loop states say of each iteration the state around it, the loop's site and its counter."""

from __future__ import annotations

import numpy as np

from nkitools.record.loop_states import LoopStates
from nkitools.record.record import Record


def test_states_are_those_that_were_entered() -> None:
    """Also of loops that follow each other at one site, with a first number that would continue the loop before."""
    generator = np.random.default_rng(7)
    states, entered = LoopStates(), []
    for _ in range(400):
        parent, site = int(generator.integers(-1, max(len(entered), 1))), int(generator.integers(2))
        first, step, turns = int(generator.integers(3)), int(generator.choice([-2, 1, 2])), int(generator.integers(4))
        parent = entered[-1][0] if entered and generator.random() < 0.7 else parent
        for value in range(first, first + step * turns, step):
            assert states.enter(parent, site, value, step) == len(entered)
            entered.append((parent, site, value))
    assert [states.at(state) for state in range(states.count)] == entered
    assert states.columns().T.tolist() == [list(each) for each in entered]
    again = LoopStates.of_columns(states.columns())
    assert [again.at(state) for state in range(again.count)] == entered


def test_the_loops_of_a_record_are_its_states() -> None:
    """Those inside of each other and after each other; a second loop of a line may begin where the first went on."""
    generator, record = np.random.default_rng(3), Record()
    entered: list[tuple[int, int, int]] = []  # of each state: the state around it, its site, its counter

    def loop(parent: int, depth: int) -> None:
        for _ in range(int(generator.integers(1, 4))):
            first, step = int(generator.integers(3)), int(generator.choice([-2, 1]))
            for value in record.iterations(range(first, first + step * int(generator.integers(5)), step)):
                assert record.loop == len(entered)
                entered.append((parent, record.loop_states.at(record.loop)[1], value))
                if depth:
                    loop(record.loop, depth - 1)
            assert record.loop == parent

    loop(-1, 3)
    assert len(entered) > 50
    assert [record.loop_states.at(state) for state in range(record.loop_states.count)] == entered


def test_a_long_loop_takes_one_row() -> None:
    """Its iterations continue the row, while loops inside of it make rows of their own."""
    states = LoopStates()
    for value in range(1000):
        states.enter(-1, 0, value, 1)
    assert len(states.firsts) == 1
    assert states.at(999) == (-1, 0, 999)
    outer = states.enter(-1, 1, 0, 1)
    states.enter(outer, 2, 0, 1)
    states.enter(-1, 1, 1, 1)
    assert len(states.firsts) == 4


def test_a_run_without_loops_has_none() -> None:
    """Its columns are empty, there and back."""
    assert LoopStates().columns().shape == (3, 0)
    assert LoopStates.of_columns(LoopStates().columns()).count == 0
