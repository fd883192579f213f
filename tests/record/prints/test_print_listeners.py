"""Listening to device prints: those of a block, and those that a terminal shows as they come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects import modern as nki
from nkitools.dialects.modern import language as nl
from nkitools.record import run_listeners
from nkitools.record.prints import print_display
from nkitools.record.prints.device_print import Print

X = np.arange(4, dtype=np.float32).reshape(2, 2)


@nki.jit
def printing(x: Any) -> Any:
    for m in range(2):
        nl.device_print("x", x[m : m + 1])
    return x


@nki.jit
def failing(x: Any) -> Any:
    nl.device_print("before", x)
    raise RuntimeError("the kernel's own")


class TestCapturePrints:
    """`nkitools.capture_prints()`."""

    def test_it_has_the_prints_of_every_run_within(self, capsys: pytest.CaptureFixture[str]) -> None:
        """By whatever way in, as they come; whole structures can be asserted."""
        nkitools.simulate(printing, X)
        with nkitools.capture_prints() as prints:
            assert not prints
            nkitools.simulate(printing, X)
            assert len(prints) == 2
            nki.simulate(printing)(X + 1)
        nkitools.simulate(printing, X)
        assert prints == [Print("x", (X + more)[m : m + 1], loops={"m": m}) for more in (0, 1) for m in range(2)]
        assert capsys.readouterr().out.count("x [") == 2  # what AWS's way in prints it prints

    def test_its_filters_are_those_of_a_run(self) -> None:
        """While the block runs and after it."""
        with nkitools.capture_prints() as prints:
            nkitools.simulate(printing, X)
            inside = prints["x"].where(m=1)
        assert inside == prints.where(m=1) == prints[1:] == prints("x")[1:] == prints.at(prints[0].line)[1:]
        assert prints.program(0) == prints == list(prints)
        assert prints.rank(3) == []
        assert prints.prefixes == ["x"]
        np.testing.assert_array_equal(np.concatenate(prints.values), X)
        assert repr(prints).startswith("<prints: 2\n  0: <Print x [program 0, m=0, test_print_listeners.py:")

    def test_a_run_that_fails_reaches_its_listeners_too(self) -> None:
        """The block ends with the error, and what was printed before is there; nobody listens afterwards."""
        before = run_listeners._listeners.get()
        with pytest.raises(RuntimeError, match="the kernel's own"), nkitools.capture_prints() as prints:
            nkitools.simulate(failing, X)
        assert prints == [Print("before", X)]
        assert len(run_listeners._listeners.get()) == len(before)

    def test_nested_blocks_each_get_them(self) -> None:
        """The outer one has all, the inner one its own."""
        with nkitools.capture_prints() as outer:
            nkitools.simulate(printing, X)
            with nkitools.capture_prints() as inner:
                nkitools.simulate(printing, X)
        assert (len(outer), len(inner)) == (4, 2)

    def test_it_lets_go_of_the_runs(self) -> None:
        """The records stay, and nothing that happens later reaches them."""
        with run_listeners.collect_runs() as runs, nkitools.capture_prints() as prints:
            nkitools.simulate(printing, X)
        runs[0].prints.clear()
        assert len(prints) == 2


class TestShowing:
    """A terminal takes the prints as they come."""

    def test_it_gets_each_print_and_what_else_shows_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Before the next line of the kernel runs; one that it takes over is not printed by the way in as well."""
        told: list[tuple[str, bool]] = []

        def show(one: Print, echoes: bool) -> bool:
            told.append((one.place().partition(", test")[0], echoes))
            return "m=0" in one.place()

        with print_display.showing_prints(show):
            printing(X)
            nkitools.simulate(printing, X)
        printing(X)
        assert told == [(f"program 0, m={m}", echoes) for echoes in (True, False) for m in range(2)]
        assert [line.partition(", test")[0] for line in capsys.readouterr().out.splitlines() if "x [" in line] == [
            "x [program 0, m=1",
            "x [program 0, m=0",
            "x [program 0, m=1",
        ]

    def test_prints_are_not_shown_again_afterwards(self) -> None:
        """Whether the block ends well or not."""
        with pytest.raises(RuntimeError), print_display.showing_prints(lambda one, echoes: True):
            failing(X)
        assert print_display.shown_by() is None
