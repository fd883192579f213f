"""Every kernel of the measured table gets its verdict: the rule and the author's line, or silence in all modes."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

from nkitools.pallas import check
from nkitools.pallas.compiler import why_not
from tests.pallas import measured_right, measured_runs, measured_static  # noqa: F401 - their kernels enter the tables
from tests.pallas.measured import RIGHT, WRONG, Case


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_a_wrong_kernel_is_reported_at_its_line_and_nowhere_else(case: Case) -> None:
    """One cause gives one finding, whichever of the modes saw it; none where this compiler takes the kernel."""
    if case.compiled and why_not():
        pytest.skip(why_not())
    fn, inputs = case.make()
    run = check(fn, *inputs, modes=case.modes, chips=case.chips)
    errors = [finding for finding in run.findings if finding.severity == "error"]
    wanted = [(case.rule, case.file, case.line)] if case.is_wrong else []
    assert [(each.rule, each.file, each.line) for each in errors] == wanted


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.name)
def test_a_right_kernel_passes_in_silence(case: Case) -> None:
    """No mode of a check raises a false alarm, and the compiler takes the kernel where it is there."""
    fn, inputs = case.make()
    run = check(fn, *inputs)
    assert run.findings == []
    assert run.left_out == ({"aot": why_not()} if why_not() else {})
    assert run.compiled["v5e"].accepted is (None if why_not() else True)
