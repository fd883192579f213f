"""The first line that a bisection names, of kernels that are wrong in their mathematics alone."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nkitools
from nkitools.dialects.modern import isa as nisa
from nkitools.dialects.modern import language as nl
from nkitools.record.expected_outputs import Reference
from nkitools.why.bisection import bisect, bisection_of_run
from tests import cases
from tests.why.mistakes import right_kernels
from tests.why.mistakes.planted import MISTAKES, Mistake
from tests.why.mistakes.references import CASES


@cases.each("name", CASES)
def test_right(name: str) -> None:
    """Without a mistake a kernel computes what NumPy does, and no rule speaks."""
    case = CASES[name]
    run = nkitools.simulate(getattr(right_kernels, name), *case.inputs())
    want = case.reference(*(each.astype(np.float64) for each in case.inputs()))
    np.testing.assert_allclose(run.outputs, want, rtol=1e-4, atol=1e-4)
    assert run.findings == []


@pytest.mark.soak
@cases.each(
    "mistake", MISTAKES if cases.FULL else MISTAKES[::13], show=lambda mistake: f"{mistake.kernel}: {mistake.kind}"
)
def test_wrong(mistake: Mistake, tmp_path: Path) -> None:
    """With a mistake the result is wrong, and no rule calls it an error."""
    case, module = CASES[mistake.kernel], mistake.module(tmp_path)
    run = nkitools.simulate(getattr(module, mistake.kernel), *case.inputs(), rules="report")
    assert not np.allclose(run.outputs, case.reference(*case.inputs()), rtol=1e-3, atol=1e-3)
    assert [each for each in run.findings if each.severity == "error"] == []


def named_line(mistake: Mistake, directory: Path, *, expects: bool) -> int:
    """The line that a bisection of a kernel with a mistake names first."""
    case, module = CASES[mistake.kernel], mistake.module(directory)
    expect = case.expect if expects else None
    return bisect(getattr(module, mistake.kernel), *case.inputs(), reference=case.reference, expect=expect).line


# 0: a lost tail; 11: a stale scale; 28: a missing rescale; 40: a wrong tile; 44: known to be missed
LINES = [(0, False), (11, False), (28, True), (40, False), (44, True)]


@pytest.mark.soak
@cases.each("number, expects", LINES if cases.FULL else [LINES[1], LINES[4]])
def test_the_line_is_named(number: int, expects: bool, tmp_path: Path) -> None:
    """The wrong line stands first, but for one mistake."""
    found = named_line(MISTAKES[number], tmp_path, expects=expects)
    assert (found == MISTAKES[number].wrong_line()) == (number != 44)


def first_columns(x: Any) -> Any:
    """Return half of the columns, twice: the second half is lost."""
    out = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
    half = x.shape[1] // 2
    for at in range(2):
        nisa.dma_copy(out[:, at * half : (at + 1) * half], x[:, 0:half])
    return out


def test_large_arguments_are_looked_at_where_they_have_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not copied: a second run shows that they are as they were, and nothing is said once they are not."""
    monkeypatch.setattr("nkitools.launch.second_run.SMALL", 0)
    x = np.random.default_rng(9).standard_normal((128, 64)).astype(np.float32)
    run = nkitools.simulate(first_columns, x)
    run.reference = Reference(x.copy(), function=lambda each: each)
    found = bisection_of_run(run)
    assert found is not None
    assert found.line == first_columns.__code__.co_firstlineno + 5
    x[:, :8] += 1
    assert bisection_of_run(run) is None


@pytest.mark.soak
@pytest.mark.parametrize(("expects", "goal"), [(False, 0.4), (True, 0.85)], ids=["reference", "expect"])
def test_shares_of_named_lines(expects: bool, goal: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The wrong line stands first for that share of the mistakes, which were fixed before anything was measured.

    First measured, with the reference alone and with intermediates: 23 and 29 of 51; last: 38 and 45.
    """
    chosen = MISTAKES if cases.FULL else MISTAKES[40:41]
    found = [(each, named_line(each, tmp_path, expects=expects), each.wrong_line()) for each in chosen]
    missed = [f"{each.kernel}: {each.kind}: line {line}, not {wrong}" for each, line, wrong in found if line != wrong]
    share = 1 - len(missed) / len(found)
    with capsys.disabled() if cases.FULL else nullcontext():
        print(f"\nwrong line named first: {share:.0%} of {len(found)}; missed:", *missed, sep="\n  ")
    assert share >= goal
