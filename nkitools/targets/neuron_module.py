"""torch modules on a NeuronCore: what a framework's own operations do there, as a baseline for kernels."""

from __future__ import annotations

import copy
import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nkitools.targets.neuron import COMPILE_ONLY, NeuronByTorch
from nkitools.targets.neuron_compiler import NeuronCompiler
from nkitools.targets.neuron_packages import torch_backend
from nkitools.targets.packages import version_of
from nkitools.targets.target import Availability, Prepared, WrongDevice, kernel_name, refuse
from nkitools.targets.units import OWN_FOLDER

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Argument, Kernel
    from nkitools.targets.neuron_ways import Torch


class NeuronModuleDevice(NeuronByTorch):
    """The NeuronCores of `NeuronDevice`, for ``torch.nn.Module``.

    torch-xla compiles a module as one graph, the native backend operation by operation; with ``compiled=True`` by
    ``torch.compile(backend="neuron")``.
    """

    taken = "a torch module"

    def call(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run a copy of the module on the device; gradients are not recorded."""
        __tracebackhide__ = True
        from nkitools.targets.neuron_ways import module_way

        own = _own(kwargs)
        outer, way = module_way(kernel, args, own, self.chip())
        return outer.call(_on_device(kernel, kwargs, way), args, own)

    def prepare(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Prepared:
        """As `call`, with parameters and arguments staying on the device."""
        __tracebackhide__ = True
        from nkitools.targets.neuron_ways import module_way

        own = _own(kwargs)
        outer, way = module_way(kernel, args, own, self.chip())
        return self.without_neff(outer.prepare(_on_device(kernel, kwargs, way), args, own))


class ModuleCompiler(NeuronCompiler):
    """AWS's compiler for ``torch.nn.Module``: the compile-only mode of torch's native backend.

    AWS's page on ``torch.compile`` names the mode. Its variable and the plain call are those of a public plugin for
    vLLM, and no run of it has been seen: what shows that it has compiled is the NEFF in the backend's cache.
    """

    def available(self) -> Availability:
        """Return whether AWS's compiler is here, and torch's native backend, which it needs for modules."""
        found, backend = super().available(), torch_backend(self.chip())
        if found.ok and backend.kind != "native":
            reason = f"{backend.reason}, and the compile-only mode is that of torch-neuronx 2.10 and higher"
            return Availability(False, f"no compiler of torch modules: {reason}")
        return found

    def call(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Compile a module, and say that its results are not computed."""
        __tracebackhide__ = True
        raise WrongDevice(f"{self._compiled(kernel, args, kwargs)}. Its results are not computed")

    def prepare(self, kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Prepared:
        """Compile a module, and say that nothing here can time it."""
        __tracebackhide__ = True
        said = self._compiled(kernel, args, kwargs)
        raise WrongDevice(f"kernel_benchmark measures on a device, and this target only compiles. {said}")

    def _compiled(self, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """Return a line about the compiled module. NK607 where nothing says that it was compiled, or would be."""
        __tracebackhide__ = True
        from nkitools.targets.neuron_ways import module_way

        name, own = kernel_name(module), _own(kwargs)
        if os.environ.get(COMPILE_ONLY) != "1":
            message = f"`{name}` would run: {COMPILE_ONLY} must be 1 before torch is imported"
            refuse(module, message, "Leave --nki-isolate=none out: the process of the target has it.")
        if not kwargs.get("compiled"):
            message = f"`{name}` would run operation by operation, and this target compiles graphs"
            refuse(module, message, "Give kernel_benchmark compiled=True.")
        outer, way = module_way(module, args, own, self.chip())
        folder, began = way.cache(), time.perf_counter()
        before = {*folder.rglob("*.neff")}
        outer.prepare(_on_device(module, kwargs, way), args, own)
        new = len({*folder.rglob("*.neff")} - before)
        by = f"the compile-only mode of torch-neuronx {version_of('torch-neuronx')}"
        if not new and folder.name.startswith(OWN_FOLDER):
            message = f"`{name}` was called in {by}, which has left no NEFF in its cache and raised no error"
            refuse(module, message, "Compile it on a device (-m hw).")
        found = f"{new} new NEFF in the cache" if new else "the cache answered"
        return f"{name}: compiled for {self.chip()} by {by} in {time.perf_counter() - began:.1f} s: {found}"


def is_torch_module(kernel: Kernel) -> bool:
    """Return whether ``kernel`` is a ``torch.nn.Module``. Where torch has not been imported nothing can be one."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "nn") and isinstance(kernel, torch.nn.Module)


def _own(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the module's own keywords."""
    return {name: value for name, value in kwargs.items() if name != "compiled"}


def _on_device(module: Any, kwargs: Mapping[str, Any], way: Torch) -> Any:
    """Return the module's copy there as a function; the author's own stays on the host."""
    __tracebackhide__ = True
    import torch

    for name in ("grid", "ranks"):
        if kwargs.get(name) is not None:
            refuse(module, f"a torch module has no `{name}`", f"Leave `{name}` out.")
    there: Any = copy.deepcopy(module).to(way.device)
    if kwargs.get("compiled"):
        if way.device != "neuron":
            refuse(module, "torch-xla compiles a module as one graph in any case", "Leave `compiled` out.")
        there = torch.compile(there, backend="neuron")

    def forward(*args: Argument, **named: Argument) -> Any:
        with torch.no_grad():
            return there(*args, **named)

    return forward
