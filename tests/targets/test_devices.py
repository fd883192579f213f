"""The devices: what is looked for, what is said of what is missing, and that a device found is never pretended with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from nkitools import options
from nkitools.rules.finding import NotModelled
from nkitools.targets import choice, missing_devices, neuron, packages, simulator_for, tpu
from nkitools.targets.builtin import BuiltinSimulator
from nkitools.targets.neuron import NeuronDevice
from nkitools.targets.official import OfficialSimulator
from nkitools.targets.tpu import TpuDevice

CACHES = (neuron.device_nodes, tpu._look, packages.is_installed, packages.aws_package)


@pytest.fixture(autouse=True)
def _looked_for_afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test looks for itself, on a machine whose JAX was told nothing."""
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    caches = CACHES
    for cached in caches:
        cached.cache_clear()
    yield
    monkeypatch.undo()
    for cached in caches:
        cached.cache_clear()


def author_kernel() -> None:
    """A kernel of nobody's; these tests never reach its body."""


def test_a_machine_without_neuron_says_what_it_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason of a skipped test names the device node and the modules."""
    monkeypatch.setattr(neuron, "device_nodes", tuple)
    monkeypatch.setattr(neuron, "neuron_packages", tuple)
    assert NeuronDevice().available() == (
        False,
        "no NeuronCore: found no device node /dev/neuron* and neither module neuronxcc nor module torch_neuronx",
    )


@pytest.mark.parametrize(
    ("nodes", "installed", "missing"),
    [
        ((), ("torch_neuronx",), "no NeuronCore: found no device node /dev/neuron*"),
        (("/dev/neuron0",), (), "no NeuronCore: found neither module neuronxcc nor module torch_neuronx"),
    ],
)
def test_only_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, nodes: tuple[str, ...], installed: tuple[str, ...], missing: str
) -> None:
    """A driver without a package, and a package without a driver, are told apart."""
    monkeypatch.setattr(neuron, "device_nodes", lambda: nodes)
    monkeypatch.setattr(neuron, "neuron_packages", lambda: installed)
    assert NeuronDevice().available() == (False, missing)


def test_a_neuron_device_that_cannot_be_driven_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device found is no licence to pretend: NK607 at the kernel's own definition."""
    monkeypatch.setattr(neuron, "device_nodes", lambda: ("/dev/neuron0",))
    monkeypatch.setattr(neuron, "neuron_packages", lambda: ("torch_neuronx",))
    assert NeuronDevice().available() == (True, "/dev/neuron0, torch_neuronx")
    with pytest.raises(NotModelled) as caught:
        NeuronDevice().run(author_kernel)
    finding = caught.value.finding
    assert (finding.rule, finding.function, Path(finding.file).name) == ("NK607", "author_kernel", "test_devices.py")
    assert "`author_kernel` was asked to run on a NeuronCore (/dev/neuron0, torch_neuronx)" in finding.message
    assert finding.line == author_kernel.__code__.co_firstlineno


def test_jax_is_not_imported_where_no_tpu_is_thinkable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for a TPU on a laptop costs a glob, not an import of JAX."""
    monkeypatch.setattr(tpu, "glob", lambda pattern: [])
    monkeypatch.setattr(tpu, "is_installed", lambda package: True)
    monkeypatch.setitem(sys.modules, "jax", None)  # an import of it would fail
    assert TpuDevice().available() == (
        False,
        "no TPU: found no device node /dev/accel* or /dev/vfio/[0-9]*, so jax.devices() was not asked",
    )


def test_a_machine_without_jax_has_no_tpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without JAX nothing else is looked for."""
    monkeypatch.setattr(tpu, "is_installed", lambda package: False)
    assert TpuDevice().available() == (False, "no TPU: module jax is not installed")


def _jax_with(platforms: list[str]) -> SimpleNamespace:
    return SimpleNamespace(devices=lambda: [SimpleNamespace(platform=platform) for platform in platforms])


@pytest.mark.parametrize(
    ("platforms", "expected"),
    [(["tpu", "tpu"], (True, "jax.devices()")), (["cpu"], (False, "no TPU: jax.devices() has cpu only"))],
)
def test_where_a_tpu_is_thinkable_jax_decides(
    monkeypatch: pytest.MonkeyPatch, platforms: list[str], expected: tuple[bool, str]
) -> None:
    """A device node alone is no TPU: jax.devices() has the last word."""
    monkeypatch.setattr(tpu, "is_installed", lambda package: True)
    monkeypatch.setattr(tpu, "glob", lambda pattern: ["/dev/accel0"])
    monkeypatch.setitem(sys.modules, "jax", _jax_with(platforms))
    assert TpuDevice().available() == expected


def test_a_jax_that_was_told_to_use_a_tpu_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote TPU has no device node; JAX_PLATFORMS says that it is meant. A failing JAX is quoted."""
    monkeypatch.setattr(tpu, "is_installed", lambda package: True)
    monkeypatch.setattr(tpu, "glob", lambda pattern: [])
    monkeypatch.setenv("JAX_PLATFORMS", "tpu,cpu")

    def devices() -> None:
        raise RuntimeError("Unable to initialize backend 'tpu'")

    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(devices=devices))
    assert TpuDevice().available() == (
        False,
        "no TPU: jax.devices() failed: Unable to initialize backend 'tpu'",
    )


def test_a_tpu_that_cannot_be_driven_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a NeuronCore: NK607, never a pretended run."""
    monkeypatch.setattr(tpu, "_look", lambda: packages)  # any object with a reason would do
    monkeypatch.setattr(packages, "reason", "jax.devices()", raising=False)
    with pytest.raises(NotModelled, match="`author_kernel` was asked to run on a TPU"):
        TpuDevice().run(author_kernel)


def test_the_reasons_of_all_kinds_are_joined_and_one_device_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hw test may be skipped early only where there is no device of any kind."""
    monkeypatch.setattr(neuron, "device_nodes", tuple)
    monkeypatch.setattr(tpu, "is_installed", lambda package: False)
    said = missing_devices()
    assert said.startswith("no NeuronCore: found no device node /dev/neuron*")
    assert said.endswith("; no TPU: module jax is not installed")
    monkeypatch.setattr(neuron, "device_nodes", lambda: ("/dev/neuron0",))
    monkeypatch.setattr(neuron, "neuron_packages", lambda: ("neuronxcc",))
    assert missing_devices() == ""


def test_the_kind_of_a_kernel_decides_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A JAX function is looked for on a TPU, everything else on a NeuronCore."""
    monkeypatch.setattr(choice, "is_jax_function", lambda kernel: kernel is author_kernel)
    assert isinstance(choice.device_for(author_kernel), TpuDevice)
    assert isinstance(choice.device_for(lambda: None), NeuronDevice)


def test_the_option_decides_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """--nki-simulator names the target of the sim tests; AWS's has nothing to say to a JAX function."""
    with options.override(simulator="builtin"):
        assert isinstance(simulator_for(author_kernel), BuiltinSimulator)
    with options.override(simulator="official"):
        assert isinstance(simulator_for(author_kernel), OfficialSimulator)
        monkeypatch.setattr(choice, "is_jax_function", lambda kernel: True)
        assert isinstance(simulator_for(author_kernel), BuiltinSimulator)
