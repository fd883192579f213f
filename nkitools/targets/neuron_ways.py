"""The ways in to a NeuronCore: NumPy stand-alone, torch_xla, JAX.

``nki.jit`` chooses between them by its arguments (its docstring: torch.Tensor, jax.Array, np.ndarray).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from nkitools.chip.argument_types import Argument, Kernel
from nkitools.launch.frameworks import NUMPY, arrays_in, framework_of
from nkitools.launch.nested_arguments import mapped
from nkitools.targets.packages import is_installed
from nkitools.targets.target import Prepared, kernel_name, refuse

Arguments = tuple[Any, ...]
Keywords = Mapping[str, Any]


class Way(ABC):
    """One framework on the device: arguments go there and outputs come back in the kind of the arguments."""

    @abstractmethod
    def to_device(self, value: Argument) -> Any:
        """Return an array on the device; what is no array stays as it is."""

    @abstractmethod
    def finish(self, outputs: Argument) -> None:
        """Wait until the device has finished."""

    def to_host(self, value: Argument) -> Any:
        """Return an output in the framework's own kind on the host: as it is, where that can be read there."""
        return value

    def call(self, kernel: Kernel, args: Arguments, kwargs: Keywords) -> Any:
        """Run ``kernel`` once; its outputs on the host, and there too what it wrote into its arguments."""
        there, named = mapped(args, self.to_device), mapped(dict(kwargs), self.to_device)
        outputs = kernel(*there, **named)
        self.finish(outputs)
        self.write_back((args, kwargs), (there, named))
        return mapped(outputs, self.to_host)

    def write_back(self, here: Argument, there: Argument) -> None:
        """Bring to the arguments ``here`` what the kernel wrote into their copies ``there``, if they are copies."""
        return

    def prepare(self, kernel: Kernel, args: Arguments, kwargs: Keywords) -> Prepared:
        """Compile by a first call, with the arguments staying on the device."""
        there, named = mapped(args, self.to_device), mapped(dict(kwargs), self.to_device)

        def launch() -> Any:
            outputs = kernel(*there, **named)
            self.finish(outputs)
            return outputs

        began = time.perf_counter()
        launch()
        return Prepared(launch, lambda outputs: mapped(outputs, self.to_host), time.perf_counter() - began)


class Standalone(Way):
    """NumPy arrays: compiled and executed without a framework."""

    def to_device(self, value: Argument) -> Any:
        """AWS's package brings it there."""
        return value

    def finish(self, outputs: Argument) -> None:
        """Do nothing: the call returns when the outputs are in host memory."""


class TorchXla(Way):
    """torch tensors on the XLA device. The graph is recorded by the call, run by ``sync`` and awaited after it."""

    def __init__(self) -> None:
        # torch_neuronx registers the Neuron device with torch_xla.
        import_module("torch_neuronx")
        self._xla = import_module("torch_xla")
        self._model = import_module("torch_xla.core.xla_model")
        self._device = self._model.xla_device()

    def to_device(self, value: Argument) -> Any:
        """Tensors on the CPU go there, NumPy arrays as tensors."""
        framework = framework_of(value)
        if framework is None:
            return value
        if framework is NUMPY:
            return import_module("torch").from_numpy(value).to(self._device)
        tensor: Any = value
        return tensor.to(self._device)

    def finish(self, outputs: Argument) -> None:
        """End the graph and wait for it: without, only its recording would have been timed."""
        sync: Callable[[], Any] = getattr(self._xla, "sync", self._model.mark_step)
        sync()
        self._model.wait_device_ops()

    def write_back(self, here: Argument, there: Argument) -> None:
        """Kernels of ``nki.trace`` have their outputs among their arguments."""
        for host, device in zip(arrays_in(here), arrays_in(there), strict=True):
            if framework_of(host) is NUMPY:
                if host.flags.writeable:
                    host[...] = device.cpu().numpy()
            elif host is not device:
                host.copy_(device.cpu())

    def to_host(self, value: Argument) -> Any:
        """As a tensor on the CPU."""
        return getattr(value, "cpu", lambda: value)()


class Jax(Way):
    """JAX arrays on the default device, which is the NeuronCore where AWS's plugin is installed."""

    def __init__(self) -> None:
        self._jax = import_module("jax")

    def to_device(self, value: Argument) -> Any:
        """Return ``value`` committed to the first device."""
        return value if framework_of(value) is None else self._jax.device_put(value, self._jax.devices()[0])

    def finish(self, outputs: Argument) -> None:
        """Wait for it."""
        self._jax.block_until_ready(outputs)


class AsNumpy(Way):
    """Another way for arguments that are NumPy arrays: its outputs come back as NumPy arrays."""

    def __init__(self, way: Way) -> None:
        self._way = way

    def to_device(self, value: Argument) -> Any:
        """As the other way does."""
        return self._way.to_device(value)

    def finish(self, outputs: Argument) -> None:
        """As the other way does."""
        self._way.finish(outputs)

    def to_host(self, value: Argument) -> Any:
        """As a NumPy array."""
        framework = framework_of(value)
        return value if framework is None else framework.to_numpy("output", self._way.to_host(value))


def way_for(kernel: Kernel, args: Arguments, kwargs: Keywords) -> Way:
    """Return the way in that the arguments name. NK607 where they are of two frameworks."""
    kinds = _kinds(args, kwargs)
    if len(kinds) > 1:
        message = (
            f"the arguments of kernel `{kernel_name(kernel)}` are of {' and '.join(sorted(kinds))}; a NeuronCore is "
            "driven by one framework at a time"
        )
        refuse(kernel, message, "Give it arrays of one framework.")
    return {"torch": TorchXla, "jax": Jax}.get("".join(kinds), Standalone)()


def timed_way_for(kernel: Kernel, args: Arguments, kwargs: Keywords) -> Way:
    """Return the way in that can launch again without compiling. NK607 where none is installed."""
    __tracebackhide__ = True
    way = way_for(kernel, args, kwargs)
    if not isinstance(way, Standalone):
        return way
    if is_installed("torch_neuronx") and is_installed("torch_xla"):
        return AsNumpy(TorchXla())
    if is_installed("jax") and is_installed("libneuronxla"):
        return AsNumpy(Jax())
    message = (
        f"kernel `{kernel_name(kernel)}` cannot be timed: with NumPy arguments alone every call compiles again, and "
        "its time is the compiler's"
    )
    return refuse(kernel, message, "Install torch-neuronx or jax-neuronx, which launch a compiled kernel again.")


def _kinds(args: Arguments, kwargs: Keywords) -> set[str]:
    frameworks = (framework_of(array) for array in arrays_in((args, kwargs)))
    return {framework.name for framework in frameworks if framework is not None and framework is not NUMPY}
