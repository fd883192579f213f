"""The ways in to a NeuronCore: NumPy stand-alone, torch's native backend, torch_xla, JAX.

``nki.jit`` chooses between them by its arguments (its docstring: torch.Tensor, jax.Array, np.ndarray). Which of torch's
two ways is here is said by the version of torch-neuronx (`neuron_packages`).
"""

from __future__ import annotations

import os
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from nkitools.chip.argument_types import Argument, Kernel
from nkitools.chip.dtypes import as_dtype
from nkitools.launch.frameworks import NUMPY, TORCH, arrays_in, framework_of
from nkitools.launch.nested_arguments import mapped
from nkitools.platforms import NEURON_COMPILE_CACHE
from nkitools.targets.neff import Launcher, NoDeviceTime, has_nrtpy
from nkitools.targets.neuron_packages import torch_backend
from nkitools.targets.neuron_time import by_parameter, compiled_with, empty_own_folder, kept_neff
from nkitools.targets.packages import is_installed
from nkitools.targets.target import Prepared, WrongDevice, kernel_name, refuse

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
        """Return an output on the host, as the framework's own kind of array; unchanged if the host can read it."""
        return value

    def call(self, kernel: Kernel, args: Arguments, kwargs: Keywords) -> Any:
        """Run ``kernel`` once and return its outputs on the host; copy back what it wrote into its arguments."""
        there, named = mapped(args, self.to_device), mapped(dict(kwargs), self.to_device)
        outputs = kernel(*there, **named)
        self.finish(outputs)
        self.write_back((args, kwargs), (there, named))
        return mapped(outputs, self.to_host)

    def write_back(self, here: Argument, there: Argument) -> None:
        """Copy what the kernel wrote into the copies ``there`` back to the arguments ``here``, if they are copies."""
        return

    def repeated(self, kernel: Kernel, args: Arguments, kwargs: Keywords) -> Callable[[], Any]:
        """Return the call that is made in each round; the arguments are on the device."""
        return lambda: kernel(*args, **kwargs)

    def prepare(self, kernel: Kernel, args: Arguments, kwargs: Keywords) -> Prepared:
        """Compile by a first call, with the arguments staying on the device."""
        there, named = mapped(args, self.to_device), mapped(dict(kwargs), self.to_device)
        call = self.repeated(kernel, there, named)

        def launch() -> Any:
            outputs = call()
            self.finish(outputs)
            return outputs

        seconds, cache = compiled_with(launch, self.cache())
        return Prepared(launch, self._fetch, seconds, compile_cache=cache)

    def cache(self) -> Path:
        """Return the folder in which AWS's compiler keeps what it has compiled for the framework."""
        return Path(os.environ.get("NEURON_COMPILE_CACHE_URL") or NEURON_COMPILE_CACHE)

    def _fetch(self, outputs: Any) -> Any:
        return mapped(outputs, self.to_host)


class Standalone(Way):
    """NumPy arrays: compiled and executed without a framework."""

    def to_device(self, value: Argument) -> Any:
        """AWS's package brings it there."""
        return value

    def finish(self, outputs: Argument) -> None:
        """Do nothing: the call returns when the outputs are in host memory."""

    def call(self, kernel: Kernel, args: Arguments, kwargs: Keywords) -> Any:
        """Run ``kernel`` once. The compiler works in a folder of ours, which it wants to be clean."""
        empty_own_folder()
        return super().call(kernel, args, kwargs)


class ByNeff(Standalone):
    """NumPy arrays, for many launches: compiled once by a stand-alone call, whose compiled kernel nrtpy launches."""

    def __init__(self, degree: int) -> None:
        self._degree = degree

    def prepare(self, kernel: Kernel, args: Arguments, kwargs: Keywords) -> Prepared:
        """Compile by a first call, and load what it leaves, with copies of the arguments on the device."""
        began = time.perf_counter()
        try:
            neff, outputs = kept_neff(kernel, args, kwargs)
            launcher = Launcher(neff, by_parameter(kernel, args, kwargs))
        except NoDeviceTime as error:
            refuse(kernel, f"kernel `{kernel_name(kernel)}` cannot be timed: {error}", "Install a framework of AWS's.")
        shown = arrays_in(outputs)

        def fetch(found: list[Any]) -> Any:
            # nrtpy gives bytes without a dtype: those of the first call have one.
            rest = iter(zip(found, shown, strict=True))

            def filled(value: Argument) -> Any:
                if framework_of(value) is None:
                    return value
                tensor, first = next(rest)
                return tensor.numpy().view(first.dtype).reshape(first.shape)

            return mapped(outputs, filled)

        seconds = time.perf_counter() - began
        alone = partial(launcher.device_time, self._degree)
        return Prepared(launcher.launch, fetch, seconds, device_time=alone, compile_cache="compiled: no cache is asked")


