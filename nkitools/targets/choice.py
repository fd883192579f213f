"""Which target a test or a call means."""

from __future__ import annotations

from typing import Any

from nkitools import options
from nkitools.targets.builtin import BuiltinSimulator, is_jax_function
from nkitools.targets.neuron import NeuronDevice
from nkitools.targets.official import OfficialSimulator
from nkitools.targets.target import Target
from nkitools.targets.tpu import TpuDevice


def simulator_for(kernel: Any) -> Target:
    """The simulator that option ``simulator`` names; AWS's knows NKI kernels only, so a JAX function has no choice."""
    if options.value("simulator") == "official" and not is_jax_function(kernel):
        return OfficialSimulator()
    return BuiltinSimulator()


def device_for(kernel: Any) -> Target:
    """The device that ``kernel`` is written for: a TPU for a JAX function, else a NeuronCore."""
    return TpuDevice() if is_jax_function(kernel) else NeuronDevice()


def missing_devices() -> str:
    """Empty where there is a device of any kind; else what was looked for and not found, kind by kind."""
    looked = [device.available() for device in (NeuronDevice(), TpuDevice())]
    return "" if any(found.ok for found in looked) else "; ".join(found.reason for found in looked)
