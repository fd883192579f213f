"""A saved run is the run: it answers as before."""

from __future__ import annotations

import dataclasses
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.columns import Columns
from nkitools.record.dataflow.accesses import Accesses
from nkitools.record.expected_outputs import Reference
from nkitools.record.run import Run
from nkitools.record.saved.loading import SavedError
from nkitools.record.source_sites import Site
from nkitools.record.watch.watching import watching
from nkitools.report.run_json import described

X = np.arange(512, dtype=np.float32).reshape(128, 4)


def printing(x: Any) -> Any:
    """Loops, prints, a full and a partial write, and a result that is returned twice."""
    out = nl.ndarray((2, *x.shape), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    for i in nl.affine_range(2):
        tile = nl.load(x)
        nl.device_print("tile", tile)
        for j in range(4):
            nisa.tensor_scalar(dst=tile[:, j : j + 1], data=tile[:, j : j + 1], op0=nl.add, operand0=float(i))
        nisa.dma_copy(dst=out[i], src=tile)
    return out, {"twice": out, "rows": 2}


def tall(x: Any) -> Any:
    """Breaks NK101, which is an error, and goes on where somebody allows it."""
    out = nl.ndarray((256, 4), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((256, 4), dtype=x.dtype)
    nisa.memset(tile, 0.0)
    nisa.dma_copy(dst=out, src=tile)
    return out


def failing(x: Any) -> Any:
    """A kernel's own exception."""
    nl.load(x)
    raise LookupError("mine")


def run_of(kernel: Any, *arrays: Any, **keywords: Any) -> Run:
    """The run, also where an exception ends it."""
    with nkitools.collect_runs() as runs, suppress(nkitools.KernelError, LookupError):
        nkitools.simulate(kernel, *arrays, **keywords)
    return runs[0]


def watched() -> Run:
    with watching(budget=6000):
        return run_of(printing, X)


@dataclasses.dataclass(eq=False)
class CountedRun(Run):
    """A run with something of its own, as those of custom operators have."""

    cores: tuple[Site, ...] = ()


def counted() -> Run:
    run = CountedRun("relu", "customop", outputs=X, cores=(Site("a.cpp", 3, None, "relu"),))
    run.reference = Reference((X + 1, "b"), rtol=0.5)
    return run


def allowed() -> Run:
    with nkitools.allow_findings("NK101", reason="tiled by the caller"):
        run = run_of(tall, X)
    run.expected.append(run.allowed[0])
    return run


RUNS = {
    "printing": lambda: run_of(printing, X),
    "grid": lambda: run_of(printing, X, grid=2),
    "ranks": lambda: run_of(printing, (X,), (X + 1,), ranks=2),
    "watched": watched,
    "allowed": allowed,
    "refused": lambda: run_of(tall, X),
    "reported": lambda: run_of(tall, X, rules="report", chip="trn1"),
    "failing": lambda: run_of(failing, X),
    "counted": counted,
    "elsewhere": lambda: Run("giou", "pallas-interpret", outputs=[X], error=KeyError("x")),
}


def arrays_of(outputs: Any) -> Any:
    """The outputs with arrays as what they are told apart by."""
    if isinstance(outputs, np.ndarray):
        return outputs.dtype, outputs.shape, outputs.tobytes()
    if isinstance(outputs, (list, tuple)):
        return [type(outputs), *map(arrays_of, outputs)]
    return {key: arrays_of(value) for key, value in outputs.items()} if isinstance(outputs, dict) else outputs


def assert_same(back: Run, run: Run) -> None:
    """Everything that a run answers is answered alike."""
    for name in ("kernel", "target", "chip", "precision", "settings", "findings", "expected", "allowed", "reasons"):
        assert getattr(back, name) == getattr(run, name), name
    assert arrays_of(back.outputs) == arrays_of(run.outputs)
    assert back.prints == run.prints
    assert [one.text() for one in back.prints] == [one.text() for one in run.prints]
    assert [(one.order, one.issued) for one in back.prints] == [(one.order, one.issued) for one in run.prints]
    assert list(back.instructions) == list(run.instructions)
    assert (back.rounded, back.findings_left_out) == (run.rounded, run.findings_left_out)
    assert described(back) == described(run)
    assert back.sources == run.sources
    assert len(back.all_records) == len(run.all_records)
    assert (back.record is None, len(back.records)) == (run.record is None, len(run.records))


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("compress", [False, True])
def test_a_run_comes_back_from_json(name: str, compress: bool) -> None:
    """Of every kind: grids, ranks, watched, with findings of each fate, ended by an error, run elsewhere."""
    run = RUNS[name]()
    text = run.to_json(compress=compress)
    assert text.isascii()
    back = Run.from_json(text)
    assert_same(back, run)
    assert_same(Run.from_json(back.to_json()), run)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("compress", [False, True])
def test_a_run_comes_back_from_a_file(name: str, compress: bool, tmp_path: Path) -> None:
    """Of every kind; and what came back is saved as the same file."""
    run = RUNS[name]()
    run.save(tmp_path / "run.npz", compress=compress)
    back = nkitools.load_run(tmp_path / "run.npz")
    assert_same(back, run)
    back.save(tmp_path / "again.npz", compress=compress)
    assert_same(nkitools.load_run(tmp_path / "again.npz"), run)


def test_a_file_is_read_with_numpy_and_json_alone(tmp_path: Path) -> None:
    """As the documentation says: the JSON of an archive of NumPy names where the bytes of an array are."""
    RUNS["printing"]().save(tmp_path / "run.npz", compress=False)
    with np.load(tmp_path / "run.npz") as file:
        plain, beside = json.loads(file["run.json"]), file["arrays"]
    stated = plain["prints"][0]["value"]["array"]
    found = beside[stated["at"] : stated["at"] + stated["bytes"]].view(stated["dtype"]).reshape(stated["shape"])
    np.testing.assert_array_equal(found, X)


def test_one_run_is_one_file(tmp_path: Path) -> None:
    """No date is in it: a run that is saved twice has the same bytes."""
    for name in ("one", "other"):
        RUNS["grid"]().save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_the_times_of_transfers_in_older_files_are_nanoseconds() -> None:
    """These files have them as cycles; a run out of one has the instructions and the estimate of the run itself."""
    run = RUNS["printing"]()
    plain = json.loads(run.to_json())
    plans = [plan for record in plain["records"] for plan in record["plans"]]
    for plan in plans:
        plan["cycles"] += plan.pop("nanoseconds")
    back = Run.from_json(json.dumps(plain))
    assert "dma" in {plan["engine"] for plan in plans}
    assert [(one.cycles, one.nanoseconds) for one in back.instructions] == [
        (one.cycles, one.nanoseconds) for one in run.instructions
    ]
    assert back.estimate().latency_us == run.estimate().latency_us


def test_kept_writes_come_back() -> None:
    """By value while the budget lasted, then as summaries; those of arguments and results, too."""
    run = watched()
    back = Run.from_json(run.to_json())
    assert run.reduced_writes > 0
    assert back.reduced_writes == run.reduced_writes
    (record,), (own,) = back.all_records, run.all_records
    for name in ("writes", "inputs", "results"):
        mine, theirs = getattr(record, name), getattr(own, name)
        assert len(mine) == len(theirs) > 0
        for one, other in zip(mine, theirs, strict=True):
            for part in ("position", "tensor", "dtype", "shape", "program", "loops", "file", "line", "strides"):
                assert getattr(one, part) == getattr(other, part)
            assert arrays_of(one.value) == arrays_of(other.value)
            assert (one.summary.minimum, one.summary.nan) == (other.summary.minimum, other.summary.nan)
            assert arrays_of(one.summary.blocks.mean) == arrays_of(other.summary.blocks.mean)
            assert record.storages[one.storage] == own.storages[other.storage]


def test_questions_of_a_whole_run_are_answered_alike() -> None:
    """The columns of the record, the names of storages, programs, loops, and where the outputs lie."""
    run = RUNS["grid"]()
    mine, own = Run.from_json(run.to_json()).record, run.record
    assert mine is not None
    assert own is not None
    for name in ("byte_offsets", "layouts", "positions"):
        np.testing.assert_array_equal(getattr(Columns(mine), name), getattr(Columns(own), name))
    kinds = [Accesses(record, Columns(record)).kinds for record in (mine, own)]
    np.testing.assert_array_equal(*kinds)
    assert [mine.name_of(number) for number in mine.storages] == [own.name_of(number) for number in own.storages]
    assert (mine.programs, mine.states) == (own.programs, own.states)
    assert [each[1:] for each in mine.outputs] == [each[1:] for each in own.outputs]


def test_the_error_that_ended_a_run_is_reported() -> None:
    """A rule's error is a KernelError again, with the run's own finding; others have their class's name and text."""
    refused = Run.from_json(RUNS["refused"]().to_json())
    assert isinstance(refused.error, nkitools.KernelError)
    assert refused.error.finding is refused.findings[-1]
    failed = Run.from_json(RUNS["failing"]().to_json())
    assert isinstance(failed.error, SavedError)
    assert (type(failed.error).__name__, str(failed.error)) == ("LookupError", "mine")


def test_what_only_some_runs_have_comes_back() -> None:
    """What the outputs should have been; the fields of a run of another kind, by their names."""
    back = Run.from_json(counted().to_json())
    assert back.reference is not None
    assert arrays_of(back.reference.values) == arrays_of((X + 1, "b"))
    assert (back.reference.rtol, back.reference.atol) == (0.5, None)
    cores: Any = getattr(back, "cores")  # noqa: B009
    assert (cores[0].file, cores[0].line) == ("a.cpp", 3)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["scale", "copy", "reduce", "print"]),
        st.integers(0, 96).map(lambda start: start // 32 * 32),
        st.integers(0, 7),
        st.integers(1, 8),
    ),
    max_size=8,
)


