"""The programs of a launch, and what they leave behind: results, nothing else."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.chip.core import CORE
from nkitools.chip.memory import MemoryRegion
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.issue import shape_remedies  # noqa: F401 what a refused shape loads
from nkitools.launch.launch import Launch
from nkitools.launch.programs import run_launch
from nkitools.record.reporter import StopRun
from nkitools.rules.finding import REPORTER
from tests.launch.kernels import doubled, doubled_in_place, failing, halves, impossible

X = np.arange(512, dtype=np.float32).reshape(128, 4)


class TestPrograms:
    """LNC 2: two programs, which do not talk here."""

    def test_each_has_its_own_identity(self) -> None:
        """program_id, num_programs, program_ndim."""
        seen: list[Any] = []

        def kernel(x: Any) -> Any:
            seen.append((nl.program_id(0), nl.num_programs(0), nl.num_programs(None), nl.program_ndim()))
            return x

        nkitools.simulate(kernel, X, grid=2)
        assert seen == [(0, 2, 2, 1), (1, 2, 2, 1)]

    def test_inputs_are_shared(self) -> None:
        """Shared HBM with two programs, HBM with one (simulator guide)."""
        seen: list[Any] = []

        def kernel(x: Any) -> Any:
            seen.append(x.buffer)
            return x

        nkitools.simulate(kernel, X)
        nkitools.simulate(kernel, X, grid=2)
        assert seen == [MemoryRegion.private_hbm, MemoryRegion.shared_hbm, MemoryRegion.shared_hbm]

    def test_the_kth_shared_allocation_is_one_buffer_and_private_ones_are_not(self) -> None:
        """What program 0 wrote program 1 finds in the one, and not in the other."""
        shared: list[Any] = []
        private: list[Any] = []

        def kernel() -> Any:
            shared.append([nl.ndarray((4, 2), dtype=nl.float32, buffer=nl.shared_hbm) for _ in range(2)])
            private.append(nl.ndarray((4, 2), dtype=nl.float32, buffer=nl.private_hbm))
            nl.store(shared[-1][1][nl.ds(2 * nl.program_id(), 2), :], nl.ones((2, 2), dtype=nl.float32))
            return shared[-1][1]

        out = nkitools.simulate(kernel, grid=2).outputs
        np.testing.assert_array_equal(out, np.ones((4, 2)))
        assert shared[0][0].storage is shared[1][0].storage
        assert shared[0][1].storage is shared[1][1].storage
        assert shared[0][0].storage is not shared[0][1].storage
        assert private[0].storage is not private[1].storage

    def test_shared_allocations_that_differ_are_refused(self) -> None:
        """NK208: programs would not agree on what the buffer is."""

        def kernel() -> Any:
            nl.ndarray((4 + nl.program_id(), 2), dtype=nl.float32, buffer=nl.shared_hbm)

        with pytest.raises(nkitools.KernelError) as raised:
            nkitools.simulate(kernel, grid=2)
        assert (raised.value.finding.rule, raised.value.finding.program) == ("NK208", (1,))

    def test_the_result_is_program_zeros(self) -> None:
        """And instructions know their program."""

        def kernel(x: Any) -> Any:
            doubled_in_place(x[nl.ds(2 * nl.program_id(), 2), :])
            return x, nl.program_id()

        x = np.ones((4, 4), np.float32)
        run = nkitools.simulate(kernel, x, grid=2, mutates="x")
        assert run.outputs == (x, 0)
        np.testing.assert_array_equal(x, 2 * np.ones((4, 4)))
        assert [each.program for each in run.instructions] == [(0,)] * 3 + [(1,)] * 3

    def test_prints_and_findings_know_their_program(self) -> None:
        """The second program's are marked as such."""

        def kernel(x: Any) -> Any:
            nl.device_print("x", x)
            if nl.program_id() == 1:
                nl.load(x)[0:200]
            return x

        run = nkitools.simulate(kernel, X, grid=2, rules="report")
        assert [each.program for each in run.prints] == [(0,), (1,)]
        assert [(each.rule, each.program) for each in run.findings] == [("NK402", (1,))]


class Unlucky(Exception):
    """An exception of the author's own."""


def raising(error: BaseException) -> Any:
    def kernel(x: Any) -> Any:
        for m in range(2):
            np.seterr(all="raise")
            if m == 1:
                raise error
        return x

    return kernel


