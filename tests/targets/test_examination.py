"""What `nkitools doctor` finds: on a bare laptop, on instances, and where an install is not what it seems."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nkitools.dialects.stand_in import StandInFinder
from nkitools.facts.tsv import rows_of
from nkitools.targets import examination, neuron, neuron_packages, packages
from nkitools.targets import jax_devices as jax_targets
from nkitools.targets.examination import Part, examine
from nkitools.targets.neuron import NeuronDevice
from tests.fakes import machines

VARIABLES = tuple(row["name"] for row in rows_of(Path(examination.__file__).with_name("variables.tsv")))
AWS_NAMES = ("nki", "neuronxcc")
Machine = Callable[..., dict[tuple[str, str], Part]]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Machine]:
    """What is found on a machine with these fakes on the path and these device nodes."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(tmp_path / "root"))
    # No stand-in, and no module of AWS's names left from elsewhere.
    monkeypatch.setattr(sys, "meta_path", [each for each in sys.meta_path if not isinstance(each, StandInFinder)])
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in AWS_NAMES}
    caches = (packages.is_installed, packages.aws_package)

    def on(*fakes: Path, nodes: tuple[str, ...] = (), instance: str = "Inf2") -> dict[tuple[str, str], Part]:
        if "/dev/neuron0" in nodes:
            machines.neuron_root(tmp_path / "root", instance=instance)
        machines.node_root(tmp_path / "root", *nodes)
        for fake in fakes:
            monkeypatch.syspath_prepend(str(fake))
        for cached in caches:
            cached.cache_clear()
        return {(part.area, part.name): part for part in examine()}

    yield on
    monkeypatch.undo()
    for name in [name for name in sys.modules if name.split(".")[0] in AWS_NAMES]:
        del sys.modules[name]
    sys.modules.update(kept)
    for cached in caches:
        cached.cache_clear()


def package(directory: Path, name: str, *parts: str, init: str = "") -> Path:
    """A directory for the path with a package that has these parts."""
    (directory / name).mkdir(parents=True)
    (directory / name / "__init__.py").write_text(init)
    for part in parts:
        (directory / name / f"{part}.py").touch()
    return directory


@pytest.mark.process
def test_everything_says_what_it_is_good_for_and_what_is_missing_how_to_get_it(found: Machine) -> None:
    """Nothing is told to be missing and left at that; each part is named once."""
    parts = found()
    assert all(part.found and part.enables for part in parts.values())
    missing = {name for (area, name), part in parts.items() if not part.present and area != "Environment"}
    assert {name for (area, name), part in parts.items() if part.remedy} == missing
    assert {area for area, _ in parts} == {"Python", "Packages", "Simulators", "Devices", "Compilers", "Environment"}
    assert not any(parts["Devices", name].present for name in ("neuron", "tpu", "gpu", "neuron, C++"))
    assert parts["Devices", "neuron"].found.startswith("no NeuronCore: found no device node /dev/neuron[0-9]*")
    assert "aws-neuronx-dkms" in parts["Devices", "neuron"].remedy


@pytest.mark.process
def test_an_instance(found: Machine) -> None:
    """The generation and the cores are the driver's; AWS's simulator comes with AWS's package."""
    parts = found(machines.FAKES / "aws", nodes=("/dev/neuron0",))
    assert parts["Devices", "neuron"].present
    assert parts["Devices", "neuron"].found == (
        "inf2, cores for processes of their own: 2; /dev/neuron0, nki; NumPy arrays; no torch tensors: module "
        "torch_neuronx is not installed; no JAX: module libneuronxla not installed"
    )
    neuronxcc = parts["Packages", "neuronxcc"]
    assert (neuronxcc.found, neuronxcc.remedy) == ("not installed; kernels of nki do not need it", "")
    assert parts["Packages", "nki"].found == "installed"
    assert (parts["Simulators", "official"].present, parts["Simulators", "official"].found) == (True, "nki.simulate")
    assert not parts["Devices", "neuron, C++"].present
    assert "torch_neuronx" in parts["Devices", "neuron, C++"].found


