"""NK504: cores that wait for each other for ever, and who waits for what."""

from __future__ import annotations

import re
from typing import Any

import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from tests.isa.talking import X, exchange, finding_of, no_thread_outlives_its_run, sbuf  # noqa: F401 - a fixture


def _ended(core: int, x: Any, y: Any) -> None:
    if core == 0:
        nisa.core_barrier(x, (0, 1))


def _other_data(core: int, x: Any, y: Any) -> None:
    nisa.core_barrier(x if core == 0 else y, (0, 1))


def _other_pipe(core: int, x: Any, y: Any) -> None:
    nisa.sendrecv(nl.ones((4, 4), nl.float32), sbuf((4, 4)), 1 - core, 1 - core, pipe_id=core)


def _barrier_and_exchange(core: int, x: Any, y: Any) -> None:
    if core == 0:
        nisa.core_barrier(y, (0, 1))
    else:
        exchange(nl.ones((4, 4), nl.float32), sbuf((4, 4)), pipe=7)


def _one_turn_less(core: int, x: Any, y: Any) -> None:
    for _ in range(3 - core):
        nisa.core_barrier(y, (0, 1))


class TestDeadlocks:
    """NK504: never a hang, in no order of the programs."""

    @pytest.mark.parametrize(
        ("body", "told"),
        [
            (_ended, ["program 0 waits in nisa.core_barrier of tensor `x` (shared HBM", "program 1 has ended"]),
            (
                _other_data,
                ["program 0 waits in nisa.core_barrier of tensor `x`", "program 1 waits in nisa.core_barrier of"],
            ),
            (
                _other_pipe,
                ["program 0 waits in nisa.sendrecv with pipe_id=0", "program 1 waits in nisa.sendrecv with pipe_id=1"],
            ),
            (
                _barrier_and_exchange,
                ["in nisa.core_barrier of tensor `y`", "program 1 waits in nisa.sendrecv with pipe_id=7"],
            ),
            (_one_turn_less, ["program 0 waits in nisa.core_barrier of tensor `y`", "program 1 has ended"]),
        ],
    )
    @pytest.mark.parametrize("seed", [None, "1", "2", "3", "4"])
    def test_it_says_who_waits_for_what(self, body: Any, told: list[str], seed: str | None) -> None:
        """With the line of each, in the line of program 0."""

        def kernel(x: Any, y: Any) -> Any:
            body(nl.program_id(0), x, y)
            return x

        with options.override(schedule_seed=seed):
            found = finding_of(kernel, X, X.copy())
        assert (found.rule, found.program, found.function) == ("NK504", (0,), body.__name__)
        for text in told:
            assert text in found.message
        lines = re.findall(r" at (?:test_deadlocks|talking)\.py:\d+", found.message)
        assert len(lines) == found.message.count(" waits in ")

    def test_a_run_that_collects_ends_without_outputs(self) -> None:
        """There is no result."""

        def kernel(x: Any) -> Any:
            _ended(nl.program_id(0), x, None)
            return x

        assert nkitools.simulate(kernel, X, grid=2, rules="report").outputs is None
        with pytest.raises(nkitools.KernelError, match="NK504"):
            nkitools.simulate(kernel, X, grid=2, rules="off")
