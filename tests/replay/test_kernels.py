"""Every kernel of ``kernels/nki`` gives the same bits, prints, findings and instructions in a replay as in a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nkitools
from nkitools.replay.kept_lists import KEPT
from tests.cases import cases
from tests.nki_versions import SINCE_0_7
from tests.replay.kernel_calls import CALLS, Call

REPLAYED = [call for call in CALLS if not call.why_not]
CHOSEN_BY_DATA = [call for call in CALLS if call.why_not]
NEW = ("linear", "linear of a row", "paged_attention")  # kernels for NKI 0.7 alone


def each(calls: list[Call]) -> pytest.MarkDecorator:
    """Return the parameters of a test that takes calls."""
    cases_of = [pytest.param(call, id=call.name, marks=SINCE_0_7 if call.name in NEW else ()) for call in calls]
    return pytest.mark.parametrize("call", cases_of)


def bits(outputs: Any) -> list[tuple[Any, ...]]:
    """Return the arrays of results as their dtypes, shapes and bytes."""
    arrays = outputs if isinstance(outputs, tuple) else (outputs,)
    return [(array.dtype, array.shape, array.tobytes()) for array in arrays]


def simulated(call: Call, arguments: tuple[Any, ...], replay: str) -> Any:
    return nkitools.simulate(call.kernel, *arguments, replay=replay, rules="report", **call.settings)


def assert_same(run: Any, expected: Any) -> None:
    """Both runs have shown the same, to the bit."""
    assert bits(run.outputs) == bits(expected.outputs)
    assert run.findings == expected.findings
    assert [one.text() for one in run.prints] == [one.text() for one in expected.prints]
    assert run.instructions[:] == expected.instructions[:]
    for kind in ("flow", "output", "anti"):
        rows, others = (getattr(each.dependences, kind) for each in (run, expected))
        np.testing.assert_array_equal(rows.starts, others.starts)
        np.testing.assert_array_equal(rows.sources, others.sources)


@each(REPLAYED)
def test_a_replay_has_the_bits_of_a_run(call: Call) -> None:
    """With the recorded arguments, and with others of the same form."""
    random = np.random.default_rng(1)
    first, second = call.arguments(random), call.arguments(random)
    assert_same(simulated(call, first, "on"), simulated(call, first, "off"))
    for arguments in (first, second):
        replayed = simulated(call, arguments, "on")
        assert replayed.replayed.done, replayed.replayed.reason
        assert_same(replayed, simulated(call, arguments, "off"))


@each(REPLAYED)
def test_memory_that_was_never_written_is_no_evidence(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the memory of new tiles and of the list holds: here numbers whose sum is beyond float32."""
    empty = np.empty

    def large(*shape: Any, **keywords: Any) -> Any:
        array = empty(*shape, **keywords)
        array.reshape(-1).view(np.uint8)[...] = 0x7F
        return array

    arguments = call.arguments(np.random.default_rng(3))
    expected = simulated(call, arguments, "off")
    KEPT.clear()
    monkeypatch.setattr(np, "empty", large)
    recorded, replayed = (simulated(call, arguments, "on") for _ in range(2))
    monkeypatch.undo()
    assert replayed.replayed.done, recorded.replayed.reason
    assert_same(recorded, expected)
    assert_same(replayed, expected)


@pytest.mark.soak
@each(REPLAYED)
def test_awkward_values_have_the_bits_and_findings_of_a_run(call: Call) -> None:
    """Zeros of both signs, subnormal, very large, infinite and NaN elements among others: replayed or run in full."""

    @settings(max_examples=cases(100))
    @given(seed=st.integers(0, 2**32), awkward=st.booleans())
    def holds(seed: int, awkward: bool) -> None:
        arguments = call.arguments(np.random.default_rng(seed), awkward=awkward)
        assert_same(simulated(call, arguments, "on"), simulated(call, arguments, "off"))

    holds()


@each(CHOSEN_BY_DATA)
def test_a_kernel_whose_data_choose_elements_runs_each_time(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of such a run is that of its data; replay="on" says so.

    A run whose values call for a look runs in full without that; new memory of zeros keeps lanes that nothing wrote
    from being such values by chance.
    """
    random = np.random.default_rng(1)
    for _ in range(3):
        arguments = call.arguments(random)
        run = simulated(call, arguments, "auto")
        assert not run.replayed.done
        assert_same(run, simulated(call, arguments, "off"))
    assert call.why_not in run.replayed.reason
    monkeypatch.setattr(np, "empty", np.zeros)
    with pytest.raises(ValueError, match=call.why_not):
        simulated(call, call.arguments(random), "on")
