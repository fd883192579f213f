"""The scheduler: one program at a time, in an order that can be repeated, and nothing left behind."""

from __future__ import annotations

import _thread
import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

import nkitools
from nkitools.launch.program_scheduler import Baton, Stopped

Play = Callable[[Baton, int], Any]


@pytest.fixture(autouse=True)
def _no_thread_outlives_its_run() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) == before


def played(count: int, play: Play, seed: int | None = None) -> list[Any]:
    """The results of ``count`` players."""
    baton = Baton([f"program {number}" for number in range(count)], seed=seed)
    return baton.run(lambda number: play(baton, number))


def meet(baton: Baton, key: Any, offered: Any = None, members: tuple[int, ...] = (0, 1)) -> dict[int, Any]:
    return baton.meet(key, members, offered, lambda: f"waits for {key}")


class TestOrder:
    """Who runs when."""

    def test_players_that_never_wait_run_one_after_the_other_where_they_were_launched(self) -> None:
        """In the caller's thread, so that a debugger sees plain Python."""
        log: list[tuple[int, int]] = []
        results = played(5, lambda baton, number: log.append((number, threading.get_ident())) or 10 * number)
        assert results == [0, 10, 20, 30, 40]
        assert log == [(number, threading.get_ident()) for number in range(5)]

    def test_one_that_waits_lets_the_others_run(self) -> None:
        """And goes on in the place where it stood, in its own thread."""
        log: list[str] = []

        def play(baton: Baton, number: int) -> int:
            thread = threading.get_ident()
            for turn in range(2):
                log.append(f"{number}{turn}")
                meet(baton, "turn")
            assert threading.get_ident() == thread
            return number

        assert played(2, play) == [0, 1]
        # The second to come to a meeting goes on at once.
        assert log == ["00", "10", "11", "01"]

    def test_the_baton_says_who_runs(self) -> None:
        """Also to a callback, before that one goes on."""
        turns: list[int] = []
        baton = Baton(["a", "b"], turns.append)
        seen: list[tuple[int, int]] = []

        def play(number: int) -> None:
            for _ in range(2):
                meet(baton, "here")
                seen.append((number, baton.running))

        baton.run(play)
        assert all(number == running for number, running in seen)
        assert turns == [0, 1, 0, 1]

    def test_a_seed_interleaves_at_pauses_and_can_be_repeated(self) -> None:
        """One seed is one order; many seeds are many orders; at any time one player runs."""
        inside: list[int] = []

        def order(seed: int | None) -> str:
            log: list[str] = []

            def play(baton: Baton, number: int) -> None:
                for _ in range(4):
                    inside.append(number)
                    assert inside == [number]
                    inside.clear()
                    log.append(str(number))
                    baton.pause()

            played(3, play, seed)
            return "".join(log)

        assert order(None) == "000011112222"
        orders = [order(seed) for seed in range(60)]
        assert orders == [order(seed) for seed in range(60)]
        assert len(set(orders)) > 50
        assert all(sorted(each) == sorted("000011112222") for each in orders)

    def test_many_players_need_no_many_threads(self) -> None:
        """A thread that becomes free takes the next player."""
        done: list[int] = []
        threads: set[int] = set()

        def play(baton: Baton, number: int) -> None:
            threads.add(threading.get_ident())
            if number == 0:
                assert baton.let_others_run(lambda: len(done) == 40)
            done.append(number)

        played(41, play)
        assert done == [*range(1, 41), 0]
        assert len(threads) == 2


class TestMeetings:
    """All members come, and get what each has offered."""

    @pytest.mark.parametrize("seed", [None, *range(8)])
    def test_everyone_gets_every_offer_and_one_settles(self, seed: int | None) -> None:
        """In groups of players, several times, several pipes."""
        settled: list[Any] = []

        def play(baton: Baton, number: int) -> list[dict[int, Any]]:
            team = (0, 1) if number < 2 else (2, 3)
            found = []
            for turn in range(3):
                found.append(
                    baton.meet(
                        ("pipe", turn % 2), team, (number, turn), lambda: "waits", lambda all_: settled.append(all_)
                    )
                )
                found.append(meet(baton, "all", -number, (0, 1, 2, 3)))
            return found

        results = played(4, play, seed)
        for number, found in enumerate(results):
            team = (0, 1) if number < 2 else (2, 3)
            for turn in range(3):
                assert found[2 * turn] == {each: (each, turn) for each in team}
                assert found[2 * turn + 1] == {each: -each for each in range(4)}
        assert len(settled) == 6

    def test_what_settling_raises_ends_the_run(self) -> None:
        """It is an exception of the last to come."""

        def settle(offered: dict[int, Any]) -> None:
            raise LookupError(sorted(offered))

        with pytest.raises(LookupError, match=r"\[0, 1\]"):
            played(2, lambda baton, number: baton.meet("x", (0, 1), None, lambda: "waits", settle))

    def test_what_need_not_come_is_not_waited_for(self) -> None:
        """False where the others have ended, or stand still themselves."""
        came: list[bool] = []

        def play(baton: Baton, number: int) -> None:
            if number == 0:
                came.append(baton.let_others_run(lambda: False))
            meet(baton, "end")

        played(2, play)
        assert came == [False]
        assert played(1, lambda baton, number: baton.let_others_run(lambda: False)) == [False]


