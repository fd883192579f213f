"""``import nki`` without the stand-in says what is missing, and nothing else changes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import LEAN

LINE = "import nkitools; nkitools.install_stand_in()"


def told(tmp_path: Path, source: str) -> str:
    """What a script prints, in a process of its own."""
    script = tmp_path / "script.py"
    script.write_text(source)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=tmp_path)
    return (done.stdout + done.stderr).strip()


@pytest.mark.process
@pytest.mark.parametrize(
    ("statement", "name"), [("import nki", "nki"), ("import nki.isa", "nki"), ("import neuronxcc.nki", "neuronxcc")]
)
def test_a_failing_import_names_the_line_to_add(tmp_path: Path, statement: str, name: str) -> None:
    """It stays a ModuleNotFoundError of the module."""
    source = (
        f"import nkitools\ntry:\n    {statement}\nexcept ModuleNotFoundError as error:\n    print(error.name, error)"
    )
    said = told(tmp_path, source)
    assert said.startswith(f"{name} No module named '{name}'. nkitools stands in for it after this line")
    assert said.endswith(LINE)
    assert told(tmp_path, f"{LINE}\n{statement}\nprint('there')") == "there"


@pytest.mark.process
def test_questions_and_other_modules_are_answered_as_before(tmp_path: Path) -> None:
    """Whether a module is there, a module of AWS's that is, and modules of other names."""
    ask = (
        "import importlib.util, nkitools\nprint(importlib.util.find_spec('nki'), importlib.util.find_spec('neuronxcc'))"
    )
    assert told(tmp_path, ask) == "None None"
    other = "import nkitools\ntry:\n    import nkj\nexcept ModuleNotFoundError as error:\n    print(error)"
    assert told(tmp_path, other) == "No module named 'nkj'"
    (tmp_path / "nki.py").write_text("here = True")
    assert told(tmp_path, "import nkitools, nki\nprint(nki.here)") == "True"


@pytest.mark.process
def test_pytest_alone_adds_nothing(tmp_path: Path) -> None:
    """A session whose project does not use nkitools has the plugin, and Python's own sentence."""
    (tmp_path / "test_it.py").write_text(
        "import sys\n\ndef test_it():\n    try:\n        import nki\n    except ModuleNotFoundError as error:\n"
        "        assert str(error) == \"No module named 'nki'\"\n"
        "    assert not any('nkitools' in type(each).__module__ and 'Hint' in type(each).__name__\n"
        "                   for each in sys.meta_path)\n"
    )
    load = [] if _is_installed() else ["-p", "nkitools.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *LEAN, *load, "test_it.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def _is_installed() -> bool:
    from importlib.metadata import entry_points

    return any(each.name == "nkitools" for each in entry_points(group="pytest11"))
