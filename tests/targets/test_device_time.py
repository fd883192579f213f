"""The time of the NeuronCore itself: which tool measures it, how often a launch counts, and what is said without it."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nkitools.rules.finding import NotModelled
from nkitools.targets import neff, neuron_time, packages
from nkitools.targets.neff import DeviceTime, Launcher, NoDeviceTime
from nkitools.targets.neuron_time import compiled_with
from nkitools.targets.target import kernel_name
from tests.fakes import machines

X = np.arange(8, dtype=np.float32).reshape(2, 4)
Neff = Callable[..., Path]


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Neff]:
    """Writes a NEFF as the fake nki does, for so many cores; the fake nrtpy is on the path."""
    monkeypatch.syspath_prepend(str(machines.FAKES / "nrtpy"))

    def of(degree: int = 1, **inputs: Any) -> Path:
        monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", str(degree))
        path = tmp_path / "kernel.neff"
        shapes = {name: (each.shape, each.itemsize) for name, each in (inputs or {"x": X}).items()}
        path.write_bytes(pickle.dumps({"inputs": shapes, "outputs": [2 * X], "lnc": degree}))
        return path

    yield of
    for name in [name for name in sys.modules if name.partition(".")[0] == "nrtpy"]:
        del sys.modules[name]


def test_nrtpy_launches_and_times_a_neff(compiled: Neff) -> None:
    """Outputs are bytes of the device; the time is that of the device, with the tool's version."""
    launcher = Launcher(compiled(), {"x": X})
    (output,) = launcher.launch()
    np.testing.assert_array_equal(output.numpy().view(np.float32), 2 * X)
    assert launcher.device_time(1) == DeviceTime(25e-6, 25e-6, 20, "nrtpy 2.35.30 (SpikeModel, benchmark)")


def test_a_launch_on_two_cores_counts_once(compiled: Neff) -> None:
    """`benchmark` would count it twice, and say the mean of 25 and 20 us: the slower core is what the launch takes."""
    found = Launcher(compiled(2), {"x": X}).device_time(2)
    assert found.seconds == pytest.approx(25e-6)
    assert (found.executions, found.tool) == (20, "nrtpy 2.35.30 (SpikeModel, SystemTraceSession)")


def test_an_nrtpy_without_the_private_name_is_refused_by_it(compiled: Neff, monkeypatch: pytest.MonkeyPatch) -> None:
    """On one core the public name is enough."""
    launcher = Launcher(compiled(2), {"x": X})
    import nrtpy._nrtpy  # type: ignore[import-not-found]

    monkeypatch.delattr(nrtpy._nrtpy, "SystemTraceSession")
    with pytest.raises(NoDeviceTime, match=r"nrtpy 2\.35\.30 \(SpikeModel\) has no SystemTraceSession"):
        launcher.device_time(2)


def test_the_public_nrtpy_has_other_names(compiled: Neff, monkeypatch: pytest.MonkeyPatch) -> None:
    """NrtpyModel and NrtpyTensor, where nki's own copy is not here; without either it is named."""
    path = compiled()
    import nrtpy

    for name in ("Model", "Tensor"):
        monkeypatch.setattr(nrtpy, f"Nrtpy{name}", getattr(nrtpy, f"Spike{name}"), raising=False)
        monkeypatch.delattr(nrtpy, f"Spike{name}")
    assert Launcher(path, {"x": X}).device_time(1).tool == "nrtpy 2.35.30 (NrtpyModel, benchmark)"
    monkeypatch.delattr(nrtpy, "NrtpyTensor")
    with pytest.raises(NoDeviceTime, match="has neither SpikeModel nor NrtpyModel"):
        Launcher(path, {"x": X})


def test_inputs_go_by_name_else_in_their_order(compiled: Neff) -> None:
    """An input that is an output too has a longer name; another number of inputs is refused with both lists."""
    Launcher(compiled(**{"x.must_alias_input": X}), {"x": X}).launch()
    Launcher(compiled(in_tensor_0=X), {"x": X}).launch()
    with pytest.raises(NoDeviceTime, match=r"the NEFF has the inputs x, and the kernel got x, y"):
        Launcher(compiled(), {"x": X, "y": X})


@pytest.mark.process
def test_the_command_line_measures_where_nrtpy_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """capture, then view; without either tool both are named."""
    (tmp_path / "kernel.neff").write_bytes(b"NEFF")
    asked = neff.request(tmp_path / "kernel.neff", {"x": X}, 1, tmp_path)
    monkeypatch.setattr(neff, "has_nrtpy", lambda: False)
    monkeypatch.setattr(neff, "_TOOLS", str(tmp_path))
    assert neff.answer(asked) == {"missing": "nrtpy is not installed; neuron-explorer is not here"}
    monkeypatch.setenv("PATH", os.pathsep.join([str(machines.FAKES / "explorer"), os.environ["PATH"]]))
    assert DeviceTime(**neff.answer(asked)) == DeviceTime(3e-5, 3e-5, 1, "neuron-explorer 2.33.38")
    (tmp_path / "kernel.neff").unlink()
    assert neff.answer(asked)["missing"].startswith(
        "nrtpy is not installed; neuron-explorer capture failed: no such NEFF"
    )


