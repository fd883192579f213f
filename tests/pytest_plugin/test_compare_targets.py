"""--nki-compare: the same test on two targets, and where their results diverge."""

from __future__ import annotations

from typing import Any

import pytest

TEST = """
def test_double(run_kernel):
    run_kernel(double, X)
"""


def test_simulator_and_device_agree(inf2: Any) -> None:
    """Both variants run, each in its process, and their outputs are compared."""
    result = inf2.run("--nki-compare", "sim,hw", test=TEST)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*nki agreement of sim and hw*", "kernel calls that agree: 1, that differ: 0"])
    assert result.ret == pytest.ExitCode.OK


def test_a_wrong_device_is_found_at_element_and_line(inf2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session fails though each test passed: the first element, its tile and the line that wrote it are named."""
    monkeypatch.setenv("FAKE_NEURON", "wrong")
    result = inf2.run("--nki-compare", "sim,hw", test=TEST)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_double: double differs",
            "*element ?0, 0? (0): 0.0 and 1.0; 8 of 8 differ, by up to 1",
            "*written by dma_copy at *test_it.py:11, element ?0, 0? of a tile ?2, 4?; in the second unknown",
            "*nothing that nkitools knows explains it",
            "kernel calls that agree: 0, that differ: 1",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_awss_simulator_is_a_second_opinion(inf2: Any) -> None:
    """The [sim] tests run once more under AWS's packages, in a process of their own."""
    result = inf2.run("-m", "sim", "--nki-compare", "sim,official", test=TEST)
    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines(["*nki agreement of sim and official*", "kernel calls that agree: 1, that differ: 0"])


def test_what_ran_on_one_side_only_is_counted(machine: Any) -> None:
    """On a laptop the device's side is skipped: nothing was compared, and the session says so."""
    result = machine(nodes=()).run("--nki-compare", "sim,hw", test=TEST)
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "kernel calls that agree: 0, that differ: 0",
            "kernel calls on sim alone, compared with nothing: 1 (pytest -rs says why tests are skipped)",
        ]
    )
    assert result.ret == pytest.ExitCode.OK


def test_a_test_that_fails_in_awss_simulator_alone_fails_the_session(
    inf2: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing could be compared: that is no agreement, though the test passed here."""
    monkeypatch.setenv("FAKE_NEURON", "lame")
    result = inf2.run_apart("-m", "sim", "--nki-compare", "sim,official", test=TEST)
    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines(["test_it.py::test_double?sim?: AWS's simulator: *", "*the simulator gives up*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED
