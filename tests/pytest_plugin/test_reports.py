"""What is shown of kernels: in the report of a failure, at the end of the session, in JUnit and JSON."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest

SIM = ("-m", "sim")


def block(result: pytest.RunResult, begin: str) -> list[str]:
    """The lines below the heading that contains ``begin``, up to the next heading; empty ones left out."""
    lines = result.outlines
    start = next(index for index, line in enumerate(lines) if begin in line and line.startswith(("-", "=")))
    rest = lines[start + 1 :]
    end = next((index for index, line in enumerate(rest) if line.startswith(("---", "==="))), len(rest))
    return [line for line in rest[:end] if line]


def test_a_failure_shows_findings_and_prints_and_ends_at_the_authors_line(author: Any) -> None:
    """The report has each finding with remedy and place, the prints, and no frame of nkitools."""
    author.write(
        mine="""
from nkitools.rules.finding import KernelError
from tests.pytest_plugin.scripted import found, printed

def giou(run, x):
    printed(run, "x", x, m=3)
    raise KernelError(found(run, m=3))
"""
    )
    result = author.run(*SIM, test="from mine import giou\ndef test_it(run_kernel):\n    run_kernel(giou, [1, 2])\n")
    result.assert_outcomes(failed=1)
    assert block(result, "nki findings") == [
        "/author/giou.py:7:5: NK101 tensor `x_tile` has 256 partitions",
        "    Split dimension 0.",
        "    at m=3",
    ]
    assert block(result, "nki prints")[:2] == ["x [program 0, m=3, giou.py:41] int64 [2]", "[1 2]"]
    result.stdout.fnmatch_lines(["mine.py:6: KernelError"])
    result.stdout.no_fnmatch_line("*nkitools/*:*: *")


def test_a_fault_of_our_own_shows_our_frames(author: Any) -> None:
    """An exception that starts in nkitools and is no finding keeps its traceback: somebody must mend it."""
    result = author.run(
        *SIM,
        test="""
from nkitools.facts import options

def test_it(run_kernel):
    run_kernel(lambda run: options.value("no such option"))
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*nkitools/facts/options.py:*: KeyError"])


def test_many_prints_of_a_failure_are_cut(author: Any) -> None:
    """The first twenty prints are shown, each cut to a readable length, and how many more there are."""
    result = author.run(
        *SIM,
        test="""
import numpy as np

def loud(run, x):
    for m in range(50):
        printed(run, "tile", np.zeros((20, 3)), m=m)

def test_it(run_kernel):
    run_kernel(loud, 1)
    assert False
""",
    )
    lines = block(result, "nki prints")
    assert sum(line.startswith("tile [") for line in lines) == 20
    assert "tile [program 0, m=19, giou.py:41] float64 [20, 3]" in lines
    assert lines.count("... (9 more lines)") == 20
    assert "... and 30 more" in lines


def test_the_session_ends_with_one_line_and_is_silent_without_kernels(author: Any) -> None:
    """Kernels, findings and prints are counted; a session without kernels says nothing."""
    test = """
def test_double(run_kernel):
    run_kernel(double, 1)

def test_wide(run_kernel):
    run_kernel(wide, 1)
    run_kernel(double, 1)
"""
    result = author.run(*SIM, test=test)
    result.stdout.fnmatch_lines(["nki: 3 kernels run, 1 finding, 2 device prints"])
    result.stdout.no_fnmatch_line("*nki device prints*")
    silent = author.run(*SIM, test="@pytest.mark.sim\ndef test_plain(): pass\n")
    silent.stdout.no_fnmatch_line("nki: *")


def test_prints_of_passing_tests_are_shown_on_request(author: Any) -> None:
    """--nki-prints: for each test the first prints with program, counters and line, and how many more."""
    result = author.run(
        *SIM,
        "--nki-prints",
        test="""
def test_loud(run_kernel):
    for x in range(5):
        run_kernel(double, [x, x])

def test_other(run_kernel):
    run_kernel(double, 7)

def test_failing(run_kernel):
    run_kernel(double, 8)
    assert False
""",
    )
    result.assert_outcomes(passed=2, failed=1)
    header = "x [program 0, m=0, n=1, giou.py:41] int64 "
    assert block(result, "nki device prints")[:-1] == [
        "test_it.py::test_loud[sim]",
        *(f"{header}[2]", "[0 0]"),
        *(f"{header}[2]", "[1 1]"),
        *(f"{header}[2]", "[2 2]"),
        "... and 2 more",
        "test_it.py::test_other[sim]",
        *(f"{header}[]", "7"),
    ]


