"""Lint's answers about NKI are the same out of the cache, and then take no import of the dialects or of NumPy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import nkitools.suggestions.lint_interface
from nkitools.cli import remembered_interface
from nkitools.cli.remembered_interface import RememberedInterface
from nkitools.lint.engine import lint
from nkitools.suggestions.lint_interface import Dialects

REPOSITORY = Path(__file__).parents[2]
FILES = [
    *sorted((REPOSITORY / "kernels").rglob("*.py")),
    *sorted((REPOSITORY / "nkitools" / "rules" / "examples").glob("NK60*/*.py")),
]


def test_the_answers_of_the_cache_are_those_of_the_dialects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the example kernels and of the rules about names and calls: asked anew, and read back without the dialects."""
    monkeypatch.setenv("NKITOOLS_CACHE_DIR", str(tmp_path))
    expected = lint(FILES, interface=Dialects()).findings
    assert {each.rule for each in expected} >= {"NK601", "NK607", "NK608", "NK609"}
    first = RememberedInterface()
    assert lint(FILES, interface=first).findings == expected
    first.keep()
    monkeypatch.delattr(nkitools.suggestions.lint_interface, "Dialects")
    assert lint(FILES, interface=RememberedInterface()).findings == expected


def test_another_state_of_the_sources_and_damage_begin_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed source has answers of its own; damage, and a folder that cannot be written, are no error."""
    monkeypatch.setenv("NKITOOLS_CACHE_DIR", str(tmp_path))
    asked = RememberedInterface()
    assert asked.form("nki.language.load").startswith("The call form is nl.load(")
    asked.keep()
    (file,) = (tmp_path / "lint").iterdir()
    file.write_text("{")
    assert RememberedInterface().form("nki.language.load") == asked.form("nki.language.load")
    monkeypatch.setattr(remembered_interface, "__version__", "0.0.0")
    newer = RememberedInterface()
    newer.form("nki.language.load")
    newer.keep()
    (only,) = (tmp_path / "lint").iterdir()
    assert only != file
    monkeypatch.setenv("NKITOOLS_CACHE_DIR", str(file / "below a file"))
    nowhere = RememberedInterface()
    nowhere.form("nki.language.load")
    nowhere.keep()


@pytest.mark.process
def test_a_clean_file_takes_no_numpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second lint of a file imports neither NumPy nor rich."""
    monkeypatch.setenv("NKITOOLS_CACHE_DIR", str(tmp_path))
    text = (
        "import sys; from nkitools.cli import main\n"
        "try: main(['lint', sys.argv[1]])\n"
        "except SystemExit as end: print(end.code, sorted({'numpy', 'rich'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", text, str(REPOSITORY / "kernels" / "nki" / "softmax.py")]
    said = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() for _ in range(2)]
    assert said == ["0 ['numpy']", "0 []"]
