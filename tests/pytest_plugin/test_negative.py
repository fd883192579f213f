"""Negative tests in a session: `expect_finding`, `allow=` and the mark `nki_allow`."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

# The sessions run in this process, and pytester forgets what they import: NumPy and SciPy cannot come twice.
import nkitools.strategies  # noqa: F401
from tests.pytest_plugin.test_reports import SIM, block

KERNELS = """
import nki
import nki.isa as nisa
import nki.language as nl
import nkitools
import numpy as np
import pytest

@nki.jit
def copy(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x))  # the copy
    return out

tall = np.ones((256, 4), np.float32)
"""


def test_a_negative_test_passes_and_is_counted_apart(bare_author: Any) -> None:
    """In simulation only, at any level, by run_kernel or another way in, under @given too; -m sim selects it."""
    test = """
from hypothesis import given, strategies as st

def test_tall(run_kernel, expect_finding):
    with expect_finding("NK101", line="# the copy") as expected:
        run_kernel(copy, tall)
    assert expected.finding in run_kernel.run.findings

def test_other_way_in(expect_finding):
    with expect_finding("partition-limit", file="test_it.py"):
        nkitools.simulate(copy, tall)

@given(rows=st.integers(129, 140))
def test_any_number_of_rows(run_kernel, expect_finding, rows):
    with expect_finding("NK101"):
        run_kernel(copy, np.ones((rows, 4), np.float32))
    assert len(run_kernel.run.findings) == 1
"""
    result = bare_author.run(*SIM, test=KERNELS + test)
    result.assert_outcomes(passed=3)
    result.stdout.no_fnmatch_line("*nki findings*")
    assert result.outlines[-2].startswith("nki: ")
    assert " 0 findings (" in result.outlines[-2]


def test_a_negative_test_fails_where_the_rule_is_silent(bare_author: Any) -> None:
    """At the line of the block, with what was reported instead."""
    test = """
def test_silent(run_kernel, expect_finding):
    with expect_finding("NK101"):
        run_kernel(copy, tall[:4])

def test_other(run_kernel, expect_finding):
    with expect_finding("NK103"):
        run_kernel(copy, tall)
"""
    result = bare_author.run(*SIM, test=KERNELS + test)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            '>       with expect_finding("NK101"):',
            "E       AssertionError: expected NK101 (partition-limit), which was not reported",
            "E       no rule was reported; run were `copy` on trn2",
            '>       with expect_finding("NK103"):',
            "E       AssertionError: expected NK103 (matmul-contraction-limit), which was not reported",
            "E       reported instead:",
            "E         *test_it.py:11:*: NK101 *",
        ]
    )
    result.stdout.no_fnmatch_line("*nkitools/*:*: *")


def test_it_is_no_test_of_hardware_or_of_aws_simulator(author: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules are judged in simulation; AWS's simulator has none, so what would run there is skipped with that reason."""
    monkeypatch.setattr("nkitools.targets.official.entry_point", lambda: ("nki.simulate", None))
    test = """
def test_run(run_kernel, expect_finding):
    expect_finding("NK101")

def test_no_run(expect_finding):
    expect_finding("NK101")
"""
    result = author.run("--nki-simulator=official", "-rs", test=test)
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * AWS's simulator reports no rules (--nki-simulator=official)"])


def test_allowed_findings_are_listed_and_not_counted(bare_author: Any) -> None:
    """By the call or by the mark, whose reason stands there; the run goes on to its result."""
    test = """
def test_call(run_kernel):
    assert run_kernel(copy, tall, allow="NK101").shape == (256, 4)
    assert run_kernel.run.findings == []
    assert run_kernel.run.allowed

@pytest.mark.nki_allow("NK101", reason="the compiler tiles it")
def test_mark(run_kernel):
    run_kernel(copy, tall)

def test_neither(run_kernel):
    run_kernel(copy, tall)
"""
    result = bare_author.run(*SIM, "--junitxml=junit.xml", test=KERNELS + test)
    result.assert_outcomes(passed=2, failed=1)
    without, with_reason = block(result, "nki allowed findings")[:-1]
    assert without.startswith("test_it.py:11:19: NK101 nl.load: ")
    assert with_reason == f"{without}; allowed: the compiler tiles it"
    result.stdout.fnmatch_lines(["nki: 3 kernels run, 1 finding (2 allowed), 0 device prints"])
    cases = ElementTree.parse(bare_author.pytester.path / "junit.xml").iter("testcase")
    properties = {str(case.get("name")): [entry.get("name") for entry in case.iter("property")] for case in cases}
    assert "nki_allowed" in properties["test_mark[sim]"]
    assert "nki_finding" not in properties["test_mark[sim]"]
    assert "nki_finding" in properties["test_neither[sim]"]


EXPECTING = """
import contextlib
import unittest

def test_raises(run_kernel):
    with pytest.raises(nkitools.KernelError):
        run_kernel(copy, tall)

def test_raises_called(run_kernel):
    pytest.raises(Exception, run_kernel, copy, tall)

def test_raises_an_error_of_its_own(run_kernel):
    with pytest.raises(RuntimeError, match="library"):
        try:
            run_kernel(copy, tall)
        except nkitools.KernelError as error:
            raise RuntimeError("library") from error

def test_raises_outside(run_kernel):
    with pytest.raises(nkitools.KernelError), contextlib.ExitStack():
        run_kernel(copy, tall)

def test_expects(run_kernel, expect_finding):
    with expect_finding("NK101"):
        run_kernel(copy, tall)

class TestUnit(unittest.TestCase):
    def test_it(self):
        with self.assertRaises(nkitools.KernelError):
            nkitools.simulate(copy, tall)
        self.assertRaises(Exception, nkitools.simulate, copy, tall)

@pytest.mark.xfail(raises=nkitools.KernelError)
def test_xfail(run_kernel):
    run_kernel(copy, tall)

def test_allowed(run_kernel):
    run_kernel(copy, tall, allow="NK101")

def some_rows(x, rows=4):
    return copy(x[0:rows])

def test_tunes(run_kernel):
    run_kernel(copy, tall[:4])
    nkitools.tune(some_rows, (tall,), space={"rows": [4, 256]})
"""

