"""The schedule obeys dependences, engines and queues; checked against its input alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkitools.timing.schedule import Work, schedule

ENGINES = 3  # the last one with a queue
QUEUE = 2


@st.composite
def works(draw: st.DrawFn) -> Work:
    """Instructions on three engines, with edges from earlier to later ones."""
    count = draw(st.integers(1, 24))
    engines = draw(st.lists(st.integers(0, ENGINES - 1), min_size=count, max_size=count))
    occupied = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    extra = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    pairs = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=40))
    edges = np.array([(max(pair), min(pair)) for pair in pairs if pair[0] != pair[1]], np.int64).reshape(-1, 2)
    lags = draw(st.lists(st.integers(0, 5), min_size=len(edges), max_size=len(edges)))
    return Work(
        engines=np.array(engines),
        occupied=np.array(occupied, float),
        durations=np.array(occupied, float) + np.array(extra, float),
        targets=edges[:, 0],
        sources=edges[:, 1],
        lags=np.array(lags, float),
        in_order=draw(st.lists(st.booleans(), min_size=ENGINES, max_size=ENGINES)),
        queues=[0, 0, QUEUE],
    )


@given(works())
def test_no_instruction_starts_before_what_it_needs_has_ended(work: Work) -> None:
    """Every edge holds: its target starts its lag after the end of its source."""
    made = schedule(work)
    assert (made.starts[work.targets] >= made.ends[work.sources] + work.lags).all()
    np.testing.assert_array_equal(made.ends, made.starts + work.durations)


@given(works())
def test_no_engine_does_two_things_at_once(work: Work) -> None:
    """The times in which instructions occupy one engine do not overlap."""
    made = schedule(work)
    for engine in range(ENGINES):
        mine = np.flatnonzero(work.engines == engine)
        order = mine[np.lexsort((made.starts[mine] + work.occupied[mine], made.starts[mine]))]
        ends = made.starts[order] + work.occupied[order]
        assert (made.starts[order][1:] >= ends[:-1]).all()


@given(works())
def test_a_queue_holds_no_more_than_it_has_room_for(work: Work) -> None:
    """At every start at most as many instructions of the engine are under way as its queue holds."""
    made = schedule(work)
    mine = np.flatnonzero((work.engines == ENGINES - 1) & (work.durations > 0))
    for position in mine.tolist():
        now = made.starts[position]
        assert ((made.starts[mine] <= now) & (made.ends[mine] > now)).sum() <= QUEUE


@given(works())
def test_an_engine_in_order_starts_its_instructions_in_their_order(work: Work) -> None:
    """Where an engine is in order, later instructions start no earlier."""
    made = schedule(work)
    for engine in np.flatnonzero(work.in_order).tolist():
        assert (np.diff(made.starts[work.engines == engine]) >= 0).all()


@given(works())
def test_no_engine_rests_while_an_instruction_could_start(work: Work) -> None:
    """An instruction without edges, on an engine without a queue and out of order, has no idle time before it."""
    made = schedule(work)
    for position in range(work.engines.size):
        engine = int(work.engines[position])
        if position in work.targets or work.in_order[engine] or work.queues[engine]:
            continue
        before = (work.engines == engine) & (made.starts < made.starts[position])
        assert work.occupied[before].sum() >= made.starts[position]


@given(works())
def test_a_schedule_is_the_same_every_time(work: Work) -> None:
    """Two schedules of one work are equal in all of their arrays."""
    first, second = schedule(work), schedule(work)
    for name in ("starts", "ends", "causes", "waits_for_engine"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def chain(count: int) -> Work:
    """A load, two computations and a store, count / 4 times, one after the other on three engines."""
    positions = np.arange(count)
    later = positions[positions % 4 > 0]
    return Work(
        engines=np.array([2, 0, 1, 2])[positions % 4],
        occupied=np.full(count, 100.0),
        durations=np.full(count, 100.0),
        targets=later,
        sources=later - 1,
        lags=np.full(later.size, 10.0),
        in_order=[False, True, False],
        queues=[0, 0, 16],
    )


def test_transfers_and_computations_overlap() -> None:
    """Loads and stores share one engine, which bounds the whole; what comes between runs beside them."""
    made = schedule(chain(4000))
    assert made.ends.max() == pytest.approx(2000 * 100.0 + 230, abs=400)


def test_a_circle_is_refused() -> None:
    """Instructions that wait for each other have no schedule."""
    work = chain(4)
    with pytest.raises(ValueError, match="wait for each other"):
        schedule(Work(**{**vars(work), "targets": np.array([1, 0]), "sources": np.array([0, 1]), "lags": np.zeros(2)}))
