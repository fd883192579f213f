"""The page about sweeps: its files, its command, its Python and its test do what it shows."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from nkitools.cli import main
from nkitools.dialects.stand_in import install_stand_in
from nkitools.module_files import _modules
from tests.house.test_examples import blocks

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "sweep.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the page in a folder, which is the working directory; forgotten afterwards."""
    for block in [*blocks(PAGE, "python"), *blocks(PAGE, "toml")]:
        named = re.match(r"# (\S+)\n", block)
        if named:
            (tmp_path / named[1]).write_text(block)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "scaled", raising=False)
    install_stand_in(prefer="builtin")
    return tmp_path


@pytest.mark.process
def test_the_command_of_the_page_says_what_it_shows(folder: Path) -> None:
    """The sweep, a merge, an export; a second call finds everything stored."""
    shown = blocks(PAGE, "console")[0].splitlines()
    command = shown[0].removeprefix("$ nkitools ").split()
    done = CliRunner().invoke(main, command)
    assert done.output.splitlines() == shown[1:]
    assert done.exit_code == 0
    again = CliRunner().invoke(main, command)
    assert again.output == "scaled: 48 cases: 48 pass (48 of them stored before)\n"
    assert CliRunner().invoke(main, ["sweep", "merge", "all.db", "cases.db"]).output == "cases.db: 48 new cases\n"
    assert CliRunner().invoke(main, ["sweep", "export", "all.db", "all.csv"]).output == "all.csv: 48 cases\n"
    assert len((folder / "all.csv").read_text().splitlines()) == 49
    _modules.clear()


@pytest.mark.process
def test_the_python_of_the_page_prints_what_it_shows(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A case that breaks a rule is in the rows."""
    (program,) = [each for each in blocks(PAGE, "python") if each.startswith("import nkitools\n")]
    exec(compile(program, "program", "exec"), {})
    assert capsys.readouterr().out == blocks(PAGE, "text")[0]


@pytest.mark.process
def test_the_table_of_arguments_of_the_page_makes_a_sweep(folder: Path) -> None:
    """Without a function that makes them."""
    (folder / "arrays.toml").write_text(blocks(PAGE, "toml")[1])
    done = CliRunner().invoke(main, ["sweep", "scaled.py::scaled", "--space", "arrays.toml", "--workers", "1"])
    assert done.output == "scaled: 4 cases: 4 pass\n"
    _modules.clear()
