"""The choice of the target that a test or a call means."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from nkitools.facts import options
from nkitools.targets.builtin import BuiltinSimulator, is_jax_function
from nkitools.targets.gpsimd import GpSimdSimulator, is_custom_operator
from nkitools.targets.jax_devices import GpuDevice, TpuDevice
from nkitools.targets.neuron import NeuronDevice
from nkitools.targets.neuron_compiler import NeuronCompiler
from nkitools.targets.neuron_module import ModuleCompiler, NeuronModuleDevice, is_torch_module
from nkitools.targets.neuron_operator import NeuronOperatorDevice
from nkitools.targets.official import OfficialSimulator
from nkitools.targets.target import Device, Target

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel

DEVICES: tuple[Device, ...] = (NeuronDevice(), TpuDevice(), GpuDevice())
DEVICE_KEYS = tuple(device.key for device in DEVICES)
# It takes the place of a NeuronCore where option ``target`` names it.
COMPILER = NeuronCompiler()


class Found(NamedTuple):
    """The device for a kernel, or the reason that there is none."""

    device: Device | None
    reason: str


def simulator_for(kernel: Kernel) -> Target:
    """Return the simulator that option ``simulator`` names; kernels other than NKI's have no choice."""
    if is_custom_operator(kernel):
        return GpSimdSimulator()
    if options.value("simulator") == "official" and not is_jax_function(kernel):
        return OfficialSimulator()
    return BuiltinSimulator()


def device_for(kernel: Kernel, asked: Collection[str] = ()) -> Found:
    """Return the first device that is here of those that ``kernel`` can run on: a TPU, else a GPU, for a JAX function.

    ``asked`` narrows them by key, as option ``target`` does.
    """
    kind, candidates = _candidates(kernel)
    allowed = devices(asked)
    wanted = [device for device in candidates if device.key in {each.key for each in allowed}]
    if not wanted:
        return Found(None, f"{kind} does not run on {' or '.join(device.name for device in allowed)}")
    looked = [(device, device.available()) for device in wanted]
    for device, found in looked:
        if found.ok:
            return Found(device, found.reason)
    return Found(None, "; ".join(found.reason for _, found in looked))


def _candidates(kernel: Kernel) -> tuple[str, list[Device]]:
    """Return the kind of a kernel, and the devices for it. NeuronCores take several kinds, each in its own way."""
    if is_jax_function(kernel):
        return "a JAX function", [device for device in DEVICES if isinstance(device, TpuDevice | GpuDevice)]
    if is_custom_operator(kernel):
        return "a custom operator", [NeuronOperatorDevice()]
    if is_torch_module(kernel):
        return "a torch module", [NeuronModuleDevice(), ModuleCompiler()]
    return "an NKI kernel", [*(device for device in DEVICES if isinstance(device, NeuronDevice)), COMPILER]


def devices(asked: Collection[str] = ()) -> tuple[Device, ...]:
    """Return the devices that may be used: that of option ``target`` if named, and among ``asked`` if given."""
    told = options.value("target")
    if told == COMPILER.key:
        return () if asked and not {NeuronDevice.key, COMPILER.key} & set(asked) else (COMPILER,)
    keys = [str(told)] if told else DEVICE_KEYS
    return tuple(device for device in DEVICES if device.key in keys and (not asked or device.key in asked))


def missing_devices(asked: Collection[str] = ()) -> str:
    """Return what was looked for and not found, kind by kind; '' if a device may be used."""
    candidates = devices(asked)
    if not candidates:
        return f"the test is for {' or '.join(sorted(asked))}, and --nki-target is {options.value('target')}"
    looked = [device.available() for device in candidates]
    return "" if any(found.ok for found in looked) else "; ".join(found.reason for found in looked)
