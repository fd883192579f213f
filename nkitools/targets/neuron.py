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

from nkitools.facts import options
from nkitools.facts.generations import CHIPS, TABLES, generation_of
from nkitools.facts.supported_versions import release
from nkitools.platforms import NEURON_FILES, NEURON_NODES
from nkitools.targets import machine
from nkitools.targets.neuron_packages import LAST_LEGACY, torch_backend, ways
from nkitools.targets.packages import aws_package, is_installed, version_of
from nkitools.targets.target import Availability, Device, OtherDegree, Prepared, function_of, kernel_name, refuse

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel
    from nkitools.targets.neff import DeviceTime

_UNIT = "neuroncore-"
_CORE = f"{NEURON_FILES}/neuron*/neuron_core0"
CORES_VARIABLE = "NEURON_RT_VISIBLE_CORES"
_JOINED_VARIABLE = "NEURON_LOGICAL_NC_CONFIG"
COMPILE_ONLY = "TORCH_NEURONX_COMPILE_ONLY"  # the native backend of torch compiles graphs and runs none
# What the user has set the two to: a process on the device has one core in them, and a degree.
_OF_USER = {CORES_VARIABLE: "NKITOOLS_NEURON_CORES", _JOINED_VARIABLE: "NKITOOLS_NEURON_DEGREE"}
_DEGREES = ("1", "2")
# The driver's words, lower case: instance_type (trn1, inf2...) and arch_type (NCv2...), as the Sysfs guide has them.
_ARCHITECTURES = {f"ncv{generation.version}": generation.products[0] for generation in TABLES}
_PRODUCTS = {"trainium": "trn", "inferentia": "inf"}  # what the driver calls a product, and what we do
_PACKAGES = (
    "nki",
    "neuronxcc",
    "neuronx-cc",
    "torch-neuronx",
    "torch-xla",
    "libneuronxla",
    "jax",
    "jaxlib",
    "jax-neuronx",
    "nrtpy",
)