class TestNothingLeaks:
    """Whatever ends a run, the state around it is what it was."""

    @pytest.mark.parametrize(
        ("kernel", "keywords"),
        [
            (doubled, {}),
            (halves, {"grid": 2}),
            (failing, {}),
            (impossible, {}),
            (impossible, {"rules": "report"}),
            (raising(Unlucky("no luck")), {}),
            (raising(Unlucky("no luck")), {"rules": "report"}),
            (raising(KeyboardInterrupt()), {}),
            (raising(SystemExit(3)), {"grid": 2}),
            (lambda: None, {}),
        ],
    )
    def test_the_state_is_as_it_was(self, kernel: Any, keywords: Any) -> None:
        """Running core, reporter, NumPy's error handling, loaded modules, and who listens to runs."""
        for _ in range(3):  # what a refusal and the third call of an instruction need is imported then
            with contextlib.suppress(BaseException):
                nkitools.simulate(kernel, X, **keywords)
        modules, errors = set(sys.modules), np.geterr()
        with nkitools.collect_runs() as runs, contextlib.suppress(BaseException):
            nkitools.simulate(kernel, X, **keywords)
        assert CORE.get() is None
        assert REPORTER.get() is None
        assert np.geterr() == errors
        assert set(sys.modules) == modules
        assert len(runs) == 1
        np.testing.assert_array_equal(nkitools.simulate(doubled, X).outputs, 2 * X)
        assert len(runs) == 1

    def test_floating_point_surprises_are_results(self) -> None:
        """Inf and NaN arise without a warning of the host's."""

        def kernel(x: Any) -> Any:
            out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.log(nl.subtract(tile := nl.load(x), tile)))
            return out

        assert np.isneginf(nkitools.simulate(kernel, X, rules="off").outputs).all()


class TestExceptions:
    """A kernel's own exceptions pass through unchanged."""

    @pytest.mark.parametrize("level", ["error", "report", "off"])
    @pytest.mark.parametrize("kind", [Unlucky, KeyboardInterrupt, SystemExit, IndexError])
    def test_it_is_the_very_exception(self, kind: type[BaseException], level: str) -> None:
        """Type, identity, arguments, notes; the run knows it, and has no finding."""
        error = kind("no luck", 7)
        error.add_note("seen by the author")
        arguments = error.args
        with nkitools.collect_runs() as runs, pytest.raises(type(error)) as raised:
            nkitools.simulate(raising(error), X, rules=level)
        assert raised.value is error
        assert (error.args, error.__notes__) == (arguments, ["seen by the author"])
        assert error.__context__ is None
        assert error.__cause__ is None
        assert runs[0].error is error
        assert runs[0].findings == []

    def test_the_authors_assertions_keep_their_text(self) -> None:
        """kernel_assert is a plain assert in public kernels."""

        def kernel(x: Any) -> Any:
            assert x.shape[0] == 1, "batch must be 1"

        with pytest.raises(AssertionError) as raised:
            nkitools.simulate(kernel, X)
        assert str(raised.value).startswith("batch must be 1")
        assert not isinstance(raised.value, nkitools.KernelError)

    def test_the_stop_of_a_run_stays_inside(self) -> None:
        """A kernel that swallows everything goes on; nobody outside sees it."""

        def kernel(x: Any) -> Any:
            with contextlib.suppress(StopRun):
                nl.load(x)[0:200]
            return doubled(x)

        run = nkitools.simulate(kernel, X, rules="report")
        np.testing.assert_array_equal(run.outputs, 2 * X)
        assert [finding.rule for finding in run.findings] == ["NK402"]

    def test_a_loop_of_the_kernel_is_closed(self) -> None:
        """An exception in an nl range does not keep its state for what runs next."""

        def kernel(x: Any) -> Any:
            with contextlib.suppress(Unlucky):
                for _ in nl.affine_range(2):
                    raise Unlucky
            nl.load(x)
            return x

        assert nkitools.simulate(kernel, X).instructions[0].loops == {}


def test_a_dialect_may_add_to_everything_that_is_reported() -> None:
    """Of the arguments, in the kernel, and of the results."""

    def coded(report: Any) -> Any:
        return lambda rule, message, *rest: report(rule, f"{message} (err_of_aws)", *rest)

    def unwritten(x: Any) -> Any:
        return nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.shared_hbm)

    found = []
    for kernel, x in ((doubled.function, X.astype(np.float64)), (failing.function, X), (unwritten, X)):
        run = run_launch(Launch(kernel, "kernel", rules="report", reported=coded), (x,), {})
        found += [(finding.rule, finding.message.endswith("(err_of_aws)")) for finding in run.findings]
    assert found == [("NK301", True), ("NK101", True), ("NK403", True)]


def test_runs_in_threads_do_not_meet() -> None:
    """Each has its core, its record and its reporter."""
    barrier = threading.Barrier(2, timeout=30)
    runs: dict[int, Any] = {}

    def kernel(x: Any, number: int) -> Any:
        barrier.wait()
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for m in nl.affine_range(4):
            barrier.wait()
            rows = nl.ds(m * 32, 32)
            tile = nl.load(x[rows, :])
            nisa.tensor_scalar(tile, tile, nl.add, float(number))
            nl.store(out[rows, :], tile)
        return out

    def work(number: int) -> None:
        runs[number] = nkitools.simulate(kernel, X, number)

    with nkitools.collect_runs() as mine:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert mine == []  # a collector listens in its own context
    for number, run in runs.items():
        np.testing.assert_array_equal(run.outputs, X + number)
        assert [each.loops for each in run.instructions] == [{"m": m} for m in range(4) for _ in range(3)]
