"""A fake of the native torch_neuronx of SDK 2.33: torch loads it by its entry point; it makes the device ``neuron``.

Sources: "PyTorch on Neuron" (``import torch`` loads the backend, ``.to("neuron")``); the quickstart for NKI kernels
(nki is required); the profiling guide (``torch.neuron.synchronize()``). Launches are asynchronous: what a kernel raises
comes out of the next synchronisation.
"""

import os
import types

# AWS's nki is imported with the backend; a part that only AWS's has stands for all that the stand-in lacks.
import nki.framework.compiled  # noqa: F401
import torch

log = []
_pending = []


def _autoload():
    """Make the device; torch calls it at the end of its own import."""
    if hasattr(torch, "neuron"):
        return
    torch.utils.rename_privateuse1_backend("neuron")
    module = types.ModuleType("torch.neuron")
    module.synchronize, module.is_available, module.device_count = synchronize, lambda: True, lambda: 1
    torch._register_device_module("neuron", module)
    plain = torch.Tensor.to

    def to(self, *args, **kwargs):
        where = args[0] if args else kwargs.get("device")
        if not isinstance(where, str | torch.device) or torch.device(where).type != "neuron":
            return plain(self, *args, **kwargs)
        log.append("to")
        return self if isinstance(self, OnNeuron) else _on_neuron(self)

    torch.Tensor.to = to


class OnNeuron(torch.Tensor):
    """A tensor on the device. Its elements are not the host's to see."""

    @property
    def device(self):
        """The device, by its name for torch."""
        return torch.device("neuron", 0)

    def cpu(self):
        """A copy on the host."""
        log.append("cpu")
        return _held(self)

    def numpy(self, *, force=False):
        """As torch for any device but the CPU."""
        raise TypeError("can't convert neuron:0 device type tensor to numpy. Use Tensor.cpu() to copy it first.")


class NkiOp:
    """What ``nki_op`` returns, as far as it is called. Source: "How to work with NKI kernels"."""

    def __init__(self, name, function):
        self._name, self._function = name, function

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def register_fake(self, function):
        """The shapes of the results."""
        return function

    def register_autograd(self, backward, *, setup_context=None):
        """The gradients."""


def nki_op(name, mutates_args=()):
    """Register a function that calls a kernel."""
    return lambda function: NkiOp(name, function)


def wrap_nki(kernel):
    """A kernel for torch.compile."""
    return kernel


def _on_neuron(tensor):
    return torch.Tensor._make_subclass(OnNeuron, tensor.detach().clone(), tensor.requires_grad)


def _held(tensor):
    return tensor.detach().as_subclass(torch.Tensor).clone()


def synchronize(device=None):
    """Wait for all launches; the first status that is an error comes out here."""
    log.append("synchronize")
    if _pending:
        raise _pending.pop(0)


def launch(kernel, args, kwargs):
    """Call a kernel with neuron tensors: AWS's nki hands it here. A tensor of the host is refused."""
    tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, torch.Tensor)]
    if any(each.device.type != "neuron" for each in tensors):
        raise TypeError("Expected all tensors to be on device neuron:0")
    log.append("launch")
    if os.environ.get("FAKE_NEURON") == "late":
        _pending.append(RuntimeError("nrt_execute status=1006 NRT_EXEC_OOB: out-of-bounds access"))
    host = [_held(each) if isinstance(each, torch.Tensor) else each for each in args]
    named = {name: _held(each) if isinstance(each, torch.Tensor) else each for name, each in kwargs.items()}
    outputs = kernel(*host, **named)
    if isinstance(outputs, tuple):
        return tuple(_on_neuron(each) for each in outputs)
    return _on_neuron(outputs)