class TestDeadlock:
    """NK504, never a hang: who waits for what."""

    @pytest.mark.parametrize("seed", [None, *range(6)])
    def test_it_says_of_everyone_what_it_waits_for(self, seed: int | None) -> None:
        """The finding comes to the waiting player with the lowest number."""
        hit: list[int] = []

        def play(baton: Baton, number: int) -> None:
            if number == 0:
                return
            try:
                meet(baton, f"door {number}", members=(1, 2))
            except nkitools.KernelError:
                hit.append(number)
                raise

        with pytest.raises(nkitools.KernelError) as raised:
            played(3, play, seed)
        assert raised.value.finding.rule == "NK504"
        assert raised.value.finding.message == (
            "no program can go on: program 0 has ended; program 1 waits for door 1; program 2 waits for door 2"
        )
        assert hit == [1]


class TestExceptions:
    """An exception of one player ends all others, and is raised as it is."""

    @pytest.mark.parametrize("faulty", [0, 1, 2])
    @pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
    def test_it_is_the_very_exception_with_its_own_traceback(self, faulty: int, kind: type[BaseException]) -> None:
        """From the caller's thread and from others; what the others have open is closed, one after the other."""
        error = kind("no luck")
        closed: list[int] = []

        def unlucky() -> None:
            raise error

        def play(baton: Baton, number: int) -> None:
            try:
                if number == faulty:
                    baton.let_others_run(lambda: False)
                    unlucky()
                meet(baton, "never", members=(0, 1, 2))
            finally:
                closed.append(number)

        with pytest.raises(kind) as raised:
            played(3, play)
        assert raised.value is error
        assert error.__context__ is None
        assert traceback.extract_tb(error.__traceback__)[-1].name == "unlucky"
        assert closed[0] == faulty
        assert sorted(closed) == [0, 1, 2]

    def test_a_player_that_catches_everything_is_stopped_again(self) -> None:
        """Whatever it makes of its end, the first exception counts."""

        def play(baton: Baton, number: int) -> None:
            if number == 1:
                raise ValueError("first")
            with contextlib.suppress(BaseException):
                meet(baton, "never")
            with contextlib.suppress(BaseException):
                meet(baton, "again")
            raise LookupError("second")

        with pytest.raises(ValueError, match="first"):
            played(2, play)

    def test_the_stop_is_no_ordinary_exception(self) -> None:
        """Authors' ``except Exception`` does not meet it."""
        assert not issubclass(Stopped, Exception)


class TestInterrupt:
    """Ctrl-C reaches the caller's thread, whoever runs."""

    @pytest.mark.usefixtures("ctrl_c")
    @pytest.mark.parametrize("running", [0, 1])
    def test_it_ends_all_threads(self, running: int) -> None:
        """Also one that computes in plain Python and never looks at the baton.

        Of that one CPython 3.13.0 leaves out what stands in ``finally``: an exception from outside that meets the jump
        at the end of a loop leaves the function at once.
        """
        closed: list[int] = []

        def play(baton: Baton, number: int) -> None:
            try:
                if number != running:
                    meet(baton, "never")
                baton.let_others_run(lambda: False)
                _thread.interrupt_main()
                deadline = time.monotonic() + 20
                while time.monotonic() < deadline:
                    pass
            finally:
                closed.append(number)

        with pytest.raises(KeyboardInterrupt):
            played(2, play)
        assert [each.name for each in threading.enumerate() if each.name.startswith("nkitools ")] == []
        assert {1 - running} <= set(closed)
        if sys.version_info < (3, 13):
            assert sorted(closed) == [0, 1]


_setting: ContextVar[str] = ContextVar("setting", default="nothing")


def test_each_thread_starts_from_the_callers_context() -> None:
    """What the caller has set holds in all of them; what another program sets does not."""
    seen: list[str] = []

    def play(baton: Baton, number: int) -> None:
        seen.append(_setting.get())
        _setting.set(f"by {number}")
        meet(baton, "all", members=(0, 1, 2))
        seen.append(_setting.get())

    token = _setting.set("by the caller")
    try:
        played(3, play)
    finally:
        _setting.reset(token)
    assert seen[:3] == ["by the caller"] * 3
    assert sorted(seen[3:]) == ["by 0", "by 1", "by 2"]
