"""--nki-compare: the same test on two targets, and where their results diverge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes import machines

HEADER = """
import numpy as np
import nki
import nki.language as nl

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.add(tile, tile))
    return out

X = np.arange(8, dtype=np.float32).reshape(2, 4)

"""
TEST = """
def test_double(run_kernel):
    run_kernel(double, X)
"""


@pytest.fixture
def inf2(bare_author: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """An author on an instance with one Inferentia2 and AWS's nki, both fake."""
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(machines.neuron_root(tmp_path / "root")))
    monkeypatch.setenv("PYTHONPATH", machines.packages("aws"))
    bare_author.header = HEADER
    return bare_author


def test_simulator_and_device_agree(inf2: Any) -> None:
    """Both variants run, each in its process, and their outputs are compared."""
    result = inf2.run_apart("--nki-compare", "sim,hw", test=TEST)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*nki agreement of sim and hw*", "kernel calls that agree: 1, that differ: 0"])
    assert result.ret == pytest.ExitCode.OK


def test_a_wrong_device_is_found_at_element_and_line(inf2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session fails though each test passed: the first element, its tile and the line that wrote it are named."""
    monkeypatch.setenv("FAKE_NEURON", "wrong")
    result = inf2.run_apart("--nki-compare", "sim,hw", test=TEST)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_double: double differs",
            "*element ?0, 0? (0): 0.0 and 1.0; 8 of 8 differ, by up to 1",
            "*written by dma_copy at *test_it.py:9, element ?0, 0? of a tile ?2, 4?; in the second nobody knows whom",
            "*nothing that nkitools knows explains it",
            "kernel calls that agree: 0, that differ: 1",
        ]
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_awss_simulator_is_a_second_opinion(inf2: Any) -> None:
    """The [sim] tests run once more under AWS's packages, in a process of their own."""
    result = inf2.run_apart("-m", "sim", "--nki-compare", "sim,official", test=TEST)
    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines(["*nki agreement of sim and official*", "kernel calls that agree: 1, that differ: 0"])
