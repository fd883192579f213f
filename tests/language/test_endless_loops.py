"""Loops on the device that never end are refused (NK504), as a chip would hang."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.language as nl
from nkitools.chip import endless_loops
from tests.isa.issued import inside, placed, tile
from tests.nki_versions import WITH_REMOVED_NAMES

pytestmark = WITH_REMOVED_NAMES


def endless(turns: int | None) -> Any:
    """Run a while_loop whose body counts down once, after so many turns; None: never."""
    seen: list[int] = []

    def body(condition: Any) -> Any:
        seen.append(condition.value)
        return nisa.register_alloc(0) if len(seen) == turns else condition

    nl.while_loop(nisa.register_alloc(3), body)
    return seen


def test_a_condition_that_nothing_changes_is_refused() -> None:
    """NK504 after 1,000 turns, at the line of the loop; a loop that ends before is none."""
    message = "nl.while_loop never ends: its condition is 3, and no instruction has written it in 1,001 turns"
    with pytest.raises(nkitools.KernelError, match=message):
        inside(lambda: endless(None))
    assert inside(lambda: endless(1000)) == [3] * 1000


def test_a_condition_that_is_loaded_anew_may_stay_the_same() -> None:
    """Each turn loads it; a million turns are the limit of any loop, which a test lowers."""

    def body() -> Any:
        flags = placed(tile(np.array([[1] * 1500 + [0]], np.int32)))
        turns: list[int] = []

        def turn(condition: Any) -> Any:
            turns.append(condition.value)
            nisa.register_load(condition, flags[0:1, len(turns) : len(turns) + 1])
            return condition

        nl.while_loop(nisa.register_alloc(1), turn)
        return len(turns)

    assert inside(body) == 1500


def test_every_loop_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition that changes and never becomes 0."""
    monkeypatch.setattr(endless_loops, "MOST", 50)

    def body() -> None:
        nl.while_loop(nisa.register_alloc(1), lambda condition: condition + 2)

    with pytest.raises(nkitools.KernelError, match=r"nl\.while_loop has turned 50 times; its condition is 99 \(NK504"):
        inside(body)


def test_a_while_of_python_has_the_same_limits() -> None:
    """A register that the body never loads; one that it does."""

    def still() -> None:
        register = nisa.register_alloc(7)
        while register:
            pass

    with pytest.raises(nkitools.KernelError, match="`while register:` never ends: its condition is 7"):
        inside(still)

    def counted() -> Any:
        flags = placed(tile(np.array([[1] * 1200 + [0]], np.int32)))
        register, turns = nisa.register_alloc(1), 0
        while register:
            turns += 1
            nisa.register_load(register, flags[0:1, turns : turns + 1])
        return turns

    assert inside(counted) == 1200
