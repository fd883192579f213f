"""The devices: what is looked for, what is said of what is missing, what the driver says, and who may have a core."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkitools import options
from nkitools.launch.kernel import KernelObject
from nkitools.rules.finding import NotModelled
from nkitools.targets import (
    WrongDevice,
    choice,
    device_for,
    devices,
    missing_devices,
    neuron,
    neuron_packages,
    packages,
    simulator_for,
)
from nkitools.targets import jax_devices as jax_targets
from nkitools.targets.builtin import BuiltinSimulator
from nkitools.targets.jax_devices import GpuDevice, TpuDevice
from nkitools.targets.neuron import NeuronDevice
from nkitools.targets.official import OfficialSimulator
from nkitools.targets.target import OtherDegree
from nkitools.targets.units import DeviceBusy, is_waited_for, units_of
from tests.fakes import machines

CACHES = (packages.is_installed, packages.aws_package)
VARIABLES = ("JAX_PLATFORMS", "NEURON_RT_VISIBLE_CORES", "NEURON_LOGICAL_NC_CONFIG", "CUDA_VISIBLE_DEVICES")


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A machine without devices, told nothing; each test looks for itself."""
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("NKITOOLS_SYSROOT", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for cached in CACHES:
        cached.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    for cached in CACHES:
        cached.cache_clear()


def author_kernel() -> None:
    """A kernel of nobody's; these tests never reach its body."""


# --- NeuronCores -----------------------------------------------------------------------------------------------------


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


def test_processes_of_two_degrees_share_physical_cores(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A logical core of two holds the locks of both; a process knows the cores of the user, not only its own."""
    machines.neuron_root(root, instance="Trn2", architecture="NCv3", devices=2)
    one, two = NeuronDevice(), NeuronDevice().of_degree(2)
    assert (len(one.units()), two.units()) == (4, ("neuroncore-0", "neuroncore-1"))
    with units_of([one], 0) as first, units_of([two], 0) as second:
        assert first["NEURON_RT_VISIBLE_CORES"] == "0"
        assert (second["NEURON_RT_VISIBLE_CORES"], second["NEURON_LOGICAL_NC_CONFIG"]) == ("1", "2")
        with pytest.raises(DeviceBusy):
            units_of([two], 0).__enter__()
        for name, value in second.items():
            monkeypatch.setenv(name, value)
        with units_of([NeuronDevice().of_degree(1)], 0) as beside:  # in the process of the second
            assert (beside["NEURON_RT_VISIBLE_CORES"], beside["NEURON_LOGICAL_NC_CONFIG"]) == ("1", "1")
    for name in second:
        monkeypatch.delenv(name)
    # The numbers that a user has set count in the user's degree.
    monkeypatch.setenv("NEURON_LOGICAL_NC_CONFIG", "2")
    monkeypatch.setenv("NEURON_RT_VISIBLE_CORES", "1")
    assert NeuronDevice().units() == ("neuroncore-1",)
    assert NeuronDevice().of_degree(1).units() == ("neuroncore-2", "neuroncore-3")


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


def test_jax_on_a_cpu_is_no_neuroncore() -> None:
    """Without AWS's plugin JAX's first device is a CPU, which would pass a test on hardware."""
    jnp = pytest.importorskip("jax.numpy")

    class Kernel:
        __name__ = "mine"

        def __getitem__(self, grid: Any) -> Any: ...

    with pytest.raises(WrongDevice, match=r"no NeuronCore: jax\.devices\(\) has cpu only\. Install libneuronxla"):
        NeuronDevice().run(Kernel(), jnp.zeros(2))


def test_a_core_goes_to_one_process_at_a_time(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each holder gets a core of its own and the variable that names it; the third is told who has them."""
    machines.neuron_root(root)
    device = NeuronDevice()
    with units_of([device], 0) as first, units_of([device], 0) as second:
        shown = {name: value for name, value in first.items() if name.startswith("NEURON_")}
        assert shown == {
            "NEURON_RT_VISIBLE_CORES": "0",
            "NEURON_PLATFORM_TARGET_OVERRIDE": "inf2",
            "NEURON_LOGICAL_NC_CONFIG": "1",
        }
        artifacts = first["NKI_ARTIFACTS_DIR"]
        assert Path(artifacts).is_dir()
        assert artifacts != second["NKI_ARTIFACTS_DIR"]
        assert second["NEURON_RT_VISIBLE_CORES"] == "1"
        with pytest.raises(DeviceBusy, match=r"NeuronCore busy: neuroncore-0 is held by process \d+; neuroncore-1"):
            units_of([device], 0).__enter__()
    assert not Path(artifacts).exists()
    with units_of([device], 0) as again:
        assert again["NEURON_RT_VISIBLE_CORES"] == "0"
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn1")
    with units_of([device], 0) as told:
        assert told["NEURON_PLATFORM_TARGET_OVERRIDE"] == "trn1"


def test_a_kernel_of_the_stand_in_cannot_go_to_a_device() -> None:
    """NK607 at the kernel's own definition, and what to do about it."""
    kernel = KernelObject(author_kernel)
    with pytest.raises(NotModelled, match=r"`author_kernel` was made with nkitools' stand-in") as caught:
        NeuronDevice().run(kernel)
    finding = caught.value.finding
    assert (finding.rule, Path(finding.file).name) == ("NK607", "test_devices.py")
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


# --- TPUs and GPUs ---------------------------------------------------------------------------------------------------


def test_jax_is_not_imported_where_no_tpu_is_thinkable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking for a TPU or GPU costs a glob, not an import of JAX."""
    monkeypatch.setattr(jax_targets, "is_installed", lambda package: package == "jax")
    monkeypatch.setitem(sys.modules, "jax", None)  # an import of it would fail
    assert TpuDevice().available() == (False, "no TPU: found no device node /dev/accel[0-9]* or /dev/vfio/[0-9]*")
    assert GpuDevice().available() == (
        False,
        "no GPU: found no device node /dev/nvidia[0-9]* and neither module jax_cuda13_plugin nor module "
        "jax_cuda12_plugin",
    )


def test_a_machine_without_jax_has_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without JAX nothing else is looked for."""
    monkeypatch.setattr(jax_targets, "is_installed", lambda package: False)
    assert TpuDevice().available() == (False, "no TPU: module jax is not installed")
    assert GpuDevice().available() == (False, "no GPU: module jax is not installed")


def test_a_device_node_is_a_device(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A TPU by its node, or where JAX was told to use a remote one; a GPU by its node and JAX's plugin."""
    monkeypatch.setattr(jax_targets, "is_installed", lambda package: True)
    monkeypatch.setattr(jax_targets, "version_of", lambda package: "0.10.2")
    machines.node_root(root, "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl")
    assert GpuDevice().available() == (True, "/dev/nvidia0, jax_cuda13_plugin")
    assert GpuDevice().units() == ("gpu-0", "gpu-1")
    assert GpuDevice().environment("gpu-1")["CUDA_VISIBLE_DEVICES"] == "1"
    assert not TpuDevice().available().ok
    monkeypatch.setenv("JAX_PLATFORMS", "proxy,cpu")
    assert TpuDevice().available() == (True, "JAX_PLATFORMS=proxy,cpu, jax 0.10.2")
    machines.node_root(root, "/dev/accel0")
    assert TpuDevice().available() == (True, "/dev/accel0, jax 0.10.2")


def test_a_tpu_that_jax_does_not_see_is_no_tpu() -> None:
    """A device node alone is none: in the run JAX has the last word."""
    pytest.importorskip("jax")
    with pytest.raises(WrongDevice, match=r"no TPU: jax\.devices\(\) has cpu only"):
        TpuDevice().run(lambda x: x, np.zeros(2))


# --- which one -------------------------------------------------------------------------------------------------------


def test_the_reasons_of_all_kinds_are_joined_and_one_device_is_enough(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hw test may be skipped early only where there is no device of any kind that it may use."""
    monkeypatch.setattr(jax_targets, "is_installed", lambda package: False)
    monkeypatch.setattr(neuron, "neuron_packages", lambda: ("neuronxcc",))
    assert missing_devices() == (
        "no NeuronCore: found no device node /dev/neuron[0-9]*; no TPU: module jax is not installed; "
        "no GPU: module jax is not installed"
    )
    machines.neuron_root(root)
    assert missing_devices() == ""
    assert missing_devices(["tpu"]) == "no TPU: module jax is not installed"
    with options.override(target="tpu"):
        assert missing_devices() == "no TPU: module jax is not installed"
        assert missing_devices(["neuron"]) == "the test is for neuron, and --nki-target is tpu"


def test_the_kind_of_a_kernel_decides_its_device(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JAX function runs on a TPU, else on a GPU; everything else on a NeuronCore."""
    monkeypatch.setattr(choice, "is_jax_function", lambda kernel: kernel is author_kernel)
    monkeypatch.setattr(jax_targets, "is_installed", lambda package: True)
    monkeypatch.setattr(neuron, "neuron_packages", lambda: ("nki",))
    machines.node_root(root, "/dev/nvidia0")
    assert isinstance(device_for(author_kernel).device, GpuDevice)
    machines.node_root(root, "/dev/accel0")
    assert isinstance(device_for(author_kernel).device, TpuDevice)
    assert isinstance(device_for(author_kernel, ["gpu"]).device, GpuDevice)
    assert device_for(author_kernel, ["neuron"]) == (None, "a JAX function does not run on NeuronCore")
    assert device_for(lambda: None) == (None, "no NeuronCore: found no device node /dev/neuron[0-9]*")
    with options.override(target="gpu"):
        assert [device.key for device in devices()] == ["gpu"]
        assert device_for(lambda: None) == (None, "an NKI kernel does not run on GPU")


def test_a_jax_function_has_no_neuroncore(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS's plugin takes NKI kernels, not Pallas ones, and has no host callbacks, so that there are no prints."""
    monkeypatch.setattr(choice, "is_jax_function", lambda kernel: kernel is author_kernel)
    monkeypatch.setattr(jax_targets, "is_installed", lambda package: package in ("jax", "libneuronxla"))
    monkeypatch.setattr(neuron, "neuron_packages", lambda: ("nki",))
    machines.neuron_root(root, instance="Trn2", architecture="NCv3")
    assert isinstance(device_for(lambda: None).device, NeuronDevice)
    device, reason = device_for(author_kernel)
    assert device is None
    assert "no TPU" in reason
    assert "no GPU" in reason
    assert "captured in simulation only" in NeuronDevice.prints


def test_the_option_decides_the_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """--nki-simulator names the target of the sim tests; AWS's has nothing to say to a JAX function."""
    with options.override(simulator="builtin"):
        assert isinstance(simulator_for(author_kernel), BuiltinSimulator)
    with options.override(simulator="official"):
        assert isinstance(simulator_for(author_kernel), OfficialSimulator)
        monkeypatch.setattr(choice, "is_jax_function", lambda kernel: True)
        assert isinstance(simulator_for(author_kernel), BuiltinSimulator)


# --- what was written for which ---------------------------------------------------------------------------------------


def test_a_tpu_is_known_by_its_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's "TPU v5 lite" is a v5e and no v5p, though that is called "TPU v5"; a GPU is known by a part of its name."""
    monkeypatch.setattr(TpuDevice, "chip", lambda device: "TPU v5 lite")
    TpuDevice().check_chip("v5e")
    TpuDevice().check_chip(None)
    for other in ("v5p", "v4", "trn1"):
        with pytest.raises(WrongDevice, match=f"is to run on {other}, and the TPU of this machine is a TPU v5 lite"):
            TpuDevice().check_chip(other)
    monkeypatch.setattr(GpuDevice, "chip", lambda device: "NVIDIA H200")
    GpuDevice().check_chip("h200")


def test_a_function_that_has_no_gpu_code_is_unfit(monkeypatch: pytest.MonkeyPatch) -> None:
    """With JAX's reason; what can be lowered is fit, and an error of the function's own is raised."""
    jax, jnp = pytest.importorskip("jax"), pytest.importorskip("jax.numpy")
    pallas = pytest.importorskip("jax.experimental.pallas")
    tpu = pytest.importorskip("jax.experimental.pallas.tpu")

    def kernel(row_ref: Any, x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref[...]

    def row_of(x: Any, row: Any) -> Any:
        """A number that is in scalar memory before the kernel begins, which a GPU does not have."""
        block = pallas.BlockSpec((1, 128), lambda i, rows: (rows[0], 0))
        grid = tpu.PrefetchScalarGridSpec(num_scalar_prefetch=1, grid=(1,), in_specs=[block], out_specs=block)
        return pallas.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((1, 128), x.dtype), grid_spec=grid)(row, x)

    def repeated(x: Any, rows: int, name: str, chips: str = "") -> Any:
        assert (rows, name, chips) == (3, "x", "")
        return jnp.broadcast_to(x, (rows, *x.shape))

    x = np.ones((8, 128), np.float32)
    # Before 0.11 a JAX without CUDA has no Pallas for it, and says so as it would of what cannot be lowered.
    reason = "(ValueError: Cannot lower|NotImplementedError: [Ss]calar prefetch not )"
    said = GpuDevice().unfit(row_of, (x, np.zeros(1, np.int32)), {})
    assert re.match(f"`row_of` does not lower to a GPU: {reason}", said)
    assert GpuDevice().unfit(repeated, (x, 3), {"name": "x", "chips": "v4"}) == ""
    with pytest.raises(ValueError, match="broadcast"):
        GpuDevice().unfit(lambda x: x + np.ones(3), (x,), {})
    assert NeuronDevice().unfit(author_kernel, (x,), {}) == ""


def test_jit_of_what_is_timed_takes_arrays_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other arguments are no tracers, and donated buffers are there in the next round."""
    jax = pytest.importorskip("jax")
    monkeypatch.setattr(TpuDevice, "platform", "cpu")
    donating = jax.jit(lambda x, rows: x[:rows] * 2, static_argnums=1, donate_argnums=0)
    prepared = TpuDevice().prepare(donating, (np.ones((4, 2), np.float32), 3), {"modes": "interpret"})
    prepared.launch()
    outputs = prepared.fetch(prepared.launch())
    np.testing.assert_array_equal(outputs, np.full((3, 2), 2, np.float32))
    assert isinstance(outputs, np.ndarray)


def test_the_option_names_a_generation_too(root: Path) -> None:
    """--nki-chip for another generation than the device's, unless the call says otherwise."""
    machines.neuron_root(root)
    with options.override(chip="trn2"):
        with pytest.raises(WrongDevice, match="is to run on trn2, and the NeuronCore of this machine is of inf2"):
            NeuronDevice().check_chip(None)
        NeuronDevice().check_chip("trn1")


def test_who_waits_for_a_device_is_seen(root: Path) -> None:
    """A holder that has had its turn gives way; without anybody waiting it need not."""
    machines.neuron_root(root)
    device = NeuronDevice()
    with units_of([device], 0), units_of([device], 0):
        assert not is_waited_for(device)
        waiting = threading.Thread(target=_hold, args=(device,))
        waiting.start()
        until = time.monotonic() + 30
        while not is_waited_for(device) and time.monotonic() < until:
            time.sleep(0.01)
        assert is_waited_for(device)
    waiting.join(30)
    assert not waiting.is_alive()
    assert not is_waited_for(device)


def _hold(device: NeuronDevice) -> None:
    with units_of([device], 60):
        pass


def test_locks_of_another_user_can_be_locked(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their files cannot be written, and need not be."""
    machines.neuron_root(root)
    (root / "nkitools-neuroncore-0.lock").write_text("1")
    real = open

    def refusing(path: Any, mode: str = "r", **kwargs: Any) -> Any:
        if mode == "a":
            raise PermissionError(path)
        return real(path, mode, **kwargs)

    monkeypatch.setattr("builtins.open", refusing)
    with units_of([NeuronDevice()], 0) as environment:
        assert environment["NEURON_RT_VISIBLE_CORES"] == "0"
