"""Two runs side by side: where they diverge first, who wrote that, what only one has."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.prints.device_print import Print
from nkitools.record.run import Run
from nkitools.record.watch.watching import watching
from nkitools.report.run_diff import compare_runs, instruction_counts
from tests.history.test_races import line_of
from tests.report.test_run_counts import finding

X = np.arange(1, 4 * 128 * 8 + 1, dtype=np.float32).reshape(512, 8)


def scaled(x: Any, factors: Any = (2.0, 2.0, 2.0, 2.0)) -> Any:
    """Each row tile times its factor, printed and stored in two halves."""
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(4):
        rows = slice(i * 128, i * 128 + 128)
        tile = nl.load(x[rows, :])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=factors[int(i)])
        nl.device_print("tile", tile)
        nl.store(out[rows, 0:4], tile[:, 0:4])
        nl.store(out[rows, 4:8], tile[:, 4:8])
    return out


WRONG = (2.0, 2.0, 3.0, 2.0)


def through_a_file(run: Run) -> Run:
    return Run.from_json(run.to_json())


def as_it_is(run: Run) -> Run:
    return run


@pytest.fixture(params=[as_it_is, through_a_file])
def runs(request: pytest.FixtureRequest) -> tuple[Run, Run]:
    """One run, and one with a planted bug in the third turn, as they come and out of files."""
    simulated = (nkitools.simulate(scaled, X, factors, nki_version="0.6") for factors in ((2.0,) * 4, WRONG))
    return tuple(map(request.param, simulated))  # type: ignore


def test_equal_runs_are_the_same(runs: tuple[Run, Run]) -> None:
    """Nothing is told of a run and itself, or of one and its copy."""
    for one, other in ((runs[0], runs[0]), (runs[0], through_a_file(runs[0]))):
        found = compare_runs(one, other)
        assert found.is_same
        plain = found.as_plain()
        assert plain.pop("same") is True
        assert not any(any(part) if isinstance(part, (list, tuple)) else part for part in plain.values())


def test_the_first_diverging_print_and_element_and_who_wrote_it(runs: tuple[Run, Run]) -> None:
    """Prefix, turn, element and values; the output's element with the line, the turn and the tile that wrote it."""
    found = compare_runs(*runs)
    assert not found.is_same
    assert found.prints is not None
    assert found.prints.place is not None
    assert found.prints.what == "print 'tile'"
    assert ", i=2, " in found.prints.place.text()
    values = found.prints.values
    assert values is not None
    assert (values.index, values.first, values.second) == ((0, 0), str(2 * X[256, 0]), str(3 * X[256, 0]))
    assert (values.different, values.size, values.worst) == (1024, 1024, X[383, 7])
    (output,) = found.outputs
    assert output.values is not None
    assert (output.what, output.values.index, output.values.flat) == ("outputs", (256, 0), 2048)
    line = line_of(scaled, "0:4], tile")
    assert output.writers is not None
    assert output.writers.text() == f"dma_copy at {__file__}:{line}, i=2, element [0, 0] of a tile [128, 4]"
    assert found.instructions == {}


def test_the_second_half_is_another_line(runs: tuple[Run, Run]) -> None:
    """The writer is that of the element, not of the tensor."""
    one = runs[0]
    other = replace(one, outputs=np.where(np.arange(4096).reshape(512, 8) == 130 * 8 + 6, -1, one.outputs))
    (output,) = compare_runs(one, other).outputs
    assert output.writers is not None
    assert output.values is not None
    line = line_of(scaled, "4:8], tile")
    assert output.writers.text() == f"dma_copy at {__file__}:{line}, i=1, element [2, 2] of a tile [128, 4]"
    assert output.values.text() == f"element [130, 6] (1046): {2 * X[130, 6]} and -1.0; 1 of 4096 differ, by up to 2095"


