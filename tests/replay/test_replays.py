"""Replays beside runs: what is written, printed, reported and kept, and when the kernel's Python runs all the same."""

from __future__ import annotations

import gc
import sys
import threading
from contextvars import Context
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import nkitools
from nkitools.facts import options
from nkitools.facts.versions import language_of
from nkitools.launch import programs, replays
from nkitools.replay import recording
from nkitools.replay.kept_lists import KEPT, MOST_FORMS

nkitools.install_stand_in(prefer="builtin")

import nki  # noqa: E402
import nki.isa as nisa  # noqa: E402
import nki.language as nl  # noqa: E402

from kernels.nki.matmul import matmul  # noqa: E402

SHAPE = (4, 8)
ONES = np.ones(SHAPE, np.float32)
FIRST, RECORDED = "it is the first run of this form", "this run is recorded"
LOOKED_AT = "its values call for a look at them"


@nki.jit
def exponential(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.exp(nl.load(x)))
    return out


@nki.jit
def repeated(x: Any, times: int) -> Any:
    """Doubles x so many times."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for _ in range(times):
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.add)
    nl.store(out, tile)
    return out


@nki.jit
def counted(x: Any, total: Any) -> Any:
    """Adds x to total, in place, and returns its square."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile, sums = nl.load(x), nl.load(total)
    nisa.tensor_tensor(dst=sums, data1=sums, data2=tile, op=nl.add)
    nisa.dma_copy(dst=total, src=sums)
    nl.store(out, nl.multiply(tile, tile))
    return out


@nki.jit
def printed(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    for row in range(2):
        nl.device_print("row", tile[row : row + 1, :])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=1.0)
    nl.store(out, tile)
    return out


@nki.jit
def halves(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows = x.shape[0] // nl.num_programs(0)
    start = nl.program_id(0) * rows
    nl.store(out[start : start + rows, :], nl.square(nl.load(x[start : start + rows, :])))
    return out


@nki.jit
def noise(x: Any) -> Any:
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(nl.load(x), nl.rand(x.shape, dtype=nl.float32)))
    return out


def test_the_third_run_of_a_form_is_a_replay() -> None:
    """By default; each run says what became of it, and a run of another form is the first one again."""
    runs = [nkitools.simulate(exponential, ONES * number) for number in range(4)]
    assert [each.replayed.done for each in runs] == [False, False, True, True]
    assert [each.replayed.reason for each in runs] == [FIRST, RECORDED, "", ""]
    for number, each in enumerate(runs):
        np.testing.assert_array_equal(each.outputs, np.exp(ONES * number))
    assert nkitools.simulate(exponential, ONES[:2]).replayed.reason == FIRST
    assert nkitools.simulate(exponential, ONES, rules="off").replayed.reason == FIRST
    assert nkitools.simulate(exponential, ONES, chip="trn1").replayed.reason == FIRST


def test_replay_is_off_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the argument and the option each run is the kernel's Python, however often its form comes."""
    monkeypatch.delenv("NKITOOLS_REPLAY")
    runs = [nkitools.simulate(exponential, ONES) for _ in range(4)]
    assert [run.replayed.reason for run in runs] == ["replay is off"] * 4


def test_the_option_decides() -> None:
    """The argument before the option; "on" records the first run; other words are refused."""
    with options.override(replay="on"):
        assert nkitools.simulate(exponential, ONES).replayed.reason == RECORDED
        assert nkitools.simulate(exponential, ONES).replayed.done
        off = nkitools.simulate(exponential, ONES, replay="off").replayed
    assert (off.done, off.reason) == (False, "replay is off")
    with pytest.raises(ValueError, match="replay: must be one of off, auto, on"):
        nkitools.simulate(exponential, ONES, replay="maybe")


def test_the_ways_in_replay_too() -> None:
    """A kernel that is called as a function, and a launch of it."""
    for _ in range(3):
        with nkitools.collect_runs() as runs:
            exponential(ONES)
    assert runs[0].replayed.done


