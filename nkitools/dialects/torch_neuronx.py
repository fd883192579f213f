"""``torch_neuronx`` in simulation: ``nki_op`` and ``wrap_nki`` of AWS's native backend, without a device.

Source: "How to work with NKI kernels", PyTorch on Neuron (SDK 2.33): ``@nki_op("library::name", mutates_args={...})``
registers a typed function whose body calls a kernel as a custom operator of torch; ``wrap_nki(kernel)`` gives a
callable for ``torch.compile``, and ``wrap_nki(kernel)[2]`` one with a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from nkitools.dialects.absent import missing_beside_kernels
from nkitools.dialects.modern import jit
from nkitools.launch.kernel import KernelObject

if TYPE_CHECKING:
    from nkitools.chip.argument_types import Kernel

__all__ = ["nki_op", "wrap_nki"]


def nki_op(name: str, *, mutates_args: Iterable[str] = ()) -> Callable[[Callable[..., Any]], Any]:
    """Register the decorated function as ``torch.ops.library.name``: kernels that it calls are simulated.

    The result is torch's own object for a custom operator, with ``register_fake`` and ``register_autograd``. Another
    function of the same name takes the place of the first. ``mutates_args`` names the arguments that it writes into.
    """
    import torch

    def registered(function: Callable[..., Any]) -> Any:
        operator: Any = torch.library.custom_op(name, function, mutates_args=tuple(mutates_args))
        operator.__name__ = function.__name__
        operator.__wrapped__ = function
        return operator

    return registered


def wrap_nki(kernel: Kernel) -> KernelObject[...]:
    """Return a kernel that is called with tensors, and with a grid in brackets: in simulation, the kernel itself."""
    return kernel if isinstance(kernel, KernelObject) else jit(kernel)


__getattr__ = partial(missing_beside_kernels, "torch_neuronx")