def test_the_first_diverging_write_where_values_are_kept() -> None:
    """Before any print or output: the very instruction that went wrong."""
    with watching():
        runs = [nkitools.simulate(scaled, X, factors) for factors in ((2.0,) * 4, WRONG)]
    found = compare_runs(*map(through_a_file, runs))
    assert found.writes is not None
    assert found.writes.place is not None
    assert found.writes.what == "write to tile"
    assert found.writes.place.text() == f"tensor_scalar at {__file__}:{line_of(scaled, 'tensor_scalar')}, i=2"


def test_two_precisions_are_the_same_within_the_coarser_dtype() -> None:
    """bfloat16 against what full precision keeps; not within a tolerance of nothing."""
    x = (X / 7).astype(ml_dtypes.bfloat16)
    precise = nkitools.simulate(scaled, x)
    with nkitools.facts.options.override(precision="full"):
        full = nkitools.simulate(scaled, x)
    assert full.outputs.dtype == np.float32
    found = compare_runs(precise, full)
    assert found.is_same
    assert found.about == {"precision": ("precise", "full")}
    third = nkitools.simulate(scaled, x, (1 / 3,) * 4)
    with nkitools.facts.options.override(precision="full"):
        exact = nkitools.simulate(scaled, x, (1 / 3,) * 4)
    assert compare_runs(third, exact).is_same
    assert not compare_runs(third, exact, rtol=0, atol=0).is_same


def prints(*values: Any, prefix: str = "x", **more: Any) -> Run:
    made = [
        Print(prefix, np.asarray(value), loops={"i": turn}, order=turn, **more) for turn, value in enumerate(values)
    ]
    return Run("k", "builtin", prints=made)


def test_prints_are_matched_by_what_they_are_not_by_their_order() -> None:
    """One more print in the midst is told, and moves none of the others."""
    one, other = prints([1.0], [2.0], [3.0]), prints([1.0], [2.0], [3.0])
    other.prints.insert(1, Print("new", np.ones(2), file="a.py", line=3))
    found = compare_runs(one, other)
    assert found.prints is None
    assert found.prints_only == ([], ["new [program 0, a.py:3] float64 [2]"])
    assert not found.is_same


def test_a_device_that_tells_no_counters_is_compared_in_order() -> None:
    """Then the prints of a prefix are matched one after the other."""
    device = Run("k", "neuron", prints=[Print("x", np.array([value])) for value in (1.0, 2.0, 4.0)])
    found = compare_runs(prints([1.0], [2.0], [3.0]), device)
    assert found.prints is not None
    assert found.prints.values is not None
    assert (found.prints.values.first, found.prints.values.second) == ("3.0", "4.0")
    assert found.prints_only == ([], [])


def test_masked_elements_of_prints_do_not_count() -> None:
    """What a mask leaves out has no value; another mask is a difference."""
    mask = np.array([False, True])
    one, other = prints([1.0, 5.0], mask=mask), prints([1.0, 9.0], mask=mask)
    assert compare_runs(one, other).is_same
    found = compare_runs(one, prints([1.0, 5.0])).prints
    assert found is not None
    assert "masked" in found.why


def test_shapes_and_missing_outputs_are_reported() -> None:
    """What cannot be compared element by element."""
    one = Run("k", "builtin", outputs=(np.ones((2, 3)), {"a": np.ones(2), "b": 1}))
    other = Run("k", "builtin", outputs=(np.ones((3, 2)), {"a": np.ones(2), "c": 1}))
    told = {each.what: each.why for each in compare_runs(one, other).outputs}
    assert told == {
        "outputs[0]": "shapes [2, 3] and [3, 2]",
        "outputs[1]['b']": "only the first run has it",
        "outputs[1]['c']": "only the second run has it",
    }
    found = compare_runs(prints([1.0]), prints([[1.0]])).prints
    assert found is not None
    assert found.why == "shapes [1] and [1, 1]"
    assert compare_runs(Run("k", "b", outputs=[None, "a", 1]), Run("k", "b", outputs=[None, "a", 1])).is_same
    texts = compare_runs(Run("k", "b", outputs=["a", None]), Run("k", "b", outputs=["b", np.ones(1)])).outputs
    assert [each.why for each in texts] == ["'a' and 'b'", "NoneType and ndarray"]


