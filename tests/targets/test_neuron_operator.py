"""Custom operators and torch modules on a (fake) NeuronCore: built once by AWS's loader, called with XLA tensors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cpp_ops.relu import build, reference  # noqa: E402 - torch decides whether this file is collected
from nkitools import customop  # noqa: E402
from nkitools.customop import BuildError, Library, torch_operators  # noqa: E402
from nkitools.customop.toolchain import find_compiler  # noqa: E402
from nkitools.facts import options  # noqa: E402
from nkitools.rules.finding import KernelError, NotModelled  # noqa: E402
from nkitools.targets import device_for, neuron_operator, neuron_ways, packages, simulator_for  # noqa: E402
from nkitools.targets.gpsimd import GpSimdSimulator  # noqa: E402
from nkitools.targets.neuron_module import ModuleCompiler, NeuronModuleDevice  # noqa: E402
from nkitools.targets.neuron_operator import NeuronOperatorDevice  # noqa: E402
from nkitools.targets.neuron_ways import TorchNeuron, TorchXla  # noqa: E402
from nkitools.targets.target import WrongDevice  # noqa: E402
from nkitools.targets.timing import time_kernel  # noqa: E402
from nkitools.targets.units import units_of  # noqa: E402
from tests.fakes import machines  # noqa: E402

VALUES = np.array([[-1.0, 2.0, np.nan, -0.0, 5.0]], np.float32)


@pytest.fixture(scope="module")
def relu() -> Library:
    try:
        find_compiler()
    except BuildError as error:
        pytest.skip(str(error))
    return build.library("multicore")


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An Inferentia2 with torch-neuronx, both fake; afterwards nothing of it is imported, loaded or remembered."""
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(machines.neuron_root(tmp_path / "root")))
    monkeypatch.syspath_prepend(str(machines.FAKES / "torch"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    packages.is_installed.cache_clear()
    yield tmp_path / "root"
    for name in [name for name in sys.modules if name.partition(".")[0] in ("torch_neuronx", "torch_xla")]:
        del sys.modules[name]
    for registration in list(torch_operators._registered.values()):
        registration.remove()
    neuron_operator._loaded.clear()
    monkeypatch.undo()
    packages.is_installed.cache_clear()


def fake(name: str) -> Any:
    """A fake's module; it is imported by now."""
    return sys.modules[name]


@pytest.mark.process
def test_the_sources_are_built_once_with_what_aws_documents(relu: Library) -> None:
    """The loader gets the library's sources and its mode; a second operator of the library is there already."""
    device = NeuronOperatorDevice()
    run = device.run(relu.relu_forward, VALUES)
    assert (run.kernel, run.target, run.chip) == ("relu_forward", "neuron", "inf2")
    assert run.outputs.tobytes() == reference.relu_forward(VALUES).tobytes()
    gradient = np.ones_like(VALUES)
    backward = device.run(relu.relu_backward, gradient, VALUES).outputs
    assert backward.tobytes() == reference.relu_backward(gradient, VALUES).tobytes()
    assert fake("torch_neuronx.xla_impl.custom_op").log == [("relu_multicore", True)]
    assert fake("torch_xla").log == ["sync", "wait"] * 2


@pytest.mark.process
def test_torch_in_torch_out(relu: Library) -> None:
    """Tensors come back on the CPU, without the gradients that the device's operators do not have."""
    values = torch.from_numpy(VALUES).requires_grad_()
    out = NeuronOperatorDevice().run(relu.relu_forward, values).outputs
    assert isinstance(out, torch.Tensor)
    assert not out.requires_grad
    assert torch.equal(out.isnan(), values.isnan())


@pytest.mark.process
def test_read_only_arrays_are_taken(relu: Library) -> None:
    """JAX and memory maps give such arrays; torch has no read-only tensors, and warns."""
    values = VALUES.copy()
    values.flags.writeable = False
    NeuronOperatorDevice().run(relu.relu_forward, values)


@pytest.mark.process
def test_wrong_arguments_are_refused_as_in_simulation(relu: Library) -> None:
    """By the same rules, before the device sees them; of the keywords those of simulation do not count."""
    device = NeuronOperatorDevice()
    with pytest.raises(KernelError, match=r"argument 0 `input` of operator `relu_forward` is float64") as caught:
        device.run(relu.relu_forward, VALUES.astype(np.float64))
    assert caught.value.finding.rule == "CO110"
    device.run(relu.relu_forward, VALUES, order="reverse", timeout=1.0)
    with pytest.raises(NotModelled, match="a custom operator has no `grid`"):
        device.run(relu.relu_forward, VALUES, grid=2)


@pytest.mark.process
def test_another_library_of_the_name_is_refused(relu: Library, tmp_path: Path) -> None:
    """A process has one library of a name; what was loaded first would answer for the other."""
    (tmp_path / "shape.cpp").write_text((build.HERE / "multicore" / "shape.cpp").read_text())
    other = customop.load(**{**build.recipe("multicore"), "shape_srcs": [tmp_path / "shape.cpp"]})
    device = NeuronOperatorDevice()
    device.run(relu.relu_forward, VALUES)
    with pytest.raises(NotModelled, match="library `relu_multicore` was loaded on the device before"):
        device.run(other.relu_forward, VALUES)


@pytest.mark.process
@pytest.mark.parametrize(("instance", "architecture", "chip"), [("Trn2", "NCv3", "trn2"), ("Trn3", "NCv4", "trn3")])
def test_newer_chips_have_no_custom_operators(
    relu: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, instance: str, architecture: str, chip: str
) -> None:
    """The reason of the skipped test says for which NeuronCore they are, and that their library is in maintenance."""
    newer = machines.neuron_root(tmp_path / "newer", instance=instance, architecture=architecture)
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(newer))
    assert device_for(relu.relu_forward) == (
        None,
        "custom C++ operators are for NeuronCore-v2 only (trn1, inf2), and in maintenance since Neuron SDK 2.33; the "
        f"NeuronCore of this machine is of {chip}",
    )


@pytest.mark.process
def test_the_loader_is_looked_for(relu: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS's nki alone can reach the device, and cannot load custom operators."""
    assert isinstance(device_for(relu.relu_forward).device, NeuronOperatorDevice)
    monkeypatch.setattr("nkitools.targets.neuron.neuron_packages", lambda: ("nki",))
    monkeypatch.setattr("nkitools.targets.neuron_packages.is_installed", lambda package: False)
    reason = (
        "no way to run a custom operator on it: module torch_neuronx is not installed. Install torch-neuronx 2.9 with "
        "torch-xla (SDK 2.31)."
    )
    assert device_for(relu.relu_forward) == (None, reason)
    monkeypatch.setattr("nkitools.targets.neuron_packages.is_installed", lambda package: True)
    monkeypatch.setattr("nkitools.targets.neuron_packages.version_of", lambda package: "2.14.3.0")
    monkeypatch.setattr(NeuronOperatorDevice, "chip", lambda device: "")
    reason = (
        "no way to run a custom operator on it: native torch-neuronx 2.14.3.0 has no loader for custom operators. "
        "Install torch-neuronx 2.9 with torch-xla (SDK 2.31)."
    )
    assert device_for(relu.relu_forward) == (None, reason)
    with options.override(target="tpu"):
        assert device_for(relu.relu_forward) == (None, "a custom operator does not run on TPU")


@pytest.mark.process
def test_an_operator_is_simulated_whatever_simulator_is_named(relu: Library) -> None:
    """AWS's simulators know NKI kernels only."""
    with options.override(simulator="official"):
        assert isinstance(simulator_for(relu.relu_forward), GpSimdSimulator)


class Benchmark:
    """The parts of pytest-benchmark's fixture that are used."""

    def __init__(self) -> None:
        self.group: str | None = None
        self.extra_info: dict[str, Any] = {}
        self.stats = SimpleNamespace(stats=SimpleNamespace(min=1e-4))

    def __call__(self, launch: Any) -> Any:
        return [launch() for _ in range(3)][-1]

    def pedantic(self, launch: Any, *, setup: Any, rounds: int) -> Any:
        for _ in range(rounds):
            setup()
            outputs = launch()
        return outputs


@pytest.mark.process
def test_an_operator_is_timed(relu: Library) -> None:
    """Built and called once before the first round; each round is awaited; the arguments stay on the device."""
    benchmark = Benchmark()
    out = time_kernel(benchmark, NeuronOperatorDevice(), relu.relu_forward, (VALUES,), {})
    assert out.tobytes() == reference.relu_forward(VALUES).tobytes()
    assert benchmark.group == "relu_forward(float32[1,5])"
    assert benchmark.extra_info["chip"] == "inf2"
    assert benchmark.extra_info["bytes"] == 2 * VALUES.nbytes
    assert benchmark.extra_info["device_time"] == "not measured: a custom operator leaves no NEFF of its own"
    log = fake("torch_xla").log
    assert log == ["sync", "wait"] * (len(log) // 2)
    assert len(log) // 2 >= 7  # compiled by the first, looked at by the second


def test_a_torch_module_is_a_baseline() -> None:
    """Its copy goes to the device, NumPy in gives NumPy out, and it is no kernel to simulate."""
    module = torch.nn.ReLU()
    device = device_for(module).device
    assert isinstance(device, NeuronModuleDevice)
    out = time_kernel(Benchmark(), device, module, (VALUES,), {})
    np.testing.assert_array_equal(out, reference.relu_forward(VALUES))
    assert device.run(torch.nn.Linear(5, 2), torch.from_numpy(VALUES)).outputs.shape == (1, 2)
    with pytest.raises(NotModelled, match="a torch module is no kernel"):
        simulator_for(module).run(module, VALUES)


def test_a_torch_module_is_a_baseline_under_torch_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """`compiled=True` compiles it for the native backend; torch-xla has one graph of it in any case."""
    module, backends = torch.nn.ReLU(), []
    device = NeuronModuleDevice()
    with pytest.raises(NotModelled, match="torch-xla compiles a module as one graph in any case"):
        device.run(module, VALUES, compiled=True)

    def compiled(given: Any, *, backend: str) -> Any:
        backends.append(backend)
        return given

    way = TorchXla()
    way.device = "neuron"  # as that of the native backend is called; this one is the CPU
    monkeypatch.setattr(neuron_ways, "torch_way", lambda *asked: way)
    monkeypatch.setattr(torch, "compile", compiled)
    monkeypatch.setattr(torch.nn.Module, "to", lambda module, place: module)
    monkeypatch.setattr(TorchXla, "to_device", lambda way, value: torch.from_numpy(value) if value is VALUES else value)
    np.testing.assert_array_equal(device.run(module, VALUES, compiled=True).outputs, reference.relu_forward(VALUES))
    assert backends == ["neuron"]


@pytest.fixture
def compile_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The process of the target `compile` on a machine with the native backend; its folder of NEFFs."""
    import tempfile

    versions = {"torch-neuronx": "2.14.3.0"}
    way = TorchNeuron.__new__(TorchNeuron)
    way._torch = SimpleNamespace(neuron=SimpleNamespace(synchronize=lambda: None))
    way.device = "neuron"
    monkeypatch.setattr(neuron_ways, "torch_way", lambda *asked: way)
    monkeypatch.setattr(
        TorchNeuron, "to_device", lambda way, value: torch.from_numpy(value) if value is VALUES else value
    )
    monkeypatch.setattr(torch.nn.Module, "to", lambda module, place: module)
    for each in ("neuron_packages", "neuron_module"):
        monkeypatch.setattr(f"nkitools.targets.{each}.version_of", versions.get)
    monkeypatch.setattr("nkitools.targets.neuron_compiler.aws_package", lambda *names: True)
    monkeypatch.setenv("PATH", str(machines.FAKES / "compiler"))
    monkeypatch.delenv("TORCH_NEURONX_NEFF_CACHE_DIR", raising=False)
    monkeypatch.delenv("NEURON_PLATFORM_TARGET_OVERRIDE", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with options.override(target="compile", chip="trn2"), units_of([ModuleCompiler()], 0) as environment:
        assert environment["NEURON_PLATFORM_TARGET_OVERRIDE"] == "trn2"
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield Path(environment["TORCH_NEURONX_NEFF_CACHE_DIR"])


def test_a_torch_module_is_compiled_without_a_device(compile_only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the compile-only mode of the native backend, by a call; what shows that it compiled is the NEFF that it left.

    The call runs graphs of `torch.compile` alone: without `compiled=True` and without the variable it is refused.
    """
    module, writes = torch.nn.ReLU(), True

    def compiled(given: Any, *, backend: str) -> Any:
        assert (backend, os.environ["TORCH_NEURONX_COMPILE_ONLY"]) == ("neuron", "1")

        def call(values: Any) -> Any:
            if writes:
                (compile_only / "graph.neff").touch()
            return given(values)

        return call

    monkeypatch.setattr(torch, "compile", compiled)
    device = device_for(module).device
    assert isinstance(device, ModuleCompiler)
    said = r"ReLU.*: compiled for trn2 by the compile-only mode of torch-neuronx 2\.14\.3\.0 in .* s: 1 new NEFF"
    with pytest.raises(WrongDevice, match=rf"this target only compiles\. {said}"):
        time_kernel(Benchmark(), device, module, (VALUES,), {"compiled": True})
    (compile_only / "graph.neff").unlink()
    with pytest.raises(WrongDevice, match=rf"{said} in the cache\. Its results are not computed"):
        device.run(module, VALUES, compiled=True)
    (compile_only / "graph.neff").unlink()
    writes = False
    with pytest.raises(NotModelled, match="has left no NEFF in its cache and raised no error"):
        device.run(module, VALUES, compiled=True)
    with pytest.raises(NotModelled, match="would run operation by operation, and this target compiles graphs"):
        device.run(module, VALUES)
    monkeypatch.delenv("TORCH_NEURONX_COMPILE_ONLY")
    with pytest.raises(NotModelled, match="must be 1 before torch is imported"):
        device.run(module, VALUES, compiled=True)


def test_compiling_a_torch_module_takes_the_native_backend(compile_only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch-xla has no such mode, and the native backend is for trn2 and trn3."""
    module = torch.nn.ReLU()
    with options.override(chip="inf2"):
        assert device_for(module).reason.startswith("no compiler of torch modules: torch-neuronx 2.14.3.0 is for Trn2")
    monkeypatch.setattr("nkitools.targets.neuron_packages.version_of", {"torch-neuronx": "2.9.0.2.15"}.get)
    reason = (
        "no compiler of torch modules: torch-neuronx 2.9.0.2.15 with torch-xla, and the compile-only mode is that of "
    )
    assert device_for(module) == (None, f"{reason}torch-neuronx 2.10 and higher")


@pytest.mark.process
def test_the_libraries_of_the_loader_are_looked_for(relu: Library, root: Path) -> None:
    """Without them the failure would be an error of AWS's build script: each package is named."""
    (root / "opt/aws/neuron/gpsimd/script/build_custom_op.py").unlink()
    reason = device_for(relu.relu_forward).reason
    assert reason.startswith("no way to build a custom operator for it: found no aws-neuronx-gpsimd-customop-lib. ")
    assert reason.endswith("they are in maintenance since Neuron SDK 2.33")
    (root / "opt/aws/neuron/gpsimd/tools").rmdir()
    assert (
        "found no aws-neuronx-gpsimd-customop-lib and no aws-neuronx-gpsimd-tools"
        in NeuronOperatorDevice().available().reason
    )
