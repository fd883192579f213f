"""TPUs and GPUs, by way of JAX."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from nkitools.facts import options
from nkitools.pallas.imports import jax_module, of_arrays, without_jax_warnings
from nkitools.platforms import GPU_NODES, TPU_NODES
from nkitools.targets import machine
from nkitools.targets.packages import is_installed, version_of
from nkitools.targets.target import Availability, Device, Prepared, WrongDevice, kernel_name

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument, Kernel
    from nkitools.record.run import Run


# What run_kernel takes for checking in simulation (nkitools.pallas.check_as_asked), and no function on a device.
_OF_CHECKING = ("chips", "modes", "cores")


class JaxDevice(Device):
    """The devices of one of JAX's platforms.

    Whether there is one is judged by device nodes: to ask JAX would open the device, in a process that does not use it.
    The run asks JAX.
    """

    platform: str
    prints = "jax.debug.print is captured; pl.debug_print goes to the device's log"

    def call(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the kernel with all arrays on the first device. With NumPy arguments the results are NumPy arrays."""
        from nkitools.pallas.launch import as_given, finished

        there, named = self._there((args, _own(kwargs)))
        return as_given(finished(kernel, there, named), (args, kwargs))

    def prepare(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Prepared:
        """Return the kernel, compiled by ``jax.jit`` as a function of its arrays and called once."""
        from nkitools.pallas.launch import as_given

        jax = jax_module()
        function, arrays = _of_arrays(kernel, *self._there((args, _own(kwargs))))
        compiled = jax.jit(function)

        def launch() -> Any:
            return jax.block_until_ready(compiled(*arrays))

        began = time.perf_counter()
        launch()
        return Prepared(launch, lambda outputs: as_given(outputs, (args, kwargs)), time.perf_counter() - began)

    def run(self, kernel: Kernel, /, *args: Argument, **kwargs: Any) -> Run:
        """Run the kernel as `Device.run` does. The run has what the function prints by ``jax.debug.print``."""
        __tracebackhide__ = True
        from nkitools.pallas.prints import hearing_prints, prints_can_be_heard
        from nkitools.record.prints.device_print import Print

        heard: list[Print] = []
        if not prints_can_be_heard():
            return super().run(kernel, *args, **kwargs)
        with hearing_prints(heard):
            run = super().run(kernel, *args, **kwargs)
        run.prints.extend(heard)
        return run

    def chip(self) -> str:
        """Return JAX's name for the kind of the device; '' in a process that has not opened it."""
        devices = self._opened()
        return str(devices[0].device_kind) if devices else ""

    def check_chip(self, asked: options.Value) -> None:
        """Raise `WrongDevice` where the device is no ``asked``: a TPU of nkitools' table, else a part of its kind."""
        from nkitools.pallas.chips import CHIPS

        here, name = self.chip().lower(), str(asked or "").lower()
        known = CHIPS.get(name)
        fits = name in here if known is None else here in (known.device_kind.lower(), f"tpu {name}")
        if asked and here and not fits:
            raise WrongDevice(
                f"the function is to run on {asked}, and the {self.name} of this machine is a {self.chip()}"
            )

    def facts(self) -> Mapping[str, str]:
        """Return the kind and number of devices, and JAX's versions."""
        devices = self._opened()
        kind = {"device": f"{len(devices)} x {devices[0].device_kind}"} if devices else {}
        versions = {package: version_of(package) for package in ("jax", "jaxlib", "libtpu")}
        return {**kind, **{name: version for name, version in versions.items() if version}}

    def _opened(self) -> list[Any]:
        """Return JAX's devices of this platform; [] in a process that has not imported JAX."""
        import sys

        jax = sys.modules.get("jax")
        return [] if jax is None else [each for each in jax.devices() if each.platform == self.platform]

    def _there(self, values: Argument) -> Any:
        import numpy as np

        jax = jax_module()

        device = self._device()
        return jax.tree_util.tree_map(
            lambda leaf: jax.device_put(leaf, device) if isinstance(leaf, (np.ndarray, jax.Array)) else leaf, values
        )

    def _device(self) -> Any:
        jax = jax_module()

        found = [device for device in jax.devices() if device.platform == self.platform]
        if not found:
            platforms = ", ".join(sorted({device.platform for device in jax.devices()}))
            raise WrongDevice(f"no {self.name}: jax.devices() has {platforms} only")
        return found[0]


class TpuDevice(JaxDevice):
    """The TPUs that JAX can see."""

    key = "tpu"
    name = "TPU"
    platform = "tpu"
    nodes = TPU_NODES

    def available(self) -> Availability:
        """Return whether there is a device node, or a JAX that is set to use a TPU: a remote TPU has no node."""
        if not is_installed("jax"):
            return Availability(False, "no TPU: module jax is not installed")
        found = machine.nodes(*self.nodes)
        if found:
            return Availability(True, f"{found[0]}, jax {version_of('jax')}")
        if {"tpu", "proxy"} & set(os.environ.get("JAX_PLATFORMS", "").split(",")):
            return Availability(True, f"JAX_PLATFORMS={os.environ['JAX_PLATFORMS']}, jax {version_of('jax')}")
        return Availability(False, f"no TPU: found no device node {' or '.join(self.nodes)}")

    def units(self) -> tuple[str, ...]:
        """Return one unit for all TPUs of a machine: only one process at a time may open them (libtpu's lock)."""
        return ("tpu",)

    def environment(self, unit: str) -> Mapping[str, str]:
        """Return no variables: libtpu finds its devices."""
        return {}


class GpuDevice(JaxDevice):
    """The NVIDIA GPUs that JAX can see, for kernels that Pallas can lower to a GPU."""

    key = "gpu"
    name = "GPU"
    platform = "gpu"
    lowers_to = "cuda"
    nodes = GPU_NODES
    plugins = ("jax_cuda13_plugin", "jax_cuda12_plugin")

    def available(self) -> Availability:
        """Return whether there are a device node and JAX's plugin for CUDA."""
        if not is_installed("jax"):
            return Availability(False, "no GPU: module jax is not installed")
        found, plugins = machine.nodes(*self.nodes), [name for name in self.plugins if is_installed(name)]
        if found and plugins and self.units():
            return Availability(True, f"{found[0]}, {plugins[0]}")
        missing = [] if found else [f"no device node {self.nodes[0]}"]
        if found and not self.units():
            missing.append("all hidden by CUDA_VISIBLE_DEVICES")
        if not plugins:
            missing.append(f"neither module {' nor module '.join(self.plugins)}")
        return Availability(False, f"no GPU: found {' and '.join(missing)}")

    def units(self) -> tuple[str, ...]:
        """Each GPU by itself, as CUDA counts them; those of ``CUDA_VISIBLE_DEVICES`` up to the first that is none."""
        named = os.environ.get("CUDA_VISIBLE_DEVICES")
        if named is None:
            return tuple(f"gpu-{number}" for number, _ in enumerate(machine.nodes(*self.nodes)))
        shown = takewhile(lambda name: name and not name.startswith("-"), (each.strip() for each in named.split(",")))
        return tuple(f"gpu-{name}" for name in shown)

    def environment(self, unit: str) -> Mapping[str, str]:
        """Return the variable that shows JAX this GPU alone."""
        return {"CUDA_VISIBLE_DEVICES": unit.removeprefix("gpu-")}

    def defaults(self) -> Mapping[str, str]:
        """Return the variable that keeps JAX from taking memory that it does not use: others may work on the GPU."""
        return {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}

    def unfit(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """Return why Pallas has no GPU code for ``kernel``, which was then written for a TPU; '' if it has.

        Exceptions of tracing ``kernel`` pass through.
        """
        jax = jax_module()

        function, arrays = _of_arrays(kernel, args, _own(kwargs))
        traced = jax.jit(function).trace(*arrays)
        try:
            # JAX warns of the backend that lowers to a GPU (0.12), and will again when the function runs on one.
            with without_jax_warnings():
                traced.lower(lowering_platforms=(self.lowers_to,))
        except Exception as error:  # any: JAX raises what it likes for what it cannot lower
            said = str(error).strip().splitlines() or [""]
            return f"`{kernel_name(kernel)}` does not lower to a GPU: {type(error).__name__}: {said[0]}"
        return ""


def _own(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the function's own keywords."""
    return {name: value for name, value in kwargs.items() if name not in _OF_CHECKING}


def _of_arrays(kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, list[Any]]:
    """``kernel`` as a function of its arrays alone, and these: what else it takes may be a shape, and not traced."""
    import numpy as np

    kinds = (np.ndarray, jax_module().Array)
    function, arrays = of_arrays(kernel, args, kwargs, lambda leaf: isinstance(leaf, kinds))
    function.__name__ = kernel_name(kernel)
    return function, arrays