class NeuronDevice(Device):
    """The NeuronCores that the driver of this machine shows, for NKI kernels of both dialects."""

    key = "neuron"
    name = "NeuronCore"
    folders: tuple[str, ...] = ("NKI_ARTIFACTS_DIR",)  # it must be set before AWS's nki is imported
    # With one of them a test on hardware would pass without hardware.
    hidden: tuple[str, ...] = ("NKI_SIMULATOR", COMPILE_ONLY)
    prints = "device_print is captured in simulation only: AWS documents it for its simulators"

    def __init__(self, degree: int | None = None) -> None:
        self._degree = degree

    def available(self) -> Availability:
        """Return a device node of the driver and a package that can reach it."""
        found, packages = machine.nodes(NEURON_NODES), neuron_packages()
        if found and packages:
            try:
                self.units()
            except ValueError as error:
                return Availability(False, f"no NeuronCore: {error}")
            version = version_of(packages[0])
            named = f"{packages[0]} {version}" if version else packages[0]
            return Availability(True, f"{found[0]}, {named}; {ways(self.chip())}")
        missing = [] if found else [f"no device node {NEURON_NODES}"]
        if not packages:
            missing.append("neither module nki nor module neuronxcc of AWS's own, nor module torch_neuronx")
        return Availability(False, f"no NeuronCore: found {' and '.join(missing)}")

    def units(self) -> tuple[str, ...]:
        """Return the logical cores that the runtime takes: of ``NEURON_RT_VISIBLE_CORES``, else all of the driver's."""
        named, said = _of_user(CORES_VARIABLE), _degree_of_user()
        physical = [said * core + part for core in _range_of(named) for part in range(said)] if named else []
        degree, there = self._degree or said, set(physical or range(self._core_count()))
        cores = [core for core in range(max(there) + 1) if there.issuperset(_parts(core, degree))]
        return tuple(f"{_UNIT}{core}" for core in cores or [0])

    def locks(self, unit: str) -> tuple[str, ...]:
        """Return the physical cores of a logical one: processes of two degrees share them."""
        core = int(unit.removeprefix(_UNIT))
        return tuple(f"{_UNIT}{part}" for part in _parts(core, self._degree or _degree_of_user()))

    def of_degree(self, degree: int | None) -> Device:
        """Return the same NeuronCores, joined to logical cores of ``degree``."""
        return type(self)(degree)

    def environment(self, unit: str) -> Mapping[str, str]:
        """Return the core of ``unit``, which is all that the runtime opens, its degree, and what the user has set."""
        joined = {} if self._degree is None else {_JOINED_VARIABLE: str(self._degree)}
        of_user = {kept: _of_user(name) for name, kept in _OF_USER.items()}
        return {CORES_VARIABLE: unit.removeprefix(_UNIT), **joined, **of_user}

    def defaults(self) -> Mapping[str, str]:
        """Return the variables of the compiler's target and of the degree, which runtime and kernel must share."""
        chip = self.chip()
        target = {"NEURON_PLATFORM_TARGET_OVERRIDE": chip} if chip else {}
        # The runtime of trn2 and trn3 joins two cores where it is not set, and a kernel takes one (nki.jit).
        return {**target, _JOINED_VARIABLE: "1"}

    def chip(self) -> str:
        """``trn1``, ``inf2``, ``trn2`` or ``trn3`` as the driver says; empty where it says nothing known."""
        instance = (machine.said(NEURON_FILES, "instance_type") or "").lower()
        for chip in CHIPS:
            if instance.startswith(chip):
                return chip
        product = re.sub(r"\W", "", (machine.said(NEURON_FILES, "device_name") or "").lower())
        for word, short in _PRODUCTS.items():
            product = product.replace(word, short)
        if product in CHIPS:
            return product
        # A core's file: that of the device has another name for the same, in which inf2 is as new as trn2.
        return _ARCHITECTURES.get((machine.said(_CORE, "arch_type") or "").lower(), "")

    def facts(self) -> Mapping[str, str]:
        """Return the device, the instance and the versions of AWS's packages."""
        said = {name: machine.said(NEURON_FILES, name) for name in ("device_name", "instance_type", "arch_type")}
        versions = {package: version_of(package) for package in _PACKAGES}
        return {name: value for name, value in {**said, **versions}.items() if value}

    def call(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run it by the way in that fits the arguments: torch's backend, JAX, else NumPy stand-alone."""
        __tracebackhide__ = True
        from nkitools.targets.neuron_ways import way_for

        self.check_degree(kernel, kwargs)
        return way_for(kernel, args, kwargs, self.chip()).call(launchable(kernel, kwargs), args, own_keywords(kwargs))

    def prepare(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Prepared:
        """Compile once and keep the arguments on the device: by torch or JAX, whichever the arguments are of.

        NumPy arrays go to the one that is installed, else to nrtpy: a stand-alone call compiles anew each time.
        """
        __tracebackhide__ = True
        from nkitools.targets.neuron_ways import timed_way_for

        degree = self.check_degree(kernel, kwargs)
        own, there = own_keywords(kwargs), launchable(kernel, kwargs)
        prepared = timed_way_for(kernel, args, kwargs, self.chip(), degree).prepare(there, args, own)
        if prepared.device_time is not None:
            return prepared

        def alone() -> DeviceTime:
            from nkitools.targets.neff import NoDeviceTime
            from nkitools.targets.neuron_time import measured

            if options.value("device_time") == "off":
                raise NoDeviceTime("option device_time is off")
            if is_legacy(kernel):
                raise NoDeviceTime("AWS's tools time kernels of nki, and this is one of neuronxcc.nki")
            return measured(self.of_degree(degree), there, args, own, degree)

        return prepared._replace(device_time=alone)

    def check_degree(self, kernel: Kernel, kwargs: Mapping[str, Any]) -> int:
        """Return the degree of a kernel; `OtherDegree` where the runtime of this process has another one."""
        asked = degree_of(kernel, kwargs)
        if asked is None:
            asked = _degree_of_user()
        default = generation_of(self.chip()).logical_cores if self.chip() else 1
        here = int(os.environ.get(_JOINED_VARIABLE) or default)
        if here != asked:
            message = (
                f"kernel `{kernel_name(kernel)}` is for logical cores of {asked} physical ones, and those of this "
                f"process have {here}: {_JOINED_VARIABLE}={asked} says so, before anything of AWS's is imported"
            )
            raise OtherDegree(message, asked)
        return asked

    def _core_count(self) -> int:
        """Return the number of physical cores of the instance."""
        devices = len(machine.nodes(NEURON_NODES))
        said = machine.said(NEURON_FILES, "core_count") or ""
        return max(1, devices * (int(said) if said.isdigit() else 1))


class NeuronByTorch(NeuronDevice):
    """The same NeuronCores for what only torch takes there; ``taken`` says in a sentence what that is."""

    taken: str

    def without_neff(self, prepared: Prepared) -> Prepared:
        """Return what is ready to be timed: of its rounds only the host's time is known."""

        def none() -> DeviceTime:
            from nkitools.targets.neff import NoDeviceTime

            raise NoDeviceTime(f"{self.taken} leaves no NEFF of its own")

        return prepared._replace(device_time=none)

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


def launchable(kernel: Kernel, kwargs: Mapping[str, Any]) -> Any:
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
    if release(version)[:2] > LAST_LEGACY and is_legacy(kernel):
        message = f"kernel `{kernel_name(kernel)}` is of neuronxcc.nki, which neuronx-cc {version} does not compile"
        refuse(kernel, message, "Install SDK 2.29.1 (neuronx-cc 2.24), the last one, or port it to nki.")
    if not hasattr(kernel, "__getitem__") and type(kernel).__module__ == "builtins":
        kernel = _decorated(kernel)
    if kwargs.get("grid") is not None and not hasattr(kernel, "__getitem__"):
        message = f"`{kernel_name(kernel)}` takes no grid: it is no kernel of nki, but calls one"
        refuse(kernel, message, "Say it where it calls its kernel, and set NEURON_LOGICAL_NC_CONFIG.")
    indexed: Any = kernel
    return kernel if kwargs.get("grid") is None else indexed[kwargs["grid"]]


def _decorated(function: Kernel) -> Any:
    """Return a plain function as a kernel of the dialect that it was written in."""
    from importlib import import_module

    return import_module("neuronxcc.nki" if is_legacy(function) else "nki").jit(function)


def is_legacy(kernel: Kernel) -> bool:
    """Return whether the file of a kernel imports ``neuronxcc.nki``."""
    globals_of = getattr(function_of(kernel), "__globals__", {})
    named = (getattr(value, "__name__", "") for value in globals_of.values())
    return any(str(name).startswith("neuronxcc") for name in named)


def degree_of(kernel: Kernel, kwargs: Mapping[str, Any]) -> int | None:
    """Return the number of physical cores that a kernel of ``nki`` asks for; None without brackets and ``grid``.

    AWS's kernel object has the number of the bracket in ``lnc`` (nki 0.6, not documented).
    """
    if is_legacy(kernel):
        return None  # the grid of the former dialect is one of programs
    grid = kwargs.get("grid")
    asked = grid[0] if isinstance(grid, tuple | list) and len(grid) == 1 else grid
    if asked is None and getattr(kernel, "lnc", 1) != 1:
        asked = getattr(kernel, "lnc", 1)
    return asked if isinstance(asked, int) and str(asked) in _DEGREES else None


def _of_user(name: str) -> str:
    """Return the user's value of a variable, also in a process on the device; '' if it is not set."""
    return os.environ.get(_OF_USER[name], os.environ.get(name, ""))


def _degree_of_user() -> int:
    """Return the degree that the user has set, else 1, that of a plain kernel. ValueError for another than 1 and 2."""
    said = _of_user(_JOINED_VARIABLE) or "1"
    if said not in _DEGREES:
        raise ValueError(f"{_JOINED_VARIABLE} is {said!r}; it is 1 or 2")
    return int(said)


def _parts(core: int, degree: int) -> range:
    """Return the physical cores of a logical one."""
    return range(core * degree, (core + 1) * degree)


def own_keywords(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the kernel's own keywords."""
    return {name: value for name, value in kwargs.items() if name not in ("grid", "ranks")}


def _range_of(cores: str) -> list[int]:
    """Return the numbers in a text such as ``0``, ``0-3`` or ``0,2-3``."""
    numbers: list[int] = []
    for part in cores.split(","):
        first, _, last = part.strip().partition("-")
        if not re.fullmatch(r"\d+", first) or (last and not re.fullmatch(r"\d+", last)):
            raise ValueError(f"{CORES_VARIABLE} is {cores!r}; it lists cores, as in 0-3 or 0,2")
        numbers += range(int(first), int(last or first) + 1)
    return numbers
