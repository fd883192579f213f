"""What holds for a session: the options and who decides them, the stand-in, and how little it costs to load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nkitools.facts import options
from tests.pytest_plugin.conftest import NKI

SAY = """
from nkitools.facts import options

def test_it(record_testsuite_property):
    print({name: options.value(name) for name in ("chip", "rules", "require_hw")})
"""


def decided(author: Any, *args: str) -> str:
    """What a session says that its options are."""
    result = author.run("-s", *args, test=SAY)
    return next(line for line in result.outlines if "require_hw" in line).removeprefix("test_it.py ").rstrip(".")


@pytest.mark.parametrize(
    ("flag", "variable", "ini", "rules"),
    [
        ("error", "report", "off", "error"),
        (None, "report", "off", "report"),
        (None, None, "off", "off"),
        (None, None, None, "error"),
        (None, "", "off", "off"),
    ],
)
def test_flag_then_environment_then_ini_then_default(
    author: Any, monkeypatch: pytest.MonkeyPatch, flag: str | None, variable: str | None, ini: str | None, rules: str
) -> None:
    """The nearest word counts; an empty variable says nothing."""
    if variable is not None:
        monkeypatch.setenv("NKITOOLS_RULES", variable)
    if ini is not None:
        author.pytester.makeini(f"[pytest]\nnki_rules = {ini}\nnki_require_hw = true")
    said = decided(author, *([f"--nki-rules={flag}"] if flag else []))
    assert said == str({"chip": None, "rules": rules, "require_hw": ini is not None})


def test_a_toml_file_decides_with_its_own_types(author: Any) -> None:
    """Ini keys are declared with their types, so pyproject.toml may say true."""
    author.pytester.makepyprojecttoml('[tool.pytest.ini_options]\nnki_chip = "trn1"\nnki_require_hw = true\n')
    assert decided(author, "--strict-config") == "{'chip': 'trn1', 'rules': 'error', 'require_hw': True}"


@pytest.mark.parametrize(
    ("flag", "ini", "order"), [(None, None, "fast"), (None, "chip", "chip"), ("fast", "chip", "fast")]
)
def test_the_order_of_sums_is_the_calls_the_flags_or_the_ini_keys(
    bare_author: Any, flag: str | None, ini: str | None, order: str
) -> None:
    """``sum_order=`` decides before --nki-sum-order, and that before nki_sum_order."""
    if ini:
        bare_author.pytester.makeini(f"[pytest]\nnki_sum_order = {ini}\n")
    result = bare_author.run(
        "-m", "sim", *([f"--nki-sum-order={flag}"] if flag else []),
        test=f"""{NKI}
def test_it(run_kernel):
    run_kernel(double, X)
    assert run_kernel.run.settings["sum_order"] == {order!r}
    run_kernel(double, X, sum_order="chip")
    assert run_kernel.run.settings["sum_order"] == "chip"