def test_findings_of_passing_tests_are_listed_folded(author: Any) -> None:
    """What a passing test collected is listed once with its count, errors before warnings."""
    result = author.run(
        *SIM,
        test="""
@pytest.mark.parametrize("partitions", [256, 512])
def test_it(run_kernel, partitions):
    run_kernel(lambda run: found(run, "warning", line=9))
    run_kernel(wide, 1, partitions)
""",
    )
    result.assert_outcomes(passed=2)
    assert block(result, "nki findings of passing tests")[:-1] == [
        "/author/giou.py:7:5: NK101 tensor `x_tile` has 256 partitions",
        "    Split dimension 0.",
        "    and 1 more",
        "/author/giou.py:9:5: NK101 (warning) tensor `x_tile` has 256 partitions",
        "    Split dimension 0.",
        "    and 1 more",
    ]
    result.stdout.fnmatch_lines(["nki: 4 kernels run, 4 findings, 0 device prints"])


def test_findings_of_passing_tests_may_be_left_out(author: Any) -> None:
    """Those of failed tests stand in their reports all the same, and all are counted."""
    result = author.run(
        *SIM,
        "--nki-findings=failed",
        test="""
@pytest.mark.parametrize("passes", [True, False])
def test_it(run_kernel, passes):
    run_kernel(wide, 1, 256)
    assert passes
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.no_fnmatch_line("*nki findings of passing tests*")
    assert block(result, "nki findings")[0] == "/author/giou.py:7:5: NK101 tensor `x_tile` has 256 partitions"
    result.stdout.fnmatch_lines(["nki: 2 kernels run, 2 findings, 0 device prints"])


def test_what_a_passing_test_has_raised_was_expected(author: Any) -> None:
    """A negative test that passes (pytest.raises) has no finding; in a failed test what was raised counts as one."""
    result = author.run(
        *SIM,
        test="""
from nkitools.rules.finding import KernelError

def test_it(run_kernel):
    with pytest.raises(KernelError):
        run_kernel(too_wide, 1)
""",
    )
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*nki findings*")
    result.stdout.fnmatch_lines(["nki: 1 kernel run, 0 findings (1 expected), 1 device print"])


def test_junit_has_the_findings_as_properties(author: Any) -> None:
    """Number, rules, places and messages of each test's findings, those of a kernel run by the teardown included."""
    author.run(
        *SIM,
        "--junitxml=junit.xml",
        test="""
@pytest.fixture
def later(run_kernel):
    yield
    run_kernel(wide, 1)

def test_wide(run_kernel, later):
    run_kernel(wide, 1)

@pytest.mark.sim
def test_plain(): pass
""",
    ).assert_outcomes(passed=2)
    cases = ElementTree.parse(author.pytester.path / "junit.xml").iter("testcase")
    properties = {
        case.get("name"): {entry.get("name"): entry.get("value") for entry in case.iter("property")} for case in cases
    }
    assert properties == {
        "test_wide[sim]": {
            "nki_findings": "2",
            "nki_rules": "NK101",
            "nki_finding": "/author/giou.py:7:5: NK101 tensor `x_tile` has 256 partitions (x2)",
        },
        "test_plain": {},
    }


def test_the_report_directory_gets_a_file_for_each_test_with_kernels(author: Any) -> None:
    """Kernel, chip, findings and prints as statistics; numbers that JSON has not are counted."""
    result = author.run(
        *SIM,
        "--nki-report=out/json",
        "--nki-report-pages=all",
        test="""
import numpy as np
from nkitools.rules.finding import KernelError

def test_it(run_kernel):
    run_kernel(double, np.array([1.0, 2.0, np.nan, np.inf], np.float32))
    with pytest.raises(KernelError):
        run_kernel(too_wide, np.array([np.nan], np.float32))

@pytest.mark.sim
def test_plain(): pass
""",
    )
    directory = author.pytester.path / "out" / "json"
    counted = "nki: 2 kernels run, 0 findings (1 expected), 2 device prints"
    result.stdout.fnmatch_lines([f"{counted}; report in {directory}"])
    (file,) = directory.glob("*.json")
    assert file.name.startswith("test_it.py_test_it_sim-")
    pages = sorted(directory.glob("*.html"))
    assert [page.name for page in pages] == [f"{file.stem}-1.html", f"{file.stem}-2.html"]
    report = json.loads(file.read_text())
    assert (report["schema"], report["test"], report["outcome"]) == (1, "test_it.py::test_it[sim]", "passed")
    first, second = report["runs"]
    assert first == {
        "kernel": "double",
        "target": "builtin",
        "chip": "trn2",
        "error": None,
        "instructions": 0,
        "findings": [],
        "expected": [],
        "allowed": [],
        "findings_left_out": 0,
        "prints": [
            {
                "prefix": "x",
                "shape": [4],
                "dtype": "float32",
                "program": [0],
                "loops": {"m": 0, "n": 1},
                "rank": None,
                "file": "/author/giou.py",
                "line": 41,
                "place": "program 0, m=0, n=1, giou.py:41",
                "min": 1.0,
                "max": 2.0,
                "mean": 1.5,
                "nan": 1,
                "inf": 1,
            }
        ],
        "differs": None,
        "page": pages[0].name,
        "page_left_out": None,
    }
    assert second["page"] == pages[1].name
    assert second["error"].startswith("KernelError: tensor `x_tile` has 256 partitions (NK101")
    assert [finding["rule"] for finding in second["findings"]] == ["NK101"]
    assert [second["prints"][0][key] for key in ("min", "max", "mean", "nan")] == [None, None, None, 1]


def test_tests_of_one_name_do_not_share_a_file(author: Any) -> None:
    """Ids that differ only in what a file name cannot hold have files of their own."""
    author.run(
        *SIM,
        "--nki-report=out",
        "--nki-report-pages=all",
        test="""
@pytest.mark.parametrize("x", [1, 2], ids=["a/b", "a:b"])
def test_it(run_kernel, x):
    run_kernel(double, x)
""",
    ).assert_outcomes(passed=2)
    for kind in ("json", "html"):
        assert len(list((author.pytester.path / "out").glob(f"*.{kind}"))) == 2


def test_what_cannot_be_written_costs_no_test_its_result(author: Any) -> None:
    """A file that is in the way is named at the end of the session, under -W error too; the tests end as they would."""
    result = author.run(
        *SIM,
        "--nki-report=out",
        "--nki-report-pages=all",
        test="""
from pathlib import Path
from nkitools.pytest_plugin.report_files import file_name

def test_it(run_kernel, request):
    name = file_name(request.node.nodeid)
    for taken in (name, name.replace(".json", ".html")):
        (Path("out") / taken).mkdir()
    run_kernel(double, 1)
""",
    )
    result.assert_outcomes(passed=1, warnings=2)
    result.stdout.fnmatch_lines(["*PytestWarning: page test_it.py_test_it_sim-*.html in *out cannot be written:*"])
    result.stdout.fnmatch_lines(["*PytestWarning: test_it.py_test_it_sim-*.json in *out cannot be written:*"])
    result.stdout.no_fnmatch_line("*report in *")


def test_pages_of_passing_tests_and_beyond_the_limit_are_left_out(author: Any) -> None:
    """A test that passes without a finding has no page unless it is asked for; nor has any beyond the limit."""
    test = """
def test_good(run_kernel):
    run_kernel(double, 1)

def test_wrong(run_kernel):
    with pytest.raises(Exception):
        run_kernel(too_wide, 1)
"""
    for options, of_wrong in (((), None), (("--nki-report-limit=0",), "limit")):
        author.run(*SIM, "--nki-report=out", *options, test=test).assert_outcomes(passed=2)
        reports = [json.loads(each.read_text()) for each in (author.pytester.path / "out").glob("*.json")]
        why = {each["test"].split("::")[1]: each["runs"][0]["page_left_out"] for each in reports}
        assert why == {"test_good[sim]": "passed", "test_wrong[sim]": of_wrong}


def test_a_failed_comparison_is_the_reference_of_the_page(bare_author: Any) -> None:
    """numpy.testing knows what the output should be, and how near; a test that passes has no wrong element."""
    bare_author.run(
        "-m",
        "sim",
        "--nki-report=out",
        "--nki-report-pages=all",
        test="""
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=nl.load(x))
    return out

X = np.arange(512, dtype=np.float32).reshape(128, 4)

def test_learned(run_kernel):
    np.testing.assert_allclose(run_kernel(kernel, X), 2 * X, rtol=0.25, atol=0.5)

def test_told(run_kernel):
    run_kernel(kernel, X.copy(), reference=lambda x: 1 * x)
    np.testing.assert_array_equal(run_kernel.run.reference.values, X)
""",
    ).assert_outcomes(passed=1, failed=1)
    learned, told = (page.read_text() for page in sorted((bare_author.pytester.path / "out").glob("*.html")))
    assert '"rtol":0.25,"atol":0.5' in learned
    assert '"repair":["repair: ' in learned
    assert '"repair":[]' in told
    assert '"count":0,"size":512' in told


def test_the_short_summary_begins_with_the_rule(author: Any) -> None:
    """80 columns have the rule and the beginning of its sentence, and a finding is shown once."""
    result = author.run(test="def test_it(run_kernel):\n    run_kernel(too_wide, 1)\n")
    text = result.stdout.str()
    assert "FAILED test_it.py::test_it[sim] - NK101 tensor `x_tile` has 256 partitions" in text
    assert "nkitools.rules.finding" not in text
    assert text.count("NK101 tensor `x_tile` has 256 partitions") == 2  # in its section, and in the summary
    assert "\nE   NK101 partition-limit\n" in text
    result = author.run("--show-capture=no", test="def test_it(run_kernel):\n    run_kernel(too_wide, 1)\n")
    assert "nkitools.rules.finding.KernelError: tensor `x_tile` has 256 partitions (NK101" in result.stdout.str()
