"""`nkitools lint`: paths in, findings out, and an exit code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nkitools.cli import main

DOCS = Path(__file__).parents[2] / "docs" / "how-to"
KERNEL = "import nki\n\n\n@nki.jit\ndef kernel(x, flag=None):\n    {}\n    return x\n"
ERROR = "chosen = {1}"
HINT = "given = flag is None"
WARNING = "# nki: ignore[NK601] not any more"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test in a project of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()


@pytest.fixture(autouse=True)
def _parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let NKI 0.6 hold, which takes a part of Python only: the examples of errors and hints are of that part."""
    monkeypatch.setenv("NKITOOLS_NKI_VERSION", "0.6")


def lint(*args: str) -> Result:
    return CliRunner().invoke(main, ["lint", *args])


def write(name: str, *statements: str) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(KERNEL.format("\n    ".join(statements or ("pass",))))


def test_a_clean_project() -> None:
    """Nothing on stdout, a sentence on stderr, exit code 0."""
    write("kernels.py")
    result = lint(".")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "nothing found in 1 file\n")


def test_one_line_a_finding() -> None:
    """Path, line, column, rule, message; errors make exit code 1."""
    write("sub/kernels.py", ERROR, HINT)
    result = lint(".")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "sub/kernels.py:6:14: NK601 a set is no container of NKI",
        "sub/kernels.py:7:13: NK616 (hint) `flag is None` asks for identity; the migration guide says that the "
        "compiler refuses `is`, though AWS's own kernels have it",
    ]
    assert result.stderr == "1 error, 1 hint in 1 file\n"


@pytest.mark.parametrize(("statement", "code"), [(ERROR, 1), (WARNING, 1), (HINT, 0), ("pass", 0)])
def test_exit_codes(statement: str, code: int) -> None:
    """Hints fail nothing."""
    write("kernels.py", statement)
    assert lint("kernels.py").exit_code == code


def test_a_file_that_no_kernel_is_in() -> None:
    """Is looked at, and has nothing."""
    Path("plain.py").write_text("chosen = {1}\n")
    assert lint("plain.py").exit_code == 0


def test_a_finding_in_a_file_that_is_only_called() -> None:
    """Is told all the same, by the path from here."""
    write("kernels.py", "from helpers import helper", "helper()")
    Path("helpers.py").write_text("def helper():\n    return {1}\n")
    assert "helpers.py:2:12: NK601" in lint("kernels.py").stdout


MISTAKES = {
    "no path": ([], "Missing argument"),
    "a path that does not exist": (["nowhere"], "does not exist"),
    "a notebook": (["book.ipynb"], "jupyter nbconvert --to script book.ipynb"),
    "an unknown rule": (["--select", "NK699", "."], "no rule is called 'NK699'"),
    "an unknown format": (["--format", "xml", "."], "'xml' is not one of"),
    "an unknown dialect": (["--dialect", "old", "."], "'old' is not one of"),
}


@pytest.mark.parametrize(("args", "said"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_in_the_command(args: list[str], said: str) -> None:
    """Exit code 2, and what would be right."""
    Path("book.ipynb").write_text("{}")
    result = lint(*args)
    assert result.exit_code == 2
    assert said in result.stderr


def test_mistakes_in_the_settings() -> None:
    """Are mistakes of the command."""
    Path("pyproject.toml").write_text("[tool.nkitools.lint]\nselct = []\n")
    result = lint(".")
    assert result.exit_code == 2
    assert "pyproject.toml: [tool.nkitools.lint] has no `selct`" in result.stderr


def test_an_empty_directory() -> None:
    """Is no mistake, but worth a word."""
    Path("empty").mkdir()
    result = lint("empty")
    assert (result.exit_code, result.stderr) == (0, "no Python files in empty\nnothing found in 0 files\n")


def test_select_and_ignore() -> None:
    """By id, name and family, several at once; what the settings ignore stays ignored."""
    write("kernels.py", ERROR, HINT, WARNING)

    def rules(*args: str) -> list[str]:
        return [line.split()[1] for line in lint(*args, "kernels.py").stdout.splitlines()]

    assert rules() == ["NK601", "NK616", "NK619"]
    assert rules("--select", "NK601,NK616") == ["NK601", "NK616"]
    assert rules("--select", "NK6", "--ignore", "ignore-comment") == ["NK601", "NK616"]
    assert rules("--select", "NK1") == []
    Path("pyproject.toml").write_text("[tool.nkitools.lint]\nselect = ['NK601', 'NK616']\nignore = ['NK616']\n")
    assert rules() == ["NK601"]
    assert rules("--ignore", "NK601") == []
    assert rules("--select", "NK619") == ["NK619"]


def test_what_is_excluded_and_what_is_named() -> None:
    """A file that is named is looked at, excluded or not."""
    write("old/kernels.py", ERROR)
    Path("pyproject.toml").write_text("[tool.nkitools.lint]\nexclude = ['old/*']\n")
    assert lint(".").exit_code == 0
    assert lint("old/kernels.py").exit_code == 1


def test_json() -> None:
    """An object with the findings."""
    write("kernels.py", ERROR)
    told = json.loads(lint("--format", "json", ".").stdout)
    assert told["files"] == 1
    assert [(each["rule"], each["file"], each["line"], each["column"]) for each in told["findings"]] == [
        ("NK601", "kernels.py", 6, 14)
    ]


def test_sarif() -> None:
    """A log, also where nothing is found."""
    write("kernels.py", ERROR)
    (run,) = json.loads(lint("--format", "sarif", ".").stdout)["runs"]
    assert [each["ruleId"] for each in run["results"]] == ["NK601"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "kernels.py"
    assert json.loads(lint("--format", "sarif", "--select", "NK1", ".").stdout)["runs"][0]["results"] == []


def test_github() -> None:
    """An annotation a finding."""
    write("kernels.py", ERROR, HINT)
    result = lint("--format", "github", ".")
    assert [line.split("::")[1].split(",title")[0] for line in result.stdout.splitlines()] == [
        "error file=kernels.py,line=6,col=14",
        "notice file=kernels.py,line=7,col=13",
    ]
    assert result.exit_code == 1


def test_dialect() -> None:
    """Of files whose imports do not show it."""
    Path("kernels.py").write_text("from neuronxcc import nki\n")
    assert lint("kernels.py").exit_code == 0
    assert "NK608" in lint("--dialect", "modern", "kernels.py").stdout
    Path("pyproject.toml").write_text("[tool.nkitools.lint]\ndialect = 'modern'\n")
    assert "NK608" in lint("kernels.py").stdout


def test_the_how_to_page_shows_what_is_found() -> None:
    """Of its example, line by line."""
    page = (DOCS / "lint.md").read_text()
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)
    Path("scaled.py").write_text((DOCS / "example" / "scaled.py").read_text())
    result = lint("scaled.py")
    assert result.stdout + result.stderr == shown


def test_the_how_to_pages_settings_mean_something() -> None:
    """Every key of the page is one."""
    (settings,) = re.findall(r"^```toml\n(.*?)^```$", (DOCS / "lint.md").read_text(), flags=re.DOTALL | re.MULTILINE)
    Path("pyproject.toml").write_text(settings)
    write("kernels.py", ERROR, HINT)
    assert [line.split()[1] for line in lint("kernels.py").stdout.splitlines()] == ["NK601"]


@pytest.mark.process
def test_as_a_process() -> None:
    """`python -m nkitools lint` is the same."""
    write("kernels.py", ERROR)
    done = subprocess.run(
        [sys.executable, "-m", "nkitools", "lint", "kernels.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == "kernels.py:6:14: NK601 a set is no container of NKI\n"
