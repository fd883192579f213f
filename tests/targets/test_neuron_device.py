"""NeuronCores: what is looked for, what is said of what is missing, what the driver says, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nkitools.facts import options
from nkitools.launch.kernel import KernelObject
from nkitools.rules.finding import NotModelled
from nkitools.targets import WrongDevice, neuron, neuron_packages
from nkitools.targets.neuron import NeuronDevice
from nkitools.targets.target import OtherDegree
from tests.fakes import machines

pytestmark = pytest.mark.usefixtures("root")


def author_kernel() -> None:
    """A kernel of nobody's; these tests never reach its body."""


def test_a_machine_without_neuron_says_what_it_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason of a skipped test names the device node and the modules."""
    monkeypatch.setattr(neuron, "neuron_packages", tuple)
    assert NeuronDevice().available() == (
        False,
        "no NeuronCore: found no device node /dev/neuron[0-9]* and neither module nki nor module neuronxcc of AWS's "
        "own, nor module torch_neuronx",
    )


@pytest.mark.parametrize(
    ("is_there", "installed", "missing"),
    [
        (False, ("torch_neuronx",), "no NeuronCore: found no device node /dev/neuron[0-9]*"),
        (
            True,
            (),
            "no NeuronCore: found neither module nki nor module neuronxcc of AWS's own, nor module torch_neuronx",
        ),
    ],
)
def test_only_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, root: Path, is_there: bool, installed: tuple[str, ...], missing: str
) -> None:
    """A driver without a package, and a package without a driver, are told apart."""
    if is_there:
        machines.neuron_root(root)
    monkeypatch.setattr(neuron, "neuron_packages", lambda: installed)
    assert NeuronDevice().available() == (False, missing)


@pytest.mark.parametrize(
    ("instance", "architecture", "chip"),
    [
        ("Inf2", "NCv2", "inf2"),
        ("Trn1", "NCv2", "trn1"),
        ("trn2.48xlarge", "NCv3", "trn2"),
        ("", "NCv4", "trn3"),
        ("Inf1", "NCv1", ""),
    ],
)
def test_the_generation_is_the_drivers(root: Path, instance: str, architecture: str, chip: str) -> None:
    """By the type of the instance, else by that of the cores; an unknown one is none."""
    machines.neuron_root(root, instance=instance, architecture=architecture)
    assert NeuronDevice().chip() == chip


def test_the_cores_of_all_devices_are_shared(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two devices of two cores are four; a trn2 joins two into one unless told otherwise; the user may name some."""
    machines.neuron_root(root, devices=2)
    assert NeuronDevice().units() == tuple(f"neuroncore-{core}" for core in range(4))
    monkeypatch.setenv("NEURON_RT_VISIBLE_CORES", "1,2-3")
    assert NeuronDevice().units() == ("neuroncore-1", "neuroncore-2", "neuroncore-3")
    monkeypatch.setenv("NEURON_RT_VISIBLE_CORES", "one")
    with pytest.raises(ValueError, match="NEURON_RT_VISIBLE_CORES is 'one'; it lists cores, as in 0-3 or 0,2"):
        NeuronDevice().units()