class Torch(Way):
    """torch tensors on a device of torch's, by any of AWS's two backends."""

    device: Any

    def to_device(self, value: Argument) -> Any:
        """Return a tensor of the device: of a tensor on the host, or of a NumPy array, narrow dtypes included."""
        framework = framework_of(value)
        if framework is None:
            return value
        tensor: Any = _as_tensor(value) if framework is NUMPY else value
        return tensor.to(self.device)

    def write_back(self, here: Argument, there: Argument) -> None:
        """Bring back the arguments that are outputs too, as kernels of ``nki.trace`` have them."""
        for host, device in zip(arrays_in(here), arrays_in(there), strict=True):
            if framework_of(host) is NUMPY:
                if host.flags.writeable:
                    host[...] = TORCH.to_numpy("argument", device.cpu())
            elif host is not device:
                host.copy_(device.cpu())

    def to_host(self, value: Argument) -> Any:
        """Return a tensor on the CPU."""
        return getattr(value, "cpu", lambda: value)()


class TorchNeuron(Torch):
    """torch tensors on the device ``neuron`` of the native backend; launches are asynchronous until `finish`."""

    def __init__(self) -> None:
        self._torch = import_module("torch")
        if not hasattr(self._torch, "neuron"):  # torch loads the backend by itself, where that is not switched off
            import_module("torch_neuronx")._autoload()
        self.device = "neuron"

    def finish(self, outputs: Argument) -> None:
        """Wait for the device. An error of the launch is raised here."""
        self._torch.neuron.synchronize()

    def cache(self) -> Path:
        """Return the folder of the native backend."""
        told = os.environ.get("TORCH_NEURONX_NEFF_CACHE_DIR")
        return Path(told or os.path.join(tempfile.gettempdir(), "neff_cache"))


class TorchXla(Torch):
    """torch tensors on the XLA device. The graph is recorded by the call, run by ``sync`` and awaited after it.

    A call runs NKI's front end, which takes seconds: what is timed is the recorded graph alone.
    """

    def __init__(self) -> None:
        # torch_neuronx registers the Neuron device with torch_xla.
        import_module("torch_neuronx")
        self._xla = import_module("torch_xla")
        self._model = import_module("torch_xla.core.xla_model")
        self.device = self._model.xla_device()

    def finish(self, outputs: Argument) -> None:
        """End the graph and wait for it: without, only its recording would have been timed."""
        sync: Callable[[], Any] = getattr(self._xla, "sync", self._model.mark_step)
        sync()
        self._model.wait_device_ops()

    def prepare(self, kernel: Kernel, args: Arguments, kwargs: Keywords) -> Prepared:
        """As `Way.prepare`; each launch is of a graph that ``record`` has recorded before."""
        there, named = mapped(args, self.to_device), mapped(dict(kwargs), self.to_device)
        outputs: Any = None

        def record() -> None:
            nonlocal outputs
            outputs = kernel(*there, **named)

        def launch() -> Any:
            self.finish(outputs)
            return outputs

        def first() -> None:
            record()
            launch()

        seconds, cache = compiled_with(first, self.cache())
        return Prepared(launch, self._fetch, seconds, record, compile_cache=cache)


