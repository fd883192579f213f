"""Cases out of a store: only those of which all is known that decides their results."""

from __future__ import annotations

import linecache
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.sweeps.checked_call import Case, CheckedCall
from nkitools.sweeps.local_engine import InProcess
from nkitools.sweeps.reuse import ReusingCall, Task
from nkitools.sweeps.sweep import StoreWarning, Sweep, run_cases

nkitools.install_stand_in(prefer="builtin")

FILE = """
import json
import os
import nki, nki.isa as nisa, nki.language as nl
import numpy as np

def read(name):
    with open(name) as file:
        return json.load(file)

{head}

@nki.jit
def k(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0={factor})
    nisa.dma_copy(dst=out, src=tile)
    return out

def arguments(rows):
    {arguments}

def reference(x):
    {reference}
"""
USUAL = {
    "head": "",
    "factor": "2.0",
    "arguments": "return (np.full((rows, 8), 3, np.float32),)",
    "reference": "return x * 2.0",
}


def module(folder: Path, **parts: str) -> Any:
    """Return a file of a kernel as an import makes it."""
    text = FILE.format(**{**USUAL, **parts})
    (folder / "reused.py").write_text(text)
    linecache.checkcache()
    made = types.ModuleType("reused")
    made.__file__ = str(folder / "reused.py")
    sys.modules["reused"] = made
    exec(compile(text, made.__file__, "exec"), vars(made))
    return made


def swept(made: Any, folder: Path, **given: Any) -> Sweep:
    """Sweep three cases in this process, with a store."""
    call = CheckedCall(made.k, "nki", given.pop("arguments", made.arguments), given.pop("reference", made.reference))
    cases = [Case({"rows": rows}, "trn2") for rows in (2, 4, 130)]
    return run_cases(call, cases, InProcess(), folder / "s.db")


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("reused", None)


def test_unchanged_cases_are_all_reused(tmp_path: Path) -> None:
    """Also where the module was made anew, and where its functions stand at other lines; rows are the stored ones."""
    first = swept(module(tmp_path), tmp_path)
    assert (first.outcomes, first.stored, first.each_time) == ({"pass": 2, "finding": 1}, 0, "")
    second = swept(module(tmp_path), tmp_path)
    assert (second.stored, second.rows) == (3, first.rows)
    moved = swept(module(tmp_path, head="\n\nUNREAD = 1"), tmp_path)
    assert moved.stored == 2  # a finding says its line, which is another one


def test_lines_of_findings_are_those_of_the_file(tmp_path: Path) -> None:
    """A finding of code that has moved is made anew."""
    first = swept(module(tmp_path), tmp_path).rows[-1]["findings"][0]["line"]
    assert swept(module(tmp_path, head="\n\n\n"), tmp_path).rows[-1]["findings"][0]["line"] == first + 3


@pytest.mark.parametrize(
    "parts",
    [
        {"head": "S = read('s.json')", "factor": "S[0]"},
        {"reference": "return x * read('s.json')[0]"},
        {"reference": "return x * float(os.environ['S'])"},
        {"arguments": "return (np.full((rows, 8), read('s.json')[0], np.float32),)",
         "reference": "return np.where(x == 2, x * 2, 7)"},
        {"arguments": "return (np.full((rows, 8), float(os.environ['S']), np.float32),)",
         "reference": "return np.where(x == 2, x * 2, 7)"},
        {"head": "def h():\n    return read('s.json')[0]", "factor": "h()"},
    ],
)  # fmt: skip
def test_files_and_variables_count_wherever_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: dict[str, str]
) -> None:
    """At the import, in the kernel's helper, in the reference and for the arguments: the second sweep is wrong."""
    for value, outcome in (("2", "pass"), ("5", "wrong")):
        (tmp_path / "s.json").write_text(f"[{value}]")
        monkeypatch.setenv("S", value)
        assert [row["outcome"] for row in swept(module(tmp_path, **parts), tmp_path).rows[:2]] == [outcome] * 2


def test_a_file_that_is_the_same_again_is_no_change(tmp_path: Path) -> None:
    """What a reference reads shows in the arrays that it returns, and these are compared."""
    (tmp_path / "s.json").write_text("[2]")
    parts = {"reference": "return x * read('s.json')[0]"}
    swept(module(tmp_path, **parts), tmp_path)
    (tmp_path / "s.json").write_text("[2.0]")
    assert swept(module(tmp_path, **parts), tmp_path).stored == 3


@pytest.mark.process
def test_a_kernel_that_reads_a_file_is_run_each_time_and_the_sweep_says_so(tmp_path: Path) -> None:
    """With the function and what it uses; one warning for a sweep."""
    (tmp_path / "s.json").write_text("[2]")
    made = module(tmp_path, head="def h(): return read('s.json')[0]", factor="h()")
    for _ in range(2):
        found = swept(made, tmp_path)
        assert (found.stored, found.each_time) == (0, "`read` calls open")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nkitools.sweep(
            made.k,
            {"rows": [2, 4]},
            arguments=made.arguments,
            reference=made.reference,
            store=tmp_path / "s.db",
            workers=1,
        )
    (said,) = [each for each in caught if each.category is StoreWarning]
    assert str(said.message) == "k: every sweep runs its cases again, whatever the store has: `read` calls open"


def test_errors_are_run_again(tmp_path: Path) -> None:
    """A missing file is there the next time."""
    made = module(tmp_path, reference="return np.load('g.npy')")
    assert [row["outcome"] for row in swept(made, tmp_path).rows[:2]] == ["error"] * 2
    np.save(tmp_path / "g.npy", np.full((2, 8), 6, np.float32))
    again = swept(made, tmp_path)
    assert [row["outcome"] for row in again.rows[:2]] == ["pass", "error"]  # four rows have no file that fits
    assert swept(made, tmp_path).stored == 2


def test_a_kernel_that_changes_what_it_reads_is_run_each_time(tmp_path: Path) -> None:
    """Its result may be another one in the next run."""
    found = swept(module(tmp_path, head="S = [1.0]", factor="S.append(2.0) or S[-1]"), tmp_path)
    assert found.each_time == "runs of the kernel change what it reads"


def test_arguments_at_random_are_never_the_same(tmp_path: Path) -> None:
    """A seed makes them so."""
    for seed, stored in (("", 0), ("7", 3)):
        made = module(tmp_path, arguments=f"return (np.random.default_rng({seed}).random((rows, 8), np.float32),)")
        swept(made, tmp_path)
        assert swept(made, tmp_path).stored == stored


def test_an_option_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under another NKI version the cases are others."""
    made = module(tmp_path)
    swept(made, tmp_path)
    monkeypatch.setenv("NKITOOLS_NKI_VERSION", "0.6")
    assert swept(made, tmp_path).stored == 0


def test_a_worker_that_has_another_program_says_so(tmp_path: Path) -> None:
    """A worker imports the file again: after an edit it would run what this process has never had."""
    made = module(tmp_path)
    call = CheckedCall(made.k, "nki", made.arguments, made.reference)
    found = ReusingCall(call, "code of another program")(Task("base", Case({"rows": 2}, "trn2"), frozenset()))
    assert found["outcome"] == "error"
    assert "has changed since it was imported; import it again" in found["error"]
