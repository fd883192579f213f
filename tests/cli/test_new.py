"""New kernels: files that pass their own tests, and that overwrite nothing."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nkitools.cli import main
from nkitools.cli.new import KINDS
from tests.processes import LEAN


def new(*args: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["new", *args], catch_exceptions=False)


# A mistake of each kind of author, and what the failure must say: the rule and the author's own names.
MISTAKES = {
    "nki": ("height = min(pmax, rows - start)", "height = pmax", "NK402", "`x`"),
    "legacy": ("column], mask=inside)\n        mean", "column])\n        mean", "NK402", "`x`"),
    "pallas": ("ROWS = 8", "ROWS = 2", "PL101", "block"),
    "customop": ("std::min(chunk, end - first)", "chunk", "CO104", "elements"),
}


# The tutorials about two of them: the page, the language of its code, and the name that it gives.
TUTORIALS = {
    "pallas": ("first-pallas-kernel.md", "python", "centred"),
    "customop": ("first-operator.md", "cpp", "scaled"),
}


def shown_in_tutorial(kind: str, output: str, sources: str) -> None:
    """The page shows a part of what is written, and of what the mistake brings about."""
    page, language, name = TUTORIALS[kind]
    text = (Path(__file__).parents[2] / "docs" / "tutorial" / page).read_text()
    for shown_language, wanted in ((language, sources), ("text", output)):
        (block,) = re.findall(rf"^```{shown_language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
        assert block.replace(name, "wrong") in wanted


@pytest.mark.process
@pytest.mark.parametrize("kind", KINDS)
def test_a_newcomer_goes_from_a_mistake_to_a_mended_test(kind: str, tmp_path: Path) -> None:
    """The command that `new` prints runs the tests: a copy with a mistake fails by its rule, the rest passes."""
    if kind == "pallas" and find_spec("jax") is None:
        pytest.skip("jax is not installed")
    done = new("centred", "--kind", kind, "--into", str(tmp_path))
    assert done.exit_code == 0
    *files, command = done.output.splitlines()
    assert sorted(path.name for path in map(Path, files)) == sorted(path.name for path in tmp_path.iterdir())
    old, wrong, rule, named = MISTAKES[kind]
    for path in list(tmp_path.iterdir()):
        text = path.read_text()
        assert "template_name" not in text
        path.with_name(path.name.replace("centred", "wrong")).write_text(
            text.replace("centred", "wrong").replace(old, wrong)
        )
    _, _, words = command.partition(": ")
    ran = subprocess.run(
        [sys.executable, "-m", *words.split(), str(tmp_path / "test_wrong.py"), "-p", "no:cacheprovider", *LEAN],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 1, ran.stdout + ran.stderr
    failed = [line for line in ran.stdout.splitlines() if line.startswith("FAILED ")]
    assert failed
    assert all(line.startswith("FAILED test_wrong.py::") for line in failed)
    assert any(f" - {rule} " in line for line in failed)
    explained = [line for line in ran.stdout.splitlines() if f": {rule} " in line and line.startswith("wrong")]
    assert explained, ran.stdout
    assert named in explained[0]
    if kind in TUTORIALS:
        sources = [path.read_text().replace("centred", "wrong") for path in tmp_path.glob("centred.*")]
        shown_in_tutorial(kind, ran.stdout, "".join(sources))


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """Where one of the files is there, none is written, and the command says which."""
    (tmp_path / "test_rows.py").write_text("mine")
    done = new("rows", "--into", str(tmp_path))
    assert done.exit_code == 2
    assert "test_rows.py: already there, nothing is written" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["test_rows.py"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "nki") for name in ("2d", "for", "numpy", "a-b", "json", "größe", "x", "np", "min", "run_kernel")),
        ("reference", "legacy"),
        ("pl", "pallas"),
        ("double", "customop"),
    ],
)
def test_a_name_with_which_the_tests_would_not_pass_is_refused(name: str, kind: str, tmp_path: Path) -> None:
    """It cannot be imported, would hide a module that the tests import, or is a name that the files use otherwise."""
    done = new(name, "--kind", kind, "--into", str(tmp_path))
    assert (done.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert f"{name} cannot be the name" in done.output


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    """Exit code 2; here a file stands in the folder's place."""
    (tmp_path / "file").write_text("")
    done = new("rows", "--into", str(tmp_path / "file" / "below"))
    assert done.exit_code == 2
    assert done.output.splitlines()[-1].startswith("Error: ")
    assert done.output.splitlines()[-1].endswith("cannot be read or written: Not a directory")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_line(shell: str) -> None:
    """It names the variable that click reads, with the shell's own source."""
    done = CliRunner().invoke(main, ["completion", shell])
    assert f"_NKITOOLS_COMPLETE={shell}_source nkitools" in done.output


def test_rules_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tab key offers commands and rule ids."""
    monkeypatch.setenv("COMP_WORDS", "nkitools explain NK10")
    monkeypatch.setenv("COMP_CWORD", "2")
    done = CliRunner().invoke(
        main, [], env={"_NKITOOLS_COMPLETE": "bash_complete"}, prog_name="nkitools", catch_exceptions=False
    )
    assert "plain,NK101" in done.output.splitlines()
    assert not any("NK20" in line for line in done.output.splitlines())


def test_a_full_disk_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a traceback, and an empty file was left."""

    def replaced(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("nkitools.record.whole_file.os.replace", replaced)
    done = new("centred", "--into", str(tmp_path))
    assert done.exit_code == 2
    assert done.stderr == f"Error: {tmp_path / 'centred.py'} cannot be read or written: No space left on device\n"
    assert list(tmp_path.iterdir()) == []