class Jax(Way):
    """JAX arrays on the first device, which must be a NeuronCore. The kernel is called under ``jax.jit``.

    A bare call runs NKI's front end each time, which takes seconds.
    """

    def __init__(self) -> None:
        self._jax = import_module("jax")
        self._device = self._jax.devices()[0]
        if self._device.platform != "neuron":
            platforms = ", ".join(sorted({device.platform for device in self._jax.devices()}))
            raise WrongDevice(f"no NeuronCore: jax.devices() has {platforms} only. Install libneuronxla, AWS's plugin")

    def to_device(self, value: Argument) -> Any:
        """Return ``value`` committed to the NeuronCore."""
        return value if framework_of(value) is None else self._jax.device_put(value, self._device)

    def finish(self, outputs: Argument) -> None:
        """Wait for it."""
        self._jax.block_until_ready(outputs)

    def repeated(self, kernel: Kernel, args: Arguments, kwargs: Keywords) -> Callable[[], Any]:
        """Return a call that is compiled once: arrays are arguments of the graph, all else is a constant of it."""
        arrays = arrays_in((args, kwargs))

        def graph(given: list[Any]) -> Any:
            rest = iter(given)
            there, named = mapped((args, kwargs), lambda value: value if framework_of(value) is None else next(rest))
            return kernel(*there, **named)

        compiled = self._jax.jit(graph)
        return lambda: compiled(arrays)


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

    def write_back(self, here: Argument, there: Argument) -> None:
        """As the other way does."""
        self._way.write_back(here, there)

    def prepare(self, kernel: Kernel, args: Arguments, kwargs: Keywords) -> Prepared:
        """As the other way does."""
        return self._way.prepare(kernel, args, kwargs)._replace(fetch=self._fetch)

    def to_host(self, value: Argument) -> Any:
        """As a NumPy array."""
        framework = framework_of(value)
        return value if framework is None else framework.to_numpy("output", self._way.to_host(value))


def way_for(kernel: Kernel, args: Arguments, kwargs: Keywords, chip: str = "") -> Way:
    """Return the way to run a kernel on ``chip`` with the framework of its arguments.

    NK607 if the arguments are of two frameworks, and if no installed package can run them.
    """
    __tracebackhide__ = True
    kinds = _kinds(args, kwargs)
    if len(kinds) > 1:
        message = (
            f"the arguments of kernel `{kernel_name(kernel)}` are of {' and '.join(sorted(kinds))}; a NeuronCore is "
            "driven by one framework at a time"
        )
        refuse(kernel, message, "Give it arrays of one framework.")
    if kinds == {"torch"}:
        return torch_way(kernel, chip)
    return Jax() if kinds else Standalone()


def module_way(module: Kernel, args: Arguments, kwargs: Keywords, chip: str) -> tuple[Way, Torch]:
    """Return the way for a torch module with these arguments, and torch's way behind it."""
    __tracebackhide__ = True
    way = torch_way(module, chip)
    return way if _kinds(args, kwargs) else AsNumpy(way), way


def torch_way(kernel: Kernel, chip: str) -> Torch:
    """Return torch's way in that is here: the native backend, else torch_xla. NK607 where neither is for ``chip``."""
    __tracebackhide__ = True
    found = torch_backend(chip)
    if not found.kind:
        refuse(kernel, f"`{kernel_name(kernel)}` has no way to a NeuronCore by torch: {found.reason}", found.remedy)
    return TorchNeuron() if found.kind == "native" else TorchXla()


def timed_way_for(kernel: Kernel, args: Arguments, kwargs: Keywords, chip: str = "", degree: int = 1) -> Way:
    """Return the way in that can launch again without compiling. NK607 where none is installed."""
    __tracebackhide__ = True
    way = way_for(kernel, args, kwargs, chip)
    if not isinstance(way, Standalone):
        return way
    found = torch_backend(chip)
    if found.kind:
        return AsNumpy(TorchNeuron() if found.kind == "native" else TorchXla())
    if is_installed("jax") and is_installed("libneuronxla"):
        return AsNumpy(Jax())
    if has_nrtpy():
        return ByNeff(degree)
    message = (
        f"kernel `{kernel_name(kernel)}` cannot be timed: with NumPy arguments alone every call compiles again, and "
        f"its time is the compiler's; {found.reason}, JAX has no plugin libneuronxla, and nrtpy is not installed"
    )
    return refuse(kernel, message, f"{found.remedy} Or install jax-neuronx, on any chip.")


def _as_tensor(array: Any) -> Any:
    """Return a tensor of a NumPy array. torch has no read-only tensors, so that such an array is copied."""
    return TORCH.from_numpy(array if array.flags.writeable else array.copy(), as_dtype(array.dtype))


def _kinds(args: Arguments, kwargs: Keywords) -> set[str]:
    frameworks = (framework_of(array) for array in arrays_in((args, kwargs)))
    return {framework.name for framework in frameworks if framework is not None and framework is not NUMPY}
