"""run_kernel where pytest makes no variants of a test: in a unittest.TestCase, and by getfixturevalue."""

from __future__ import annotations

from typing import Any

CASE = """
import unittest

class TestDouble(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _take(self, run_kernel, device_prints):
        self.run_kernel, self.prints = run_kernel, device_prints

    def test_it(self):
        assert self.run_kernel(double, 4) == 8
        assert len(self.prints) == 1
"""


def test_a_case_takes_fixtures_by_an_autouse_fixture(author: Any) -> None:
    """It runs in simulation, is selected by the mark, and by hw alone is left out."""
    author.run(test=CASE).assert_outcomes(passed=1)
    author.run("-m", "sim", test=CASE).assert_outcomes(passed=1)
    author.run("-m", "hw", test=CASE).assert_outcomes(deselected=1)


def test_a_case_for_hardware_is_a_usage_error(author: Any) -> None:
    """It would run in simulation in silence."""
    result = author.run(test=CASE.replace("    def test_it", "    @pytest.mark.hw\n    def test_it"))
    result.stderr.fnmatch_lines(["*TestDouble::test_it: a method of unittest.TestCase has no [[]hw[]] variant*"])


def test_a_fixture_may_be_asked_for_while_the_test_runs(author: Any) -> None:
    """The plain test gets a simulation."""
    test = "def test_it(request):\n    assert request.getfixturevalue('run_kernel')(double, 4) == 8\n"
    author.run(test=test).assert_outcomes(passed=1)


def test_other_parameters_keep_their_place(author: Any) -> None:
    """The target comes first in the names, and a fixture of the module's scope has each target once."""
    result = author.run(
        "-v",
        "-m",
        "sim",
        test="""
@pytest.fixture(scope="module", params=["a", "b"])
def doubled(request, run_kernel):
    return run_kernel(double, request.param)

@pytest.mark.parametrize("n", [1, 2])
def test_it(doubled, n):
    assert doubled in ("aa", "bb")
""",
    )
    result.assert_outcomes(passed=4)
    names = sorted(line.split()[0].partition("::")[2] for line in result.outlines if "PASSED" in line)
    assert names == ["test_it[sim-a-1]", "test_it[sim-a-2]", "test_it[sim-b-1]", "test_it[sim-b-2]"]