def test_trn2_joins_its_cores(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of a hw test is told the degree 1, that of a plain kernel, unless the user has said 2."""
    machines.neuron_root(root, instance="Trn2", architecture="NCv3")
    assert NeuronDevice().units() == ("neuroncore-0", "neuroncore-1")
    assert NeuronDevice().defaults()["NEURON_LOGICAL_NC_CONFIG"] == "1"
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "2")
    assert NeuronDevice().units() == ("neuroncore-0",)


@pytest.mark.parametrize(
    ("said", "here", "grid", "asked"),
    [("", "1", 2, 2), ("", "2", None, 1), ("", "2", (1,), 1), ("2", "1", None, 2), ("", None, None, 1)],
)
def test_a_kernel_of_another_degree_is_not_run(
    root: Path, monkeypatch: pytest.MonkeyPatch, said: str, here: str | None, grid: Any, asked: int
) -> None:
    """The runtime has the degree of the process, 2 on a Trn2 where it is not set; a plain kernel takes the user's."""
    machines.neuron_root(root, instance="Trn2", architecture="NCv3")
    monkeypatch.setenv("NKITOOLS_NEURON_DEGREE", said)
    if here:
        monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", here)
    with pytest.raises(OtherDegree, match=f"`author_kernel` is for logical cores of {asked} physical ones") as caught:
        NeuronDevice().run(author_kernel, grid=grid)
    assert caught.value.degree == asked


def test_an_inf2_is_known_by_its_cores_and_by_the_product(root: Path) -> None:
    """The driver calls the device of an Inf2 NDv3, as that of a Trn2; device_name says the product."""
    machines.neuron_root(root, instance="", architecture="NCv2")
    assert NeuronDevice().facts()["arch_type"] == "NDv3"
    assert NeuronDevice().chip() in ("inf2", "trn1")
    (root / "sys/devices/virtual/neuron_device/neuron0/info/architecture/device_name").write_text("Trainium2\n")
    assert NeuronDevice().chip() == "trn2"


@pytest.mark.parametrize(
    ("version", "is_xla_here", "chip", "kind", "reason"),
    [
        ("2.14.3.0", False, "trn2", "native", "native torch-neuronx 2.14.3.0"),
        (
            "2.14.3.0",
            True,
            "inf2",
            "",
            "torch-neuronx 2.14.3.0 is for Trn2 and Trn3, and the NeuronCore here is of inf2",
        ),
        ("2.9.0.2.15", True, "inf2", "xla", "torch-neuronx 2.9.0.2.15 with torch-xla"),
        (
            "2.9.0.2.15",
            False,
            "trn1",
            "",
            "torch-neuronx 2.9.0.2.15 is driven by torch-xla, and module torch_xla is not installed",
        ),
        ("2.10.1", True, "", "native", "native torch-neuronx 2.10.1"),
    ],
)
def test_the_version_of_torch_neuronx_says_the_way(
    monkeypatch: pytest.MonkeyPatch, version: str, is_xla_here: bool, chip: str, kind: str, reason: str
) -> None:
    """2.10 and higher is native, for Trn2 and Trn3; lower is torch-xla's; without a way the one that fits is named."""
    monkeypatch.setattr(neuron_packages, "version_of", lambda package: version)
    monkeypatch.setattr(neuron_packages, "is_installed", lambda name: name != "torch_xla" or is_xla_here)
    found = neuron_packages.torch_backend(chip)
    assert (found.kind, found.reason) == (kind, reason)
    assert (found.remedy != "") == (kind == "")
    assert "2.9" in found.remedy or kind


@pytest.mark.parametrize("version", ["2.14.3.0", "2.9.0.2.15"])
def test_a_backend_without_torch_is_no_way(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Neither the native one nor torch-xla's."""
    monkeypatch.setattr(neuron_packages, "version_of", lambda package: version)
    monkeypatch.setattr(neuron_packages, "is_installed", lambda name: name != "torch")
    found = neuron_packages.torch_backend("trn2")
    reason = f"torch-neuronx {version} is here, and module torch is not installed"
    assert found == ("", reason, "Install torch.")


def test_jax_on_a_cpu_is_no_neuroncore() -> None:
    """Without AWS's plugin JAX's first device is a CPU, which would pass a test on hardware."""
    jnp = pytest.importorskip("jax.numpy")

    class Kernel:
        __name__ = "mine"

        def __getitem__(self, grid: Any) -> Any: ...

    with pytest.raises(WrongDevice, match=r"no NeuronCore: jax\.devices\(\) has cpu only\. Install libneuronxla"):
        NeuronDevice().run(Kernel(), jnp.zeros(2))


def test_a_kernel_of_the_stand_in_cannot_go_to_a_device() -> None:
    """NK607 at the kernel's own definition, and what to do about it."""
    kernel = KernelObject(author_kernel)
    with pytest.raises(NotModelled, match=r"`author_kernel` was made with nkitools' stand-in") as caught:
        NeuronDevice().run(kernel)
    finding = caught.value.finding
    assert (finding.rule, Path(finding.file).name) == ("NK607", "test_neuron_device.py")
    assert finding.line == author_kernel.__code__.co_firstlineno
    assert "nki_stand_in = auto" in finding.remedy


def test_a_compiler_that_is_too_new_for_the_legacy_dialect_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the run, with the last SDK that compiles it; neuronx-cc 2.24 is not refused."""
    monkeypatch.setattr(neuron, "version_of", lambda package: "2.28.7631.0")
    monkeypatch.setattr(neuron, "is_legacy", lambda kernel: True)
    with pytest.raises(NotModelled, match=r"is of neuronxcc\.nki, which neuronx-cc 2\.28\.7631\.0 does not") as caught:
        NeuronDevice().run(author_kernel)
    assert "SDK 2.29.1 (neuronx-cc 2.24)" in caught.value.finding.remedy
    monkeypatch.setattr(neuron, "version_of", lambda package: "2.24.5133.0")
    with pytest.raises(NotModelled, match="is to run on 2 communicating ranks"):
        NeuronDevice().run(author_kernel, ranks=2)


def test_ranks_need_a_launcher() -> None:
    """Communicating ranks are not started here."""
    with pytest.raises(NotModelled, match="is to run on 2 communicating ranks"):
        NeuronDevice().run(author_kernel, ranks=2)


def test_arrays_of_two_frameworks_are_refused() -> None:
    """One framework drives the device."""
    torch, jnp = pytest.importorskip("torch"), pytest.importorskip("jax.numpy")

    class Kernel:
        __name__ = "mixed"

        def __getitem__(self, grid: Any) -> Any: ...

    with pytest.raises(NotModelled, match="`mixed` are of jax and torch; a NeuronCore is driven by one framework"):
        NeuronDevice().run(Kernel(), torch.zeros(2), jnp.zeros(2))


def test_the_option_names_a_generation_too(root: Path) -> None:
    """--nki-chip for another generation than the device's, unless the call says otherwise."""
    machines.neuron_root(root)
    with options.override(chip="trn2"):
        with pytest.raises(WrongDevice, match="is to run on trn2, and the NeuronCore of this machine is of inf2"):
            NeuronDevice().check_chip(None)
        NeuronDevice().check_chip("trn1")