def test_a_written_argument_is_written_in_place() -> None:
    """As often as the kernel was called, replayed or not."""
    total = np.zeros(SHAPE, np.float32)
    for number in range(1, 6):
        run = nkitools.simulate(counted, ONES * number, total, mutates="total")
        assert run.replayed.done == (number > 2)
        np.testing.assert_array_equal(run.outputs, ONES * number**2)
    np.testing.assert_array_equal(total, ONES * 15)


def test_evidence_leaves_the_arguments_to_a_full_run() -> None:
    """A square beyond float32 is found at its line, and total was added to once, by the run that has found it."""
    total = np.zeros(SHAPE, np.float32)
    for _ in range(3):
        nkitools.simulate(counted, ONES, total, mutates="total")
    large = ONES * np.float32(1e30)
    run = nkitools.simulate(counted, large, total, mutates="total")
    assert (run.replayed.done, run.replayed.reason) == (False, LOOKED_AT)
    assert [each.rule for each in run.findings] == ["NK404"]
    assert run.findings == nkitools.simulate(counted, large, 0 * ONES, replay="off", mutates="total").findings
    np.testing.assert_array_equal(total, ONES * 3 + large)
    assert nkitools.simulate(counted, ONES, total, mutates="total").replayed.done


def test_arguments_that_share_memory_run_in_full() -> None:
    """What is written into one is read in the other at once; so it is where an argument is given twice."""
    for _ in range(3):
        nkitools.simulate(counted, ONES, 0 * ONES, mutates="total")
    both = np.ones((2, *SHAPE), np.float32)
    assert nkitools.simulate(counted, both[0], both[1], mutates="total").replayed.done
    same = ONES.copy()
    run = nkitools.simulate(counted, same, same, mutates="total")
    assert not run.replayed.done
    assert "share memory" in run.replayed.reason
    np.testing.assert_array_equal(same, 2 * ONES)
    row = np.ones((5, 8), np.float32)
    assert not nkitools.simulate(counted, row[:4], row[1:], mutates="total").replayed.done
    np.testing.assert_array_equal(row, [[1] * 8, *[[2] * 8] * 4])


def test_a_read_only_argument_is_refused_as_ever() -> None:
    """A write into it is found in a replayed form too."""
    for _ in range(3):
        nkitools.simulate(counted, ONES, 0 * ONES, mutates="total")
    total = 0 * ONES
    total.flags.writeable = False
    with pytest.raises(nkitools.KernelError) as raised:
        nkitools.simulate(counted, ONES, total, mutates="total")
    assert raised.value.finding.rule == "NK609"


def test_prints_are_those_of_the_run() -> None:
    """Values of this run's arguments, as they were when they were printed, with counters and places of the kernel."""
    for number in range(4):
        x = np.arange(32, dtype=np.float32).reshape(SHAPE) * number
        run, expected = nkitools.simulate(printed, x), nkitools.simulate(printed, x, replay="off")
        assert run.prints == expected.prints
        assert [(one.text(), one.order, one.issued) for one in run.prints] == [
            (one.text(), one.order, one.issued) for one in expected.prints
        ]
    assert run.replayed.done
    np.testing.assert_array_equal(run.prints[1].value, x[1:2] + 1)
    assert run.prints[1].loops == {"row": 1}


