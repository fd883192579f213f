"""The parts of this machine that nkitools can use: what each part enables, and how to get a missing one."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nkitools import platforms
from nkitools.facts import supported_versions
from nkitools.facts.generations import generation_of
from nkitools.facts.known_faults import faults_of_versions
from nkitools.facts.tsv import rows_of
from nkitools.targets.choice import COMPILER, DEVICES
from nkitools.targets.neuron import NeuronDevice
from nkitools.targets.neuron_module import NeuronModuleDevice
from nkitools.targets.neuron_operator import NeuronOperatorDevice
from nkitools.targets.official import OfficialSimulator
from nkitools.targets.packages import aws_package, is_installed, is_placeholder, version_of
from nkitools.targets.target import Device

KNOWN = "Known of these versions"
_FOLDER = Path(__file__).parent
_FROM_AWS = "install {} from AWS's own package index (AWS Neuron documentation, Setup); PyPI's is a placeholder"


@dataclass(frozen=True)
class Part:
    """A package, simulator or device that was looked for.

    ``found``: the version or device, or what was missing. ``enables``: its use. ``remedy``: how to get it, '' if it is
    here or cannot be had.
    """

    area: str
    name: str
    present: bool
    found: str
    enables: str
    remedy: str = ""


def examine() -> list[Part]:
    """Look for all of it. Opens no device; imports AWS's nki if it is here, and asks a compiler for its version."""
    return [
        *_python(),
        *_packages(),
        *_simulators(),
        *_devices(),
        *_known_faults(),
        *_outside_of_the_tested(),
        *_compilers(),
        *_environment(),
    ]


def as_plain(parts: list[Part]) -> dict[str, Any]:
    """Return the parts for JSON; keys as `Part`'s fields."""
    return {"schema": 1, "parts": [asdict(part) for part in parts]}


def _python() -> Iterator[Part]:
    from nkitools.facts import __version__

    yield Part("Python", "nkitools", True, __version__, "this toolkit")
    system = f"{platform.python_version()} on {platforms.system_words()}"
    yield Part("Python", "Python", True, system, "kernels in simulation")


def _packages() -> Iterator[Part]:
    for row in rows_of(_FOLDER / "distributions.tsv"):
        version = version_of(row["name"])
        found, remedy = (version, "") if version else ("not installed", row["remedy"])
        yield Part("Packages", row["name"], version is not None, found, row["enables"], remedy)
    for package, part, distribution in (("nki", "isa", "nki"), ("neuronxcc", "nki", "neuronx-cc")):
        present = aws_package(package, part) is not None
        found = version_of(distribution) or "installed" if present else "not installed"
        if is_placeholder(package, part):
            found = "PyPI's placeholder is installed, whose import raises"
        enables = "AWS's own simulator and NKI kernels on a NeuronCore"
        remedy = "" if present else _FROM_AWS.format(distribution)
        if not present and package == "neuronxcc" and aws_package("nki", "isa") is not None:
            found, remedy = "not installed; kernels of nki do not need it", ""
            enables = "kernels of the legacy dialect, with SDK 2.29.1 or older"
        yield Part("Packages", package, present, found, enables, remedy)


def _simulators() -> Iterator[Part]:
    yield Part("Simulators", "builtin", True, "part of nkitools", "-m sim: NKI kernels of both dialects")
    official = OfficialSimulator().available()
    remedy = "" if official.ok else _FROM_AWS.format("nki")
    found = official.reason.partition(". Install ")[0]
    yield Part("Simulators", "official", official.ok, found, "--nki-simulator=official, nkitools compare", remedy)
    jax = is_installed("jax")
    remedy = "" if jax else "pip install 'nkitools[pallas]'"
    yield Part("Simulators", "pallas", jax, f"jax {version_of('jax')}" if jax else "no jax", "-m sim: Pallas", remedy)


# How to get a device's missing part; the instance itself cannot be installed.
_OF_DEVICES = {
    "neuron": "on an instance (inf2, trn1, trn2, trn3): AWS's driver aws-neuronx-dkms and AWS's packages (AWS Neuron "
    "documentation, Setup)",
    "tpu": "on a TPU VM: pip install 'nkitools[tpu]'",
    "gpu": "on a machine with an NVIDIA GPU: pip install 'nkitools[pallas]' 'jax[cuda13]'",
}


def _devices() -> Iterator[Part]:
    for device in DEVICES:
        yield _device(device, device.key, f"-m hw on a {device.name}; prints: {device.prints}")
    modules, operators = NeuronModuleDevice(), NeuronOperatorDevice()
    yield _device(modules, "neuron, modules", "kernel_benchmark: torch modules as a baseline on a NeuronCore")
    yield _device(operators, "neuron, C++", f"-m hw: custom operators on a NeuronCore-v2; prints: {operators.prints}")


def _device(device: Device, name: str, enables: str) -> Part:
    found = device.available()
    said = found.reason
    if found.ok and isinstance(device, NeuronDevice):
        chip = device.chip() or "generation unknown"
        cores = str(len(device.units()))
        if device.chip() and generation_of(chip).logical_cores > 1:
            cores = ", ".join(f"{len(device.of_degree(each).units())} of LNC {each}" for each in (1, 2))
        said = f"{chip}, cores for processes of their own: {cores}; {said}"
    return Part("Devices", name, found.ok, said, enables, "" if found.ok else _OF_DEVICES[device.key])


def _known_faults() -> Iterator[Part]:
    """Yield what is known to go wrong with the versions of packages that are here, on the chip that is here."""
    for fault, here in faults_of_versions(NeuronDevice().chip(), version_of):
        yield Part(KNOWN, fault.package, False, f"{here}: {fault.what}", fault.source, fault.write)


def _outside_of_the_tested() -> Iterator[Part]:
    """Yield the packages that are installed in a version outside of those that nkitools was tested with."""
    for package in supported_versions.packages():
        found = supported_versions.installed(package)
        sentence = supported_versions.outside(package, found) if found is not None else ""
        if sentence:
            yield Part(
                KNOWN, package, False, sentence, "the documentation's page Supported versions names those tested"
            )


def _compilers() -> Iterator[Part]:
    from nkitools.customop.errors import BuildError
    from nkitools.customop.toolchain import find_compiler

    nki = COMPILER.available()
    remedy = "" if nki.ok else _FROM_AWS.format("nki and neuronx-cc")
    yield Part("Compilers", "NKI", nki.ok, nki.reason, "--nki-target=compile, nkitools compile", remedy)
    remedy = f"install g++ or clang++ ({platforms.compiler_remedy()})"
    enables = "custom C++ operators: building them, and -m sim"
    try:
        compiler = find_compiler()
    except BuildError as error:
        yield Part("Compilers", "C++", False, str(error).partition("\n")[0], enables, remedy)
        return
    yield Part("Compilers", "C++", True, f"{compiler.version.partition(chr(10))[0]} ({compiler.path})", enables)


def _environment() -> Iterator[Part]:
    """Yield the variables that decide something before a framework is imported, and what nkitools does about them."""
    for row in rows_of(_FOLDER / "variables.tsv"):
        value = os.environ.get(row["name"], "")
        yield Part("Environment", row["name"], bool(value), value or "not set", row["meaning"])
