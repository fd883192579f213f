"""TPUs and GPUs, and which device or simulator a kernel runs on."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkitools.facts import options
from nkitools.targets import WrongDevice, choice, device_for, devices, missing_devices, neuron, simulator_for
from nkitools.targets import jax_devices as jax_targets
from nkitools.targets.builtin import BuiltinSimulator
from nkitools.targets.jax_devices import GpuDevice, TpuDevice
from nkitools.targets.neuron import NeuronDevice
from nkitools.targets.official import OfficialSimulator
from tests.fakes import machines
from tests.targets.test_neuron_device import author_kernel

pytestmark = pytest.mark.usefixtures("root")


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
