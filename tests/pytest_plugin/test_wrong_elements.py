"""A failed assertion on a simulated result says which elements are wrong, what wrote them, and of what."""

from __future__ import annotations

from importlib.metadata import entry_points
from textwrap import dedent
from typing import Any

# pytester forgets what a session in this process imported, and classes would be there twice.
import nki.isa
import nki.language  # noqa: F401
import pytest

import nkitools.launch.simulate
import nkitools.pytest_plugin.wrong_elements
import nkitools.why.narrative  # noqa: F401
from tests.processes import LEAN
from tests.pytest_plugin.test_reports import block

KERNEL = """
import numpy as np
import nkitools; nkitools.install_stand_in()
import nki.isa as nisa
import nki.language as nl

def doubled(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for m in range(2):
        tile = nl.ndarray((4, 4), x.dtype)
        nisa.dma_copy(tile, x[4 * m : 4 * m + 4])
        nisa.tensor_scalar(tile, tile, nl.multiply, 2.0 + m)
        nisa.dma_copy(out[4 * m : 4 * m + 4], tile)
    return out

def run(kernel, x):
    return nkitools.simulate(kernel, x).outputs

X = np.ones((8, 4), np.float32)
"""

FIVE = [
    "first wrong: out[4, 0] is 3.0, expected 2.0; 16 of 32 differ",
    "worst wrong: out[4, 0] is 3.0, expected 2.0",
    "out[4, 0] was written by doubling.py:12 dma_copy (turn m=1)",
    "made from what doubling.py:11 tensor_scalar (turn m=1), doubling.py:10 dma_copy (turn m=1) wrote",
]


@pytest.mark.parametrize(
    "assertion",
    [
        "np.testing.assert_allclose(run(doubled, X), 2 * X)",
        "np.testing.assert_array_equal(run(doubled, X), 2 * X)",
        "found, wanted = run(doubled, X), 2 * X; assert np.allclose(found, wanted)",
        "found, wanted = run(doubled, X), 2 * X; assert (wanted == found).all()",
    ],
)
def test_five_lines(author: Any, assertion: str) -> None:
    """By functions that compare arrays and by the names of an assertion alike."""
    author.write(doubling=KERNEL)
    test = f"from doubling import *\ndef test_it():\n    {assertion}\n"
    result = author.run("--nki-why-budget=0", test=test.replace("; ", "\n    "))
    result.assert_outcomes(failed=1)
    lines = block(result, "nki why")
    assert lines[:4] == FIVE
    assert lines[4].startswith("more: ")
    assert lines[4].endswith("run_kernel.run.why(0, (4, 0))")


def test_the_command_tells_more(author: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run of the failed test is in pytest's cache; the command that is printed reads it there."""
    from click.testing import CliRunner

    from nkitools.cli import main

    author.write(doubling=KERNEL)
    body = "out = run(doubled, X)\n    want = 2 * X\n    assert (out == want).all()\n"
    author.write(test_it=f"from doubling import *\ndef test_it():\n    {body}")
    is_installed = any(entry.name == "nkitools" for entry in entry_points(group="pytest11"))
    result = author.pytester.runpytest_subprocess(
        *LEAN, "--nki-why-budget=0", *([] if is_installed else ["-p", "nkitools.pytest_plugin"])
    )
    command = block(result, "nki why")[4].removeprefix("more: ").partition(";")[0].split()
    assert command[:2] == ["nkitools", "why"]
    monkeypatch.chdir(author.pytester.path)
    done = CliRunner().invoke(main, command[1:], catch_exceptions=False)
    assert done.exit_code == 0
    assert "argument: x[4, 0] (1 element)" in done.output


@pytest.mark.parametrize(
    ("args", "assertion"),
    [
        (("--nki-why=off",), "np.testing.assert_allclose(run(doubled, X), 2 * X)"),
        ((), "assert run(doubled, X).shape == (1, 1)"),
        ((), "raise ValueError(run(doubled, X))"),
    ],
)
def test_nothing_is_said(author: Any, args: tuple[str, ...], assertion: str) -> None:
    """Where the option is off, and of failures that compare no result."""
    author.write(doubling=KERNEL)
    test = f"from doubling import *\ndef test_it():\n    {assertion}\n"
    result = author.run(*args, test=test)
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*nki why*")


SUMS = """
import numpy as np
import nki.isa as nisa
import nki.language as nl

def summed(x):
    out = nl.ndarray((x.shape[0], 1), nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((x.shape[0], 1), nl.bfloat16)
    nisa.tensor_reduce(total, nl.add, nl.load(x), axis=1)
    nisa.dma_copy(out, total)
    return out

X = np.linspace(0, 1, 400, dtype=np.float32).reshape(4, 100)
def right(x):
    return x.sum(axis=1, keepdims=True)
"""


def test_a_tolerance_that_is_too_small(author: Any) -> None:
    """A failed comparison says that rounding alone explains the difference."""
    author.write(summing=SUMS)
    test = """
        import nkitools
        from summing import *

        def test_fails():
            np.testing.assert_allclose(nkitools.simulate(summed, X).outputs, right(X), rtol=1e-4)
    """
    result = author.run(test=dedent(test))
    result.assert_outcomes(failed=1)
    (line,) = [each for each in block(result, "nki why") if each.startswith("tolerance: ")]
    assert "rtol=0.0001, atol=0 is tighter than the rounding of this run's dtypes and sums" in line
