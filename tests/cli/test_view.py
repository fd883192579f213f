"""`nkitools view`: pages of saved runs, scripts and report directories, and what is said where there are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import nkitools
from nkitools.cli import main
from tests.launch.kernels import doubled

X = np.arange(128 * 4, dtype=np.float32).reshape(128, 4)
SCRIPT = """
import sys
import nki, nki.isa as nisa, nki.language as nl, numpy as np

@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=nl.load(x))
    return out

for size in sys.argv[1:]:
    kernel(np.ones((int(size), 4), np.float32))
"""


@pytest.fixture(autouse=True)
def _in_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NKITOOLS_STAND_IN", "always")


def view(*arguments: str) -> Any:
    return CliRunner().invoke(main, ["view", *arguments])


def saved(name: str = "run.json") -> None:
    with nkitools.watching():
        nkitools.simulate(doubled, X).save(name)


def test_a_saved_run_becomes_a_page_beside_the_reader() -> None:
    """Under the name of the file, or where --output says; the path is what is printed."""
    saved()
    done = view("run.json")
    assert (done.exit_code, done.stdout) == (0, "run.html\n")
    assert '"kernel":"doubled"' in Path("run.html").read_text()
    assert view("-o", "other.html", "run.json").stdout == "other.html\n"
    assert Path("other.html").read_text() == Path("run.html").read_text()


def test_an_expected_array_is_compared() -> None:
    """The page has the difference of the output from the array of a file."""
    saved()
    wanted = 2 * X
    wanted[3, 1] += 5
    np.save("wanted.npy", wanted)
    assert view("--expected", "wanted.npy", "run.json").exit_code == 0
    assert '"count":1,"size":512' in Path("run.html").read_text()


def test_a_script_has_a_page_for_each_run() -> None:
    """One is named as the script, several are numbered; a script that runs no kernel is said to."""
    Path("script.py").write_text(SCRIPT)
    assert view("script.py", "128").stdout == "script.html\n"
    assert view("script.py", "128", "64").stdout == "script-1.html\nscript-2.html\n"
    assert '"watched":true' in Path("script-2.html").read_text()
    done = view("script.py")
    assert done.exit_code == 1
    assert "has run no kernel" in done.stderr


def test_a_report_directory_has_an_index() -> None:
    """Tests by outcome, each run with a link to its page where there is one; names are text, and links stay inside."""
    reports = Path("reports")
    reports.mkdir()
    run = {"kernel": "<b>k</b>", "chip": "trn2", "instructions": 3, "findings": [], "prints": [], "error": None}
    (reports / "page.html").write_text("")
    run |= {"differs": 7, "page_left_out": "passed"}
    for name, outcome, page in (("a", "passed", "page.html"), ("b", "failed", "../secret.html"), ("c", "failed", None)):
        report = {"schema": 1, "test": f"test_{name}", "outcome": outcome, "runs": [{**run, "page": page}]}
        (reports / f"{name}.json").write_text(json.dumps(report))
    (reports / "broken.json").write_text('{"schema": 1, "te')
    done = view("reports")
    assert done.exit_code == 0
    assert done.stdout.strip() == str(reports / "index.html")
    assert "left out: reports/broken.json is no report of a test" in done.stderr
    text = (reports / "index.html").read_text()
    assert text.index("test_b") < text.index("test_c") < text.index("test_a")
    assert text.count("href=") == 1
    assert 'href="page.html"' in text
    assert "&lt;b&gt;k&lt;/b&gt;" in text
    assert text.count("7 elements") == 3
    assert "3 runs of passing tests without findings have no page" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("cut.json",), "cut.json: a saved run that is cut off or damaged"),
        (("run.json", "more"), "run.json is no script that could take arguments: more"),
        (("run.json", "-o", "a.html"), "options stand before RUN: nkitools view -o a.html run.json"),
        (("-o", "no/page.html", "run.json"), "no/page.html cannot be written: there is no directory no"),
        (("--expected", "cut.json", "run.json"), "cut.json is no .npy or .npz file of arrays"),
        (("--expected", "run.json", "run.json"), "run.json is a saved run; nkitools diff --page FILE compares two"),
        (("empty",), "empty has no reports of tests; write them with pytest --nki-report=empty"),
        (("missing.json",), "does not exist"),
    ],
)
def test_mistakes_are_reported(arguments: tuple[str, ...], said: str) -> None:
    """With exit code 2, what is wrong, and no page."""
    saved()
    Path("cut.json").write_bytes(Path("run.json").read_bytes()[:500])
    Path("empty").mkdir()
    done = view(*arguments)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())
    assert not list(Path().glob("*.html"))


def test_ctrl_c_ends_a_command_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 130, as a shell reports it of any program."""

    def interrupted(path: str) -> None:
        raise KeyboardInterrupt

    saved()
    monkeypatch.setattr("nkitools.cli.load_run.read_run", interrupted)
    done = view("run.json")
    assert (done.exit_code, done.stderr) == (130, "nkitools: interrupted\n")
