"""What surrounds programs that talk: errors of one of them, Ctrl-C, the record, shared allocations, seeds."""

from __future__ import annotations

import _thread
import time
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.facts import options
from tests.isa.talking import (  # noqa: F401 - a fixture
    X,
    finding_of,
    hbm,
    no_thread_outlives_its_run,
    ping_pong,
    ping_pong_by_numpy,
    sbuf,
    swapped,
    swapped_by_numpy,
)


class Unlucky(Exception):
    """An exception of the author's own."""


class TestSurroundings:
    """Exceptions, interrupts, the record and the prints of programs in several threads."""

    @pytest.mark.parametrize("faulty", [0, 1])
    @pytest.mark.parametrize("level", ["error", "report", "off"])
    def test_an_exception_of_one_program_is_that_of_the_run(self, faulty: int, level: str) -> None:
        """It is the very exception; the other program is ended where it stands."""
        error = Unlucky("no luck")
        ended: list[int] = []

        def kernel(x: Any) -> Any:
            try:
                nisa.core_barrier(x, (0, 1))
                if nl.program_id(0) == faulty:
                    raise error
                nisa.core_barrier(x, (0, 1))
            finally:
                ended.append(nl.program_id(0))

        with nkitools.collect_runs() as runs, pytest.raises(Unlucky) as raised:
            nkitools.simulate(kernel, X, grid=2, rules=level)
        assert raised.value is error
        assert (error.__context__, error.__cause__) == (None, None)
        names = [frame.name for frame in raised.traceback]
        assert names[-1] == "kernel"
        paths = [str(frame.path) for frame in raised.traceback]
        assert not any(part in path for path in paths for part in ("program_scheduler", "threading"))
        assert sorted(ended) == [0, 1]
        assert (runs[0].error, runs[0].findings) == (error, [])

    @pytest.mark.parametrize("faulty", [0, 1])
    def test_a_finding_of_one_program_ends_the_other(self, faulty: int) -> None:
        """With the program that it is of."""

        def kernel(x: Any) -> Any:
            nisa.core_barrier(x, (0, 1))
            if nl.program_id(0) == faulty:
                nl.load(x)[0:200]
            nisa.core_barrier(x, (0, 1))
            return x

        found = finding_of(kernel, X)
        assert (found.rule, found.program) == ("NK402", (faulty,))

    @pytest.mark.usefixtures("ctrl_c")
    def test_ctrl_c_ends_a_program_in_another_thread(self) -> None:
        """Where it computes in plain Python."""

        def kernel(x: Any) -> Any:
            if nl.program_id(0) == 0:
                nisa.core_barrier(x, (0, 1))
            _thread.interrupt_main()
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                pass

        with nkitools.collect_runs() as runs, pytest.raises(KeyboardInterrupt):
            nkitools.simulate(kernel, X, grid=2)
        assert isinstance(runs[0].error, KeyboardInterrupt)
        np.testing.assert_array_equal(nkitools.simulate(swapped, X, grid=2).outputs, swapped_by_numpy(X))

    @pytest.mark.parametrize("seed", [None, *map(str, range(12))])
    def test_instructions_know_their_program_and_their_loops(self, seed: str | None) -> None:
        """Whatever ran between them."""

        def kernel(x: Any) -> Any:
            core = nl.program_id(0)
            for m in nl.affine_range(3):
                mark = nl.ndarray((4, 4), nl.float32, buffer=nl.sbuf, name=f"core {core} loop {m}")
                nisa.dma_copy(dst=mark, src=x[0:4, 0:4])
                for k in nl.affine_range(2):
                    nisa.core_barrier(x, (0, 1))
                    inner = nl.ndarray((4, 4), nl.float32, buffer=nl.sbuf, name=f"core {core} loop {m} {k}")
                    nisa.dma_copy(dst=inner, src=x[0:4, 0:4])
                nl.device_print(f"core {core} loop {m}", mark)
            return x

        with options.override(schedule_seed=seed):
            run = nkitools.simulate(kernel, X, grid=2)
        copies = [each for each in run.instructions if each.name == "dma_copy"]
        assert len(copies) == 18
        for each in copies:
            counters = " ".join(str(value) for value in each.loops.values())
            assert each.operands[0].tensor == f"core {each.program[0]} loop {counters}"
        assert len(run.prints) == 6
        for line in run.prints:
            assert line.prefix == f"core {line.program[0]} loop {line.loops['m']}"

    def test_the_kth_shared_allocation_is_one_buffer_in_every_order(self) -> None:
        """Private ones and those on chip are each program's own."""

        def kernel() -> Any:
            first, own, second = hbm((2, 4)), nl.ndarray((1, 4), nl.float32, buffer=nl.private_hbm), hbm((2, 4))
            core = nl.program_id(0)
            one = sbuf((1, 4))
            nisa.memset(one, 1.0 + core)
            nisa.dma_copy(dst=own, src=one)
            nisa.dma_copy(dst=first[nl.ds(core, 1), :], src=own)
            nisa.core_barrier(first, (0, 1))
            nisa.dma_copy(dst=second[nl.ds(core, 1), :], src=first[nl.ds(1 - core, 1), :])
            nisa.core_barrier(second, (0, 1))
            return second, own

        for seed in [None, *map(str, range(20))]:
            with options.override(schedule_seed=seed):
                second, own = nkitools.simulate(kernel, grid=2).outputs
            np.testing.assert_array_equal(second, [[2] * 4, [1] * 4])
            np.testing.assert_array_equal(own, [[1] * 4])

    def test_inputs_that_are_returned_are_the_arrays_themselves(self) -> None:
        """Written in place by both programs."""
        x = X.copy()
        run = nkitools.simulate(ping_pong, x, grid=2, mutates="x")
        assert run.outputs is x
        np.testing.assert_array_equal(x, ping_pong_by_numpy(X))


@pytest.mark.parametrize("seed", ["x", "1.5"])
def test_a_seed_is_an_integer(seed: str) -> None:
    """The option says so by its name."""
    with options.override(schedule_seed=seed), pytest.raises(ValueError, match="NKITOOLS_SCHEDULE_SEED"):
        nkitools.simulate(swapped, X, grid=2)
