"""NeuronCores of an AWS instance (Trainium, Inferentia2), driven by AWS's own packages.

Sources: the docstrings of ``nki.jit`` (0.6) and ``neuronxcc.nki.jit``, ``baremetal`` and ``trace`` (2.26); "NKI as
framework custom operator" for torch_xla; the Neuron Sysfs user guide for what the driver says of the device; the Neuron
Runtime configuration for ``NEURON_RT_VISIBLE_CORES``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nkitools.chip.generations import CHIPS, TABLES
from nkitools.targets import machine
from nkitools.targets.known_bugs import release
from nkitools.targets.neuron_packages import torch_backend, ways
from nkitools.targets.packages import aws_package, is_installed, version_of
from nkitools.targets.target import Availability, Device, Prepared, kernel_name, refuse

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel

NODES = "/dev/neuron[0-9]*"
_SYSFS = "/sys/devices/virtual/neuron_device"
_CORE = f"{_SYSFS}/neuron*/neuron_core0"
_CORES_VARIABLE = "NEURON_RT_VISIBLE_CORES"
_JOINED_VARIABLE = "NEURON_LOGICAL_NC_CONFIG"
# The driver's words, lower case: instance_type (trn1, inf2...) and arch_type (NCv2...), as the Sysfs guide has them.
_ARCHITECTURES = {f"ncv{generation.version}": generation.products[0] for generation in TABLES}
_LAST_LEGACY = (2, 24)  # neuronx-cc of SDK 2.29.1; from NKI 0.4 (SDK 2.30) its release notes call it an error
_PRODUCTS = {"trainium": "trn", "inferentia": "inf"}  # what the driver calls a product, and what we do
_PACKAGES = ("nki", "neuronxcc", "neuronx-cc", "torch-neuronx", "torch-xla", "libneuronxla", "jax", "jaxlib")


class NeuronDevice(Device):
    """The NeuronCores that the driver of this machine shows, for NKI kernels of both dialects."""

    key = "neuron"
    name = "NeuronCore"
    hidden = ("NKI_SIMULATOR",)  # with it AWS's package simulates: a test on hardware would pass without hardware
    prints = "device_print is captured in simulation only: AWS documents it for its simulators"

    def available(self) -> Availability:
        """Return a device node of the driver and a package that can reach it."""
        found, packages = machine.nodes(NODES), neuron_packages()
        if found and packages:
            try:
                self.units()
            except ValueError as error:
                return Availability(False, f"no NeuronCore: {error}")
            version = version_of(packages[0])
            named = f"{packages[0]} {version}" if version else packages[0]
            return Availability(True, f"{found[0]}, {named}; {ways(self.chip())}")
        missing = [] if found else [f"no device node {NODES}"]
        if not packages:
            missing.append("neither module nki nor module neuronxcc of AWS's own, nor module torch_neuronx")
        return Availability(False, f"no NeuronCore: found {' and '.join(missing)}")

    def units(self) -> tuple[str, ...]:
        """Return the cores that the runtime takes: those of ``NEURON_RT_VISIBLE_CORES``, else all of the driver's."""
        named = os.environ.get(_CORES_VARIABLE, "")
        return tuple(f"neuroncore-{core}" for core in (_range_of(named) if named else range(self._core_count())))

    def environment(self, unit: str) -> Mapping[str, str]:
        """Return the runtime opens the core of ``unit`` only."""
        return {_CORES_VARIABLE: unit.removeprefix("neuroncore-")}

    def defaults(self) -> Mapping[str, str]:
        """Return the variables of the compiler's target and of the degree, which runtime and kernel must share."""
        chip = self.chip()
        target = {"NEURON_PLATFORM_TARGET_OVERRIDE": chip} if chip else {}
        # The runtime of trn2 and trn3 joins two cores where it is not set, and a kernel takes one (nki.jit).
        return {**target, _JOINED_VARIABLE: "1"}

    def chip(self) -> str:
        """``trn1``, ``inf2``, ``trn2`` or ``trn3`` as the driver says; empty where it says nothing known."""
        instance = (machine.said(_SYSFS, "instance_type") or "").lower()
        for chip in CHIPS:
            if instance.startswith(chip):
                return chip
        product = re.sub(r"\W", "", (machine.said(_SYSFS, "device_name") or "").lower())
        for word, short in _PRODUCTS.items():
            product = product.replace(word, short)
        if product in CHIPS:
            return product
        # A core's file: that of the device has another name for the same, in which inf2 is as new as trn2.
        return _ARCHITECTURES.get((machine.said(_CORE, "arch_type") or "").lower(), "")

    def facts(self) -> Mapping[str, str]:
        """Device, instance and the versions of AWS's packages."""
        said = {name: machine.said(_SYSFS, name) for name in ("device_name", "instance_type", "arch_type")}
        versions = {package: version_of(package) for package in _PACKAGES}
        return {name: value for name, value in {**said, **versions}.items() if value}

    def call(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run it by the way in that fits the arguments: torch's backend, JAX, else NumPy stand-alone."""
        __tracebackhide__ = True
        from nkitools.targets.neuron_ways import way_for

        return way_for(kernel, args, kwargs, self.chip()).call(_launchable(kernel, kwargs), args, _own(kwargs))

    def prepare(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Prepared:
        """Compile once and keep the arguments on the device: by torch or JAX, whichever the arguments are of.

        NumPy arrays go to the one that is installed: a stand-alone call compiles anew each time.
        """
        __tracebackhide__ = True
        from nkitools.targets.neuron_ways import timed_way_for

        return timed_way_for(kernel, args, kwargs, self.chip()).prepare(_launchable(kernel, kwargs), args, _own(kwargs))

    def _core_count(self) -> int:
        """Return the number of cores of the instance, as hw tests have them: two are one where they are joined."""
        devices = len(machine.nodes(NODES))
        said = machine.said(_SYSFS, "core_count") or ""
        each = int(said) if said.isdigit() else 1
        joined = os.environ.get(_JOINED_VARIABLE) or "1"
        if joined not in ("1", "2"):
            raise ValueError(f"{_JOINED_VARIABLE} is {joined!r}; it is 1 or 2")
        return max(1, devices * each // int(joined))


class NeuronByTorch(NeuronDevice):
    """The same NeuronCores for what only torch takes there; ``taken`` says in a sentence what that is."""

    taken: str

    def available(self) -> Availability:
        """Return a device node of the driver, and a backend of torch's for the chip."""
        found, backend = super().available(), torch_backend(self.chip())
        if found.ok and not backend.kind:
            return Availability(False, f"no way to run {self.taken} on it: {backend.reason}. {backend.remedy}")
        return found


def neuron_packages() -> tuple[str, ...]:
    """Return the installed packages that can reach a NeuronCore; the stand-in and the placeholders of PyPI are none."""
    found = [package for package, part in (("nki", "isa"), ("neuronxcc", "nki")) if aws_package(package, part)]
    return (*found, "torch_neuronx") if is_installed("torch_neuronx") else tuple(found)


def _launchable(kernel: Kernel, kwargs: Mapping[str, Any]) -> Any:
    """Return the kernel as AWS's packages call it, with its grid; a plain function becomes a kernel of ``nki.jit``."""
    from nkitools.launch.kernel import KernelObject

    if isinstance(kernel, KernelObject):
        message = (
            f"kernel `{kernel_name(kernel)}` was made with nkitools' stand-in for AWS's package, and a NeuronCore "
            "needs AWS's own"
        )
        refuse(kernel, message, "Let the stand-in yield to AWS's package (nki_stand_in = auto).")
    if kwargs.get("ranks") is not None:
        message = (
            f"kernel `{kernel_name(kernel)}` is to run on {kwargs['ranks']} communicating ranks, and that takes a "
            "launcher"
        )
        refuse(kernel, message, "Run it under torchrun with AWS's packages, or in simulation (-m sim).")
    version = version_of("neuronx-cc") or "0"
    if release(version)[:2] > _LAST_LEGACY and _is_legacy(kernel):
        message = f"kernel `{kernel_name(kernel)}` is of neuronxcc.nki, which neuronx-cc {version} does not compile"
        refuse(kernel, message, "Install SDK 2.29.1 (neuronx-cc 2.24), the last one, or port it to nki.")
    if not hasattr(kernel, "__getitem__") and type(kernel).__module__ == "builtins":
        kernel = _decorated(kernel)
    indexed: Any = kernel
    return kernel if kwargs.get("grid") is None else indexed[kwargs["grid"]]


def _decorated(function: Kernel) -> Any:
    """Return a plain function as a kernel of the dialect that it was written in."""
    from importlib import import_module

    return import_module("neuronxcc.nki" if _is_legacy(function) else "nki").jit(function)


def _is_legacy(kernel: Kernel) -> bool:
    """Return whether the file of a kernel imports ``neuronxcc.nki``."""
    function: Any = kernel
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    named = (getattr(value, "__name__", "") for value in getattr(function, "__globals__", {}).values())
    return any(str(name).startswith("neuronxcc") for name in named)


def _own(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kernel's own keywords."""
    return {name: value for name, value in kwargs.items() if name not in ("grid", "ranks")}


def _range_of(cores: str) -> list[int]:
    """``0``, ``0-3``, ``0,2-3`` as numbers."""
    numbers: list[int] = []
    for part in cores.split(","):
        first, _, last = part.strip().partition("-")
        if not re.fullmatch(r"\d+", first) or (last and not re.fullmatch(r"\d+", last)):
            raise ValueError(f"{_CORES_VARIABLE} is {cores!r}; it lists cores, as in 0-3 or 0,2")
        numbers += range(int(first), int(last or first) + 1)
    return numbers
