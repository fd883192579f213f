"""Replayed programs that need nothing of each other are computed in threads, and nobody can tell from the results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from nkitools.launch import replays
from nkitools.launch.settings import resolve_replay_threads
from nkitools.replay import side_by_side as module
from nkitools.replay.side_by_side import programs_apart, side_by_side
from nkitools.replay.steps import Engines, Root, Step, View

F32 = np.dtype(np.float32)
X = np.random.default_rng(0).standard_normal((512, 64)).astype(np.float32)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let small lists pay and two threads work; return the threads that have taken part beside this one."""
    begun: list[int] = []
    monkeypatch.setattr(module, "LEAST_STEP", 0)
    monkeypatch.setattr(module, "LEAST_LIST", 0)
    monkeypatch.setattr(replays, "resolve_replay_threads", lambda: 2)
    monkeypatch.setattr(replays, "limit_thread", lambda: begun.append(threading.get_ident()))
    return begun


def halves(x: Any) -> Any:
    """Each core makes the roots of half of the rows, and adds the first rows; it prints of each tile."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    half, first = x.shape[0] // 2, nl.program_id(0) * (x.shape[0] // 2)
    for row in range(0, half, 128):
        tile = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[first + row : first + row + 128])
        weights = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=weights, src=x[0:128])
        nisa.activation(dst=tile, op=nl.sqrt, data=tile)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=weights, op=nl.add)
        nl.device_print("row", tile[0:1, 0:2])
        nisa.dma_copy(dst=out[first + row : first + row + 128], src=tile)
    return out


def of_rank(x: Any) -> Any:
    """Return twice the argument of a rank."""
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


def test_two_cores(threads: list[int]) -> None:
    """The second core's half in another thread: the same bits, prints in the same order, the same instructions."""
    for turn in range(6):
        x = np.abs(X) + turn
        run = nkitools.simulate(halves, x, grid=2, replay="on")
        expected = nkitools.simulate(halves, x, grid=2, replay="off")
        assert run.outputs.tobytes() == expected.outputs.tobytes()
        assert [(each.program, each.value.tolist()) for each in run.prints] == [
            (each.program, each.value.tolist()) for each in expected.prints
        ]
        assert [each.program for each in run.prints] == [(0,), (0,), (1,), (1,)]
        assert run.instructions[:] == expected.instructions[:]
        assert run.replayed.done == (turn > 0)
    assert len(threads) == 5
    assert threading.get_ident() not in threads


def test_ranks(threads: list[int]) -> None:
    """Three ranks in two threads."""
    arguments = [(X[at : at + 128],) for at in (0, 128, 256)]
    for _ in range(3):
        run = nkitools.simulate(of_rank, *arguments, ranks=3, replay="on")
    assert run.replayed.done
    assert len(threads) == 2
    assert all((made == 2 * given).all() for made, (given,) in zip(run.outputs, arguments, strict=True))


@pytest.mark.parametrize("row", [3, 300])
def test_evidence_in_any_thread_sends_the_run_to_the_kernel(row: int, threads: list[int]) -> None:
    """A root of a negative number is reported at its line, whichever core has it."""
    good, bad = np.abs(X), np.abs(X)
    bad[row, 5] = -1.0
    for _ in range(3):
        assert nkitools.simulate(halves, good, grid=2, replay="on").findings == []
    run = nkitools.simulate(halves, bad, grid=2, replay="on", rules="report")
    expected = nkitools.simulate(halves, bad, grid=2, replay="off", rules="report")
    for _ in range(3):
        run = nkitools.simulate(halves, bad, grid=2, replay="on", rules="report")
    assert not run.replayed.done
    assert [each.text() for each in run.findings] == [each.text() for each in expected.findings] != []
    assert len(threads) >= 2


def test_small_lists_stay_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread costs more than tiles of 32 KiB."""
    monkeypatch.setattr(replays, "limit_thread", lambda: pytest.fail("another thread was begun"))
    for _ in range(3):
        assert nkitools.simulate(of_rank, (X[:128],), (X[128:256],), ranks=2, replay="on").findings == []


def test_the_number_of_threads_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the processors of the process, and by the option; it is never less than one."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    assert resolve_replay_threads() == 3
    for asked, count in (("0", 1), ("1", 1), ("2", 2), ("64", 3)):
        with options.override(replay_threads=asked):
            assert resolve_replay_threads() == count


def step(program: Engines, root: Root, first: int, last: int, *, reads: Root | None = None) -> Step:
    """Return a step of a program that writes some of a root's elements, and reads the same ones of another root."""
    views = [View(each, first * 4, (last - first,), (4,), F32) for each in (root, reads) if each is not None]
    return Step("step", print, views, (0,), program)


def engines(number: int) -> Engines:
    """Return the engines of a program."""
    return Engines(None, (2,), (number,), None, ())  # type: ignore[arg-type]


def test_programs_are_apart_where_no_byte_is_shared(threads: list[int]) -> None:
    """Halves of a result are; a byte that both write, or one writes and the other reads, is not."""
    one, two = engines(0), engines(1)
    result, argument, own = Root(64, result=0), Root(64, argument=0), Root(64)
    left, right = step(one, result, 0, 8, reads=argument), step(two, result, 8, 16, reads=argument)
    assert programs_apart([left, right]) == [[left], [right]]
    assert programs_apart([left, step(one, result, 8, 16)]) != [[left], [right]]
    for other in (
        step(two, result, 7, 16),  # writes what the other one writes
        step(two, argument, 0, 1),  # writes what the other one reads
        step(two, Root(64, result=1), 0, 1, reads=result),  # reads what the other one writes
    ):
        assert programs_apart([left, other]) == [[left, other]]
        assert programs_apart([other, left]) == [[other, left]]
    both = [step(one, own, 0, 8), step(two, own, 8, 16)]
    assert programs_apart(both) == [both]


def test_short_steps_stay_together() -> None:
    """Threads would wait for each other."""
    steps = [step(engines(0), Root(64, result=0), 0, 8), step(engines(1), Root(64, result=1), 0, 8)]
    assert programs_apart(steps) == [steps]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_is_raised_when_all_have_ended(failing: int) -> None:
    """In whichever thread it was."""
    done: list[int] = []

    def program(number: int) -> Callable[[], None]:
        def work() -> None:
            if number == failing:
                raise ZeroDivisionError
            done.append(number)

        return work

    programs: Sequence[Callable[[], None]] = [program(number) for number in range(3)]
    with pytest.raises(ZeroDivisionError):
        side_by_side(programs, 3, lambda: None)
    assert sorted(done) == sorted({0, 1, 2} - {failing})
