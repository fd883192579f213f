"""A kernel over a space: outcomes, resuming, accidents of workers."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.sweeps import checked_call
from nkitools.sweeps.checked_call import Case, CheckedCall
from nkitools.sweeps.local_engine import Ended, InProcess
from nkitools.sweeps.store import Store, StoreError
from nkitools.sweeps.sweep import run_cases
from tests.children import python, started
from tests.sweeps import scaled_kernel
from tests.sweeps.scaled_kernel import arguments, reference, scaled


def outcomes(call: CheckedCall, *values: dict[str, Any], chip: str = "trn2", **given: Any) -> list[dict[str, Any]]:
    return run_cases(call, [Case(each, chip) for each in values], InProcess(), **given).rows


def test_each_outcome_has_its_reason() -> None:
    """A right case, a wrong element, a broken rule and an error of the arguments."""
    call = CheckedCall(scaled, "nki", arguments, reference)
    right, wrong, finding, error = outcomes(call, {"rows": 4}, {"rows": 4, "spoil": 1}, {"rows": 129}, {"rows": -1})
    assert (right["outcome"], right["findings"], right["max_error"], right["error"]) == ("pass", [], 0.0, "")
    x = arguments(4)[0]
    assert right["estimate_us"] == nkitools.simulate(scaled, x, chip="trn2").estimate().latency_us
    assert right["seconds"] > 0
    assert (wrong["outcome"], wrong["max_error"], wrong["remaining"]) == ("wrong", 1.0, 1.0)
    assert finding["outcome"] == "finding"
    assert [(each["rule"], Path(each["file"]).name) for each in finding["findings"]][:1] == [
        ("NK101", "scaled_kernel.py")
    ]
    assert (error["outcome"], error["error"].split(":")[0]) == ("error", "ValueError")


def test_arguments_may_take_a_generator() -> None:
    """`rng` is no name of the space: it is a generator of the same seed in every case."""

    def drawn(rng: np.random.Generator, rows: int) -> tuple[Any, ...]:
        assert rng.random() == np.random.default_rng(0).random()
        return (rng.random((rows, 7), np.float32),)

    rows = outcomes(CheckedCall(scaled, "nki", drawn, reference), {"rows": 5}, {"rows": 6, "factor": 3.0})
    assert [each["outcome"] for each in rows] == ["pass", "pass"], rows


def test_low_precision_is_no_wrong_result_and_is_split_off() -> None:
    """A bfloat16 product is off by its rounding; a stated tolerance below that makes it wrong."""

    def rounded(rows: int) -> tuple[Any, ...]:
        return (np.linspace(1, 2, rows * 7).reshape(rows, 7).astype("bfloat16"),)

    values = {"rows": 5, "factor": 1.7}
    (explained,) = outcomes(CheckedCall(scaled, "nki", rounded, reference), values)
    assert explained["outcome"] == "pass"
    assert 0 < explained["max_error"] < 2**-6
    (stated,) = outcomes(CheckedCall(scaled, "nki", rounded, reference, rtol=1e-5), values)
    assert stated["outcome"] == "wrong"
    assert stated["remaining"] < 1e-6 < stated["low_precision"]
    assert stated["max_error"] == explained["max_error"]


def test_a_case_runs_a_second_time_where_the_first_run_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the table or a stated tolerance passes runs once; what is wrong, or has no reference, runs twice."""
    ran: list[str] = []
    usual = checked_call.run_half

    def noted(launch: Any, precision: str, *given: Any) -> Any:
        ran.append(precision)
        return usual(launch, precision, *given)

    monkeypatch.setattr(checked_call, "run_half", noted)
    calls = {
        "passes": CheckedCall(scaled, "nki", arguments, reference),
        "stated": CheckedCall(scaled, "nki", arguments, reference, rtol=1e-3),
        "no reference": CheckedCall(scaled, "nki", arguments),
        "wrong": CheckedCall(scaled, "nki", arguments, reference),
    }
    for name, call in calls.items():
        ran.clear()
        (row,) = outcomes(call, {"rows": 4, "spoil": 1} if name == "wrong" else {"rows": 4})
        assert row["outcome"] == ("wrong" if name == "wrong" else "pass")
        is_plain = name in ("passes", "stated")
        assert ran == (["precise"] if is_plain else ["precise", "full"])
        assert (row["low_precision"] is None) == is_plain
        assert (row["remaining"] is None) == (name != "wrong")


def test_a_case_without_an_answer_is_a_row_too() -> None:
    """A worker that took too long, one that was lost, and memory that was used up."""

    class Engine:
        def run(self, function: Any, tasks: Any) -> Any:
            reasons = iter([("timeout", "no end within 2 s"), ("lost", "its worker has ended with code -9")])
            for task in tasks:
                yield Ended(task, None, *next(reasons), seconds=2.5)

    def greedy(rows: int) -> Any:
        raise MemoryError

    cases = [Case({"rows": rows}, "trn2") for rows in (1, 2)]
    late, lost = run_cases(CheckedCall(scaled, "nki", arguments), cases, Engine()).rows
    assert (late["outcome"], late["error"], late["seconds"]) == ("timeout", "no end within 2 s", 2.5)
    assert (lost["outcome"], lost["error"]) == ("error", "its worker has ended with code -9")
    (row,) = outcomes(CheckedCall(scaled, "nki", greedy), {"rows": 1})
    assert (row["outcome"], row["error"]) == ("error", "MemoryError: more memory than a worker may have")