@pytest.mark.process
def test_a_trn2_of_today(found: Machine, tmp_path: Path) -> None:
    """Its cores by degree, the ways that are there and those that are not; modules run, C++ operators do not."""
    fakes = machines.FAKES / "native", machines.FAKES / "aws", package(tmp_path / "with torch", "torch")
    parts = found(*fakes, nodes=("/dev/neuron0",), instance="Trn2")
    assert parts["Devices", "neuron"].found == (
        "trn2, cores for processes of their own: 2 of LNC 1, 1 of LNC 2; /dev/neuron0, nki 0.7.0; native torch-neuronx "
        "2.14.3.0 (torch tensors), NumPy arrays; no JAX: module libneuronxla not installed"
    )
    assert parts["Devices", "neuron, modules"].present
    assert "custom C++ operators are for NeuronCore-v2 only" in parts["Devices", "neuron, C++"].found


@pytest.mark.process
def test_an_inf2_with_torch_xla(found: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The legacy dialect is not there where neuronx-cc is too new, though its package is."""
    versions = {"torch-neuronx": "2.9.0.2.15", "neuronx-cc": "2.26.6360"}
    monkeypatch.setattr(neuron_packages, "version_of", versions.get)
    fakes = machines.FAKES / "torch", machines.FAKES / "legacy", package(tmp_path / "with torch", "torch")
    parts = found(*fakes, nodes=("/dev/neuron0",))
    assert parts["Devices", "neuron"].found.endswith(
        "; torch-neuronx 2.9.0.2.15 with torch-xla (torch tensors), NumPy arrays; no JAX: module libneuronxla not "
        "installed; no legacy dialect: neuronx-cc 2.26.6360, and that of SDK 2.29.1 is the last"
    )
    assert parts["Devices", "neuron, C++"].present
    assert parts["Devices", "neuron, modules"].present


@pytest.mark.process
def test_a_trn2_with_jax(found: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX by AWS's plugin, with its version; torch tensors have no way, and what they would need is said."""
    installed = {"jax", "libneuronxla"}
    versions = {"jax": "0.10.0", "libneuronxla": "3.0.10135", "nki": "0.7.0"}
    monkeypatch.setattr(neuron_packages, "is_installed", installed.__contains__)
    monkeypatch.setattr(neuron_packages, "version_of", versions.get)
    monkeypatch.setattr(neuron, "version_of", versions.get)
    parts = found(machines.FAKES / "jax", machines.FAKES / "aws", nodes=("/dev/neuron0",), instance="Trn2")
    assert parts["Devices", "neuron"].found == (
        "trn2, cores for processes of their own: 2 of LNC 1, 1 of LNC 2; /dev/neuron0, nki 0.7.0; JAX 0.10.0 by "
        "libneuronxla, NumPy arrays; no torch tensors: module torch_neuronx is not installed"
    )
    plugin = parts["Packages", "libneuronxla"]
    assert (plugin.present, plugin.found, plugin.enables) == (True, "3.0.10135", "JAX on a NeuronCore")
    assert NeuronDevice().facts()["libneuronxla"] == "3.0.10135"
    modules = parts["Devices", "neuron, modules"]
    assert not modules.present
    assert modules.found.endswith("Install torch-neuronx 2.14 (SDK 2.33), torch's native backend.")


@pytest.mark.process
def test_an_inf2_of_today_without_the_packages_of_torch_xla(found: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The native backend is not for its chip: NumPy and JAX are the ways; operators say what to install."""
    versions = {"jax": "0.10.0", "torch-neuronx": "2.14.3.0", "nki": "0.7.0"}
    monkeypatch.setattr(neuron_packages, "is_installed", {"jax", "libneuronxla", "torch_neuronx"}.__contains__)
    monkeypatch.setattr(neuron_packages, "version_of", versions.get)
    parts = found(machines.FAKES / "jax", machines.FAKES / "aws", nodes=("/dev/neuron0",))
    assert parts["Devices", "neuron"].found.endswith(
        "; JAX 0.10.0 by libneuronxla, NumPy arrays; no torch tensors: torch-neuronx 2.14.3.0 is for Trn2 and Trn3, "
        "and the NeuronCore here is of inf2"
    )
    operators = parts["Devices", "neuron, C++"]
    assert not operators.present
    assert operators.found.endswith("Install torch-neuronx 2.9 with torch-xla (SDK 2.31).")


@pytest.mark.process
def test_what_is_known_of_installed_versions(found: Machine) -> None:
    """The native backend on an Inf2 is named with its version, its page, and what to take in its place."""
    parts = found(machines.FAKES / "native", machines.FAKES / "aws", nodes=("/dev/neuron0",))
    known = parts["Known of these versions", "torch-neuronx"]
    assert known.found.startswith("2.14.3.0: ")
    assert parts["Known of these versions", "nki"].found.startswith("0.7.0: ")


@pytest.mark.process
@pytest.mark.parametrize(("node", "name"), [("/dev/accel0", "tpu"), ("/dev/nvidia0", "gpu")])
def test_devices_of_jax(found: Machine, monkeypatch: pytest.MonkeyPatch, node: str, name: str) -> None:
    """By their device nodes, without importing JAX; where the plugin of JAX is missing, it is named."""
    monkeypatch.setattr(jax_targets, "is_installed", lambda package: package == "jax")
    part = found(nodes=(node,))["Devices", name]
    if name == "gpu":
        assert (part.present, part.found) == (
            False,
            "no GPU: found neither module jax_cuda13_plugin nor module jax_cuda12_plugin",
        )
        assert "jax[cuda13]" in part.remedy
        monkeypatch.setattr(jax_targets, "is_installed", lambda package: True)
        part = found()["Devices", name]
    assert part.present
    assert part.found.startswith(f"{node}, jax")


@pytest.mark.process
def test_the_placeholder_of_pypi_is_recognised(found: Machine, tmp_path: Path) -> None:
    """It is not imported, since that raises; it counts neither as a package nor as a way to a device."""
    path = package(tmp_path / "pypi", "nki", init="raise RuntimeError('WRONG PACKAGE')\n")
    package(tmp_path / "pypi", "neuronxcc", init="raise RuntimeError('WRONG PACKAGE')\n")
    parts = found(path, nodes=("/dev/neuron0",))
    for name, distribution in (("nki", "nki"), ("neuronxcc", "neuronx-cc")):
        part = parts["Packages", name]
        assert (part.present, part.found) == (False, "PyPI's placeholder is installed, whose import raises")
        assert part.remedy.startswith(f"install {distribution} from AWS's own package index")
    assert not parts["Devices", "neuron"].present
    assert not parts["Simulators", "official"].present


@pytest.mark.process
def test_a_partial_install_is_reported_and_does_not_end_the_examination(found: Machine, tmp_path: Path) -> None:
    """AWS's package is here and does not import: the simulator says with what error."""
    path = package(tmp_path / "partial", "nki", "isa", init="raise OSError('libnrt.so.1: cannot open')\n")
    parts = found(path)
    assert parts["Packages", "nki"].present
    official = parts["Simulators", "official"]
    assert not official.present
    assert "nki does not import (OSError: libnrt.so.1: cannot open)" in official.found


@pytest.mark.process
def test_variables_that_mean_nothing_are_named(found: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that cannot be shared as the variable says is none, and the examination goes on."""
    monkeypatch.setenv("NEURON_RT_VISIBLE_CORES", "all")
    neuron = found(machines.FAKES / "aws", nodes=("/dev/neuron0",))["Devices", "neuron"]
    assert not neuron.present
    assert neuron.found == "no NeuronCore: NEURON_RT_VISIBLE_CORES is 'all'; it lists cores, as in 0-3 or 0,2"
    monkeypatch.delenv("NEURON_RT_VISIBLE_CORES")
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "3")
    assert "NEURON_LOGICAL_NC_CONFIG is '3'; it is 1 or 2" in found()["Devices", "neuron"].found
    monkeypatch.setattr(jax_targets, "is_installed", lambda package: True)
    for hidden in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        gpu = found(nodes=("/dev/nvidia0",))["Devices", "gpu"]
        assert (gpu.present, gpu.found) == (False, "no GPU: found all hidden by CUDA_VISIBLE_DEVICES")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert found()["Environment", "CUDA_VISIBLE_DEVICES"].found == "1,0"
    assert found()["Devices", "gpu"].present


def test_a_missing_compiler_is_reported(found: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the finder that builds use."""
    from nkitools.customop import toolchain
    from nkitools.customop.errors import BuildError

    def none() -> None:
        raise BuildError("no C++ compiler: looked for c++, g++, clang++")

    monkeypatch.setattr(toolchain, "find_compiler", none)
    compiler = found()["Compilers", "C++"]
    assert (compiler.present, compiler.found) == (False, "no C++ compiler: looked for c++, g++, clang++")
    assert "apt-get install g++" in compiler.remedy
