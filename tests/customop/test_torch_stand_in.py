"""Scripts written for AWS's loader run on a host unmodified, with and without torch, and leave nothing behind."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkitools import customop
from nkitools.customop import torch_modules, torch_operators
from nkitools.targets import packages
from tests.fakes import machines

X = np.array([[-1.0, 2.0, 3.0]], np.float32)

KERNEL = """
#include <torch/torch.h>
torch::Tensor scale(const torch::Tensor& in, double factor) {
  torch::Tensor out = torch::zeros(in.sizes(), torch::kFloat);
  auto from = in.accessor<float, 2>();
  auto to = out.accessor<float, 2>();
  for (int i = 0; i < in.sizes()[0]; i++)
    for (int j = 0; j < in.sizes()[1]; j++) to[i][j] = from[i][j] * factor;
  return out;
}
"""
SHAPE = """
#include <torch/torch.h>
#include "torchneuron/register.h"
torch::Tensor scale_shape(const torch::Tensor& in, double factor) { return torch::zeros(in.sizes(), torch::kFloat); }
NEURON_LIBRARY(stand_in_ops, m) { m.def("scale", &scale_shape, "scale"); }
"""
BUILD = """
import os
from torch_neuronx.xla_impl import custom_op
custom_op.load(
    name="scale", compute_srcs=["scale.cpp"], shape_srcs=["shape.cpp"], build_directory=os.getcwd(), verbose=False
)
"""
USE = """
import torch_neuronx
from torch_neuronx.xla_impl import custom_op
custom_op.load_library("libscale.so")
"""


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An author's directory, with sources and scripts as AWS's guide has them."""
    for name, text in {"scale.cpp": KERNEL, "shape.cpp": SHAPE, "build.py": BUILD, "use.py": USE}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    """Each test begins without torch_neuronx, whatever ran before in this process, and leaves none of its own."""
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("torch_neuronx")}
    yield
    after = [name for name in sys.modules if name.startswith("torch_neuronx")]
    sys.modules.update(before)
    assert after == []
    assert torch_operators._registered == {}


def execute(path: Path) -> None:
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})


def test_a_script_that_builds_and_one_that_loads(scripts: Path) -> None:
    """The build leaves the library where the other script looks for it; the operator is torch.ops' own."""
    torch = pytest.importorskip("torch")
    with customop.torch_stand_in() as ops:
        assert ops is torch.ops
        execute(scripts / "build.py")
        assert (scripts / "libscale.so").is_file()
        execute(scripts / "use.py")
        out = torch.ops.stand_in_ops.scale(torch.from_numpy(X), 2.0)
        assert torch.equal(out, torch.from_numpy(2 * X))
    assert not hasattr(torch.ops.stand_in_ops, "scale")
    assert "torch_neuronx" not in sys.modules
    with pytest.raises(ModuleNotFoundError, match="torch_neuronx"):
        importlib.import_module("torch_neuronx.xla_impl")
    sys.modules.pop("torch_neuronx", None)  # nkitools' own for kernels (nki_op), where it stands in for nki


def test_without_torch_the_same_names_take_numpy(scripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``ops.<library>.<operator>``, and an unknown library is named with those that there are."""
    monkeypatch.setattr(torch_modules, "has_torch", lambda: False)
    with customop.torch_stand_in() as ops:
        execute(scripts / "build.py")
        execute(scripts / "use.py")
        np.testing.assert_array_equal(ops.stand_in_ops.scale(X, 0.5), 0.5 * X)
        with pytest.raises(AttributeError, match=r"no library 'other' .* there is \['stand_in_ops'\]"):
            _ = ops.other


@pytest.mark.parametrize("name", ["load", "load_library"])
def test_loading_returns_nothing_and_says_so(scripts: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A script that used a result here might not run on an instance: AWS documents none."""
    monkeypatch.setattr(torch_modules, "has_torch", lambda: False)
    with customop.torch_stand_in():
        custom_op: Any = importlib.import_module("torch_neuronx.xla_impl.custom_op")
        execute(scripts / "build.py")
        given = ("scale", ["scale.cpp"], ["shape.cpp"]) if name == "load" else ("libscale.so",)
        function = getattr(custom_op, name)
        assert function(*given) is None
        ours, theirs = inspect.signature(getattr(customop, name)), inspect.signature(function)
        assert (theirs.return_annotation, theirs.parameters) == (None, ours.parameters)
        assert "It returns None, as AWS documents no result" in function.__doc__


def test_nothing_stands_in_for_the_rest_of_the_package() -> None:
    """What else torch_neuronx has is missing, with a sentence; no name is made up."""
    with customop.torch_stand_in():
        package: Any = importlib.import_module("torch_neuronx")
        with pytest.raises(AttributeError, match="no 'trace': it is there for custom operators alone"):
            _ = package.trace
        with pytest.raises(ImportError):
            importlib.import_module("torch_neuronx.distributed")


def test_an_outer_stand_in_stays_after_an_inner_one() -> None:
    """Whoever installed it removes it; to install twice, or to remove what is not there, does nothing."""
    customop.install_torch_stand_in()
    try:
        with customop.torch_stand_in():
            customop.install_torch_stand_in()
        assert "torch_neuronx.xla_impl.custom_op" in sys.modules
    finally:
        customop.remove_torch_stand_in()
    customop.remove_torch_stand_in()


def test_it_is_removed_after_an_error(scripts: Path) -> None:
    """A library that does not build leaves nothing either."""
    (scripts / "scale.cpp").write_text(KERNEL.replace("return out;", "return out"))
    with pytest.raises(customop.BuildError, match=r"scale\.cpp does not compile"), customop.torch_stand_in():
        execute(scripts / "build.py")


def test_aws_package_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is installed the stand-in refuses; told to, it takes its place and gives it back."""
    monkeypatch.syspath_prepend(str(machines.FAKES / "torch"))
    with pytest.raises(customop.RealPackage, match=r'prefer="builtin"'):
        customop.install_torch_stand_in()
    real = importlib.import_module("torch_neuronx")
    try:
        with customop.torch_stand_in(prefer="builtin"):
            assert importlib.import_module("torch_neuronx") is not real
        assert sys.modules["torch_neuronx"] is real
    finally:
        del sys.modules["torch_neuronx"]
    with pytest.raises(ValueError, match="prefer: must be one of auto, builtin, it is 'always'"):
        customop.install_torch_stand_in(prefer="always")


def test_the_native_backend_has_no_loader_to_hide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in goes into the place of torch_neuronx 2.10 or higher, with the name that torch's import looks for."""
    monkeypatch.syspath_prepend(str(machines.FAKES / "native"))
    with customop.torch_stand_in():
        module = importlib.import_module("torch_neuronx")
        assert module._autoload() is None
        assert callable(module.xla_impl.custom_op.load)
    assert "torch_neuronx" not in sys.modules


def test_the_stand_in_is_no_package_that_reaches_a_device() -> None:
    """Who looks for torch_neuronx looks past it."""
    packages.is_installed.cache_clear()
    with customop.torch_stand_in():
        assert not packages.is_installed("torch_neuronx")
    packages.is_installed.cache_clear()
    assert torch_modules.ORIGIN == packages.ORIGIN


def test_an_import_of_nkitools_puts_nothing_in_place() -> None:
    """Neither modules nor torch: both come when they are asked for."""
    code = "import sys, nkitools.customop; assert not {'torch', 'torch_neuronx'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