def test_a_name_may_be_a_constant_of_the_module_and_comes_back() -> None:
    """A block that is too wide for the tile's partitions changes nothing; the estimate differs."""
    call = CheckedCall(scaled, "nki", arguments, reference)
    small, large = outcomes(call, {"rows": 8, "columns": 256, "BLOCK": 16}, {"rows": 8, "columns": 256, "BLOCK": 256})
    assert (small["outcome"], large["outcome"]) == ("pass", "pass")
    assert small["estimate_us"] > large["estimate_us"]
    assert scaled_kernel.BLOCK == 128


@pytest.mark.process
def test_a_sweep_in_worker_processes_goes_on_where_it_was_ended(tmp_path: Path) -> None:
    """The rows come in the order of the space; a second call runs what is new, another kernel runs everything."""
    space = {"rows": [1, 2, 130], "factor": [0.5, 3.0]}
    given: dict[str, Any] = {"arguments": arguments, "reference": reference, "store": tmp_path / "s.db", "workers": 2}
    first = nkitools.sweep(scaled, space, chips=["trn1", "trn3"], **given)
    assert [(row["rows"], row["factor"], row["chip"]) for row in first.rows] == [
        (rows, factor, chip) for rows in (1, 2, 130) for factor in (0.5, 3.0) for chip in ("trn1", "trn3")
    ]
    assert first.outcomes == {"pass": 8, "finding": 4}
    assert first.stored == 0
    assert len(first.failed) == 4
    assert str(first) == "scaled: 12 cases: 4 finding, 8 pass"
    again = nkitools.sweep(scaled, {**space, "rows": [1, 2, 3, 130]}, chips=["trn1", "trn3"], **given)
    assert (again.stored, len(again.rows)) == (12, 16)
    same = nkitools.sweep(scaled, space, chips=["trn1", "trn3"], **given)
    assert same.rows == first.rows
    other = nkitools.sweep(scaled, space, chips=["trn1", "trn3"], **{**given, "reference": None})
    assert other.stored == 4  # those that break a rule: no reference decides that
    assert [row for row in other.rows if row["outcome"] == "finding"] == first.failed


@pytest.mark.parametrize(
    ("space", "given", "said"),
    [
        ({"rows": [1]}, {"arguments": None}, "nothing says the arguments"),
        ({"rows": [1], "outcome": [1]}, {}, "outcome of the space is what a row calls something else"),
        ({"rows": [1], "cols": [1]}, {}, "cols of the space: neither"),
        ({"rows": [1]}, {"engine": "dask"}, "engine is 'dask'"),
        ({"rows": [1]}, {"chips": ["trn9"]}, "trn9"),
        ({"rows": [1]}, {"address": "auto"}, "address names a cluster of Ray"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_runs(
    space: dict[str, Any], given: dict[str, Any], said: str
) -> None:
    """By its name."""
    with pytest.raises(ValueError, match=said):
        nkitools.sweep(scaled, space, **{"arguments": arguments, **given})


SPACE = {"rows": range(1, 21), "factor": [0.5, 2.0, 3.0]}


REPOSITORY = Path(__file__).parents[2]
# A process of its own: this one may have imported JAX, which forbids forks.
DRIVER = """
import sys, pathlib, nkitools
sys.path.insert(0, ".")
nkitools.install_stand_in()
from tests.sweeps.test_sweep import swept
swept(pathlib.Path(sys.argv[1]))
"""


def swept(store: Path) -> Any:
    return nkitools.sweep(scaled, SPACE, arguments=arguments, reference=reference, store=store, workers=2)


@pytest.mark.process
def test_a_killed_sweep_goes_on_and_has_every_case_once(tmp_path: Path) -> None:
    """The driver is killed twice while it writes; afterwards every case is there once, as in one go."""
    stored = [0]
    for _ in range(2):
        with started(python("-c", DRIVER, str(tmp_path / "s.db")), cwd=REPOSITORY, stdout=None, stderr=None) as driver:
            while driver.poll() is None and count(tmp_path / "s.db") <= stored[-1]:
                time.sleep(0.01)
            driver.kill()
        stored.append(count(tmp_path / "s.db"))
    assert 0 < stored[1] <= stored[2] <= 60  # the second one may have come to its end before the kill
    found = swept(tmp_path / "s.db")
    assert found.stored == stored[2]
    assert len(found.rows) == count(tmp_path / "s.db") == 60
    assert found.outcomes == {"pass": 60}


def count(path: Path) -> int:
    """How many cases another process has committed."""
    try:
        with Store(path, must_exist=True) as store:
            return len(store.rows())
    except StoreError:
        return 0


def test_an_engine_of_other_processes_takes_functions_by_their_names() -> None:
    """A call that was sent by name does the same; a function inside of another one is refused by its name."""
    import pickle

    call = pickle.loads(pickle.dumps(CheckedCall(scaled, "nki", arguments, reference, rtol=1e-3)))
    assert (call.kernel, call.arguments, call.rtol) == (scaled, arguments, 1e-3)

    def inner(rows: int) -> Any:
        return arguments(rows)

    with pytest.raises(ValueError, match=r"inner is not found again in another process"):
        pickle.dumps(CheckedCall(scaled, "nki", inner, reference))