CATCHING = """
import contextlib
from hypothesis import given, strategies as st

def test_falls_back(run_kernel):
    try:
        run_kernel(copy, tall)
    except Exception:
        pass

def test_suppresses(run_kernel):
    with contextlib.suppress(nkitools.KernelError):
        run_kernel(copy, tall)

def test_calls(kernels_ran):
    try:
        copy(tall)
    except nkitools.KernelError:
        pass
    assert kernels_ran == ["copy"]

def test_of_no_fixture():
    with contextlib.suppress(Exception):
        nkitools.simulate(copy, tall)

def test_another_block(run_kernel):
    with contextlib.suppress(Exception):
        run_kernel(copy, tall)
    with pytest.raises(nkitools.KernelError):
        run_kernel(copy, tall)

@given(rows=st.sampled_from([256, 4]))
def test_property(run_kernel, rows):
    with contextlib.suppress(Exception):
        run_kernel(copy, tall[:rows])

@pytest.fixture
def probed(run_kernel):
    with contextlib.suppress(Exception):
        run_kernel(copy, tall)

def test_fixture(probed, run_kernel):
    run_kernel(copy, tall[:4])
"""


def test_a_finding_that_a_test_expects_is_no_fallback(bare_author: Any) -> None:
    """By a block of pytest, unittest or nkitools, by the mark xfail, and by a variant of tune: none is caught."""
    result = bare_author.run(*SIM, "--nki-require-run", test=KERNELS + EXPECTING)
    result.assert_outcomes(passed=8, xfailed=1)
    result = bare_author.run("--nki-require-run", test=KERNELS + EXPECTING)
    result.assert_outcomes(passed=8, xfailed=1)
    assert "caught" not in result.stdout.str()


def test_a_finding_that_the_own_code_catches_is_counted_as_caught(bare_author: Any) -> None:
    """It is a finding as any other; under --nki-require-run the test fails, with the finding."""
    result = bare_author.run(test=KERNELS + CATCHING)
    result.assert_outcomes(passed=7)
    assert " (1 expected, " in result.outlines[-2]
    assert "caught by the test's own code)" in result.outlines[-2]
    required = bare_author.run("--nki-require-run", test=KERNELS + CATCHING)
    required.assert_outcomes(failed=7)
    required.stdout.fnmatch_lines(
        [
            "the test's own code has caught a finding: the kernel has not done its work (--nki-require-run): *NK101 *",
            "Mend the kernel, or expect the finding with expect_finding or pytest.raises.",
        ]
    )


def test_what_a_call_allows_ends_with_it(author: Any) -> None:
    """The next call is judged as ever; and `allow` never reaches the kernel."""
    author.run(
        *SIM,
        test="""
def test_it(run_kernel):
    run_kernel(wide, 1, allow=("NK101",))
    assert [each.rule for each in run_kernel.run.allowed] == ["NK101"]
    run_kernel(wide, 1)
    assert [each.rule for each in run_kernel.run.findings] == ["NK101"]
    with pytest.raises(ValueError, match="no rule is called 'NK999'"):
        run_kernel(wide, 1, allow="NK999")
""",
    ).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ('"NK999"', "@pytest.mark.nki_allow: no rule is called 'NK999'. *"),
        ('"NK607"', "@pytest.mark.nki_allow: NK607 (not-modelled) cannot be allowed: *"),
        ('reason="x"', "@pytest.mark.nki_allow: it names no rule. Write *"),
        ('"NK101", because="x"', "@pytest.mark.nki_allow: it knows reason, not because. Write *"),
    ],
)
def test_a_mark_that_means_nothing_fails_its_test(author: Any, mark: str, said: str) -> None:
    """Before a kernel runs."""
    result = author.run(
        *SIM, test=f"@pytest.mark.sim\n@pytest.mark.nki_allow({mark})\ndef test_it():\n    raise SystemExit\n"
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])


def test_the_picture_of_a_data_rule_is_in_the_report(bare_author: Any) -> None:
    """Below the author's line: which elements were never written. And folded over a loop, both ends of it."""
    test = """
@nki.jit
def half(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(tile[:, 0:32], 0.0)
    for m in range(2):
        nisa.dma_copy(dst=out[m * 128 : (m + 1) * 128], src=tile)
    return out

def test_it(run_kernel):
    run_kernel(half, np.ones((256, 64), np.float32), rules="report")
    assert False
"""
    result = bare_author.run(*SIM, test=KERNELS + test)
    assert [line.translate(str.maketrans("█·", "#.")) for line in block(result, "nki findings")[1:-1]] == [
        "    22 | nisa.dma_copy(dst=out[m * 128 : (m + 1) * 128], src=tile)",
        "       | ^",
        "    rows 0..127  " + "." * 16 + "#" * 16,
        "    columns 0..63 in 32 signs: . written, # never written",
        "    Write the whole tile before it is read (nisa.memset), or read only the slice that was written.",
        "    and 1 more, first at m=0, last at m=1",
    ]
