"""Type stubs: a checker takes every example kernel, and the stubs have every name that the stand-in serves."""

from __future__ import annotations

import ast
import importlib
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


@pytest.mark.process
def test_mypy_takes_the_kernels(stubs: Path, tmp_path: Path) -> None:
    """Outside of the checkout's configuration, bodies of functions without types included; strict finds no nki."""
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    shutil.copytree(REPOSITORY / "kernels" / "nki", tmp_path / "kernels")
    for folder in (tmp_path / "kernels", tmp_path / "kernels" / "legacy"):
        (folder / "__init__.py").touch()
    for package in ("nki", "neuronxcc"):  # a search path has packages under their own names
        (tmp_path / package).symlink_to(stubs / f"{package}-stubs")
    wrong = tmp_path / "kernels" / "wrong.py"
    wrong.write_text("import nki.isa as nisa\n\n\ndef wrong():\n    nisa.tensor_tenser()\n")
    command = [sys.executable, "-m", "mypy", "--check-untyped-defs", "--no-incremental", "kernels"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    found, count = done.stdout.splitlines()
    assert found.startswith('kernels/wrong.py:5: error: Module has no attribute "tensor_tenser"')
    assert count.startswith("Found 1 error in 1 file")
