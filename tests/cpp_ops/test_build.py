"""The build scripts: by nkitools' loader on a host, by AWS's on an instance, from any directory."""

from __future__ import annotations

import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from cpp_ops.giou import build, reference
from cpp_ops.relu import build as relu_build
from nkitools.customop import load_library, torch_operators
from tests.cpp_ops.conftest import boxes_of
from tests.fakes import machines


@pytest.fixture
def giou(tmp_path: Path) -> Path:
    """A copy of the operator's directory, as an author would start from it."""
    return Path(shutil.copytree(build.HERE, tmp_path / "giou", ignore=shutil.ignore_patterns("lib*", "__pycache__")))


def test_the_script_leaves_a_library_that_can_be_loaded(giou: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Beside the sources, with its mode: all cores."""
    runpy.run_path(str(giou / "build.py"), run_name="__main__")
    assert "nkitools: building giou" in capfd.readouterr().out
    library = load_library(giou / "libgiou.so")
    assert library.multicore
    preds, targets = boxes_of(3, 7, 1), boxes_of(3, 7, 2)
    assert np.array_equal(library.giou(preds, targets), reference.giou(preds, targets))


def test_on_an_instance_the_script_takes_aws_loader(giou: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where torch_neuronx is installed (a fake), with what it documents."""
    pytest.importorskip("torch")
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch_neuronx"]:
        monkeypatch.delitem(sys.modules, name)  # a script on a host has imported what stands in
    monkeypatch.syspath_prepend(str(machines.FAKES / "torch"))
    try:
        runpy.run_path(str(giou / "build.py"), run_name="__main__")
        assert sys.modules["torch_neuronx.xla_impl.custom_op"].log == [("giou", True)]  # type: ignore[attr-defined]
        assert (giou / "libgiou.so").is_file()
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "torch_neuronx"]:
            del sys.modules[name]
        torch_operators._registered["boxes"].remove()


def test_the_mode_is_that_of_the_stage() -> None:
    """It is a property of the library: two of the ReLUs run on one core."""
    assert [relu_build.recipe(stage)["multicore"] for stage in relu_build.STAGES] == [False, False, True]