def made_of(steps: list[Any]) -> Any:
    """A kernel that takes these steps on slices of a tile."""

    def kernel(x: Any) -> Any:
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile, sums = nl.load(x), nl.ndarray((128, 1), dtype=nl.float16)
        for turn in nl.affine_range(2):
            for what, row, column, width in steps:
                part = tile[row : row + 32, column : column + width] if column + width <= 8 else tile[row : row + 32]
                if what == "scale":
                    nisa.tensor_scalar(dst=part, data=part, op0=nl.multiply, operand0=turn + 0.5)
                elif what == "copy":
                    nisa.dma_copy(dst=part, src=part)
                elif what == "reduce":
                    nisa.tensor_reduce(dst=sums[row : row + 32], op=nl.add, data=part, axis=1)
                else:
                    nl.device_print(what, part)
        nisa.dma_copy(dst=out, src=tile)
        return out

    return kernel


@given(steps=STEPS)
def test_whatever_was_issued_comes_back(steps: list[Any]) -> None:
    """Of kernels made at random: saving and loading is the identity."""
    run = nkitools.simulate(made_of(steps), np.arange(1024, dtype=np.float32).reshape(128, 8), rules="report")
    assert_same(Run.from_json(run.to_json()), run)


def test_twenty_thousand_instructions_take_little(tmp_path: Path) -> None:
    """A file of less than a megabyte beside the arrays, which has all of them."""

    def many(x: Any) -> Any:
        tile = nl.load(x)
        for turn in nl.affine_range(2500):
            for column in range(8):
                part = tile[:, column : column + 1]
                nisa.tensor_scalar(dst=part, data=part, op0=nl.add, operand0=float(turn))
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    run = nkitools.simulate(many, np.zeros((128, 8), np.float32))
    run.save(tmp_path / "many.json")
    assert (tmp_path / "many.json").stat().st_size < 1e6
    back = nkitools.load_run(tmp_path / "many.json")
    assert len(back.instructions) == len(run.instructions) > 20_000
    assert back.instructions[12_345] == run.instructions[12_345]
