"""Type stubs: a checker takes every example kernel, and the stubs have every name that the stand-in serves."""

from __future__ import annotations

import ast
import importlib
import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from nkitools.dialects.stand_in import modules_served
from nkitools.dialects.stub_files import write_stubs

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both packages."""
    folder = tmp_path_factory.mktemp("site")
    write_stubs(folder)
    return folder


@pytest.mark.parametrize("name", sorted(modules_served()))
def test_a_stub_has_every_name(stubs: Path, name: str) -> None:
    """Each name that the stand-in serves is bound in the module's stub, which is Python."""
    first, *rest = name.split(".")
    tree = ast.parse(stubs.joinpath(f"{first}-stubs", *rest, "__init__.pyi").read_text(encoding="utf-8"))
    bound = {
        getattr(each, "name", None) or getattr(getattr(each, "target", None), "id", None)
        for each in tree.body
        if isinstance(each, (ast.FunctionDef, ast.ClassDef, ast.AnnAssign))
    }
    bound |= {alias.name for each in tree.body if isinstance(each, ast.ImportFrom) for alias in each.names}
    assert {each for each in importlib.import_module(modules_served()[name]).__all__ if each.isidentifier()} <= bound


def test_a_stub_says_what_an_instruction_takes(stubs: Path) -> None:
    """The parameters in their order, the defaults that are plain, and the docstring."""
    tree = ast.parse((stubs / "nki-stubs/isa/__init__.pyi").read_text(encoding="utf-8"))
    (found,) = (each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "nc_matmul")
    assert [each.arg for each in found.args.args][:3] == ["dst", "stationary", "moving"]
    assert "512" in (ast.get_docstring(found) or "")


@pytest.fixture(scope="module")
def authors_folder(stubs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example kernels and the tutorial outside of the checkout and its configuration, with one mistake."""
    folder = tmp_path_factory.mktemp("author")
    shutil.copytree(REPOSITORY / "kernels", folder / "kernels", ignore=shutil.ignore_patterns("pallas"))
    shutil.copytree(REPOSITORY / "docs" / "tutorial" / "example", folder / "tutorial")
    wrong = folder / "kernels" / "wrong.py"
    wrong.write_text("import nki.isa as nisa\n\n\ndef wrong():\n    nisa.tensor_tenser()\n", encoding="utf-8")
    for package in ("nki", "neuronxcc"):  # a search path has packages under their own names
        (folder / package).symlink_to(stubs / f"{package}-stubs")
    return folder


@pytest.mark.process
def test_mypy_takes_the_kernels(authors_folder: Path) -> None:
    """Bodies of functions without types included; it finds the mistake."""
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    command = [sys.executable, "-m", "mypy", "--check-untyped-defs", "--no-incremental", "kernels", "tutorial"]
    done = subprocess.run(command, cwd=authors_folder, capture_output=True, text=True)
    *found, count = done.stdout.splitlines()
    assert len(found) == 1, done.stdout
    assert found[0].startswith('kernels/wrong.py:5: error: Module has no attribute "tensor_tenser"')
    assert count.startswith("Found 1 error in 1 file")


@pytest.mark.process
def test_pyright_takes_the_kernels(authors_folder: Path) -> None:
    """As mypy does."""
    beside = str(Path(sys.executable).parent)
    pyright = shutil.which("basedpyright", path=beside) or shutil.which("pyright", path=beside)
    if pyright is None:
        pytest.skip("neither basedpyright nor pyright is installed")
    # Stubs without a package beside them are what a laptop has.
    settings = {
        "include": ["kernels", "tutorial"],
        "typeCheckingMode": "standard",  # pyright's own default; basedpyright's is stricter
        "reportMissingModuleSource": False,
    }
    (authors_folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    done = subprocess.run(
        [pyright, "--pythonpath", sys.executable, "--outputjson"], cwd=authors_folder, capture_output=True, text=True
    )
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert [(Path(each["file"]).name, each["rule"]) for each in found] == [("wrong.py", "reportAttributeAccessIssue")]


def test_every_package_of_the_stubs_is_written(tmp_path: Path) -> None:
    """Also those that stand for nothing themselves: the wheel has what is named, and mypy needs them."""
    written = write_stubs(tmp_path)
    assert set(written) == {each for each in tmp_path.rglob("*") if each.is_file()}
    assert tmp_path / "neuronxcc-stubs" / "__init__.pyi" in written
