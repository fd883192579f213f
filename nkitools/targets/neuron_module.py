"""torch modules on a NeuronCore: what a framework's own operations do there, as a baseline for kernels."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nkitools.targets.neuron import NeuronByTorch
from nkitools.targets.target import Prepared, refuse

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