def test_prints_of_a_call_reach_the_terminal_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where a replay was begun in vain."""
    for x in (ONES, ONES, ONES, ONES * np.float32(3.4e38)):
        capsys.readouterr()
        printed(x)
        assert capsys.readouterr().out.count("row [program 0") == 2


@pytest.mark.parametrize("cores", [1, 2])
def test_programs_that_do_not_talk_are_replayed(cores: int) -> None:
    """On one core and on two, with the instructions of each."""
    for number in range(3):
        run = nkitools.simulate(halves[cores], ONES * number)
        np.testing.assert_array_equal(run.outputs, ONES * number**2)
    assert run.replayed.done
    expected = nkitools.simulate(halves[cores], ONES, replay="off")
    assert run.instructions[:] == expected.instructions[:]
    assert {each.program for each in run.instructions} == {each.program for each in expected.instructions}


def test_ranks_that_do_not_talk_are_replayed() -> None:
    """Each with arguments, results, prints and instructions of its own."""
    for number in range(3):
        shards = [ONES * (number + rank) for rank in range(3)]
        run = nkitools.simulate(printed, *((each,) for each in shards), ranks=3)
        assert all((out == each + 2).all() for out, each in zip(run.outputs, shards, strict=True))
    assert run.replayed.done
    expected = nkitools.simulate(printed, *((each,) for each in shards), ranks=3, replay="off")
    assert [(one.rank, one.text()) for one in run.prints] == [(one.rank, one.text()) for one in expected.prints]
    assert run.instructions[:] == expected.instructions[:]


def test_ranks_that_talk_run_each_time() -> None:
    """A collective is more than a computation."""
    from kernels.nki.ring_all_gather import ring_all_gather

    for _ in range(3):
        run = nkitools.simulate(ring_all_gather, (ONES, 2), (2 * ONES, 2), ranks=2)
        assert (run.outputs[0][1] == 2).all()
    assert "is more than a computation on tensors" in run.replayed.reason


def test_random_numbers_are_those_of_a_run() -> None:
    """The generators begin in each replay where they begin in each run."""
    expected = nkitools.simulate(noise, ONES, replay="off").outputs
    for _ in range(4):
        run = nkitools.simulate(noise, ONES)
        np.testing.assert_array_equal(run.outputs, expected)
    assert run.replayed.done


def test_what_follows_from_a_run_follows_from_a_replay() -> None:
    """Estimate, tolerance of dependences, and what is saved."""
    for _ in range(3):
        run = nkitools.simulate(exponential, ONES)
    expected = nkitools.simulate(exponential, ONES, replay="off")
    assert run.replayed.done
    assert run.settings == expected.settings
    assert nkitools.Run.from_json(run.to_json()).instructions[:] == expected.instructions[:]
    assert (run.kernel, run.chip, run.precision, run.error) == (expected.kernel, "trn2", "precise", None)


def test_a_watched_run_is_a_run() -> None:
    """A watch on a tensor, a page report's watch and a debugger's trace look at the kernel itself."""
    for _ in range(3):
        nkitools.simulate(exponential, ONES)
    run = nkitools.simulate(exponential, ONES, watch="out")
    assert (run.replayed.done, run.replayed.reason) == (False, "a watch looks at the run")
    assert [one.prefix for one in run.prints] == ["out"]
    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: None)
    try:
        run = nkitools.simulate(exponential, ONES, replay="on")
    finally:
        sys.settrace(before)
    assert run.replayed.reason == "a debugger or tracer is on"


def test_interleaved_programs_and_full_precision_are_runs() -> None:
    """Their order is drawn, and their values are not those of the list."""
    for values in ({"schedule_seed": "1"}, {"precision": "full"}):
        with options.override(replay="on", **values):
            assert not any(nkitools.simulate(halves[2], ONES).replayed.done for _ in range(3))


def test_values_that_are_looked_at_again_and_again_leave_replays_out() -> None:
    """After three runs in vain most of the later ones go to the kernel at once; good values bring replays back."""
    large = ONES * np.float32(1e30)
    for _ in range(3):
        nkitools.simulate(counted, ONES, 0 * ONES, mutates="total")
    reasons = [nkitools.simulate(counted, large, 0 * ONES, mutates="total").replayed.reason for _ in range(8)]
    again = "its values have called for a look at them again and again"
    assert reasons == [LOOKED_AT] * 3 + [again, LOOKED_AT, again, again, again]
    assert any(nkitools.simulate(counted, ONES, 0 * ONES, mutates="total").replayed.done for _ in range(8))
    assert nkitools.simulate(counted, ONES, 0 * ONES, mutates="total").replayed.done


def test_a_run_of_too_many_instructions_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "MOST_STEPS", 4)
    monkeypatch.setattr(recording, "MOST_STEPS", 4)
    first, *others = (nkitools.simulate(repeated, ONES, 3) for _ in range(3))
    assert first.replayed.reason == FIRST
    assert [run.replayed.reason for run in others] == [recording.TOO_MANY] * 2
    with pytest.raises(ValueError, match="it issues more than"):
        nkitools.simulate(repeated, ONES, 3, replay="on")


def test_many_steps_on_a_result_see_that_of_their_run() -> None:
    wanted = [np.full(SHAPE, value, np.float32) for value in (8, 16, 24)]
    runs = [nkitools.simulate(repeated, np.full(SHAPE, value, np.float32), 3) for value in (1, 2, 3)]
    assert runs[2].replayed.done
    for run, expected in zip(runs, wanted, strict=True):
        np.testing.assert_array_equal(run.outputs, expected)


def test_threads_replay_one_list_in_turn() -> None:
    """Each with the results of its own arguments."""
    for _ in range(2):
        nkitools.simulate(exponential, ONES)
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        found[number] = [nkitools.simulate(exponential, ONES * number).outputs for _ in range(20)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for number, outputs in found.items():
        assert all((each == np.exp(ONES * number)).all() for each in outputs)


def test_what_is_kept_is_bounded() -> None:
    """Of so many forms the oldest are forgotten, and so are the lists of too much memory."""
    for size in range(1, MOST_FORMS + 10):
        nkitools.simulate(exponential, np.ones((2, size), np.float32))
    assert len(KEPT.forms) == MOST_FORMS


def test_a_replay_leaves_nothing_behind() -> None:
    """With the garbage collector off, the objects of the process are as many after many replays as after one."""

    def more_objects() -> int:
        for _ in range(4):
            nkitools.simulate(printed, ONES)
        gc.collect()
        gc.disable()
        try:
            before = len(gc.get_objects())
            for _ in range(50):
                assert nkitools.simulate(printed, ONES).replayed.done
            return len(gc.get_objects()) - before
        finally:
            gc.enable()

    assert Context().run(more_objects) < 10  # in a context without the summary of this session, which keeps runs


def test_torch_tensors_come_back_in_kind() -> None:
    """And what is written into one is there afterwards."""
    torch = pytest.importorskip("torch")
    total = torch.zeros(SHAPE)
    for number in range(1, 5):
        run = nkitools.simulate(counted, torch.ones(SHAPE) * number, total, mutates="total")
        assert torch.equal(run.outputs, torch.ones(SHAPE) * number**2)
    assert run.replayed.done
    assert torch.equal(total, torch.ones(SHAPE) * 10)


def test_the_plans_of_many_shapes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The older half of them is forgotten, and what needs one again makes it again."""
    monkeypatch.setattr(programs, "_MAX_PLANS", 20)
    plans = programs._plans_of("trn2", "error", language_of(), "precise")
    for size in (*range(1, 60), 1):
        run = nkitools.simulate(exponential, np.ones((2, size), np.float32), replay="off")
        assert (run.outputs == np.exp(np.float32(1))).all()
        assert len(plans) <= 20 + 3  # of a run that began below the limit


def test_a_list_is_compared_with_one_blas_thread() -> None:
    """As its run was: a product that several threads share has other bits."""
    random = np.random.default_rng(0)
    operands = [random.standard_normal((200, size), np.float32) for size in (130, 600)]
    with threadpool_limits(2, user_api="blas"):
        runs = [nkitools.simulate(matmul, *operands) for _ in range(3)]
    assert runs[-1].replayed.done, runs[-1].replayed.reason
    np.testing.assert_array_equal(runs[0].outputs, runs[-1].outputs)