def test_nan_is_a_difference_only_where_it_is_new() -> None:
    """And then the distance is none that a number could tell."""
    one = Run("k", "builtin", outputs=np.array([np.nan, 1.0, np.inf]))
    assert compare_runs(one, Run("k", "builtin", outputs=one.outputs.copy())).is_same
    (found,) = compare_runs(one, Run("k", "builtin", outputs=np.array([np.nan, np.nan, np.inf]))).outputs
    assert found.values is not None
    assert (found.values.index, found.values.worst) == ((1,), None)
    json.dumps(compare_runs(one, Run("k", "b", outputs=np.array([1.0, 1, 1]))).as_plain(), allow_nan=False)


def test_findings_that_only_one_has() -> None:
    """By rule, function and message, wherever the lines have gone; as often as there are more of them."""
    base = finding()
    one = Run("k", "builtin", findings=[base, replace(base, message="other"), replace(base, message="other", line=9)])
    other = Run("k", "builtin", findings=[replace(base, line=base.line + 30)])
    found = compare_runs(one, other)
    assert found.findings_only == ([replace(base, message="other").text() + " (x2)"], [])
    assert not found.is_same


def test_what_was_not_simulated_has_no_findings_to_compare(runs: tuple[Run, Run]) -> None:
    """A device's run is compared by what it gives."""
    device = Run("scaled", "neuron", outputs=runs[0].outputs, prints=list(runs[0].prints))
    simulated = replace(runs[0], findings=[finding()])
    found = compare_runs(simulated, device)
    assert found.is_same
    assert found.notes == ["the second run was not simulated by nkitools: findings and instructions are not compared"]


def test_endings_and_instruction_counts_are_reported(runs: tuple[Run, Run]) -> None:
    """An error decides; other counts of instructions are told only."""
    found = compare_runs(runs[0], replace(runs[0], error=KeyError("x")))
    assert found.ended == ("ended well", "ended by KeyError: 'x'")
    assert not found.is_same

    def shorter(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for i in nl.affine_range(4):
            tile = nl.load(x[i * 128 : i * 128 + 128, :])
            nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
            nl.device_print("tile", tile)
            nl.store(out[i * 128 : i * 128 + 128, :], tile)
        return out

    run = nkitools.simulate(shorter, X, nki_version="0.6")
    found = compare_runs(runs[0], run)
    assert found.instructions == {"dma_copy (dma)": (12, 8)}
    assert found.is_same
    assert instruction_counts(run) == {"dma_copy (dma)": 8, "tensor_scalar (vector)": 4}


def test_ranks_have_writers_of_their_own() -> None:
    """The writer of rank 1's output is looked up in rank 1's record."""
    runs = [nkitools.simulate(scaled, (X,), (x,), ranks=2) for x in (X, np.where(X[5, 5] == X, 0, X))]
    (output,) = compare_runs(*map(through_a_file, runs)).outputs
    assert output.what == "outputs[1]"
    assert output.writers is not None
    assert "rank 1, i=0, element [5, 1] of a tile [128, 4]" in output.writers.text()


def test_what_is_no_run_is_refused(runs: tuple[Run, Run]) -> None:
    """A path or an array in the place of a run: what was given, and where a run is had from."""
    with pytest.raises(TypeError, match=r"^compare_runs takes a run, it is given str.*nkitools.load_run\(path\)"):
        compare_runs(runs[0], "after.json")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^a page takes a run, it is given ndarray"):
        nkitools.page(X)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^a timeline takes a run, it is given str"):
        nkitools.save_timeline("before.json", "before.pftrace")  # type: ignore[arg-type]
