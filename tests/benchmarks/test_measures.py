"""The candidates of the benchmarks compute the same, and their figures are right."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import nkitools
import nkitools.dialects.modern.isa as nisa
import nkitools.dialects.modern.kernel as nki
import nkitools.dialects.modern.language as nl
from benchmarks import element_wise, measure, tiles, waiting
from benchmarks.other_tree import InAnotherProcess
from benchmarks.table import table
from benchmarks.workloads import workloads


def normal(*shape: int) -> Any:
    """Return normally distributed numbers of float32."""
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def boxes(batch: int, count: int) -> Any:
    """Return boxes [batch, count, 4]."""
    near = np.random.default_rng(count).uniform(0, 200, (batch, count, 2))
    return np.concatenate((near, near + 30), axis=2).astype(np.float32)


SMALL: dict[str, tuple[Any, ...]] = {
    "matmul": (normal(130, 200), normal(130, 520)),
    "softmax": (normal(130, 77),),
    "attention": (normal(300, 64), normal(300, 64), normal(300, 64)),
    "giou": (boxes(129, 513), boxes(129, 513)[::-1]),
    "legacy_giou": (boxes(129, 257).reshape(129, -1), boxes(129, 257)[::-1].reshape(129, -1)),
    "conv2d": (normal(2, 3, 34, 18), normal(5, 3, 3, 3)),
}


@pytest.mark.parametrize("name", SMALL)
def test_the_tiles_compute_what_numpy_does_untiled(name: str) -> None:
    """Also where the sizes are no multiples of the tiles."""
    plain = next(each.plain for each in workloads() if each.tiles.__name__ == name)
    found = getattr(tiles, name)(*SMALL[name])
    np.testing.assert_allclose(found, plain(*SMALL[name]), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", element_wise.CALLS)
def test_an_instruction_is_compared_with_the_call_that_computes_it(name: str) -> None:
    """The kernel gives what NumPy writes into its destination, to the last digits of a function."""
    ours, plain = element_wise.CALLS[name]
    x, y = np.abs(normal(128, 64)) + 1, np.abs(normal(128, 64)[::-1]) + 2

    @nki.jit
    def kernel(x: Any, y: Any) -> Any:
        a, b, d = (nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf) for _ in range(3))
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=a, src=x)
        nisa.dma_copy(dst=b, src=y)
        ours(a, b, d)
        nisa.dma_copy(dst=out, src=d)
        return out

    expected = np.empty_like(x)
    plain(x, y, expected)
    np.testing.assert_allclose(nkitools.simulate(kernel, x, y, rules="report").outputs, expected, rtol=1e-6)


def test_the_least_of_the_rounds_counts() -> None:
    """Of each call by itself; their median where a workload waits for memory, which the gather alone does."""
    rounds = [{"a": a, "b": b} for a, b in ((3.0, 1.0), (2.0, 5.0), (7.0, 3.0))]
    assert measure.counted(rounds) == {"a": 2.0, "b": 1.0}
    assert measure.counted(rounds, waits_for_memory=True) == {"a": 3.0, "b": 3.0}
    assert [each.name for each in workloads() if each.waits_for_memory] == ["gather 4096 of 8192 rows"]


def test_the_figures_of_a_workload_are_ratios_of_its_times() -> None:
    """Simulator over NumPy and over bare tiles, simulator over itself without rules; milliseconds."""
    times = {"simulator": 0.06, "rules off": 0.05, "numpy": 0.03, "tiles": 0.02, measure.FAULTS: 7}
    found = measure.figures("any", times)
    expected = {"over NumPy": 2, "over tiles": 3, "rules / off": 1.2, "ms": 60, "NumPy ms": 30, measure.FAULTS: 7}
    assert found == pytest.approx(expected)
    found = measure.figures("any", times | {"dependences": 1.5e-6})
    assert found == pytest.approx(expected | {"dependences us an instruction": 1.5})


def test_dependences_are_computed_anew_in_each_round() -> None:
    """Their time is that of an instruction: of all three, of a run that has kept nothing of them."""
    rounds = measure.InThisProcess("error")
    rounds.prepare("softmax 4096x2048")
    run = nkitools.simulate(rounds.workloads["softmax 4096x2048"].kernel, normal(128, 64))
    known = run.dependences
    assert measure.dependences_of(run) == rounds.counts["dependences"] // 32 == len(run.instructions)
    assert run.dependences is not known
    assert 0 < rounds.round()["dependences"] < 1e-3


def test_the_figures_of_single_actions_leave_the_launch_out() -> None:
    """A run with many less one with none, a piece."""
    times = {"chain": 0.11, "no chain": 0.01, "numpy": 0.005, "row": 0.03, "no row": 0.01}
    times |= {"placed": 0.16, "partly written": 0.21, "columns": 0.0612, "elements": 0.0356, "launches": 0.04}
    found = measure.figures(measure.ACTIONS, times)
    assert found == pytest.approx(
        {
            "us an instruction": 20,
            "us of NumPy in it": 1,
            "us an instruction on an address": 30,
            "us an instruction on a tile written in part": 40,
            "us an allocation": 10,
            "us a column of a tile": 100,
            "us an element": 100,
            "us a launch of three instructions": 2000,
        }
    )


@pytest.mark.process
def test_another_checkout_takes_turns() -> None:
    """Rounds of a process of its own have the same calls, each with a time."""
    other = InAnotherProcess(measure.HERE, "report")
    try:
        other.prepare(measure.ACTIONS)
        rounds = [other.round(), other.round()]
    finally:
        other.close()
    calls = {"chain", "no chain", "placed", "partly written", "numpy", "row", "no row"}
    calls |= {"columns", "elements", "launches"}
    assert [set(each) for each in rounds] == [calls] * 2
    assert measure.figures(measure.ACTIONS, measure.counted(rounds))["us an instruction"] > 0


@pytest.mark.process
def test_a_cold_start_has_its_parts() -> None:
    """Imports one by one, the first run and the second, which costs less than the first."""
    found = measure.cold_start(measure.HERE, 1)
    names = ["import numpy", "import nkitools", "import nki.*", "first run", "second run"]
    names.append("first run of 417 instructions")
    assert list(found) == [f"ms {name}" for name in names]
    assert 0 < found["ms second run"] < found["ms first run"]


def test_the_table_shows_earlier_figures_and_their_ratio() -> None:
    """A figure that is new has no ratio."""
    shown = table({"a": {"x": 3.0, "y": 1.0}}, {"a": {"x": 2.0}}).splitlines()
    assert [line.split() for line in shown] == [
        ["now", "before", "ratio"],
        ["a"],
        ["x", "3.00", "2.00", "1.50x"],
        ["y", "1.00"],
    ]


def test_the_kept_baseline_can_be_compared_with() -> None:
    """The file beside the benchmarks is of an earlier tree, which had fewer workloads; ``--against`` reads it."""
    kept = json.loads((measure.HERE / "benchmarks" / "baseline.json").read_text(encoding="utf-8"))
    names = {each.name for each in workloads()} | {measure.ACTIONS, "geometric mean", "cold start", "peak memory"}
    assert set(kept["figures"]) <= names
    assert len(kept["figures"]) == 10
    assert set(kept["machine"]) == set(measure.machine()) - {"blas"}
    assert all(figure > 0 for each in kept["figures"].values() for figure in each.values())


@pytest.mark.process
def test_each_wait_is_measured_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a script that measures this checkout; the median of the rounds after the first one counts."""
    rows = waiting.waits([waiting.HERE], 1)[0]["waiting"]
    assert len(rows) == 7
    assert all(value > 0 for value in rows.values())
    values = iter([9.0, 1.0, 5.0, 2.0])
    monkeypatch.setattr(
        waiting, "_measured", lambda script, tree: {"one": next(values)} if "CheckedCall" in script else {}
    )
    assert waiting.waits([waiting.HERE], 3) == [{"waiting": {"one": 2.0}}]
