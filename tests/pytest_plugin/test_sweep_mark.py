"""The mark `nki_sweep`: a test for each case of a space."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

# The sessions run in this process, and pytester forgets what they import: NumPy and SciPy cannot come twice.
import nkitools.strategies
import nkitools.sweeps.sweep  # noqa: F401
from tests.house.test_examples import blocks

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "sweep.md"


@pytest.fixture
def scaled(bare_author: Any) -> tuple[Any, str]:
    """An author with the kernel of the page about sweeps, and the page's test."""
    files = {each.partition("\n")[0]: each for each in blocks(PAGE, "python")}
    bare_author.write(scaled=files["# scaled.py"])
    return bare_author, files["# test_scaled.py"]


def test_each_case_is_a_test_with_a_name(scaled: tuple[Any, str]) -> None:
    """One that does not pass fails with its finding; the test's own assertions count too."""
    author, text = scaled
    result = author.run("-m", "sim", "-v", test=text)
    result.assert_outcomes(passed=4)
    assert "test_it.py::test_scaled[rows=1-columns=300-seed=0-trn1] PASSED" in result.stdout.str()
    result = author.run("-m", "sim", test=text.replace("[1, 128]", "[1, 129]"))
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["rows=129-columns=300-seed=0-trn1: finding", "*scaled.py:*: NK101 *"])
    author.run(test=text.replace("< 100", "< 0")).assert_outcomes(failed=4)


def test_a_stored_case_is_not_run_again(scaled: tuple[Any, str]) -> None:
    """The store is that of nkitools.sweep."""
    author, text = scaled
    stored = text.replace("chips=", "store='cases.db', chips=").replace('["trn1", "trn3"]', '["trn1"]')
    assert "2 kernels run" in author.run(test=stored).stdout.str()  # two cases
    result = author.run(test=stored)
    result.assert_outcomes(passed=2)
    assert "kernels run" not in result.stdout.str()


OTHERS = {
    "of the class": "class TestIt:\n    def test_scaled(self, nki_case): pass\n    def test_other(self): pass\n",
    "of nobody": "class TestIt:\n    def test_other(self): pass\n",
    "of unittest": "class TestIt(__import__('unittest').TestCase):\n    def test_other(self): pass\n",
}


@pytest.mark.parametrize("others", OTHERS)
def test_a_mark_of_a_class_is_of_each_of_its_tests(scaled: tuple[Any, str], others: str) -> None:
    """One that takes no case would pass and run nothing: it is refused, also where it is selected by itself."""
    author, text = scaled
    head, _, mark = text.partition("@pytest.mark.nki_sweep")
    mark = "@pytest.mark.nki_sweep" + mark.partition("def test_scaled")[0]
    for selected in ([], ["test_it.py::TestIt::test_other"]):
        result = author.run(*selected, test=head + mark + OTHERS[others])
        said = (
            "TestIt::test_other: @pytest.mark.nki_sweep runs nothing here: give the test the fixture nki_case, or mark"
        )
        assert said in result.stdout.str() + result.stderr.str()
    module = f"{head}pytestmark = {mark.strip()[1:]}\n\ndef test_scaled(nki_case): pass\n"
    author.run(test=module).assert_outcomes(passed=4)
    result = author.run(test=f"{module}\ndef test_other(): pass\n")
    assert "test_other: @pytest.mark.nki_sweep runs nothing here" in result.stdout.str() + result.stderr.str()


@pytest.mark.process
def test_a_worker_fails_the_test_of_a_mark_without_cases(scaled: tuple[Any, str]) -> None:
    """A usage error in a worker of pytest-xdist would end it."""
    pytest.importorskip("xdist")
    author, text = scaled
    head, _, mark = text.partition("@pytest.mark.nki_sweep")
    mark = "@pytest.mark.nki_sweep" + mark.partition("def test_scaled")[0]
    result = author.run_apart(
        "-n1", test=f"import nkitools\n{head}{mark}def test_it():\n    pass\n\ndef test_other():\n    pass\n"
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["test_it.py::test_it: @pytest.mark.nki_sweep runs nothing here: *"])


def test_the_end_says_where_no_case_is_kept(scaled: tuple[Any, str]) -> None:
    """Once for a kernel, with the function and what it uses; the cases run in each session."""
    author, text = scaled
    stored = text.replace("chips=", "store='cases.db', chips=").replace('["trn1", "trn3"]', '["trn1"]')
    kernel = author.pytester.path / "scaled.py"
    source = kernel.read_text()
    (line,) = [each for each in source.splitlines() if each.startswith("def scaled(")]
    helper = "def opened():\n    with open(__file__):\n        pass\n\n\n@nki.jit\n"
    assert f"@nki.jit\n{line}\n" in source
    kernel.write_text(source.replace(f"@nki.jit\n{line}\n", f"{helper}{line}\n    opened()\n"))
    for _ in range(2):
        result = author.run(test=stored)
        result.assert_outcomes(passed=2)
        assert "2 kernels run" in result.stdout.str()
        said = "nki: scaled: every sweep runs its cases again, whatever the store has: `opened` calls open"
        assert result.stdout.str().count(said) == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("chips=", "workers=2, chips=", "workers is no argument of the mark nki_sweep"),
        ('"seed"', '"sede"', "@pytest.mark.nki_sweep: sede of the space: neither"),
        ("@pytest.mark.nki_sweep", "@pytest.mark.hw", "the fixture nki_case takes the mark"),
        (
            'def test_scaled(nki_case):\n    assert nki_case["estimate_us"] < 100',
            "def test_scaled():\n    pass",
            "test_it.py::test_scaled: @pytest.mark.nki_sweep runs nothing here: give the test the fixture nki_case",
        ),
    ],
)
def test_a_mark_that_does_not_fit_is_refused(scaled: tuple[Any, str], old: str, new: str, said: str) -> None:
    """With the test's name, when tests are collected."""
    author, text = scaled
    assert old in text
    result = author.run(test=text.replace(old, new))
    assert said in result.stdout.str() + result.stderr.str()


CHOOSING = """
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

@nki.jit
def largest(x):
    tile = nl.load(x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.add, operand0=2.0)
    peak = nl.ndarray((x.shape[0], 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=peak, op=nl.maximum, data=tile, axis=1)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.equal, operand0=peak)
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out

def arguments(rows):
    x = np.linspace(0, 1, rows * 512, dtype=np.float32).reshape(rows, 512)
    x[0, 7], x[0, 300] = 2.0, np.nextafter(np.float32(2.0), np.float32(3.0))
    return (x,)

def reference(x):
    return (x == x.max(axis=1, keepdims=True)).astype(np.float32)
"""
TIED = """
import nkitools
nkitools.install_stand_in()
import pytest
from choosing import arguments, largest, reference

@pytest.mark.nki_sweep(largest, {"rows": [64]}, arguments=arguments, reference=reference)
def test_it(nki_case):
    assert nki_case["left_out"] == 1
"""


def test_a_case_with_tied_choices_warns(bare_author: Any) -> None:
    """The number of elements that were left out is in the row, and among the warnings of the session."""
    bare_author.write(choosing=CHOOSING)
    result = bare_author.run("-Wdefault", test=TIED)
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*TiedChoicesWarning: rows=64-trn2: 1 element left out of comparisons*"])