""",
    )  # fmt: skip
    result.assert_outcomes(passed=1)


def test_the_session_ends_and_nothing_is_left(author: Any) -> None:
    """After a session the options are what they were before it."""
    before = options.value("rules")
    author.run("--nki-rules=off", test=SAY)
    assert options.value("rules") == before


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--nki-chip=trn9",), "argument --nki-chip: invalid choice: 'trn9'*trn1*"),
        (("-o", "nki_rules=loud"), "ini key nki_rules is 'loud'; choose one of error, strict, report, off."),
        (("-o", "nki_stand_in=loud"), "ini key nki_stand_in is 'loud'; choose one of auto, always, never."),
        (("--nki-report=test_it.py",), "--nki-report: cannot make directory *test_it.py: *"),
        (("--nki-simulator=official",), "--nki-simulator=official: AWS's simulator is not installed: *"),
    ],
)
def test_what_cannot_be_had_is_a_usage_error(author: Any, args: tuple[str, ...], said: str) -> None:
    """A mistake is told before a test runs, with exit status 4 and what could be said instead."""
    result = author.run(*args, test=SAY)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{said}"])


@pytest.mark.parametrize("variable", ["NKITOOLS_RULES", "NKITOOLS_STAND_IN"])
def test_a_mistake_in_the_environment_is_one_too(author: Any, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    """Also one that no test of this session would have come across."""
    monkeypatch.setenv(variable, "loud")
    result = author.run(test=SAY)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{variable} is 'loud'; choose one of *"])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes everywhere")
def test_a_directory_that_cannot_be_written_is_a_usage_error(author: Any) -> None:
    """Not after an hour of tests: at once."""
    closed = author.pytester.mkdir("closed")
    closed.chmod(0o500)
    result = author.run(f"--nki-report={closed}", test=SAY)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--nki-report: directory *closed is not writable"])


def test_an_ini_directory_is_seen_from_the_ini_file(author: Any) -> None:
    """A relative directory in the ini file is the same wherever the user stands; a flag is seen from there."""
    author.pytester.makeini("[pytest]\nnki_report = from_ini")
    (author.pytester.path / "sub").mkdir()
    os.chdir(author.pytester.path / "sub")
    test = "def test_it(run_kernel):\n    run_kernel(double, 1)\n"
    author.run("-m", "sim", "..", test=test).assert_outcomes(passed=1)
    author.run("-m", "sim", "..", "--nki-report=from_flag", test=test).assert_outcomes(passed=1)
    assert [path.parent.relative_to(author.pytester.path) for path in author.pytester.path.rglob("*.json")] in (
        [Path("from_ini"), Path("sub/from_flag")],
        [Path("sub/from_flag"), Path("from_ini")],
    )


LOADED = """
import json, sys
import pytest
before = set(sys.modules)
import nkitools.pytest_plugin
heavy = sorted({"numpy", "jax", "ml_dtypes", "rich", "click", "torch", "scipy"} & set(sys.modules))
print(json.dumps([heavy, sorted(set(sys.modules) - before)]))
"""


def test_loading_the_plugin_is_light() -> None:
    """The plugin imports nothing heavy and few modules beside pytest's: every pytest session pays for them."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    heavy, imported = json.loads(done.stdout)
    assert heavy == []
    assert len(imported) <= 34, imported


def test_a_session_without_kernels_imports_nothing_heavy(author: Any) -> None:
    """From configuration to summary: whoever tests something else is left alone."""
    test = """
import sys

def test_it():
    assert not {"numpy", "jax", "click"} & set(sys.modules)
"""
    author.elsewhere, author.header = "", ""
    author.run_apart("-p", "no:hypothesispytest", "-p", "no:benchmark", test=test).assert_outcomes(passed=1)


@pytest.mark.process
@pytest.mark.parametrize(
    ("flags", "ini"),
    [
        (["--nki-replay=auto"], ""),
        (["--nki-replay-threads=2"], ""),
        ([], "nki_replay = on"),
        (["-n1"], "nki_replay = on"),
    ],
)
def test_what_asks_for_replay_does_nothing_and_says_so_once(bare_author: Any, flags: list[str], ini: str) -> None:
    """At the start of the session: a test's own output has no line more, and its runs run the kernel."""
    bare_author.pytester.makeini(f"[pytest]\n{ini}\n")
    bare_author.header = NKI
    result = bare_author.run_apart(
        *flags,
        test="""
def test_it(run_kernel, capfd):
    for factor in (1, 2, 3):
        assert (run_kernel(double, factor * X) == 2 * factor * X).all()
    assert capfd.readouterr() == ("", "")
""",
    )
    result.assert_outcomes(passed=1)
    assert f"{result.outlines}{result.errlines}".count("no longer replays runs") == 1


def test_a_value_that_replay_never_had_is_refused(bare_author: Any) -> None:
    """As pytest refuses a flag."""
    result = bare_author.run("--nki-replay=often", test="def test_it(): pass\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