def test_narrow_dtypes_reach_the_process_that_measures(compiled: Neff, tmp_path: Path) -> None:
    """NumPy's files do not know bfloat16: its name goes beside them."""
    import ml_dtypes

    narrow = X.astype(ml_dtypes.bfloat16)
    asked = neff.request(compiled(x=narrow), {"x": narrow}, 1, tmp_path)
    assert neff.answer(asked)["seconds"] == 25e-6
    assert neff._read(tmp_path / "input0.npy", "bfloat16").dtype == narrow.dtype


def test_without_a_kept_neff_there_is_no_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The variable, a call that fails, a package that leaves nothing: each is named."""

    def kernel(x: Any) -> Any:
        return x / 0 if x is None else x

    monkeypatch.delenv("NKI_ARTIFACTS_DIR", raising=False)
    with pytest.raises(NoDeviceTime, match="NKI_ARTIFACTS_DIR was not set before"):
        neuron_time.kept_neff(kernel, (X,), {})
    monkeypatch.setenv("NKI_ARTIFACTS_DIR", str(tmp_path))
    with pytest.raises(NoDeviceTime, match=r"has left no kernel\.neff"):
        neuron_time.kept_neff(kernel, (X,), {})
    with pytest.raises(NoDeviceTime, match="a call with NumPy arrays fails: TypeError"):
        neuron_time.kept_neff(kernel, (None,), {})


def test_arrays_go_by_the_parameters_of_the_function() -> None:
    """AWS's kernel object may have the author's function as ``func`` alone; lists and numbers are no inputs."""

    class Bare:
        """A kernel object that wraps nothing."""

        def __init__(self, function: Any) -> None:
            self.func = function

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return self.func(*args, **kwargs)

    def scale(left: Any, factor: float, *, right: Any = None) -> None: ...

    found = neuron_time.by_parameter(Bare(scale), (X, 2.0), {"right": X})
    assert list(found) == ["left", "right"]
    assert kernel_name(Bare(scale)) == "scale"


def test_the_folder_of_the_user_is_not_emptied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Ours is, before each compilation."""
    for name, left in (("mine", True), ("nkitools-artifacts-1", False)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "log-neuron-cc.txt").touch()
        monkeypatch.setenv("NKI_ARTIFACTS_DIR", str(folder))
        neuron_time.empty_own_folder()
        assert (folder / "log-neuron-cc.txt").exists() == left


def test_the_compile_time_says_whether_a_cache_answered(tmp_path: Path) -> None:
    """A new file was compiled, none came out of the cache, and without a folder nothing is known."""
    cache = tmp_path / "cache"
    assert compiled_with(lambda: None, cache)[1] == ""
    cache.mkdir()
    assert compiled_with((cache / "one.neff").touch, cache)[1] == "compiled: 1 new in the cache"
    assert compiled_with(lambda: None, cache)[1] == "answered by the cache"


def test_nki_alone_can_be_timed_by_nrtpy(compiled: Neff, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither torch nor JAX: a stand-alone call compiles once, and its NEFF is launched again and again."""
    from nkitools.targets import neuron_ways

    path = compiled()
    monkeypatch.setenv("NKI_ARTIFACTS_DIR", str(tmp_path))
    monkeypatch.setattr(neuron_ways, "torch_backend", lambda chip: SimpleNamespace(kind="", reason="", remedy=""))
    monkeypatch.setattr(neuron_ways, "is_installed", lambda package: False)
    packages.is_installed.cache_clear()
    content = path.read_bytes()

    def double(x: Any) -> Any:
        path.write_bytes(content)
        return 2 * x

    prepared = neuron_ways.timed_way_for(double, (X,), {}, "trn2").prepare(double, (X,), {})
    np.testing.assert_array_equal(prepared.fetch(prepared.launch()), 2 * X)
    assert prepared.device_time is not None
    assert prepared.device_time().seconds == 25e-6
    assert prepared.compile_cache == "compiled: no cache is asked"
    monkeypatch.setattr(neuron_ways, "has_nrtpy", lambda: False)
    with pytest.raises(NotModelled, match="cannot be timed: with NumPy arguments alone every call compiles again"):
        neuron_ways.timed_way_for(double, (X,), {}, "trn2")
