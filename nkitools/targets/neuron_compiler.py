"""AWS's compiler as a target: kernels are compiled, not run; what a test sees of results is AWS's simulator's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nkitools.chip.chosen_chip import resolve_chip
from nkitools.targets.neuron import COMPILE_ONLY, CORES_VARIABLE, NeuronDevice, is_legacy, launchable, own_keywords
from nkitools.targets.packages import aws_package, version_of
from nkitools.targets.target import Availability, Prepared, WrongDevice, kernel_name, refuse

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel
    from nkitools.targets.compilation import Compiled


class NeuronCompiler(NeuronDevice):
    """AWS's compiler for NKI kernels, on a machine with or without a NeuronCore."""

    key = "compile"
    name = "AWS's compiler"
    folders = (*NeuronDevice.folders, "TORCH_NEURONX_NEFF_CACHE_DIR")
    hidden = ("NKI_SIMULATOR",)
    prints = "nothing runs on a device"

    def available(self) -> Availability:
        """Return AWS's nki and the compiler behind it."""
        missing = [] if aws_package("nki", "isa") else ["module nki of AWS's own"]
        if shutil.which("neuronx-cc") is None:
            missing.append("command neuronx-cc")
        if missing:
            return Availability(False, f"no compiler of AWS's: found neither {' nor '.join(missing)}")
        named = (f"{package} {version_of(package) or ''}".strip() for package in ("nki", "neuronx-cc"))
        return Availability(True, ", ".join(named))

    def units(self) -> tuple[str, ...]:
        """Return one for each processor: several compilers may work at a time."""
        return tuple(f"compiler-{number}" for number in range(os.cpu_count() or 1))

    def locks(self, unit: str) -> tuple[str, ...]:
        """Return the unit itself: no core is held."""
        return (unit,)

    def environment(self, unit: str) -> Mapping[str, str]:
        """Return the degree that a kernel has asked for, and that torch's backend is to run nothing."""
        others = {name: value for name, value in super().environment("").items() if name != CORES_VARIABLE}
        return {**others, COMPILE_ONLY: "1"}

    def chip(self) -> str:
        """Return the chip to compile for: that of the option, else of AWS's variables, else trn2."""
        return resolve_chip()

    def call(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Compile a kernel, print a line about it, and return the results of AWS's simulator.

        `CompileFailed` where the compiler refuses the kernel; `WrongDevice` where no simulator is here: then all that
        can be done is done.
        """
        __tracebackhide__ = True
        from nkitools.targets.official import entry_point

        print(self.compiled(kernel, args, kwargs).sentence(kernel_name(kernel)))
        simulator = entry_point()
        if isinstance(simulator, str):
            raise WrongDevice(f"{kernel_name(kernel)} is compiled, and its results are not computed: {simulator}")
        _, simulate = simulator
        return simulate(launchable(kernel, kwargs), *args, **own_keywords(kwargs))

    def compiled(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Compiled:
        """Compile a kernel. Raises as `compilation.compile_kernel`, and NK607 for a kernel of ``neuronxcc.nki``."""
        __tracebackhide__ = True
        from nkitools.targets.compilation import compile_kernel

        if is_legacy(kernel):
            message = f"kernel `{kernel_name(kernel)}` is of neuronxcc.nki, which this target does not compile"
            refuse(kernel, message, "Run it on a device with SDK 2.29.1, or port it to nki.")
        degree = self.check_degree(kernel, kwargs)
        return compile_kernel(launchable(kernel, kwargs), args, own_keywords(kwargs), self.chip(), degree)

    def prepare(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Prepared:
        """Compile a kernel, and say that nothing here can time it."""
        __tracebackhide__ = True
        said = self.compiled(kernel, args, kwargs).sentence(kernel_name(kernel))
        raise WrongDevice(f"kernel_benchmark measures on a device, and this target only compiles. {said}")
