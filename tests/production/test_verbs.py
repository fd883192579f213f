"""A repository as people have it in production: src layout, package, relative imports, companion files of inputs.

Its tensors are torch's where torch is installed, else NumPy's. Each verb ends as its page says and names files from the
folder that it runs in.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nkitools.cli import main
from nkitools.serve.linted_file import linted
from nkitools.serve.simulated_file import compared, reasons, simulated

pytestmark = pytest.mark.process
REPOSITORY = Path(__file__).with_name("repository")
RMS, STANDARD, WIDE = "rms_cases.py::rms_norm", "standard_cases.py::standard_norm", "wide_cases.py::wide_scores"
FOLDERS = (".", "src/ranker/scores")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a copy of the repository; its modules are forgotten afterwards."""
    root = tmp_path / "ranker-service"
    shutil.copytree(REPOSITORY, root, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield root
    for name in set(sys.modules) - before:
        if name.partition(".")[0] == "ranker" or name.endswith("_cases"):
            del sys.modules[name]


def verb(*args: str) -> Result:
    """Run a verb in this process: no exception of ours may leave it."""
    done = CliRunner().invoke(main, list(args))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    assert "Traceback" not in done.output, done.output
    return done


def here(path: Path) -> str:
    """Return a path from the folder that the verbs run in."""
    return os.path.relpath(path)


@pytest.mark.parametrize("folder", FOLDERS)
def test_kernels_by_their_companion_files(root: Path, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimate of a right kernel, and of one that breaks a rule, with the rule's file and line."""
    monkeypatch.chdir(root / folder)
    bench = here(root / "bench")

    done = verb("estimate", f"{bench}/{RMS}", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["kernel"] == "rms_norm"
    done = verb("estimate", f"{bench}/{WIDE}")
    assert (done.exit_code, f"{here(root / 'src/ranker/scores/wide.py')}:12:5: NK101" in done.stderr) == (0, True)


@pytest.mark.parametrize("name", ["compile", "compare"])
def test_what_needs_more_than_is_here(root: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler or a device the verbs end with a sentence."""
    monkeypatch.chdir(root)
    done = verb(name, f"bench/{RMS}")
    assert done.exit_code in (0, 2), done.output
    assert done.exit_code == 0 or "Error: no " in done.output, done.output


@pytest.mark.parametrize("folder", FOLDERS)
def test_lint_in_each_form(root: Path, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One error: text and SARIF from this folder, GitHub's annotation from the one that was checked out."""
    monkeypatch.chdir(root / folder)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(root))
    place = here(root / "src/ranker/scores/summed.py")

    done = verb("lint", here(root / "src"), here(root / "bench"))
    assert done.exit_code == 1
    said, _, rest = done.output.partition(":16:63: NK601 ")
    assert (Path(said).resolve(), rest != "") == (Path(place).resolve(), True), done.output
    (result,) = json.loads(verb("lint", "--format", "sarif", place).stdout)["runs"][0]["results"]
    found = result["locations"][0]["physicalLocation"]
    assert (found["artifactLocation"]["uri"], found["region"]["startLine"]) == (place, 16)
    done = verb("lint", "--format", "github", place)
    assert done.output.startswith("::error file=src/ranker/scores/summed.py,line=16,col=63,")


def test_a_saved_run_is_read_by_every_verb(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script of the repository finds its package; the reproduction needs no file of it."""
    monkeypatch.chdir(root / "scripts")
    for name in ("one.json", "two.json"):
        done = verb("run", "--save", str(tmp_path / name), "serve.py", "130")
        assert (done.exit_code, done.stdout.splitlines()[0]) == (0, "ranked (130, 32)"), done.output
    saved = str(tmp_path / "one.json")

    said = verb("why", saved, "--element", "3,4").output
    assert "rms.py:26: dma_copy made out[3, 4] of scaled[3, 4]" in said
    assert "tiles.py:19: nc_matmul" in said
    assert verb("diff", saved, str(tmp_path / "two.json")).exit_code == 0
    page = tmp_path / "page.html"
    assert (verb("view", "-o", str(page), saved).exit_code, page.stat().st_size > 10_000) == (0, True)
    is_traced = importlib.util.find_spec("perfetto") is not None
    assert verb("timeline", saved, "-o", str(tmp_path / "t.pftrace")).exit_code == (0 if is_traced else 2)
    assert verb("reproduce", saved, "-o", str(tmp_path / "again.py")).exit_code == 0
    text = (tmp_path / "again.py").read_text(encoding="utf-8")
    assert "from tiles import in_all_partitions, row_blocks\n" in text
    assert "from ." not in text
    space: dict[str, object] = {"__name__": "again"}
    exec(compile(text, "again.py", "exec"), space)
    sys.modules.pop("tiles", None)
    assert callable(space["rms_norm"])


def test_the_mistake_is_found_and_verified(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bisect names the line of the package's file, whose companion has the inputs, and verifies on other values."""
    monkeypatch.chdir(root / "src")
    done = verb("bisect", f"{here(root / 'bench')}/{STANDARD}")
    assert done.exit_code == 1
    assert "standard.py:25: with this edit the outputs are right" in done.output, done.output
    assert "op=nl.maximum" in done.output
    assert "verified on this case, fresh values" in done.output


def test_mutate_finds_the_tests_of_the_project(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those in the folder that pytest's testpaths names, by the name of the kernel's file; they pass there."""
    monkeypatch.chdir(root / "src")
    done = verb("mutate", "ranker/norms/rms.py::rms_norm", "--kind", "change-axis", "--workers", "1")
    assert (done.exit_code, "1 mistakes, 1 noticed (100 %)" in done.output) == (0, True), done.output


def test_a_sweep_takes_the_space_of_the_companion(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its processes load the file as this one does."""
    monkeypatch.chdir(root / "checks")
    done = verb("sweep", f"{here(root / 'bench')}/{RMS}", "--workers", "1")
    assert (done.exit_code, "rms_norm: 4 cases: 4 pass" in done.output) == (0, True), done.output


def test_doctor_and_the_hook(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Doctor says the command that runs a file; the block for pre-commit names a hook that ends with lint's status."""
    monkeypatch.chdir(root)
    done = verb("doctor", "bench/rms_cases.py")
    assert done.exit_code == 0
    assert "Run bench/rms_cases.py:  nkitools estimate bench/rms_cases.py::rms_norm\n" in done.output
    assert verb("doctor", "scripts/serve.py").output.endswith("nkitools run scripts/serve.py\n")
    block = (root / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    (entry,) = (line.split(": ")[1] for line in block.splitlines() if "entry:" in line)
    assert entry == "nkitools lint"
    assert verb(*entry.split()[1:], "src/ranker/norms/rms.py", "checks/test_rms.py").exit_code == 0
    assert verb(*entry.split()[1:], "src/ranker/scores/summed.py").exit_code == 1


def test_what_editor_and_agent_are_given(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools of an agent and the finding that an editor underlines, from another folder than the project's."""
    monkeypatch.chdir(root.parent)
    asked = {"file": str(root / "bench/rms_cases.py"), "kernel": "rms_norm", "chip": "", "nki_version": ""}

    run = simulated(asked)
    assert [each["shape"] for each in run["outputs"]] == [[130, 64]]
    assert {Path(each["file"]).name for each in run["tiles"]} == {"rms.py", "tiles.py"}
    assert compared(asked | {"against": "reference", "rtol": None, "atol": None})["agrees"]
    assert "rms.py:26" in reasons(asked | {"output": 0, "index": [3, 4]})["text"]
    wide = simulated(asked | {"file": str(root / "bench/wide_cases.py"), "kernel": "wide_scores"})
    assert [(each["rule"], Path(each["file"]).name, each["line"]) for each in wide["findings"]] == [
        ("NK101", "wide.py", 12)
    ]
    (found,) = linted({"file": str(root / "src/ranker/scores/summed.py")})["findings"]
    assert (found["rule"], found["line"]) == ("NK601", 16)
