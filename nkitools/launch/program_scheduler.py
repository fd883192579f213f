"""The scheduler of a launch: its programs take turns, exactly one of them runs at any time.

Programs run one after the other, in the thread that launched them, until one has to wait. It stops there, in its
thread, and passes the baton to a program that has not begun yet (which gets a new thread), or to one whose wait is
over. So every run is reproducible, a debugger and Ctrl-C work as in plain Python, and a launch whose programs never
communicate costs nothing.

**For new instructions that wait** (barriers, exchanges, collectives): a running program is a *player* with a number.
One `Baton` serves all programs that may wait for each other: the two cores of an LNC launch, the programs of a legacy
grid, or N communicating ranks times their cores (number them rank by rank). A core has its baton as ``core.baton`` and
the players of its own launch as ``core.team``. There are three functions to call, all of them from the program that
runs:

- ``baton.meet(key, members, offered, waiting, settle)``: a rendezvous. Returns the offers of all members once all have
  come with an equal ``key``; the last to come calls ``settle`` first, once, while all others wait. Nearly every
  instruction that waits uses this: the key has what must agree (kind, pipe, group), the offers are copies of sent data.
- ``baton.wait_until(condition, waiting)``: a plain wait; ``condition`` is evaluated each time that the baton passes.
- ``baton.let_others_run(condition)``: the same for events that may never come: False if no other program can go on.

``waiting`` is a sentence without a subject, "waits in nisa.core_barrier of tensor `x` (…) at kernel.py:12". When no
program can go on, all these sentences together are the finding NK504, raised in the waiting program with the lowest
number. A settled meeting that orders memory accesses must also be entered into the record of each launch that takes
part (``record.met``), from which races (NK502) are found.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Hashable, Sequence
from enum import Enum, auto
from typing import Any

from nkitools.facts.light_classes import dataclass, field
from nkitools.rules.finding import refuse

_POLL_SECONDS = 0.05  # between looks for Ctrl-C, which a thread that waits for a lock may sleep through


class Stopped(SystemExit):
    """Ends the other programs of a finished run; it ends their threads silently."""


class _State(Enum):
    NEW = auto()
    READY = auto()  # interrupted between two instructions
    WAITING = auto()
    RUNNING = auto()
    ENDED = auto()


@dataclass(eq=False)
class _Player:
    """One program: its state, and the condition that it waits for."""

    number: int
    name: str
    state: _State = _State.NEW
    condition: Callable[[], bool] | None = None
    waiting: str = ""
    may_give_up: bool = False
    deadlock: str = ""
    thread: threading.Thread | None = None  # None: that of the caller
    wake: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.wake.acquire()


@dataclass(eq=False)
class _Meeting:
    """A rendezvous: the offers of the members that have come."""

    offered: dict[int, Any] = field(default_factory=dict)
    settled: bool = False


class Baton:
    """Runs players in turn. ``names``: their names in messages; ``turn``: is called with the number of the next player.

    ``seed`` None: a player runs until it waits, and the lowest number that can go on is next. With a seed the order is
    drawn from it, and players are also interrupted at calls of ``pause``.
    """

    def __init__(
        self, names: Sequence[str], turn: Callable[[int], None] = lambda number: None, seed: int | None = None
    ) -> None:
        self._players = [_Player(number, name) for number, name in enumerate(names)]
        self._left = list(self._players)  # those that have not ended
        self._turn = turn
        self._random = None
        if seed is not None:
            from random import Random

            self._random = Random(seed)
        self._running: _Player = self._players[0]
        self._meetings: dict[Hashable, _Meeting] = {}
        self._guard = threading.Lock()  # held while the baton passes
        self._over = threading.Lock()  # released when the caller's thread is to go on and none of its programs waits
        self._over.acquire()
        self._caller_waits: threading.Lock = self._over
        self._error: BaseException | None = None
        self._stopping = False
        self._threads: list[threading.Thread] = []
        self._results: dict[int, Any] = {}
        self._play: Callable[[int], Any] | None = None

    @property
    def running(self) -> int:
        """The number of the player that runs."""
        return self._running.number

    def meet(
        self,
        key: Hashable,
        members: Sequence[int],
        offered: Any,
        waiting: Callable[[], str],
        settle: Callable[[dict[int, Any]], None] = lambda offered: None,
    ) -> dict[int, Any]:
        """Wait until all ``members`` have come with this key, and return their offers.

        The last to come also calls ``settle`` with them; its exceptions end the run. The n-th call of one player meets
        the n-th calls of the others. Errors: NK504.
        """
        place = (key, tuple(members))
        meeting = self._meetings.setdefault(place, _Meeting())
        meeting.offered[self.running] = offered
        if len(meeting.offered) == len(members):
            del self._meetings[place]
            settle(meeting.offered)
            meeting.settled = True
        else:
            self.wait_until(lambda: meeting.settled, waiting)
        return meeting.offered

    def wait_until(self, condition: Callable[[], bool], waiting: Callable[[], str]) -> None:
        """Let others run until ``condition()`` holds. Errors: NK504 if it never can."""
        if not condition():
            self._leave(_State.WAITING, condition, waiting())

    def let_others_run(self, condition: Callable[[], bool]) -> bool:
        """Let others run until ``condition()`` holds, or none of them can go on; return whether it holds."""
        if len(self._players) > 1 and not condition():
            self._leave(_State.WAITING, condition, "", may_give_up=True)
        return condition()

    @property
    def interrupts(self) -> bool:
        """Return whether programs may be interrupted when another one can go on."""
        return self._random is not None and len(self._players) > 1

    def pause(self) -> None:
        """Let a seeded run go on with another program between two instructions."""
        if self._random is not None and len(self._left) > 1 and self._random.random() < 0.5:
            self._leave(_State.READY)

    def _leave(
        self,
        state: _State,
        condition: Callable[[], bool] | None = None,
        waiting: str = "",
        *,
        may_give_up: bool = False,
    ) -> None:
        """Stand still until it is this player's turn again."""
        me = self._running
        with self._guard:
            self._stop_if_over()
            me.state, me.condition, me.waiting, me.may_give_up = state, condition, waiting, may_give_up
            chosen = self._choose()
            assert chosen is not None
            if chosen is not me:
                if me.thread is None:
                    self._caller_waits = me.wake
                self._hand_to(chosen)
        if chosen is not me:
            _acquire(me.wake)
        with self._guard:
            self._stop_if_over()
            if me.thread is None:
                self._caller_waits = self._over
            me.state, me.condition, me.waiting = _State.RUNNING, None, ""
        if me.deadlock:
            refuse("NK504", me.deadlock)

    def _stop_if_over(self) -> None:
        if self._stopping:
            raise Stopped

    def _choose(self) -> _Player | None:
        """Return the player whose turn it is; None if all have ended."""
        able = (each for each in self._left if _can_go_on(each))
        chosen = next(able, None)
        if chosen is not None:
            return chosen if self._random is None else self._random.choice([chosen, *able])
        if not self._left:
            return None
        patient = next((each for each in self._left if each.may_give_up), None)
        if patient is not None:
            return patient
        first = self._left[0]
        first.deadlock = self._who_waits_for_what()
        return first

    def _who_waits_for_what(self) -> str:
        sentences = [f"{each.name} {each.waiting or 'has ended'}" for each in self._players]
        return f"no program can go on: {'; '.join(sentences)}"

    def _hand_to(self, player: _Player) -> None:
        """Give the baton to a player that stands still, or that begins in a thread of its own."""
        self._running = player
        self._turn(player.number)
        if player.state is not _State.NEW:
            player.wake.release()
            return
        thread = threading.Thread(target=self._work, args=(player,), name=f"nkitools {player.name}", daemon=True)
        player.thread = thread
        self._threads.append(thread)
        thread.start()

    def run(self, play: Callable[[int], Any]) -> list[Any]:
        """``play(number)`` for every player; returns the results by number.

        An exception of one player, or Ctrl-C, ends them all and is raised again here, with its own traceback. No
        thread is left when this returns.
        """
        self._play = play
        self._context = contextvars.copy_context()
        try:
            first = self._choose()
            assert first is not None
            self._running = first
            self._turn(first.number)
            self._host(first)
            if self._left and self._error is None:
                _acquire(self._over)
        except BaseException as error:
            if self._error is None or isinstance(error, KeyboardInterrupt):
                self._error = error
        self._stop_others()
        error_of_one, self._error = self._error, None
        # Else the launch, which holds this, would stay with all that it has used until Python's garbage collector runs.
        results, self._results, self._play, self._turn = self._results, {}, None, _no_turn
        try:
            if error_of_one is not None:
                raise error_of_one
        finally:
            del error_of_one  # it knows this frame
        return [results[each.number] for each in self._players]

    def _host(self, player: _Player) -> None:
        """Play in this thread, one player after the other, until it is the turn of one in another thread."""
        mine, play = player.thread, self._play
        assert play is not None
        chosen: _Player | None = player
        while chosen is not None:
            with self._guard:
                self._stop_if_over()
                chosen.state = _State.RUNNING
            if mine is None:
                self._results[chosen.number] = play(chosen.number)
            else:  # as if the caller had begun it: without what other programs have set in their contexts
                self._results[chosen.number] = self._context.copy().run(play, chosen.number)
            chosen = self._end(chosen)

    def _end(self, player: _Player) -> _Player | None:
        """Mark the player as ended, and return the next one for this thread; None if there is none."""
        with self._guard:
            self._stop_if_over()
            player.state = _State.ENDED
            self._left.remove(player)
            chosen = self._choose()
            if chosen is None:
                if player.thread is not None:
                    self._over.release()
                return None
            if chosen.state is not _State.NEW:
                self._hand_to(chosen)
                return None
            self._running = chosen
            self._turn(chosen.number)
            chosen.thread = player.thread
            return chosen

    def _work(self, player: _Player) -> None:
        """Run a player in its thread; an exception of the player wakes the caller."""
        try:
            self._host(player)
        except Stopped:
            pass
        except BaseException as error:
            with self._guard:
                if not self._stopping:
                    self._running.state = _State.ENDED
                    self._error = error
                    self._stopping = True
                    self._caller_waits.release()

    def _stop_others(self) -> None:
        """End the remaining threads, one after the other: the running one, then the waiting ones."""
        with self._guard:
            self._stopping = True
        running = self._running
        if running.thread is not None and running.state is _State.RUNNING:
            _interrupt(running.thread)
            _join(running.thread)
        for player in self._left:
            if player.thread is not None:
                self._running = player
                with contextlib.suppress(RuntimeError):  # it has been woken already
                    player.wake.release()
                _join(player.thread)
        for thread in self._threads:
            _join(thread)
        self._threads.clear()


def _no_turn(number: int) -> None:
    """Do nothing: no player has a turn after the last has ended."""


def _can_go_on(player: _Player) -> bool:
    if player.state is _State.WAITING:
        return player.condition is not None and player.condition()
    return player.state in (_State.NEW, _State.READY)


def _acquire(lock: threading.Lock) -> None:
    """Take a lock; Ctrl-C interrupts that in the main thread."""
    while not lock.acquire(timeout=_POLL_SECONDS):
        pass


def _join(thread: threading.Thread) -> None:
    while thread.is_alive():
        thread.join(_POLL_SECONDS)


def _interrupt(thread: threading.Thread) -> None:
    """Raise `Stopped` in a thread that runs."""
    import ctypes

    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Stopped))
